/* A reply as it grows; see parts.h. */
#include "parts.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_PIECES = 512, MAX_NOTE = 256 };

enum thought { UNKNOWN = 0, THINKING, AFTER, ANSWER };

static const char think_open[] = "<think>", think_close[] = "</think>";

struct rung_usage llm_no_usage(void)
{
    return (struct rung_usage){.struct_size = sizeof(struct rung_usage),
                               .estimated = 1,
                               .input = -1,
                               .cache_read = -1,
                               .cache_write_5m = -1,
                               .cache_write_1h = -1,
                               .output = -1,
                               .reasoning = -1};
}

void llm_reply_init(struct llm_reply *reply, const struct rung_llm_request *request)
{
    *reply = (struct llm_reply){.finish = RUNG_FINISH_STOP,
                                .on_delta = request->on_delta,
                                .on_delta_ctx = request->on_delta_ctx,
                                .usage = llm_no_usage()};
}

void llm_reply_free(struct llm_reply *reply)
{
    for (uint32_t i = 0; i < reply->n_pieces; ++i) {
        llm_text_free(&reply->pieces[i].text);
        llm_text_free(&reply->pieces[i].id);
        llm_text_free(&reply->pieces[i].name);
    }
    free(reply->pieces);
    cJSON_Delete(reply->held);
    llm_text_free(&reply->finish_word);
    llm_text_free(&reply->model);
    llm_text_free(&reply->request_id);
    *reply = (struct llm_reply){0};
}

struct llm_piece *llm_reply_add(struct llm_reply *reply, uint32_t kind, int64_t index)
{
    if (reply->n_pieces == reply->cap && !reply->failed) {
        const uint32_t cap = reply->cap ? reply->cap * 2 : 8;
        struct llm_piece *grown =
            cap > MAX_PIECES ? NULL : realloc(reply->pieces, cap * sizeof *grown);
        reply->failed = !grown;
        if (grown) {
            reply->pieces = grown;
            reply->cap = cap;
        }
    }
    if (reply->failed)
        return NULL;
    struct llm_piece *piece = &reply->pieces[reply->n_pieces++];
    *piece = (struct llm_piece){.kind = kind, .index = index};
    reply->began = true;
    return piece;
}

struct llm_piece *llm_reply_find(struct llm_reply *reply, uint32_t kind, int64_t index)
{
    for (uint32_t i = reply->n_pieces; i-- > 0;)
        if (reply->pieces[i].kind == kind && reply->pieces[i].index == index)
            return &reply->pieces[i];
    return NULL;
}

void llm_reply_show(struct llm_reply *reply, struct llm_span text)
{
    struct llm_text clean = {0};
    if (!reply->on_delta || !text.len || reply->stopped)
        return;
    llm_text_add_utf8(&clean, text.ptr, text.len);
    if (clean.len && reply->on_delta(reply->on_delta_ctx, (struct rung_text){clean.ptr, clean.len}))
        reply->stopped = true;
    llm_text_free(&clean);
}

struct llm_piece *llm_reply_quiet_text(struct llm_reply *reply, const char *text)
{
    struct llm_piece *last = reply->n_pieces ? &reply->pieces[reply->n_pieces - 1] : NULL;
    if (!last || last->kind != RUNG_PART_TEXT || last->closed)
        last = llm_reply_add(reply, RUNG_PART_TEXT, -1);
    if (last)
        llm_text_puts(&last->text, text);
    return last;
}

void llm_reply_text(struct llm_reply *reply, const char *text)
{
    if (!text[0])
        return;
    llm_reply_quiet_text(reply, text);
    llm_reply_show(reply, (struct llm_span){text, strlen(text)});
}

void llm_reply_reasoning(struct llm_reply *reply, const char *text)
{
    reply->reasoned = reply->began = true;
    reply->reasoning_bytes += text ? strlen(text) : 0;
}

static void add_value(struct llm_text *text, const cJSON *value)
{
    char *printed = cJSON_PrintUnformatted(value);
    if (printed)
        llm_text_puts(text, printed);
    else
        text->failed = true;
    free(printed);
}

void llm_reply_call(struct llm_reply *reply, const char *id, const char *name,
                    const cJSON *arguments)
{
    struct llm_piece *call = llm_reply_add(reply, RUNG_PART_TOOL_CALL, -1);
    if (!call)
        return;
    llm_reply_note(&call->id, id);
    llm_reply_note(&call->name, name);
    if (cJSON_IsString(arguments))
        llm_text_puts(&call->text, arguments->valuestring);
    else if (arguments)
        add_value(&call->text, arguments);
    call->closed = true;
}

void llm_reply_echo(struct llm_reply *reply, const char *plugin, const cJSON *value)
{
    struct llm_piece *echo = llm_reply_add(reply, RUNG_PART_OPAQUE, -1);
    if (!echo)
        return;
    llm_reply_note(&echo->name, plugin);
    add_value(&echo->text, value);
}

void llm_reply_end(struct llm_reply *reply, uint32_t finish, const char *word)
{
    if (!reply->ended)
        reply->finish = finish;
    if (!reply->ended)
        llm_reply_note(&reply->finish_word, word);
    reply->ended = true;
}

void llm_reply_note(struct llm_text *text, const char *value)
{
    if (!value || !value[0])
        return;
    llm_text_free(text);
    llm_text_add(text, value, strnlen(value, MAX_NOTE));
}

int64_t llm_reply_estimate(const struct llm_reply *reply)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < reply->n_pieces; ++i)
        if (reply->pieces[i].kind != RUNG_PART_OPAQUE)
            n += llm_estimate(
                (struct llm_span){reply->pieces[i].text.ptr, reply->pieces[i].text.len});
    return n;
}

bool llm_reply_is_blank(const struct llm_reply *reply)
{
    for (uint32_t i = 0; i < reply->n_pieces; ++i) {
        const struct llm_text *text = &reply->pieces[i].text;
        if (reply->pieces[i].kind == RUNG_PART_TEXT &&
            llm_trim((struct llm_span){text->ptr, text->len}).len)
            return false;
    }
    return true;
}

bool llm_reply_has_calls(const struct llm_reply *reply)
{
    for (uint32_t i = 0; i < reply->n_pieces; ++i)
        if (reply->pieces[i].kind == RUNG_PART_TOOL_CALL && reply->pieces[i].name.len)
            return true;
    return false;
}

/* ---- Thoughts ---- */

static struct llm_text *first_text(struct llm_reply *reply)
{
    for (uint32_t i = 0; i < reply->n_pieces; ++i)
        if (reply->pieces[i].kind == RUNG_PART_TEXT && reply->pieces[i].text.ptr)
            return &reply->pieces[i].text;
    return NULL;
}

/* What the begin of the text is, as far as it can be told; moves `shown` past thoughts. */
static void look_for_thoughts(struct llm_reply *reply, const struct llm_text *text)
{
    const size_t blank = strspn(text->ptr, " \t\r\n"), rest = text->len - blank;
    if (reply->thought == UNKNOWN) {
        const size_t n = rest < sizeof think_open - 1 ? rest : sizeof think_open - 1;
        if (strncmp(text->ptr + blank, think_open, n) != 0)
            reply->thought = ANSWER;
        else if (n == sizeof think_open - 1)
            reply->thought = THINKING;
    }
    if (reply->thought == THINKING) {
        const size_t back = sizeof think_close;
        const char *end =
            strstr(text->ptr + (reply->shown > back ? reply->shown - back : 0), think_close);
        reply->shown = end ? (size_t)(end - text->ptr) + sizeof think_close - 1 : text->len;
        reply->thought = end ? AFTER : THINKING;
    }
    if (reply->thought == AFTER) {
        reply->shown += strspn(text->ptr + reply->shown, " \t\r\n");
        reply->thought = reply->shown < text->len ? ANSWER : AFTER;
    }
}

void llm_hide_thoughts(struct llm_reply *reply)
{
    const struct llm_text *text = first_text(reply);
    if (!text)
        return;
    look_for_thoughts(reply, text);
    if (reply->thought != ANSWER || reply->shown >= text->len)
        return;
    const struct llm_span fresh = {text->ptr + reply->shown, text->len - reply->shown};
    reply->shown = text->len;
    llm_reply_show(reply, fresh);
}

/* The opening tag may be missing, since some chat templates end the prompt with it. */
void llm_drop_thoughts(struct llm_reply *reply)
{
    struct llm_text *text = first_text(reply);
    if (!text)
        return;
    const char *begin = text->ptr + strspn(text->ptr, " \t\r\n");
    const bool opened = strncmp(begin, think_open, sizeof think_open - 1) == 0;
    const char *end = strstr(text->ptr, think_close), *other = strstr(text->ptr, think_open);
    if (!opened && (!end || (other && other < end)))
        return;
    size_t n = end ? (size_t)(end - text->ptr) + sizeof think_close - 1 : text->len;
    while (n < text->len && isspace((unsigned char)text->ptr[n]))
        ++n;
    reply->reasoned = true;
    reply->reasoning_bytes += n;
    memmove(text->ptr, text->ptr + n, text->len - n + 1);
    text->len -= n;
}

uint32_t llm_finish_of(const struct llm_word *words, const char *word)
{
    for (; word && words->word; ++words)
        if (strcasecmp(word, words->word) == 0)
            return words->finish;
    return 0;
}
