/* State of the GPU at this moment, as the driver's management library tells it. */
#include "cuda.h"

enum { MOST_PROCESSES = 128 };

/* nvmlProcessInfo_t of the second and third version of the function. */
struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

static uint32_t throttle_of(const struct nvml *n)
{
    static const struct {
        unsigned long long reasons;
        uint32_t throttle;
    } meaning[] = {
        {NVML_REASON_POWER_CAP, RUNG_THROTTLE_POWER},
        {NVML_REASON_SW_THERMAL | NVML_REASON_HW_THERMAL, RUNG_THROTTLE_THERMAL},
        {NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_POWER_BRAKE, RUNG_THROTTLE_HARDWARE},
        {NVML_REASON_APPLICATION_CLOCKS | NVML_REASON_SYNC_BOOST | NVML_REASON_DISPLAY_CLOCK,
         RUNG_THROTTLE_SETTING},
    };
    unsigned long long reasons = 0;
    uint32_t throttle = 0;
    if (!n->reasons || n->reasons(n->device, &reasons) != 0)
        return 0;
    for (unsigned i = 0; i < sizeof meaning / sizeof *meaning; i++)
        if (reasons & meaning[i].reasons)
            throttle |= meaning[i].throttle;
    return throttle;
}

/*
 * All but one: this process has a context. Numbers of processes are no help in a container, which
 * sees others than the driver does.
 */
static uint32_t others(const struct nvml *n)
{
    struct process list[MOST_PROCESSES];
    unsigned count = MOST_PROCESSES;
    if (!n->processes)
        return 0;
    nvml_result result = n->processes(n->device, &count, list);
    return (result == 0 || result == NVML_SIZE) && count ? count - 1 : 0;
}

static uint32_t clock_of(nvml_result (*read)(nvml_device, int, unsigned *), nvml_device device,
                         int type)
{
    unsigned mhz = 0;
    return read && read(device, type, &mhz) == 0 ? mhz : 0;
}

static uint32_t power_of(nvml_result (*read)(nvml_device, unsigned *), nvml_device device)
{
    unsigned milliwatt = 0;
    return read && read(device, &milliwatt) == 0 ? milliwatt : 0;
}

/* What changes only when somebody sets it is read once: each answer takes its time. */
static void open_library(struct cuda *self)
{
    struct nvml *n = &self->nvml;
    char pci[32] = "";
    if (self->driver.device_pci && self->driver.device_pci(pci, sizeof pci, self->device) != CU_OK)
        pci[0] = 0;
    nvml_open(n, self->id, pci);
    if (!n->device)
        return;
    n->sm_mhz_max = clock_of(n->max_clock, n->device, NVML_CLOCK_SM);
    n->milliwatt_cap = power_of(n->power_limit, n->device);
}

int32_t cuda_condition(void *ptr, struct rung_call *call, struct rung_device_condition *out)
{
    struct cuda *self = ptr;
    struct nvml *n = &self->nvml;
    (void)call;
    *out = (struct rung_device_condition){.struct_size = out->struct_size};
    if (!n->tried)
        open_library(self);
    if (!n->device)
        return RUNG_OK;
    out->known = 1;
    out->throttle = throttle_of(n);
    out->sm_mhz = clock_of(n->clock, n->device, NVML_CLOCK_SM);
    out->sm_mhz_max = n->sm_mhz_max;
    out->memory_mhz = clock_of(n->clock, n->device, NVML_CLOCK_MEMORY);
    out->celsius = clock_of(n->temperature, n->device, NVML_SENSOR_GPU);
    out->milliwatt = power_of(n->power, n->device);
    out->milliwatt_cap = n->milliwatt_cap;
    out->other_processes = others(n);
    return RUNG_OK;
}
