/*
 * A libcublasLt that computes on the CPU, column-major as the real one. It proposes three
 * algorithms: the first can't run, the second is slow, the third is what should be kept. What it
 * was asked is in fake_seen, which the test finds by name.
 */
#include "bench/fake_cublaslt.h"
#include "../../plugins/bench/cublas/api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_seen fake_seen;

struct lt_matmul_desc {
    int compute, scale;
    int32_t transa, transb;
    uint32_t epilogue;
    uint64_t bias;
};
struct lt_layout_desc {
    int type;
    int64_t rows, cols, ld, stride;
    int32_t batch;
};
struct lt_preference {
    uint64_t workspace;
};

int cublasLtCreate(lt_handle *out)
{
    *out = (lt_handle)(uintptr_t)1;
    if (fake_seen.start_fails)
        return LT_NOT_INITIALIZED;
    fake_seen.handles++;
    return LT_SUCCESS;
}

int cublasLtDestroy(lt_handle handle)
{
    (void)handle;
    fake_seen.handles--;
    return LT_SUCCESS;
}

const char *cublasLtGetStatusString(int status)
{
    return status == LT_NOT_INITIALIZED ? "not initialized" : "not supported";
}

int cublasLtMatmulDescCreate(lt_desc *out, int compute, int scale)
{
    *out = calloc(1, sizeof **out);
    (*out)->compute = compute;
    (*out)->scale = scale;
    (*out)->epilogue = LT_EPILOGUE_DEFAULT;
    fake_seen.live++;
    return LT_SUCCESS;
}

int cublasLtMatmulDescDestroy(lt_desc desc)
{
    free(desc);
    fake_seen.live--;
    return LT_SUCCESS;
}

int cublasLtMatmulDescSetAttribute(lt_desc desc, int what, const void *value, size_t n)
{
    void *slot = what == LT_DESC_TRANSA         ? (void *)&desc->transa
                 : what == LT_DESC_TRANSB       ? (void *)&desc->transb
                 : what == LT_DESC_EPILOGUE     ? (void *)&desc->epilogue
                 : what == LT_DESC_BIAS_POINTER ? (void *)&desc->bias
                                                : NULL;
    if (!slot || n != (what == LT_DESC_BIAS_POINTER ? 8 : 4))
        return 7;
    memcpy(slot, value, n);
    return LT_SUCCESS;
}

int cublasLtMatrixLayoutCreate(lt_layout *out, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    *out = calloc(1, sizeof **out);
    **out = (struct lt_layout_desc){type, (int64_t)rows, (int64_t)cols, ld, 0, 1};
    fake_seen.live++;
    return ld >= (int64_t)rows ? LT_SUCCESS : 7;
}

int cublasLtMatrixLayoutDestroy(lt_layout layout)
{
    free(layout);
    fake_seen.live--;
    return LT_SUCCESS;
}

int cublasLtMatrixLayoutSetAttribute(lt_layout layout, int what, const void *value, size_t n)
{
    if (what == LT_LAYOUT_BATCH_COUNT && n == sizeof layout->batch)
        memcpy(&layout->batch, value, n);
    else if (what == LT_LAYOUT_BATCH_STRIDE && n == sizeof layout->stride)
        memcpy(&layout->stride, value, n);
    else
        return 7;
    return LT_SUCCESS;
}

int cublasLtMatmulPreferenceCreate(lt_pref *out)
{
    *out = calloc(1, sizeof **out);
    fake_seen.live++;
    return LT_SUCCESS;
}

int cublasLtMatmulPreferenceDestroy(lt_pref pref)
{
    free(pref);
    fake_seen.live--;
    return LT_SUCCESS;
}

int cublasLtMatmulPreferenceSetAttribute(lt_pref pref, int what, const void *value, size_t n)
{
    uint32_t bytes;
    if (what == LT_PREF_MAX_WORKSPACE && n == sizeof pref->workspace) {
        memcpy(&pref->workspace, value, n);
        return LT_SUCCESS;
    }
    if (what < LT_PREF_ALIGNMENT_A || what > LT_PREF_ALIGNMENT_D || n != sizeof bytes)
        return 7;
    memcpy(&bytes, value, sizeof bytes);
    fake_seen.alignment[what - LT_PREF_ALIGNMENT_A] = bytes;
    return LT_SUCCESS;
}

int cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b,
                                   lt_layout c, lt_layout d, lt_pref pref, int most,
                                   struct lt_result *out, int *n)
{
    (void)handle, (void)a, (void)b, (void)c, (void)d;
    if (desc->epilogue & LT_EPILOGUE_BIAS && !desc->bias)
        return LT_NOT_SUPPORTED;
    *n = 0;
    for (int i = 0; i < 3 && i < most; i++)
        out[(*n)++] = (struct lt_result){.algo = {{(uint64_t)i}},
                                         .workspace = i == 2 ? pref->workspace / 4 : 0};
    return LT_SUCCESS;
}

/* ---- Arithmetic ---- */

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31;
    double v = e ? ldexp(1024 + (h & 1023), e - 25) : ldexp(h & 1023, -24);
    return h & 0x8000 ? -v : v;
}

static uint16_t half_of(double v)
{
    int e;
    double m = frexp(fabs(v), &e);
    uint16_t sign = v < 0 ? 0x8000 : 0;
    if (v == 0)
        return sign;
    unsigned fraction = (unsigned)nearbyint((m * 2 - 1) * 1024);
    return (uint16_t)(sign + ((unsigned)(e + 14) << 10) + fraction);
}

static double get(const void *at, int type, int64_t i)
{
    uint32_t bits;
    float f;
    if (type == LT_R_32F)
        return ((const float *)at)[i];
    if (type == LT_R_64F)
        return ((const double *)at)[i];
    if (type == LT_R_16F)
        return half_value(((const uint16_t *)at)[i]);
    bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void put(void *at, int type, int64_t i, double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == LT_R_32F)
        ((float *)at)[i] = f;
    else if (type == LT_R_64F)
        ((double *)at)[i] = v;
    else if (type == LT_R_16F)
        ((uint16_t *)at)[i] = half_of(v);
    else
        ((uint16_t *)at)[i] = (uint16_t)((bits + 0x8000) >> 16);
}

static double finish(const lt_desc desc, double v, int64_t row, int type)
{
    if (desc->epilogue & LT_EPILOGUE_BIAS)
        v += get((const void *)(uintptr_t)desc->bias, type, row);
    if (desc->epilogue & LT_EPILOGUE_RELU)
        v = v > 0 ? v : 0;
    if (desc->epilogue & LT_EPILOGUE_GELU)
        v = v / 2 * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    return v;
}

int cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout la,
                   const void *b, lt_layout lb, const void *beta, const void *c, lt_layout lc,
                   void *d, lt_layout ld, const struct lt_algo *algo, void *workspace, size_t bytes,
                   void *stream)
{
    double one = desc->scale == LT_R_64F ? *(const double *)alpha : *(const float *)alpha;
    double zero = desc->scale == LT_R_64F ? *(const double *)beta : *(const float *)beta;
    int64_t k = desc->transa ? la->rows : la->cols;
    (void)handle, (void)stream, (void)c, (void)lc;
    if (algo->data[0] == 0)
        return LT_NOT_SUPPORTED;
    if (algo->data[0] == 1)
        usleep(3000);
    if (bytes && (!workspace || (uintptr_t)workspace % 256))
        return 7;
    fake_seen.compute = desc->compute;
    fake_seen.algorithm = (int)algo->data[0];
    fake_seen.calls++;
    for (int64_t batch = 0; batch < ld->batch; batch++)
        for (int64_t j = 0; j < ld->cols; j++)
            for (int64_t i = 0; i < ld->rows; i++) {
                double sum = 0;
                for (int64_t p = 0; p < k; p++) {
                    int64_t at_a = desc->transa ? p + i * la->ld : i + p * la->ld;
                    int64_t at_b = desc->transb ? j + p * lb->ld : p + j * lb->ld;
                    sum += get(a, la->type, at_a + batch * la->stride) *
                           get(b, lb->type, at_b + batch * lb->stride);
                }
                sum = one * sum + zero;
                put(d, ld->type, i + j * ld->ld + batch * ld->stride,
                    finish(desc, sum, i, ld->type));
            }
    return LT_SUCCESS;
}
