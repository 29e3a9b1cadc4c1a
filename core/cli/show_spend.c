#include "cli/show_spend.h"
#include "base/json.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static const char *const classes[] = {"input",          "cache_read", "cache_write_5m",
                                      "cache_write_1h", "output",     "reasoning"};
enum { N_CLASSES = sizeof classes / sizeof *classes };

static int64_t *class_of(struct show_tokens *t, size_t i)
{
    int64_t *const places[N_CLASSES] = {&t->input,          &t->cache_read, &t->cache_write_5m,
                                        &t->cache_write_1h, &t->output,     &t->reasoning};
    return places[i];
}

static bool visit(void *ctx, const struct rung_record *record)
{
    struct show_spend *s = ctx;
    bool ours = strcmp(record->type, "sent") == 0 || strcmp(record->type, "reply") == 0;
    const char *billed = ours ? rung_json_text(record->json, "billed", "said") : "no";
    if (strcmp(billed, "no") == 0)
        return true;
    bool guessed = strcmp(billed, "guessed") == 0;
    const cJSON *usage = rung_json_get(record->json, "usage");
    double usd = rung_json_number(record->json, "usd", -1);
    s->calls++;
    s->guessed_calls += guessed;
    for (size_t i = 0; i < N_CLASSES; i++) {
        int64_t n = rung_json_i64(usage, classes[i], 0);
        *class_of(guessed ? &s->guessed : &s->tokens, i) += n > 0 ? n : 0;
    }
    if (usd < 0)
        s->gapped = true;
    else if (guessed)
        s->guessed_usd += usd;
    else
        s->usd += usd;
    return true;
}

struct show_spend show_spend_read(struct rung_journal *journal)
{
    struct show_spend s = {0};
    struct rung_error err = rung_error_init();
    (void)rung_journal_each(journal, NULL, 0, visit, &s, &err);
    return s;
}

static void print_tokens(const struct show_tokens *t)
{
    struct show_tokens copy = *t;
    const char *between = "";
    for (size_t i = 0; i < N_CLASSES; i++)
        if (*class_of(&copy, i)) {
            printf("%s%lld %s", between, (long long)*class_of(&copy, i), classes[i]);
            between = ", ";
        }
    if (!*between)
        fputs("none", stdout);
}

void show_spend_print(const struct show_spend *s)
{
    bool free = s->usd <= 0 && !s->gapped && !s->guessed_calls;
    if (!s->calls || free)
        return;
    printf("\nmodels: %lld calls; tokens: ", (long long)s->calls);
    print_tokens(&s->tokens);
    printf("; %.4f USD%s\n", s->usd, s->gapped ? " and calls whose price is not known" : "");
    if (!s->guessed_calls)
        return;
    printf("estimated, for %lld of the calls, of which nobody said what they cost: ",
           (long long)s->guessed_calls);
    print_tokens(&s->guessed);
    printf("; %.4f USD\n", s->guessed_usd);
}

static cJSON *tokens_json(const struct show_tokens *t)
{
    struct show_tokens copy = *t;
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < N_CLASSES; i++)
        rung_json_add_i64(json, classes[i], *class_of(&copy, i));
    return json;
}

cJSON *show_spend_json(const struct show_spend *s)
{
    cJSON *json = cJSON_CreateObject();
    rung_json_add_i64(json, "calls", s->calls);
    cJSON_AddItemToObject(json, "tokens", tokens_json(&s->tokens));
    rung_json_add_f64(json, "usd", s->usd);
    cJSON_AddBoolToObject(json, "price_known", !s->gapped);
    cJSON *guessed = cJSON_AddObjectToObject(json, "estimated");
    rung_json_add_i64(guessed, "calls", s->guessed_calls);
    cJSON_AddItemToObject(guessed, "tokens", tokens_json(&s->guessed));
    rung_json_add_f64(guessed, "usd", s->guessed_usd);
    return json;
}
