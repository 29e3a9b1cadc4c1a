/* Asking each model of a pipeline something tiny; see llm_probe.h. */
#include "engine/llm_probe.h"
#include "base/die.h"
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "config/validate.h"
#include "engine/llm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEADLINE_S = 60, CAP = 64 };

/* ---- What is known without asking ---- */

static const char *setting(const struct rung_stage *stage, const char *name)
{
    const struct rung_node *n = stage->settings ? rung_node_get(stage->settings, name) : NULL;
    return n && n->type == RUNG_NODE_STRING ? n->s : NULL;
}

static void add_key(cJSON *json, const struct rung_stage *stage)
{
    const char *key = setting(stage, "key");
    if (!key || !*key) {
        cJSON_AddNullToObject(json, "key");
        return;
    }
    bool env = rung_starts_with(key, "env:");
    const char *where = strchr(key, ':') ? strchr(key, ':') + 1 : key;
    const char *value = env ? getenv(where) : NULL;
    cJSON *item = cJSON_AddObjectToObject(json, "key");
    cJSON_AddStringToObject(item, "from", key);
    cJSON_AddBoolToObject(item, "present", env ? value && *value : access(where, R_OK) == 0);
}

static void add_price(cJSON *json, const struct engine_llm *llm)
{
    const struct rung_price *p = &llm->price;
    if (!p->given) {
        cJSON_AddNullToObject(json, "price");
        return;
    }
    cJSON *price = cJSON_AddObjectToObject(json, "price");
    rung_json_add_f64(price, "input", p->input);
    rung_json_add_f64(price, "output", p->output);
    rung_json_add_f64(price, "cache_read", p->cache_read);
    rung_json_add_f64(price, "cache_write_5m", p->cache_write_5m);
    rung_json_add_f64(price, "cache_write_1h", p->cache_write_1h);
}

static cJSON *describe(const struct engine_llm *llm)
{
    const char *model = setting(llm->stage, "model");
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", llm->stage->name);
    cJSON_AddStringToObject(json, "plugin", llm->instance->factory->name);
    cJSON_AddStringToObject(json, "model", model ? model : "");
    cJSON_AddBoolToObject(json, "free", llm->free);
    add_key(json, llm->stage);
    add_price(json, llm);
    return json;
}

/* ---- Asking ---- */

struct clock {
    uint64_t begun, first;
};

static int32_t on_delta(void *ctx, struct rung_text delta)
{
    struct clock *c = ctx;
    if (!c->first && delta.len)
        c->first = rung_now_ns();
    return 0;
}

static void add_limit(cJSON *limits, const char *name, int64_t n)
{
    if (n >= 0)
        rung_json_add_i64(limits, name, n);
}

static void add_answer(cJSON *json, const struct rung_llm_response *r, const struct clock *clock,
                       uint64_t end)
{
    uint64_t first = r->first_token_ns ? r->first_token_ns
                     : clock->first    ? clock->first - clock->begun
                                       : 0;
    rung_json_add_f64(json, "seconds", (double)(end - clock->begun) * 1e-9);
    if (first)
        rung_json_add_f64(json, "first_token_s", (double)first * 1e-9);
    cJSON_AddStringToObject(json, "said_model", r->model ? r->model : "");
    cJSON_AddStringToObject(json, "finish", llm_finish_name(r->finish));
    cJSON *tokens = cJSON_AddObjectToObject(json, "tokens");
    add_limit(tokens, "input", r->usage.input);
    add_limit(tokens, "output", r->usage.output);
    add_limit(tokens, "reasoning", r->usage.reasoning);
    if (!r->limits.struct_size)
        return;
    cJSON *limits = cJSON_AddObjectToObject(json, "limits");
    add_limit(limits, "requests", r->limits.requests);
    add_limit(limits, "requests_left", r->limits.requests_left);
    add_limit(limits, "tokens", r->limits.tokens);
    add_limit(limits, "tokens_left", r->limits.tokens_left);
}

static void ask(struct engine *e, const struct engine_llm *llm, cJSON *json)
{
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        rung_die("out of memory");
    struct rung_error err = rung_error_init();
    struct clock clock = {.begun = rung_now_ns()};
    struct rung_message message =
        engine_message(arena, RUNG_MSG_USER, "Answer with the one word: ready");
    struct rung_llm_request request = {.struct_size = sizeof request,
                                       .n_messages = 1,
                                       .key = "doctor/0",
                                       .role = "code",
                                       .messages = &message,
                                       .max_output_tokens = CAP,
                                       .temperature = -1,
                                       .on_delta = on_delta,
                                       .on_delta_ctx = &clock};
    struct rung_llm_response out = {.struct_size = sizeof out};
    struct rung_call call = {.struct_size = sizeof call,
                             .arena = arena,
                             .cancel = e->cancel,
                             .deadline_ns = clock.begun + DEADLINE_S * UINT64_C(1000000000),
                             .error = &err};
    int32_t status;
    RUNG_INVOKE(status, llm->instance, struct rung_llm_ops, complete, &call, &request, &out);
    cJSON_AddBoolToObject(json, "answers", status == RUNG_OK);
    if (status == RUNG_OK) {
        add_answer(json, &out, &clock, rung_now_ns());
    } else {
        cJSON *error = cJSON_AddObjectToObject(json, "error");
        cJSON_AddStringToObject(error, "symbol", err.symbol);
        rung_json_add_text(error, "message", rung_text_of(err.message));
    }
    rung_arena_free(arena);
}

static void probe(struct engine *e, const struct engine_llm *llm, cJSON *list)
{
    cJSON *json = describe(llm);
    struct rung_error err = rung_error_init();
    cJSON_AddItemToArray(list, json);
    if (llm->free) {
        cJSON_AddBoolToObject(json, "answers", true);
    } else if (rung_instance_start(llm->instance, &err)) {
        cJSON_AddBoolToObject(json, "answers", false);
        cJSON *error = cJSON_AddObjectToObject(json, "error");
        cJSON_AddStringToObject(error, "symbol", err.symbol);
        rung_json_add_text(error, "message", rung_text_of(err.message));
    } else {
        ask(e, llm, json);
    }
}

/* ---- The pipeline ---- */

static int32_t read_pipeline(struct engine *e, const struct rung_probe_options *o,
                             struct rung_diags *diags)
{
    e->pipeline_node =
        rung_config_pipeline(e->arena, o->pipeline, e->data_dir, o->sets, o->n_sets, diags);
    e->pipeline = e->pipeline_node ? rung_pipeline_read(e->arena, e->pipeline_node, diags) : NULL;
    if (!e->pipeline)
        return RUNG_ECONFIG;
    if (!e->pipeline->n_llms)
        rung_diag(diags, e->pipeline->file, 0, "names no llm");
    rung_pipeline_add_path(e->pipeline, e->registry);
    if (o->insecure_plugins)
        rung_registry_allow_insecure(e->registry);
    e->llms = RUNG_ARENA_NEW(e->arena, struct engine_llm, e->pipeline->n_llms);
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        e->llms[i] = (struct engine_llm){
            .stage = &e->pipeline->llms[i],
            .instance = engine_make_instance(e, RUNG_KIND_LLM, &e->pipeline->llms[i], diags)};
    return diags->n ? RUNG_ECONFIG : RUNG_OK;
}

static int32_t probe_all(struct engine *e, const struct rung_probe_options *o, cJSON *list,
                         struct rung_error *err)
{
    struct rung_diags diags = {0};
    int32_t status = read_pipeline(e, o, &diags);
    if (status) {
        fputs(rung_buf_text(&diags.text), stderr);
        rung_fail(err, RUNG_ECONFIG, "config", "%zu faults in the configuration", diags.n);
    }
    rung_diags_free(&diags);
    if (!status)
        status = engine_llms_open(e, err);
    for (uint32_t i = 0; !status && i < e->pipeline->n_llms; i++)
        probe(e, &e->llms[i], list);
    return status;
}

int32_t rung_probe_llms(const struct rung_probe_options *options, cJSON **out,
                        struct rung_error *err)
{
    struct engine e = {.arena = rung_arena_new(),
                       .registry = rung_registry_new(),
                       .data_dir = rung_data_dir(),
                       .cancel = rung_cancel_new()};
    if (!e.arena)
        rung_die("out of memory");
    cJSON *list = cJSON_CreateArray();
    int32_t status = probe_all(&e, options, list, err);
    if (e.pipeline)
        engine_llms_close(&e);
    for (uint32_t i = 0; e.llms && i < e.pipeline->n_llms; i++)
        rung_instance_free(e.llms[i].instance);
    rung_cancel_free(e.cancel);
    rung_registry_free(e.registry);
    rung_arena_free(e.arena);
    *out = list;
    return status;
}
