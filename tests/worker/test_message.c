/* Messages, blobs and results from a side that nothing is believed of. */
#include "support/support.h"

#include "base/io.h"
#include "base/status.h"
#include "worker/blob.h"
#include "worker/message.h"
#include "worker/outcome.h"
#include "worker/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the other side makes of a message. */
static cJSON *travelled(cJSON *message)
{
    char *line = rung_message_line(message);
    cJSON *read = rung_json_parse(line, strlen(line));
    free(line);
    assert_non_null(read);
    return read;
}

static void only_objects_with_a_known_type_are_messages(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "7",
                                      "\"t\"",
                                      "{}",
                                      "{\"t\":7}",
                                      "{\"t\":\"\"}",
                                      "{\"t\":\"nonsense\"}",
                                      "{\"t\":\"beat\"} x",
                                      "\xff\xfe",
                                      "{\"t\":\"beat\",\"x\":\"\xc3\"}"};
    cJSON *message;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(rung_message_parse(bad[i], strlen(bad[i]), &message), RUNG_MSG_NONE);
        assert_null(message);
    }
    assert_int_equal(rung_message_parse("{\"t\":\"beat\"}", 12, &message), RUNG_MSG_BEAT);
    cJSON_Delete(message);
    assert_int_equal(rung_message_parse("{\"t\":\"beat\"\0}", 13, &message), RUNG_MSG_NONE);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    char text[4096] = "{\"t\":\"beat\",\"x\":";
    size_t n = strlen(text);
    memset(text + n, '[', 1000);
    memset(text + n + 1000, ']', 1000);
    strcpy(text + n + 2000, "}");
    cJSON *message;
    assert_int_equal(rung_message_parse(text, strlen(text), &message), RUNG_MSG_NONE);
}

static void another_version_is_refused_with_both_sides_named(void **state)
{
    (void)state;
    struct rung_error err = rung_error_init();
    cJSON *hello = rung_message_new(RUNG_MSG_HELLO);
    rung_identity_add(hello);
    hello = travelled(hello);
    assert_int_equal(rung_identity_check(hello, "the worker", &err), RUNG_OK);
    cJSON_ReplaceItemInObject(hello, "version", cJSON_CreateString("9.9.9"));
    assert_int_equal(rung_identity_check(hello, "the worker", &err), RUNG_ECONFIG);
    support_contains(err.message, "the worker is rung 9.9.9");
    support_contains(err.message, "this side is rung " RUNG_VERSION);
    cJSON_ReplaceItemInObject(hello, "version", cJSON_CreateString(RUNG_VERSION));
    cJSON_ReplaceItemInObject(hello, "protocol", cJSON_CreateNumber(2));
    assert_int_equal(rung_identity_check(hello, "the worker", &err), RUNG_ECONFIG);
    support_contains(err.message, "protocol 2");
    cJSON_ReplaceItemInObject(hello, "protocol", cJSON_CreateNumber(RUNG_PROTOCOL));
    cJSON_DeleteItemFromObject(hello, "abi");
    assert_int_equal(rung_identity_check(hello, "the worker", &err), RUNG_ECONFIG);
    cJSON_Delete(hello);
}

static void stages_travel_without_loss(void **state)
{
    (void)state;
    struct rung_stage_message a = {.id = 7,
                                   .kind = RUNG_AT_CHECK,
                                   .limit_s = 0.1,
                                   .points = 9,
                                   .stage = "numeric",
                                   .text = "numeric 1/2",
                                   .where = "rows=7",
                                   .point = "T=32"},
                              b;
    cJSON *message = travelled(rung_stage_write(&a));
    assert_true(rung_stage_read(message, &b));
    assert_memory_equal(&a, &b, sizeof a);
    cJSON_ReplaceItemInObject(message, "limit_s", cJSON_CreateNumber(1e9));
    assert_false(rung_stage_read(message, &b));
    cJSON_ReplaceItemInObject(message, "limit_s", cJSON_CreateNumber(1));
    cJSON_ReplaceItemInObject(message, "kind", cJSON_CreateString("nothing"));
    assert_false(rung_stage_read(message, &b));
    cJSON_Delete(message);
}

/* ---- Blobs ---- */

static struct rung_blob_set set;
static const struct rung_blob *done;

static int32_t take(const char *line)
{
    struct rung_error err = rung_error_init();
    cJSON *message;
    assert_int_equal(rung_message_parse(line, strlen(line), &message), RUNG_MSG_BLOB);
    int32_t status = rung_blob_take(&set, message, &done, &err);
    assert_true((status == RUNG_OK) == !err.message[0]);
    cJSON_Delete(message);
    return status;
}

static bool take_line(void *ctx, const char *line)
{
    (void)ctx;
    return take(line) == RUNG_OK;
}

static void blobs_of_every_size_arrive(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0, 1, 2, 3, RUNG_BLOB_CHUNK - 1, RUNG_BLOB_CHUNK, RUNG_BLOB_CHUNK + 1, 200000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *bytes = malloc(sizes[i] + 1), hex[RUNG_SHA256_HEX];
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (char)(k * 31 + i);
        rung_sha256(bytes, sizes[i], hex);
        assert_true(rung_blob_send(hex, bytes, sizes[i], take_line, NULL));
        assert_non_null(done);
        assert_ptr_equal(rung_blob_find(&set, hex), done);
        assert_int_equal(done->bytes.len, sizes[i]);
        assert_true(!sizes[i] || memcmp(done->bytes.ptr, bytes, sizes[i]) == 0);
        rung_blob_drop(&set, done);
        assert_null(rung_blob_find(&set, hex));
        free(bytes);
    }
    assert_int_equal(set.held, 0);
}

/* The hash of "abc". */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define CHUNK(sha, offset, total, data)                                                            \
    "{\"t\":\"blob\",\"sha256\":\"" sha "\",\"offset\":" offset ",\"total\":" total                \
    ",\"data\":" data "}"

static void chunks_that_break_the_protocol_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {CHUNK("zz", "0", "3", "\"YWJj\""),
                                      CHUNK(ABC, "-1", "3", "\"YWJj\""),
                                      CHUNK(ABC, "0", "-3", "\"YWJj\""),
                                      CHUNK(ABC, "0", "1e30", "\"YWJj\""),
                                      CHUNK(ABC, "0", "67108865", "\"YWJj\""),
                                      CHUNK(ABC, "0", "2", "\"YWJj\""),
                                      CHUNK(ABC, "0", "3", "\"YWJ\""),
                                      CHUNK(ABC, "0", "3", "\"Y!Jj\""),
                                      CHUNK(ABC, "0", "3", "7"),
                                      CHUNK(ABC, "0", "3", "\"\""),
                                      CHUNK(ABC, "1", "3", "\"YWJj\""),
                                      CHUNK(ABC, "0", "3", "\"YWJk\""),
                                      CHUNK(ABC, "0.5", "3", "\"YWJj\""),
                                      "{\"t\":\"blob\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (take(bad[i]) == RUNG_OK)
            fail_msg("accepted: %s", bad[i]);
        assert_null(done);
        rung_blob_clear(&set);
    }
    assert_int_equal(set.held, 0);
}

static void chunks_must_follow_each_other(void **state)
{
    (void)state;
    assert_int_equal(take(CHUNK(ABC, "0", "3", "\"YQ==\"")), RUNG_OK);
    assert_int_equal(take(CHUNK(ABC, "2", "3", "\"Yw==\"")), RUNG_EMISUSE);
    assert_int_equal(take(CHUNK(ABC, "1", "4", "\"Yg==\"")), RUNG_EMISUSE);
    assert_int_equal(take(CHUNK(ABC, "1", "3", "\"Yg==\"")), RUNG_OK);
    assert_null(done);
    assert_int_equal(take(CHUNK(ABC, "0", "3", "\"YWI=\"")), RUNG_OK); /* begun anew */
    assert_int_equal(take(CHUNK(ABC, "2", "3", "\"Yw==\"")), RUNG_OK);
    assert_non_null(done);
    rung_blob_clear(&set);
}

static void the_number_of_open_blobs_is_bounded(void **state)
{
    (void)state;
    char line[256];
    for (int i = 0; i <= RUNG_BLOB_OPEN; i++) {
        snprintf(line, sizeof line, CHUNK("%064x", "0", "9", "\"YWJj\""), i + 1);
        assert_int_equal(take(line), i < RUNG_BLOB_OPEN ? RUNG_OK : RUNG_EMISUSE);
    }
    rung_blob_clear(&set);
}

/* ---- Results ---- */

static const char good_result[] =
    "{\"t\":\"result\",\"id\":1,\"verdict\":\"rejected\",\"code\":\"run.crash\",\"message\":\"m\","
    "\"point\":\"\",\"points\":1,\"score\":null,\"stored\":[],\"report\":{}}";

/* Replaces one member by JSON text (NULL: removes it) and reads the result. */
static int32_t read_with(const char *name, const char *value)
{
    struct rung_error err = rung_error_init();
    struct rung_arena *arena = rung_arena_new();
    struct rung_outcome outcome;
    cJSON *message = rung_json_parse(good_result, strlen(good_result));
    cJSON_DeleteItemFromObject(message, name);
    if (value)
        cJSON_AddItemToObject(message, name, rung_json_parse(value, strlen(value)));
    int32_t status = rung_outcome_read(arena, message, &outcome, &err);
    if (status == RUNG_OK)
        cJSON_Delete(outcome.report);
    cJSON_Delete(message);
    rung_arena_free(arena);
    return status;
}

static void results_are_read_strictly(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"verdict", "\"fine\""},
        {"verdict", "3"},
        {"verdict", NULL},
        {"verdict", "\"accepted\""},
        {"code", "\"\""},
        {"code", "7"},
        {"code", "\"Spaces Here\""},
        {"code", NULL},
        {"code", "\"a.code.that.is.longer.than.thirty.one.bytes\""},
        {"points", "-1"},
        {"points", NULL},
        {"score", "{}"},
        {"score", "{\"kind\":1,\"time_ns\":\"nan\",\"tie_band\":0,\"floor_ns\":0}"},
        {"score", "{\"kind\":1,\"time_ns\":-1,\"tie_band\":0,\"floor_ns\":0}"},
        {"score", "{\"kind\":3,\"time_ns\":1,\"tie_band\":0,\"floor_ns\":0}"},
        {"stored", "7"},
        {"stored", "[7]"},
        {"stored", "[{\"name\":\"../x\",\"sha256\":\"" ABC "\",\"bytes\":1}]"},
        {"stored", "[{\"name\":\"x\",\"sha256\":\"12\",\"bytes\":1}]"},
        {"report", "[]"},
        {"report", NULL}};
    assert_int_equal(read_with("point", "\"T=1\""), RUNG_OK);
    assert_int_equal(read_with("score", "{\"kind\":1,\"time_ns\":5,\"tie_band\":0,\"floor_ns\":0}"),
                     RUNG_OK);
    assert_int_equal(
        read_with("stored", "[{\"name\":\"x.ptx\",\"sha256\":\"" ABC "\",\"bytes\":1}]"), RUNG_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (read_with(bad[i][0], bad[i][1]) != RUNG_EMISUSE)
            fail_msg("accepted: %s = %s", bad[i][0], bad[i][1] ? bad[i][1] : "(absent)");
}

/* However much the rungs have to say, the line stays within bounds and stays JSON. */
static void results_shrink_until_they_fit(void **state)
{
    (void)state;
    char *text = malloc(100001);
    memset(text, 1, 100000); /* each becomes six bytes of JSON */
    text[100000] = 0;
    struct rung_result result = {.id = 1,
                                 .verdict = RUNG_REJECTED,
                                 .code = "run.crash",
                                 .message = rung_text_of(text),
                                 .point = "",
                                 .rungs = cJSON_CreateArray()};
    for (int i = 0; i < 64; i++)
        cJSON_AddItemToArray(
            result.rungs, rung_report_rung("r", RUNG_FAIL, "run.crash", rung_text_of(text), NULL));
    char *line = rung_result_line(&result);
    cJSON *message;
    assert_true(strlen(line) <= RUNG_LINE_MAX);
    assert_int_equal(rung_message_parse(line, strlen(line), &message), RUNG_MSG_RESULT);
    support_contains(rung_json_text(message, "message", ""), "bytes cut");
    cJSON_Delete(message);
    free(line);
    free(text);
}

static void cuts_respect_utf8(void **state)
{
    (void)state;
    char text[3001];
    for (int i = 0; i < 1000; i++)
        memcpy(text + 3 * i, "\xe2\x82\xac", 3);
    text[3000] = 0;
    for (size_t limit = 100; limit < 112; limit++) {
        cJSON *object = cJSON_CreateObject();
        rung_json_add_cut(object, "x", rung_text_of(text), limit);
        const char *cut = rung_json_text(object, "x", "");
        assert_true(rung_utf8_valid(cut, strlen(cut)));
        assert_null(strstr(cut, "\xef\xbf\xbd"));
        support_contains(cut, "bytes cut");
        cJSON_Delete(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_objects_with_a_known_type_are_messages),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(another_version_is_refused_with_both_sides_named),
        cmocka_unit_test(stages_travel_without_loss),
        cmocka_unit_test(blobs_of_every_size_arrive),
        cmocka_unit_test(chunks_that_break_the_protocol_are_refused),
        cmocka_unit_test(chunks_must_follow_each_other),
        cmocka_unit_test(the_number_of_open_blobs_is_bounded),
        cmocka_unit_test(results_are_read_strictly),
        cmocka_unit_test(results_shrink_until_they_fit),
        cmocka_unit_test(cuts_respect_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
