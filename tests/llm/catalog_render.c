/*
 * catalog_render TASK.cfg FOLDER BRANCH: asks the catalog for all its ideas on a task and for the
 * kernel of each, as the engine asks, and leaves them in FOLDER as FAMILY.STEM.cu. BRANCH varies
 * the kernels. Prints the number of kernels. catalog_kernels.py judges them with `rung eval`.
 */
#include "harness.h"

#include "config/config.h"
#include "task/task.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct model model;

static const struct rung_task *read_task(const char *path)
{
    struct rung_diags diags = {0};
    struct rung_node *root = rung_config_task(model.arena, path, &diags);
    const struct rung_task *task = root ? rung_task_read(model.arena, root, &diags) : NULL;
    if (!task)
        fprintf(stderr, "%s\n", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    return task;
}

static const char *ask(const char *role, const char *key, const char *user)
{
    if (model_ask(&model, role, key, 0, user) == RUNG_OK)
        return model_text(&model);
    fprintf(stderr, "%s\n", model.error.message);
    exit(1);
}

/* Writes the kernel of one idea into the folder. */
static void put_kernel(const char *folder, const char *contract, const char *idea, size_t n,
                       const char *branch)
{
    const char *user = rung_arena_printf(
        model.arena,
        "## Task\n\n```\n%s```\n\n## Parent\n\n```cuda\nint x;\n```\n\n## Idea\n\n%.*s\n", contract,
        (int)n, idea);
    const char *reply = ask("code", rung_arena_printf(model.arena, "code/%s/0", branch), user);
    const char *open = strstr(reply, "```cuda\n");
    char family[64], stem[64];
    if (!open || sscanf(open, "```cuda\n// catalog: %63[^/]/%63s", family, stem) != 2) {
        fprintf(stderr, "no kernel for '%.*s'\n", (int)n, idea);
        exit(1);
    }
    open += strlen("```cuda\n");
    const char *close = strstr(open, "\n```");
    FILE *file = fopen(rung_arena_printf(model.arena, "%s/%s.%s.cu", folder, family, stem), "w");
    if (!file || !close || fwrite(open, (size_t)(close - open) + 1, 1, file) != 1 ||
        fclose(file) != 0) {
        perror(folder);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4 || model_open(&model, "catalog", "{}") != RUNG_OK)
        return 2;
    const struct rung_task *task = read_task(argv[1]);
    if (!task)
        return 2;
    const char *contract = rung_task_contract(model.arena, task);
    const char *ideas = ask(
        "ideas", "ideas/1/0",
        rung_arena_printf(model.arena, "## Task\n\n```\n%s```\n\nPropose 64 ideas.\n", contract));
    int count = 0;
    for (const char *line = strstr(ideas, "- ["); line; line = strstr(line + 1, "\n- [")) {
        const char *idea = strstr(line, "] ") + 2;
        put_kernel(argv[2], contract, idea, strcspn(idea, "\n"), argv[3]);
        ++count;
    }
    printf("%d\n", count);
    model_close(&model);
    return 0;
}
