/* Settings and life cycle of the plugins for providers; see provider.h. */
#include "provider.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_HEADERS = 32 };

const struct rung_option llm_opt_model = {
    .struct_size = sizeof llm_opt_model,
    .type = RUNG_OPT_STRING,
    .flags = RUNG_OPT_REQUIRED,
    .name = "model",
    .summary = "Name of the model, as the provider writes it.",
};
const struct rung_option llm_opt_temperature = {
    .struct_size = sizeof llm_opt_temperature,
    .type = RUNG_OPT_FLOAT,
    .name = "temperature",
    .default_text = "-1",
    .min = -1,
    .max = 2,
    .summary = "Sampling temperature; below 0: not sent, which many reasoning models insist on.",
};
const struct rung_option llm_opt_timeout = {
    .struct_size = sizeof llm_opt_timeout,
    .type = RUNG_OPT_DURATION,
    .name = "timeout",
    .default_text = "20m",
    .unit = "s",
    .min = 1,
    .max = 86400,
    .summary = "Longest wait for one whole reply; then the request is sent again.",
};
const struct rung_option llm_opt_stream = {
    .struct_size = sizeof llm_opt_stream,
    .type = RUNG_OPT_BOOL,
    .name = "stream",
    .default_text = "true",
    .summary =
        "Take the reply in pieces as it grows: a silent server is noticed, a cut reply is kept.",
};
const struct rung_option llm_opt_silence = {
    .struct_size = sizeof llm_opt_silence,
    .type = RUNG_OPT_DURATION,
    .flags = RUNG_OPT_ADVANCED,
    .name = "silence",
    .default_text = "10m",
    .unit = "s",
    .min = 1,
    .max = 86400,
    .summary = "Longest silence of a stream, before its first event and between two; comments that "
               "keep it open count as silence.",
};
const struct rung_option llm_opt_models = {
    .struct_size = sizeof llm_opt_models,
    .type = RUNG_OPT_PATH,
    .flags = RUNG_OPT_ADVANCED,
    .name = "models",
    .summary = "A table of what models take and refuse, or a folder of such, read after the one of "
               "rung (config/models).",
};
const struct rung_option llm_opt_headers = {
    .struct_size = sizeof llm_opt_headers,
    .type = RUNG_OPT_STRINGS,
    .flags = RUNG_OPT_ADVANCED,
    .name = "headers",
    .summary = "Further headers, each as \"Name: value\"; never a key.",
};
const struct rung_option llm_opt_body = {
    .struct_size = sizeof llm_opt_body,
    .type = RUNG_OPT_STRINGS,
    .flags = RUNG_OPT_ADVANCED,
    .name = "body",
    .summary =
        "Further fields of the request, each as \"PATH=JSON\", such as \"top_p=0.9\"; dots in "
        "PATH lead into objects.",
};
const struct rung_option llm_opt_plain = {
    .struct_size = sizeof llm_opt_plain,
    .type = RUNG_OPT_BOOL,
    .flags = RUNG_OPT_ADVANCED,
    .name = "allow_plain_http",
    .default_text = "false",
    .summary =
        "Allow http without TLS to other hosts than this one: anyone on the way can read the "
        "key.",
};

/* ---- Settings ---- */

bool llm_split(const char *text, char at, struct llm_span *left, struct llm_span *right)
{
    const char *middle = strchr(text, at);
    if (!middle)
        return false;
    *left = llm_trim((struct llm_span){text, (size_t)(middle - text)});
    *right = llm_trim((struct llm_span){middle + 1, strlen(middle + 1)});
    return left->len && right->len;
}

static bool is_word_of(const char *const *words, struct llm_span word)
{
    for (; *words; ++words)
        if (strlen(*words) == word.len && strncasecmp(*words, word.ptr, word.len) == 0)
            return true;
    return false;
}

static int32_t check_header(const char *text, struct rung_error *error)
{
    static const char *const keys[] = {
        "authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key",
        "cookie",        "content-type",        NULL};
    struct llm_span name, value;
    if (!llm_split(text, ':', &name, &value))
        return llm_fail(error, RUNG_ECONFIG, "llm.headers",
                        "an item of 'headers' must be \"Name: value\"");
    if (is_word_of(keys, name))
        return llm_fail(
            error, RUNG_ECONFIG, "llm.headers",
            "'headers' may not hold %.*s; where a key is, 'key' says as \"env:VARIABLE\" "
            "or \"file:PATH\"",
            (int)name.len, name.ptr);
    return RUNG_OK;
}

static int32_t check_extra(const char *text, struct rung_error *error)
{
    static const char *const ours[] = {
        "model", "messages", "contents",          "input",        "system", "stream",
        "tools", "n",        "systemInstruction", "instructions", NULL};
    struct llm_span path, value;
    struct llm_body body = llm_body_new();
    int32_t status = RUNG_OK;
    if (!llm_split(text, '=', &path, &value) || !llm_body_set(&body, path, value))
        status = llm_fail(error, RUNG_ECONFIG, "llm.body",
                          "item '%.80s' of 'body' must be \"PATH=JSON\", such as \"top_p=0.9\" or "
                          "\"stop=[\\\"END\\\"]\"",
                          text);
    const char *dot = status == RUNG_OK ? memchr(path.ptr, '.', path.len) : NULL;
    if (dot)
        path.len = (size_t)(dot - path.ptr);
    if (status == RUNG_OK && is_word_of(ours, path))
        status = llm_fail(error, RUNG_ECONFIG, "llm.body", "'body' may not set %.*s", (int)path.len,
                          path.ptr);
    llm_body_free(&body);
    return status;
}

int32_t llm_provider_validate(const struct rung_host *host, const struct rung_options *options,
                              struct rung_error *error)
{
    const uint32_t n_headers = host->opt_count(host, options, "headers");
    const uint32_t n_extras = host->opt_count(host, options, "body");
    const char *url = host->opt_string(host, options, "url");
    int32_t status = RUNG_OK;
    if (strcmp(url, "auto") != 0 && strncmp(url, "http://", 7) != 0 &&
        strncmp(url, "https://", 8) != 0)
        return llm_fail(error, RUNG_ECONFIG, "llm.url",
                        "'url' must begin with https:// or http://, not '%.80s'", url);
    if (n_headers > MAX_HEADERS || n_extras > MAX_HEADERS)
        return llm_fail(error, RUNG_ECONFIG, "llm.headers",
                        "'headers' and 'body' hold at most %d items each", MAX_HEADERS);
    for (uint32_t i = 0; i < n_headers && status == RUNG_OK; ++i)
        status = check_header(host->opt_string_at(host, options, "headers", i), error);
    for (uint32_t i = 0; i < n_extras && status == RUNG_OK; ++i)
        status = check_extra(host->opt_string_at(host, options, "body", i), error);
    return status;
}

static char **copy_list(const struct rung_host *host, const struct rung_options *options,
                        const char *name, uint32_t *n)
{
    const uint32_t count = host->opt_count(host, options, name);
    char **list = calloc(count + 1, sizeof *list);
    *n = list ? count : 0;
    for (uint32_t i = 0; i < *n; ++i)
        list[i] = strdup(host->opt_string_at(host, options, name, i));
    return list;
}

static bool all_copied(char **list, uint32_t n)
{
    for (uint32_t i = 0; list && i < n; ++i)
        if (!list[i])
            return false;
    return list != NULL;
}

int32_t llm_provider_init(struct llm_provider *p, const struct rung_host *host,
                          const struct rung_options *options, const char *plugin,
                          struct rung_error *error)
{
    p->host = host;
    p->plugin = p->provider = plugin;
    p->name = strdup(host->opt_string(host, options, "model"));
    p->key = strdup(host->opt_string(host, options, "key"));
    p->effort = strdup(host->opt_string(host, options, "effort"));
    p->models = strdup(host->opt_string(host, options, "models"));
    p->headers = copy_list(host, options, "headers", &p->n_headers);
    p->extras = copy_list(host, options, "body", &p->n_extras);
    p->max_output_tokens = host->opt_int(host, options, "max_output_tokens");
    p->temperature = host->opt_float(host, options, "temperature");
    p->timeout_s = host->opt_float(host, options, "timeout");
    p->silence_s = host->opt_float(host, options, "silence");
    p->stream = host->opt_int(host, options, "stream") != 0;
    p->allow_plain = host->opt_int(host, options, "allow_plain_http") != 0;
    if (!p->name || !p->key || !p->effort || !p->models || !all_copied(p->headers, p->n_headers) ||
        !all_copied(p->extras, p->n_extras))
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    return RUNG_OK;
}

static void free_list(char **list, uint32_t n)
{
    for (uint32_t i = 0; list && i < n; ++i)
        free(list[i]);
    free(list);
}

void llm_provider_free(struct llm_provider *p)
{
    free(p->endpoint);
    free(p->stream_endpoint);
    free(p->name);
    free(p->models);
    free(p->key);
    free(p->effort);
    free_list(p->headers, p->n_headers);
    free_list(p->extras, p->n_extras);
}

void llm_provider_destroy(void *self)
{
    llm_provider_free(self);
    free(self);
}

int32_t llm_provider_ready(const struct llm_provider *p, struct rung_error *error)
{
    return p->endpoint ? RUNG_OK : llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
}

/* rung's own table may be missing; the user's may not. */
static int32_t read_models(struct llm_provider *p, struct rung_error *error)
{
    char ours[4096];
    snprintf(ours, sizeof ours, "%s/models", p->host->data_dir);
    int32_t status = llm_models_read(ours, p->provider, p->name, &p->model, error);
    if (status == RUNG_ENOTFOUND)
        status = RUNG_OK;
    if (status == RUNG_OK && p->models[0])
        status = llm_models_read(p->models, p->provider, p->name, &p->model, error);
    return status;
}

int32_t llm_provider_start(void *self, struct rung_error *error)
{
    struct llm_provider *p = self;
    p->http = p->host->get_extension(p->host, RUNG_HOST_HTTP);
    if (!p->http)
        return llm_fail(error, RUNG_EUNAVAILABLE, "llm.http",
                        "%s: this host offers no HTTP service", p->plugin);
    return read_models(p, error);
}

struct llm_asker llm_provider_asker(const struct llm_provider *p)
{
    return (struct llm_asker){.plugin = p->plugin,
                              .provider = p->provider,
                              .url = p->endpoint,
                              .model = p->name,
                              .key = p->key,
                              .echo = p->echo};
}

char *llm_endpoint(const char *url, const char *bare, const char *path)
{
    struct llm_text all = {0};
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t n = strcspn(url, "?#");
    const char *query = url + n;
    while (n > (size_t)(host - url) && url[n - 1] == '/')
        --n;
    llm_text_add(&all, url, n);
    if (!memchr(host, '/', n - (size_t)(host - url)))
        llm_text_puts(&all, bare);
    if (n < strlen(path) || strncmp(url + n - strlen(path), path, strlen(path)) != 0)
        llm_text_puts(&all, path);
    llm_text_puts(&all, query);
    if (!all.failed)
        return all.ptr;
    llm_text_free(&all);
    return NULL;
}

void llm_add_encoded(struct llm_text *to, const char *text)
{
    for (; *text; ++text) {
        /* Two dots in a row would lead to another folder. */
        if (isalnum((unsigned char)*text) || strchr("-_~", *text) ||
            (*text == '.' && text[1] != '.'))
            llm_text_add(to, text, 1);
        else
            llm_text_printf(to, "%%%02X", (unsigned char)*text);
    }
}
