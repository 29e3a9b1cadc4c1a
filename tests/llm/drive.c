/*
 * llm_drive RUNG PLUGIN OPTIONS REQUEST: one request through a backend and the services of the real
 * host; RUNG is the executable. OPTIONS and REQUEST are JSON; a request is {"user", "system",
 * "times", "effort", "temperature", "cap", "deadline_ms", "stop_at", "tool", "schema"}, and only
 * user must be there. Prints what came of each as one line of JSON. For mock.py and command.py.
 */
#include "harness.h"

#include "base/io.h"
#include "http/http.h"
#include "worker/process/program.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct rung_buf text;
    int n, stop_at;
} shown;

static int32_t show(void *ctx, struct rung_text delta)
{
    (void)ctx;
    rung_buf_add(&shown.text, delta.ptr, delta.len);
    return ++shown.n == shown.stop_at;
}

static const char *text_in(const cJSON *json, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(json, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_in(const cJSON *json, const char *name, double otherwise)
{
    const cJSON *item = cJSON_GetObjectItem(json, name);
    return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

static cJSON *parts_json(const struct rung_llm_response *r)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < r->n_parts; i++) {
        const struct rung_part *p = &r->parts[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddNumberToObject(item, "kind", p->kind);
        cJSON_AddStringToObject(item, "text", p->text.ptr);
        if (p->id)
            cJSON_AddStringToObject(item, "id", p->id);
        if (p->name)
            cJSON_AddStringToObject(item, "name", p->name);
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

static void add_text(cJSON *json, const char *name, const char *text)
{
    if (text)
        cJSON_AddStringToObject(json, name, text);
    else
        cJSON_AddNullToObject(json, name);
}

static void add_response(cJSON *json, const struct rung_llm_response *r)
{
    cJSON_AddNumberToObject(json, "finish", r->finish);
    cJSON_AddNumberToObject(json, "cut", r->cut);
    cJSON_AddNumberToObject(json, "tries", r->tries);
    add_text(json, "finish_word", r->finish_word);
    add_text(json, "repaired", r->repaired);
    add_text(json, "request_id", r->request_id);
    add_text(json, "model", r->model);
    cJSON_AddNumberToObject(json, "raw", (double)r->raw.len);
    cJSON_AddNumberToObject(json, "input", (double)r->usage.input);
    cJSON_AddNumberToObject(json, "output", (double)r->usage.output);
    cJSON_AddNumberToObject(json, "estimated", r->usage.estimated);
    cJSON_AddNumberToObject(json, "requests_left", (double)r->limits.requests_left);
    cJSON_AddBoolToObject(json, "streamed", r->first_token_ns != 0);
    cJSON_AddItemToObject(json, "parts", parts_json(r));
}

static void print_one(const struct model *m, int32_t status)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "status", status);
    cJSON_AddStringToObject(json, "symbol", m->error.symbol);
    cJSON_AddStringToObject(json, "message", m->error.message);
    cJSON_AddNumberToObject(json, "retry_after_ms", m->error.retry_after_ms);
    cJSON_AddStringToObject(json, "shown", rung_buf_text(&shown.text));
    add_response(json, &m->response);
    char *line = cJSON_PrintUnformatted(json);
    puts(line);
    free(line);
    cJSON_Delete(json);
    rung_buf_free(&shown.text);
    shown.n = 0;
}

static void ask(struct model *m, const cJSON *json)
{
    const char *user = text_in(json, "user"), *system = text_in(json, "system");
    const char *tool_name = text_in(json, "tool"), *schema = text_in(json, "schema");
    const struct rung_part parts[] = {
        {.struct_size = sizeof *parts, .kind = RUNG_PART_TEXT, .text = rung_text_of(system)},
        {.struct_size = sizeof *parts, .kind = RUNG_PART_TEXT, .text = rung_text_of(user)}};
    const struct rung_message messages[] = {{sizeof *messages, RUNG_MSG_SYSTEM, parts, 1, 0},
                                            {sizeof *messages, RUNG_MSG_USER, parts + 1, 1, 0}};
    const uint32_t skip = system[0] ? 0 : 1;
    const struct rung_tool tool = {.struct_size = sizeof tool,
                                   .name = tool_name,
                                   .schema = rung_text_of("{\"type\":\"object\"}")};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 2 - skip,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .messages = messages + skip,
                                             .tools = &tool,
                                             .n_tools = tool_name[0] != 0,
                                             .effort = (uint32_t)number_in(json, "effort", 0),
                                             .max_output_tokens =
                                                 (uint32_t)number_in(json, "cap", 0),
                                             .temperature = number_in(json, "temperature", -1),
                                             .on_delta = show,
                                             .schema = rung_text_of(schema),
                                             .schema_name = "reply"};
    const double deadline_ms = number_in(json, "deadline_ms", 0);
    shown.stop_at = (int)number_in(json, "stop_at", 0);
    for (int i = 0; i < (int)number_in(json, "times", 1); i++) {
        m->deadline_ns = deadline_ms > 0 ? rung_now_ns() + (uint64_t)(deadline_ms * 1e6) : 0;
        print_one(m, model_send(m, &request));
    }
}

int main(int argc, char **argv)
{
    struct model model;
    if (argc != 5)
        return 2;
    const struct rung_service services[] = {{RUNG_HOST_HTTP, &rung_http_table, NULL},
                                            {RUNG_HOST_PROGRAM, &rung_program_table, argv[1]},
                                            {NULL, NULL, NULL}};
    cJSON *request = cJSON_Parse(argv[4]);
    const int32_t status = model_open_with(&model, argv[2], argv[3], services);
    model.response = (struct rung_llm_response){0};
    if (status != RUNG_OK || !request)
        print_one(&model, status);
    else
        ask(&model, request);
    cJSON_Delete(request);
    model_close(&model);
    return 0;
}
