/* From what a provider sent to a response; see reply.h. */
#include "reply.h"
#include <string.h>

enum { MAX_RAW = 256 << 10 }; /* bytes of a reply that are handed on as they came */

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

int32_t llm_failed_midway(struct rung_error *error, const struct llm_asker *asker, const char *word,
                          const char *what)
{
    char said[300] = "";
    if (what)
        llm_excerpt(said, sizeof said, (struct llm_span){what, strlen(what)});
    return llm_fail(error, RUNG_EUNAVAILABLE, "llm.overloaded",
                    "%s: the server failed midway ('%.40s')%s%s", asker->plugin, word,
                    said[0] ? ": " : "", said);
}

void llm_show_bytes(struct rung_error *error, struct llm_span bytes)
{
    char excerpt[512];
    const size_t used = strnlen(error->message, sizeof error->message - 1);
    llm_excerpt(excerpt, sizeof excerpt, bytes);
    struct llm_text all = {0};
    llm_text_add(&all, error->message, used);
    llm_text_printf(&all, "; it begins: %s", excerpt[0] ? excerpt : "(nothing)");
    if (!all.failed)
        llm_fail(error, error->code, "llm.reply", "%s", all.ptr);
    llm_text_free(&all);
}

/* ---- Whole replies and events ---- */

/* A prompt that was turned away costs nothing that the provider tells. */
static int32_t read_fault(const struct llm_wire *wire, const cJSON *json,
                          const struct llm_asker *asker, struct llm_reply *reply,
                          struct rung_error *error)
{
    struct llm_turned_away away = {0};
    const int32_t status = llm_fault_read(wire, json, asker, &away, error);
    if (status != RUNG_OK)
        return status;
    llm_reply_end(reply, away.finish, away.word);
    reply->finish = away.finish;
    reply->through = true;
    return RUNG_OK;
}

int32_t llm_reply_read(const struct llm_dialect *dialect, const struct llm_wire *wire,
                       const struct llm_asker *asker, struct llm_reply *reply,
                       struct rung_error *error)
{
    const char *why = NULL;
    int32_t status;
    cJSON *json = llm_json_parse(wire->body, &why);
    const bool good = wire->status >= 200 && wire->status < 300;
    if (!good || llm_is_fault(json)) {
        status = read_fault(wire, json, asker, reply, error);
    } else if (!cJSON_IsObject(json)) {
        status = llm_fail(error, RUNG_EIO, "llm.reply", "%s: the reply is no JSON object (%s)",
                          asker->plugin, why ? why : "another value");
        llm_show_bytes(error, wire->body);
    } else {
        status = dialect->read(json, asker, reply, error);
        if (status == RUNG_EIO)
            llm_show_bytes(error, wire->body);
        if (dialect->end)
            dialect->end(asker, reply);
        for (uint32_t i = 0; i < reply->n_pieces && status == RUNG_OK; ++i)
            if (reply->pieces[i].kind == RUNG_PART_TEXT)
                llm_reply_show(
                    reply, (struct llm_span){reply->pieces[i].text.ptr, reply->pieces[i].text.len});
    }
    cJSON_Delete(json);
    return status;
}

int32_t llm_reply_event(const struct llm_dialect *dialect, struct llm_span data, bool is_error,
                        const struct llm_asker *asker, struct llm_reply *reply,
                        struct rung_error *error)
{
    const char *why = NULL;
    int32_t status;
    data = llm_trim(data);
    if (data.len == 0)
        return RUNG_OK;
    if (llm_span_is(data, "[DONE]")) {
        reply->through = true;
        return RUNG_OK;
    }
    cJSON *json = llm_json_parse(data, &why);
    const cJSON *inner = llm_json_get(json, "response"); /* of a failed one */
    const struct llm_wire wire = {.status = 200, .body = data};
    if (is_error || llm_is_fault(json) || llm_json_get(inner, "error")) {
        status =
            read_fault(&wire, llm_json_get(inner, "error") ? inner : json, asker, reply, error);
    } else if (!cJSON_IsObject(json)) {
        status = llm_fail(error, RUNG_EIO, "llm.reply",
                          "%s: an event of the stream is no JSON object (%s)", asker->plugin,
                          why ? why : "another value");
        llm_show_bytes(error, data);
    } else {
        status = dialect->event(json, asker, reply, error);
        if (status == RUNG_EIO)
            llm_show_bytes(error, data);
    }
    cJSON_Delete(json);
    return status;
}

/* ---- What it comes to ---- */

int32_t llm_reply_settle(struct llm_reply *reply, const struct llm_asker *asker,
                         struct rung_error *error)
{
    const bool calls = llm_reply_has_calls(reply), blank = llm_reply_is_blank(reply);
    const bool thought = reply->reasoned || reply->usage.reasoning > 0;
    if (reply->failed)
        return llm_malformed(error, asker, "has too many parts, or there is no memory for them");
    if (!reply->ended && blank && !calls && !thought)
        return llm_malformed(error, asker, "has neither text nor a reason for its end");
    if (calls && reply->finish == RUNG_FINISH_STOP)
        reply->finish = RUNG_FINISH_TOOL_CALLS;
    if (thought && blank && !calls &&
        (reply->finish == RUNG_FINISH_LENGTH || reply->finish == RUNG_FINISH_STOP))
        reply->finish = RUNG_FINISH_REASONING;
    return RUNG_OK;
}

/* ---- The response ---- */

struct keeper {
    const struct rung_host *host;
    struct rung_call *call;
    bool failed;
};

/* Repaired copy in the arena. */
static struct rung_text keep(struct keeper *k, const char *bytes, size_t n)
{
    struct llm_text clean = {0};
    struct rung_text kept = {"", 0};
    llm_text_add_utf8(&clean, bytes, n);
    char *copy = clean.failed ? NULL : k->host->alloc(k->host, k->call->arena, clean.len + 1, 1);
    k->failed |= !copy;
    if (copy) {
        if (clean.len)
            memcpy(copy, clean.ptr, clean.len);
        kept = (struct rung_text){copy, clean.len};
    }
    llm_text_free(&clean);
    return kept;
}

/* A C string; NULL for an empty text. */
static const char *keep_name(struct keeper *k, const struct llm_text *text)
{
    k->failed |= text->failed;
    return text->len ? keep(k, text->ptr, text->len).ptr : NULL;
}

/* One text part at least, so that a reply without text is one of an empty text. */
static void fill_parts(struct keeper *k, const struct llm_reply *reply,
                       struct rung_llm_response *out)
{
    uint32_t n = 0;
    struct rung_part *parts =
        k->host->alloc(k->host, k->call->arena, (reply->n_pieces + 1) * sizeof *parts, 16);
    k->failed |= !parts;
    if (!parts)
        return;
    parts[0] =
        (struct rung_part){.struct_size = sizeof *parts, .kind = RUNG_PART_TEXT, .text = {"", 0}};
    for (uint32_t i = 0; i < reply->n_pieces; ++i) {
        const struct llm_piece *piece = &reply->pieces[i];
        k->failed |= piece->text.failed;
        if (piece->kind == RUNG_PART_TOOL_CALL && !piece->name.len)
            continue;
        parts[n++] = (struct rung_part){.struct_size = sizeof *parts,
                                        .kind = piece->kind,
                                        .text = keep(k, piece->text.ptr, piece->text.len),
                                        .id = keep_name(k, &piece->id),
                                        .name = keep_name(k, &piece->name)};
    }
    out->parts = parts;
    out->n_parts = n ? n : 1;
}

static void fill_usage(const struct llm_reply *reply, bool cut,
                       const struct rung_llm_request *request, struct rung_usage *u)
{
    const int64_t made = llm_reply_estimate(reply);
    *u = reply->usage;
    if (!cut && (u->input >= 0 || u->output >= 0))
        return;
    u->estimated = 1;
    if (u->input < 0)
        u->input = llm_estimate_prompt(request);
    if (u->output < made)
        u->output = made;
    const int64_t thought = (int64_t)(reply->reasoning_bytes + 3) / 4;
    if (u->reasoning < thought && thought)
        u->reasoning = thought;
}

static bool was_turned_away(const struct llm_reply *reply)
{
    return reply->n_pieces == 0 && reply->usage.input < 0 && reply->usage.output < 0 &&
           (reply->finish == RUNG_FINISH_CONTEXT || reply->finish == RUNG_FINISH_REFUSED);
}

int32_t llm_reply_fill(const struct llm_reply *reply, bool cut, const struct llm_wire *wire,
                       const struct llm_provider *provider, struct rung_call *call,
                       const struct rung_llm_request *request, struct rung_llm_response *out)
{
    struct keeper k = {provider->host, call, false};
    const struct llm_span header = llm_header(wire, provider->login.id_header);
    const size_t raw = wire->body.len < MAX_RAW ? wire->body.len : MAX_RAW;
    out->finish = reply->finish;
    out->cut = cut;
    fill_parts(&k, reply, out);
    if (was_turned_away(reply))
        out->usage = reply->usage;
    else
        fill_usage(reply, cut, request, &out->usage);
    out->model = keep_name(&k, &reply->model);
    if (!out->model)
        out->model = keep(&k, provider->name, strlen(provider->name)).ptr;
    out->request_id = header.len ? keep(&k, header.ptr, header.len < 256 ? header.len : 256).ptr
                                 : keep_name(&k, &reply->request_id);
    out->finish_word = keep_name(&k, &reply->finish_word);
    out->raw = keep(&k, wire->body.ptr, raw);
    if (!k.failed)
        return RUNG_OK;
    return llm_fail(call->error, RUNG_ENOMEM, "llm.memory", "no memory for the reply");
}
