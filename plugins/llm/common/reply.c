/* From the bytes that a provider sent to a response; see reply.h. */
#include "reply.h"
#include <string.h>

enum { MAX_RAW = 256 << 10 }; /* bytes of a reply that are handed on as they came */

static const struct rung_usage no_usage = {.struct_size = sizeof no_usage,
                                           .estimated = 1,
                                           .input = -1,
                                           .cache_read = -1,
                                           .cache_write_5m = -1,
                                           .cache_write_1h = -1,
                                           .output = -1,
                                           .reasoning = -1};

int64_t llm_tokens_less(int64_t count, int64_t part)
{
    if (count < 0 || part <= 0)
        return count;
    return count > part ? count - part : 0;
}

int32_t llm_malformed(struct rung_error *error, const struct llm_asker *asker, const char *what)
{
    return llm_fail(error, RUNG_EIO, "llm.reply", "%s: the reply %s", asker->plugin, what);
}

static bool is_blank(const struct llm_text *text)
{
    return llm_trim((struct llm_span){text->ptr, text->len}).len == 0;
}

/* Repaired copy in the arena; {NULL, 0} without memory. */
static struct rung_text keep(const struct rung_host *host, struct rung_call *call,
                             struct llm_span bytes)
{
    struct llm_text clean = {0};
    struct rung_text kept = {0};
    llm_text_add_utf8(&clean, bytes.ptr, bytes.len);
    char *copy = clean.failed ? NULL : host->alloc(host, call->arena, clean.len + 1, 1);
    if (copy) {
        if (clean.len)
            memcpy(copy, clean.ptr, clean.len);
        kept = (struct rung_text){copy, clean.len};
    }
    llm_text_free(&clean);
    return kept;
}

/* The id for the provider's support: the reply's header, else what stands in its body. */
static struct llm_span id_of(const struct llm_wire *wire, const struct llm_reply *reply)
{
    if (wire->request_id.len || !reply->request_id)
        return wire->request_id;
    return (struct llm_span){reply->request_id, strlen(reply->request_id)};
}

static int32_t answer(const struct llm_reply *reply, const struct llm_wire *wire,
                      const struct llm_asker *asker, const struct rung_host *host,
                      struct rung_call *call, const struct rung_llm_request *request,
                      struct rung_llm_response *out)
{
    struct llm_text text = {0};
    const char *model = reply->model ? reply->model : asker->model;
    const struct llm_span id = id_of(wire, reply);
    const struct rung_text name = keep(host, call, (struct llm_span){model, strnlen(model, 256)}),
                           mark = keep(host, call,
                                       (struct llm_span){id.ptr, id.len < 256 ? id.len : 256}),
                           raw = keep(host, call,
                                      (struct llm_span){wire->body.ptr, wire->body.len < MAX_RAW
                                                                            ? wire->body.len
                                                                            : MAX_RAW});
    llm_text_add_utf8(&text, reply->text.ptr, reply->text.len);
    int32_t status = RUNG_ENOMEM;
    if (text.failed || reply->text.failed || !name.ptr || !mark.ptr || !raw.ptr)
        llm_fail(call->error, status, "llm.memory", "no memory for the reply");
    else
        status = llm_answer(host, call, request, text.ptr ? text.ptr : "", text.len, reply->finish,
                            name.ptr, out);
    llm_text_free(&text);
    if (status != RUNG_OK)
        return status;
    out->raw = raw;
    out->request_id = mark.len ? mark.ptr : NULL;
    if (reply->usage.input >= 0 || reply->usage.output >= 0)
        out->usage = reply->usage;
    return RUNG_OK;
}

/* The answer to a prompt that was turned away costs nothing that the provider tells. */
static int32_t answer_turned_away(uint32_t finish, const struct llm_wire *wire,
                                  const struct llm_asker *asker, const struct rung_host *host,
                                  struct rung_call *call, const struct rung_llm_request *request,
                                  struct rung_llm_response *out)
{
    const struct llm_reply reply = {.finish = finish, .usage = no_usage};
    const int32_t status = answer(&reply, wire, asker, host, call, request, out);
    if (status == RUNG_OK)
        out->usage = no_usage;
    return status;
}

/* Adds the first bytes of the reply to an error about it. */
static int32_t show_bytes(struct rung_error *error, int32_t status, const struct llm_wire *wire)
{
    char excerpt[512];
    const size_t used = strnlen(error->message, sizeof error->message - 1);
    llm_excerpt(excerpt, sizeof excerpt, wire->body);
    struct llm_text all = {0};
    llm_text_add(&all, error->message, used);
    llm_text_printf(&all, "; it begins: %s", excerpt[0] ? excerpt : "(nothing)");
    if (!all.failed)
        llm_fail(error, status, "llm.reply", "%s", all.ptr);
    llm_text_free(&all);
    return status;
}

/* What a reply without text means: the tokens went into reasoning. */
static void settle_finish(struct llm_reply *reply)
{
    const bool thought = reply->reasoned || reply->usage.reasoning > 0;
    if (thought && is_blank(&reply->text) &&
        (reply->finish == RUNG_FINISH_LENGTH || reply->finish == RUNG_FINISH_STOP))
        reply->finish = RUNG_FINISH_REASONING;
}

int32_t llm_reply_read(const struct llm_dialect *dialect, const struct llm_wire *wire,
                       const struct llm_asker *asker, const struct rung_host *host,
                       struct rung_call *call, const struct rung_llm_request *request,
                       struct rung_llm_response *out)
{
    const char *why = NULL;
    int32_t status;
    uint32_t finish = 0;
    struct llm_reply reply = {.finish = RUNG_FINISH_STOP, .usage = no_usage};
    cJSON *json = llm_json_parse(wire->body, &why);
    const bool good = wire->status >= 200 && wire->status < 300;
    if (!good || llm_is_fault(json)) {
        status = llm_fault_read(wire, json, asker, &finish, call->error);
        if (status == RUNG_OK)
            status = answer_turned_away(finish, wire, asker, host, call, request, out);
    } else if (!cJSON_IsObject(json)) {
        status =
            llm_fail(call->error, RUNG_EIO, "llm.reply", "%s: the reply is no JSON object (%s)",
                     asker->plugin, why ? why : "another value");
        show_bytes(call->error, status, wire);
    } else {
        status = dialect->read(json, asker, &reply, call->error);
        settle_finish(&reply);
        if (status == RUNG_OK)
            status = answer(&reply, wire, asker, host, call, request, out);
        else if (status == RUNG_EIO)
            show_bytes(call->error, status, wire);
    }
    llm_text_free(&reply.text);
    cJSON_Delete(json);
    return status;
}
