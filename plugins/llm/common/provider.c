/* Settings and the request of the plugins for providers; see provider.h. */
#include "provider.h"
#include <ctype.h>
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

/* "Name: value" -> its two halves, trimmed. */
static bool split(const char *text, char at, struct llm_span *left, struct llm_span *right)
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
    if (!split(text, ':', &name, &value))
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
    static const char *const ours[] = {"model", "messages", "contents",          "system", "stream",
                                       "tools", "n",        "systemInstruction", NULL};
    struct llm_span path, value;
    struct llm_body body = llm_body_new();
    int32_t status = RUNG_OK;
    if (!split(text, '=', &path, &value) || !llm_body_set(&body, path, value))
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
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
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
    p->plugin = plugin;
    p->model = strdup(host->opt_string(host, options, "model"));
    p->key = strdup(host->opt_string(host, options, "key"));
    p->effort = strdup(host->opt_string(host, options, "effort"));
    p->headers = copy_list(host, options, "headers", &p->n_headers);
    p->extras = copy_list(host, options, "body", &p->n_extras);
    p->max_output_tokens = host->opt_int(host, options, "max_output_tokens");
    p->temperature = host->opt_float(host, options, "temperature");
    p->timeout_s = host->opt_float(host, options, "timeout");
    p->allow_plain = host->opt_int(host, options, "allow_plain_http") != 0;
    if (!p->model || !p->key || !p->effort || !all_copied(p->headers, p->n_headers) ||
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
    free(p->model);
    free(p->key);
    free(p->effort);
    free_list(p->headers, p->n_headers);
    free_list(p->extras, p->n_extras);
}

int32_t llm_provider_start(struct llm_provider *p, struct rung_error *error)
{
    p->http = p->host->get_extension(p->host, RUNG_HOST_HTTP);
    if (p->http)
        return RUNG_OK;
    return llm_fail(error, RUNG_EUNAVAILABLE, "llm.http", "%s: this host offers no HTTP service",
                    p->plugin);
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

/* ---- The request ---- */

int32_t llm_provider_check(const struct rung_llm_request *request, struct rung_error *error)
{
    const int32_t status = llm_check_request(request, error);
    if (status != RUNG_OK)
        return status;
    if (request->n_tools)
        return llm_fail(error, RUNG_EUNSUPPORTED, "llm.tools",
                        "request %s brings tools, which this plugin can't offer to a model",
                        request->key);
    bool text = false;
    for (uint32_t m = 0; m < request->n_messages; ++m) {
        const struct rung_message *message = &request->messages[m];
        for (uint32_t p = 0; p < message->n_parts; ++p) {
            if (message->parts[p].kind != RUNG_PART_TEXT)
                return llm_fail(error, RUNG_EUNSUPPORTED, "llm.parts",
                                "request %s holds a part that is no text (kind %u)", request->key,
                                message->parts[p].kind);
            text |= message->role != RUNG_MSG_SYSTEM && message->parts[p].text.len > 0;
        }
    }
    return text ? RUNG_OK
                : llm_fail(error, RUNG_EINVAL, "llm.request", "request %s holds no text",
                           request->key);
}

static bool has_text(const struct rung_message *message)
{
    for (uint32_t p = 0; p < message->n_parts; ++p)
        if (message->parts[p].text.len)
            return true;
    return false;
}

static void add_message(struct llm_text *text, const struct rung_message *message)
{
    llm_text_puts(text, text->len ? "\n\n" : "");
    for (uint32_t p = 0; p < message->n_parts; ++p)
        llm_text_add_utf8(text, message->parts[p].text.ptr, message->parts[p].text.len);
}

bool llm_turn_next(const struct rung_llm_request *request, uint32_t *at, struct llm_turn *turn)
{
    *turn = (struct llm_turn){0};
    for (; *at < request->n_messages; ++*at) {
        const struct rung_message *message = &request->messages[*at];
        if (!has_text(message))
            continue;
        if (turn->text.len && message->role != turn->role)
            return true;
        turn->role = message->role;
        add_message(&turn->text, message);
    }
    return turn->text.len > 0;
}

int64_t llm_cap(const struct llm_provider *p, const struct rung_llm_request *request)
{
    return request->max_output_tokens ? request->max_output_tokens : p->max_output_tokens;
}

void llm_add_temperature(const struct llm_provider *p, const struct rung_llm_request *request,
                         struct llm_body *body, cJSON *object)
{
    const double temperature = request->temperature >= 0 ? request->temperature : p->temperature;
    if (temperature >= 0)
        llm_body_number(body, object, "temperature", temperature);
}

const char *llm_effort(const struct llm_provider *p, const struct rung_llm_request *request,
                       const char *const words[5])
{
    if (request->effort >= 1 && request->effort <= 5)
        return words[request->effort - 1];
    return p->effort[0] ? p->effort : NULL;
}

struct llm_asker llm_provider_asker(const struct llm_provider *p)
{
    return (struct llm_asker){
        .plugin = p->plugin, .url = p->endpoint, .model = p->model, .key = p->key};
}

/* ---- Over the wire ---- */

static struct rung_http_header header_of(struct llm_span name, struct llm_span value)
{
    return (struct rung_http_header){.struct_size = sizeof(struct rung_http_header),
                                     .name = {name.ptr, name.len},
                                     .value = {value.ptr, value.len}};
}

static struct rung_http_header header_text(const char *name, const char *value)
{
    return header_of((struct llm_span){name, strlen(name)},
                     (struct llm_span){value, strlen(value)});
}

static uint32_t fill_headers(const struct llm_provider *p, const struct llm_login *login,
                             struct rung_http_header headers[MAX_HEADERS + 3])
{
    struct llm_span name, value;
    uint32_t n = 0;
    headers[n++] = header_text("content-type", "application/json");
    if (p->key[0]) {
        headers[n] = header_text(login->header, "");
        headers[n].secret = p->key;
        headers[n++].prefix = login->prefix;
    }
    if (login->name[0])
        headers[n++] = header_text(login->name[0], login->name[1]);
    for (uint32_t i = 0; i < p->n_headers && i < MAX_HEADERS; ++i)
        if (split(p->headers[i], ':', &name, &value))
            headers[n++] = header_of(name, value);
    return n;
}

static struct llm_span find(const struct llm_provider *p, const struct rung_http_response *reply,
                            const char *name)
{
    const struct rung_text value = p->http->find(reply, name);
    return (struct llm_span){value.ptr, value.len};
}

/* The body as text on the heap (free), with the user's own fields put over it. */
static char *print_body(const struct llm_provider *p, struct llm_body *body)
{
    struct llm_span path, value;
    for (uint32_t i = 0; i < p->n_extras; ++i)
        if (!split(p->extras[i], '=', &path, &value) || !llm_body_set(body, path, value))
            return NULL;
    return body->failed ? NULL : cJSON_PrintUnformatted(body->root);
}

static int32_t perform(const struct llm_provider *p, struct rung_call *call,
                       const struct rung_http_request *request, struct rung_http_response *reply)
{
    struct rung_call timed = *call;
    const uint64_t end = p->host->now_ns(p->host) + (uint64_t)(p->timeout_s * 1e9);
    const bool ours = !call->deadline_ns || end < call->deadline_ns;
    if (ours)
        timed.deadline_ns = end;
    int32_t status = p->http->perform(p->host, &timed, request, reply);
    if (status == RUNG_ETIMEOUT && ours)
        status = call->error->code = RUNG_EUNAVAILABLE;
    return status;
}

int32_t llm_provider_post(const struct llm_provider *p, struct rung_call *call,
                          const struct llm_login *login, struct llm_body *body,
                          struct llm_wire *wire)
{
    static const uint64_t max_reply = 16 << 20;
    struct rung_http_header headers[MAX_HEADERS + 3];
    char *text = print_body(p, body);
    if (!text)
        return llm_fail(call->error, RUNG_ENOMEM, "llm.memory", "no memory for the request");
    const uint32_t wait_ms = (uint32_t)(p->timeout_s * 1e3);
    const struct rung_http_request request = {
        .struct_size = sizeof request,
        .flags = p->allow_plain ? (uint32_t)RUNG_HTTP_ALLOW_PLAIN : 0,
        .method = "POST",
        .url = p->endpoint,
        .headers = headers,
        .n_headers = fill_headers(p, login, headers),
        .first_byte_ms = wait_ms,
        .between_bytes_ms = wait_ms,
        .max_response_bytes = max_reply,
        .body = {text, strlen(text)},
    };
    struct rung_http_response reply = {.struct_size = sizeof reply};
    const int32_t status = perform(p, call, &request, &reply);
    free(text);
    if (status != RUNG_OK)
        return status;
    *wire = (struct llm_wire){.status = reply.status,
                              .body = {reply.body.ptr, reply.body.len},
                              .retry_after_ms = find(p, &reply, "retry-after-ms"),
                              .retry_after = find(p, &reply, "retry-after"),
                              .should_retry = find(p, &reply, "x-should-retry"),
                              .request_id = find(p, &reply, login->id_header),
                              .location = find(p, &reply, "location")};
    return RUNG_OK;
}
