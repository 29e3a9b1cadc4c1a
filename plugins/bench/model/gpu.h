/*
 * A description of a GPU, read from a file such as config/gpus/h200.cfg, which says what each
 * number means. Numbers are doubles, so that they need no care about integer width.
 */
#ifndef MODEL_GPU_H
#define MODEL_GPU_H

#include <rung/plugin.h>

struct gpu {
    char name[64];
    double sm_count, clock_hz;
    double fp32_flops, fp64_flops, tf32_flops, fp16_flops;
    double dram_bytes_per_s, dram_efficiency;
    double l2_bytes, l2_bytes_per_s;
    double l1_bytes, shared_per_sm, shared_reserved;
    double warps_per_sm, blocks_per_sm, registers_per_sm;
    double schedulers, fp64_lanes, special_lanes, tensor_cycles;
    double sm_bytes_per_cycle;
    double dram_latency_s, loads_in_flight;
    double launch_s;
};

/*
 * [any] Reads a description. RUNG_ECONFIG with "file:line: what" when the file can't be read, a
 * setting is unknown, missing, not a number or not positive.
 */
int32_t gpu_read(const char *path, struct gpu *out, struct rung_error *err);

#endif
