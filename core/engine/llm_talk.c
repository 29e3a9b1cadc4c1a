/* The conversation of one request as it grows and shrinks. */
#include "engine/llm.h"

#include <string.h>

/* Bytes that each text may keep in the steps after the first. */
static const size_t shrink_to[] = {0, 12000, 6000, 2000, 800};
enum { N_STEPS = sizeof shrink_to / sizeof *shrink_to };

void llm_talk_open(struct llm_talk *talk, struct rung_arena *arena,
                   const struct rung_message *messages, uint32_t n)
{
    *talk = (struct llm_talk){.arena = arena, .n = n, .cap = n + 8};
    talk->messages = RUNG_ARENA_NEW(arena, struct rung_message, talk->cap);
    memcpy(talk->messages, messages, n * sizeof *messages);
}

void llm_talk_add(struct llm_talk *talk, struct rung_message message)
{
    if (talk->n == talk->cap) {
        struct rung_message *more = RUNG_ARENA_NEW(talk->arena, struct rung_message, talk->cap * 2);
        memcpy(more, talk->messages, talk->n * sizeof *more);
        talk->messages = more;
        talk->cap *= 2;
    }
    talk->messages[talk->n++] = message;
}

void llm_talk_add_reply(struct llm_talk *talk, const struct llm_end *end, bool calls)
{
    struct rung_part *parts = RUNG_ARENA_NEW(talk->arena, struct rung_part, end->n_parts);
    uint32_t n = 0;
    for (uint32_t i = 0; i < end->n_parts; i++)
        if (calls || end->parts[i].kind != RUNG_PART_TOOL_CALL)
            parts[n++] = end->parts[i];
    llm_talk_add(talk, (struct rung_message){.struct_size = sizeof(struct rung_message),
                                             .role = RUNG_MSG_ASSISTANT,
                                             .parts = parts,
                                             .n_parts = n});
}

void llm_talk_append(struct llm_talk *talk, const char *text)
{
    struct rung_message *last = &talk->messages[talk->n - 1];
    struct rung_part *parts = RUNG_ARENA_NEW(talk->arena, struct rung_part, last->n_parts + 1);
    memcpy(parts, last->parts, last->n_parts * sizeof *parts);
    parts[last->n_parts] = (struct rung_part){
        .struct_size = sizeof *parts, .kind = RUNG_PART_TEXT, .text = rung_text_of(text)};
    last->parts = parts;
    last->n_parts++;
}

uint64_t llm_talk_bytes(const struct rung_message *messages, uint32_t n)
{
    uint64_t bytes = 0;
    for (uint32_t m = 0; m < n; m++)
        for (uint32_t p = 0; p < messages[m].n_parts; p++)
            bytes += messages[m].parts[p].text.len;
    return bytes;
}

/* ---- Shrinking ---- */

/* The first prompt, and the last reply with what was said to it, stay. */
static bool drop_oldest(struct llm_talk *talk)
{
    if (talk->n < 6)
        return false;
    memmove(&talk->messages[2], &talk->messages[talk->n - 2], 2 * sizeof *talk->messages);
    talk->n = 4;
    return true;
}

static bool cut_part(struct llm_talk *talk, struct rung_part *part, size_t most)
{
    bool text = part->kind == RUNG_PART_TEXT || part->kind == RUNG_PART_TOOL_RESULT;
    if (!text || part->text.len <= most)
        return false;
    const char *whole = rung_arena_strndup(talk->arena, part->text.ptr, part->text.len);
    part->text = rung_text_of(engine_cut_middle(talk->arena, whole, most));
    return true;
}

/* Message 0 is the system's, and the first part of message 1 the task: they are cached, and
 * without them no reply is of use. */
static bool cut_texts(struct llm_talk *talk, size_t most)
{
    bool changed = false;
    for (uint32_t m = 1; m < talk->n; m++) {
        struct rung_message *message = &talk->messages[m];
        struct rung_part *parts = RUNG_ARENA_NEW(talk->arena, struct rung_part, message->n_parts);
        memcpy(parts, message->parts, message->n_parts * sizeof *parts);
        for (uint32_t p = m == 1 && message->n_parts > 1; p < message->n_parts; p++)
            changed |= cut_part(talk, &parts[p], most);
        message->parts = parts;
    }
    return changed;
}

bool llm_talk_shrink(struct llm_talk *talk, uint32_t *step)
{
    while (*step < N_STEPS) {
        size_t most = shrink_to[(*step)++];
        if (most ? cut_texts(talk, most) : drop_oldest(talk))
            return true;
    }
    return false;
}
