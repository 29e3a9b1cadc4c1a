#include "nvml.h"

#include <dlfcn.h>
#include <string.h>

static void *find(void *library, const char *newest, const char *older)
{
    void *found = dlsym(library, newest);
    return found || !older ? found : dlsym(library, older);
}

static void find_functions(struct nvml *nvml)
{
    void *found;
#define NVML_FIND(member, params, newest, older)                                                   \
    found = find(nvml->library, newest, older);                                                    \
    memcpy(&nvml->member, &found, sizeof found);
    NVML_FUNCTIONS(NVML_FIND)
#undef NVML_FIND
}

void nvml_open(struct nvml *nvml, const char *uuid, const char *pci)
{
    if (nvml->tried)
        return;
    nvml->tried = 1;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        return;
    find_functions(nvml);
    if (!nvml->init || nvml->init() != 0) {
        nvml->shutdown = NULL; /* nothing to shut down */
        return;
    }
    if (nvml->by_uuid && nvml->by_uuid(uuid, &nvml->device) == 0)
        return;
    if (!nvml->by_pci || !*pci || nvml->by_pci(pci, &nvml->device) != 0)
        nvml->device = NULL;
}

void nvml_close(struct nvml *nvml)
{
    if (nvml->shutdown)
        nvml->shutdown();
    if (nvml->library)
        dlclose(nvml->library);
    *nvml = (struct nvml){0};
}
