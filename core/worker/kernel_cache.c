#include "worker/kernel_cache.h"

#include "base/io.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST = 64 << 20, MOST_CODES = 8, MOST_KERNELS = 1024, MOST_PARAMS = 256 };

/* ---- One block of bytes: checksum, a line of JSON, the codes ---- */

static cJSON *pack_kernel(const struct rung_kernel *kernel)
{
    cJSON *json = cJSON_CreateObject(), *params = cJSON_AddArrayToObject(json, "params");
    cJSON_AddStringToObject(json, "expression", kernel->expression ? kernel->expression : "");
    cJSON_AddStringToObject(json, "symbol", kernel->symbol);
    rung_json_add_i64(json, "param_bytes", kernel->param_bytes);
    rung_json_add_i64(json, "registers", kernel->registers);
    rung_json_add_i64(json, "static_shared", kernel->static_shared);
    rung_json_add_i64(json, "local_bytes", kernel->local_bytes);
    rung_json_add_i64(json, "spill_bytes", kernel->spill_bytes);
    rung_json_add_i64(json, "max_threads", kernel->max_threads);
    for (uint32_t i = 0; i < kernel->n_params; i++) {
        const struct rung_kernel_param *p = &kernel->params[i];
        const int numbers[] = {(int)p->type, (int)p->offset, (int)p->size, (int)p->alignment};
        cJSON_AddItemToArray(params, cJSON_CreateIntArray(numbers, 4));
    }
    return json;
}

void rung_kernel_pack(const struct rung_artifact *artifact, struct rung_buf *out)
{
    cJSON *json = cJSON_CreateObject(), *codes = cJSON_AddArrayToObject(json, "codes");
    cJSON *kernels = cJSON_AddArrayToObject(json, "kernels");
    struct rung_buf body = {0};
    char sum[RUNG_SHA256_HEX];
    cJSON_AddStringToObject(json, "compiler", artifact->compiler ? artifact->compiler : "");
    for (uint32_t i = 0; i < artifact->n_codes; i++) {
        cJSON *code = cJSON_CreateObject();
        rung_json_add_i64(code, "format", artifact->codes[i].format);
        cJSON_AddStringToObject(code, "arch", artifact->codes[i].arch);
        rung_json_add_i64(code, "bytes", (int64_t)artifact->codes[i].n_bytes);
        cJSON_AddItemToArray(codes, code);
    }
    for (uint32_t i = 0; i < artifact->n_kernels; i++)
        cJSON_AddItemToArray(kernels, pack_kernel(&artifact->kernels[i]));
    char *line = rung_json_line(json);
    rung_buf_printf(&body, "%s\n", line);
    for (uint32_t i = 0; i < artifact->n_codes; i++)
        rung_buf_add(&body, artifact->codes[i].bytes, artifact->codes[i].n_bytes);
    rung_sha256(body.ptr, body.len, sum);
    rung_buf_printf(out, "%s\n", sum);
    rung_buf_add(out, body.ptr, body.len);
    rung_buf_free(&body);
    free(line);
    cJSON_Delete(json);
}

static uint32_t number(const cJSON *json, const char *name)
{
    int64_t value = rung_json_i64(json, name, 0);
    return value >= 0 && value <= INT32_MAX ? (uint32_t)value : 0;
}

static const char *text(struct rung_arena *arena, const cJSON *json, const char *name)
{
    return rung_arena_strdup(arena, rung_json_text(json, name, ""));
}

static bool unpack_params(struct rung_arena *arena, const cJSON *list, struct rung_kernel *out)
{
    int n = cJSON_GetArraySize(list), at = 0;
    const cJSON *item;
    if (n > MOST_PARAMS)
        return false;
    struct rung_kernel_param *params = RUNG_ARENA_NEW(arena, struct rung_kernel_param, n + 1);
    cJSON_ArrayForEach(item, list)
    {
        uint32_t values[4] = {0};
        for (int i = 0; i < 4; i++) {
            const cJSON *value = cJSON_GetArrayItem(item, i);
            if (!cJSON_IsNumber(value) || value->valuedouble < 0 || value->valuedouble > 65536)
                return false;
            values[i] = (uint32_t)value->valuedouble;
        }
        params[at++] = (struct rung_kernel_param){.struct_size = sizeof *params,
                                                  .type = values[0],
                                                  .offset = values[1],
                                                  .size = values[2],
                                                  .alignment = values[3]};
    }
    out->params = params;
    out->n_params = (uint32_t)n;
    return true;
}

static const cJSON *kernel_of(const cJSON *list, const char *expression)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list) if (strcmp(rung_json_text(item, "expression", ""), expression) ==
                                       0) return item;
    return NULL;
}

static bool unpack_kernels(struct rung_arena *arena, const cJSON *list, const char *const *names,
                           struct rung_artifact *out)
{
    uint32_t n = 0;
    while (names[n])
        n++;
    struct rung_kernel *kernels = RUNG_ARENA_NEW(arena, struct rung_kernel, n + 1);
    out->kernels = kernels;
    out->n_kernels = n;
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *json = kernel_of(list, names[i]);
        if (!json || cJSON_GetArraySize(list) > MOST_KERNELS)
            return false;
        kernels[i] = (struct rung_kernel){.struct_size = sizeof *kernels,
                                          .expression = text(arena, json, "expression"),
                                          .symbol = text(arena, json, "symbol"),
                                          .param_bytes = number(json, "param_bytes"),
                                          .registers = number(json, "registers"),
                                          .static_shared = number(json, "static_shared"),
                                          .local_bytes = number(json, "local_bytes"),
                                          .spill_bytes = number(json, "spill_bytes"),
                                          .max_threads = number(json, "max_threads")};
        if (!kernels[i].symbol[0] ||
            !unpack_params(arena, rung_json_get(json, "params"), &kernels[i]))
            return false;
    }
    return true;
}

/* The codes follow each other in `bytes` and fill it. */
static bool unpack_codes(struct rung_arena *arena, const cJSON *list, struct rung_text bytes,
                         struct rung_artifact *out)
{
    int n = cJSON_GetArraySize(list);
    uint64_t at = 0;
    const cJSON *item;
    if (n < 1 || n > MOST_CODES)
        return false;
    struct rung_code *codes = RUNG_ARENA_NEW(arena, struct rung_code, n);
    cJSON_ArrayForEach(item, list)
    {
        uint32_t size = number(item, "bytes");
        if (!size || size > bytes.len - at)
            return false;
        char *copy = rung_arena_need(arena, (uint64_t)size + 1);
        memcpy(copy, bytes.ptr + at, size);
        codes[out->n_codes++] = (struct rung_code){.struct_size = sizeof *codes,
                                                   .format = number(item, "format"),
                                                   .arch = text(arena, item, "arch"),
                                                   .bytes = copy,
                                                   .n_bytes = size};
        at += size;
    }
    out->codes = codes;
    return at == bytes.len;
}

const struct rung_artifact *rung_kernel_unpack(struct rung_arena *arena, struct rung_text bytes,
                                               const char *const *kernels)
{
    enum { SUM = RUNG_SHA256_HEX - 1 };
    char sum[RUNG_SHA256_HEX];
    if (bytes.len < SUM + 2)
        return NULL;
    struct rung_text body = {bytes.ptr + SUM + 1, bytes.len - SUM - 1};
    rung_sha256(body.ptr, body.len, sum);
    const char *end = memchr(body.ptr, '\n', body.len);
    if (memcmp(sum, bytes.ptr, SUM) != 0 || !end)
        return NULL;
    cJSON *json = rung_json_parse(body.ptr, (size_t)(end - body.ptr));
    struct rung_artifact *out = RUNG_ARENA_NEW(arena, struct rung_artifact, 1);
    *out = (struct rung_artifact){.struct_size = sizeof *out,
                                  .compiler = text(arena, json, "compiler")};
    struct rung_text codes = {end + 1, body.len - (size_t)(end + 1 - body.ptr)};
    bool good = json && unpack_kernels(arena, rung_json_get(json, "kernels"), kernels, out) &&
                unpack_codes(arena, rung_json_get(json, "codes"), codes, out);
    cJSON_Delete(json);
    return good ? out : NULL;
}

/* ---- Files ---- */

/* This user's, and nobody else may even look. */
static bool ours_alone(const struct stat *info)
{
    return info->st_uid == geteuid() && (info->st_mode & 077) == 0;
}

const char *rung_kernel_cache_folder(struct rung_arena *arena)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct rung_error err = {.struct_size = sizeof err};
    struct stat info;
    char *folder;
    if (base && base[0] == '/')
        folder = rung_arena_printf(arena, "%s/rung", base);
    else if (home && home[0] == '/')
        folder = rung_arena_printf(arena, "%s/.cache/rung", home);
    else
        return NULL;
    if (rung_make_dirs(folder, &err) != RUNG_OK)
        return NULL;
    folder = rung_arena_printf(arena, "%s/kernels", folder);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return NULL;
    if (lstat(folder, &info) != 0 || !S_ISDIR(info.st_mode) || !ours_alone(&info))
        return NULL;
    return folder;
}

static bool read_all(int fd, char *to, size_t n)
{
    while (n) {
        ssize_t got = read(fd, to, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        n -= (size_t)got;
    }
    return true;
}

struct rung_text rung_kernel_cache_read(struct rung_arena *arena, const char *folder,
                                        const char key[RUNG_SHA256_HEX])
{
    struct rung_text none = {"", 0};
    struct stat info;
    int fd = open(rung_arena_printf(arena, "%s/%s", folder, key),
                  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return none;
    bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ours_alone(&info) &&
                info.st_size > 0 && info.st_size <= LARGEST;
    char *bytes = good ? rung_arena_need(arena, (uint64_t)info.st_size + 1) : NULL;
    good = good && read_all(fd, bytes, (size_t)info.st_size);
    close(fd);
    return good ? (struct rung_text){bytes, (uint64_t)info.st_size} : none;
}

void rung_kernel_cache_write(const char *folder, const char key[RUNG_SHA256_HEX],
                             const struct rung_buf *bytes)
{
    struct rung_buf path = {0}, draft = {0};
    rung_buf_printf(&path, "%s/%s", folder, key);
    rung_buf_printf(&draft, "%s/.new-XXXXXX", folder);
    int fd = bytes->len <= LARGEST ? mkostemp(draft.ptr, O_CLOEXEC) : -1; /* mode 0600 */
    if (fd >= 0) {
        bool good = rung_write_all(fd, bytes->ptr, bytes->len);
        good = close(fd) == 0 && good;
        if (!good || rename(draft.ptr, path.ptr) != 0)
            unlink(draft.ptr);
    }
    rung_buf_free(&path);
    rung_buf_free(&draft);
}
