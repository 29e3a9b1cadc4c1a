/*
 * Providers' plugins over a wire of ours in place of the host's HTTP: what a server answers is
 * scripted, what a plugin sends is kept. One thread.
 */
#ifndef TESTS_LLM_WIRE_H
#define TESTS_LLM_WIRE_H

#include "harness.h"
#include <cjson/cJSON.h>
#include <rung/http.h>

/* Settings under which each plugin starts. */
#define WIRE_OPENAI "{\"model\": \"m-1\", \"key\": \"env:RUNG_TEST_KEY\"}"

/* Opens plugin `name` over the wire, with nothing scripted yet. */
int32_t wire_open(struct model *model, const char *name, const char *options);

/* The next reply. headers: "name: value" lines, each with "\n"; NULL: none. Texts are borrowed. */
void wire_answer(uint32_t status, const char *headers, const char *body);
void wire_answer_bytes(uint32_t status, const char *headers, const char *body, size_t n);
/* The next request fails with this status and symbol instead. */
void wire_break(int32_t status, const char *symbol);
/* The next reply is a stream: lines "event: NAME", "data: TEXT" and empty ones. */
void wire_stream(const char *events);
/* The same, and after it the wire breaks. */
void wire_cut(const char *events, int32_t status, const char *symbol);
/* One request that is answered by a stream; its status. */
int32_t wire_ask_stream(struct model *model, const char *events);
/* The text of a golden reply, on the heap. */
char *wire_golden(const char *name);

/* One request that is answered with status 200 and this body; its status. */
int32_t wire_ask(struct model *model, const char *body);
/* The same, with what a golden file holds. */
int32_t wire_ask_golden(struct model *model, const char *name);
/* Checks the tokens of the last response. */
void wire_usage(const struct model *model, int64_t input, int64_t cache_read, int64_t write_5m,
                int64_t write_1h, int64_t output, int64_t reasoning);

/* What was sent last. */
size_t wire_sent_count(void); /* requests since wire_open */
const char *wire_url(void);
/* "name: value", secrets as "name: prefix{reference}"; NULL when that header was not sent. */
const char *wire_header(const char *name);
/* rung_http_flag, and the longest wait for the reply's first byte. */
uint32_t wire_flags(void);
uint32_t wire_first_byte_ms(void);
/* Whether events of a stream were asked for, and how long a silence may last. */
bool wire_asked_for_events(void);
uint32_t wire_first_event_ms(void);
uint32_t wire_between_events_ms(void);
/* The body; owned here, until the next request. */
const cJSON *wire_body(void);
/* Fails the test unless the member at the path ("a.b.0.c") is this JSON text. */
void wire_has(const char *path, const char *json);
/* Fails the test if the body has that member at its top. */
void wire_lacks(const char *name);

#endif
