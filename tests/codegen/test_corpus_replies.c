/*
 * Codegen "cuda" over tests/replies: what models write, each with what must come out of it. One
 * line a reply that came out otherwise, and a total by style. Arguments name replies to look at
 * closely.
 */
#include "codegen/corpus_plan.h"
#include "codegen/harness.h"
#include "config/config.h"
#include <dirent.h>
#include <rung/codegen.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_REPLIES = 1024, MAX_STYLES = 40 };

static struct harness h;
static const char *const *only;
static int n_only;

struct style {
    const char *name;
    int total, good, sound, plan_errors;
};

static struct style styles[MAX_STYLES];

static struct style *style_of(const char *name)
{
    int i = 0;
    while (i < MAX_STYLES - 1 && styles[i].name && strcmp(styles[i].name, name) != 0)
        i++;
    if (!styles[i].name)
        styles[i].name = strdup(name);
    return &styles[i];
}

static const char *text_at(const struct rung_node *cfg, const char *key)
{
    const struct rung_node *n = rung_node_get(cfg, key);
    return n && n->type == RUNG_NODE_STRING ? n->s : NULL;
}

static const struct rung_node *load(const char *path)
{
    struct rung_diags diags = {0};
    const struct rung_node *node = rung_config_load(h.arena, path, &diags);
    if (!node)
        fail_msg("%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    return node;
}

static const struct rung_task *load_task(const char *name)
{
    struct rung_diags diags = {0};
    char *path = rung_arena_printf(h.arena, "%s/tasks/%s.cfg", REPLIES, name);
    const struct rung_task *task = rung_task_read(h.arena, load(path), &diags);
    if (!task)
        fail_msg("%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    return task;
}

static struct rung_text read_text(const char *path)
{
    struct rung_text text;
    if (rung_read_file(h.arena, path, 4 << 20, &text, &h.error) != RUNG_OK)
        fail_msg("%s: %s", path, h.error.message);
    return text;
}

static const struct rung_bundle *load_parent(const char *name)
{
    static struct rung_file file;
    static struct rung_bundle bundle;
    file = (struct rung_file){.struct_size = sizeof(file), .path = "parent.cu"};
    file.text = read_text(rung_arena_printf(h.arena, "%s/%s", REPLIES, name));
    bundle = (struct rung_bundle){
        .struct_size = sizeof(bundle), .n_files = 1, .language = "cuda", .files = &file};
    return &bundle;
}

/* All files of the bundle, without plan lines. */
static const char *code_of(const struct rung_bundle *bundle)
{
    struct rung_buf out = {0};
    for (uint32_t i = 0; bundle && i < bundle->n_files; i++)
        for (const char *line = bundle->files[i].text.ptr; *line;) {
            size_t n = strcspn(line, "\n");
            if (strncmp(line + strspn(line, " \t"), "//@", 3) != 0)
                rung_buf_add(&out, line, n);
            rung_buf_putc(&out, '\n');
            line += n + (line[n] != '\0');
        }
    char *text = rung_arena_strdup(h.arena, rung_buf_text(&out));
    rung_buf_free(&out);
    return text;
}

static bool check_texts(const struct rung_node *cfg, const char *key, const char *code, bool wanted,
                        struct rung_buf *why)
{
    const struct rung_node *list = rung_node_get(cfg, key);
    bool good = true;
    for (const struct rung_node *n = list ? list->first : NULL; n; n = n->next) {
        const char *colon = strrchr(n->s, ':');
        const char *text = !strcmp(key, "kernels") && colon ? colon + 1 : n->s;
        if ((strstr(code, text) != NULL) != wanted) {
            rung_buf_printf(why, "%s %s; ", wanted ? "lacks" : "has", n->s);
            good = false;
        }
    }
    return good;
}

static bool check(const struct rung_node *cfg, const struct rung_task *task,
                  const struct rung_reply_result *r, struct rung_buf *why)
{
    const char *outcome = text_at(cfg, "outcome"), *code = code_of(r->bundle);
    const struct rung_node *plan = rung_node_get(cfg, "plan"), *at = rung_node_get(cfg, "at_dims");
    if (strcmp(!strcmp(outcome, "ok") ? "" : outcome, r->code) != 0) {
        rung_buf_printf(why, "%s: %.300s", r->code[0] ? r->code : "ok",
                        r->code[0] ? r->message.ptr : r->note.ptr);
        return false;
    }
    if (r->code[0])
        return true;
    bool good = check_texts(cfg, "kernels", code, true, why);
    good &= check_texts(cfg, "present", code, true, why);
    good &= check_texts(cfg, "absent", code, false, why);
    good = good && (!plan || corpus_same_plan(h.arena, task, r->plan, plan, why));
    for (const struct rung_node *n = at ? at->first : NULL; n; n = n->next)
        good &= corpus_launches(h.arena, task, r->plan, n, why);
    return good;
}

static bool is_named(const char *name)
{
    for (int i = 0; i < n_only; i++)
        if (!strcmp(only[i], name))
            return true;
    return false;
}

static void tell(const char *name, const struct rung_reply_result *r)
{
    printf("==== %s: %s\nnote: %s\nmessage: %s\n", name, r->code[0] ? r->code : "ok", r->note.ptr,
           r->message.ptr);
    for (uint32_t i = 0; r->bundle && i < r->bundle->n_files; i++)
        printf("---- %s\n%s\n", r->bundle->files[i].path, r->bundle->files[i].text.ptr);
}

/* Whether the reply came out as its .cfg says. */
static bool run(const char *name)
{
    struct rung_reply_result r = {.struct_size = sizeof(r)};
    struct rung_buf why = {0};
    int32_t status;
    rung_arena_reset(h.arena);
    harness_reset(&h);
    const struct rung_node *cfg = load(rung_arena_printf(h.arena, "%s/%s.cfg", REPLIES, name));
    const struct rung_task *task = load_task(text_at(cfg, "task"));
    const char *parent = text_at(cfg, "parent");
    struct rung_reply_request req = {
        .struct_size = sizeof(req),
        .task = task,
        .parent = parent ? load_parent(parent) : NULL,
        .reply = read_text(rung_arena_printf(h.arena, "%s/%s.md", REPLIES, name))};
    uint64_t start = rung_now_ns();
    RUNG_INVOKE(status, h.instance, struct rung_codegen_ops, read_reply, &h.call, &req, &r);
    uint64_t ms = (rung_now_ns() - start) / 1000000;
    if (status != RUNG_OK)
        fail_msg("%s: %d: %s", name, status, h.error.message);
    bool good = check(cfg, task, &r, &why);
    if (ms > 10000) {
        rung_buf_printf(&why, "%d ms", (int)ms);
        good = false;
    }
    if (is_named(name))
        tell(name, &r);
    if (!good)
        printf("%s: %s\n", name, rung_buf_text(&why));
    struct style *s = style_of(text_at(cfg, "style"));
    bool sound = rung_node_get(cfg, "sound")->b;
    s->total++;
    s->good += good;
    s->sound += sound;
    s->plan_errors += sound && !strcmp(r.code, "plan.error");
    rung_buf_free(&why);
    return good;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_cfg(const struct dirent *d)
{
    size_t n = strlen(d->d_name);
    return n > 4 && !strcmp(d->d_name + n - 4, ".cfg");
}

static void replies_come_out_as_written(void **state)
{
    (void)state;
    struct dirent **list;
    int n = scandir(REPLIES, &list, is_cfg, by_name), bad = 0, sound = 0, errors = 0;
    assert_true(n > 0 && n < MAX_REPLIES);
    for (int i = 0; i < n; i++) {
        char *name = strndup(list[i]->d_name, strlen(list[i]->d_name) - 4);
        if (!n_only || is_named(name))
            bad += !run(name);
        free(name);
        free(list[i]);
    }
    free(list);
    printf("%-16s %6s %6s %6s %11s\n", "style", "replies", "good", "sound", "plan.error");
    for (int i = 0; i < MAX_STYLES && styles[i].name; i++) {
        printf("%-16s %6d %6d %6d %11d\n", styles[i].name, styles[i].total, styles[i].good,
               styles[i].sound, styles[i].plan_errors);
        sound += styles[i].sound;
        errors += styles[i].plan_errors;
        free((void *)(uintptr_t)styles[i].name);
    }
    printf("%d of %d replies come out otherwise; %d of %d sound ones end in plan.error\n", bad, n,
           errors, sound);
    assert_int_equal(bad, 0);
    assert_true(errors * 50 <= sound);
}

static int setup(void **state)
{
    (void)state;
    return harness_open(&h, RUNG_KIND_CODEGEN, "cuda", "{}", true) == RUNG_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    harness_close(&h);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(replies_come_out_as_written)};
    only = (const char *const *)argv + 1;
    n_only = argc - 1;
    return cmocka_run_group_tests(tests, setup, teardown);
}
