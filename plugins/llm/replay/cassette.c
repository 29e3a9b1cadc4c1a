/*
 * Reading cassettes. The first line is the header, {"rung_cassette":1, "recorded":"...", ...}; each
 * further line is one reply:
 *
 *   {"key":"code/12/0", "role":"code", "prompt_sha256":"...", "reply":"...", "finish":"stop",
 *    "model":"...", "usage":{"input":1,"output":2}}
 *
 * key and reply are required. Empty lines are skipped. The file is hostile input: every size is
 * bounded.
 */
#include "cassette.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_FILE = 64 << 20, /* bytes */
    MAX_LINE = 4 << 20,  /* bytes */
    MAX_ENTRIES = 65536,
    MAX_KEY = 200, /* bytes */
    MAX_DEPTH = 8, /* nested values of a line */
};

struct cassette {
    struct cassette_entry *entries; /* sorted by key once open */
    cJSON **lines;                  /* own the texts of the entries */
    uint32_t n;
    uint32_t cap;
};

struct place {
    const char *path;
    uint32_t line;
    struct rung_error *error;
};

static int32_t fault(const struct place *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int32_t fault(const struct place *at, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return llm_fail(at->error, RUNG_ECONFIG, "replay.cassette", "%s:%u: %s", at->path, at->line,
                    what);
}

/* The file's bytes on the heap, closed by a NUL. */
static int32_t read_file(const char *path, char **bytes, size_t *n, struct rung_error *error)
{
    int32_t status = RUNG_EIO;
    struct stat st;
    char *text = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        llm_fail(error, RUNG_EIO, "replay.cassette", "cassette %s: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE) {
        llm_fail(error, RUNG_EIO, "replay.cassette", "cassette %s: not a file of at most %d MiB",
                 path, MAX_FILE >> 20);
        goto out;
    }
    text = malloc((size_t)st.st_size + 1);
    if (!text) {
        status = llm_fail(error, RUNG_ENOMEM, "replay.memory", "cassette %s: no memory", path);
        goto out;
    }
    size_t len = 0;
    ssize_t got = 1;
    while (len < (size_t)st.st_size && got > 0) {
        got = read(fd, text + len, (size_t)st.st_size - len);
        if (got > 0)
            len += (size_t)got;
    }
    if (got < 0) {
        llm_fail(error, RUNG_EIO, "replay.cassette", "cassette %s: %s", path, strerror(errno));
        goto out;
    }
    text[len] = 0;
    *bytes = text;
    *n = len;
    text = NULL;
    status = RUNG_OK;
out:
    if (fd >= 0)
        close(fd);
    free(text);
    return status;
}

/* Refuses deep nesting before the recursive parser sees it. */
static bool shallow(struct llm_span line)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < line.len; ++i) {
        const char c = line.ptr[i];
        if (quoted) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (++depth > MAX_DEPTH)
                return false;
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
    return true;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static int64_t tokens(const cJSON *usage, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(usage, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 1e15))
        return -1;
    return (int64_t)item->valuedouble;
}

static bool finish_of(const char *name, uint32_t *finish)
{
    static const char *const names[] = {"stop",    "length",    "tool_calls",
                                        "refused", "reasoning", "context"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; ++i) {
        if (strcmp(name, names[i]) == 0) {
            *finish = RUNG_FINISH_STOP + i;
            return true;
        }
    }
    return false;
}

static int32_t read_header(const struct place *at, const cJSON *json)
{
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(json, "rung_cassette");
    if (!cJSON_IsNumber(version))
        return fault(at, "the first line must be the header {\"rung_cassette\": 1, ...}");
    if (version->valuedouble != 1.0)
        return fault(at, "cassette version %g; this plugin reads version 1", version->valuedouble);
    return RUNG_OK;
}

static int32_t read_entry(const struct place *at, const cJSON *json, struct cassette_entry *entry)
{
    const char *role = text_of(json, "role");
    const char *hash = text_of(json, "prompt_sha256");
    const char *model = text_of(json, "model");
    const char *finish = text_of(json, "finish");
    const cJSON *usage = cJSON_GetObjectItemCaseSensitive(json, "usage");
    *entry = (struct cassette_entry){.key = text_of(json, "key"),
                                     .role = role ? role : "",
                                     .prompt_sha256 = hash ? hash : "",
                                     .reply = text_of(json, "reply"),
                                     .model = model ? model : "replay",
                                     .finish = RUNG_FINISH_STOP,
                                     .line = at->line,
                                     .usage = {.struct_size = sizeof entry->usage,
                                               .estimated = !cJSON_IsObject(usage),
                                               .input = tokens(usage, "input"),
                                               .cache_read = tokens(usage, "cache_read"),
                                               .cache_write_5m = tokens(usage, "cache_write_5m"),
                                               .cache_write_1h = tokens(usage, "cache_write_1h"),
                                               .output = tokens(usage, "output"),
                                               .reasoning = tokens(usage, "reasoning")}};
    if (!entry->key || !entry->key[0] || strlen(entry->key) > MAX_KEY)
        return fault(at, "\"key\" must be a text of 1 to %d bytes", MAX_KEY);
    if (!entry->reply)
        return fault(at, "\"reply\" of key %s must be a text", entry->key);
    if (finish && !finish_of(finish, &entry->finish))
        return fault(
            at,
            "\"finish\" of key %s is none of stop, length, tool_calls, refused, reasoning, context",
            entry->key);
    entry->reply_len = strlen(entry->reply);
    return RUNG_OK;
}

static bool reserve(struct cassette *cassette)
{
    if (cassette->n < cassette->cap)
        return true;
    const uint32_t cap = cassette->cap ? cassette->cap * 2 : 64;
    struct cassette_entry *entries = realloc(cassette->entries, cap * sizeof *entries);
    if (entries)
        cassette->entries = entries;
    cJSON **lines = realloc(cassette->lines, cap * sizeof *lines);
    if (lines)
        cassette->lines = lines;
    if (!entries || !lines)
        return false;
    cassette->cap = cap;
    return true;
}

static int32_t read_line(struct cassette *cassette, const struct place *at, struct llm_span line,
                         bool header)
{
    if (line.len > MAX_LINE)
        return fault(at, "the line is longer than %d MiB", MAX_LINE >> 20);
    if (memchr(line.ptr, 0, line.len))
        return fault(at, "the line holds a NUL byte");
    if (!shallow(line))
        return fault(at, "values are nested deeper than %d", MAX_DEPTH);
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithLengthOpts(line.ptr, line.len, &end, 0);
    if (!json || !cJSON_IsObject(json) || end != line.ptr + line.len) {
        cJSON_Delete(json);
        return fault(at, "not one JSON object");
    }
    if (header) {
        const int32_t status = read_header(at, json);
        cJSON_Delete(json);
        return status;
    }
    struct cassette_entry entry;
    int32_t status = read_entry(at, json, &entry);
    if (status == RUNG_OK && cassette->n == MAX_ENTRIES)
        status = fault(at, "more than %d replies", MAX_ENTRIES);
    if (status == RUNG_OK && !reserve(cassette))
        status = llm_fail(at->error, RUNG_ENOMEM, "replay.memory", "%s: no memory", at->path);
    if (status != RUNG_OK) {
        cJSON_Delete(json);
        return status;
    }
    cassette->entries[cassette->n] = entry;
    cassette->lines[cassette->n++] = json;
    return RUNG_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct cassette_entry *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int32_t sort_entries(struct cassette *cassette, const struct place *at)
{
    if (cassette->n)
        qsort(cassette->entries, cassette->n, sizeof *cassette->entries, by_key);
    for (uint32_t i = 1; i < cassette->n; ++i) {
        const struct cassette_entry *entry = &cassette->entries[i];
        if (strcmp(entry->key, entry[-1].key) == 0) {
            const struct place twice = {at->path, entry->line, at->error};
            return fault(&twice, "key %s stands on line %u too", entry->key, entry[-1].line);
        }
    }
    return RUNG_OK;
}

int32_t cassette_open(const char *path, struct cassette **out, struct rung_error *error)
{
    char *bytes = NULL;
    size_t n = 0;
    int32_t status = read_file(path, &bytes, &n, error);
    if (status != RUNG_OK)
        return status;
    struct cassette *cassette = calloc(1, sizeof *cassette);
    if (!cassette) {
        free(bytes);
        return llm_fail(error, RUNG_ENOMEM, "replay.memory", "%s: no memory", path);
    }
    struct place at = {path, 0, error};
    struct llm_span rest = {bytes, n}, line;
    bool header = true;
    while (status == RUNG_OK && llm_next_line(&rest, &line)) {
        at.line++;
        line = llm_trim(line);
        if (line.len == 0)
            continue;
        status = read_line(cassette, &at, line, header);
        header = false;
    }
    if (status == RUNG_OK && header) {
        at.line = 1;
        status = fault(&at, "the file is empty; its first line must be the header");
    }
    if (status == RUNG_OK)
        status = sort_entries(cassette, &at);
    free(bytes);
    if (status != RUNG_OK) {
        cassette_free(cassette);
        return status;
    }
    *out = cassette;
    return RUNG_OK;
}

void cassette_free(struct cassette *cassette)
{
    if (!cassette)
        return;
    for (uint32_t i = 0; i < cassette->n; ++i)
        cJSON_Delete(cassette->lines[i]);
    free(cassette->lines);
    free(cassette->entries);
    free(cassette);
}

const struct cassette_entry *cassette_find(const struct cassette *cassette, const char *key)
{
    uint32_t low = 0, high = cassette->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const int order = strcmp(key, cassette->entries[mid].key);
        if (order == 0)
            return &cassette->entries[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

uint32_t cassette_count(const struct cassette *cassette)
{
    return cassette->n;
}
