/*
 * Compiling: through the pipeline's compiler plugin, with the last results kept, since a repaired
 * or tuned variant is often judged again (check now, timing later).
 */
#include "base/status.h"
#include "worker/trial.h"

#include <stdio.h>
#include <string.h>

/* One key for all that decides about the result. */
static void cache_key(const struct rung_trial *trial, char key[RUNG_SHA256_HEX])
{
    struct rung_buf text = {0};
    rung_buf_printf(&text, "%s\n%s\n%u\n", trial->bundle_sha256, trial->ex->info.arch,
                    trial->ex->info.format);
    for (uint32_t i = 0; i < trial->n_expressions; i++)
        rung_buf_printf(&text, "%s\n", trial->expressions[i]);
    for (uint32_t i = 0; i < trial->n_symbols; i++)
        rung_buf_printf(&text, "symbol %s\n", trial->symbols[i]);
    rung_sha256(text.ptr, text.len, key);
    rung_buf_free(&text);
}

static struct rung_cached *cache_find(struct rung_executor *ex, const char *key)
{
    for (size_t i = 0; i < RUNG_CACHE_SIZE; i++)
        if (ex->cache[i].arena && strcmp(ex->cache[i].key, key) == 0)
            return &ex->cache[i];
    return NULL;
}

static void cache_drop(struct rung_cached *slot)
{
    rung_arena_free(slot->arena);
    *slot = (struct rung_cached){0};
}

/* The slot used longest ago, emptied. */
static struct rung_cached *cache_slot(struct rung_executor *ex)
{
    struct rung_cached *oldest = &ex->cache[0];
    for (size_t i = 1; i < RUNG_CACHE_SIZE; i++)
        if (ex->cache[i].used < oldest->used)
            oldest = &ex->cache[i];
    cache_drop(oldest);
    oldest->arena = rung_arena_new();
    return oldest->arena ? oldest : NULL;
}

void rung_cache_clear(struct rung_executor *ex)
{
    for (size_t i = 0; i < RUNG_CACHE_SIZE; i++)
        cache_drop(&ex->cache[i]);
}

static int32_t call_compiler(struct rung_trial *trial, struct rung_arena *arena,
                             struct rung_error *err)
{
    struct rung_call call = rung_trial_call(trial, err);
    const struct rung_compile_request request = {
        .struct_size = sizeof request,
        .n_expressions = trial->n_expressions,
        .bundle = trial->bundle,
        .expressions = trial->expressions,
        .arch = trial->ex->info.arch,
        .format = trial->ex->info.format,
        .want_all = 1,
        .symbols = trial->symbols,
        .n_symbols = trial->n_symbols,
    };
    int32_t status;
    call.arena = arena;
    trial->compiled = (struct rung_compile_result){.struct_size = sizeof trial->compiled};
    RUNG_INVOKE(status, trial->ex->compiler, struct rung_compiler_ops, compile, &call, &request,
                &trial->compiled);
    return status;
}

/* Errors of the compiler plugin itself: not the candidate's, but for time. */
static bool compiler_failed(struct rung_trial *trial, int32_t status, const struct rung_error *err)
{
    const char *code = status == RUNG_ETIMEOUT ? "compile.timeout" : "internal";
    rung_trial_settlef(trial, code, "the compiler failed: %s", err->message);
    return false;
}

static bool judge(struct rung_trial *trial)
{
    const struct rung_compile_result *compiled = &trial->compiled;
    const char *code = rung_trial_code(trial, compiled->code);
    if (!code || (!*code && !compiled->artifact)) {
        rung_trial_settlef(trial, "internal",
                           "the compiler gave neither an artifact nor a stable code");
        return false;
    }
    if (*code)
        rung_trial_settle(trial, code, compiled->log);
    return !*code;
}

/* Results that another try would give again. */
static bool lasting(const struct rung_compile_result *result)
{
    return !result->code[0] || strcmp(result->code, "compile.error") == 0;
}

static bool store_codes(struct rung_trial *trial)
{
    static const char *const names[] = {"", "kernel.ptx", "kernel.cubin", "kernel.bin"};
    const struct rung_artifact *artifact = trial->compiled.artifact;
    struct rung_error err = rung_error_init();
    char sha256[RUNG_SHA256_HEX];
    for (uint32_t i = 0; i < artifact->n_codes; i++) {
        const struct rung_code *code = &artifact->codes[i];
        const char *name =
            names[code->format <= RUNG_FORMAT_OPAQUE ? code->format : RUNG_FORMAT_OPAQUE];
        if (rung_executor_store(trial->ex, name, code->bytes, code->n_bytes, sha256, &err) !=
            RUNG_OK) {
            rung_trial_settlef(trial, "internal", "the compiled code can't be kept: %s",
                               err.message);
            return false;
        }
    }
    return true;
}

bool rung_trial_compile(struct rung_trial *trial)
{
    struct rung_executor *ex = trial->ex;
    struct rung_error err = rung_error_init();
    char key[RUNG_SHA256_HEX];
    cache_key(trial, key);
    struct rung_cached *slot = cache_find(ex, key);
    trial->cached = slot != NULL;
    rung_trial_enter(trial, RUNG_AT_COMPILE, "compile", "compile", ex->compile_s);
    if (slot) {
        trial->compiled = slot->result;
    } else {
        slot = cache_slot(ex);
        int32_t status = slot ? call_compiler(trial, slot->arena, &err)
                              : rung_fail(&err, RUNG_ENOMEM, "", "memory is out");
        if (status != RUNG_OK)
            return compiler_failed(trial, status, &err);
        slot->result = trial->compiled;
        if (lasting(&trial->compiled))
            memcpy(slot->key, key, sizeof slot->key);
    }
    slot->used = ex->n_jobs;
    return judge(trial) && store_codes(trial);
}

/* ---- rung.host.compile/0 ---- */

static int32_t host_compile(const struct rung_host *host, struct rung_call *call,
                            const struct rung_compile_request *request,
                            struct rung_compile_result *out)
{
    struct rung_executor *ex = rung_host_user(host, RUNG_HOST_COMPILE);
    int32_t status;
    if (!ex->compiler)
        return rung_fail(call->error, RUNG_EUNAVAILABLE, "compile.not_ready",
                         "the compiler has not started");
    RUNG_INVOKE(status, ex->compiler, struct rung_compiler_ops, compile, call, request, out);
    return status;
}

const struct rung_host_compile rung_compile_table = {.struct_size = sizeof rung_compile_table,
                                                     .compile = host_compile};
