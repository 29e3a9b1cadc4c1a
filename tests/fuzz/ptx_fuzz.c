/*
 * libFuzzer: any text as PTX is loaded, and every kernel of it launched with a small budget,
 * without a fault of ours. Kernels get one real buffer in each 8 bytes of their parameters.
 */
#include <rung/device.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const struct rung_plugin *rung_plugin_v0(uint32_t host_major, uint32_t host_draft);

static void host_log(const struct rung_host *host, uint32_t level, const char *message)
{
    (void)host, (void)level, (void)message;
}

static uint64_t host_now(const struct rung_host *host)
{
    (void)host;
    return 0;
}

static int64_t host_int(const struct rung_host *host, const struct rung_options *options,
                        const char *name)
{
    (void)host, (void)options;
    return !strcmp(name, "memory") ? 64 << 20 : !strcmp(name, "max_instructions") ? 20000 : 1;
}

static const char *host_string(const struct rung_host *host, const struct rung_options *options,
                               const char *name)
{
    (void)host, (void)options, (void)name;
    return "auto";
}

static const struct rung_host host = {
    .struct_size = sizeof host,
    .abi_draft = RUNG_ABI_DRAFT,
    .name = "fuzz",
    .version = "0",
    .log = host_log,
    .now_ns = host_now,
    .opt_int = host_int,
    .opt_string = host_string,
};

/* Launches the kernel of each ".entry NAME" in the text, under 200 characters of name. */
static void launch_all(const struct rung_device_ops *ops, void *self, struct rung_call *call,
                       struct rung_module *module, const char *text, uint64_t address)
{
    uint64_t params[64];

    for (size_t i = 0; i < 64; i++)
        params[i] = address;
    for (int n = 0; n < 8 && (text = strstr(text, ".entry")); n++) {
        char name[200];
        size_t k;

        text += 6 + strspn(text + 6, " \t\n");
        k = strcspn(text, " \t\n({;");
        if (k >= sizeof name)
            continue;
        memcpy(name, text, k);
        name[k] = 0;
        struct rung_kernel kernel = {.struct_size = sizeof kernel, .symbol = name};
        struct rung_counters counters = {.struct_size = sizeof counters};
        struct rung_fault fault = {.struct_size = sizeof fault};
        struct rung_launch launch = {
            .struct_size = sizeof launch,
            .shared_bytes = 256,
            .module = module,
            .kernel = &kernel,
            .grid = {2, 1, 1},
            .block = {40, 1, 1},
            .params = params,
            .param_bytes = sizeof params,
            .counters = n & 1 ? &counters : NULL,
        };
        ops->launch(self, call, &launch, &fault);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rung_factory *f = rung_plugin_v0(RUNG_ABI_MAJOR, RUNG_ABI_DRAFT)->factories[0];
    const struct rung_device_ops *ops = f->ops;
    struct rung_error error = {.struct_size = sizeof error};
    struct rung_call call = {.struct_size = sizeof call, .error = &error};
    struct rung_code code = {
        .struct_size = sizeof code, .format = RUNG_FORMAT_PTX, .bytes = data, .n_bytes = size};
    struct rung_artifact artifact = {.struct_size = sizeof artifact, .n_codes = 1, .codes = &code};
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_module *module = NULL;
    struct rung_buffer *buffer = NULL;
    char *text = malloc(size + 1);
    void *self;

    if (!text || f->create(&host, NULL, &error, &self) || f->start(self, &error))
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    if (ops->alloc(self, &call, 4096, 256, "x", &buffer))
        abort();
    int32_t status = ops->load(self, &call, &artifact, &module, &fault);
    if (!status && !module != !!fault.code[0])
        __builtin_trap();
    if (module) {
        launch_all(ops, self, &call, module, text, ops->address(self, buffer));
        ops->unload(self, module);
    }
    f->stop(self);
    f->destroy(self);
    free(text);
    return 0;
}
