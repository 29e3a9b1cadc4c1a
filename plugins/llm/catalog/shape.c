/* Types and shapes of a form; see shape.h. */
#include "shape.h"
#include "target.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One tensor of the line. */
struct entry {
    struct llm_span name, dtype, shape;
    bool shaped; /* it has brackets */
};

enum item_kind { ITEM_ONE, ITEM_RUN, ITEM_AXIS, ITEM_LITERAL, ITEM_NUMBER };

struct item {
    enum item_kind kind;
    struct llm_span name;
    long number;
};

static bool is_name(struct llm_span span)
{
    if (span.len == 0 || span.len > 31 || isdigit((unsigned char)span.ptr[0]))
        return false;
    for (size_t i = 0; i < span.len; ++i)
        if (!isalnum((unsigned char)span.ptr[i]) && span.ptr[i] != '_')
            return false;
    return true;
}

/* Takes what stands before `separator` (or all) off the front; false at the end. */
static bool take_part(struct llm_span *rest, char separator, struct llm_span *part)
{
    *rest = llm_trim(*rest);
    if (!rest->len)
        return false;
    const char *end = memchr(rest->ptr, separator, rest->len);
    const size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    *part = llm_trim((struct llm_span){rest->ptr, len});
    rest->ptr += len + (end != NULL);
    rest->len -= len + (end != NULL);
    return true;
}

static bool take_entry(struct llm_span *rest, struct entry *entry)
{
    struct llm_span part;
    *entry = (struct entry){.shaped = false};
    if (!take_part(rest, ';', &part))
        return false;
    struct llm_span words = part;
    const char *open = memchr(part.ptr, '[', part.len);
    if (open) {
        words.len = (size_t)(open - part.ptr);
        entry->shape = (struct llm_span){open + 1, part.len - words.len - 1};
        if (entry->shape.len && entry->shape.ptr[entry->shape.len - 1] == ']')
            entry->shape.len--;
        entry->shaped = true;
    }
    if (take_part(&words, ' ', &entry->name))
        take_part(&words, ' ', &entry->dtype);
    return true;
}

static bool take_item(struct llm_span *rest, struct item *item)
{
    struct llm_span part;
    if (!take_part(rest, ',', &part))
        return false;
    *item = (struct item){.kind = ITEM_ONE, .name = part};
    if (part.len > 2 && memcmp(part.ptr + part.len - 2, "..", 2) == 0) {
        item->kind = ITEM_RUN;
        item->name.len -= 2;
    } else if (part.len && (part.ptr[0] == '@' || part.ptr[0] == '#')) {
        item->kind = part.ptr[0] == '@' ? ITEM_AXIS : ITEM_LITERAL;
        item->name = (struct llm_span){part.ptr + 1, part.len - 1};
    } else if (part.len && isdigit((unsigned char)part.ptr[0])) {
        item->kind = ITEM_NUMBER;
        item->number = part.len < 10 ? strtol(part.ptr, NULL, 10) : -1;
    }
    return true;
}

bool shape_lists(const char *tensors, struct llm_span name)
{
    struct llm_span rest = {tensors, strlen(tensors)};
    struct entry entry;
    while (take_entry(&rest, &entry))
        if (entry.name.len == name.len && memcmp(entry.name.ptr, name.ptr, name.len) == 0)
            return true;
    return false;
}

/* ---- matching ---- */

/* Where dimension number `axis` begins; -1 when the attribute is no number of the tensor's. */
static int axis_of(const struct match *match, struct llm_span name, uint32_t n_dims)
{
    const char *text = match_text(match, name);
    char *end = NULL;
    const long axis = text ? strtol(text, &end, 10) : -1;
    if (!text || end == text || *end || axis < -(long)n_dims || axis >= (long)n_dims)
        return -1;
    return (int)(axis < 0 ? axis + (long)n_dims : axis);
}

/* The dimension after the last one of a run that starts at `from`. */
static int run_end(const struct match *match, struct llm_span after, uint32_t n_dims)
{
    struct item item;
    int singles = 0;
    while (take_item(&after, &item)) {
        if (item.kind == ITEM_AXIS)
            return axis_of(match, item.name, n_dims) - singles;
        ++singles;
    }
    return (int)n_dims - singles;
}

static bool bind_run(struct match *match, struct llm_span name, const struct prompt_tensor *tensor,
                     uint32_t from, uint32_t to)
{
    struct llm_text text = {0};
    target_put_product(&text, tensor, from, to);
    const bool bound =
        !text.failed && match_bind(match, name, (struct llm_span){text.ptr, text.len});
    llm_text_free(&text);
    return bound;
}

static bool plain_number(struct llm_span dim)
{
    for (size_t i = 0; i < dim.len; ++i)
        if (!isdigit((unsigned char)dim.ptr[i]))
            return false;
    return dim.len > 0 && dim.len < 10;
}

static bool match_item(struct match *match, const struct item *item, struct llm_span after,
                       const struct prompt_tensor *tensor, uint32_t *at)
{
    if (item->kind == ITEM_AXIS)
        return axis_of(match, item->name, tensor->n_dims) == (int)*at;
    if (item->kind == ITEM_RUN) {
        const int end = run_end(match, after, tensor->n_dims);
        const uint32_t from = *at;
        if (end < (int)from)
            return false;
        *at = (uint32_t)end;
        return bind_run(match, item->name, tensor, from, *at);
    }
    if (*at >= tensor->n_dims)
        return false;
    const struct llm_span dim = tensor->dims[(*at)++];
    if (item->kind == ITEM_NUMBER)
        return plain_number(dim) && strtol(dim.ptr, NULL, 10) == item->number;
    if (item->kind == ITEM_LITERAL && !plain_number(dim))
        return false;
    return bind_run(match, item->name, tensor, *at - 1, *at);
}

static bool match_shape(struct match *match, struct llm_span shape,
                        const struct prompt_tensor *tensor)
{
    uint32_t at = 0;
    struct item item;
    while (take_item(&shape, &item))
        if (!match_item(match, &item, shape, tensor, &at))
            return false;
    return at == tensor->n_dims;
}

bool shape_match(const char *tensors, const struct prompt *prompt, struct match *match)
{
    struct llm_span rest = {tensors, strlen(tensors)};
    struct entry entry;
    while (take_entry(&rest, &entry)) {
        const char *name = match_text(match, entry.name);
        const struct prompt_tensor *tensor =
            name ? target_tensor(prompt, (struct llm_span){name, strlen(name)}) : NULL;
        if (!tensor || tensor->dtype.len != entry.dtype.len ||
            memcmp(tensor->dtype.ptr, entry.dtype.ptr, entry.dtype.len) != 0)
            return false;
        if (entry.shaped && !match_shape(match, entry.shape, tensor))
            return false;
    }
    return true;
}

/* A number, or what another name stands for. */
static bool bind_constant(struct match *match, struct llm_span name, struct llm_span value)
{
    const char *text = plain_number(value) ? NULL : match_text(match, value);
    return match_bind(match, name, text ? (struct llm_span){text, strlen(text)} : value);
}

bool shape_constants(const char *let, struct match *match)
{
    struct llm_span rest = {let ? let : "", let ? strlen(let) : 0}, part, name;
    while (take_part(&rest, ',', &part))
        if (!take_part(&part, '=', &name) || !bind_constant(match, name, llm_trim(part)))
            return false;
    return true;
}

/* ---- patterns ---- */

static bool wrong(char *problem, size_t size, const char *what, struct llm_span part)
{
    snprintf(problem, size, "%s '%.*s'", what, (int)(part.len < 40 ? part.len : 40), part.ptr);
    return false;
}

static bool check_shape(struct llm_span shape, char *problem, size_t size)
{
    uint32_t runs = 0;
    struct item item;
    while (take_item(&shape, &item)) {
        runs = item.kind == ITEM_AXIS ? 0 : runs + (item.kind == ITEM_RUN);
        if (item.kind == ITEM_NUMBER ? item.number < 1 : !is_name(item.name))
            return wrong(problem, size, "'tensors' has a dimension", item.name);
        if (runs > 1)
            return wrong(problem, size, "nothing says where this run begins:", item.name);
    }
    return true;
}

bool shape_check(const char *tensors, const char *let, char *problem, size_t size)
{
    struct llm_span rest = {tensors, strlen(tensors)}, part, name;
    struct entry entry;
    while (take_entry(&rest, &entry)) {
        if (!is_name(entry.name) || !entry.dtype.len)
            return wrong(problem, size, "'tensors' reads 'name dtype [shape]; ...', not",
                         entry.name);
        if (!check_shape(entry.shape, problem, size))
            return false;
    }
    rest = (struct llm_span){let ? let : "", let ? strlen(let) : 0};
    while (take_part(&rest, ',', &part))
        if (!memchr(part.ptr, '=', part.len) || !take_part(&part, '=', &name) || !is_name(name) ||
            !(plain_number(llm_trim(part)) || shape_lists(tensors, llm_trim(part))))
            return wrong(problem, size, "'let' gives a number or a tensor to each name, not", part);
    return true;
}

void shape_itself(const char *tensors, struct match *match)
{
    struct llm_span rest = {tensors, strlen(tensors)};
    struct entry entry;
    struct item item;
    while (take_entry(&rest, &entry)) {
        match_bind(match, entry.name, entry.name);
        while (take_item(&entry.shape, &item))
            if (item.kind == ITEM_LITERAL)
                match_bind(match, item.name, (struct llm_span){"3", 1});
            else if (item.kind == ITEM_ONE || item.kind == ITEM_RUN)
                match_bind(match, item.name, item.name);
    }
}
