/* What a run's requests to models cost, from its journal. */
#ifndef CLI_SHOW_SPEND_H
#define CLI_SHOW_SPEND_H

#include "journal/journal.h"

/* Tokens by price class. */
struct show_tokens {
    int64_t input, cache_read, cache_write_5m, cache_write_1h, output, reasoning;
};

/* What providers reported, and apart from it estimates of what they did not. */
struct show_spend {
    int64_t calls, guessed_calls; /* the first counts both kinds */
    struct show_tokens tokens, guessed;
    double usd, guessed_usd;
    bool gapped; /* some call's price was not known */
};

/* Adds up all records of the journal. Damaged ones end it early: what was read counts. */
struct show_spend show_spend_read(struct rung_journal *journal);
/* Lines for people; nothing when all that was asked is free. */
void show_spend_print(const struct show_spend *spend);
/* The caller deletes it. */
cJSON *show_spend_json(const struct show_spend *spend);

#endif
