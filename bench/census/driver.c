/*
 * driver.c - the census: loads each PTX file on the ptx device and launches every kernel of it with
 * made-up arguments. Each file runs in a process of its own. One line a kernel:
 *   FILE KERNEL STATUS TEXT       STATUS: ran, fault code, load, crash
 * A memory fault counts as "ran", since the arguments are made up.
 * usage: census PLUGIN.so FILE.ptx...
 */
#include "../../tests/device/ptx/harness.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PARAMS 64
#define BUFFER_BYTES (4u << 20)
#define SMALL 64
#define INSTRUCTIONS 300000000u
#define SECONDS 60

struct parameter {
    char name[256];
    char type[8];
    uint32_t size, align, offset;
    int is_pointer;
};

struct entry {
    char name[512];
    struct parameter params[MAX_PARAMS];
    uint32_t n_params, bytes;
    struct rung_dim3 block;
    int has_dynamic;
};

static char *read_text(const char *file)
{
    FILE *f = fopen(file, "rb");
    char *text = NULL;
    long n = -1;

    if (f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET))
        text = calloc(1, (size_t)n + 1);
    if (!text || fread(text, 1, (size_t)n, f) != (size_t)n)
        exit(2);
    fclose(f);
    return text;
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* "ld.param.u64 %rd1, [NAME]" whose register some cvta.to.global takes: a pointer. */
static int is_pointer(const char *body, const char *end, const char *name)
{
    char place[300], reg[32], cvta[64];
    const char *at = body;

    snprintf(place, sizeof place, "[%s]", name);
    while ((at = strstr(at, place)) && at < end) {
        const char *r = at;

        while (r > body && *r != '%')
            r--;
        if (sscanf(r, "%31[%a-z0-9]", reg) == 1) {
            const char *use = body;
            size_t n = (size_t)snprintf(cvta, sizeof cvta, ", %s;", reg);

            while ((use = strstr(use, cvta)) && use < end) {
                const char *line = use;

                while (line > body && line[-1] != '\n')
                    line--;
                if (strstr(line, "cvta.to.global") && strstr(line, "cvta.to.global") < use)
                    return 1;
                use += n;
            }
        }
        at += strlen(place);
    }
    return 0;
}

static uint32_t type_bytes(const char *type)
{
    const char *digits = type + strcspn(type, "0123456789");

    return (uint32_t)atoi(digits) / 8;
}

/* One ".param .u64 name" or ".param .align 8 .b8 name[32]". */
static void read_param(struct entry *e, const char *text, const char *end)
{
    struct parameter *p = &e->params[e->n_params];
    const char *array, *name = end;

    *p = (struct parameter){.is_pointer = 0};
    while (name > text && isspace((unsigned char)name[-1]))
        name--;
    array = memchr(text, '[', (size_t)(name - text));
    const char *stop = array ? array : name;
    const char *start = stop;
    while (start > text && (isalnum((unsigned char)start[-1]) || strchr("_$", start[-1])))
        start--;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(stop - start), start);
    for (const char *w = text; w < start; w++) {
        if (*w != '.' || sscanf(w, ".%7[a-z0-9]", p->type) != 1)
            continue;
        if (!strcmp(p->type, "align"))
            p->align = (uint32_t)atoi(w + 6);
        else if (strchr("busf", p->type[0]) && isdigit((unsigned char)p->type[1]))
            p->size = type_bytes(p->type);
    }
    if (array)
        p->size *= (uint32_t)atoi(array + 1);
    if (!p->align)
        p->align = p->size ? p->size : 1;
    e->bytes = (e->bytes + p->align - 1) / p->align * p->align;
    p->offset = e->bytes;
    e->bytes += p->size;
    e->n_params += e->n_params + 1 < MAX_PARAMS;
}

static const char *read_entry(struct entry *e, const char *at)
{
    const char *open, *close, *body, *end;

    memset(e, 0, sizeof *e);
    at = strstr(at, ".entry ");
    if (!at)
        return NULL;
    at += 7;
    snprintf(e->name, sizeof e->name, "%.*s", (int)strcspn(at, "( \n{"), at);
    open = at + strcspn(at, "({");
    close = *open == '(' ? strchr(open, ')') : open;
    body = close ? strchr(close, '{') : NULL;
    end = body ? strstr(body, "\n}") : NULL;
    if (!end)
        return NULL;
    for (const char *p = open; p < close;) {
        const char *next = p + 1 + strcspn(p + 1, ",)");

        if (memchr(p, '.', (size_t)(next - p)))
            read_param(e, p + 1, next);
        p = next;
    }
    for (uint32_t i = 0; i < e->n_params; i++)
        e->params[i].is_pointer =
            e->params[i].size == 8 && is_pointer(body, end, e->params[i].name);
    const char *bound = strstr(close, ".maxntid ");
    bound = bound && bound < body ? bound : strstr(close, ".reqntid ");
    if (!bound || bound > body ||
        sscanf(bound + 9, "%u, %u, %u", &e->block.x, &e->block.y, &e->block.z) < 1)
        e->block.x = 256;
    return end;
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void fill_params(struct px *px, const struct entry *e, uint8_t *out)
{
    for (uint32_t i = 0; i < e->n_params; i++) {
        const struct parameter *p = &e->params[i];
        uint64_t integer = SMALL;
        float one = 1.0f;
        double one64 = 1.0;

        if (p->is_pointer)
            integer = px_address(px, px_buffer(px, p->name, NULL, BUFFER_BYTES));
        if (!strcmp(p->type, "f32"))
            memcpy(out + p->offset, &one, 4);
        else if (!strcmp(p->type, "f64"))
            memcpy(out + p->offset, &one64, 8);
        else if (p->size <= 8)
            memcpy(out + p->offset, &integer, p->size);
    }
}

static void report(const char *file, const char *kernel, const char *status, const char *text)
{
    const char *base = strrchr(file, '/');

    printf("%s\t%s\t%s\t", base ? base + 1 : file, kernel, status);
    for (; *text; text++)
        putchar(*text < ' ' ? ' ' : *text);
    putchar('\n');
    fflush(stdout);
}

static void launch(struct px *px, struct rung_module *m, const struct entry *e, const char *file)
{
    uint8_t *params = calloc(1, e->bytes + 8);
    struct px_launch l = {.kernel = e->name,
                          .grid = {3, 2, 1},
                          .block = e->block,
                          .shared = 32768,
                          .params = params,
                          .param_bytes = e->bytes,
                          .max_instructions = INSTRUCTIONS};

    if (!params)
        exit(2);
    fill_params(px, e, params);
    px->call.deadline_ns = px_now() + 20u * 1000000000u;
    const char *code = px_launch(px, m, &l);
    report(file, e->name, *code ? code : "ran", px->fault.message);
    free(params);
}

static void run_file(const char *plugin, const char *file)
{
    const char *text = read_text(file), *at = text;
    struct rung_module *m;
    struct entry e;
    struct px px;

    alarm(SECONDS);
    if (px_open(&px, plugin, NULL))
        exit(2);
    m = px_load(&px, text);
    while ((at = read_entry(&e, at)))
        if (m)
            launch(&px, m, &e, file);
        else
            report(file, e.name, px.fault.code, px.fault.message);
    exit(0);
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        pid_t child = fork();
        int status = 0;

        if (!child)
            run_file(argv[1], argv[i]);
        waitpid(child, &status, 0);
        if (status)
            report(argv[i], "-", "crash", WIFSIGNALED(status) ? "signal" : "exit");
    }
    return 0;
}
