/*
 * The part of NVML, the driver's management library, that the device uses, found in
 * libnvidia-ml.so.1 at run time with prototypes of our own: nvml.h is not part of the toolkit.
 * Names and numbers are those of the NVML API reference. One thread at a time.
 */
#ifndef CUDA_NVML_H
#define CUDA_NVML_H

#include <stdint.h>

typedef int nvml_result; /* 0: success */
typedef struct nvml_device *nvml_device;

enum { NVML_SIZE = 7 /* NVML_ERROR_INSUFFICIENT_SIZE */ };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 }; /* nvmlClockType_t */
enum { NVML_SENSOR_GPU = 0 };                      /* nvmlTemperatureSensors_t */

/* nvmlClocksEventReasons */
enum {
    NVML_REASON_APPLICATION_CLOCKS = 0x2,
    NVML_REASON_POWER_CAP = 0x4,
    NVML_REASON_HW_SLOWDOWN = 0x8,
    NVML_REASON_SYNC_BOOST = 0x10,
    NVML_REASON_SW_THERMAL = 0x20,
    NVML_REASON_HW_THERMAL = 0x40,
    NVML_REASON_HW_POWER_BRAKE = 0x80,
    NVML_REASON_DISPLAY_CLOCK = 0x100,
};

/* X(member, parameters, names from the newest to the oldest); all may be missing. */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, (void), "nvmlInit_v2", "nvmlInit")                                                     \
    X(shutdown, (void), "nvmlShutdown", NULL)                                                      \
    X(by_uuid, (const char *, nvml_device *), "nvmlDeviceGetHandleByUUID", NULL)                   \
    X(by_pci, (const char *, nvml_device *), "nvmlDeviceGetHandleByPciBusId_v2",                   \
      "nvmlDeviceGetHandleByPciBusId")                                                             \
    X(clock, (nvml_device, int type, unsigned *mhz), "nvmlDeviceGetClockInfo", NULL)               \
    X(max_clock, (nvml_device, int type, unsigned *mhz), "nvmlDeviceGetMaxClockInfo", NULL)        \
    X(temperature, (nvml_device, int sensor, unsigned *celsius), "nvmlDeviceGetTemperature", NULL) \
    X(power, (nvml_device, unsigned *milliwatt), "nvmlDeviceGetPowerUsage", NULL)                  \
    X(power_limit, (nvml_device, unsigned *milliwatt), "nvmlDeviceGetEnforcedPowerLimit", NULL)    \
    X(reasons, (nvml_device, unsigned long long *), "nvmlDeviceGetCurrentClocksEventReasons",      \
      "nvmlDeviceGetCurrentClocksThrottleReasons")                                                 \
    X(processes, (nvml_device, unsigned *n, void *list),                                           \
      "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")

struct nvml {
    int tried;
    void *library;
    nvml_device device;                 /* NULL: the library does not answer for this GPU */
    unsigned sm_mhz_max, milliwatt_cap; /* as they were first; 0: not known */
#define NVML_MEMBER(member, params, newest, older) nvml_result(*member) params;
    NVML_FUNCTIONS(NVML_MEMBER)
#undef NVML_MEMBER
};

/*
 * Opens the library and finds the GPU by "GPU-...", else by PCI bus id ("" when not known). The
 * first call only does this; device stays NULL when anything is missing.
 */
void nvml_open(struct nvml *nvml, const char *uuid, const char *pci);
void nvml_close(struct nvml *nvml);

#endif
