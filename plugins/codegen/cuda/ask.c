/* What the model is told when the launch stayed unclear: see ask.h. */
#include "ask.h"
#include "source.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_EXAMPLES = 8 };

/* Whether a name of the source means something in a plan line of this task. */
static bool known_name(const struct rung_task *task, const char *name, size_t n)
{
    for (uint32_t i = 0; i < task->n_tensors; i++)
        if (strlen(task->tensors[i].name) == n && !memcmp(task->tensors[i].name, name, n))
            return true;
    for (uint32_t i = 0; i < task->n_dims; i++)
        if (strlen(task->dims[i].name) == n && !memcmp(task->dims[i].name, name, n))
            return true;
    for (uint32_t i = 0; i < task->n_params; i++)
        if (strlen(task->params[i].name) == n && !memcmp(task->params[i].name, name, n))
            return true;
    return false;
}

static void write_example(FILE *f, const struct rung_task *task, const char *source,
                          const char *mask, const struct cg_kernel *k)
{
    size_t at = k->params, name, n;
    fprintf(f, "//@ launch %.*s%s grid=(...) block=(256) args=(", (int)k->name_len,
            source + k->name, k->templated ? "<...>" : "");
    for (int i = 0; i < 64 && cg_next_param(mask, k, &at, &name, &n); i++) {
        bool known = known_name(task, source + name, n);
        fprintf(f, known ? "%s%.*s" : "%s<%.*s>", i ? ", " : "", (int)n, source + name);
    }
    fprintf(f, ")\n");
}

static void write_names(FILE *f, const struct rung_task *task)
{
    fprintf(f, "Put in place of what stands in <> a tensor (");
    for (uint32_t i = 0; i < task->n_tensors; i++)
        fprintf(f, "%s%s", i ? ", " : "", task->tensors[i].name);
    fprintf(f, "), a temp (`//@ temp name f32 [count]`) or an expression over ");
    for (uint32_t i = 0; i < task->n_dims; i++)
        fprintf(f, "%s, ", task->dims[i].name);
    for (uint32_t i = 0; i < task->n_params; i++)
        fprintf(f, "%s, ", task->params[i].name);
    fprintf(f, "sm_count and tunes. grid counts blocks, block counts threads.\n");
}

int32_t cg_ask_for_plan(struct cg_reading *r, const char *source, const char *why)
{
    struct cg_writer w;
    struct cg_kernel k;
    size_t at = 0, shown = 0;
    char *mask = cg_mask(source);
    if (!mask || !cg_open(&w)) {
        free(mask);
        return cg_no_memory(r->call->error);
    }
    fprintf(w.file, "The code is there, but not how to launch it");
    if (why)
        fprintf(w.file, " (host code is read and not run: %s)", why);
    fprintf(w.file, ". Send only the plan lines, one `//@ launch` line a launch, in order, in one "
                    "fenced block; the code is kept. For the kernels of this code:\n");
    while (shown < MAX_EXAMPLES && cg_next_kernel(mask, &at, &k)) {
        write_example(w.file, r->task, source, mask, &k);
        shown++;
    }
    if (!shown)
        fprintf(w.file, "//@ launch kernel grid=(...) block=(256) args=(...)\n");
    write_names(w.file, r->task);
    free(mask);
    return cg_finish_fault(r, "plan.error", &w);
}

int32_t cg_tell_plan_problem(struct cg_reading *r, struct rung_text problem)
{
    struct cg_writer w;
    if (!cg_open(&w))
        return cg_no_memory(r->call->error);
    fprintf(w.file,
            "The //@ lines are wrong:\n%s%sSend only the plan lines again, put right, in one "
            "fenced block; the code is kept.\n",
            problem.ptr, problem.len && problem.ptr[problem.len - 1] == '\n' ? "" : "\n");
    return cg_finish_fault(r, "plan.error", &w);
}
