/*
 * A search policy in one file: writes several first kernels, takes the fastest, tries one idea
 * after the other on the best kernel so far, tunes it, and stops.
 *
 *   search = { plugin = "greedy"; first = 4; steps = 3; };
 *
 * 1. Describe the options: the one source of validation, defaults and `rung plugin info`.
 * 2. Keep what the options say in create(); free it in destroy().
 * 3. In decide(): read the history, never the clock or chance, so that the same history gives the
 *    same actions. Here the number of earlier decisions says which step it is.
 * 4. Put the actions into the call's arena. There is always one; the last is STOP with a reason.
 * 5. Describe the factory and the plugin, and export the one entry point.
 */
#include <rung/search.h>
#include <stdio.h>
#include <stdlib.h>

struct greedy {
    const struct rung_host *host;
    uint32_t first, steps;
};

/* 1 */
static const struct rung_option opt_first = {
    .struct_size = sizeof opt_first, .type = RUNG_OPT_INT, .name = "first", .default_text = "4",
    .min = 1, .max = 64, .summary = "First kernels to choose from."};
static const struct rung_option opt_steps = {
    .struct_size = sizeof opt_steps, .type = RUNG_OPT_INT, .name = "steps", .default_text = "3",
    .min = 0, .max = 1000, .summary = "Ideas to try, one after the other."};
static const struct rung_option *const options[] = {&opt_first, &opt_steps, NULL};

/* 2 */
static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct greedy *greedy = calloc(1, sizeof *greedy);
    if (!greedy) {
        error->code = RUNG_ENOMEM;
        snprintf(error->message, sizeof error->message, "no memory");
        return RUNG_ENOMEM;
    }
    greedy->host = host;
    greedy->first = (uint32_t)host->opt_int(host, set, "first");
    greedy->steps = (uint32_t)host->opt_int(host, set, "steps");
    *self = greedy;
    return RUNG_OK;
}

/* The fastest accepted candidate, or NULL; untimed ones count as slowest, equals keep their order.
 */
static const struct rung_candidate *best(const struct rung_history *history)
{
    const struct rung_candidate *pick = NULL;
    for (uint32_t n = 1; n <= history->n_candidates; ++n) {
        const struct rung_candidate *c = history->candidate(history, n);
        if (!c || c->state != RUNG_CANDIDATE_ACCEPTED)
            continue;
        if (!pick || (c->time_kind && (!pick->time_kind || c->time_ns < pick->time_ns)))
            pick = c;
    }
    return pick;
}

/* 3: even decisions ask for an idea, odd ones build it; after the steps comes tuning, then the end.
 */
static void choose(const struct greedy *greedy, const struct rung_history *history,
                   struct rung_action *action)
{
    const struct rung_candidate *pick = best(history);
    const uint32_t decision = history->decisions; /* 0 for the first */
    action->struct_size = sizeof *action;
    action->count = 1;
    action->n_parents = pick != NULL;
    action->parents[0] = pick ? pick->number : 0;
    if (decision == 0) {
        action->kind = RUNG_ACTION_IMPLEMENT;
        action->count = greedy->first;
    } else if (!pick) {
        action->kind = RUNG_ACTION_STOP;
        action->note = "none of the first kernels is right";
    } else if (decision <= 2 * greedy->steps && decision % 2 == 1) {
        action->kind = RUNG_ACTION_IDEAS;
    } else if (decision <= 2 * greedy->steps && history->n_ideas) {
        action->kind = RUNG_ACTION_IMPLEMENT;
        action->idea = history->n_ideas; /* the newest */
    } else if (decision <= 2 * greedy->steps + 1 && pick->n_tried < pick->n_points) {
        const uint32_t left = pick->n_points - pick->n_tried;
        action->kind = RUNG_ACTION_TUNE;
        action->count = left < 64 ? left : 64;
    } else {
        action->kind = RUNG_ACTION_STOP;
        action->note = "all steps are done";
    }
}

/* 4 */
static int32_t decide(void *self, struct rung_call *call, const struct rung_history *history,
                      const struct rung_event *events, uint32_t n_events,
                      const struct rung_action **actions, uint32_t *n_actions)
{
    const struct greedy *greedy = self;
    struct rung_action *action = greedy->host->alloc(greedy->host, call->arena, sizeof *action, 16);
    (void)events;
    (void)n_events;
    if (!action) {
        call->error->code = RUNG_ENOMEM;
        snprintf(call->error->message, sizeof call->error->message, "no memory for an action");
        return RUNG_ENOMEM;
    }
    choose(greedy, history, action);
    *actions = action;
    *n_actions = 1;
    return RUNG_OK;
}

/* 5 */
static const struct rung_search_ops ops = {.struct_size = sizeof ops, .decide = decide};
static const struct rung_factory factory = {
    .struct_size = sizeof factory, .thread_model = RUNG_SERIAL_INSTANCE, .kind = RUNG_KIND_SEARCH,
    .name = "greedy", .summary = "One idea at a time on the best kernel so far.",
    .options = options, .ops = &ops, .create = create, .destroy = free};
static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC, .struct_size = sizeof plugin, .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT, .id = "org.example.greedy", .version = "1.0",
    .vendor = "example", .licence = "Apache-2.0", .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
