/* Threads change nothing: the same bits of values and bounds for any number of them. */
#include "problem.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 301, COLS = 1009 };

static void run(const char *graph, int64_t threads, const float *x, double **value, double **bound)
{
    struct problem p;
    problem_threads = threads;
    problem_matrix(&p, graph, ROWS, COLS, x, "rows,cols");
    uint64_t bytes = p.outputs[0].n * sizeof **value;
    *value = malloc(bytes);
    *bound = malloc(bytes);
    memcpy(*value, p.outputs[0].value, bytes);
    memcpy(*bound, p.outputs[0].bound, bytes);
    problem_close(&p);
}

static void threads_change_nothing(void **state)
{
    static const char *const graphs[] = {
        "y = gelu(x)",
        "y = softmax(x, axis=1)",
        "y = cumsum(x, axis=0)",
        "y = x * mean(x, axis=0) + max(x, axis=1, keepdim=1) - var(x)",
        "y = matmul(matmul(x, x, transpose_b=1), x)",
        "w = reshape(slice(select(x, 0, 0), 0, 0, 9), (1, 1, 3, 3)); "
        "y = reshape(conv2d(reshape(x, (1, 1, 301, 1009)), w, pad=1), (301, 1009))",
        "w = reshape(slice(select(x, 0, 0), 0, 0, 9), (1, 1, 3, 3)); "
        "y = reshape(conv_transpose2d(reshape(x, (1, 1, 301, 1009)), w, pad=1), (301, 1009))",
        "y = reshape(maxpool2d(reshape(x, (1, 1, 301, 1009)), 3, stride=1, pad=1), (301, 1009))",
        "y = transpose(flip(transpose(x), axis=0))",
        "y = attention(x, x, x, causal=1)"};
    (void)state;
    float *x = test_data("normal", 12, ROWS, COLS);
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        double *value[2], *bound[2];
        run(graphs[g], 1, x, &value[0], &bound[0]);
        run(graphs[g], 5, x, &value[1], &bound[1]);
        assert_memory_equal(value[0], value[1], sizeof(double) * ROWS * COLS);
        assert_memory_equal(bound[0], bound[1], sizeof(double) * ROWS * COLS);
        for (int i = 0; i < 2; i++) {
            free(value[i]);
            free(bound[i]);
        }
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
