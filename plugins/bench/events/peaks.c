/*
 * Peak rates of the device: from a description whose name is the device's, else from what the
 * driver says and a table by compute capability. Where sources differ the higher rate is taken:
 * what follows must never be more than an honest kernel needs.
 */
#include "events.h"

#include <math.h>
#include <string.h>

/*
 * Operations a cycle an SM, fma = 2. CUDA C++ programming guide, arithmetic throughput (fp32, fp64,
 * integer lanes); tensor units: dense fp16 rates of the architecture white papers over SMs and
 * boost clock (V100 125, A100 312, RTX 4090 330, H100 989, B200 2250, RTX 5090 419 TFLOP/s).
 */
static const struct unit {
    uint32_t major, minor; /* least minor that the row is for */
    double fp32, fp64, half;
} units[] = {
    {12, 0, 256, 4, 2048},  {10, 0, 256, 256, 8192}, {9, 0, 256, 256, 4096}, {8, 6, 256, 4, 2048},
    {8, 0, 128, 128, 2048}, {7, 5, 128, 4, 1024},    {7, 0, 128, 64, 1024},  {6, 1, 256, 8, 256},
    {6, 0, 128, 64, 256},   {5, 0, 256, 8, 256},
};

static const struct unit *unit_of(const struct rung_device_info *info)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].major == info->compute_major && units[i].minor <= info->compute_minor)
            return &units[i];
    return NULL;
}

static double pick(uint32_t precision, double fp64, double fp32, double tf32, double half)
{
    switch (precision) {
    case RUNG_PRECISION_FP64:
        return fp64;
    case RUNG_PRECISION_TF32:
        return tf32;
    case RUNG_PRECISION_FP16:
    case RUNG_PRECISION_BF16:
        return half;
    case RUNG_PRECISION_FP32:
        return fp32;
    default:
        return 0; /* integers: no one rate */
    }
}

static struct events_peaks peaks_by_driver(const struct rung_device_info *info, uint32_t precision)
{
    const struct unit *unit = unit_of(info);
    double cycles = (double)info->sm_count * info->sm_khz * 1e3;
    struct events_peaks p = {.l2_bytes = info->l2_bytes};
    /* Two transfers a clock. */
    p.bytes_per_s = (double)info->memory_khz * 1e3 * 2 * info->memory_bus_bits / 8;
    if (unit)
        p.flops = cycles * pick(precision, unit->fp64, unit->fp32, unit->half / 2, unit->half);
    return p;
}

struct events_peaks events_peaks(const struct events_timer *self,
                                 const struct rung_session *session)
{
    const struct gpu *gpu = &self->gpu;
    const struct rung_device_info *info = session->device;
    uint32_t precision = session->task->precision;
    if (strcmp(info->name, gpu->name) != 0)
        return peaks_by_driver(info, precision);
    return (struct events_peaks){
        .bytes_per_s = gpu->dram_bytes_per_s,
        .l2_bytes = fmax(gpu->l2_bytes, info->l2_bytes),
        .flops =
            pick(precision, gpu->fp64_flops, gpu->fp32_flops, gpu->tf32_flops, gpu->fp16_flops),
    };
}

/*
 * Only the traffic: an honest kernel may do with far fewer operations than the formula of the task
 * (Winograd, a triangle, a product that a later sum makes a vector), and fp32 can be had from
 * several products of tensor units. What fits L2 need not reach DRAM before the last event.
 */
double events_floor(const struct events_peaks *peaks, const struct rung_work *work)
{
    if (!(peaks->bytes_per_s > 0))
        return 0;
    return 1e9 * fmax(0, work->min_bytes - peaks->l2_bytes) / peaks->bytes_per_s;
}

double events_roofline(const struct events_peaks *peaks, const struct rung_work *work)
{
    double traffic = peaks->bytes_per_s > 0 ? work->min_bytes / peaks->bytes_per_s : 0;
    double operations = peaks->flops > 0 ? work->flops / peaks->flops : 0;
    return 1e9 * fmax(traffic, operations);
}
