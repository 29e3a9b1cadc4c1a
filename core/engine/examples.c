/* Kernels that show a model how a candidate looks, for prompts that start from nothing. */
#include "base/status.h"
#include "engine/engine.h"

enum { EXAMPLE_MAX = 64 << 10 };

static void add(struct rung_buf *out, const struct rung_example *example)
{
    if (!example->title || !example->source.ptr || example->source.len > EXAMPLE_MAX)
        return;
    rung_buf_printf(out, "%s (%s):\n\n```cuda\n", example->title,
                    example->same_task ? "of this task" : "of another task");
    rung_buf_add(out, example->source.ptr, example->source.len);
    rung_buf_puts(out, "\n```\n\n");
}

static int32_t ask(struct engine *e, uint32_t index, struct rung_buf *out, struct rung_error *err)
{
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        return rung_fail(err, RUNG_ENOMEM, "", "out of memory");
    struct rung_call call = {
        .struct_size = sizeof call, .arena = arena, .cancel = e->cancel, .error = err};
    const struct rung_example *list = NULL;
    uint32_t n = 0, most = e->pipeline->examples[index].count;
    int32_t status;
    RUNG_INVOKE(status, e->example_sources[index], struct rung_examples_ops, examples, &call,
                e->task, most, &list, &n);
    for (uint32_t i = 0; !status && list && i < n && i < most; i++)
        add(out, &list[i]);
    rung_arena_free(arena);
    return status;
}

int32_t engine_examples_read(struct engine *e, struct rung_error *err)
{
    struct rung_buf text = {0};
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < e->pipeline->n_examples && !status; i++)
        status = ask(e, i, &text, err);
    e->examples = text.len ? rung_arena_printf(e->arena, "## Examples\n\n%s", text.ptr) : "";
    rung_buf_free(&text);
    return status;
}
