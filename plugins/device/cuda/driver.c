#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const char *cuda_name(const struct cuda_driver *driver, cu_result result)
{
    const char *text = NULL;
    return driver->error_name(result, &text) == CU_OK && text ? text : "unknown CUDA error";
}

const char *cuda_text(const struct cuda_driver *driver, cu_result result)
{
    const char *text = NULL;
    return driver->error_text(result, &text) == CU_OK && text ? text : "no description";
}

int32_t cuda_fail(const struct cuda_driver *driver, struct rung_error *err, int32_t code,
                  const char *what, cu_result result)
{
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "cuda.driver");
    snprintf(err->message, sizeof err->message, "%s: %s (%s)", what, cuda_name(driver, result),
             cuda_text(driver, result));
    return code;
}

static int32_t missing(struct rung_error *err, const char *symbol, const char *what,
                       const char *detail)
{
    err->code = RUNG_EUNAVAILABLE;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    snprintf(err->message, sizeof err->message, "%s: %s", what, detail);
    return RUNG_EUNAVAILABLE;
}

/* The name of a required function that is missing, or NULL. */
static const char *find_functions(struct cuda_driver *driver)
{
    const char *lacks = NULL;
    void *found;
#define CUDA_FIND(member, symbol, params)                                                          \
    found = dlsym(driver->library, symbol);                                                        \
    memcpy(&driver->member, &found, sizeof found);
#define CUDA_NEED(member, symbol, params)                                                          \
    CUDA_FIND(member, symbol, params)                                                              \
    if (!found)                                                                                    \
        lacks = symbol;
    CUDA_FUNCTIONS(CUDA_NEED)
    CUDA_OPTIONAL(CUDA_FIND)
#undef CUDA_NEED
#undef CUDA_FIND
    return lacks;
}

int32_t cuda_driver_open(struct cuda_driver *driver, const char *file, struct rung_error *err)
{
    *driver = (struct cuda_driver){.library = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
    if (!driver->library) {
        const char *why = dlerror();
        return missing(err, "cuda.no_driver", "no NVIDIA driver here", why ? why : file);
    }
    const char *lacks = find_functions(driver);
    cu_result result = lacks ? CU_OK : driver->init(0);
    if (!lacks && result == CU_OK)
        return RUNG_OK;
    if (lacks)
        missing(err, "cuda.old_driver", "the NVIDIA driver is too old; it lacks", lacks);
    else
        cuda_fail(driver, err, RUNG_EUNAVAILABLE,
                  result == CU_NO_DEVICE ? "no GPU here" : "the NVIDIA driver does not start",
                  result);
    dlclose(driver->library);
    driver->library = NULL;
    return RUNG_EUNAVAILABLE;
}
