/* Base64 against the vectors of RFC 4648 section 10, and against hostile text. */
#include "support/support.h"

#include "base/io.h"

#include <string.h>

static void vectors_of_the_rfc_come_out(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct rung_buf text = {0}, bytes = {0};
        rung_base64_encode(&text, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(rung_buf_text(&text), pairs[i][1]);
        assert_true(rung_base64_decode(&bytes, pairs[i][1], strlen(pairs[i][1])));
        assert_string_equal(rung_buf_text(&bytes), pairs[i][0]);
        rung_buf_free(&text);
        rung_buf_free(&bytes);
    }
}

static void all_bytes_survive(void **state)
{
    (void)state;
    unsigned char all[256];
    for (size_t i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    for (size_t n = 0; n <= 256; n++) {
        struct rung_buf text = {0}, bytes = {0};
        rung_base64_encode(&text, all, n);
        assert_true(rung_base64_decode(&bytes, rung_buf_text(&text), text.len));
        assert_int_equal(bytes.len, n);
        if (n)
            assert_memory_equal(bytes.ptr, all, n);
        rung_buf_free(&text);
        rung_buf_free(&bytes);
    }
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z",    "Zg",   "Zg=",  "====", "Zg==Zg==", "Zm 9", "Zm9\n",
                                      "Zm9-", "Zh==", "Zm9=", "=m9v", "Z=9v",     "Zg=v"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rung_buf bytes = {0};
        assert_false(rung_base64_decode(&bytes, bad[i], strlen(bad[i])));
        rung_buf_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_rfc_come_out),
        cmocka_unit_test(all_bytes_survive),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
