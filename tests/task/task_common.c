#include "task/task_common.h"
#include "base/json.h"

#include <string.h>

const char *const softmax_json =
    "{ \"name\": \"softmax\", \"summary\": \"Row-wise softmax\","
    "  \"dims\": { \"rows\": 64, \"cols\": { \"value\": 256, \"min\": 4, \"max\": 65536,"
    "              \"multiple_of\": 4 }, \"cols4\": \"cols / 4\" },"
    "  \"params\": [ { \"name\": \"scale\", \"dtype\": \"f64\", \"value\": 1.5 },"
    "                { \"name\": \"shift\", \"dtype\": \"i64\", \"value\": 3 } ],"
    "  \"tensors\": ["
    "    { \"name\": \"x\", \"role\": \"input\", \"dtype\": \"f32\", \"shape\": \"rows, cols\", "
    "\"fill\": "
    "\"normal\" },"
    "    { \"name\": \"y\", \"role\": \"output\", \"dtype\": \"f32\", \"shape\": \"rows, cols\" } "
    "],"
    "  \"reference\": { \"plugin\": \"ops\", \"graph\": \"y = softmax(x, axis=1)\" },"
    "  \"check\": { \"precision\": \"fp32\", \"extra\": [ { \"rows\": 7, \"cols\": 1000 } ] },"
    "  \"bench\": { \"shapes\": [ { \"rows\": 4096, \"cols\": 1024, \"weight\": 2.0 }, { \"rows\": "
    "8 } ] } }";

const struct rung_task *task_of_json(struct rung_arena *arena, const char *json,
                                     const char **faults)
{
    struct rung_diags diags = {0};
    cJSON *tree = rung_json_parse(json, strlen(json));
    assert_non_null(tree);
    const struct rung_node *root = rung_node_from_json(arena, tree, NULL, "task.json");
    const struct rung_task *task = rung_task_read(arena, root, &diags);
    *faults = rung_arena_strdup(arena, rung_buf_text(&diags.text));
    assert_true((task != NULL) == (diags.n == 0));
    rung_diags_free(&diags);
    cJSON_Delete(tree);
    return task;
}

const struct rung_task *softmax_task(struct rung_arena *arena)
{
    const char *faults;
    const struct rung_task *task = task_of_json(arena, softmax_json, &faults);
    if (!task)
        fail_msg("%s", faults);
    return task;
}

char *softmax_with(struct rung_arena *arena, const char *from, const char *to)
{
    const char *at = strstr(softmax_json, from);
    assert_non_null(at);
    return rung_arena_printf(arena, "%.*s%s%s", (int)(at - softmax_json), softmax_json, to,
                             at + strlen(from));
}
