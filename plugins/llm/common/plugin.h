/* The entry point of a model backend. */
#ifndef LLM_COMMON_PLUGIN_H
#define LLM_COMMON_PLUGIN_H

#include <rung/plugin.h>

/* The ABI's tables for a plugin with one factory. */
#define LLM_PLUGIN(the_id, the_factory)                                                            \
    static const struct rung_factory *const factories[] = {&(the_factory), NULL};                  \
    static const struct rung_plugin plugin = {                                                     \
        .magic = RUNG_PLUGIN_MAGIC,                                                                \
        .struct_size = sizeof plugin,                                                              \
        .abi_major = RUNG_ABI_MAJOR,                                                               \
        .abi_draft = RUNG_ABI_DRAFT,                                                               \
        .id = the_id,                                                                              \
        .version = "0.1.0",                                                                        \
        .vendor = "rung",                                                                          \
        .licence = "Apache-2.0",                                                                   \
        .factories = factories,                                                                    \
    };                                                                                             \
    RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)                                    \
    {                                                                                              \
        return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;      \
    }

#endif
