/* What models take and refuse; see models.h. */
#include "models.h"
#include <dirent.h>
#include <fnmatch.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *word;
    uint32_t knob;
} knobs[] = {{"temperature", LLM_TEMPERATURE}, {"seed", LLM_SEED},     {"effort", LLM_EFFORT},
             {"thinking", LLM_THINKING},       {"schema", LLM_SCHEMA}, {"stream_usage", LLM_USAGE},
             {"stream", LLM_STREAM},           {"tools", LLM_TOOLS},   {"cache", LLM_CACHE},
             {"sealed_reasoning", LLM_SEALED}, {"cap_field", LLM_CAP}, {"system_role", LLM_ROLE}};

enum { N_KNOBS = sizeof knobs / sizeof *knobs, N_WORDS = N_KNOBS - 2, MAX_FILES = 64 };

uint32_t llm_knob_of(const char *word)
{
    for (size_t i = 0; i < N_WORDS; ++i)
        if (strcmp(knobs[i].word, word) == 0)
            return knobs[i].knob;
    return 0;
}

const char *llm_knob_word(uint32_t knob)
{
    for (size_t i = 0; i < N_KNOBS; ++i)
        if (knobs[i].knob == knob)
            return knobs[i].word;
    return "";
}

/* ---- One file ---- */

struct reader {
    const char *path, *provider, *name;
    struct llm_model *model;
    struct rung_error *error;
};

static int32_t wrong(const struct reader *r, const config_setting_t *at, const char *what)
{
    const char *name = config_setting_name(at);
    return llm_fail(r->error, RUNG_ECONFIG, "llm.models", "%s:%u: %s%s%s", r->path,
                    config_setting_source_line(at), name ? name : "", name ? ": " : "", what);
}

static uint32_t length_of(const config_setting_t *s)
{
    const int n = config_setting_length(s);
    return n > 0 ? (uint32_t)n : 0;
}

static const char *text_of(config_setting_t *s, uint32_t i)
{
    return config_setting_get_string_elem(s, (int)i);
}

static int32_t read_refuses(const struct reader *r, config_setting_t *s)
{
    uint32_t all = 0;
    if (!config_setting_is_aggregate(s))
        return wrong(r, s, "a list of words is needed");
    for (uint32_t i = 0; i < length_of(s); ++i) {
        const char *word = text_of(s, i);
        const uint32_t knob = word ? llm_knob_of(word) : 0;
        if (!knob)
            return wrong(r, s,
                         "the words are temperature, seed, effort, thinking, schema, stream, "
                         "stream_usage, tools, cache and sealed_reasoning");
        all |= knob;
    }
    r->model->refuses = all;
    return RUNG_OK;
}

static int32_t read_efforts(const struct reader *r, config_setting_t *s)
{
    if (!config_setting_is_aggregate(s) || length_of(s) > LLM_EFFORTS)
        return wrong(r, s, "a list of at most 8 words is needed, from low to high");
    for (uint32_t i = 0; i < length_of(s); ++i) {
        const char *word = text_of(s, i);
        if (!word || !word[0] || strlen(word) >= LLM_EFFORT_BYTES)
            return wrong(r, s, "a word of at most 15 bytes is needed");
        snprintf(r->model->efforts[i], LLM_EFFORT_BYTES, "%s", word);
    }
    r->model->n_efforts = length_of(s);
    return RUNG_OK;
}

static bool is_whole(const config_setting_t *s)
{
    const int type = config_setting_type(s);
    return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
}

static int32_t read_budgets(const struct reader *r, config_setting_t *s)
{
    if (!config_setting_is_aggregate(s) || (length_of(s) && length_of(s) != LLM_LEVELS))
        return wrong(r, s, "five numbers of tokens are needed, or none");
    for (uint32_t i = 0; i < length_of(s); ++i) {
        const config_setting_t *item = config_setting_get_elem(s, i);
        r->model->budgets[i] = is_whole(item) ? config_setting_get_int64(item) : -1;
        if (r->model->budgets[i] < 0)
            return wrong(r, s, "a number of tokens, 0 or more, is needed");
    }
    r->model->n_budgets = length_of(s);
    return RUNG_OK;
}

static int32_t read_count(const struct reader *r, config_setting_t *s, int64_t *out)
{
    *out = is_whole(s) ? config_setting_get_int64(s) : -1;
    return *out >= 0 ? RUNG_OK : wrong(r, s, "a number of tokens, 0 or more, is needed");
}

/* Sets *out to first + the place of the word. */
static int32_t read_word(const struct reader *r, config_setting_t *s, const char *const *words,
                         uint32_t *out, const char *what)
{
    const char *word = config_setting_get_string(s);
    for (uint32_t i = 0; word && words[i]; ++i)
        if (strcmp(word, words[i]) == 0) {
            *out = i + 1;
            return RUNG_OK;
        }
    return wrong(r, s, what);
}

static int32_t read_field(const struct reader *r, config_setting_t *s)
{
    static const char *const caps[] = {"max_completion_tokens", "max_tokens", NULL};
    static const char *const roles[] = {"developer", "system", "user", NULL};
    const char *name = config_setting_name(s);
    if (strcmp(name, "provider") == 0 || strcmp(name, "match") == 0)
        return RUNG_OK;
    if (strcmp(name, "refuses") == 0)
        return read_refuses(r, s);
    if (strcmp(name, "efforts") == 0)
        return read_efforts(r, s);
    if (strcmp(name, "budgets") == 0)
        return read_budgets(r, s);
    if (strcmp(name, "context") == 0)
        return read_count(r, s, &r->model->context);
    if (strcmp(name, "output") == 0)
        return read_count(r, s, &r->model->output);
    if (strcmp(name, "cap_field") == 0)
        return read_word(r, s, caps, &r->model->cap_field,
                         "\"max_completion_tokens\" or \"max_tokens\" is needed");
    if (strcmp(name, "system_role") == 0)
        return read_word(r, s, roles, &r->model->system_role,
                         "\"developer\", \"system\" or \"user\" is needed");
    return wrong(r, s, "no such setting");
}

static int32_t read_entry(struct reader *r, config_setting_t *entry)
{
    const char *provider, *match;
    struct llm_model scratch = {0}, *model = r->model;
    int32_t status = RUNG_OK;
    if (!config_setting_is_group(entry) ||
        !config_setting_lookup_string(entry, "provider", &provider) ||
        !config_setting_lookup_string(entry, "match", &match))
        return wrong(r, entry, "a group with the texts provider and match is needed");
    /* An entry of another model is checked too. */
    if (fnmatch(provider, r->provider, FNM_EXTMATCH) != 0 ||
        fnmatch(match, r->name, FNM_CASEFOLD | FNM_EXTMATCH) != 0)
        r->model = &scratch;
    for (uint32_t i = 0; i < length_of(entry) && status == RUNG_OK; ++i)
        status = read_field(r, config_setting_get_elem(entry, i));
    r->model = model;
    return status;
}

static int32_t read_config(struct reader *r, config_t *config)
{
    config_setting_t *root = config_root_setting(config), *list = config_lookup(config, "models");
    int32_t status = RUNG_OK;
    if (!list || !config_setting_is_list(list) || length_of(root) != 1)
        return llm_fail(r->error, RUNG_ECONFIG, "llm.models",
                        "%s:1: one list is needed: models = ( { provider = ..; match = ..; } );",
                        r->path);
    for (uint32_t i = 0; i < length_of(list) && status == RUNG_OK; ++i)
        status = read_entry(r, config_setting_get_elem(list, i));
    return status;
}

static int32_t read_file(struct reader *r)
{
    config_t config;
    int32_t status;
    config_init(&config);
    if (config_read_file(&config, r->path) == CONFIG_TRUE)
        status = read_config(r, &config);
    else
        status = llm_fail(r->error, RUNG_ECONFIG, "llm.models", "%s:%d: %s", r->path,
                          config_error_line(&config), config_error_text(&config));
    config_destroy(&config);
    return status;
}

/* ---- Folders ---- */

static int is_table(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && dot != entry->d_name && strcmp(dot, ".cfg") == 0;
}

static int in_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int32_t read_folder(struct reader *r, const char *path)
{
    struct dirent **files = NULL;
    char name[4096];
    const int n = scandir(path, &files, is_table, in_bytes);
    int32_t status = n < 0 || n > MAX_FILES ? llm_fail(r->error, RUNG_ECONFIG, "llm.models",
                                                       "%s can't be read as a folder of at "
                                                       "most %d tables",
                                                       path, MAX_FILES)
                                            : RUNG_OK;
    for (int i = 0; i < n; ++i) {
        snprintf(name, sizeof name, "%s/%s", path, files[i]->d_name);
        r->path = name;
        if (status == RUNG_OK)
            status = read_file(r);
        free(files[i]);
    }
    free(files);
    return status;
}

int32_t llm_models_read(const char *path, const char *provider, const char *name,
                        struct llm_model *model, struct rung_error *error)
{
    struct reader r = {path, provider, name, model, error};
    struct stat st;
    if (stat(path, &st) != 0)
        return llm_fail(error, RUNG_ENOTFOUND, "llm.models", "%s: no such table of models", path);
    return S_ISDIR(st.st_mode) ? read_folder(&r, path) : read_file(&r);
}

/* ---- Efforts ---- */

static int place_of(const char *word)
{
    static const char *const order[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    for (size_t i = 0; i < sizeof order / sizeof *order; ++i)
        if (strcmp(order[i], word) == 0)
            return (int)i;
    return -1;
}

const char *llm_model_effort(const struct llm_model *model, uint32_t effort,
                             const char *const words[LLM_LEVELS])
{
    if (effort < 1 || effort > LLM_LEVELS)
        return NULL;
    const char *wanted = words[effort - 1], *best = NULL;
    if (!model->n_efforts)
        return wanted;
    for (uint32_t i = 0; i < model->n_efforts; ++i)
        if (!best || place_of(model->efforts[i]) <= place_of(wanted))
            best = model->efforts[i];
    return best;
}
