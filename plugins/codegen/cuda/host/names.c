/* Names as models vary them: see names.h. */
#include "names.h"
#include <ctype.h>
#include <string.h>

static bool one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(name, *list))
            return true;
    return false;
}

/* Cuts one of the endings off; false when none fits or nothing would be left. */
static bool cut_end(char *name, const char *const *endings)
{
    size_t n = strlen(name);
    for (; *endings; endings++) {
        size_t k = strlen(*endings);
        if (n > k && !strcmp(name + n - k, *endings)) {
            name[n - k] = '\0';
            return true;
        }
    }
    return false;
}

static bool cut_start(char *name, const char *const *beginnings)
{
    for (; *beginnings; beginnings++) {
        size_t k = strlen(*beginnings);
        if (!strncmp(name, *beginnings, k) && name[k]) {
            memmove(name, name + k, strlen(name + k) + 1);
            return true;
        }
    }
    return false;
}

static void drop_underscores(char *name)
{
    char *out = name;
    for (const char *p = name; *p; p++)
        if (*p != '_')
            *out++ = *p;
    *out = '\0';
}

const char *cg_plain_name(struct cg_pool *pool, const char *name)
{
    static const char *const beginnings[] = {"d_", "h_",   "dev_", "device_", "host_",   "gpu_",
                                             "p_", "ptr_", "g_",   "t_",      "tensor_", NULL};
    static const char *const endings[] = {
        "_d",      "_dev",    "_device",     "_gpu",  "_ptr",   "_h",    "_host",
        "_tensor", "_contig", "_contiguous", "_cuda", "_data",  "_c",    "_cont",
        "_",       "_global", "_matrix",     "_vec",  "_buf",   "_fp16", "_fp32",
        "_half",   "_f16",    "_f32",        "_wmma", "_float", NULL};
    char *copy = cg_text(pool, name, strlen(name));
    if (strchr("dhp", copy[0]) && copy[0] && isupper((unsigned char)copy[1]))
        memmove(copy, copy + 1, strlen(copy));
    for (char *p = copy; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    cut_start(copy, beginnings);
    while (cut_end(copy, endings))
        ;
    drop_underscores(copy);
    return *copy ? copy : name;
}

const char *cg_stem(struct cg_pool *pool, const char *name)
{
    static const char *const beginnings[] = {"num_", "n_", "number_of_", "total_", "matrix_", NULL};
    static const char *const endings[] = {"_size",  "_dim",   "_dims", "_len", "_length",
                                          "_count", "_total", "_num",  NULL};
    static const char *const plural[] = {"s", NULL};
    char *copy = cg_text(pool, name, strlen(name));
    for (char *p = copy; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    cut_start(copy, beginnings);
    cut_end(copy, endings);
    drop_underscores(copy);
    if (strlen(copy) > 2)
        cut_end(copy, plural);
    return copy;
}

enum { GROUP = 14 };

static bool share_group(const char *const (*groups)[GROUP], size_t n, const char *a, const char *b)
{
    for (size_t i = 0; i < n; i++)
        if (one_of(a, groups[i]) && one_of(b, groups[i]))
            return true;
    return false;
}

bool cg_tensor_synonyms(const char *a, const char *b)
{
    static const char *const groups[][GROUP] = {
        {"weight", "w", "weights", "gamma", "kernel", "filter", "wt", "g", "taps", "coeffs", NULL},
        {"bias", "b", "beta", "biases", NULL},
        {"q", "query", "queries", NULL},
        {"k", "key", "keys", NULL},
        {"v", "value", "values", NULL},
        {"a", "lhs", "mata", "ina", "inputa", "left", NULL},
        {"b", "rhs", "matb", "inb", "inputb", "right", NULL},
        {"table", "weight", "embedding", "emb", "embeddings", "w", NULL},
        {"ids", "indices", "idx", "index", "tokens", "id", NULL},
        {"pred", "predictions", "yhat", "prediction", "preds", NULL},
        {"target", "targets", "label", "labels", "ytrue", "truth", NULL},
        {"hist", "histogram", "counts", "bins", NULL},
        {"taps", "coeff", "coefficients", "coeffs", "h", "fir", NULL},
    };
    return share_group(groups, sizeof(groups) / sizeof(*groups), a, b);
}

bool cg_dim_synonyms(const char *a, const char *b)
{
    static const char *const groups[][GROUP] = {
        {"batch", "b", "bs", "batchsize", "nbatch", "bsz", NULL},
        {"heads", "h", "nheads", "numheads", "nh", NULL},
        {"seq", "s", "l", "n", "seqlen", "t", "sequencelength", "slen", NULL},
        {"dim", "d", "headdim", "dhead", "hd", "dk", "headsize", NULL},
        {"hidden", "d", "h", "dim", "hiddensize", "nhidden", "dmodel", "features", "embeddim",
         "embed", "embeddingdim", "emb", "embsize", NULL},
        {"vocab", "v", "vocabsize", NULL},
        {"bins", "nbins", "numbins", "nbin", NULL},
        {"c", "channels", "cin", "ic", "inchannels", "ci", NULL},
        {"oc", "outchannels", "cout", "co", "outc", NULL},
        {"h", "height", "ih", "inh", "hin", "inheight", NULL},
        {"w", "width", "iw", "inw", "win", "inwidth", NULL},
        {"oh", "outh", "hout", "outheight", "ho", NULL},
        {"ow", "outw", "wout", "outwidth", "wo", NULL},
        {"n", "batch", "b", "batchsize", "bs", NULL},
        {"tokens", "t", "ntokens", "numtokens", NULL},
        {"len", "outlen", "outn", "nout", "outsize", NULL},
    };
    return share_group(groups, sizeof(groups) / sizeof(*groups), a, b);
}

bool cg_names_output(const char *plain)
{
    static const char *const names[] = {
        "y", "out", "output",  "o",    "c",       "result", "res",   "dst",  "ret", "dest",
        "z", "ans", "outputs", "loss", "results", "sum",    "odata", "outp", NULL};
    return one_of(plain, names);
}

bool cg_names_input(const char *plain)
{
    static const char *const names[] = {"x", "in",   "input", "inp",    "src",
                                        "a", "data", "idata", "inputs", NULL};
    return one_of(plain, names);
}

bool cg_names_total(const char *plain)
{
    static const char *const names[] = {
        "n",        "numel",       "size",          "total",    "totalsize", "count", "length",
        "len",      "numelements", "totalelements", "elements", "nelements", "nelem", "num",
        "numelems", "nelems",      "totalelems",    "elems",    NULL};
    return one_of(plain, names);
}

bool cg_names_rows(const char *plain)
{
    static const char *const names[] = {"rows",   "m",     "nrows",  "numrows",   "row",
                                        "height", "batch", "b",      "bs",        "batchsize",
                                        "outer",  "r",     "tokens", "numtokens", NULL};
    return one_of(plain, names);
}

bool cg_names_columns(const char *plain)
{
    static const char *const names[] = {"cols",
                                        "n",
                                        "ncols",
                                        "numcols",
                                        "col",
                                        "columns",
                                        "width",
                                        "d",
                                        "dim",
                                        "hidden",
                                        "features",
                                        "numfeatures",
                                        "inner",
                                        "rowlen",
                                        "rowlength",
                                        "hiddensize",
                                        "numcolumns",
                                        "c",
                                        "k",
                                        "rowsize",
                                        "ncol",
                                        "normsize",
                                        "normalizedsize",
                                        "featuresize",
                                        "featdim",
                                        "lastdim",
                                        "dimsize",
                                        NULL};
    return one_of(plain, names);
}
