/* Tool calls and echoes of Chat Completions; see calls.h. */
#include "calls.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HELD = 4096 }; /* items of a list of reasoning details */

/* ---- Calls ---- */

static bool is_complete(const struct llm_piece *call)
{
    const char *why;
    cJSON *json = llm_json_parse((struct llm_span){call->text.ptr, call->text.len}, &why);
    const bool complete = cJSON_IsObject(json);
    cJSON_Delete(json);
    return complete;
}

static bool same(const struct llm_text *text, const char *value)
{
    return text->len == strlen(value) && (!text->len || memcmp(text->ptr, value, text->len) == 0);
}

static struct llm_piece *by_id(struct llm_reply *reply, const char *id)
{
    for (uint32_t i = reply->n_pieces; i-- > 0;)
        if (reply->pieces[i].kind == RUNG_PART_TOOL_CALL && same(&reply->pieces[i].id, id))
            return &reply->pieces[i];
    return NULL;
}

/* Call number n of the reply; the last one when the list holds one piece only. */
static struct llm_piece *by_position(struct llm_reply *reply, int n, bool alone)
{
    struct llm_piece *found = NULL;
    for (uint32_t i = 0; i < reply->n_pieces; ++i)
        if (reply->pieces[i].kind == RUNG_PART_TOOL_CALL && (alone || n-- == 0)) {
            found = &reply->pieces[i];
            if (!alone)
                break;
        }
    return found;
}

/* The call that a piece goes on with; NULL: a new one begins. */
static struct llm_piece *call_of(struct llm_reply *reply, int64_t index, const char *id,
                                 const char *name, int position, bool alone)
{
    struct llm_piece *call = NULL;
    if (index >= 0)
        call = llm_reply_find(reply, RUNG_PART_TOOL_CALL, index);
    else if (id[0])
        return by_id(reply, id);
    else
        call = by_position(reply, position, alone);
    if (!call)
        return NULL;
    /* A second name is another call's, if the first one is whole or has another id. */
    const bool other_id = id[0] && call->id.len && !same(&call->id, id);
    if (name[0] && call->name.len && (other_id || (!id[0] && is_complete(call))))
        return NULL;
    return call;
}

static void add_arguments(struct llm_piece *call, const cJSON *arguments)
{
    if (cJSON_IsString(arguments)) {
        llm_text_puts(&call->text, arguments->valuestring);
    } else if (cJSON_IsObject(arguments)) { /* not as a text, by some servers */
        char *printed = cJSON_PrintUnformatted(arguments);
        llm_text_puts(&call->text, printed ? printed : "");
        free(printed);
    }
}

static void add_piece(struct llm_reply *reply, const cJSON *piece, int position, bool alone)
{
    const cJSON *function = llm_json_get(piece, "function");
    const char *id = llm_json_text(piece, "id"), *name = llm_json_text(function, "name");
    const int64_t index = llm_json_count(piece, "index");
    struct llm_piece *call = call_of(reply, index, id ? id : "", name ? name : "", position, alone);
    if (!cJSON_IsObject(function))
        return;
    if (!call)
        call = llm_reply_add(reply, RUNG_PART_TOOL_CALL, index);
    if (!call)
        return;
    if (!call->id.len)
        llm_reply_note(&call->id, id);
    if (!call->name.len)
        llm_reply_note(&call->name, name);
    add_arguments(call, llm_json_get(function, "arguments"));
}

void openai_add_calls(struct llm_reply *reply, const cJSON *calls)
{
    int position = 0;
    if (!cJSON_IsArray(calls) || !calls->child)
        return;
    const bool alone = !calls->child->next;
    for (const cJSON *piece = calls->child; piece; piece = piece->next)
        add_piece(reply, piece, position++, alone);
}

void openai_add_function(struct llm_reply *reply, const cJSON *function)
{
    const char *name = llm_json_text(function, "name");
    if (!cJSON_IsObject(function))
        return;
    struct llm_piece *call = by_position(reply, 0, true);
    if (!call)
        call = llm_reply_add(reply, RUNG_PART_TOOL_CALL, -1);
    if (!call)
        return;
    if (!call->name.len)
        llm_reply_note(&call->name, name);
    add_arguments(call, llm_json_get(function, "arguments"));
}

void openai_name_calls(struct llm_reply *reply)
{
    char id[32];
    for (uint32_t i = 0; i < reply->n_pieces; ++i) {
        struct llm_piece *piece = &reply->pieces[i];
        if (piece->kind != RUNG_PART_TOOL_CALL)
            continue;
        snprintf(id, sizeof id, "call_%u", i);
        if (!piece->id.len)
            llm_reply_note(&piece->id, id);
        if (!piece->text.len)
            llm_text_puts(&piece->text, "{}"); /* a tool without arguments */
    }
}

/* ---- Reasoning that goes back ---- */

static bool same_number(const cJSON *a, const cJSON *b, const char *name)
{
    return llm_json_count(a, name) == llm_json_count(b, name);
}

/* A detail that goes on with the last one: its texts are joined, other members are set. */
static bool join_detail(cJSON *last, const cJSON *piece)
{
    const char *a = llm_json_text(last, "type"), *b = llm_json_text(piece, "type");
    if (!a || !b || strcmp(a, b) != 0 || !same_number(last, piece, "index"))
        return false;
    for (const cJSON *item = piece->child; item; item = item->next) {
        cJSON *old = cJSON_GetObjectItemCaseSensitive(last, item->string);
        const bool grows = strcmp(item->string, "text") == 0 ||
                           strcmp(item->string, "summary") == 0 ||
                           strcmp(item->string, "data") == 0;
        if (old && grows && cJSON_IsString(old) && cJSON_IsString(item)) {
            struct llm_text all = {0};
            llm_text_puts(&all, old->valuestring);
            llm_text_puts(&all, item->valuestring);
            if (all.ptr && !all.failed)
                cJSON_SetValuestring(old, all.ptr);
            llm_text_free(&all);
        } else if (!old || cJSON_IsNull(old)) {
            cJSON_DeleteItemFromObjectCaseSensitive(last, item->string);
            cJSON_AddItemToObject(last, item->string, cJSON_Duplicate(item, true));
        }
    }
    return true;
}

static void hold_list(struct llm_reply *reply, const cJSON *list)
{
    if (!reply->held)
        reply->held = cJSON_CreateArray();
    for (const cJSON *item = list->child; item && reply->held; item = item->next) {
        const int n = cJSON_GetArraySize(reply->held);
        cJSON *last = n ? cJSON_GetArrayItem(reply->held, n - 1) : NULL;
        if (!cJSON_IsObject(item) || n >= MAX_HELD || (last && join_detail(last, item)))
            continue;
        cJSON_AddItemToArray(reply->held, cJSON_Duplicate(item, true));
    }
}

void openai_hold(struct llm_reply *reply, const cJSON *piece)
{
    if (cJSON_IsArray(piece) && (!reply->held || cJSON_IsArray(reply->held))) {
        hold_list(reply, piece);
    } else if (cJSON_IsString(piece) && (!reply->held || cJSON_IsString(reply->held))) {
        struct llm_text all = {0};
        llm_text_puts(&all, reply->held ? reply->held->valuestring : "");
        llm_text_puts(&all, piece->valuestring);
        cJSON_Delete(reply->held);
        reply->held = cJSON_CreateString(all.ptr && !all.failed ? all.ptr : "");
        llm_text_free(&all);
    }
}

void openai_release(struct llm_reply *reply, const char *provider, const char *field)
{
    cJSON *echo = reply->held && llm_reply_has_calls(reply) ? cJSON_CreateObject() : NULL;
    if (echo && cJSON_AddItemToObject(echo, field, reply->held)) {
        reply->held = NULL;
        llm_reply_echo(reply, provider, echo);
    }
    cJSON_Delete(echo);
}
