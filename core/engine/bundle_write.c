#include "engine/bundle_write.h"
#include "base/io.h"
#include "base/status.h"

#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int32_t write_file(const char *dir, const char *name, struct rung_text text,
                          struct rung_error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return rung_fail(err, RUNG_EIO, "", "%s/%s: the path is too long", dir, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    int32_t status = rung_make_dirs(path, err);
    *slash = '/';
    return status ? status : rung_write_file(path, text.ptr, text.len, err);
}

int32_t rung_bundle_write(const struct rung_bundle *bundle, const char *dir, const char *entry_name,
                          const char *entry_text, struct rung_error *err)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < bundle->n_files && !status; i++) {
        const struct rung_file *f = &bundle->files[i];
        struct rung_text text = f->text;
        bool entry = i == bundle->entry;
        if (entry && entry_text)
            text = rung_text_of(entry_text);
        status = write_file(dir, entry && entry_name ? entry_name : f->path, text, err);
    }
    return status;
}
