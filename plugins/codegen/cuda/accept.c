/*
 * From code to a candidate: the plan is taken from the //@ lines, from lines that slipped, from
 * host code, from the parent, or from the kernel's own indices, in this order; then host code is
 * taken out and the bundle made. See reading.h.
 */
#include "ask.h"
#include "host/planlines.h"
#include "reading.h"
#include "source.h"
#include <stdlib.h>
#include <string.h>

/* ---- Work under the pool's limits ----------------------------------------------------------- */

enum work { WORK_FIND, WORK_REPAIR, WORK_TRANSLATE, WORK_INFER, WORK_STRIP, WORK_PYTHON };

struct job {
    struct cg_reading *r;
    enum work work;
    const char *a, *b, *c; /* texts to work on */
    bool in_code;
    struct cg_found_plan found;
    struct cg_translation translation;
    const char *text;
};

static void work(void *ctx)
{
    struct job *j = ctx;
    struct cg_pool *p = &j->r->pool;
    switch (j->work) {
    case WORK_FIND:
        j->found = cg_find_plan(p, j->a, j->in_code);
        break;
    case WORK_REPAIR:
        j->text = cg_repair(p, j->r->task, j->a, j->b);
        break;
    case WORK_TRANSLATE:
        j->translation = cg_translate(p, j->r->task, j->a, j->b, j->c);
        break;
    case WORK_INFER:
        j->translation = cg_infer(p, j->r->task, j->a, j->b);
        break;
    case WORK_STRIP:
        j->text = cg_has_host_code(p, j->a) ? cg_strip(p, j->a) : NULL;
        break;
    case WORK_PYTHON:
        j->text = cg_python_source(p, j->a);
        break;
    }
}

/* Does the job. What was too complex has no result. false when memory is out. */
static bool run(struct job *j)
{
    struct job empty = {
        .r = j->r, .work = j->work, .a = j->a, .b = j->b, .c = j->c, .in_code = j->in_code};
    enum cg_end end = cg_guard(&j->r->pool, work, j);
    if (end != CG_DONE)
        *j = empty;
    if (end == CG_TOO_COMPLEX)
        j->translation.problem = "it is too long or too deeply nested to be read";
    return end != CG_MEMORY;
}

/* ---- The bundle ----------------------------------------------------------------------------- */

static int32_t no_memory(struct cg_reading *r)
{
    return cg_no_memory(r->call->error);
}

/* The source without its host code, or as it is when it has none. NULL: memory is out. */
static const char *stripped(struct cg_reading *r, const char *source, bool *changed)
{
    struct job j = {.r = r, .work = WORK_STRIP, .a = source};
    if (!run(&j))
        return NULL;
    *changed = j.text != NULL;
    return j.text ? j.text : source;
}

static char *joined(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    char *text = malloc(n + m + 1);
    if (text) {
        memcpy(text, a, n);
        memcpy(text + n, b, m + 1);
    }
    return text;
}

/* Sets out->bundle to plan lines and source, without host code. */
static int32_t make_bundle(struct cg_reading *r, const struct cg_candidate *c, const char *plan,
                           const char *source)
{
    struct rung_bundle *bundle = r->host->alloc(r->host, r->call->arena, sizeof(*bundle), 16);
    struct rung_file *files =
        r->host->alloc(r->host, r->call->arena, (c->n_files + 1) * sizeof(*files), 16);
    bool changed = false, any = false;
    for (uint32_t i = 0; bundle && files && i <= c->n_files; i++) {
        const char *text = stripped(r, i ? c->files[i - 1].text.ptr : source, &changed);
        char *whole = text ? joined(i ? "" : plan, text) : NULL;
        const char *path = i ? c->files[i - 1].path : c->path;
        if (!whole)
            return no_memory(r);
        any |= changed;
        files[i] = (struct rung_file){.struct_size = sizeof(*files)};
        files[i].text = cg_keep(r->host, r->call->arena, whole, strlen(whole));
        files[i].path = cg_keep(r->host, r->call->arena, path, strlen(path)).ptr;
        free(whole);
        if (!files[i].text.ptr || !files[i].path)
            return no_memory(r);
    }
    if (!bundle || !files)
        return no_memory(r);
    if (any)
        fprintf(r->note.file, "Took host code out. ");
    *bundle = (struct rung_bundle){.struct_size = sizeof(*bundle),
                                   .n_files = c->n_files + 1,
                                   .language = "cuda",
                                   .files = files};
    r->out->bundle = bundle;
    return RUNG_OK;
}

/* The plan of the bundle's entry file, as the host reads it; NULL with *problem. */
static int32_t parse(struct cg_reading *r, const struct rung_plan **plan, struct rung_text *problem)
{
    const struct rung_host_plan *plans = r->host->get_extension(r->host, RUNG_HOST_PLAN);
    const struct rung_file *entry = &r->out->bundle->files[r->out->bundle->entry];
    *plan = NULL;
    *problem = (struct rung_text){"", 0};
    if (!plans)
        return cg_fail(r->call->error, RUNG_EUNSUPPORTED, "codegen.no_plan",
                       "this process has no plan reader");
    return plans->parse(r->host, r->call, r->task, entry->path, entry->text, plan, problem);
}

/* Whether plan lines and source make a candidate; the result is then filled. */
static int32_t try_plan(struct cg_reading *r, const struct cg_candidate *c, const char *plan,
                        const char *source, bool *good, struct rung_text *problem)
{
    *good = false;
    int32_t status = make_bundle(r, c, plan, source);
    if (status == RUNG_OK)
        status = parse(r, &r->out->plan, problem);
    if (status != RUNG_OK)
        return status;
    *good = r->out->plan != NULL;
    if (*good)
        r->out->code[0] = '\0';
    return RUNG_OK;
}

/* ---- Sources of plans ----------------------------------------------------------------------- */

/* Tells the plan in the note, so that people see what was made of host code. */
static void echo(struct cg_reading *r, const char *how, const char *plan)
{
    fprintf(r->note.file, "%s", how);
    for (const char *line = plan; *line;) {
        size_t n = strcspn(line, "\n");
        fprintf(r->note.file, "%s%.*s", line > plan ? "; " : "", (int)(n > 4 ? n - 4 : 0),
                line + (n > 4 ? 4 : 0));
        line += n + (line[n] != '\0');
    }
    fprintf(r->note.file, ". ");
}

/* Lines that slipped: in the code, else in the text around it; repaired and put at the head. */
static int32_t try_slips(struct cg_reading *r, const struct cg_candidate *c, bool *good,
                         struct rung_text *problem)
{
    struct job code = {.r = r, .work = WORK_FIND, .a = c->source, .in_code = true};
    struct job text = {.r = r, .work = WORK_FIND, .a = c->prose};
    *good = false;
    if (!run(&code) || !run(&text))
        return no_memory(r);
    bool in_code = code.found.launches;
    const char *plan = in_code ? code.found.plan : text.found.launches ? text.found.plan : NULL;
    const char *rest = code.found.rest ? code.found.rest : c->source;
    if (!plan)
        return RUNG_OK;
    struct job repair = {.r = r, .work = WORK_REPAIR, .a = plan, .b = rest};
    if (!run(&repair))
        return no_memory(r);
    const char *const tries[] = {plan, repair.text};
    for (int i = 0; i < 2 && !*good; i++) {
        int32_t status = tries[i] ? try_plan(r, c, tries[i], rest, good, problem) : RUNG_OK;
        if (status != RUNG_OK)
            return status;
        if (*good)
            echo(r, i ? "Repaired the plan: " : "Took the plan: ", tries[i]);
    }
    return RUNG_OK;
}

static int32_t try_translation(struct cg_reading *r, const struct cg_candidate *c, bool *good,
                               const char **why)
{
    struct rung_text problem;
    char *code = joined(c->source, "\n");
    for (uint32_t i = 0; code && i < c->n_files; i++) { /* headers stand before their users */
        char *with = joined("\n", code);
        free(code);
        code = with ? joined(c->files[i].text.ptr, with) : NULL;
        free(with);
    }
    if (!code)
        return no_memory(r);
    struct job j = {.r = r, .work = WORK_TRANSLATE, .a = code, .b = c->host, .c = c->python};
    bool done = run(&j);
    free(code);
    *good = false;
    *why = j.translation.snippet ? NULL : j.translation.problem;
    if (!done)
        return no_memory(r);
    if (!j.translation.plan)
        return RUNG_OK;
    int32_t status = try_plan(r, c, j.translation.plan, c->source, good, &problem);
    if (status == RUNG_OK && *good) {
        fprintf(r->note.file, "%s", j.translation.note);
        echo(r, "Read the launches of the host code as: ", j.translation.plan);
    }
    *why = *good ? NULL : "the plan that its host code comes to is not valid";
    return status;
}

/* The parent's plan lines, when all kernels that they launch have the same signatures. */
static int32_t try_parent(struct cg_reading *r, const struct cg_candidate *c, bool *good)
{
    const struct rung_bundle *parent = r->req->parent;
    struct rung_text problem;
    *good = false;
    if (!parent || parent->entry >= parent->n_files)
        return RUNG_OK;
    const char *old = parent->files[parent->entry].text.ptr;
    if (!cg_same_signatures(old, c->source))
        return RUNG_OK;
    struct job j = {.r = r, .work = WORK_FIND, .a = old, .in_code = true};
    if (!run(&j))
        return no_memory(r);
    if (!j.found.launches)
        return RUNG_OK;
    int32_t status = try_plan(r, c, j.found.plan, c->source, good, &problem);
    if (status == RUNG_OK && *good)
        fprintf(r->note.file, "Kept the parent's plan: the kernels' signatures are the same. ");
    return status;
}

static int32_t try_inference(struct cg_reading *r, const struct cg_candidate *c, bool *good,
                             const char **why)
{
    struct job j = {.r = r, .work = WORK_INFER, .a = c->source, .b = c->prose};
    struct rung_text problem;
    *good = false;
    if (!run(&j))
        return no_memory(r);
    *why = j.translation.problem;
    if (!j.translation.plan)
        return RUNG_OK;
    int32_t status = try_plan(r, c, j.translation.plan, c->source, good, &problem);
    if (status == RUNG_OK && *good)
        echo(r, "No plan was given; took ", j.translation.plan);
    return status;
}

/* ---- All in turn ---------------------------------------------------------------------------- */

static int32_t unclear(struct cg_reading *r, const struct cg_candidate *c, const char *why)
{
    int32_t status = make_bundle(r, c, "", c->source);
    r->out->plan = NULL;
    return status == RUNG_OK ? cg_ask_for_plan(r, c->source, why) : status;
}

int32_t cg_accept(struct cg_reading *r, const struct cg_candidate *c)
{
    struct rung_text problem = {"", 0}, first = {"", 0};
    const char *why = NULL, *also = NULL;
    bool good = false;
    size_t at = 0, name, n;
    bool plain = cg_next_launch(c->source, &at, &name, &n);
    int32_t status = plain ? try_plan(r, c, "", c->source, &good, &first) : RUNG_OK;
    if (status != RUNG_OK || good)
        return status;
    status = try_slips(r, c, &good, &problem);
    if (status != RUNG_OK || good)
        return status;
    if (plain)
        return cg_tell_plan_problem(r, first);
    if (problem.len)
        return cg_tell_plan_problem(r, problem);
    status = try_translation(r, c, &good, &why);
    if (status == RUNG_OK && !good && !why)
        status = try_parent(r, c, &good);
    if (status == RUNG_OK && !good && !why)
        status = try_inference(r, c, &good, &also);
    if (status != RUNG_OK || good)
        return status;
    return unclear(r, c, why ? why : also);
}

int32_t cg_join_plan(struct cg_reading *r, const char *text, const char *around)
{
    const struct rung_bundle *base = r->req->base;
    const struct rung_file *entry = &base->files[base->entry];
    struct rung_file *files =
        r->host->alloc(r->host, r->call->arena, (base->n_files + 1) * sizeof(*files), 16);
    struct job old = {.r = r, .work = WORK_FIND, .a = entry->text.ptr, .in_code = true};
    struct rung_text problem = {"", 0};
    bool good = false;
    if (!files || !run(&old))
        return no_memory(r);
    struct cg_candidate c = {.path = entry->path,
                             .source = old.found.rest ? old.found.rest : entry->text.ptr,
                             .files = files,
                             .host = around,
                             .python = "",
                             .prose = text};
    for (uint32_t i = 0; i < base->n_files; i++)
        if (i != base->entry)
            files[c.n_files++] = base->files[i];
    int32_t status = try_slips(r, &c, &good, &problem);
    if (status != RUNG_OK || good)
        return status;
    if (problem.len)
        return cg_tell_plan_problem(r, problem);
    const char *why = NULL;
    status = try_translation(r, &c, &good, &why);
    if (status != RUNG_OK || good)
        return status;
    return unclear(r, &c, why ? why : "the reply has no `//@ launch` line");
}

bool cg_code_of_python(struct cg_reading *r, const char *python, const char **code)
{
    struct job j = {.r = r, .work = WORK_PYTHON, .a = python};
    bool good = run(&j);
    *code = j.text ? j.text : "";
    return good;
}
