#include "support/support.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *support_folder(void)
{
    const char *base = getenv("TMPDIR");
    char *folder = support_path(base && base[0] == '/' ? base : "/tmp", "rung-test-XXXXXX");
    if (!mkdtemp(folder))
        fail_msg("%s: %s", folder, strerror(errno));
    return folder;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
    (void)st;
    (void)type;
    (void)place;
    return remove(path);
}

void support_remove(char *folder)
{
    if (folder && nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        fail_msg("%s: can't be removed: %s", folder, strerror(errno));
    free(folder);
}

char *support_path(const char *folder, const char *name)
{
    size_t n = strlen(folder) + strlen(name) + 2;
    char *path = malloc(n);
    assert_non_null(path);
    snprintf(path, n, "%s/%s", folder, name);
    return path;
}

void support_write(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
        fail_msg("%s: %s", path, strerror(errno));
}

void support_write_text(const char *path, const char *text)
{
    support_write(path, text, strlen(text));
}

char *support_read(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail_msg("%s: %s", path, strerror(errno));
    long size = ftell(file);
    char *bytes = calloc(1, (size_t)size + 1);
    assert_non_null(bytes);
    rewind(file);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
    fclose(file);
    if (n)
        *n = (size_t)size;
    return bytes;
}

void support_copy(const char *from, const char *to)
{
    size_t n;
    char *bytes = support_read(from, &n);
    support_write(to, bytes, n);
    free(bytes);
    assert_int_equal(chmod(to, 0755), 0);
}

size_t support_count(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

void support_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not hold \"%s\"", text, part);
}
