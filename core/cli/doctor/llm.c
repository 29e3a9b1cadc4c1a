/* Models: one tiny request to each of a pipeline's, and what it told of itself. */
#include "base/status.h"
#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "engine/llm_probe.h"

#include <stdio.h>

static void tell_key(const struct doctor *d, const cJSON *llm)
{
    const cJSON *key = rung_json_get(llm, "key");
    if (!cJSON_IsObject(key))
        return;
    doctor_row(d, "", "key        %s: %s", rung_json_text(key, "from", ""),
               rung_json_bool(key, "present", false) ? "there" : "not there");
}

static void tell_price(const struct doctor *d, const cJSON *llm)
{
    const cJSON *price = rung_json_get(llm, "price");
    if (cJSON_IsObject(price))
        doctor_row(d, "", "price      %g input, %g output USD per million tokens",
                   rung_json_number(price, "input", 0), rung_json_number(price, "output", 0));
    else if (!rung_json_bool(llm, "free", false))
        doctor_row(d, "", "price      not known; say it in the pipeline or in prices.cfg");
}

static void tell_limit(const struct doctor *d, const cJSON *limits, const char *what)
{
    char left[32];
    snprintf(left, sizeof left, "%s_left", what);
    int64_t all = rung_json_i64(limits, what, -1), rest = rung_json_i64(limits, left, -1);
    if (all >= 0 || rest >= 0)
        doctor_row(d, "", "limit      %lld %s, %lld left", (long long)all, what, (long long)rest);
}

static void tell(struct doctor *d, const cJSON *llm)
{
    const char *name = rung_json_text(llm, "name", "");
    const cJSON *error = rung_json_get(llm, "error"), *limits = rung_json_get(llm, "limits");
    double first = rung_json_number(llm, "first_token_s", 0);
    if (error)
        doctor_row(d, name, "does not answer: %s", rung_json_text(error, "message", ""));
    else if (rung_json_bool(llm, "free", false))
        doctor_row(d, name, "%s costs nothing and is not asked", rung_json_text(llm, "plugin", ""));
    else
        doctor_row(d, name, "%s answers in %.2f s", rung_json_text(llm, "said_model", ""),
                   rung_json_number(llm, "seconds", 0));
    if (first > 0)
        doctor_row(d, "", "first      token after %.2f s", first);
    tell_key(d, llm);
    tell_price(d, llm);
    tell_limit(d, limits, "requests");
    tell_limit(d, limits, "tokens");
    d->faults += !rung_json_bool(llm, "answers", false);
}

int doctor_llms(struct doctor *d, const char *pipeline, const char *const *sets, size_t n_sets)
{
    const struct rung_probe_options options = {pipeline, sets, n_sets, d->insecure};
    struct rung_error err = rung_error_init();
    cJSON *list = NULL;
    const cJSON *llm;
    int32_t status = rung_probe_llms(&options, &list, &err);
    cJSON_ArrayForEach(llm, list) tell(d, llm);
    cJSON_AddItemToObject(d->report, "llms", list);
    return status ? cli_fail(&err) : d->faults ? CLI_ENVIRONMENT : CLI_OK;
}
