/* Finding the sections of a prompt; see prompt.h. One pass over the lines, fences respected. */
#include "prompt.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum section { SECTION_OTHER, SECTION_TASK, SECTION_TRIED, SECTION_PARENT, SECTION_IDEA };

struct reader {
    struct prompt *prompt;
    enum section section;
    size_t fence;      /* backticks of the open fence; 0: outside */
    const char *block; /* first byte inside the open fence */
    bool own_words;    /* an assistant's message: only its fenced blocks count */
};

static bool same_word(struct llm_span span, const char *word)
{
    return span.len == strlen(word) && strncasecmp(span.ptr, word, span.len) == 0;
}

static bool is_name(struct llm_span span)
{
    if (span.len == 0 || span.len > 63 || isdigit((unsigned char)span.ptr[0]))
        return false;
    for (size_t i = 0; i < span.len; ++i)
        if (!isalnum((unsigned char)span.ptr[i]) && span.ptr[i] != '_')
            return false;
    return true;
}

/* The next word of letters, digits and underscores off the front. */
static struct llm_span take_word(struct llm_span *rest)
{
    *rest = llm_trim(*rest);
    size_t n = 0;
    while (n < rest->len && (isalnum((unsigned char)rest->ptr[n]) || rest->ptr[n] == '_'))
        ++n;
    const struct llm_span word = {rest->ptr, n};
    rest->ptr += n;
    rest->len -= n;
    return word;
}

static uint32_t take_number(struct llm_span *rest)
{
    uint32_t number = 0;
    while (rest->len && isdigit((unsigned char)rest->ptr[0])) {
        if (number < 100000)
            number = number * 10 + (uint32_t)(rest->ptr[0] - '0');
        rest->ptr++;
        rest->len--;
    }
    return number;
}

static void read_dims(struct prompt_tensor *tensor, struct llm_span list)
{
    int depth = 0;
    size_t from = 0;
    for (size_t i = 0; i <= list.len; ++i) {
        const char c = i < list.len ? list.ptr[i] : ',';
        depth += (c == '(') - (c == ')');
        if (c != ',' || (depth > 0 && i < list.len))
            continue;
        const struct llm_span dim = llm_trim((struct llm_span){list.ptr + from, i - from});
        if (dim.len && tensor->n_dims < PROMPT_MAX_DIMS)
            tensor->dims[tensor->n_dims++] = dim;
        from = i + 1;
    }
}

static bool same_span(struct llm_span a, struct llm_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static bool has_param(const struct prompt *prompt, struct llm_span name)
{
    for (uint32_t i = 0; i < prompt->n_params; ++i)
        if (same_span(prompt->params[i], name))
            return true;
    return false;
}

/* A conversation repeats its contract: a tensor that is known already is replaced. */
static void add_tensor(struct prompt *prompt, const struct prompt_tensor *tensor)
{
    uint32_t i = 0;
    while (i < prompt->n_tensors && !same_span(prompt->tensors[i].name, tensor->name))
        ++i;
    if (i == PROMPT_MAX_TENSORS)
        return;
    prompt->tensors[i] = *tensor;
    if (i == prompt->n_tensors)
        prompt->n_tensors++;
}

/* "256" of ", row-major, 256-byte aligned"; 0 when it is not said. */
static uint32_t read_alignment(struct llm_span rest)
{
    static const char tail[] = "-byte aligned";
    for (size_t i = 0; i + sizeof tail - 1 <= rest.len; ++i) {
        if (memcmp(rest.ptr + i, tail, sizeof tail - 1) != 0)
            continue;
        size_t from = i;
        while (from && isdigit((unsigned char)rest.ptr[from - 1]))
            --from;
        struct llm_span digits = {rest.ptr + from, i - from};
        return take_number(&digits);
    }
    return 0;
}

bool prompt_has_dim(const struct prompt *prompt, struct llm_span name)
{
    for (uint32_t i = 0; i < prompt->n_dim_names; ++i)
        if (same_span(prompt->dim_names[i], name))
            return true;
    return false;
}

/* "rows (such as 64; at least 1)" or "half = rows / 2". */
static void read_dim_name(struct prompt *prompt, struct llm_span line)
{
    const struct llm_span name = take_word(&line);
    line = llm_trim(line);
    if (is_name(name) && (llm_span_starts(line, "(such as ") || llm_span_starts(line, "= ")) &&
        !prompt_has_dim(prompt, name) && prompt->n_dim_names < PROMPT_MAX_DIM_NAMES)
        prompt->dim_names[prompt->n_dim_names++] = name;
}

/* "x: input f32 [rows, cols]", "scale: f64 = 1.0" (or "scale: param ...") or "graph: ...". */
static void read_contract_line(struct prompt *prompt, struct llm_span line)
{
    line = llm_trim(line);
    if (llm_span_starts(line, "- "))
        line = llm_trim((struct llm_span){line.ptr + 2, line.len - 2});
    const char *colon = memchr(line.ptr, ':', line.len);
    if (!colon) {
        read_dim_name(prompt, line);
        return;
    }
    const struct llm_span name = {line.ptr, (size_t)(colon - line.ptr)};
    struct llm_span rest = {colon + 1, line.len - name.len - 1};
    if (llm_span_is(name, "graph") || llm_span_is(name, "Computes")) {
        prompt->graph = llm_trim(rest);
        return;
    }
    const struct llm_span role = take_word(&rest);
    if (!is_name(name))
        return;
    if (llm_span_is(role, "param") || llm_span_is(role, "f64") || llm_span_is(role, "i64")) {
        if (!has_param(prompt, name) && prompt->n_params < PROMPT_MAX_PARAMS)
            prompt->params[prompt->n_params++] = name;
        return;
    }
    struct prompt_tensor tensor = {.name = name, .role = role, .dtype = take_word(&rest)};
    const char *open = memchr(rest.ptr, '[', rest.len);
    const char *close = open ? memchr(open, ']', rest.len - (size_t)(open - rest.ptr)) : NULL;
    if (!close)
        return;
    read_dims(&tensor, (struct llm_span){open + 1, (size_t)(close - open - 1)});
    const struct llm_span after = {close, rest.len - (size_t)(close - rest.ptr)};
    tensor.alignment = read_alignment(after);
    tensor.strided = llm_span_starts(after, "], strides [");
    add_tensor(prompt, &tensor);
}

/* "// catalog: softmax/online variant 3" */
static bool read_mark(struct llm_span line, struct prompt_source *source)
{
    static const char mark[] = "// catalog: ";
    line = llm_trim(line);
    if (!llm_span_starts(line, mark))
        return false;
    struct llm_span rest = {line.ptr + sizeof mark - 1, line.len - (sizeof mark - 1)};
    source->family = take_word(&rest);
    if (!rest.len || rest.ptr[0] != '/')
        return false;
    rest.ptr++;
    rest.len--;
    source->stem = take_word(&rest);
    if (!llm_span_is(take_word(&rest), "variant"))
        return false;
    rest = llm_trim(rest);
    source->variant = take_number(&rest);
    return rest.len == 0;
}

static void end_block(struct reader *reader, const char *end)
{
    struct prompt *prompt = reader->prompt;
    struct prompt_source source = {.body = {reader->block, (size_t)(end - reader->block)},
                                   .parent = reader->section == SECTION_PARENT};
    struct llm_span rest = source.body, line;
    reader->fence = 0;
    prompt->has_parent |= source.parent;
    for (int i = 0; i < 8 && llm_next_line(&rest, &line); ++i) {
        if (!read_mark(line, &source))
            continue;
        if (prompt->n_sources < PROMPT_MAX_SOURCES)
            prompt->n_sources++;
        prompt->sources[prompt->n_sources - 1] = source;
        return;
    }
}

static size_t backticks(struct llm_span line)
{
    size_t n = 0;
    while (n < line.len && line.ptr[n] == '`')
        ++n;
    return n;
}

static enum section section_of(struct llm_span title)
{
    if (same_word(title, "Task"))
        return SECTION_TASK;
    if (same_word(title, "Ideas so far"))
        return SECTION_TRIED;
    if (same_word(title, "Parent") || same_word(title, "Parents"))
        return SECTION_PARENT;
    return same_word(title, "Idea") ? SECTION_IDEA : SECTION_OTHER;
}

static void read_wanted(struct prompt *prompt, struct llm_span line)
{
    struct llm_span rest = llm_trim(line);
    if (!same_word(take_word(&rest), "Propose"))
        return;
    rest = llm_trim(rest);
    const uint32_t number = take_number(&rest);
    const struct llm_span noun = take_word(&rest);
    if (number && (same_word(noun, "ideas") || same_word(noun, "idea")))
        prompt->wanted = number < 64 ? number : 64;
}

/* A line outside fences. */
static void read_prose(struct reader *reader, struct llm_span line)
{
    struct prompt *prompt = reader->prompt;
    if (llm_span_starts(line, "## ")) {
        reader->section = section_of(llm_trim((struct llm_span){line.ptr + 3, line.len - 3}));
        if (reader->section == SECTION_IDEA)
            prompt->idea = (struct llm_span){line.ptr + line.len, 0};
        return;
    }
    read_wanted(prompt, line);
    const struct llm_span words = llm_trim(line);
    if (reader->section == SECTION_TASK)
        read_contract_line(prompt, line);
    else if (reader->section == SECTION_TRIED && llm_span_starts(words, "-") &&
             prompt->n_tried < PROMPT_MAX_TRIED)
        prompt->tried[prompt->n_tried++] = words;
    else if (reader->section == SECTION_IDEA && !llm_span_starts(line, "#") && words.len)
        prompt->idea.len = (size_t)(line.ptr + line.len - prompt->idea.ptr);
}

static void read_line(struct reader *reader, struct llm_span line)
{
    const size_t ticks = backticks(llm_trim(line));
    if (reader->fence) {
        if (ticks >= reader->fence && llm_trim(line).len == ticks)
            end_block(reader, line.ptr);
        else if (reader->section == SECTION_TASK && !reader->own_words)
            read_contract_line(reader->prompt, line);
    } else if (ticks >= 3) {
        reader->fence = ticks;
        reader->block = line.ptr + line.len;
    } else if (!reader->own_words) {
        read_prose(reader, line);
    }
}

static void read_message(struct prompt *prompt, const struct rung_message *message)
{
    for (uint32_t p = 0; p < message->n_parts; ++p) {
        const struct rung_part *part = &message->parts[p];
        if (part->kind != RUNG_PART_TEXT || !part->text.ptr)
            continue;
        struct reader reader = {.prompt = prompt, .own_words = message->role == RUNG_MSG_ASSISTANT};
        struct llm_span rest = {part->text.ptr, part->text.len}, line;
        while (llm_next_line(&rest, &line))
            read_line(&reader, line);
        if (reader.fence)
            end_block(&reader, rest.ptr);
    }
}

void prompt_read(const struct rung_llm_request *request, struct prompt *prompt)
{
    *prompt = (struct prompt){.graph = {"", 0}, .idea = {"", 0}};
    for (uint32_t m = 0; m < request->n_messages; ++m)
        read_message(prompt, &request->messages[m]);
    prompt->idea = llm_trim(prompt->idea);
}
