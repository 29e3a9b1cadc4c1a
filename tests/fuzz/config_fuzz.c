/* libFuzzer: any text as a configuration file, as a task, a pipeline and a --set. */
#include "config/config.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libconfig 1.5 forgets the buffer of a string that a syntax error cuts short. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rung_arena *arena = rung_arena_new();
    struct rung_diags diags = {0};
    char *text = rung_arena_strndup(arena, (const char *)data, size);
    struct rung_node *root = rung_config_parse(arena, text, "fuzz.cfg", &diags);
    if (!root != (diags.n > 0))
        __builtin_trap();
    if (root) {
        struct rung_task_rest rest;
        const struct rung_task *task = rung_task_read_all(arena, root, &rest, &diags);
        double work = 1;
        if (task && rung_task_amount_at(task, &rest.flops, task->bench[0].dims, &work, NULL))
            __builtin_trap(); /* read_all has asked the same */
        rung_config_kind(root);
        rung_pipeline_read(arena, root, &diags);
        rung_config_set(arena, root, text, &diags);
        rung_config_merge(arena, root, rung_config_parse(arena, text, "again.cfg", &diags));
    }
    rung_diags_free(&diags);
    rung_arena_free(arena);
    return 0;
}
