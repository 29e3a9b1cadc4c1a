/*
 * A model that does what a script says: for tests of the engine's outcomes. The script is a JSON
 * object of lists of steps, found by the request's key, else its role, else "*"; the last step of a
 * list repeats. A step:
 *
 *   {"text":"..", "finish":"stop", "calls":[{"id","name","arguments"}], "opaque":"..",
 *    "usage":{"input":1,"output":2}, "delay_ms":5, "limits":{"requests_left":0,"reset_ms":50}}
 *   {"error":"llm.rate", "code":9, "after_ms":20, "cut":true, "text":"what had come"}
 *
 * Every request is appended to the log as one JSON line.
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <pthread.h>
#include <rung/llm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct script {
    const struct rung_host *host;
    pthread_mutex_t lock;
    cJSON *steps, *used; /* used: list name -> steps taken */
    char *as;
    int log;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *text_of(const cJSON *json, const char *name, const char *fallback)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    return cJSON_IsString(item) ? item->valuestring : fallback;
}

static double number_of(const cJSON *json, const char *name, double fallback)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

static const cJSON *next_step(struct script *s, const struct rung_llm_request *r)
{
    const char *names[] = {r->key, r->role, "*"};
    const cJSON *step = NULL;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < 3 && !step; i++) {
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(s->steps, names[i]);
        int n = cJSON_GetArraySize(list), at = (int)number_of(s->used, names[i], 0);
        if (n == 0)
            continue;
        step = cJSON_GetArrayItem(list, at < n ? at : n - 1);
        cJSON_DeleteItemFromObjectCaseSensitive(s->used, names[i]);
        cJSON_AddNumberToObject(s->used, names[i], at + 1);
    }
    pthread_mutex_unlock(&s->lock);
    return step;
}

static cJSON *message_json(const struct rung_message *m)
{
    cJSON *json = cJSON_CreateObject(), *parts = cJSON_AddArrayToObject(json, "parts");
    cJSON_AddNumberToObject(json, "role", m->role);
    for (uint32_t i = 0; i < m->n_parts; i++) {
        cJSON *part = cJSON_CreateObject();
        char *copy =
            strndup(m->parts[i].text.ptr ? m->parts[i].text.ptr : "", m->parts[i].text.len);
        cJSON_AddNumberToObject(part, "kind", m->parts[i].kind);
        cJSON_AddStringToObject(part, "text", copy);
        cJSON_AddNumberToObject(part, "mark", m->parts[i].cache_mark);
        if (m->parts[i].id)
            cJSON_AddStringToObject(part, "id", m->parts[i].id);
        cJSON_AddItemToArray(parts, part);
        free(copy);
    }
    return json;
}

static void write_log(struct script *s, const struct rung_llm_request *r, double begun)
{
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "messages");
    cJSON *tools = cJSON_AddArrayToObject(json, "tools");
    cJSON_AddStringToObject(json, "as", s->as);
    cJSON_AddStringToObject(json, "key", r->key);
    cJSON_AddNumberToObject(json, "begun", begun);
    cJSON_AddNumberToObject(json, "ended", now_s());
    cJSON_AddNumberToObject(json, "cap", r->max_output_tokens);
    cJSON_AddNumberToObject(json, "effort", r->effort);
    for (uint32_t i = 0; i < r->n_tools; i++)
        cJSON_AddItemToArray(tools, cJSON_CreateString(r->tools[i].name));
    for (uint32_t i = 0; i < r->n_messages; i++)
        cJSON_AddItemToArray(list, message_json(&r->messages[i]));
    char *line = cJSON_PrintUnformatted(json);
    if (s->log >= 0)
        dprintf(s->log, "%s\n", line);
    free(line);
    cJSON_Delete(json);
}

static uint32_t finish_of(const char *name)
{
    static const char *const names[] = {"",        "stop",      "length", "tool_calls",
                                        "refused", "reasoning", "context"};
    for (uint32_t i = 1; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return RUNG_FINISH_STOP;
}

static const char *copy(struct script *s, struct rung_call *call, const char *text)
{
    char *out = s->host->alloc(s->host, call->arena, strlen(text) + 1, 1);
    return strcpy(out, text);
}

static void add_part(struct script *s, struct rung_call *call, struct rung_llm_response *out,
                     uint32_t kind, const char *text, const char *id, const char *name)
{
    struct rung_part *parts = (struct rung_part *)(uintptr_t)out->parts;
    const char *own = copy(s, call, text);
    parts[out->n_parts++] = (struct rung_part){.struct_size = sizeof *parts,
                                               .kind = kind,
                                               .text = {own, strlen(own)},
                                               .id = id ? copy(s, call, id) : NULL,
                                               .name = name ? copy(s, call, name) : NULL};
}

static void add_parts(struct script *s, struct rung_call *call, const cJSON *step,
                      struct rung_llm_response *out)
{
    const cJSON *calls = cJSON_GetObjectItemCaseSensitive(step, "calls"), *c;
    const char *text = text_of(step, "text", NULL), *opaque = text_of(step, "opaque", NULL);
    size_t n = (size_t)cJSON_GetArraySize(calls) + 2;
    out->parts = s->host->alloc(s->host, call->arena, n * sizeof *out->parts, 8);
    if (opaque)
        add_part(s, call, out, RUNG_PART_OPAQUE, opaque, NULL, NULL);
    if (text)
        add_part(s, call, out, RUNG_PART_TEXT, text, NULL, NULL);
    cJSON_ArrayForEach(c, calls)
        add_part(s, call, out, RUNG_PART_TOOL_CALL, text_of(c, "arguments", ""),
                 text_of(c, "id", "1"), text_of(c, "name", ""));
}

static void add_usage(const cJSON *step, struct rung_llm_response *out)
{
    const cJSON *u = cJSON_GetObjectItemCaseSensitive(step, "usage");
    out->usage = (struct rung_usage){.struct_size = sizeof out->usage,
                                     .estimated = number_of(u, "estimated", 0) != 0,
                                     .input = (int64_t)number_of(u, "input", -1),
                                     .cache_read = (int64_t)number_of(u, "cache_read", -1),
                                     .cache_write_5m = (int64_t)number_of(u, "cache_write_5m", -1),
                                     .cache_write_1h = (int64_t)number_of(u, "cache_write_1h", -1),
                                     .output = (int64_t)number_of(u, "output", -1),
                                     .reasoning = (int64_t)number_of(u, "reasoning", -1)};
    const cJSON *l = cJSON_GetObjectItemCaseSensitive(step, "limits");
    if (l)
        out->limits = (struct rung_rate_limit){sizeof out->limits,
                                               0,
                                               -1,
                                               (int64_t)number_of(l, "requests_left", -1),
                                               (int64_t)number_of(l, "reset_ms", -1),
                                               -1,
                                               (int64_t)number_of(l, "tokens_left", -1),
                                               (int64_t)number_of(l, "reset_ms", -1)};
}

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *r,
                        struct rung_llm_response *out)
{
    struct script *s = self;
    const cJSON *step = next_step(s, r);
    double begun = now_s();
    *out = (struct rung_llm_response){.struct_size = sizeof *out, .tries = 1};
    usleep((useconds_t)(number_of(step, "delay_ms", 0) * 1000));
    write_log(s, r, begun);
    add_parts(s, call, step, out);
    add_usage(step, out);
    out->finish = finish_of(text_of(step, "finish", "stop"));
    out->model = "script-1";
    out->cut = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(step, "cut"));
    const char *symbol = step ? text_of(step, "error", NULL) : "llm.request";
    if (!symbol)
        return RUNG_OK;
    call->error->code = (int32_t)number_of(step, "code", RUNG_ECONFIG);
    call->error->retry_after_ms = (uint32_t)number_of(step, "after_ms", 0);
    snprintf(call->error->symbol, sizeof call->error->symbol, "%s", symbol);
    snprintf(call->error->message, sizeof call->error->message, "%s says %s", s->as, symbol);
    return call->error->code;
}

static cJSON *read_json(const char *path)
{
    char *text = calloc(1, 8 << 20);
    FILE *file = fopen(path, "r");
    cJSON *json = NULL;
    if (file && text && fread(text, 1, (8 << 20) - 1, file) > 0)
        json = cJSON_Parse(text);
    if (file)
        fclose(file);
    free(text);
    return json;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *error, void **self)
{
    struct script *s = calloc(1, sizeof *s);
    s->host = host;
    s->steps = read_json(host->opt_string(host, options, "script"));
    s->used = cJSON_CreateObject();
    s->as = strdup(host->opt_string(host, options, "as"));
    s->log = open(host->opt_string(host, options, "log"), O_WRONLY | O_CREAT | O_APPEND, 0644);
    pthread_mutex_init(&s->lock, NULL);
    *self = s;
    if (s->steps)
        return RUNG_OK;
    error->code = RUNG_ECONFIG;
    snprintf(error->message, sizeof error->message, "the script can't be read");
    return RUNG_ECONFIG;
}

static void destroy(void *self)
{
    struct script *s = self;
    cJSON_Delete(s->steps);
    cJSON_Delete(s->used);
    free(s->as);
    if (s->log >= 0)
        close(s->log);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static const struct rung_option opt_script = {.struct_size = sizeof opt_script,
                                              .type = RUNG_OPT_PATH,
                                              .flags = RUNG_OPT_REQUIRED,
                                              .name = "script",
                                              .summary = "file"};
static const struct rung_option opt_log = {
    .struct_size = sizeof opt_log, .type = RUNG_OPT_PATH, .name = "log", .summary = "file"};
static const struct rung_option opt_as = {.struct_size = sizeof opt_as,
                                          .type = RUNG_OPT_STRING,
                                          .name = "as",
                                          .default_text = "script",
                                          .summary = "name in the log"};
static const struct rung_option opt_cap = {.struct_size = sizeof opt_cap,
                                           .type = RUNG_OPT_INT,
                                           .name = "max_output_tokens",
                                           .default_text = "0",
                                           .max = 1000000,
                                           .summary = "cap"};
static const struct rung_option *const options[] = {&opt_script, &opt_log, &opt_as, &opt_cap, NULL};
static const struct rung_llm_ops ops = {.struct_size = sizeof ops, .complete = complete};
static const struct rung_factory factory = {.struct_size = sizeof factory,
                                            .thread_model = RUNG_PARALLEL,
                                            .kind = RUNG_KIND_LLM,
                                            .name = "script",
                                            .summary = "for tests",
                                            .options = options,
                                            .ops = &ops,
                                            .create = create,
                                            .destroy = destroy};
static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "test.engine.script",
                                          .version = "1",
                                          .vendor = "test",
                                          .licence = "MIT",
                                          .factories = factories};
RUNG_PLUGIN_ENTRY(uint32_t major, uint32_t draft)
{
    return major == RUNG_ABI_MAJOR && draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
