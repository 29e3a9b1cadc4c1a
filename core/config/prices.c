/* What models cost: a price group of a pipeline, and the lists of prices.cfg. */
#include "config/config.h"
#include "config/reader.h"
#include "base/io.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void pipeline_price(struct rung_diags *diags, const struct rung_node *group, struct rung_price *out)
{
    static const char *const needed[] = {"input", "output"};
    const double most = 1e6;
    for (size_t i = 0; i < 2; i++)
        if (!rung_node_get(group, needed[i]))
            RUNG_DIAG_AT(diags, group, "price lacks '%s', in USD per million tokens", needed[i]);
    out->given = true;
    out->input = rung_config_float(group, "input", 0, 0, most, diags);
    out->output = rung_config_float(group, "output", 0, 0, most, diags);
    out->cache_read = rung_config_float(group, "cache_read", out->input, 0, most, diags);
    double write = rung_config_float(group, "cache_write", out->input, 0, most, diags);
    out->cache_write_5m = rung_config_float(group, "cache_write_5m", write, 0, most, diags);
    out->cache_write_1h = rung_config_float(group, "cache_write_1h", write, 0, most, diags);
}

static const char *setting(const struct rung_stage *llm, const char *name)
{
    const struct rung_node *n = llm->settings ? rung_node_get(llm->settings, name) : NULL;
    return n && n->type == RUNG_NODE_STRING ? n->s : "";
}

static bool matches(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}

/* An item without `url` is about the provider's own server: a setting `url` means another one. */
static bool is_about(const struct rung_node *item, const struct rung_stage *llm,
                     struct rung_diags *diags)
{
    const char *plugin = rung_config_string(item, "plugin", "", diags);
    const char *model = rung_config_string(item, "model", "", diags);
    const char *url = rung_config_string(item, "url", "", diags);
    return llm->plugin && matches(plugin, llm->plugin) && matches(model, setting(llm, "model")) &&
           matches(url, setting(llm, "url"));
}

static bool find_in(struct rung_arena *arena, const char *path, const struct rung_stage *llm,
                    struct rung_price *out, struct rung_diags *diags)
{
    const struct rung_node *root =
        access(path, F_OK) == 0 ? rung_config_load(arena, path, diags) : NULL;
    const struct rung_node *list =
        root ? rung_config_child(root, "prices", RUNG_NODE_LIST, diags) : NULL;
    for (const struct rung_node *item = list ? list->first : NULL; item; item = item->next)
        if (item->type == RUNG_NODE_GROUP && is_about(item, llm, diags)) {
            pipeline_price(diags, item, out);
            return true;
        }
    return false;
}

static const char *user_file(struct rung_arena *arena)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && *config == '/')
        return rung_path_join(arena, config, "rung/prices.cfg");
    return home && *home == '/' ? rung_path_join(arena, home, ".config/rung/prices.cfg") : NULL;
}

struct rung_price rung_price_find(struct rung_arena *arena, const char *data_dir,
                                  const struct rung_stage *llm, struct rung_diags *diags)
{
    struct rung_price price = llm->price;
    const char *own = price.given ? NULL : user_file(arena);
    if (!price.given && !(own && find_in(arena, own, llm, &price, diags)))
        find_in(arena, rung_path_join(arena, data_dir, "prices.cfg"), llm, &price, diags);
    return price;
}
