/*
 * Runs a reference that is written in C: built together with the user's file by the reference
 * plugin "c". Each line of standard input names a file that holds the task's numbers as rung_load
 * (made for the task) reads them; the outputs are written into that file, then "ok" or "error WHY"
 * is answered.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rung_task.h"
#include "rung_load.h"

void reference(const struct rung_task *t);

/* Tensors are doubles in the file; a float32 form works on copies. */
static real *take(char *base, long long offset, long long n)
{
    double *from = (double *)(base + offset);
    if (sizeof(real) == sizeof(double))
        return (real *)from;
    real *copy = malloc((size_t)(n ? n : 1) * sizeof *copy);
    for (long long i = 0; copy && i < n; i++)
        copy[i] = (real)from[i];
    return copy;
}

static void give(char *base, long long offset, long long n, real *from, int is_output)
{
    if (sizeof(real) == sizeof(double))
        return;
    for (long long i = 0; is_output && from && i < n; i++)
        ((double *)(base + offset))[i] = (double)from[i];
    free(from);
}

static const char *serve(const char *path)
{
    struct stat st;
    struct rung_task t;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &st))
        return "the file of numbers can't be opened";
    char *base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        return "the file of numbers can't be mapped";
    rung_load(&t, base, take);
    reference(&t);
    rung_store(&t, base, give);
    munmap(base, (size_t)st.st_size);
    return NULL;
}

int main(void)
{
    char line[4096];
    /* Whatever the reference prints must not stand between two answers. */
    FILE *answers = fdopen(dup(1), "w");
    dup2(2, 1);
    while (answers && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        const char *why = serve(line);
        fprintf(answers, why ? "error %s\n" : "ok\n", why);
        fflush(answers);
    }
    return 0;
}
