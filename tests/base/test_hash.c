/* SHA-256 against the examples of FIPS 180-4, in memory and of files. */
#include "support/support.h"

#include "base/hash.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define MILLION "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"

static void published_digests_come_out(void **state)
{
    (void)state;
    char hex[RUNG_SHA256_HEX];
    rung_sha256("", 0, hex);
    assert_string_equal(hex, EMPTY);
    rung_sha256("abc", 3, hex);
    assert_string_equal(hex, ABC);
}

static void files_hash_as_their_bytes(void **state)
{
    (void)state;
    char hex[RUNG_SHA256_HEX], *folder = support_folder(), *path = support_path(folder, "million");
    char *bytes = malloc(1000000);
    memset(bytes, 'a', 1000000);
    support_write(path, bytes, 1000000);
    struct rung_error err = rung_error_init();
    assert_int_equal(rung_sha256_file(path, hex, &err), RUNG_OK);
    assert_string_equal(hex, MILLION);
    char *absent = support_path(folder, "absent");
    assert_int_equal(rung_sha256_file(absent, hex, &err), RUNG_EIO);
    support_contains(err.message, absent);
    free(absent);
    free(bytes);
    free(path);
    support_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_digests_come_out),
        cmocka_unit_test(files_hash_as_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
