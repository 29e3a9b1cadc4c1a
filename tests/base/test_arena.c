/* The arena: zeroed, aligned, separate blocks; limits; reset. */
#include "support/support.h"

#include "base/arena.h"

#include <string.h>

static void blocks_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    unsigned char *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        uint64_t align = 1u << (i % 7);
        blocks[i] = rung_arena_alloc(arena, i * 7, align);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % align, 0);
        for (size_t k = 0; k < i * 7; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 7; k++)
            assert_int_equal(blocks[i][k], (unsigned char)i);
    rung_arena_free(arena);
}

static void bad_alignment_and_huge_sizes_are_refused(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    assert_null(rung_arena_alloc(arena, 8, 0));
    assert_null(rung_arena_alloc(arena, 8, 3));
    assert_null(rung_arena_alloc(arena, 8, 128));
    assert_null(rung_arena_alloc(arena, UINT64_MAX, 1));
    assert_null(rung_arena_alloc(arena, UINT64_MAX - 8, 16));
    assert_non_null(rung_arena_alloc(arena, 8, 8));
    rung_arena_free(arena);
}

static void the_limit_holds_exactly_and_reset_gives_it_back(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    rung_arena_set_limit(arena, 100);
    assert_non_null(rung_arena_alloc(arena, 60, 1));
    assert_null(rung_arena_alloc(arena, 41, 1));
    assert_non_null(rung_arena_alloc(arena, 40, 1));
    assert_int_equal(rung_arena_used(arena), 100);
    assert_null(rung_arena_alloc(arena, 1, 1));
    rung_arena_reset(arena);
    assert_int_equal(rung_arena_used(arena), 0);
    assert_non_null(rung_arena_alloc(arena, 100, 1));
    rung_arena_set_limit(arena, 50);
    assert_null(rung_arena_alloc(arena, 1, 1));
    rung_arena_free(arena);
    rung_arena_free(NULL);
}

static void blocks_larger_than_a_chunk_work(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    char *small = rung_arena_strdup(arena, "before");
    unsigned char *large = rung_arena_alloc(arena, 5u << 20, 64);
    assert_non_null(large);
    large[0] = large[(5u << 20) - 1] = 1;
    assert_string_equal(rung_arena_strdup(arena, "after"), "after");
    assert_string_equal(small, "before");
    rung_arena_free(arena);
}

static void texts_are_copied(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    char source[] = "abcdef";
    char *whole = rung_arena_strdup(arena, source), *part = rung_arena_strndup(arena, source, 3);
    char *none = rung_arena_strndup(arena, NULL, 0);
    memset(source, 'x', 6);
    assert_string_equal(whole, "abcdef");
    assert_string_equal(part, "abc");
    assert_string_equal(none, "");
    assert_string_equal(rung_arena_printf(arena, "%d-%s", 7, "seven"), "7-seven");
    char *wide = rung_arena_printf(arena, "%5000d", 1);
    assert_int_equal(strlen(wide), 5000);
    rung_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_aligned_and_apart),
        cmocka_unit_test(bad_alignment_and_huge_sizes_are_refused),
        cmocka_unit_test(the_limit_holds_exactly_and_reset_gives_it_back),
        cmocka_unit_test(blocks_larger_than_a_chunk_work),
        cmocka_unit_test(texts_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
