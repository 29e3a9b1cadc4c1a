/*
 * What the plugins for providers share: settings, life cycle, the one call. A plugin gives a
 * dialect: how a request is built and how a reply is read. An instance is immutable after start but
 * for one atomic, what the server turned out to refuse, so that calls may run at once.
 */
#ifndef LLM_COMMON_PROVIDER_H
#define LLM_COMMON_PROVIDER_H

#include "fault.h"
#include "models.h"
#include "parts.h"
#include "plugin.h"
#include "turns.h"
#include <rung/http.h>
#include <stdatomic.h>

/* ---- Settings that every provider has ---- */

extern const struct rung_option llm_opt_model, llm_opt_temperature, llm_opt_timeout, llm_opt_stream,
    llm_opt_silence, llm_opt_headers, llm_opt_body, llm_opt_models, llm_opt_plain;
/* In this order; each plugin adds url, key, max_output_tokens and effort of its own. */
#define LLM_OPTIONS                                                                                \
    &llm_opt_temperature, &llm_opt_timeout, &llm_opt_stream, &llm_opt_silence, &llm_opt_headers,   \
        &llm_opt_body, &llm_opt_models, &llm_opt_plain

struct llm_provider;

/* One try of a request. */
struct llm_ask {
    const struct llm_provider *provider;
    const struct rung_llm_request *request;
    uint32_t drop; /* llm_knob: what may not be sent */
    uint32_t sent; /* what was sent */
    bool stream;
};

struct llm_dialect {
    /* Builds the body of a request that llm_turns_check let pass. */
    void (*build)(struct llm_ask *ask, struct llm_body *body);
    /*
     * Reads a whole reply of status 2xx that is no error. RUNG_OK, or a status with error filled:
     * RUNG_EIO through llm_malformed, RUNG_EUNAVAILABLE when the server says that it failed midway.
     */
    int32_t (*read)(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                    struct rung_error *error);
    /* The same for one event of a stream, an object. NULL: the dialect has no streams. */
    int32_t (*event)(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                     struct rung_error *error);
    /* Optional. Once at the end of a reply that is whole, or cut. */
    void (*end)(const struct llm_asker *asker, struct llm_reply *reply);
};

/* How a dialect names itself to the server. */
struct llm_login {
    const char *header;    /* that carries the key */
    const char *prefix;    /* before the key, or NULL */
    const char *id_header; /* of the reply: its id */
    const char *name[2];   /* one further header: name and value, or NULLs */
};

struct llm_provider {
    const struct rung_host *host;
    const struct rung_host_http *http; /* NULL before start */
    const struct llm_dialect *dialect;
    struct llm_login login;
    const char *plugin;    /* static */
    const char *provider;  /* by which the tables of models know it; static */
    const char *echo;      /* of openai: the reasoning field that goes back; static, or NULL */
    char *endpoint;        /* the whole URL that requests go to */
    char *stream_endpoint; /* the same for streams; NULL: endpoint */
    char *name;            /* of the model */
    char *key;             /* reference, "" for none */
    char *effort;          /* "" for the provider's */
    char *models;          /* a table of the user's, or "" */
    char **headers;        /* "Name: value" */
    char **extras;         /* "PATH=JSON" */
    uint32_t n_headers, n_extras;
    int64_t max_output_tokens; /* 0: not sent */
    double temperature;        /* < 0: not sent */
    double timeout_s, silence_s;
    bool allow_plain, stream;
    uint32_t cap_field; /* that is sent first, as of llm_model.cap_field; 0: has one name only */
    bool cap_fixed;     /* by the user */
    struct llm_model model;   /* after start */
    _Atomic uint32_t learned; /* llm_knob that the server refused; LLM_CAP: the other name */
};

/*
 * Rules that types can't tell: a URL of http or https, headers as "Name: value" without keys, body
 * as "PATH=JSON" without what this plugin itself sends. RUNG_ECONFIG with error filled.
 */
int32_t llm_provider_validate(const struct rung_host *host, const struct rung_options *options,
                              struct rung_error *error);
/*
 * Copies the shared settings and "key", "effort" and "max_output_tokens", which each plugin
 * declares itself, as it does "url". RUNG_ENOMEM leaves it to llm_provider_free, as success does.
 * dialect, login, endpoint and cap_field are the plugin's to set; provider is plugin until it is.
 */
int32_t llm_provider_init(struct llm_provider *provider, const struct rung_host *host,
                          const struct rung_options *options, const char *plugin,
                          struct rung_error *error);
/* RUNG_ENOMEM when endpoint is missing, else RUNG_OK. */
int32_t llm_provider_ready(const struct llm_provider *provider, struct rung_error *error);
/* Frees what the provider owns, not the provider. */
void llm_provider_free(struct llm_provider *provider);

/* Factory functions for instances that begin with a struct llm_provider. */
int32_t llm_provider_start(void *self, struct rung_error *error);
void llm_provider_destroy(void *self);
extern const struct rung_llm_ops llm_provider_ops;

/*
 * url with path put after its own path and before its query; bare is put between them when url has
 * no path of its own. On the heap; NULL without memory.
 */
char *llm_endpoint(const char *url, const char *bare, const char *path);
/* "Name: value" -> its two halves, trimmed; false unless both hold something. */
bool llm_split(const char *text, char at, struct llm_span *left, struct llm_span *right);
/* Adds text, percent-encoded where it is none of A-Z a-z 0-9 - _ ~ and inner dots. */
void llm_add_encoded(struct llm_text *to, const char *text);

struct llm_asker llm_provider_asker(const struct llm_provider *provider);

/* ---- What builders use ---- */

/* Whether a knob may be sent; notes that it was. */
bool llm_may(struct llm_ask *ask, uint32_t knob);
/* The cap of the request, else the setting's, within what the model can; 0: none. */
int64_t llm_cap(const struct llm_ask *ask);
/* "max_completion_tokens" or "max_tokens". */
const char *llm_cap_name(const struct llm_ask *ask);
/* Who says what the system says: RUNG_MSG_SYSTEM's word, or NULL where the user does. */
const char *llm_system_word(const struct llm_ask *ask);
/* Adds "temperature" when the request or the settings give one. */
void llm_add_temperature(struct llm_ask *ask, struct llm_body *body, cJSON *object);
/*
 * The word for the effort that the request asks for (1..5: words[0..4]) as the model knows it, else
 * the setting's; NULL: none. words NULL: the setting's only.
 */
const char *llm_effort(struct llm_ask *ask, const char *const words[LLM_LEVELS]);
/* Tokens for reasoning where the model takes a number in place of a word; -1: none. */
int64_t llm_budget(struct llm_ask *ask);
/* The reply's schema, new, or NULL: none is asked for, or none may be sent. */
cJSON *llm_schema(struct llm_ask *ask);
/* A number below 2^31 of the request's seed and key: the same for the same request only. */
double llm_seed(const struct rung_llm_request *request);

#endif
