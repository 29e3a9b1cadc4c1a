/*
 * A worker in another root folder, which shares no file with the orchestrator: everything that it
 * needs to know travels. Started by chroot.sh, which builds the folder and names it here.
 */
#include "worker/harness.h"

#include <stdlib.h>
#include <string.h>

static void a_worker_in_another_root_folder_judges_as_ever(void **state)
{
    (void)state;
    static const char *const markers[] = {"good", "fail", "crash", "store", "good"};
    static const char *const codes[] = {"", "numeric.mismatch", "run.crash", "", ""};
    const char *launch[8] = {0};
    char *words = strdup(getenv("TEST_LAUNCH")), *save = NULL;
    int n = 0;
    for (char *w = strtok_r(words, " ", &save); w && n < 7; w = strtok_r(NULL, " ", &save))
        launch[n++] = w;
    struct harness *h = harness_new();
    h->workers[0].launch = launch;
    h->workers[0].rung = "/bin/worker_main";
    harness_start(h);
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        struct rung_outcome o = harness_judge(h, markers[i]);
        harness_expect(&o, codes[i][0] ? RUNG_REJECTED : RUNG_ACCEPTED, codes[i]);
        cJSON_Delete(o.report);
    }
    assert_int_equal(h->stored,
                     6); /* one source twice, by two executors: the bytes came over the pipe */
    harness_free(h);
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_in_another_root_folder_judges_as_ever),
    };
    if (!getenv("TEST_LAUNCH"))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
