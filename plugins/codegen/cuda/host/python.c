/*
 * Python around CUDA: the C++ in its strings, and forward() of its module, read line by line with
 * the evaluator of C++, which knows what both languages share. See entry.h.
 */
#include "entry.h"
#include <ctype.h>
#include <string.h>

struct cg_python {
    struct cg_tokens tokens;
    const char *source, *code;
    uint32_t forward;             /* the token `forward`; 0: none */
    uint32_t class_at, class_end; /* of the module with it */
};

static const struct cg_token *at(const struct cg_python *p, uint32_t i)
{
    return &p->tokens.t[i < p->tokens.n ? i : p->tokens.n];
}

/* ---- Strings -------------------------------------------------------------------------------- */

static bool has_prefix(const struct cg_python *p, const struct cg_token *t, char c)
{
    for (const char *s = p->source + t->at; s < t->s && *s != '"' && *s != '\''; s++)
        if (tolower((unsigned char)*s) == c)
            return true;
    return false;
}

/* The number that a module's `NAME = 256` gives a name in an f-string; "" when there is none. */
static const char *module_constant(struct cg_pool *pool, const struct cg_python *p,
                                   const char *name)
{
    for (uint32_t i = 0; i + 2 < p->tokens.n; i++)
        if (at(p, i)->first && cg_is(at(p, i), name) && cg_is(at(p, i + 1), "=") &&
            at(p, i + 2)->kind == CG_NUMBER)
            return cg_token_text(pool, at(p, i + 2));
    return "";
}

static const char *text_of(struct cg_pool *pool, const struct cg_python *p,
                           const struct cg_token *t)
{
    bool raw = has_prefix(p, t, 'r'), format = has_prefix(p, t, 'f');
    const char *end = t->s + t->n;
    char *text = cg_take(pool, t->n + 1);
    size_t n = 0;
    for (const char *s = t->s; s < end; s++) {
        bool pair = s + 1 < end;
        if (!raw && *s == '\\' && pair) {
            s++;
            if (*s == 'n' || *s == 't')
                text[n++] = *s == 'n' ? '\n' : ' ';
            else if (*s != '\n')
                text[n++] = *s;
        } else if (format && pair && (*s == '{' || *s == '}') && s[1] == *s) {
            text[n++] = *s++;
        } else if (format && *s == '{') {
            const char *close = memchr(s, '}', (size_t)(end - s));
            if (!close)
                break;
            const char *value =
                module_constant(pool, p, cg_text(pool, s + 1, (size_t)(close - s - 1)));
            size_t k = strlen(value), room = (size_t)(close - s) + 1;
            memcpy(text + n, value, k < room ? k : room);
            n += k < room ? k : room;
            s = close;
        } else {
            text[n++] = *s;
        }
    }
    text[n] = '\0';
    return text;
}

static bool is_code(const char *text)
{
    bool kernel = strstr(text, "__global__") != NULL;
    bool host = strstr(text, "{") && (strstr(text, "torch::") || strstr(text, "#include"));
    return kernel || host;
}

/* Adjacent strings are one. */
static const char *collect_code(struct cg_pool *pool, const struct cg_python *p)
{
    const char *code = "";
    for (uint32_t i = 0; i < p->tokens.n; i++) {
        const char *text = "";
        if (at(p, i)->kind != CG_STRING)
            continue;
        for (;; i++) {
            text = cg_format(pool, "%s%s", text, text_of(pool, p, at(p, i)));
            if (at(p, i + 1)->kind != CG_STRING)
                break;
        }
        if (is_code(text) && !strstr(code, text))
            code = cg_format(pool, "%s%s\n", code, text);
    }
    return code;
}

/* ---- Blocks --------------------------------------------------------------------------------- */

/* The end of the block whose head `i` (a line's first token) starts: lines that stand deeper. */
static uint32_t block_end(const struct cg_python *p, uint32_t i)
{
    uint32_t column = at(p, i)->column, k = i + 1;
    while (k < p->tokens.n && !(at(p, k)->first && at(p, k)->column <= column)) {
        uint32_t partner = p->tokens.partner[k];
        k = partner > k ? partner + 1 : k + 1;
    }
    return k;
}

static uint32_t line_end(const struct cg_python *p, uint32_t i, uint32_t end)
{
    do {
        uint32_t partner = p->tokens.partner[i];
        i = partner > i ? partner + 1 : i + 1;
    } while (i < end && !at(p, i)->first && !cg_is(at(p, i), ";"));
    return i < end ? i : end;
}

static void find_forward(struct cg_python *p)
{
    uint32_t class_at = 0;
    bool in_new = false;
    for (uint32_t i = 0; i + 2 < p->tokens.n; i++) {
        if (at(p, i)->first && cg_is(at(p, i), "class"))
            class_at = i;
        if (!cg_is(at(p, i), "def") || !cg_is(at(p, i + 1), "forward"))
            continue;
        bool new_class = cg_is(at(p, class_at + 1), "ModelNew");
        if (in_new && !new_class)
            continue;
        in_new |= new_class;
        p->forward = i + 1;
        p->class_at = class_at;
        p->class_end = block_end(p, class_at);
    }
}

struct cg_python *cg_python_read(struct cg_pool *pool, const char *python)
{
    struct cg_python *p = cg_take(pool, sizeof(*p));
    p->source = python;
    p->tokens = cg_lex(pool, python, CG_PYTHON, NULL);
    p->code = collect_code(pool, p);
    find_forward(p);
    return p;
}

const char *cg_python_code(const struct cg_python *python)
{
    return python->code;
}

bool cg_python_has_forward(const struct cg_python *python)
{
    return python->forward > 0;
}

/* ---- Attributes of self --------------------------------------------------------------------- */

/* Declares __init__'s parameters: what the task calls so, else their defaults. */
static void declare_init(struct cg_host *h, const struct cg_python *p)
{
    uint32_t starts[CG_MAX_ARGS], ends[CG_MAX_ARGS];
    for (uint32_t i = p->class_at; i + 2 < p->class_end; i++) {
        if (!cg_is(at(p, i), "def") || !cg_is(at(p, i + 1), "__init__") ||
            !cg_is(at(p, i + 2), "("))
            continue;
        uint32_t n =
            cg_split_list(&p->tokens, i + 3, p->tokens.partner[i + 2], starts, ends, CG_MAX_ARGS);
        for (uint32_t k = 0; k < n; k++) {
            const char *name = cg_token_text(h->pool, at(p, starts[k]));
            struct cg_value v = cg_unknown(h, "`%s`", name);
            for (uint32_t e = starts[k]; e < ends[k]; e++)
                if (cg_is(at(p, e), "="))
                    v = cg_eval_range(h, e + 1, ends[k]);
            cg_declare(h, name, v, (struct cg_type){.text = ""});
        }
        return;
    }
}

/*
 * Where `self.NAME = value`, or a tuple with it on the left, gives the value: [*from, *to) of the
 * tokens. false when there is none.
 */
static bool find_assignment(const struct cg_python *p, const char *name, uint32_t *from,
                            uint32_t *to)
{
    uint32_t starts[16], ends[16], n;
    for (uint32_t i = p->class_at; i + 4 < p->class_end; i++) {
        if (!at(p, i)->first || !cg_is(at(p, i), "self"))
            continue;
        uint32_t end = line_end(p, i, p->class_end), equals = i;
        while (equals < end && !cg_is(at(p, equals), "="))
            equals++;
        n = cg_split_list(&p->tokens, i, equals, starts, ends, 16);
        for (uint32_t k = 0; k < n && equals < end; k++) {
            if (ends[k] != starts[k] + 3 || !cg_is(at(p, starts[k] + 2), name))
                continue;
            if (n > 1 && cg_split_list(&p->tokens, equals + 1, end, starts, ends, 16) != n)
                return false;
            *from = n > 1 ? starts[k] : equals + 1;
            *to = n > 1 ? ends[k] : end;
            return true;
        }
    }
    return false;
}

/* What `self.NAME = ...` says; CG_NOTHING when that is no number. */
static struct cg_value assigned(struct cg_host *h, const struct cg_python *p, const char *name)
{
    struct cg_value out = {.kind = CG_NOTHING};
    const struct cg_tokens *code = h->code;
    size_t frame = h->frame, n_vars = h->n_vars;
    uint32_t n_steps = h->n_steps, from, to; /* nn.Parameter(torch.zeros(n)) clears nothing here */
    const char *problem = h->problem;
    if (h->calls > 8 || !find_assignment(p, name, &from, &to))
        return out;
    h->frame = h->n_vars;
    h->code = &p->tokens;
    h->calls++;
    declare_init(h, p);
    out = cg_eval_range(h, from, to);
    h->calls--;
    h->code = code;
    h->n_steps = n_steps;
    h->problem = problem;
    h->frame = frame;
    h->n_vars = n_vars;
    return out.kind == CG_NUM ? out : (struct cg_value){.kind = CG_NOTHING};
}

struct cg_value cg_python_attribute(struct cg_host *h, const char *path)
{
    const struct cg_python *p = h->python;
    const char *last = strrchr(path, '.') + 1;
    bool shallow = last == path + strlen("self.");
    const char *first = cg_text(h->pool, path + 5, strcspn(path + 5, "."));
    int tensor = cg_bind_tensor(h, last);
    for (uint32_t i = 0; i < h->task->n_dims; i++)
        if (!strcmp(h->task->dims[i].name, last))
            return cg_number(cg_dim(h, i));
    struct cg_value value = shallow ? assigned(h, p, last) : (struct cg_value){.kind = CG_NOTHING};
    struct cg_value named = cg_bind_name(h, last);
    bool dim = named.kind == CG_NUM && !named.sym->real;
    if (named.kind == CG_NUM && (named.sym->real || value.kind != CG_NUM))
        return dim && tensor >= 0 ? cg_task_tensor(h, (uint32_t)tensor) : named;
    if (value.kind == CG_NUM)
        return value;
    if (tensor < 0 && !shallow)
        tensor = cg_bind_tensor(h, first);
    if (tensor >= 0)
        return cg_task_tensor(h, (uint32_t)tensor);
    return cg_unknown(h, "`%.100s`", path);
}

/* ---- Statements ----------------------------------------------------------------------------- */

static void run_block(struct cg_host *h, const struct cg_python *p, uint32_t from, uint32_t to);

static bool calls_code(struct cg_host *h, const struct cg_python *p, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        for (size_t k = 0; k < h->items->n; k++)
            if (h->reaches[k] && cg_is(at(p, i), h->items->list[k].name))
                return true;
    return false;
}

/* The ':' that ends a head; `end` when there is none. */
static uint32_t colon_of(const struct cg_python *p, uint32_t i, uint32_t end)
{
    while (i < end && !cg_is(at(p, i), ":"))
        i = p->tokens.partner[i] > i ? p->tokens.partner[i] + 1 : i + 1;
    return i;
}

/* if, elif, else from i on: runs the branch that counts; returns what is behind them all. */
static uint32_t run_if(struct cg_host *h, const struct cg_python *p, uint32_t i, uint32_t end)
{
    bool done = false;
    uint32_t column = at(p, i)->column;
    while (i < end) {
        uint32_t colon = colon_of(p, i, end), stop = block_end(p, i);
        stop = stop < end ? stop : end;
        if (!done && cg_is(at(p, i), "else")) {
            run_block(h, p, colon + 1, stop);
            done = true;
        } else if (!done) {
            struct cg_value c = cg_eval_range(h, i + 1, colon);
            if (c.kind != CG_NUM && calls_code(h, p, colon, stop))
                cg_problem(h, "what forward() launches depends on %s",
                           c.kind == CG_UNKNOWN ? c.text : "a condition");
            done = c.kind == CG_NUM && cg_decide(h, c.sym);
            if (done)
                run_block(h, p, colon + 1, stop);
        }
        i = stop;
        bool more = i < end && at(p, i)->column == column &&
                    (cg_is(at(p, i), "elif") || cg_is(at(p, i), "else"));
        if (!more)
            break;
    }
    return i;
}

/* a, b = value; one name = value; an expression. */
static void run_line(struct cg_host *h, const struct cg_python *p, uint32_t from, uint32_t to)
{
    uint32_t equals = from, starts[16], ends[16];
    while (equals < to && !cg_is(at(p, equals), "="))
        equals = p->tokens.partner[equals] > equals ? p->tokens.partner[equals] + 1 : equals + 1;
    if (equals >= to) {
        cg_eval_range(h, from, to);
        return;
    }
    uint32_t n = cg_split_list(&p->tokens, from, equals, starts, ends, 16);
    struct cg_value v = cg_eval_range(h, equals + 1, to);
    for (uint32_t k = 0; k < n; k++) {
        struct cg_value part = n == 1                         ? v
                               : v.kind == CG_LIST && k < v.n ? v.list[k]
                                                              : cg_unknown(h, "a part of a tuple");
        if (at(p, starts[k])->kind != CG_NAME)
            continue;
        const char *name = cg_token_text(h->pool, at(p, starts[k]));
        if ((part.kind == CG_TENSOR) && part.buffer && !part.buffer->name[0])
            part.buffer->name = name;
        cg_assign(h, name, part);
    }
}

/* return a, b */
static void run_return(struct cg_host *h, const struct cg_python *p, uint32_t from, uint32_t to)
{
    uint32_t starts[16], ends[16];
    uint32_t n = cg_split_list(&p->tokens, from, to, starts, ends, 16);
    struct cg_value *list = cg_take(h->pool, (n + 1) * sizeof(*list));
    for (uint32_t k = 0; k < n; k++)
        list[k] = cg_eval_range(h, starts[k], ends[k]);
    h->result = n == 1 ? list[0] : (struct cg_value){.kind = CG_LIST, .list = list, .n = n};
    h->flow = CG_RETURN;
}

static uint32_t run_statement(struct cg_host *h, const struct cg_python *p, uint32_t i,
                              uint32_t end)
{
    static const char *const skipped[] = {"assert", "raise", "pass",   "import", "from",
                                          "def",    "del",   "global", NULL};
    const struct cg_token *t = at(p, i);
    uint32_t behind = line_end(p, i, end);
    for (const char *const *s = skipped; *s; s++)
        if (cg_is(t, *s))
            return cg_is(t, "def") ? block_end(p, i) : behind;
    if (cg_is(t, "if"))
        return run_if(h, p, i, end);
    if (cg_is(t, "with")) {
        uint32_t stop = block_end(p, i);
        stop = stop < end ? stop : end;
        run_block(h, p, colon_of(p, i, end) + 1, stop);
        return stop;
    }
    if (cg_is(t, "for") || cg_is(t, "while") || cg_is(t, "try")) {
        uint32_t stop = block_end(p, i);
        if (calls_code(h, p, i, stop < end ? stop : end))
            cg_problem(h, "a loop in forward() around launches");
        return stop < end ? stop : end;
    }
    if (cg_is(t, "return"))
        run_return(h, p, i + 1, behind);
    else if (!cg_is(t, ";"))
        run_line(h, p, i, behind);
    return behind;
}

static void run_block(struct cg_host *h, const struct cg_python *p, uint32_t from, uint32_t to)
{
    if (++h->nesting > 100)
        longjmp(*h->pool->out, CG_TOO_COMPLEX);
    while (from < to && h->flow == CG_NEXT && !h->problem) {
        uint32_t behind = run_statement(h, p, from, to);
        from = behind > from ? behind : from + 1;
        h->code = &p->tokens;
        h->i = 0;
        h->end = p->tokens.n;
    }
    h->nesting--;
}

struct cg_value cg_python_run(struct cg_host *h, struct cg_python *p)
{
    struct cg_slot slots[CG_MAX_ARGS];
    uint32_t starts[CG_MAX_ARGS], ends[CG_MAX_ARGS], n_slots = 0;
    uint32_t open = p->forward + 1, close = p->tokens.partner[open];
    struct cg_value none = {.kind = CG_NOTHING};
    if (!cg_is(at(p, open), "(") || close <= open)
        return none;
    uint32_t n = cg_split_list(&p->tokens, open + 1, close, starts, ends, CG_MAX_ARGS);
    for (uint32_t k = 0; k < n; k++) {
        const char *name = cg_token_text(h->pool, at(p, starts[k]));
        const char *type = cg_tokens_text(h->pool, at(p, starts[k]), at(p, ends[k]));
        if (!strcmp(name, "self"))
            continue;
        enum cg_class cls = strstr(type, ":int")     ? CG_TYPE_INT
                            : strstr(type, ":float") ? CG_TYPE_REAL
                                                     : CG_TYPE_TENSOR;
        slots[n_slots++] = (struct cg_slot){.name = name, .type = {.cls = cls, .text = ""}};
    }
    h->python = p;
    cg_bind(h, slots, n_slots);
    for (uint32_t k = 0; k < n_slots; k++)
        cg_declare(h, slots[k].name,
                   slots[k].value.kind == CG_NOTHING ? cg_unknown(h, "`%.80s`", slots[k].name)
                                                     : slots[k].value,
                   (struct cg_type){.text = ""});
    h->code = &p->tokens;
    h->i = 0;
    h->end = p->tokens.n;
    uint32_t head = p->forward - 1; /* def */
    run_block(h, p, colon_of(p, close, p->tokens.n) + 1, block_end(p, head));
    return h->flow == CG_RETURN ? h->result : none;
}
