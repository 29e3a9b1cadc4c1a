/*
 * A stand-in for libnvidia-ml.so.1. With FAKE_OLD it has only some functions, under their old
 * names. FAKE_NVML in the environment: "dead": it does not start; "pci": GPUs have no UUID.
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

static int device, started;

static int is(const char *what)
{
    const char *now = getenv("FAKE_NVML");
    return now && strcmp(now, what) == 0;
}

EXPORT result nvmlInit_v2(void)
{
    started = !is("dead");
    return started ? 0 : 9;
}

EXPORT result nvmlShutdown(void)
{
    if (!started)
        abort();
    started = 0;
    return 0;
}

EXPORT result nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    *out = &device;
    return started && !is("pci") && strcmp(uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff") == 0
               ? 0
               : 6;
}

EXPORT result nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out)
{
    *out = &device;
    return strcmp(id, "0000:01:00.0") == 0 ? 0 : 6;
}

EXPORT result nvmlDeviceGetClockInfo(void *d, int type, unsigned *mhz)
{
    *mhz = type == 1 ? 1755 : 2619;
    return d == &device && (type == 1 || type == 2) ? 0 : 2;
}

#if FAKE_OLD
EXPORT result nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *out)
{
    *out = 0x2 | 0x80;
    return d == &device ? 0 : 2;
}

EXPORT result nvmlDeviceGetPowerUsage(void *d, unsigned *milliwatt)
{
    (void)d;
    *milliwatt = 77;
    return 3; /* not supported */
}
#else
EXPORT result nvmlDeviceGetCurrentClocksEventReasons(void *d, unsigned long long *out)
{
    *out = 0x1 | 0x4 | 0x20;
    return d == &device ? 0 : 2;
}

EXPORT result nvmlDeviceGetMaxClockInfo(void *d, int type, unsigned *mhz)
{
    *mhz = 1980;
    return d == &device && type == 1 ? 0 : 2;
}

EXPORT result nvmlDeviceGetTemperature(void *d, int sensor, unsigned *celsius)
{
    *celsius = 41;
    return d == &device && sensor == 0 ? 0 : 2;
}

EXPORT result nvmlDeviceGetPowerUsage(void *d, unsigned *milliwatt)
{
    *milliwatt = 120500;
    return d == &device ? 0 : 2;
}

EXPORT result nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *milliwatt)
{
    *milliwatt = 700000;
    return d == &device ? 0 : 2;
}

EXPORT result nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, void *list)
{
    if (d != &device || *n < 3)
        return 7;
    memset(list, 0, (size_t)3 * 24);
    *n = 3;
    return 0;
}
#endif
