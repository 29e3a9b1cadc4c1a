/*
 * What the plugins for providers share: settings, the conversation as turns, one POST over the
 * host's HTTP service. An instance is immutable after start, so that calls may run at once.
 */
#ifndef LLM_COMMON_PROVIDER_H
#define LLM_COMMON_PROVIDER_H

#include "reply.h"
#include <rung/http.h>

/* ---- Settings that every provider has ---- */

extern const struct rung_option llm_opt_model, llm_opt_temperature, llm_opt_timeout,
    llm_opt_headers, llm_opt_body, llm_opt_plain;

struct llm_provider {
    const struct rung_host *host;
    const struct rung_host_http *http; /* NULL before start */
    const char *plugin;                /* static */
    char *endpoint;                    /* the whole URL that requests go to */
    char *model;
    char *key;      /* reference, "" for none */
    char *effort;   /* "" for the provider's */
    char **headers; /* "Name: value" */
    char **extras;  /* "PATH=JSON" */
    uint32_t n_headers, n_extras;
    int64_t max_output_tokens; /* 0: not sent */
    double temperature;        /* < 0: not sent */
    double timeout_s;
    bool allow_plain;
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
 * endpoint is the plugin's to set.
 */
int32_t llm_provider_init(struct llm_provider *provider, const struct rung_host *host,
                          const struct rung_options *options, const char *plugin,
                          struct rung_error *error);
/* Frees what the provider owns, not the provider. */
void llm_provider_free(struct llm_provider *provider);
/* Finds the HTTP service. */
int32_t llm_provider_start(struct llm_provider *provider, struct rung_error *error);

/*
 * url with path put after its own path and before its query; bare is put between them when url has
 * no path of its own. On the heap; NULL without memory.
 */
char *llm_endpoint(const char *url, const char *bare, const char *path);

/* ---- The request ---- */

/* llm_check_request; RUNG_EUNSUPPORTED for tools and for parts that are no text. */
int32_t llm_provider_check(const struct rung_llm_request *request, struct rung_error *error);

/* Messages of one role in a row, as one. */
struct llm_turn {
    uint32_t role;        /* rung_message_role */
    struct llm_text text; /* texts of a message are joined as they are, messages by an empty line */
};

/*
 * The turn from message *at on, which moves behind it; messages without text are passed over. False
 * at the end. The caller frees the text of each turn; system messages come as turns of their own.
 */
bool llm_turn_next(const struct rung_llm_request *request, uint32_t *at, struct llm_turn *turn);

/* The request's cap, else the setting's; 0: none. */
int64_t llm_cap(const struct llm_provider *provider, const struct rung_llm_request *request);
/* Adds "temperature" when the request or the settings give one. */
void llm_add_temperature(const struct llm_provider *provider,
                         const struct rung_llm_request *request, struct llm_body *body,
                         cJSON *object);
/*
 * The word for the effort that the request asks for (1..5: words[0..4]), else the setting's; NULL:
 * none.
 */
const char *llm_effort(const struct llm_provider *provider, const struct rung_llm_request *request,
                       const char *const words[5]);

/* How a dialect names itself to the server. */
struct llm_login {
    const char *header;    /* that carries the key */
    const char *prefix;    /* before the key, or NULL */
    const char *id_header; /* of the reply: its id */
    const char *name[2];   /* one further header: name and value, or NULLs */
};

/*
 * Sends the body, with the setting "body" put over it, and gives the reply, whatever its status, in
 * call->arena. Obeys timeout, call->deadline_ns and call->cancel. Errors: those of
 * rung_host_http.perform, but a time-out that is not the call's own deadline is RUNG_EUNAVAILABLE,
 * since another try may do better.
 */
int32_t llm_provider_post(const struct llm_provider *provider, struct rung_call *call,
                          const struct llm_login *login, struct llm_body *body,
                          struct llm_wire *wire);

struct llm_asker llm_provider_asker(const struct llm_provider *provider);

#endif
