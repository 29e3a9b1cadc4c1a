/*
 * Descriptors are foreign data: sizes, texts and slots are checked here, once, so that no other
 * code needs to. Only slots of the first revision of a kind can be required.
 */
#include "plugin/check.h"
#include "base/text.h"
#include "plugin/registry.h"

#include <rung/baseline.h>
#include <rung/codegen.h>
#include <rung/compiler.h>
#include <rung/device.h>
#include <rung/llm.h>
#include <rung/reference.h>
#include <rung/examples.h>
#include <rung/search.h>
#include <rung/timer.h>
#include <rung/verifier.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct slot {
    const char *name;
    size_t offset;
};

struct kind_info {
    const char *id;
    const char *word;
    struct slot slots[16]; /* required, ended by a NULL name */
};

#define SLOT(type, field)                                                                          \
    {                                                                                              \
#field, offsetof(struct type, field)                                                       \
    }

static const struct kind_info kinds[] = {
    {RUNG_KIND_LLM, "llm", {SLOT(rung_llm_ops, complete)}},
    {RUNG_KIND_CODEGEN,
     "codegen",
     {SLOT(rung_codegen_ops, contract), SLOT(rung_codegen_ops, read_reply),
      SLOT(rung_codegen_ops, read_source)}},
    {RUNG_KIND_COMPILER, "compiler", {SLOT(rung_compiler_ops, compile)}},
    {RUNG_KIND_DEVICE,
     "device",
     {SLOT(rung_device_ops, info), SLOT(rung_device_ops, alloc), SLOT(rung_device_ops, free),
      SLOT(rung_device_ops, address), SLOT(rung_device_ops, map), SLOT(rung_device_ops, write),
      SLOT(rung_device_ops, read), SLOT(rung_device_ops, fill), SLOT(rung_device_ops, load),
      SLOT(rung_device_ops, unload), SLOT(rung_device_ops, launch), SLOT(rung_device_ops, sync)}},
    {RUNG_KIND_REFERENCE,
     "reference",
     {SLOT(rung_reference_ops, check), SLOT(rung_reference_ops, evaluate),
      SLOT(rung_reference_ops, work)}},
    {RUNG_KIND_VERIFIER, "verifier", {SLOT(rung_verifier_ops, check)}},
    {RUNG_KIND_TIMER, "timer", {SLOT(rung_timer_ops, measure)}},
    {RUNG_KIND_SEARCH, "search", {SLOT(rung_search_ops, decide)}},
    {RUNG_KIND_EXAMPLES, "examples", {SLOT(rung_examples_ops, examples)}},
    {RUNG_KIND_BASELINE,
     "baseline",
     {SLOT(rung_baseline_ops, prepare), SLOT(rung_baseline_ops, release)}},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MAX_FACTORIES = 64, MAX_OPTIONS = 256 };

const char *rung_kind_word(const char *kind)
{
    for (size_t i = 0; kind && i < N_KINDS; i++)
        if (strcmp(kinds[i].id, kind) == 0)
            return kinds[i].word;
    return NULL;
}

const char *rung_kind_of_word(const char *word)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i].word, word) == 0)
            return kinds[i].id;
    return NULL;
}

static const struct kind_info *kind_find(const char *id)
{
    for (size_t i = 0; id && i < N_KINDS; i++)
        if (strcmp(kinds[i].id, id) == 0)
            return &kinds[i];
    return NULL;
}

static bool name_valid(const char *name)
{
    if (!name || !(name[0] >= 'a' && name[0] <= 'z') || strlen(name) > 63)
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

/* Operation tables start with struct_size; a slot past it counts as missing. */
static void check_ops(const struct kind_info *kind, const struct rung_factory *f,
                      struct rung_buf *faults)
{
    if (!f->ops) {
        rung_buf_printf(faults, "; %s '%s' has no operations (ops is NULL)", kind->word, f->name);
        return;
    }
    uint32_t size;
    memcpy(&size, f->ops, sizeof size);
    for (const struct slot *s = kind->slots; s->name; s++) {
        void *slot = NULL;
        if (s->offset + sizeof slot <= size)
            memcpy(&slot, (const char *)f->ops + s->offset, sizeof slot);
        if (!slot)
            rung_buf_printf(faults, "; %s '%s' lacks the operation '%s'", kind->word, f->name,
                            s->name);
    }
}

static void check_options(const struct rung_factory *f, struct rung_buf *faults)
{
    for (size_t i = 0; f->options && f->options[i]; i++) {
        const struct rung_option *o = f->options[i];
        if (i >= MAX_OPTIONS) {
            rung_buf_printf(faults, "; '%s' has more than %d options", f->name, MAX_OPTIONS);
            return;
        }
        if (o->struct_size < sizeof *o || !name_valid(o->name) || !o->summary ||
            o->type < RUNG_OPT_BOOL || o->type > RUNG_OPT_SECRET)
            rung_buf_printf(faults, "; option %zu of '%s' is malformed", i, f->name);
        else if (o->type == RUNG_OPT_ENUM && !(o->values && o->values[0]))
            rung_buf_printf(faults, "; option '%s' of '%s' is an enum without values", o->name,
                            f->name);
        else if ((o->flags & RUNG_OPT_REQUIRED) && o->default_text)
            rung_buf_printf(faults, "; option '%s' of '%s' is required and has a default", o->name,
                            f->name);
    }
}

static void check_factory(const struct rung_factory *f, size_t index, struct rung_buf *faults)
{
    if (f->struct_size < sizeof *f) {
        rung_buf_printf(faults, "; factory %zu has a struct_size of %u, not %zu", index,
                        f->struct_size, sizeof *f);
        return;
    }
    const struct kind_info *kind = kind_find(f->kind);
    if (!kind || !name_valid(f->name) || !f->summary) {
        rung_buf_printf(faults,
                        "; factory %zu has the kind '%s' and the name '%s': one is not valid",
                        index, f->kind ? f->kind : "(NULL)", f->name ? f->name : "(NULL)");
        return;
    }
    if (f->thread_model > RUNG_PARALLEL)
        rung_buf_printf(faults, "; '%s' has the unknown thread model %u", f->name, f->thread_model);
    if (!f->create)
        rung_buf_printf(faults, "; %s '%s' lacks create()", kind->word, f->name);
    if (!f->destroy)
        rung_buf_printf(faults, "; %s '%s' lacks destroy()", kind->word, f->name);
    check_ops(kind, f, faults);
    check_options(f, faults);
}

static int32_t check_abi(const char *path, const struct rung_plugin *p, struct rung_error *err)
{
    if (p->magic != RUNG_PLUGIN_MAGIC)
        return rung_fail(err, RUNG_EMISUSE, "plugin.magic", "%s: is no rung plugin (magic %08x)",
                         path, p->magic);
    if (p->abi_major == RUNG_ABI_MAJOR && p->abi_draft == RUNG_ABI_DRAFT)
        return RUNG_OK;
    return rung_fail(
        err, RUNG_EMISUSE, "plugin.abi",
        "%s: is built for plugin ABI %u draft %u, this rung has ABI %u draft %u; build it "
        "again against this rung's headers",
        path, p->abi_major, p->abi_draft, RUNG_ABI_MAJOR, RUNG_ABI_DRAFT);
}

int32_t rung_plugin_check(const char *path, const struct rung_plugin *p, struct rung_error *err)
{
    int32_t status = check_abi(path, p, err);
    if (status)
        return status;
    struct rung_buf faults = {0};
    if (p->struct_size < sizeof *p || !p->id || !p->version || !p->vendor || !p->licence)
        rung_buf_puts(&faults, "; the descriptor is incomplete (id, version, vendor, licence)");
    else if (!p->factories || !p->factories[0])
        rung_buf_puts(&faults, "; it has no factories");
    else
        for (size_t i = 0; p->factories[i] && i < MAX_FACTORIES; i++)
            check_factory(p->factories[i], i, &faults);
    if (faults.len)
        status = rung_fail(err, RUNG_EMISUSE, "plugin.incomplete", "%s: refused: %s", path,
                           faults.ptr + 2);
    rung_buf_free(&faults);
    return status;
}
