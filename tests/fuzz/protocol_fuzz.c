/* libFuzzer: any bytes as the lines of a worker or an orchestrator, through reader and decoders. */
#include "base/status.h"
#include "worker/blob.h"
#include "worker/flight.h"
#include "worker/line.h"
#include "worker/outcome.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct peer {
    struct rung_arena *arena;
    struct rung_blob_set blobs;
    struct rung_flight flight;
};

static void take_result(struct peer *peer, cJSON *message)
{
    struct rung_error err = rung_error_init();
    struct rung_outcome outcome;
    if (rung_outcome_read(peer->arena, message, &outcome, &err) != RUNG_OK)
        return;
    if ((outcome.verdict == RUNG_ACCEPTED) != !outcome.code[0] || !outcome.report)
        __builtin_trap();
    cJSON_Delete(outcome.report);
}

static void take_blob(struct peer *peer, const cJSON *message)
{
    struct rung_error err = rung_error_init();
    const struct rung_blob *done;
    if (rung_blob_take(&peer->blobs, message, &done, &err) != RUNG_OK)
        rung_blob_clear(&peer->blobs);
    else if (done)
        rung_blob_drop(&peer->blobs, done);
}

static void end_flight(struct peer *peer, const cJSON *message)
{
    if (!peer->flight.active)
        return;
    char *line = rung_flight_crashed(&peer->flight, rung_json_get(message, "rungs"), SIGSEGV);
    cJSON *result;
    if (rung_message_parse(line, strlen(line), &result) != RUNG_MSG_RESULT)
        __builtin_trap();
    cJSON_Delete(result);
    free(line);
}

static void take(struct peer *peer, const char *line, size_t n)
{
    struct rung_error err = rung_error_init();
    cJSON *message;
    enum rung_message_type type = rung_message_parse(line, n, &message);
    if (type == RUNG_MSG_HELLO || type == RUNG_MSG_SETUP)
        rung_identity_check(message, "the other side", &err);
    else if (type == RUNG_MSG_REFUSED && rung_refusal_read(message, &err) == RUNG_OK)
        __builtin_trap();
    else if (type == RUNG_MSG_JOB && !peer->flight.active)
        rung_flight_begin(&peer->flight, message);
    else if (type == RUNG_MSG_STAGE)
        rung_flight_stage(&peer->flight, message);
    else if (type == RUNG_MSG_RUNG)
        rung_flight_rung(&peer->flight, message);
    else if (type == RUNG_MSG_BLOB)
        take_blob(peer, message);
    else if (type == RUNG_MSG_RESULT)
        take_result(peer, message);
    else
        end_flight(peer, message);
    cJSON_Delete(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer peer = {.arena = rung_arena_new()};
    const char *line;
    size_t n;
    int ends[2];
    if (size > 60000 || pipe(ends) != 0) { /* what a pipe takes at once */
        rung_arena_free(peer.arena);
        return 0;
    }
    struct rung_line_in in = {.fd = ends[0]};
    ssize_t put = write(ends[1], data, size);
    close(ends[1]);
    while (put >= 0 && rung_line_read(&in) == RUNG_LINE_OK)
        while (rung_line_next(&in, &line, &n) == RUNG_LINE_OK)
            take(&peer, line, n);
    rung_flight_end(&peer.flight);
    close(ends[0]);
    rung_line_in_free(&in);
    rung_blob_clear(&peer.blobs);
    rung_arena_free(peer.arena);
    return 0;
}
