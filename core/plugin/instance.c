#include "plugin/instance.h"
#include "base/die.h"
#include "base/io.h"
#include "base/log.h"
#include "base/philox.h"
#include "base/status.h"
#include "plugin/crash.h"
#include "plugin/map.h"

#include <limits.h>
#include <pthread.h>
#include <rung/host.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SERVICES = 16 };

struct instance_private {
    struct rung_host host;
    struct rung_instance *instance;
    char who[128]; /* "verifier numeric" */
    struct rung_service services[MAX_SERVICES];
    size_t n_services;
    pthread_mutex_t lock; /* SERIAL_INSTANCE */
    bool started;
};

/* SERIAL_GLOBAL. Recursive: a verifier's session calls the device on the same thread. */
static pthread_mutex_t global_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* ---- The host table ----------------------------------------------------------------------------
 */

static struct instance_private *private_of(const struct rung_host *host)
{
    return host->ctx;
}

static void host_log(const struct rung_host *host, uint32_t level, const char *message)
{
    rung_log(level, private_of(host)->who, "%s", message ? message : "(NULL)");
}

static void *host_alloc(const struct rung_host *host, struct rung_arena *arena, uint64_t size,
                        uint64_t align)
{
    (void)host;
    return rung_arena_alloc(arena, size, align);
}

static uint64_t host_now(const struct rung_host *host)
{
    (void)host;
    return rung_now_ns();
}

/* A token is a flag that the core sets; see rung_cancel_request. */
struct rung_cancel {
    _Atomic int32_t requested;
};

struct rung_cancel *rung_cancel_new(void)
{
    return rung_xcalloc(1, sizeof(struct rung_cancel));
}

void rung_cancel_free(struct rung_cancel *cancel)
{
    free(cancel);
}

void rung_cancel_request(struct rung_cancel *cancel)
{
    atomic_store(&cancel->requested, 1);
}

bool rung_cancel_requested(const struct rung_cancel *cancel)
{
    return cancel && atomic_load(&cancel->requested);
}

static int32_t host_is_cancelled(const struct rung_host *host, const struct rung_cancel *cancel)
{
    (void)host;
    return rung_cancel_requested(cancel);
}

static int64_t host_int(const struct rung_host *h, const struct rung_options *o, const char *name)
{
    (void)h;
    return rung_options_int(o, name);
}

static double host_float(const struct rung_host *h, const struct rung_options *o, const char *name)
{
    (void)h;
    return rung_options_float(o, name);
}

static const char *host_string(const struct rung_host *h, const struct rung_options *o,
                               const char *name)
{
    (void)h;
    return rung_options_string(o, name);
}

static uint32_t host_count(const struct rung_host *h, const struct rung_options *o,
                           const char *name)
{
    (void)h;
    return rung_options_count(o, name);
}

static const char *host_string_at(const struct rung_host *h, const struct rung_options *o,
                                  const char *name, uint32_t index)
{
    (void)h;
    return rung_options_string_at(o, name, index);
}

static int64_t host_int_at(const struct rung_host *h, const struct rung_options *o,
                           const char *name, uint32_t index)
{
    (void)h;
    return rung_options_int_at(o, name, index);
}

static struct rung_map *host_map_new(const struct rung_host *host, struct rung_arena *arena)
{
    (void)host;
    return rung_map_new(arena);
}

static const struct rung_service *service_find(const struct rung_host *host, const char *id)
{
    const struct instance_private *p = private_of(host);
    for (size_t i = 0; i < p->n_services; i++)
        if (strcmp(p->services[i].id, id) == 0)
            return &p->services[i];
    return NULL;
}

static const void *host_extension(const struct rung_host *host, const char *id)
{
    const struct rung_service *service = id ? service_find(host, id) : NULL;
    return service ? service->table : NULL;
}

static struct rung_host host_table(struct instance_private *p, const char *data_dir)
{
    return (struct rung_host){
        .struct_size = sizeof(struct rung_host),
        .abi_major = RUNG_ABI_MAJOR,
        .abi_draft = RUNG_ABI_DRAFT,
        .name = "rung",
        .version = RUNG_VERSION,
        .data_dir = data_dir,
        .ctx = p,
        .log = host_log,
        .alloc = host_alloc,
        .now_ns = host_now,
        .is_cancelled = host_is_cancelled,
        .opt_int = host_int,
        .opt_float = host_float,
        .opt_string = host_string,
        .opt_count = host_count,
        .opt_string_at = host_string_at,
        .opt_int_at = host_int_at,
        .map_new = host_map_new,
        .map_set_int = rung_map_set_int,
        .map_set_float = rung_map_set_float,
        .map_set_string = rung_map_set_string,
        .get_extension = host_extension,
    };
}

const char *rung_host_plugin_path(const struct rung_host *host)
{
    return private_of(host)->instance->loaded->path;
}

const char *rung_host_factory_name(const struct rung_host *host)
{
    return private_of(host)->instance->factory->name;
}

const char *rung_host_factory_kind(const struct rung_host *host)
{
    return private_of(host)->instance->factory->kind;
}

void *rung_host_user(const struct rung_host *host, const char *service_id)
{
    const struct rung_service *service = service_find(host, service_id);
    return service ? service->user : NULL;
}

/* ---- Guards ---- */

static pthread_mutex_t *lock_of(const struct rung_instance *instance)
{
    switch (instance->factory->thread_model) {
    case RUNG_SERIAL_GLOBAL:
        return &global_lock;
    case RUNG_SERIAL_INSTANCE:
        return &instance->priv->lock;
    default:
        return NULL;
    }
}

void rung_guard_enter(struct rung_guard *guard, struct rung_instance *instance)
{
    pthread_mutex_t *lock = lock_of(instance);
    guard->instance = instance;
    guard->outer = rung_crash_enter(instance->priv->who, instance->loaded->path);
    if (lock)
        pthread_mutex_lock(lock);
    guard->env = rung_fpenv_save();
}

int32_t rung_guard_leave(struct rung_guard *guard, int32_t status, struct rung_error *err)
{
    pthread_mutex_t *lock = lock_of(guard->instance);
    const char *who = guard->instance->priv->who;
    if (rung_fpenv_restore(&guard->env))
        rung_log(RUNG_LOG_ERROR, who,
                 "API MISUSE: changed the floating-point environment; restored");
    rung_crash_leave(guard->outer);
    if (lock)
        pthread_mutex_unlock(lock);
    if (status != RUNG_OK && err && !err->message[0])
        return rung_fail(err, status, "plugin.silent", "%s failed (%s) without a message", who,
                         rung_status_name(status));
    if (status != RUNG_OK && err)
        err->code = status;
    return status;
}

/* ---- Life ---- */

static int32_t call_validate(struct rung_instance *instance, struct rung_error *err)
{
    struct rung_guard guard;
    const struct rung_factory *f = instance->factory;
    rung_guard_enter(&guard, instance);
    int32_t status = f->validate ? f->validate(instance->host, instance->options, err) : RUNG_OK;
    return rung_guard_leave(&guard, status, err);
}

static int32_t call_create(struct rung_instance *instance, struct rung_error *err)
{
    struct rung_guard guard;
    const struct rung_factory *f = instance->factory;
    rung_guard_enter(&guard, instance);
    int32_t status = f->create(instance->host, instance->options, err, &instance->self);
    return rung_guard_leave(&guard, status, err);
}

static void instance_release(struct rung_instance *instance)
{
    pthread_mutex_destroy(&instance->priv->lock);
    free(instance->priv);
    free(instance);
}

/* An instance before its create: what the host's calls need. */
static struct rung_instance *instance_shell(const struct rung_loaded *loaded,
                                            const struct rung_options *options, const char *name,
                                            const char *data_dir)
{
    struct rung_instance *instance = rung_xcalloc(1, sizeof *instance);
    struct instance_private *p = rung_xcalloc(1, sizeof *p);
    *instance = (struct rung_instance){.loaded = loaded,
                                       .factory = loaded->factory,
                                       .ops = loaded->factory->ops,
                                       .options = options,
                                       .host = &p->host,
                                       .priv = p};
    p->instance = instance;
    p->host = host_table(p, data_dir);
    pthread_mutex_init(&p->lock, NULL);
    snprintf(p->who, sizeof p->who, "%s %s", rung_kind_word(loaded->factory->kind), name);
    p->services[p->n_services++] = rung_service_rng;
    return instance;
}

int32_t rung_instance_validate(const struct rung_loaded *loaded, const struct rung_options *options,
                               const char *name, const char *data_dir, struct rung_error *err)
{
    struct rung_instance *instance = instance_shell(loaded, options, name, data_dir);
    int32_t status = call_validate(instance, err);
    instance_release(instance);
    return status;
}

int32_t rung_instance_new(const struct rung_loaded *loaded, const struct rung_options *options,
                          const char *name, const char *data_dir,
                          const struct rung_service *services, struct rung_instance **out,
                          struct rung_error *err)
{
    struct rung_instance *instance = instance_shell(loaded, options, name, data_dir);
    struct instance_private *p = instance->priv;
    for (; services && services->id && p->n_services < MAX_SERVICES; services++)
        p->services[p->n_services++] = *services;
    int32_t status = call_validate(instance, err);
    if (!status)
        status = call_create(instance, err);
    if (status) {
        instance_release(instance);
        return status;
    }
    *out = instance;
    return RUNG_OK;
}

int32_t rung_instance_start(struct rung_instance *instance, struct rung_error *err)
{
    struct rung_guard guard;
    if (instance->priv->started || !instance->factory->start) {
        instance->priv->started = true;
        return RUNG_OK;
    }
    rung_guard_enter(&guard, instance);
    int32_t status = rung_guard_leave(&guard, instance->factory->start(instance->self, err), err);
    instance->priv->started = status == RUNG_OK;
    return status;
}

void rung_instance_free(struct rung_instance *instance)
{
    struct rung_guard guard;
    if (!instance)
        return;
    rung_guard_enter(&guard, instance);
    if (instance->priv->started && instance->factory->stop)
        instance->factory->stop(instance->self);
    instance->factory->destroy(instance->self);
    rung_guard_leave(&guard, RUNG_OK, NULL);
    instance_release(instance);
}

/* ---- Common services ---- */

static const struct rung_host_rng rng_table = {.struct_size = sizeof rng_table,
                                               .words = rung_philox_words};
const struct rung_service rung_service_rng = {RUNG_HOST_RNG, &rng_table, NULL};

const char *rung_data_dir(void)
{
    static char dir[PATH_MAX];
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    if (!dir[0]) {
        const char *set = getenv("RUNG_DATA_DIR"), *exe = rung_exe_path();
        if (set && set[0] == '/')
            snprintf(dir, sizeof dir, "%s", set);
        else if (exe)
            snprintf(dir, sizeof dir, "%.*s/../share/rung", (int)(strrchr(exe, '/') - exe), exe);
        char *real = realpath(dir, NULL);
        if (real)
            snprintf(dir, sizeof dir, "%s", real);
        free(real);
    }
    pthread_mutex_unlock(&once);
    return dir;
}
