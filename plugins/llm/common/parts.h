/*
 * A reply as it grows: texts, tool calls and echoes in the order of their arrival, whether it comes
 * whole or in pieces. What a server sends is hostile: the number of parts is bounded, texts are
 * repaired to UTF-8. One thread a reply; nothing else is shared.
 */
#ifndef LLM_COMMON_PARTS_H
#define LLM_COMMON_PARTS_H

#include "json.h"

struct llm_piece {
    uint32_t kind; /* rung_part_kind */
    bool closed;   /* nothing more comes to it */
    int64_t index; /* the provider's; -1: none */
    struct llm_text text, id, name;
};

struct llm_reply {
    struct llm_piece *pieces;
    uint32_t n_pieces, cap;
    bool failed;   /* memory was out, or there were too many parts */
    bool reasoned; /* reasoning was there, whether or not it was shown */
    bool ended;    /* the server said why it stopped */
    bool through;  /* a stream's last event was there */
    uint32_t finish;
    struct llm_text finish_word, model, request_id;
    struct rung_usage usage;  /* all -1 until read */
    uint64_t reasoning_bytes; /* of reasoning that was shown */
    cJSON *held;              /* what a dialect keeps until the end; freed with the reply */

    /* For streams. */
    int32_t (*on_delta)(void *ctx, struct rung_text delta); /* NULL: none */
    void *on_delta_ctx;
    bool stopped;     /* by on_delta */
    bool began;       /* text, reasoning or a call was there */
    uint32_t thought; /* llm_hide_thoughts */
    size_t shown;
};

/* Tokens of which nothing is known. */
struct rung_usage llm_no_usage(void);

void llm_reply_init(struct llm_reply *reply, const struct rung_llm_request *request);
void llm_reply_free(struct llm_reply *reply);

/* A new piece at the end; NULL when there are too many, or no memory. */
struct llm_piece *llm_reply_add(struct llm_reply *reply, uint32_t kind, int64_t index);
/* The last piece of that kind and index, or NULL. */
struct llm_piece *llm_reply_find(struct llm_reply *reply, uint32_t kind, int64_t index);
/* Adds to the last piece when it is a text, else to a new one, and shows it. */
void llm_reply_text(struct llm_reply *reply, const char *text);
/* The same without showing it; the piece, or NULL without memory. */
struct llm_piece *llm_reply_quiet_text(struct llm_reply *reply, const char *text);
/* Hands text to on_delta, repaired. */
void llm_reply_show(struct llm_reply *reply, struct llm_span text);
/* Reasoning that was shown; NULL: that it was there. */
void llm_reply_reasoning(struct llm_reply *reply, const char *text);
/* One whole tool call. arguments: a text, or a value that is printed. */
void llm_reply_call(struct llm_reply *reply, const char *id, const char *name,
                    const cJSON *arguments);
/* A value to echo, as JSON. */
void llm_reply_echo(struct llm_reply *reply, const char *plugin, const cJSON *value);
/* Keeps the first word that says why the reply ended. */
void llm_reply_end(struct llm_reply *reply, uint32_t finish, const char *word);
/* Sets a text to one that is not empty, at most 256 bytes; NULL: leaves it. */
void llm_reply_note(struct llm_text *text, const char *value);

/* Tokens of texts and calls together, as llm_estimate sees them. */
int64_t llm_reply_estimate(const struct llm_reply *reply);
bool llm_reply_is_blank(const struct llm_reply *reply);
/* Of tools that are named: others can't be called. */
bool llm_reply_has_calls(const struct llm_reply *reply);

/* ---- <think> before the answer, where the server leaves it in ---- */

/*
 * Shows what is new in the first text piece but thoughts at its begin. A template that lost the
 * opening tag shows its thoughts here; llm_drop_thoughts takes them off the text in the end.
 */
void llm_hide_thoughts(struct llm_reply *reply);
/* Takes the thoughts off the first text piece; tags in the midst of an answer stay. */
void llm_drop_thoughts(struct llm_reply *reply);

/* ---- Words for why a reply ended ---- */

struct llm_word {
    const char *word;
    uint32_t finish;
};

/* The finish of a word (any case), or 0. words ends with a NULL. */
uint32_t llm_finish_of(const struct llm_word *words, const char *word);

#endif
