/*
 * The engine's own data, shared by its files. Threads: the main thread runs the loop and the
 * policy; a crew of threads carries out actions, each in its own arena; `lock` guards state and
 * counters.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "config/config.h"
#include "engine/llm_gate.h"
#include "engine/run.h"
#include "engine/state.h"
#include "journal/journal.h"
#include "plugin/instance.h"
#include "worker/pool.h"
#include <pthread.h>
#include <rung/codegen.h>
#include <rung/examples.h>
#include <rung/host.h>
#include <rung/llm.h>
#include <rung/search.h>
#include <rung/task.h>
#include <stdatomic.h>

struct engine_llm {
    const struct rung_stage *stage;
    struct rung_instance *instance;
    /* Of engine_llms_open. */
    struct llm_gate *gate;   /* NULL: as many requests at once as there are threads */
    struct rung_price price; /* of the pipeline or prices.cfg */
    bool free;               /* its replies cost nothing, and no request is sent in another form */
    uint32_t cap;            /* output tokens that its requests ask for; 0: not known */
    _Atomic int stopped;     /* for the rest of the run: no quota, or no such model */
    _Atomic uint64_t made, replies; /* output tokens of all its replies; these */
    bool told_price;                /* that it is not known */
};

struct engine_prompts { /* texts of config/prompts */
    const char *system, *task, *ideas, *code, *repair, *plan, *go_on, *rephrase;
};

struct engine_tokens {
    uint64_t input, cache_read, cache_write_5m, cache_write_1h, output, reasoning;
};

/* Spent so far, in this process and before a resume. What providers reported, and estimates of what
 * they may have billed without saying so, are kept apart; a budget counts both. */
struct engine_spent {
    uint64_t calls, tokens_in, tokens_out, evaluations;
    double usd;           /* of the calls whose price is known */
    bool usd_gapped;      /* some call's price is not known */
    double wall_s_before; /* of earlier processes of the run */
    struct engine_tokens tokens;
    uint64_t guessed_calls; /* of calls: cut off, lost in a kill, or without a report */
    double guessed_usd;
    struct engine_tokens guessed;
    /* Upper estimates of the requests that are under way. */
    uint64_t held_calls, held_tokens;
    double held_usd;
};

/* What re-timing the winner came to; docs/timing.md. */
struct engine_final {
    struct engine_candidate *winner; /* NULL: it was not timed again */
    cJSON *json;
};

struct engine {
    const struct rung_run_options *options;
    struct rung_arena *arena; /* configuration; lives as long as the engine */
    struct rung_registry *registry;
    const char *data_dir;
    struct rung_node *pipeline_node, *task_node;
    const struct rung_pipeline *pipeline;
    const struct rung_task *task;
    struct rung_task_rest task_rest;
    const char *contract; /* of the codegen, for this task */
    const char *examples; /* for prompts of first kernels; "" without any */
    struct engine_prompts prompts;
    uint64_t seed;

    struct engine_llm *llms;
    struct rung_instance *codegen, *search, **example_sources;
    struct rung_journal *journal;
    struct rung_pool *pool;
    struct rung_cancel *cancel;

    pthread_mutex_t lock;
    struct engine_state state;
    struct engine_spent spent;
    uint64_t start_ns;
    uint32_t decisions;
    double best_ns;          /* at the last barrier; 0: none yet */
    uint32_t stale;          /* barriers in a row that brought no faster kernel */
    const char *stop_reason; /* NULL while it runs */
    _Atomic int out_of_budget;
    struct rung_error failure; /* first fault of the environment; ends the run */
    struct engine_progress *progress;
    struct engine_final final;
};

/* ---- setup.c ---- */
/* Reads configuration (or, resuming, the journal's copy of it), loads plugins, opens the journal.
 */
int32_t engine_open(struct engine *e, struct rung_error *err);
/* Loads a plugin of the orchestrator and reads its options; faults go to diags with their place,
 * NULL then. */
struct rung_instance *engine_make_instance(struct engine *e, const char *kind,
                                           const struct rung_stage *stage,
                                           struct rung_diags *diags);
/* Starts the workers. */
int32_t engine_start(struct engine *e, struct rung_error *err);
void engine_close(struct engine *e);

/* ---- tree.c ---- */
/* A settings tree as JSON that also keeps the file of every text: relative paths depend on it. */
cJSON *engine_tree_save(const struct rung_node *node);
struct rung_node *engine_tree_load(struct rung_arena *arena, const cJSON *json);

/* ---- loop.c ---- */
/* Until the policy stops, the budget ends, or something fails. */
int32_t engine_loop(struct engine *e, struct rung_error *err);

/* ---- budget.c ---- */
/* What one request may cost at most; see engine_hold. */
struct engine_hold {
    uint64_t calls, tokens;
    double usd;
};
/*
 * Holds the room that a request may need at most: RUNG_EBUDGET when a limit of the pipeline leaves
 * none, RUNG_ECANCELLED after an interrupt. Waits while requests under way hold what is left.
 * Every hold ends in one engine_release. [any thread]
 */
int32_t engine_hold(struct engine *e, const struct engine_hold *need, struct rung_error *err);
void engine_release(struct engine *e, const struct engine_hold *hold);
/* The same for a verdict: evaluations, money and time. */
int32_t engine_may_evaluate(struct engine *e, struct rung_error *err);
/* USD for tokens by class at a price. Pure. */
double engine_cost(const struct rung_price *price, const struct engine_tokens *tokens);
/*
 * Adds what a sending cost by its record; llm is the name of the stage that was asked. Call with
 * the lock held.
 */
void engine_spend(struct engine *e, const char *llm, const cJSON *record);
/* A line of what the models cost, where any costs something. */
void engine_tell_spent(struct engine *e);
/* What was spent, for summaries: tokens by class, cost, and the estimated parts. Caller deletes. */
cJSON *engine_spent_json(const struct engine *e);
/* Why the search has done enough (`stop` of the pipeline), or NULL. [main, at a barrier] */
const char *engine_enough(struct engine *e);
/* Share of the budget used, 0..1. Call with the lock held. */
double engine_budget_used(const struct engine *e);
double engine_wall_s(const struct engine *e);
/* Keeps the first fault of the environment and ends what is under way. */
void engine_give_up(struct engine *e, const struct rung_error *err);

/* ---- ask.c ---- */
struct engine_reply {
    const char *text;
    uint32_t finish; /* rung_finish */
};
/*
 * One logical request to its end: sent as often and in such forms as its outcomes ask for
 * (docs/llm.md), each of them in the journal before and after; answered from there when it was
 * answered before. Errors: RUNG_EBUDGET, RUNG_ECANCELLED, and what the last model said.
 */
int32_t engine_ask(struct engine *e, const char *key, const char *role,
                   const struct rung_message *messages, uint32_t n, struct rung_arena *arena,
                   struct engine_reply *out, struct rung_error *err);
/* SHA-256 over role and texts, as docs/journal.md defines it for cassettes. */
void engine_prompt_hash(const char *role, const struct rung_message *messages, uint32_t n,
                        char hex[RUNG_SHA256_HEX]);

/* ---- prompt.c ---- */
int32_t engine_prompts_load(struct engine *e, struct rung_error *err);
struct rung_message engine_message(struct rung_arena *arena, uint32_t role, const char *text);
/*
 * The first two messages of every conversation: system with the contract, then the task and, as a
 * part of its own, the prompt. All up to the task is the same for every request of a run and ends
 * in a cache mark.
 */
void engine_open_talk(struct engine *e, struct rung_arena *arena, const char *prompt,
                      struct rung_message out[2]);
/* The middle of a long text goes, with the count of what went: both ends of a log tell most. */
const char *engine_cut_middle(struct rung_arena *arena, const char *text, size_t most);
/* The request to go on after a cut, which ends in the last line of the text; the one after a
 * refusal. */
const char *engine_prompt_go_on(struct engine *e, struct rung_arena *arena, const char *text);
const char *engine_prompt_rephrase(struct engine *e);
const char *engine_prompt_system(struct engine *e, struct rung_arena *arena);
const char *engine_prompt_ideas(struct engine *e, struct rung_arena *arena,
                                const struct rung_action *action);
const char *engine_prompt_code(struct engine *e, struct rung_arena *arena,
                               const struct engine_candidate *c, const char *note);
/* The cheap repair: code stands, only its plan lines are asked for. */
const char *engine_prompt_plan(struct engine *e, struct rung_arena *arena, const char *source,
                               const char *message);
const char *engine_prompt_repair(struct engine *e, struct rung_arena *arena, const char *source,
                                 const char *code, const char *message, const char *note);

/* ---- llm_open.c ---- */
/* Prices, gates and limits of the pipeline's models. After their plugins have started. */
int32_t engine_llms_open(struct engine *e, struct rung_error *err);
void engine_llms_close(struct engine *e);
struct engine_llm *engine_llm_named(struct engine *e, const char *name);

/* ---- examples.c ---- */
/* Asks the pipeline's sources of examples, once a run; fills engine.examples. */
int32_t engine_examples_read(struct engine *e, struct rung_error *err);

/* ---- ideas.c ---- */
/*
 * Reads the ideas of a reply (one a list item, "[category] Sentence.") and adds at most `count`
 * that are not there yet to the state, each with a journal record. Returns how many. [main]
 */
uint32_t engine_ideas_take(struct engine *e, const char *reply, uint32_t count, uint32_t parent);

/* ---- recall.c ---- */
struct engine_source {
    const struct rung_bundle *bundle;
    const struct rung_plan *plan;
};
/* A candidate's code out of the journal; RUNG_ENOTFOUND when no reply held any. Memory of arena. */
int32_t engine_recall(struct engine *e, const struct engine_candidate *c, struct rung_arena *arena,
                      struct engine_source *out, struct rung_error *err);
/* What a verdict said, by its sequence number; the texts are "" when there is no such record. */
struct engine_words {
    const char *message, *advice;
};
struct engine_words engine_words(struct engine *e, uint64_t seq, struct rung_arena *arena);
/* The file that is compiled. */
const char *engine_entry_text(const struct rung_bundle *bundle);

/* ---- implement.c ---- */
/*
 * From prompt to verdict for one candidate: replies, repairs of what does not compile, evaluation.
 * The prompt was rendered at the barrier, so that it does not depend on what runs beside it. role
 * NULL: "repair" for a repaired candidate, else "code"; further replies come from "repair".
 */
int32_t engine_implement(struct engine *e, struct engine_candidate *c, const char *role,
                         const char *prompt, struct rung_error *err);
/* Judges up to `action->count` further tune points, or the one that it names. */
int32_t engine_tune(struct engine *e, struct engine_candidate *c, const struct rung_action *action,
                    struct rung_error *err);

/* ---- ladder.c ---- */
/*
 * One variant on all devices that its rungs of an occasion (rung_when) need: the run's own
 * compiles, checks and, at RUNG_WHEN_ALWAYS, times it; others only check. The first refusal stands.
 */
int32_t engine_climb(struct engine *e, const struct engine_candidate *c,
                     const struct rung_bundle *bundle, const char *point, uint32_t occasion,
                     struct rung_arena *arena, struct rung_outcome *out, struct rung_error *err);
/* Whether any rung of the pipeline waits for the occasion. */
bool engine_has_rungs(const struct engine *e, uint32_t occasion);
/* Tells of rungs whose devices no worker has. */
void engine_warn_rungs(struct engine *e);

/* ---- confirm.c ---- */
/*
 * The best candidate must pass the rungs of the occasion too; one that does not makes room for the
 * next, until one passes or none is left. At barriers and at the end, so that the outcome does not
 * depend on who finished first. [main]
 */
int32_t engine_confirm(struct engine *e, uint32_t occasion, struct rung_error *err);
/* The same for one accepted candidate, which may not be so afterwards. [main] */
int32_t engine_confirm_one(struct engine *e, struct engine_candidate *c, uint32_t occasion,
                           struct rung_error *err);

/* ---- final.c ---- */
/*
 * The end of a run: confirms the winner, and where times are measured takes them again in fresh
 * processes, in turns with the baselines and with a runner-up that the search could not tell from
 * it. Fills engine.final. Each process's result is a record, so that a resume repeats none. [main]
 */
int32_t engine_final(struct engine *e, struct rung_error *err);

/* ---- final_sum.c ---- */
/* Several results of one job as one: what engine.final.json holds. delta: of its verdicts. */
cJSON *engine_final_sum(cJSON *const *reports, uint32_t n, double delta);

/* ---- evaluate.c ---- */
/*
 * A variant's verdict: answered from the journal when it was judged before. point NULL: the first.
 */
int32_t engine_evaluate(struct engine *e, struct engine_candidate *c,
                        const struct rung_bundle *bundle, uint32_t attempt, const char *point,
                        struct rung_arena *arena, struct rung_outcome *out, uint64_t *seq,
                        struct rung_error *err);
/* The same for the rungs that run later; point is one that was accepted. */
int32_t engine_evaluate_later(struct engine *e, const struct engine_candidate *c,
                              const struct rung_bundle *bundle, const char *point,
                              uint32_t occasion, struct rung_arena *arena, struct rung_outcome *out,
                              uint64_t *seq, struct rung_error *err);
cJSON *engine_outcome_to_json(const struct rung_outcome *outcome);
bool engine_outcome_from_json(const cJSON *json, struct rung_arena *arena,
                              struct rung_outcome *out);

/* ---- progress.c ---- */
struct engine_progress *engine_progress_new(struct engine *e);
void engine_progress_free(struct engine_progress *p);
/* A line that stays. */
void engine_say(struct engine *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What a running job does; shown in the live line on a terminal. */
void engine_doing(struct engine *e, const char *label, const char *text);
/* Tells of a verdict. */
void engine_tell(struct engine *e, const struct engine_candidate *c, const struct rung_outcome *o);

/* ---- finish.c ---- */
/* Winner's file, table, summary record; the JSON object when asked. Returns the exit status. */
int engine_finish(struct engine *e);
/* "412 us", "1.08 ms". */
const char *engine_time_text(struct rung_arena *arena, double ns);

#endif
