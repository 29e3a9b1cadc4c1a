/*
 * search_branching: ideas in sentences, several implementations of each, the best seed the next
 * round.
 *
 *   START -> IMPLEMENT first kernels -> REPAIR ... -> TUNE and IDEAS from the best -> IMPLEMENT
 * ideas ^                                                   |
 *                                       +------------------- next round --------------------+
 *
 * Candidates, times and ideas are read from the history each time. The instance itself remembers
 * only where in a round it stands, what it has asked for, and the best time of earlier rounds; the
 * same sequence of decide() calls builds the same memory, which is how a resumed run goes on.
 * [main] only.
 */
#include "branching.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t fail(struct rung_error *error, int32_t code, const char *symbol, const char *message)
{
    error->code = code;
    snprintf(error->symbol, sizeof error->symbol, "%s", symbol);
    snprintf(error->message, sizeof error->message, "%s", message);
    return code;
}

static struct rung_action *add(struct turn *turn, uint32_t kind, uint32_t count, uint32_t idea,
                               uint32_t parent)
{
    if (turn->n_actions == MAX_ACTIONS)
        return NULL;
    struct rung_action *action = &turn->actions[turn->n_actions++];
    *action = (struct rung_action){.struct_size = sizeof *action,
                                   .kind = kind,
                                   .count = count,
                                   .idea = idea,
                                   .n_parents = parent != 0,
                                   .parents = {parent}};
    return action;
}

/* ---- Repair ------------------------------------------------------------------------------- */

/* Failures that another reply can mend: not those of the device, the task or the harness. */
static bool is_mendable(const struct rung_candidate *c)
{
    static const char *const beyond[] = {"device.", "reply.", "task.", "internal", "time."};
    if (c->state != RUNG_CANDIDATE_REJECTED)
        return false;
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; ++i)
        if (strncmp(c->code, beyond[i], strlen(beyond[i])) == 0)
            return false;
    return true;
}

static bool was_repaired(const struct policy *policy, uint32_t number)
{
    for (uint32_t i = 0; i < policy->n_repaired; ++i)
        if (policy->repaired[i] == number)
            return true;
    return false;
}

/* Repairs that led to a candidate: its ancestors of the same idea that a repair was asked for. */
static uint32_t repairs_before(const struct turn *turn, const struct rung_candidate *c)
{
    uint32_t n = 0;
    while (n < turn->policy->repairs && c->n_parents == 1 && c->parents[0] < c->number) {
        const struct rung_candidate *parent = branching_candidate(turn, c->parents[0]);
        if (!parent || parent->idea != c->idea || !was_repaired(turn->policy, parent->number))
            break;
        c = parent;
        ++n;
    }
    return n;
}

static int32_t remember_repair(struct policy *policy, uint32_t number, struct rung_error *error)
{
    if ((policy->n_repaired & (policy->n_repaired - 1)) == 0) {
        const size_t cap = policy->n_repaired ? 2 * (size_t)policy->n_repaired : 1;
        uint32_t *list = realloc(policy->repaired, cap * sizeof *list);
        if (!list)
            return fail(error, RUNG_ENOMEM, "branching.memory", "no memory");
        policy->repaired = list;
    }
    policy->repaired[policy->n_repaired++] = number;
    return RUNG_OK;
}

static int32_t add_repairs(struct turn *turn, struct rung_error *error)
{
    struct policy *policy = turn->policy;
    for (uint32_t n = 1; n <= turn->history->n_candidates; ++n) {
        const struct rung_candidate *c = branching_candidate(turn, n);
        if (!c || !is_mendable(c) || was_repaired(policy, n) ||
            repairs_before(turn, c) >= policy->repairs)
            continue;
        if (!add(turn, RUNG_ACTION_REPAIR, 1, c->idea, n))
            return RUNG_OK; /* the rest at the next barrier */
        const int32_t status = remember_repair(policy, n, error);
        if (status != RUNG_OK)
            return status;
    }
    return RUNG_OK;
}

/* ---- Rounds ------------------------------------------------------------------------------- */

static void add_stop(struct turn *turn, const char *why)
{
    turn->n_actions = 0;
    add(turn, RUNG_ACTION_STOP, 0, 0, 0)->note = why;
}

static void add_tunes(struct turn *turn)
{
    for (uint32_t i = 0; i < turn->n_kept && turn->policy->tune; ++i) {
        const struct rung_candidate *c = branching_candidate(turn, turn->kept[i]);
        if (!c || c->n_tried >= c->n_points)
            continue;
        const uint32_t left = c->n_points - c->n_tried;
        add(turn, RUNG_ACTION_TUNE, left < turn->policy->tune ? left : turn->policy->tune, 0,
            c->number);
    }
}

/* One request a parent, with the round's ideas shared out; from nothing when nothing was accepted.
 */
static void add_idea_requests(struct turn *turn)
{
    const struct policy *p = turn->policy;
    if (turn->n_kept == 0) {
        add(turn, RUNG_ACTION_IMPLEMENT, p->branches, 0, 0);
        add(turn, RUNG_ACTION_IDEAS, p->ideas, 0, 0);
        return;
    }
    for (uint32_t i = 0; i < turn->n_kept; ++i) {
        const uint32_t share = p->ideas / turn->n_kept + (i < p->ideas % turn->n_kept);
        if (share)
            add(turn, RUNG_ACTION_IDEAS, share, 0, turn->kept[i]);
    }
}

/*
 * Books the round that ends: whether its best time beats earlier rounds by more than a tie.
 * Patience counts from the first accepted kernel on.
 */
static void close_round(struct turn *turn)
{
    struct policy *p = turn->policy;
    const struct rung_candidate *best = branching_fastest(turn); /* before anything is kept */
    const double time_ns = best && best->time_kind ? best->time_ns : 0.0;
    bool better = best && !p->any_accepted;
    if (best && time_ns > 0.0)
        better |= p->best_ns == 0.0 || time_ns * (1.0 + best->tie_band) < p->best_ns;
    p->any_accepted |= best != NULL;
    if (time_ns > 0.0 && (p->best_ns == 0.0 || better))
        p->best_ns = time_ns;
    p->idle_rounds = better || !p->any_accepted ? 0 : p->idle_rounds + 1;
}

/* All of a round's candidates are judged: the next round, or the end. */
static void next_round(struct turn *turn)
{
    struct policy *p = turn->policy;
    close_round(turn);
    const bool patient = p->patience == 0 || p->idle_rounds < p->patience;
    const bool last = p->round == p->rounds || !patient;
    branching_keep_best(turn);
    add_tunes(turn);
    if (last) {
        p->phase = PHASE_LAST_TUNE;
        if (turn->n_actions == 0)
            add_stop(turn, patient ? "all rounds are done"
                                   : "no better kernel for as many rounds as patience allows");
        return;
    }
    p->round++;
    branching_keep_wild(turn);
    add_idea_requests(turn);
    p->phase = PHASE_IDEAS;
}

static bool same_sentence(const struct rung_idea *a, const struct rung_idea *b)
{
    return a->sentence && b->sentence && strcmp(a->sentence, b->sentence) == 0;
}

/*
 * Whether another new idea says the same: the requests of one round can't see each other. The same
 * sentence in a later round is meant.
 */
static bool is_repeated(const struct rung_history *history, uint32_t first, uint32_t number)
{
    const struct rung_idea *idea = history->idea(history, number);
    for (uint32_t n = first; n < number; ++n) {
        const struct rung_idea *earlier = history->idea(history, n);
        if (earlier && same_sentence(idea, earlier))
            return true;
    }
    return false;
}

/* Builds every idea that came since the last time, a person's too. */
static void add_implementations(struct turn *turn)
{
    struct policy *p = turn->policy;
    const struct rung_history *history = turn->history;
    const uint32_t first = p->seen_ideas + 1;
    while (p->seen_ideas < history->n_ideas) {
        const uint32_t number = p->seen_ideas + 1;
        const struct rung_idea *idea = history->idea(history, number);
        if (idea && !is_repeated(history, first, number) &&
            !add(turn, RUNG_ACTION_IMPLEMENT, p->branches, number, idea->parent))
            return; /* the rest at the next barrier */
        p->seen_ideas = number;
    }
}

static int32_t decide_built(struct turn *turn, struct rung_error *error)
{
    const int32_t status = add_repairs(turn, error);
    if (status == RUNG_OK && turn->n_actions == 0)
        add_implementations(turn); /* what did not fit before, or a person added meanwhile */
    if (status == RUNG_OK && turn->n_actions == 0)
        next_round(turn);
    return status;
}

static int32_t advance(struct turn *turn, struct rung_error *error)
{
    struct policy *p = turn->policy;
    switch (p->phase) {
    case PHASE_START:
        p->phase = PHASE_BUILT;
        add(turn, RUNG_ACTION_IMPLEMENT, p->branches, 0, 0);
        return RUNG_OK;
    case PHASE_IDEAS:
        p->phase = PHASE_BUILT;
        add_implementations(turn);
        return turn->n_actions ? RUNG_OK : decide_built(turn, error);
    case PHASE_BUILT:
        return decide_built(turn, error);
    case PHASE_LAST_TUNE:
        add_stop(turn, "all rounds are done and the best are tuned");
        return RUNG_OK;
    }
    return fail(error, RUNG_EINTERNAL, "branching.phase", "the policy lost its place");
}

/* Copies the actions to the call's arena. */
static int32_t deliver(const struct turn *turn, struct rung_call *call,
                       const struct rung_action **actions, uint32_t *n_actions)
{
    const struct rung_host *host = turn->policy->host;
    const size_t size = turn->n_actions * sizeof *turn->actions;
    struct rung_action *copy = host->alloc(host, call->arena, size, 16);
    if (!copy)
        return fail(call->error, RUNG_ENOMEM, "branching.memory", "no memory for actions");
    memcpy(copy, turn->actions, size);
    *actions = copy;
    *n_actions = turn->n_actions;
    return RUNG_OK;
}

static int32_t decide(void *self, struct rung_call *call, const struct rung_history *history,
                      const struct rung_event *events, uint32_t n_events,
                      const struct rung_action **actions, uint32_t *n_actions)
{
    struct policy *policy = self;
    (void)events; /* all that they tell is in the history */
    (void)n_events;
    struct turn turn = {.policy = policy, .history = history};
    turn.actions = calloc(MAX_ACTIONS, sizeof *turn.actions);
    if (!turn.actions)
        return fail(call->error, RUNG_ENOMEM, "branching.memory", "no memory for actions");
    int32_t status = RUNG_OK;
    if (policy->phase != PHASE_START && history->budget_used(history) >= 1.0)
        add_stop(&turn, "the budget is used up");
    else
        status = advance(&turn, call->error);
    if (status == RUNG_OK)
        status = deliver(&turn, call, actions, n_actions);
    free(turn.actions);
    return status;
}

/* ---- Life --------------------------------------------------------------------------------- */

static uint32_t number(const struct rung_host *host, const struct rung_options *options,
                       const char *name)
{
    return (uint32_t)host->opt_int(host, options, name);
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *error, void **self)
{
    struct policy *p = calloc(1, sizeof *p);
    if (!p)
        return fail(error, RUNG_ENOMEM, "branching.memory", "no memory");
    p->host = host;
    p->rounds = number(host, options, "rounds");
    p->ideas = number(host, options, "ideas");
    p->branches = number(host, options, "branches");
    p->keep = number(host, options, "keep");
    p->repairs = number(host, options, "repairs");
    p->tune = number(host, options, "tune");
    p->patience = number(host, options, "patience");
    p->wild = number(host, options, "wild");
    p->seed = (uint64_t)host->opt_int(host, options, "seed");
    *self = p;
    return RUNG_OK;
}

static void destroy(void *self)
{
    struct policy *p = self;
    free(p->repaired);
    free(p);
}

#define INT_OPTION(id, default_value, least, most, words)                                          \
    static const struct rung_option opt_##id = {                                                   \
        .struct_size = sizeof opt_##id,                                                            \
        .type = RUNG_OPT_INT,                                                                      \
        .name = #id,                                                                               \
        .default_text = default_value,                                                             \
        .summary = words,                                                                          \
        .min = least,                                                                              \
        .max = most,                                                                               \
    }

INT_OPTION(rounds, "5", 0, 1000, "Rounds of ideas after the first kernels.");
INT_OPTION(ideas, "8", 1, MAX_COUNT,
           "Ideas that a round asks for, shared out among the kept candidates.");
INT_OPTION(branches, "2", 1, 16, "Implementations of each idea.");
INT_OPTION(keep, "3", 1, MAX_KEEP, "Best candidates, of as many ideas, that seed the next round.");
INT_OPTION(repairs, "1", 0, 8, "Repairs in a row of a candidate that failed a check.");
INT_OPTION(tune, "4", 0, MAX_COUNT, "Tune points tried for each kept candidate a round.");
INT_OPTION(patience, "3", 0, 1000,
           "Rounds in a row without a better time before it stops; 0 never stops for that.");
INT_OPTION(wild, "0", 0, MAX_KEEP,
           "Further accepted candidates, drawn at random, that seed a round.");
INT_OPTION(seed, "1", 0, 1e15, "Decides, with the run's seed, what wild draws.");

static const struct rung_option *const options[] = {
    &opt_rounds, &opt_ideas,    &opt_branches, &opt_keep, &opt_repairs,
    &opt_tune,   &opt_patience, &opt_wild,     &opt_seed, NULL};

static const struct rung_search_ops ops = {.struct_size = sizeof ops, .decide = decide};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_SEARCH,
    .name = "branching",
    .summary = "Rounds of ideas; several kernels of each; the best seed the next round.",
    .doc = "Begins with plain kernels. Each round tunes the best candidates, asks for ideas from "
           "each of them, "
           "implements every idea in several branches, and repairs what fails a check. Times "
           "within the tie "
           "band count as equal: then the older one goes first. Each idea is kept at most once.",
    .options = options,
    .ops = &ops,
    .create = create,
    .destroy = destroy,
};
static const struct rung_factory *const factories[] = {&factory, NULL};

static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC,
    .struct_size = sizeof plugin,
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.search.branching",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
