/* Philox4x32-10 against the known answers that its authors publish with Random123. */
#include "support/support.h"

#include "base/philox.h"

static void published_answers_come_out(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed, stream, counter;
        uint32_t want[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t got[4];
        rung_philox4(cases[i].seed, cases[i].stream, cases[i].counter, got);
        assert_memory_equal(got, cases[i].want, sizeof got);
    }
}

static void words_do_not_depend_on_where_one_starts(void **state)
{
    (void)state;
    uint32_t all[64], part[64];
    rung_philox_words(42, 7, 0, all, 64);
    for (uint64_t first = 0; first < 20; first++)
        for (uint64_t n = 0; n < 20; n++) {
            rung_philox_words(42, 7, first, part, n);
            assert_memory_equal(part, all + first, n * sizeof *part);
        }
    uint32_t block[4];
    rung_philox4(42, 7, 3, block);
    assert_memory_equal(block, all + 12, sizeof block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_answers_come_out),
        cmocka_unit_test(words_do_not_depend_on_where_one_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
