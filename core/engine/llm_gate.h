/*
 * How many requests one model gets at once, and when: additive increase, multiplicative decrease,
 * as congestion control of networks does it, and what the server says of its limits. Any thread.
 */
#ifndef ENGINE_LLM_GATE_H
#define ENGINE_LLM_GATE_H

#include <rung/llm.h>
#include <stdbool.h>

struct llm_gate;

/* `first` requests at once at the start, never more than `most`; both at least 1. */
struct llm_gate *llm_gate_new(uint32_t first, uint32_t most);
void llm_gate_free(struct llm_gate *gate);

/* One request that is under way. */
struct llm_pass {
    uint64_t epoch; /* of the gate's last decrease when it was let in */
};

/*
 * Waits until the window has room and the server's limits leave room for one request of about
 * `tokens`. False when cancelled meanwhile.
 */
bool llm_gate_enter(struct llm_gate *gate, uint64_t tokens, const struct rung_cancel *cancel,
                    struct llm_pass *pass);

enum llm_gate_end {
    LLM_GATE_GOOD,  /* answered: a window full of these widens the window by one */
    LLM_GATE_BUSY,  /* rate limit or overload: the window is halved, once for what ran together */
    LLM_GATE_OTHER, /* says nothing about load */
};
/*
 * Ends what llm_gate_enter began. limits: what the server said, or NULL; hold_ms: nobody is let in
 * for so long (0: no hold).
 */
void llm_gate_leave(struct llm_gate *gate, const struct llm_pass *pass, enum llm_gate_end end,
                    const struct rung_rate_limit *limits, uint64_t hold_ms);
/* Requests at once that it allows now. */
uint32_t llm_gate_window(struct llm_gate *gate);

/*
 * Milliseconds until the next try after `tries` of them: the server's hint and up to a tenth more,
 * else 500 doubled each time up to 60000, plus or minus a quarter. random: any bits.
 */
uint64_t llm_backoff_ms(uint32_t tries, uint64_t hint_ms, uint64_t random);

#endif
