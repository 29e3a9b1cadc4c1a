/* Reading and queueing of lines. */
#include "support/support.h"

#include "worker/job.h"
#include "worker/line.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends[2];
static struct rung_line_in in;
static struct rung_line_out out;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    in = (struct rung_line_in){.fd = ends[0]};
    out = (struct rung_line_out){.fd = ends[1]};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rung_line_in_free(&in);
    rung_line_out_free(&out);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void put(const char *text)
{
    assert_int_equal(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
}

static void lines_come_whole_whatever_the_pieces(void **state)
{
    (void)state;
    const char *line;
    size_t n;
    put("one\ntw");
    assert_int_equal(rung_line_read(&in), RUNG_LINE_OK);
    assert_int_equal(rung_line_next(&in, &line, &n), RUNG_LINE_OK);
    assert_string_equal(line, "one");
    assert_int_equal(rung_line_next(&in, &line, &n), RUNG_LINE_AGAIN);
    assert_int_equal(rung_line_read(&in), RUNG_LINE_AGAIN);
    put("o\n\nthree");
    assert_int_equal(rung_line_read(&in), RUNG_LINE_OK);
    assert_int_equal(rung_line_next(&in, &line, &n), RUNG_LINE_OK);
    assert_string_equal(line, "two");
    assert_int_equal(rung_line_next(&in, &line, &n), RUNG_LINE_OK);
    assert_int_equal(n, 0);
    assert_int_equal(rung_line_next(&in, &line, &n), RUNG_LINE_AGAIN);
}

/* A writer that never sends a newline must not eat the reader's memory. */
static void an_endless_line_is_a_fault(void **state)
{
    (void)state;
    char block[4096];
    const char *line;
    size_t n, total = 0;
    enum rung_line_status got = RUNG_LINE_AGAIN;
    memset(block, 'x', sizeof block);
    while (got == RUNG_LINE_AGAIN && total < 2 * RUNG_LINE_MAX) {
        assert_int_equal(write(ends[1], block, sizeof block), sizeof block);
        total += sizeof block;
        assert_int_equal(rung_line_read(&in), RUNG_LINE_OK);
        got = rung_line_next(&in, &line, &n);
    }
    assert_int_equal(got, RUNG_LINE_FAULT);
    assert_true(total <= RUNG_LINE_MAX + 2 * sizeof block);
}

static void the_end_of_the_input_is_seen(void **state)
{
    (void)state;
    close(ends[1]);
    assert_int_equal(rung_line_read(&in), RUNG_LINE_EOF);
    ends[1] = dup(ends[0]);
}

static void a_full_pipe_does_not_block_the_writer(void **state)
{
    (void)state;
    char *text = malloc(400000);
    const char *line;
    size_t n;
    memset(text, 'y', 400000);
    rung_line_push(&out, text, 400000);
    assert_true(rung_line_flush(&out));
    assert_true(rung_line_waiting(&out) > 0);
    enum rung_line_status got = RUNG_LINE_AGAIN;
    while (got == RUNG_LINE_AGAIN) {
        rung_line_read(&in);
        assert_true(rung_line_flush(&out));
        got = rung_line_next(&in, &line, &n);
    }
    assert_int_equal(n, 400000);
    assert_memory_equal(line, text, n);
    assert_int_equal(rung_line_waiting(&out), 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_come_whole_whatever_the_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(an_endless_line_is_a_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_of_the_input_is_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_pipe_does_not_block_the_writer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
