/*
 * For the HTTP tests: a server of ours, a host table that keeps its log lines, and one call with
 * its arena. Failing to set up ends the test through cmocka.
 */
#ifndef TESTS_HTTP_HARNESS_H
#define TESTS_HTTP_HARNESS_H

#include "http/http.h"
#include "plugin/instance.h"
#include "support/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct server {
    pid_t pid;
    FILE *output; /* what it prints after the port */
    int input;    /* closing it ends the server */
    int port;
};

/* Starts server.py; certificate and key are NULL for plain http. */
struct server server_start(const char *certificate, const char *key);
/* Starts h2_server.py, over TLS. */
struct server server_start_h2(const char *certificate, const char *key);
void server_stop(struct server *server);
/*
 * Writes a certificate for localhost, signed by itself, with its key, by the openssl command; false
 * where that is missing.
 */
bool server_certificate(const char *certificate, const char *key);

struct http_call {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_http_request request;
    struct rung_http_response response;
    char url[512];
    char log[2048]; /* lines given to host->log */
};

/* A GET of http://127.0.0.1:PORT + path. */
void http_begin(struct http_call *c, const struct server *server, const char *path);
/* Performs it and returns the status, having checked the error contract. Main thread. */
int32_t http_do(struct http_call *c);
/* The same without cmocka's assertions, for any thread. */
int32_t http_try(struct http_call *c);
void http_end(struct http_call *c);
/* A header of two texts. */
struct rung_http_header http_header(const char *name, const char *value);
/* The name="value" secret by reference. */
struct rung_http_header http_secret(const char *name, const char *secret, const char *prefix);
/* The value of a header of the reply, "" when it lacks. */
const char *http_value(const struct http_call *c, const char *name);

#endif
