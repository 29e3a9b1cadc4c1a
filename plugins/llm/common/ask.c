/* What builders of requests use; see provider.h. */
#include "provider.h"
#include <string.h>

bool llm_may(struct llm_ask *ask, uint32_t knob)
{
    if (ask->drop & knob)
        return false;
    ask->sent |= knob;
    return true;
}

/* Less than what is asked for where prompt and reply would not fit the model's context together. */
static int64_t fit(const struct llm_ask *ask, int64_t cap)
{
    enum { LEAST = 1024 };
    const struct llm_model *model = &ask->provider->model;
    const int64_t room = model->context - llm_estimate_prompt(ask->request) * 4 / 3;
    if (model->output && cap > model->output)
        cap = model->output;
    if (model->context && cap > room)
        cap = room > LEAST ? room : cap < LEAST ? cap : LEAST;
    return cap;
}

int64_t llm_cap(const struct llm_ask *ask)
{
    const int64_t asked = ask->request->max_output_tokens ? ask->request->max_output_tokens
                                                          : ask->provider->max_output_tokens;
    return asked > 0 ? fit(ask, asked) : 0;
}

const char *llm_cap_name(const struct llm_ask *ask)
{
    const struct llm_provider *p = ask->provider;
    uint32_t field = p->cap_field;
    if (!p->cap_fixed && p->model.cap_field)
        field = p->model.cap_field;
    const bool old = (field == 2) != ((ask->drop & LLM_CAP) != 0);
    return old ? "max_tokens" : "max_completion_tokens";
}

const char *llm_system_word(const struct llm_ask *ask)
{
    static const char *const words[] = {"developer", "system", NULL};
    const uint32_t told = ask->provider->model.system_role;
    uint32_t role = told ? told - LLM_SYSTEM_DEVELOPER : 1;
    if ((ask->drop & LLM_ROLE) && role < 2)
        ++role;
    return words[role];
}

void llm_add_temperature(struct llm_ask *ask, struct llm_body *body, cJSON *object)
{
    const double asked = ask->request->temperature;
    const double temperature = asked >= 0 ? asked : ask->provider->temperature;
    if (temperature >= 0 && llm_may(ask, LLM_TEMPERATURE))
        llm_body_number(body, object, "temperature", temperature);
}

const char *llm_effort(struct llm_ask *ask, const char *const words[LLM_LEVELS])
{
    const struct llm_provider *p = ask->provider;
    const char *word = words ? llm_model_effort(&p->model, ask->request->effort, words) : NULL;
    if (!word && p->effort[0])
        word = p->effort;
    return word && llm_may(ask, LLM_EFFORT) ? word : NULL;
}

int64_t llm_budget(struct llm_ask *ask)
{
    const struct llm_model *model = &ask->provider->model;
    const uint32_t effort = ask->request->effort;
    if (!model->n_budgets || effort < 1 || effort > LLM_LEVELS || !llm_may(ask, LLM_THINKING))
        return -1;
    return model->budgets[effort - 1];
}

cJSON *llm_schema(struct llm_ask *ask)
{
    const char *why;
    const struct rung_text *schema = &ask->request->schema;
    if (!schema->len || !llm_may(ask, LLM_SCHEMA))
        return NULL;
    return llm_json_parse((struct llm_span){schema->ptr, schema->len}, &why);
}

double llm_seed(const struct rung_llm_request *request)
{
    uint64_t hash = llm_hash(LLM_HASH_START, &request->seed, sizeof request->seed);
    hash = llm_hash(hash, request->key, strlen(request->key));
    return (double)((hash ^ hash >> 32) & 0x7fffffff);
}
