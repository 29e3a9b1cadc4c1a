/* Plan lines made right: see translate.h. */
#include "host.h"
#include "translate.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum key {
    KEY_GRID,
    KEY_BLOCK,
    KEY_SHARED,
    KEY_ARGS,
    KEY_WHEN,
    KEY_CLUSTER,
    KEY_COOPERATIVE,
    N_KEYS
};

static const struct {
    const char *word;
    enum key key;
} key_words[] = {
    {"grid", KEY_GRID},
    {"griddim", KEY_GRID},
    {"grid_size", KEY_GRID},
    {"gridsize", KEY_GRID},
    {"grid_dim", KEY_GRID},
    {"blocks", KEY_GRID},
    {"block", KEY_BLOCK},
    {"blockdim", KEY_BLOCK},
    {"block_size", KEY_BLOCK},
    {"block_dim", KEY_BLOCK},
    {"threads", KEY_BLOCK},
    {"blocksize", KEY_BLOCK},
    {"shared", KEY_SHARED},
    {"shared_mem", KEY_SHARED},
    {"smem", KEY_SHARED},
    {"shmem", KEY_SHARED},
    {"sharedmem", KEY_SHARED},
    {"shared_memory", KEY_SHARED},
    {"dynamic_shared", KEY_SHARED},
    {"shared_bytes", KEY_SHARED},
    {"args", KEY_ARGS},
    {"arguments", KEY_ARGS},
    {"params", KEY_ARGS},
    {"arg", KEY_ARGS},
    {"when", KEY_WHEN},
    {"if", KEY_WHEN},
    {"condition", KEY_WHEN},
    {"cluster", KEY_CLUSTER},
    {"cooperative", KEY_COOPERATIVE},
};
enum { N_WORDS = sizeof(key_words) / sizeof(*key_words) };

enum { MAX_EXPRESSION = 1000 };

struct range {
    uint32_t from, to;
};

static int key_at(const struct cg_tokens *c, uint32_t i)
{
    const struct cg_token *t = &c->t[i], *next = &c->t[i < c->n ? i + 1 : i];
    for (size_t k = 0; t->kind == CG_NAME && k < N_WORDS; k++)
        if (strlen(key_words[k].word) == t->n && !strncasecmp(key_words[k].word, t->s, t->n) &&
            (cg_is(next, "=") || cg_is(next, ":") || key_words[k].key == KEY_COOPERATIVE))
            return (int)key_words[k].key;
    return -1;
}

/* One item as the plan writes it: an expression, a pointer, else the text as it stands. */
static const char *item_text(struct cg_host *h, uint32_t from, uint32_t to)
{
    const char *text = cg_tokens_text(h->pool, &h->code->t[from], &h->code->t[to]);
    if (strlen(text) > MAX_EXPRESSION) /* no slip: it is refused as it stands */
        return text;
    struct cg_value v = cg_eval_range(h, from, to);
    if (v.kind == CG_NUM)
        return cg_sym_text(h->pool, v.sym);
    if (v.kind == CG_TENSOR || v.kind == CG_POINTER) {
        const char *name = v.buffer ? v.buffer->name : "0";
        int64_t zero;
        if (!v.sym || (cg_sym_constant(v.sym, &zero) && zero == 0))
            return name;
        const struct cg_sym *element = cg_sym_int(h->pool, cg_dtype_bytes(v.buffer->dtype));
        const struct cg_sym *offset = cg_sym(h->pool, SYM_DIV, v.sym, element);
        if (offset)
            return cg_format(h->pool, "%s + %s", name, cg_sym_text(h->pool, offset));
    }
    return text;
}

/* The items of "(a, b)", "[a, b]", "dim3(a, b)" or "a, b" as texts with commas. */
static const char *list_text(struct cg_host *h, struct range r)
{
    uint32_t starts[CG_MAX_ARGS], ends[CG_MAX_ARGS];
    const struct cg_tokens *c = h->code;
    const char *text = "";
    while (r.to > r.from && (cg_is(&c->t[r.to - 1], ",") || cg_is(&c->t[r.to - 1], ";")))
        r.to--;
    if (r.from < r.to && cg_is(&c->t[r.from], "dim3"))
        r.from++;
    while (r.from < r.to && c->partner[r.from] == r.to - 1 && r.to - r.from >= 2) {
        r.from++;
        r.to--;
    }
    uint32_t n = cg_split_list(c, r.from, r.to, starts, ends, CG_MAX_ARGS);
    for (uint32_t k = 0; k < n; k++)
        text = cg_format(h->pool, "%s%s%s", text, k ? ", " : "", item_text(h, starts[k], ends[k]));
    return text;
}

/* kernel<<<grid, block, shared>>>(args) in place of keys. Returns what is behind. */
static uint32_t chevrons(struct cg_host *h, uint32_t i, const char *values[N_KEYS])
{
    static const enum key keys[] = {KEY_GRID, KEY_BLOCK, KEY_SHARED};
    uint32_t starts[8], ends[8], close = i + 1;
    const struct cg_tokens *c = h->code;
    while (close + 2 < c->n && !(cg_is(&c->t[close], ">") && cg_is(&c->t[close + 1], ">") &&
                                 cg_is(&c->t[close + 2], ">")))
        close = c->partner[close] > close ? c->partner[close] + 1 : close + 1;
    if (close + 2 >= c->n)
        return i;
    uint32_t n = cg_split_list(c, i + 1, close, starts, ends, 3);
    for (uint32_t k = 0; k < n; k++)
        values[keys[k]] = list_text(h, (struct range){starts[k], ends[k]});
    i = close + 3;
    if (i < c->n && cg_is(&c->t[i], "(")) {
        values[KEY_ARGS] = list_text(h, (struct range){i, c->partner[i] + 1});
        i = c->partner[i] + 1;
    }
    return i;
}

static const char *launch_text(struct cg_host *h)
{
    static const char *const names[] = {"grid", "block", "shared", "args", "when", "cluster"};
    const struct cg_tokens *c = h->code;
    const char *values[N_KEYS] = {0};
    uint32_t i = cg_is(&c->t[1], ":") ? 2 : 1, start = i;
    while (i < c->n && (c->t[i].kind == CG_NAME || cg_is(&c->t[i], "::")))
        if (key_at(c, i++) >= 0 && --i >= start)
            break;
    if (i < c->n && cg_is(&c->t[i], "<"))
        i = cg_close_angle(c, i, c->n);
    const char *kernel = cg_tokens_text(h->pool, &c->t[start], &c->t[i]);
    if (i < c->n && cg_is(&c->t[i], "<<<"))
        i = chevrons(h, i, values);
    while (i < c->n && !cg_is(&c->t[i], "#")) { /* a remark ends the line */
        int key = key_at(c, i);
        if (key == KEY_COOPERATIVE)
            values[key] = "";
        if (key < 0 || key == KEY_COOPERATIVE) {
            bool odd = key < 0 && !cg_is(&c->t[i], ",") && !cg_is(&c->t[i], ";");
            if (odd)
                return NULL;
            i++;
            continue;
        }
        struct range r = {i + 2, i + 2};
        while (r.to < c->n && key_at(c, r.to) < 0 && !cg_is(&c->t[r.to], ";") &&
               !cg_is(&c->t[r.to], "#"))
            r.to = c->partner[r.to] > r.to ? c->partner[r.to] + 1 : r.to + 1;
        values[key] = list_text(h, r);
        i = r.to;
    }
    const char *text = cg_format(h->pool, "launch %s", kernel);
    for (int k = 0; k < KEY_COOPERATIVE; k++)
        if (values[k])
            text = cg_format(h->pool, "%s %s=(%s)", text, names[k], values[k]);
    return values[KEY_COOPERATIVE] ? cg_format(h->pool, "%s cooperative", text) : text;
}

/* tune NAME = [128, 256]; tune NAME: 128 256 */
static const char *tune_text(struct cg_host *h)
{
    const struct cg_tokens *c = h->code;
    const char *text = "";
    if (c->n < 2 || c->t[1].kind != CG_NAME)
        return NULL;
    for (uint32_t i = 2; i < c->n; i++)
        if (cg_is(&c->t[i], "(") && *text) {
            break; /* a remark */
        } else if (c->t[i].kind == CG_NUMBER) {
            bool minus = cg_is(&c->t[i - 1], "-");
            text = cg_format(h->pool, "%s%s%s%.*s", text, *text ? ", " : "", minus ? "-" : "",
                             (int)c->t[i].n, c->t[i].s);
        }
    return cg_format(h->pool, "tune %.*s = %s", (int)c->t[1].n, c->t[1].s, text);
}

/* temp NAME TYPE [COUNT], type and name in any order, the count with or without brackets. */
static const char *temp_text(struct cg_host *h)
{
    const struct cg_tokens *c = h->code;
    const char *name = NULL, *type = NULL;
    uint32_t i = 1;
    for (; i < c->n && !cg_is(&c->t[i], "[") && !(name && type); i++) {
        const char *word = cg_token_text(h->pool, &c->t[i]);
        if (c->t[i].kind != CG_NAME)
            continue;
        uint32_t dtype = cg_dtype_of_name(word);
        for (uint32_t d = 1; d <= RUNG_BOOL; d++)
            dtype = rung_dtype_name(d) && !strcmp(rung_dtype_name(d), word) ? d : dtype;
        if (dtype && !type)
            type = rung_dtype_name(dtype);
        else if (!name)
            name = word;
    }
    while (i < c->n && (cg_is(&c->t[i], "=") || cg_is(&c->t[i], ":") || cg_is(&c->t[i], "*")))
        i++;
    if (!name || i >= c->n)
        return NULL;
    return cg_format(h->pool, "temp %s %s [%s]", name, type ? type : "f32",
                     list_text(h, (struct range){i, c->n}));
}

/* ---- Names that the lines may use ----------------------------------------------------------- */

static void declare(struct cg_host *h, const char *name, struct cg_value value)
{
    cg_declare(h, name, value, (struct cg_type){.text = ""});
}

static void declare_task(struct cg_host *h)
{
    const struct rung_task *t = h->task;
    for (uint32_t i = 0; i < t->n_tensors; i++) {
        struct cg_value v = cg_task_tensor(h, i);
        declare(h, t->tensors[i].name, cg_pointer(h, v.buffer, v.type));
    }
    for (uint32_t i = 0; i < t->n_dims; i++)
        declare(h, t->dims[i].name, cg_number(cg_dim(h, i)));
    for (uint32_t i = 0; i < t->n_params; i++)
        declare(h, t->params[i].name, cg_bind_name(h, t->params[i].name));
    declare(h, "sm_count", cg_number(cg_sym_name(h->pool, "sm_count", 1, 1024, 1, false)));
}

/* Tunes and temps of the lines, so that expressions may name them. */
static void declare_line(struct cg_host *h, const struct cg_tokens *c)
{
    if (c->n < 3 || c->t[1].kind != CG_NAME)
        return;
    char *name = cg_token_text(h->pool, &c->t[1]);
    if (!strncasecmp(c->t[0].s, "tune", 4)) {
        declare(h, name, cg_number(cg_sym_name(h->pool, name, 1, INT64_MAX, 1, false)));
    } else if (!strncasecmp(c->t[0].s, "temp", 4)) {
        if (cg_dtype_of_name(name) && c->t[2].kind == CG_NAME)
            name = cg_token_text(h->pool, &c->t[2]);
        struct cg_buffer *b = cg_new_buffer(h, name);
        b->dtype = RUNG_F32;
        declare(h, name, cg_pointer(h, b, (struct cg_type){.dtype = RUNG_F32, .bytes = 4}));
    }
}

/* Names that only a close look tells: N for n, A for a. */
static void declare_strangers(struct cg_host *h, const struct cg_tokens *c)
{
    for (uint32_t i = 1; i < c->n; i++) {
        char *name = cg_token_text(h->pool, &c->t[i]);
        struct cg_value v;
        bool called = cg_is(&c->t[i + 1], "(") || cg_is(&c->t[i + 1], "=");
        if (c->t[i].kind != CG_NAME || called || cg_find_variable(h, name) ||
            cg_read_constant(h, name, &v))
            continue;
        v = cg_bind_plain(h, name);
        if (v.kind != CG_NOTHING)
            declare(h, name, v);
    }
}

static const char *line_text(struct cg_host *h, const struct cg_tokens *c)
{
    char word[16] = "";
    for (uint32_t i = 0; i < c->t[0].n && i + 1 < sizeof(word); i++)
        word[i] = (char)tolower((unsigned char)c->t[0].s[i]);
    h->code = c;
    h->i = 0;
    h->end = c->n;
    if (!strcmp(word, "launch"))
        return launch_text(h);
    if (!strcmp(word, "tune"))
        return tune_text(h);
    if (!strcmp(word, "temp"))
        return temp_text(h);
    if (!strcmp(word, "where"))
        return cg_format(h->pool, "where %s", list_text(h, (struct range){1, c->n}));
    if (!strcmp(word, "zero"))
        return cg_format(h->pool, "zero %s", list_text(h, (struct range){1, c->n}));
    return cg_tokens_text(h->pool, c->t, &c->t[c->n]);
}

const char *cg_repair(struct cg_pool *pool, const struct rung_task *task, const char *plan,
                      const char *code)
{
    struct cg_macros macros = {0};
    struct cg_tokens tokens = cg_lex(pool, code, CG_CPP, &macros), lines[CG_MAX_STEPS];
    struct cg_items items = cg_items_scan(pool, &tokens);
    struct cg_host *h = cg_take(pool, sizeof(*h));
    uint32_t n = 0;
    const char *text = "";
    *h = (struct cg_host){.pool = pool,
                          .task = task,
                          .tokens = &tokens,
                          .macros = &macros,
                          .items = &items,
                          .note = "",
                          .loose = true};
    h->bodies = cg_take(pool, (items.n + 1) * sizeof(*h->bodies));
    h->reaches = cg_take(pool, items.n + 1);
    declare_task(h);
    for (const char *line = plan; *line && n < CG_MAX_STEPS;) {
        size_t len = strcspn(line, "\n"), mark = len > 3 ? 3 : len;
        struct cg_tokens raw = cg_lex(pool, cg_text(pool, line + mark, len - mark), CG_CPP, NULL);
        lines[n] = cg_expand(pool, &macros, raw.t, raw.t + raw.n);
        if (lines[n].n)
            declare_line(h, &lines[n++]);
        line += len + (line[len] != '\0');
    }
    for (uint32_t k = 0; k < n; k++) {
        declare_strangers(h, &lines[k]);
        const char *one = line_text(h, &lines[k]);
        if (!one)
            return NULL;
        text = cg_format(pool, "%s//@ %s\n", text, one);
    }
    return n ? text : NULL;
}
