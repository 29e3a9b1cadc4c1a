/* The servers that speak Chat Completions, and in what they differ. Static data. */
#ifndef LLM_OPENAI_DIALECTS_H
#define LLM_OPENAI_DIALECTS_H

#include <stdbool.h>
#include <stdint.h>

enum openai_schema { OPENAI_SCHEMA_NONE, OPENAI_SCHEMA_STRICT, OPENAI_SCHEMA_OBJECT };
enum openai_effort { OPENAI_EFFORT_NONE, OPENAI_EFFORT_WORD, OPENAI_EFFORT_OBJECT };

struct openai_dialect {
    const char *name;       /* of the option, and of the provider in tables of models */
    const char *hosts;      /* a piece of the URL by which it is told; NULL: never */
    const char *url;        /* default base; NULL: the user says it */
    const char *bare;       /* path that a URL without one gets */
    const char *key_header; /* NULL: authorization, with "Bearer " */
    uint32_t cap_field;     /* as of llm_model.cap_field */
    uint32_t schema;        /* openai_schema: response_format json_schema, or json_object.schema */
    uint32_t effort;        /* openai_effort: reasoning_effort, or reasoning.effort */
    bool usage;             /* takes stream_options.include_usage */
    const char *seed;       /* name of the seed's field; NULL: not sent */
    const char *echo;       /* reasoning field of a reply that goes back with its tool calls */
};

/* By the option's word; "auto" goes by the URL. Never NULL for a word of openai_dialect_words. */
const struct openai_dialect *openai_dialect_of(const char *word, const char *url);
/* "auto" and all names, NULL at the end. */
extern const char *const openai_dialect_words[];

#endif
