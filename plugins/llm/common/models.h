/*
 * What models take and refuse, from libconfig files that people edit: config/models/, then a file
 * or folder of the user's. No model's name stands in C. Pure but for reading the files.
 */
#ifndef LLM_COMMON_MODELS_H
#define LLM_COMMON_MODELS_H

#include "text.h"

/* What a request may hold and a server may refuse. */
enum llm_knob {
    LLM_TEMPERATURE = 1u << 0,
    LLM_SEED = 1u << 1,
    LLM_EFFORT = 1u << 2,
    LLM_THINKING = 1u << 3,
    LLM_SCHEMA = 1u << 4,
    LLM_USAGE = 1u << 5, /* usage of streams */
    LLM_STREAM = 1u << 6,
    LLM_TOOLS = 1u << 7,
    LLM_CACHE = 1u << 8,
    LLM_SEALED = 1u << 9, /* reasoning to echo, encrypted */
    LLM_CAP = 1u << 10,   /* refused: the other name of the cap */
    LLM_ROLE = 1u << 11,  /* refused: the next of developer, system, user */
};

/* Who says what the system says. */
enum llm_system_role {
    LLM_SYSTEM_UNTOLD,
    LLM_SYSTEM_DEVELOPER,
    LLM_SYSTEM_SYSTEM,
    LLM_SYSTEM_USER
};

enum { LLM_EFFORTS = 8, LLM_LEVELS = 5, LLM_EFFORT_BYTES = 16 };

struct llm_model {
    uint32_t refuses;     /* llm_knob */
    uint32_t cap_field;   /* 0: not told, 1: max_completion_tokens, 2: max_tokens */
    uint32_t system_role; /* llm_system_role */
    int64_t context;      /* tokens of prompt and reply together; 0: not told */
    int64_t output;       /* tokens of a reply; 0: not told */
    uint32_t n_efforts;
    char efforts[LLM_EFFORTS][LLM_EFFORT_BYTES]; /* words that it takes, from low to high */
    uint32_t n_budgets;                          /* 0 or LLM_LEVELS */
    int64_t budgets[LLM_LEVELS]; /* tokens for reasoning, where it takes no effort by word */
};

/* The knob of a word of the files ("temperature"), or 0. */
uint32_t llm_knob_of(const char *word);
/* The word of a knob. */
const char *llm_knob_word(uint32_t knob);

/*
 * Adds to *model what the file, or the *.cfg files of the folder in the order of their names, say
 * of this provider's model. Entries apply in order; a field of a later one replaces that of an
 * earlier one. RUNG_ECONFIG llm.models with file:line; RUNG_ENOTFOUND when there is no such path.
 */
int32_t llm_models_read(const char *path, const char *provider, const char *name,
                        struct llm_model *model, struct rung_error *error);

/*
 * Word of the model for an effort of 1 (low) to 5: that of this name, else the nearest one below it
 * in its list, else its lowest; words[effort - 1] where the model has no list; NULL: none.
 */
const char *llm_model_effort(const struct llm_model *model, uint32_t effort,
                             const char *const words[LLM_LEVELS]);

#endif
