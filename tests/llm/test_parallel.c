/* One instance, many calls at once: streams, and what all of them learn from a server's refusal. */
#include "harness.h"

#include "base/status.h"
#include <pthread.h>
#include <rung/http.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, CALLS = 25 };

static _Atomic uint32_t sent, turned_away;

/* A server that takes neither a temperature nor the newer name of the cap. */
static int32_t perform(const struct rung_host *host, struct rung_call *call,
                       const struct rung_http_request *request, struct rung_http_response *out)
{
    static const char refusal[] = "{\"error\":{\"message\":\"temperature is not supported\"}}";
    static const char cap_refusal[] =
        "{\"error\":{\"message\":\"max_completion_tokens is not supported\"}}";
    static const char *const events[] = {
        "{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}",
        "{\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}", "[DONE]"};
    const bool cap = strstr(request->body.ptr, "max_completion_tokens") != NULL;
    (void)host;
    atomic_fetch_add(&sent, 1);
    out->status = 200;
    if (cap || strstr(request->body.ptr, "temperature")) {
        atomic_fetch_add(&turned_away, 1);
        out->status = 400;
        out->body = cap ? (struct rung_text){cap_refusal, sizeof cap_refusal - 1}
                        : (struct rung_text){refusal, sizeof refusal - 1};
        return RUNG_OK;
    }
    for (size_t i = 0; i < sizeof events / sizeof *events; ++i)
        if (request->on_event(request->ctx, (struct rung_text){"message", 7},
                              (struct rung_text){events[i], strlen(events[i])}))
            return rung_fail(call->error, RUNG_ECANCELLED, "http.stopped", "stopped");
    return RUNG_OK;
}

static struct rung_text find(const struct rung_http_response *response, const char *name)
{
    (void)response;
    (void)name;
    return (struct rung_text){0};
}

static const struct rung_host_http table = {
    .struct_size = sizeof table, .perform = perform, .find = find};

struct job {
    struct model *model;
    double temperature;
    uint32_t cap;
    uint32_t good;
};

static void *work(void *data)
{
    struct job *job = data;
    for (int i = 0; i < CALLS; ++i) {
        struct rung_error error = rung_error_init();
        struct rung_arena *arena = rung_arena_new();
        struct rung_call call = {.struct_size = sizeof call, .arena = arena, .error = &error};
        const struct rung_part part = {
            .struct_size = sizeof part, .kind = RUNG_PART_TEXT, .text = {"x", 1}};
        const struct rung_message message = {sizeof message, RUNG_MSG_USER, &part, 1, 0};
        const struct rung_llm_request request = {.struct_size = sizeof request,
                                                 .n_messages = 1,
                                                 .key = "code/1/0",
                                                 .role = "code",
                                                 .messages = &message,
                                                 .temperature = job->temperature,
                                                 .max_output_tokens = job->cap};
        struct rung_llm_response out = {.struct_size = sizeof out};
        int32_t status;
        RUNG_INVOKE(status, job->model->instance, struct rung_llm_ops, complete, &call, &request,
                    &out);
        job->good += status == RUNG_OK && strcmp(out.parts[0].text.ptr, "ab") == 0;
        rung_arena_free(arena);
    }
    return NULL;
}

static void run(double temperature, uint32_t cap)
{
    static const struct rung_service services[] = {{RUNG_HOST_HTTP, &table, NULL},
                                                   {NULL, NULL, NULL}};
    struct model model;
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    atomic_store(&sent, 0);
    atomic_store(&turned_away, 0);
    assert_int_equal(model_open_with(&model, "openai", "{\"model\":\"m\"}", services), RUNG_OK);
    for (int i = 0; i < THREADS; ++i) {
        jobs[i] = (struct job){&model, temperature, cap, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].good, CALLS);
    }
    assert_true(atomic_load(&turned_away) >= 1);
    assert_true(atomic_load(&turned_away) <= THREADS); /* one each, before it is known */
    assert_int_equal(atomic_load(&sent), THREADS * CALLS + atomic_load(&turned_away));
    model_close(&model);
}

static void a_parameter_is_left_out_by_all(void **state)
{
    (void)state;
    run(0.5, 0);
}

static void the_cap_is_renamed_once_by_all(void **state)
{
    (void)state;
    run(-1, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parameter_is_left_out_by_all),
        cmocka_unit_test(the_cap_is_renamed_once_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
