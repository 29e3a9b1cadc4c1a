/*
 * Outputs of timed launches against the reference: of samples that no kernel can know beforehand,
 * and always of the last one.
 */
#include "session/private.h"

#include "base/io.h"

#include <inttypes.h>
#include <sys/random.h>

/* On the host: an output of more elements is compared in lines of at most LINE of them. */
enum { WHOLE = 1 << 16, LINE = 2048, LINES = WHOLE / LINE };

uint32_t verify_random(uint32_t n)
{
    uint64_t word = 0;
    if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word)
        word = rung_now_ns();
    return n ? (uint32_t)(word % n) : 0;
}

void verify_choose(uint32_t n_samples, uint32_t wanted, uint8_t *marks)
{
    wanted = wanted < n_samples ? wanted : n_samples;
    marks[n_samples - 1] = 1;
    /* Floyd's choice of wanted - 1 of the first n_samples - 1. */
    for (uint32_t last = n_samples - wanted; last < n_samples - 1; last++) {
        uint32_t at = verify_random(last + 1);
        marks[marks[at] ? last : at] = 1;
    }
}

static void add(struct rung_comparison *to, const struct rung_comparison *part)
{
    if (part->n_bad && !to->n_bad) {
        to->first_bad = part->first_bad;
        to->first_got = part->first_got;
        to->first_want = part->first_want;
    }
    to->n += part->n;
    to->n_bad += part->n_bad;
    to->n_unwritten += part->n_unwritten;
    to->n_nan += part->n_nan;
    to->n_inf += part->n_inf;
}

/* A piece of a line of the output, anywhere. */
static struct rung_region piece(const struct slot *s)
{
    struct rung_region r = {.struct_size = sizeof r, .n_dims = s->n_dims};
    for (uint32_t d = 0; d < s->n_dims; d++) {
        bool last = d + 1 == s->n_dims;
        uint32_t extent = s->shape[d] < INT32_MAX ? (uint32_t)s->shape[d] : INT32_MAX;
        r.count[d] = last && extent > LINE ? LINE : last ? extent : 1;
        r.start[d] = verify_random(extent - (uint32_t)r.count[d] + 1);
    }
    return r;
}

static int32_t compare_pieces(struct run *run, struct rung_call *call, uint32_t tensor,
                              struct rung_comparison *out)
{
    int32_t status = RUNG_OK;
    *out = (struct rung_comparison){.struct_size = sizeof *out, .tensor = tensor};
    for (uint32_t i = 0; i < LINES && status == RUNG_OK; i++) {
        struct rung_region region = piece(&run->slots[tensor]);
        struct rung_comparison part = {.struct_size = sizeof part};
        status =
            session_compare_region(&run->session->table, call, &run->pub, tensor, &region, &part);
        add(out, &part);
    }
    return status;
}

static int32_t compare_one(struct run *run, struct rung_call *call, uint32_t tensor,
                           struct rung_comparison *out)
{
    const struct rung_session *table = &run->session->table;
    int32_t status = session_compare_fast(table, call, &run->pub, tensor, out);
    if (status != RUNG_EUNSUPPORTED && status != RUNG_ENOMEM)
        return status;
    *call->error = rung_error_init();
    return run->slots[tensor].elements > WHOLE
               ? compare_pieces(run, call, tensor, out)
               : session_compare(table, call, &run->pub, tensor, out);
}

/* What is wrong, for the one who wrote the kernel. */
static void tell(struct run *run, const struct rung_comparison *c, uint32_t sample,
                 uint32_t n_samples)
{
    const char *name = run->slots[c->tensor].name;
    const char *code = c->n_unwritten         ? "output.unwritten"
                       : c->n_nan || c->n_inf ? "output.nonfinite"
                                              : "numeric.mismatch";
    if (c->n_unwritten)
        fault_set(&run->pub.fault, code, "", 0,
                  "in the timed launches (sample %u of %u): %" PRIu64 " of %" PRIu64
                  " compared elements of %s were never written, the first is %" PRIu64
                  "; every launch must write its outputs itself, whatever it did before",
                  sample + 1, n_samples, c->n_unwritten, c->n, name, c->first_bad);
    else
        fault_set(&run->pub.fault, code, "", 0,
                  "in the timed launches (sample %u of %u): element %" PRIu64
                  " of %s is %.9g, expected %.9g; %" PRIu64 " of %" PRIu64
                  " compared elements are wrong. Inputs are new in every launch: nothing kept from "
                  "an earlier one is of use",
                  sample + 1, n_samples, c->first_bad, name, c->first_got, c->first_want, c->n_bad,
                  c->n);
}

int32_t verify_sample(struct run *run, struct rung_call *call, uint32_t sample, uint32_t n_samples)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < run->session->spec.task->n_tensors && status == RUNG_OK; i++) {
        struct rung_comparison c = {.struct_size = sizeof c};
        if (!slot_is_output(&run->slots[i]) || !run->slots[i].elements)
            continue;
        status = compare_one(run, call, i, &c);
        if (status == RUNG_OK && c.n_bad)
            tell(run, &c, sample, n_samples);
        if (fault_is(&run->pub.fault))
            return status;
    }
    run->pub.n_verified += status == RUNG_OK;
    return status;
}
