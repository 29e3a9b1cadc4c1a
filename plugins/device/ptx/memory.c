/*
 * memory.c - see memory.h.
 */
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define GAP ((uint64_t)1 << 30)

void ptx_memory_init(struct ptx_memory *m, uint64_t limit)
{
    memset(m, 0, sizeof *m);
    m->next_address = PTX_FIRST_ADDRESS;
    m->limit = limit;
}

void ptx_memory_end(struct ptx_memory *m)
{
    while (m->buffers)
        ptx_buffer_free(m->buffers);
    free(m->live);
    memset(m, 0, sizeof *m);
}

/* Index of the first live segment whose base is above the address. */
static uint32_t above(const struct ptx_memory *m, uint64_t address)
{
    uint32_t low = 0, high = m->n_live;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (m->live[middle]->base > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int list_insert(struct ptx_memory *m, struct ptx_segment *segment)
{
    if (m->n_live == m->cap_live) {
        uint32_t cap = m->cap_live ? m->cap_live * 2 : 32;
        struct ptx_segment **wider = realloc(m->live, cap * sizeof(*wider));

        if (!wider)
            return -1;
        m->live = wider;
        m->cap_live = cap;
    }
    m->live[m->n_live++] = segment; /* addresses only grow, so the list stays sorted */
    return 0;
}

struct ptx_buffer *ptx_buffer_new(struct ptx_memory *m, uint64_t bytes, uint64_t align,
                                  const char *label)
{
    uint64_t mapped = (bytes + PAGE - 1) / PAGE * PAGE;
    struct ptx_buffer *b;

    if (!bytes || mapped < bytes || mapped > m->limit || m->used > m->limit - mapped ||
        m->next_address > PTX_LAST_ADDRESS - mapped - 2 * GAP)
        return NULL;
    b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    void *host = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (host == MAP_FAILED || list_insert(m, &b->segment)) {
        if (host != MAP_FAILED)
            munmap(host, mapped);
        free(b);
        return NULL;
    }
    if (align > PAGE)
        align = PAGE; /* every address is a multiple of the page */
    b->segment = (struct ptx_segment){.base = m->next_address, .size = bytes, .host = host};
    snprintf(b->segment.label, sizeof b->segment.label, "%s", label ? label : "buffer");
    m->next_address += (mapped + 2 * GAP - 1) / GAP * GAP;
    m->used += mapped;
    b->mapped = mapped;
    b->owner = m;
    b->next = m->buffers;
    if (b->next)
        b->next->previous = b;
    m->buffers = b;
    return b;
}

/* ---- What has been written --------------------------------------------------------------------
 */

void ptx_buffer_track(struct ptx_buffer *b)
{
    void *bits;

    if (b->segment.written)
        return;
    bits = mmap(NULL, (b->segment.size + 7) / 8, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    b->segment.written = bits == MAP_FAILED ? NULL : bits;
}

static void untrack(struct ptx_buffer *b)
{
    if (b->segment.written)
        munmap(b->segment.written, (b->segment.size + 7) / 8);
    b->segment.written = NULL;
}

/* Bits [from, to) of a byte. */
static uint8_t bits_between(uint64_t from, uint64_t to)
{
    return (uint8_t)((0xffu << from) & (0xffu >> (8 - to)));
}

static void set_bits(uint8_t *at, uint8_t bits, int on)
{
    if (on)
        __atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(at, (uint8_t)~bits, __ATOMIC_RELAXED);
}

static void change(uint8_t *map, uint64_t from, uint64_t to, int on)
{
    if (from / 8 == to / 8) {
        if (from < to)
            set_bits(map + from / 8, bits_between(from % 8, to % 8), on);
        return;
    }
    if (from % 8)
        set_bits(map + from / 8, bits_between(from % 8, 8), on);
    for (uint64_t k = (from + 7) / 8; k < to / 8; k++)
        __atomic_store_n(map + k, on ? 0xff : 0, __ATOMIC_RELAXED);
    if (to % 8)
        set_bits(map + to / 8, bits_between(0, to % 8), on);
}

void ptx_mark(const struct ptx_segment *s, uint64_t offset, uint64_t bytes)
{
    change(s->written, offset, offset + bytes, 1);
}

void ptx_buffer_written(struct ptx_buffer *b, uint64_t offset, uint64_t bytes, int written)
{
    const int whole = !offset && bytes == b->segment.size;

    if (whole && written) {
        untrack(b);
    } else if (!written && !b->segment.written) {
        ptx_buffer_track(b);
        if (b->segment.written) {
            change(b->segment.written, 0, offset, 1);
            change(b->segment.written, offset + bytes, b->segment.size, 1);
        }
    } else if (b->segment.written) {
        change(b->segment.written, offset, offset + bytes, written);
    }
}

int ptx_is_written(const struct ptx_segment *s, uint64_t offset, uint64_t bytes)
{
    if (!s->written)
        return 1;
    for (uint64_t k = offset; k < offset + bytes; k++)
        if (!(__atomic_load_n(s->written + k / 8, __ATOMIC_RELAXED) >> (k % 8) & 1))
            return 0;
    return 1;
}

void ptx_buffer_free(struct ptx_buffer *b)
{
    struct ptx_memory *m = b->owner;
    uint32_t at = above(m, b->segment.base) - 1;

    memmove(&m->live[at], &m->live[at + 1], (m->n_live - at - 1) * sizeof(struct ptx_segment *));
    m->n_live--;
    m->used -= b->mapped;
    untrack(b);
    b->segment.freed = 1;
    m->old[m->n_old++ % PTX_N_OLD] = b->segment;
    if (b->previous)
        b->previous->next = b->next;
    else
        m->buffers = b->next;
    if (b->next)
        b->next->previous = b->previous;
    munmap(b->segment.host, b->mapped);
    free(b);
}

/* ---- Fill ------------------------------------------------------------------------------------ */

/* Whole pages of a page-multiple pattern as private maps of one file: costs no memory until
 * written. */
static int map_pattern(uint8_t *to, uint64_t bytes, const void *pattern, uint64_t n)
{
    int fd = memfd_create("pattern", MFD_CLOEXEC);
    int ok = fd >= 0;

    for (uint64_t done = 0; ok && done < n;) {
        ssize_t put = write(fd, (const uint8_t *)pattern + done, n - done);

        ok = put > 0;
        done += ok ? (uint64_t)put : 0;
    }
    for (uint64_t done = 0; ok && done < bytes; done += n) {
        uint64_t part = bytes - done < n ? bytes - done : n;

        ok = mmap(to + done, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                  fd, 0) != MAP_FAILED;
    }
    if (fd >= 0)
        close(fd);
    return ok ? 0 : -1;
}

/* memcpy in doubling steps; the pattern's phase starts at the range's first byte. */
static void copy_pattern(uint8_t *to, uint64_t bytes, const void *pattern, uint64_t n)
{
    uint64_t done = bytes < n ? bytes : n;

    memcpy(to, pattern, done);
    while (done < bytes) {
        uint64_t step = done > ((uint64_t)1 << 20) ? ((uint64_t)1 << 20) / n * n : done;

        if (!step || step > done)
            step = done;
        if (step > bytes - done)
            step = bytes - done;
        memcpy(to + done, to, step);
        done += step;
    }
}

void ptx_buffer_fill(struct ptx_buffer *b, uint64_t offset, uint64_t bytes, const void *pattern,
                     uint64_t n)
{
    uint8_t *to = b->segment.host + offset;
    uint64_t whole = bytes / PAGE * PAGE;

    if (!bytes)
        return;
    /* Maps are limited a process: share only where a pattern covers a good part of the range. */
    if (n % PAGE == 0 && offset % PAGE == 0 && bytes >= 4 * n && bytes >= ((uint64_t)4 << 20) &&
        bytes / n <= 4096 && !map_pattern(to, whole, pattern, n)) {
        if (whole < bytes)
            memcpy(to + whole, (const uint8_t *)pattern + whole % n, bytes - whole);
        return;
    }
    copy_pattern(to, bytes, pattern, n);
}

/* ---- Lookup ---------------------------------------------------------------------------------- */

struct ptx_segment *ptx_find_segment(const struct ptx_memory *m, uint64_t address)
{
    uint32_t at = above(m, address);

    if (!at || address - m->live[at - 1]->base >= m->live[at - 1]->size)
        return NULL;
    return m->live[at - 1];
}

static void describe_near(const struct ptx_segment *s, uint64_t address, uint32_t bytes, char *out,
                          size_t n)
{
    if (address < s->base)
        snprintf(out, n,
                 "starts %" PRIu64 " bytes before '%s' (%" PRIu64 " bytes at 0x%" PRIx64 ")",
                 s->base - address, s->label, s->size, s->base);
    else if (address - s->base < s->size)
        snprintf(out, n,
                 "ends %" PRIu64 " bytes past the end of '%s' (%" PRIu64 " bytes at 0x%" PRIx64 ")",
                 address - s->base + bytes - s->size, s->label, s->size, s->base);
    else
        snprintf(out, n,
                 "is %" PRIu64 " bytes past the end of '%s' (%" PRIu64 " bytes at 0x%" PRIx64 ")",
                 address - s->base - s->size, s->label, s->size, s->base);
}

void ptx_describe_address(const struct ptx_memory *m, uint64_t address, uint32_t bytes, char *out,
                          size_t n)
{
    uint32_t at = above(m, address);
    const struct ptx_segment *below = at ? m->live[at - 1] : NULL;
    const struct ptx_segment *over = at < m->n_live ? m->live[at] : NULL;

    for (uint32_t i = 0; i < PTX_N_OLD; i++) {
        const struct ptx_segment *s = &m->old[i];

        if (s->freed && address - s->base < s->size) {
            snprintf(out, n, "lies in '%s', which was freed", s->label);
            return;
        }
    }
    if (address < 4096)
        snprintf(out, n, "is a null pointer%s", address ? " plus a small offset" : "");
    else if (below && address - below->base < below->size + GAP)
        describe_near(below, address, bytes, out, n);
    else if (over && over->base - address < GAP)
        describe_near(over, address, bytes, out, n);
    else
        snprintf(out, n, "is in no buffer of this launch");
}
