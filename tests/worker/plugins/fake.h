/*
 * What the plugins of the worker's tests share. They act on markers in a candidate's source, such
 * as "marker: crash", so that one pool sees every way in which a candidate can go wrong.
 */
#ifndef WORKER_FAKE_H
#define WORKER_FAKE_H

#include <rung/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int32_t fake_create(const struct rung_host *host, const struct rung_options *options,
                                  struct rung_error *err, void **self)
{
    (void)options, (void)err;
    *self = (void *)(uintptr_t)host;
    return RUNG_OK;
}

static inline void fake_destroy(void *self)
{
    (void)self;
}

static inline int32_t fake_fail(struct rung_call *call, int32_t code, const char *text)
{
    call->error->code = code;
    snprintf(call->error->message, sizeof call->error->message, "%s", text);
    return code;
}

/* Whether the text (with a NUL behind it) holds "marker: WORD". */
static inline int fake_marked(const char *text, const char *word)
{
    char marker[64];
    snprintf(marker, sizeof marker, "marker: %s\n", word);
    return strstr(text, marker) != NULL;
}

/*
 * A clock that all plugins of a process share, through the environment, since their variables are
 * their own: it counts samples, and grows slower with each of them.
 */
static inline double fake_clock(double drift)
{
    const char *text = getenv("FAKE_CLOCK");
    unsigned long ticks = text ? strtoul(text, NULL, 10) + 1 : 1;
    char next[32];
    snprintf(next, sizeof next, "%lu", ticks);
    setenv("FAKE_CLOCK", next, 1);
    uint64_t word = ticks * UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ word >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    double noise = (double)(word >> 11) / 9007199254740992.0 - 0.5; /* half a percent at most */
    return (1 + 0.01 * noise) * (1 + drift * (double)ticks);
}

/* The plugin file of one factory. */
#define FAKE_PLUGIN(KIND, NAME, CAPABILITIES, OPTIONS, OPS)                                        \
    static const struct rung_factory factory = {.struct_size = sizeof factory,                     \
                                                .thread_model = RUNG_SERIAL_INSTANCE,              \
                                                .capabilities = CAPABILITIES,                      \
                                                .kind = KIND,                                      \
                                                .name = NAME,                                      \
                                                .summary = "for tests",                            \
                                                .options = OPTIONS,                                \
                                                .ops = &OPS,                                       \
                                                .create = fake_create,                             \
                                                .destroy = fake_destroy};                          \
    static const struct rung_factory *const factories[] = {&factory, NULL};                        \
    static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,                          \
                                              .struct_size = sizeof plugin,                        \
                                              .abi_major = RUNG_ABI_MAJOR,                         \
                                              .abi_draft = RUNG_ABI_DRAFT,                         \
                                              .id = "test.worker." NAME,                           \
                                              .version = "1",                                      \
                                              .vendor = "test",                                    \
                                              .licence = "MIT",                                    \
                                              .factories = factories};                             \
    RUNG_PLUGIN_ENTRY(uint32_t major, uint32_t draft)                                              \
    {                                                                                              \
        return major == RUNG_ABI_MAJOR && draft == RUNG_ABI_DRAFT ? &plugin : NULL;                \
    }

#endif
