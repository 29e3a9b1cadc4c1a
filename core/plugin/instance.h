/*
 * Instances of factories: the host table that each sees, its life, and the guard around every call
 * (thread model, floating-point environment, error contract).
 */
#ifndef PLUGIN_INSTANCE_H
#define PLUGIN_INSTANCE_H

#include "base/arena.h"
#include "plugin/crash.h"
#include "plugin/fpenv.h"
#include "plugin/options.h"
#include "plugin/registry.h"

/* A host service offered to instances. user is found again through rung_host_user. */
struct rung_service {
    const char *id; /* "rung.host.process/0" */
    const void *table;
    void *user;
};

struct rung_instance {
    const struct rung_loaded *loaded;
    const struct rung_factory *factory;
    const void *ops;
    void *self;
    const struct rung_options *options;
    struct rung_host *host;
    struct instance_private *priv;
};

/*
 * Creates an instance (not started). options must come from rung_options_read of the same factory
 * and live longer; services (NULL id ends; may be NULL) are copied. name is for logs and messages.
 */
int32_t rung_instance_new(const struct rung_loaded *loaded, const struct rung_options *options,
                          const char *name, const char *data_dir,
                          const struct rung_service *services, struct rung_instance **out,
                          struct rung_error *err);
/* The factory's own rules on options that are each valid, without an instance. */
int32_t rung_instance_validate(const struct rung_loaded *loaded, const struct rung_options *options,
                               const char *name, const char *data_dir, struct rung_error *err);
/* Starts it once; later calls return RUNG_OK. */
int32_t rung_instance_start(struct rung_instance *instance, struct rung_error *err);
/* Stops (when started) and destroys. NULL is fine. */
void rung_instance_free(struct rung_instance *instance);

/* The path of the plugin file behind a host table, and the user pointer of one of its services. */
const char *rung_host_plugin_path(const struct rung_host *host);
const char *rung_host_factory_name(const struct rung_host *host);
const char *rung_host_factory_kind(const struct rung_host *host);
void *rung_host_user(const struct rung_host *host, const char *service_id);

/* Guards: see RUNG_INVOKE. */
struct rung_guard {
    struct rung_instance *instance;
    struct rung_fpenv env;
    struct rung_crash_frame outer; /* the plugin that called into this one, if any */
};
void rung_guard_enter(struct rung_guard *guard, struct rung_instance *instance);
/* Unlocks, restores the floating-point environment, checks that err is filled iff status != OK. */
int32_t rung_guard_leave(struct rung_guard *guard, int32_t status, struct rung_error *err);

/*
 * Calls an operation of an instance: RUNG_INVOKE(status, inst, struct rung_verifier_ops, check,
 * call, ...). `call` is a struct rung_call * whose error is set.
 */
#define RUNG_INVOKE(status, inst, type, op, call, ...)                                             \
    do {                                                                                           \
        struct rung_guard guard_;                                                                  \
        rung_guard_enter(&guard_, (inst));                                                         \
        (status) = ((const type *)(inst)->ops)->op((inst)->self, (call), __VA_ARGS__);             \
        (status) = rung_guard_leave(&guard_, (status), (call)->error);                             \
    } while (0)

/* Maps (rung_host.map_*): as JSON for the journal. The caller deletes the result. */
struct rung_map *rung_map_new(struct rung_arena *arena);
cJSON *rung_map_to_json(const struct rung_map *map);

/* Cancellation tokens. request and requested: any thread; requested takes NULL (never). */
struct rung_cancel *rung_cancel_new(void);
void rung_cancel_free(struct rung_cancel *cancel);
void rung_cancel_request(struct rung_cancel *cancel);
bool rung_cancel_requested(const struct rung_cancel *cancel);

/* Where config/ lies for this executable: RUNG_DATA_DIR, or share/rung beside bin/. */
const char *rung_data_dir(void);

/* The basic services every process offers: plan (by the task library) is added by the caller. */
extern const struct rung_service rung_service_rng;

#endif
