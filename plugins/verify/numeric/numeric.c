/*
 * verifier "numeric": is the variant right? Runs it on the task's shapes and on awkward ones, on
 * the task's inputs and on inputs that break unstable arithmetic, and compares every output with
 * the reference. See judge.c for the order of verdicts.
 */
#include "numeric.h"

#include <stdlib.h>

static const struct rung_option seed_option = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "seed",
    .default_text = "1",
    .summary = "Decides the hidden shapes and all draws; the same seed gives the same check"};
static const struct rung_option seeds_option = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "seeds",
    .default_text = "2",
    .min = 1,
    .max = 100,
    .summary = "Draws of the task's own inputs at every shape of the task"};
static const struct rung_option shapes_option = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "shapes",
    .default_text = "6",
    .min = 0,
    .max = 64,
    .unit = "shapes",
    .summary = "Awkward shapes that the verifier adds where the task asks for all dims"};
static const struct rung_option max_elements_option = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "max_elements",
    .default_text = "0",
    .min = 0,
    .max = 1e15,
    .unit = "elements",
    .summary = "Most work of one case, in elements or half the operations; 0: 4194304 on an "
               "interpreter, no limit on a GPU"};
static const struct rung_option tolerance_option = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_FLOAT,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "tolerance",
    .default_text = "1.0",
    .min = 0.001,
    .max = 1e6,
    .summary = "Factor on the error that honest arithmetic explains"};
static const struct rung_option whole_option = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "whole",
    .default_text = "2000000000",
    .min = 0,
    .max = 1e15,
    .unit = "operations",
    .summary =
        "Work of one case up to which outputs are compared whole; beyond it, or 1/32 as many "
        "elements, rows and tiles are"};
static const struct rung_option *const options[] = {
    &seed_option,  &seeds_option, &shapes_option, &max_elements_option, &tolerance_option,
    &whole_option, NULL};

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *err, void **self)
{
    struct numeric_self *s = calloc(1, sizeof *s);
    if (!s) {
        err->code = RUNG_ENOMEM;
        return RUNG_ENOMEM;
    }
    s->host = host;
    s->seed = (uint64_t)host->opt_int(host, set, "seed");
    s->seeds = (uint32_t)host->opt_int(host, set, "seeds");
    s->shapes = (uint32_t)host->opt_int(host, set, "shapes");
    s->max_elements = (uint64_t)host->opt_int(host, set, "max_elements");
    s->tolerance = host->opt_float(host, set, "tolerance");
    s->whole = (double)host->opt_int(host, set, "whole");
    *self = s;
    return RUNG_OK;
}

static void destroy(void *self)
{
    free(self);
}

static int32_t check(void *self, struct rung_call *call, const struct rung_session *session,
                     struct rung_verdict *out)
{
    struct numeric_check k = {
        .self = self, .call = call, .session = session, .out = out, .share = 1};
    return numeric_judge(&k);
}

static const struct rung_verifier_ops verifier_ops = {
    .struct_size = sizeof(struct rung_verifier_ops), .check = check};

static const struct rung_factory factory = {
    .struct_size = sizeof(struct rung_factory),
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_VERIFIER,
    .name = "numeric",
    .summary = "Compares outputs with the float64 reference at many shapes and inputs",
    .doc =
        "Passes when the error of every output is one that honest arithmetic of the task's\n"
        "precision explains. Draws the task's inputs at its bench and extra shapes and at\n"
        "awkward and aligned shapes of its own (unless the task fixes the shapes), then inputs\n"
        "with an offset, of large and of small scale, with equal rows and with single peaks. An\n"
        "input with one element a row, at the task's shapes, shows arithmetic of too few bits.\n"
        "Also runs the plan many times in a row, one case twice with the same inputs, and\n"
        "others on top of what earlier runs left in variables. Outputs whose reference would\n"
        "take too long are compared in rows and tiles.",
    .options = options,
    .ops = &verifier_ops,
    .create = create,
    .destroy = destroy,
};

static const struct rung_factory *const factories[] = {&factory, NULL};

static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC,
    .struct_size = sizeof(struct rung_plugin),
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.verifier.numeric",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
