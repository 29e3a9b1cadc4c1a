/* `http` of a pipeline: how models' servers are reached. */
#include "config/reader.h"
#include "base/io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static uint32_t read_version(struct pipeline_reader *r, const struct rung_node *group)
{
    const struct rung_node *node = rung_config_child(group, "version", RUNG_NODE_STRING, r->diags);
    if (!node || strcmp(node->s, "1.1") == 0)
        return 1;
    if (strcmp(node->s, "2") != 0)
        RUNG_DIAG_AT(r->diags, node, "'version' can't be \"%s\"; it is one of 1.1, 2", node->s);
    return 2;
}

/* The host and its port alone: pipelines are stored, shown and shared. */
static const char *read_proxy(struct pipeline_reader *r, const struct rung_node *group)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
    const struct rung_node *node = rung_config_child(group, "proxy", RUNG_NODE_STRING, r->diags);
    const char *host = NULL;
    if (!node || !*node->s)
        return node ? node->s : NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (rung_starts_with(node->s, schemes[i]))
            host = node->s + strlen(schemes[i]);
    if (strchr(node->s, '@'))
        RUNG_DIAG_AT(r->diags, node,
                     "'proxy' holds a user name or password; give such a one by the environment "
                     "variable https_proxy");
    else if (!host || !*host || strpbrk(host, "/?# \t"))
        RUNG_DIAG_AT(r->diags, node,
                     "'proxy' is a URL such as \"http://proxy.example:3128\" (http, https, socks5 "
                     "or socks5h), or \"\" for none");
    return node->s;
}

static const char *read_authorities(struct pipeline_reader *r, const struct rung_node *group)
{
    const struct rung_node *node = rung_config_child(group, "ca", RUNG_NODE_STRING, r->diags);
    if (!node)
        return NULL;
    const char *path =
        rung_path_absolute(r->arena, rung_path_beside(r->arena, node->file, node->s));
    if (!*node->s)
        RUNG_DIAG_AT(r->diags, node, "'ca' is empty; it is a file or folder of certificates");
    else if (access(path, R_OK) != 0)
        RUNG_DIAG_AT(r->diags, node, "'ca' can't be read: %s: %s", path, strerror(errno));
    return path;
}

void pipeline_http(struct pipeline_reader *r, struct rung_http_group *out)
{
    static const char *const known[] = {"version", "proxy", "ca", NULL};
    const struct rung_node *group = rung_config_child(r->root, "http", RUNG_NODE_GROUP, r->diags);
    if (!group)
        return;
    out->version = read_version(r, group);
    out->proxy = read_proxy(r, group);
    out->ca = read_authorities(r, group);
    rung_diag_unknown(r->diags, group, "http", known);
}
