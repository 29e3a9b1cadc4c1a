/* A started model backend for tests; see harness.h. */
#include "harness.h"
#include <string.h>

static struct rung_error clean(void)
{
    return (struct rung_error){.struct_size = sizeof(struct rung_error)};
}

static int32_t open_kind(struct model *model, const char *kind, const char *name,
                         const char *options, const struct rung_service *services)
{
    *model = (struct model){
        .registry = rung_registry_new(), .arena = rung_arena_new(), .error = clean()};
    model->cancel = rung_cancel_new();
    rung_registry_allow_insecure(model->registry);
    const struct rung_loaded *loaded = NULL;
    int32_t status = rung_registry_load(model->registry, kind, name, &loaded, &model->error);
    if (status != RUNG_OK)
        return status;
    struct rung_diags diags = {0};
    cJSON *json = cJSON_Parse(options);
    assert_non_null(json);
    const struct rung_node *group = rung_node_from_json(model->arena, json, NULL, "test");
    cJSON_Delete(json);
    const struct rung_options *set =
        rung_options_read(model->arena, loaded->factory, group, NULL, rung_data_dir(), &diags);
    if (!set)
        print_message("%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    if (!set)
        return RUNG_ECONFIG;
    status = rung_instance_new(loaded, set, name, rung_data_dir(), services, &model->instance,
                               &model->error);
    return status == RUNG_OK ? rung_instance_start(model->instance, &model->error) : status;
}

int32_t model_open(struct model *model, const char *name, const char *options)
{
    return open_kind(model, RUNG_KIND_LLM, name, options, NULL);
}

int32_t model_open_kind(struct model *model, const char *kind, const char *name,
                        const char *options)
{
    return open_kind(model, kind, name, options, NULL);
}

int32_t model_open_with(struct model *model, const char *name, const char *options,
                        const struct rung_service *services)
{
    return open_kind(model, RUNG_KIND_LLM, name, options, services);
}

void model_close(struct model *model)
{
    rung_instance_free(model->instance);
    rung_cancel_free(model->cancel);
    rung_arena_free(model->arena);
    rung_registry_free(model->registry);
}

int32_t model_send(struct model *model, const struct rung_llm_request *request)
{
    struct rung_call call = {.struct_size = sizeof call,
                             .arena = model->arena,
                             .cancel = model->cancel,
                             .deadline_ns = model->deadline_ns,
                             .error = &model->error};
    struct rung_llm_response response = {.struct_size = sizeof response};
    int32_t status = RUNG_EINTERNAL;
    model->error = clean();
    RUNG_INVOKE(status, model->instance, struct rung_llm_ops, complete, &call, request, &response);
    model->response = response;
    if (status != RUNG_OK)
        assert_true(model->error.message[0] != 0);
    return status;
}

int32_t model_ask(struct model *model, const char *role, const char *key, uint64_t seed,
                  const char *user)
{
    const struct rung_part part = {
        .struct_size = sizeof part, .kind = RUNG_PART_TEXT, .text = {user, strlen(user)}};
    const struct rung_message message = {
        .struct_size = sizeof message, .role = RUNG_MSG_USER, .parts = &part, .n_parts = 1};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 1,
                                             .key = key,
                                             .role = role,
                                             .messages = &message,
                                             .temperature = -1,
                                             .seed = seed};
    return model_send(model, &request);
}

const char *model_text(const struct model *model)
{
    const struct rung_part *found = NULL;
    for (uint32_t i = 0; i < model->response.n_parts; ++i)
        if (model->response.parts[i].kind == RUNG_PART_TEXT) {
            assert_null(found);
            found = &model->response.parts[i];
        }
    assert_non_null(found);
    return found->text.ptr;
}
