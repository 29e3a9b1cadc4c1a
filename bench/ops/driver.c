/*
 * Speed of the `ops` reference, values and bounds together: loads the plugin, evaluates one graph a
 * line of the table, and prints the best rate of several runs. The rate counts the operations of
 * the task (work()), not those of the bounds. Usage: driver PLUGIN THREADS...
 */
#include <rung/reference.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 3, MAX_TENSORS = 3, MAX_BLOCKS = 65536 };

struct bench {
    const char *what, *graph;
    const char *shapes[MAX_TENSORS]; /* inputs, then the output */
    int n_inputs;
};

static const struct bench benches[] = {
    {"matmul", "y = matmul(x, w)", {"1024,1024", "1024,1024", "1024,1024"}, 2},
    {"matmul", "y = matmul(x, w)", {"2048,2048", "2048,2048", "2048,2048"}, 2},
    {"matmul, rows", "y = matmul(x, w)", {"4,8192", "8192,2048", "4,2048"}, 2},
    {"matmul, transposed",
     "y = matmul(x, w, transpose_b=1)",
     {"1024,1024", "1024,1024", "1024,1024"},
     2},
    {"bmm", "y = bmm(x, w)", {"64,128,256", "64,256,128", "64,128,128"}, 2},
    {"conv2d 11x11/4",
     "y = conv2d(x, w, stride=4, pad=2)",
     {"8,3,224,224", "96,3,11,11", "8,96,55,55"},
     2},
    {"conv2d 3x3", "y = conv2d(x, w, pad=1)", {"4,64,56,56", "128,64,3,3", "4,128,56,56"}, 2},
    {"conv2d depthwise",
     "y = conv2d(x, w, pad=1, groups=64)",
     {"4,64,112,112", "64,1,3,3", "4,64,112,112"},
     2},
    {"conv3d 3x3x3", "y = conv3d(x, w)", {"2,16,16,32,32", "32,16,3,3,3", "2,32,14,30,30"}, 2},
    {"conv_transpose2d/2",
     "y = conv_transpose2d(x, w, stride=2, pad=1, output_pad=1)",
     {"4,64,32,32", "64,64,3,3", "4,64,64,64"},
     2},
    {"conv_transpose3d/2",
     "y = conv_transpose3d(x, w, stride=2)",
     {"2,32,8,16,16", "32,16,3,3,3", "2,16,17,33,33"},
     2},
    {"conv2d, relu, maxpool",
     "y = maxpool2d(relu(conv2d(x, w, stride=4, pad=2)), kernel=3, stride=2)",
     {"8,3,224,224", "96,3,11,11", "8,96,27,27"},
     2},
    {"gelu", "y = gelu(x)", {"1024,4096", "1024,4096"}, 1},
    {"softmax", "y = softmax(x, axis=1)", {"1024,4096", "1024,4096"}, 1},
    {"layernorm", "y = layernorm(x)", {"1024,4096", "1024,4096"}, 1},
    {"avgpool2d 3x3", "y = avgpool2d(x, 3, 1, 1)", {"8,64,56,56", "8,64,56,56"}, 1},
};

/* ---- a host of the little that the plugin asks for ---- */

struct rung_arena {
    void *blocks[MAX_BLOCKS];
    int n;
};

static int64_t threads;

static void *host_alloc(const struct rung_host *host, struct rung_arena *arena, uint64_t size,
                        uint64_t align)
{
    (void)host, (void)align;
    void *block = arena->n < MAX_BLOCKS ? calloc(1, size) : NULL;
    if (block)
        arena->blocks[arena->n++] = block;
    return block;
}

static int64_t host_opt_int(const struct rung_host *host, const struct rung_options *options,
                            const char *name)
{
    (void)host, (void)options;
    return strcmp(name, "threads") ? 0 : threads;
}

static const struct rung_host host = {.struct_size = sizeof host,
                                      .abi_major = RUNG_ABI_MAJOR,
                                      .abi_draft = RUNG_ABI_DRAFT,
                                      .name = "bench",
                                      .alloc = host_alloc,
                                      .opt_int = host_opt_int};

/* ---- tasks ---- */

struct task {
    struct rung_task task;
    struct rung_tensor_spec specs[MAX_TENSORS];
    struct rung_tensor_view views[MAX_TENSORS];
    char text[MAX_TENSORS][64];
};

static void add_tensor(struct task *t, const char *name, const char *shape, int output)
{
    uint32_t i = t->task.n_tensors++;
    struct rung_tensor_spec *s = &t->specs[i];
    struct rung_tensor_view *v = &t->views[i];
    *s = (struct rung_tensor_spec){.struct_size = sizeof *s,
                                   .role = output ? RUNG_ROLE_OUTPUT : RUNG_ROLE_INPUT,
                                   .dtype = RUNG_F32,
                                   .name = name,
                                   .alignment = 256};
    snprintf(t->text[i], sizeof t->text[i], "%s", shape);
    char *rest = t->text[i];
    for (char *part; (part = strsep(&rest, ","));)
        s->shape[s->n_dims++] = part;
    *v =
        (struct rung_tensor_view){.struct_size = sizeof *v, .dtype = RUNG_F32, .n_dims = s->n_dims};
    int64_t n = 1;
    for (uint32_t d = s->n_dims; d-- > 0; n *= v->dims[d]) {
        v->strides[d] = n;
        v->dims[d] = strtoll(s->shape[d], NULL, 10);
    }
    float *data = output ? NULL : malloc((size_t)n * sizeof *data);
    uint64_t state = 1;
    for (int64_t k = 0; data && k < n; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[k] = (float)(state >> 40) * 0x1p-23f - 1;
    }
    v->data = data;
}

static void make_task(struct task *t, const struct bench *b)
{
    memset(t, 0, sizeof *t);
    t->task = (struct rung_task){.struct_size = sizeof t->task,
                                 .precision = RUNG_PRECISION_FP32,
                                 .name = "bench",
                                 .tensors = t->specs,
                                 .reference = "ops",
                                 .graph = b->graph};
    add_tensor(t, "x", b->shapes[0], 0);
    if (b->n_inputs > 1)
        add_tensor(t, "w", b->shapes[1], 0);
    add_tensor(t, "y", b->shapes[b->n_inputs], 1);
}

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct seconds {
    double wall, cpu; /* cpu: of all threads; it stays the same where others use the machine */
};

/* The fastest of some evaluations; the work of one goes to *work. */
static struct seconds measure(const struct rung_factory *factory, struct task *t,
                              struct rung_work *work)
{
    const struct rung_reference_ops *ops = factory->ops;
    struct rung_error error = {.struct_size = sizeof error};
    static struct rung_arena arena;
    struct rung_call call = {.struct_size = sizeof call, .arena = &arena, .error = &error};
    struct rung_reference_output output = {.struct_size = sizeof output};
    static const int64_t no_dims[1];
    struct rung_reference_request request = {
        .struct_size = sizeof request, .task = &t->task, .dims = no_dims, .tensors = t->views};
    void *self;
    struct seconds best = {1e30, 1e30};
    int32_t status = factory->create(&host, NULL, &error, &self);
    *work = (struct rung_work){.struct_size = sizeof *work};
    status = status ? status : ops->work(self, &call, &t->task, no_dims, work);
    for (int i = 0; i < REPEATS && !status; i++) {
        double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        status = ops->evaluate(self, &call, &request, &output, 1);
        wall = now(CLOCK_MONOTONIC) - wall;
        cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        best.wall = wall < best.wall ? wall : best.wall;
        best.cpu = cpu < best.cpu ? cpu : best.cpu;
    }
    if (status) {
        fprintf(stderr, "%s: %s\n", t->task.graph, error.message);
        exit(1);
    }
    factory->destroy(self);
    while (arena.n > 0)
        free(arena.blocks[--arena.n]);
    return best;
}

static const struct rung_factory *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct rung_plugin *(*entry)(uint32_t, uint32_t);
    *(void **)&entry = library ? dlsym(library, "rung_plugin_v0") : NULL;
    const struct rung_plugin *plugin = entry ? entry(RUNG_ABI_MAJOR, RUNG_ABI_DRAFT) : NULL;
    if (plugin)
        return plugin->factories[0];
    fprintf(stderr, "%s: %s\n", path, library ? "no plugin of this ABI" : dlerror());
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s PLUGIN THREADS...\n", argv[0]);
        return 2;
    }
    const struct rung_factory *factory = load(argv[1]);
    printf("%-22s %-30s %9s", "operator", "shapes", "MFLOP");
    for (int a = 2; a < argc; a++)
        printf("  %2s threads: GFLOP/s, a core", argv[a]);
    printf("\n");
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) {
        const struct bench *b = &benches[i];
        struct task t;
        make_task(&t, b);
        for (int a = 2; a < argc; a++) {
            struct rung_work work;
            threads = strtoll(argv[a], NULL, 10);
            struct seconds took = measure(factory, &t, &work);
            if (a == 2)
                printf("%-22s %-14s %-15s %9.1f", b->what, b->shapes[0],
                       b->n_inputs > 1 ? b->shapes[1] : "", work.flops / 1e6);
            printf(" %19.2f %8.2f", work.flops / took.wall / 1e9, work.flops / took.cpu / 1e9);
            fflush(stdout);
        }
        printf("\n");
        for (int k = 0; k < b->n_inputs; k++)
            free((void *)t.views[k].data);
    }
    return 0;
}
