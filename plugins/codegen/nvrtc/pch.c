/* Precompiled headers: see pch.h. */
#include "pch.h"
#include "gate.h"
#include "program.h"
#include "ptxas.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_HEAD = 2048, MAX_MADE = 64 };
#define MAX_BYTES ((size_t)512 << 20) /* of all that are kept */
/* Copying larger ones ahead would cost more memory than it is worth time. */
#define MAX_STAGED ((size_t)32 << 20)

/* ---- Names ---------------------------------------------------------------------------------- */

/* What must agree between making and using: options, the source's name, its head. */
static void write_key(struct nv_buffer *key, const struct nv_request *request,
                      const struct nv_options *options, const char *head)
{
    for (int i = 0; i < options->n; i++)
        nv_printf(key, "%s\n", options->list[i]);
    nv_printf(key, "%s\n%s", request->files[request->entry].path, head);
}

static int find(const struct nv_pch *pch, const char *key)
{
    for (int i = 0; i < NV_PCH_KEPT; i++)
        if (pch->kept[i].key && !strcmp(pch->kept[i].key, key))
            return i;
    return -1;
}

static void unstage(struct nv_pch *pch)
{
    if (pch->staged)
        munmap(pch->staged, pch->n_staged);
    pch->staged = NULL;
    pch->staged_file = -1;
}

/* The next source probably begins like the last. Nothing is read here: the child does that. */
static void stage(struct nv_pch *pch, const struct nv_pch_kept *kept)
{
    if (pch->staged && pch->staged_file == kept->file)
        return;
    unstage(pch);
    if (kept->file < 0 || kept->bytes > MAX_STAGED)
        return;
    void *at = mmap(NULL, kept->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, kept->file, 0);
    if (at == MAP_FAILED)
        return;
    pch->staged = at;
    pch->n_staged = kept->bytes;
    pch->staged_file = kept->file;
}

static void let_go(struct nv_pch *pch, struct nv_pch_kept *kept)
{
    free(kept->key);
    if (kept->file >= 0 && kept->file == pch->staged_file)
        unstage(pch);
    if (kept->file >= 0)
        close(kept->file);
    *kept = (struct nv_pch_kept){.file = -1};
}

/* Room for one more: a free place, or that of the one unused for longest. */
static struct nv_pch_kept *make_room(struct nv_pch *pch, size_t bytes)
{
    for (;;) {
        struct nv_pch_kept *oldest = NULL, *empty = NULL;
        size_t sum = bytes;
        for (int i = 0; i < NV_PCH_KEPT; i++) {
            struct nv_pch_kept *k = &pch->kept[i];
            sum += k->bytes;
            if (!k->key)
                empty = k;
            else if (!oldest || k->used < oldest->used)
                oldest = k;
        }
        if (empty && (sum <= MAX_BYTES || !oldest))
            return empty;
        let_go(pch, oldest);
    }
}

/* ---- Making --------------------------------------------------------------------------------- */

/* A copy of the file as a descriptor for reading, of bytes that can't change; -1 when it can't be.
 */
static int seal(const char *path, size_t *bytes)
{
    char own[64];
    struct stat st;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = memfd_create("rung-pch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int file = -1;
    bool ok = from >= 0 && to >= 0 && fstat(from, &st) == 0 && st.st_size > 0 &&
              (size_t)st.st_size <= MAX_BYTES;
    off_t left = ok ? st.st_size : 0;
    while (ok && left) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);
        ok = n > 0;
        left -= ok ? n : 0;
    }
    if (ok &&
        fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0) {
        snprintf(own, sizeof(own), "/proc/self/fd/%d", to);
        file = open(own, O_RDONLY | O_CLOEXEC);
        *bytes = (size_t)st.st_size;
    }
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return file;
}

/* Words about the headers themselves would be missing later. */
static bool is_silent(const struct nv_api *api, nv_program program)
{
    size_t size = 0;
    bool silent = false;
    char *log = api->log_size(program, &size) == NV_SUCCESS ? calloc(size + 1, 1) : NULL;
    if (log && api->log(program, log) == NV_SUCCESS) {
        nv_ptxas_strip(log);
        silent = !log[strspn(log, "\n")];
    }
    free(log);
    return silent;
}

/* Compiles a head with `create` among the options; true when NVRTC has made the file. */
static bool compile_head(const struct nv_tools *tools, const struct nv_request *head,
                         struct nv_options *options, bool std, const char *create)
{
    const struct nv_api *api = &tools->api;
    const struct nv_file *entry = &head->files[0];
    struct nv_includes inc = {0};
    nv_program program = NULL;
    bool made = false;
    nv_includes_collect(&tools->store, head, std, &inc);
    options->list[options->n++] = create;
    options->list[options->n++] = "--pch-messages=false";
    if (!inc.failed && api->create(&program, entry->text.ptr, entry->path, inc.n, inc.texts,
                                   inc.names) == NV_SUCCESS) {
        made = api->compile(program, options->n, options->list) == NV_SUCCESS &&
               api->pch_status(program) == NV_SUCCESS && is_silent(api, program);
        api->destroy(&program);
    }
    options->n -= 2;
    nv_includes_free(&inc);
    return made;
}

/* Where NVRTC may write the file, best first; the last is there at all times. */
static const char *place(int i)
{
    const char *temp = getenv("TMPDIR");
    return i == 0 ? "/dev/shm" : i == 1 && temp && temp[0] ? temp : "/tmp";
}
enum { PLACES = 3 };
#define FOLDER "rung-pch-"

/* A folder that only this user can enter, named after this process; NVRTC makes its file by a name.
 */
static bool make_folder(char *folder, size_t size)
{
    for (int i = 0; i < PLACES; i++) {
        int n = snprintf(folder, size, "%s/" FOLDER "%ld-XXXXXX", place(i), (long)getpid());
        if (n > 0 && (size_t)n < size && mkdtemp(folder))
            return true;
    }
    return false;
}

/* Removes what helpers left that were killed while they made one. */
static void sweep(void)
{
    char pattern[512], path[600];
    for (int i = 0; i < PLACES; i++) {
        glob_t found;
        snprintf(pattern, sizeof(pattern), "%s/" FOLDER "*-??????", place(i));
        if (glob(pattern, 0, NULL, &found))
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++) {
            long pid = strtol(strrchr(found.gl_pathv[k], '/') + strlen("/" FOLDER), NULL, 10);
            if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
                continue;
            snprintf(path, sizeof(path), "%s/pch", found.gl_pathv[k]);
            unlink(path);
            rmdir(found.gl_pathv[k]);
        }
        globfree(&found);
    }
}

static int make(const struct nv_tools *tools, const struct nv_request *request,
                struct nv_options *options, bool std, const char *head, size_t *bytes)
{
    char folder[512], path[560], create[600];
    struct nv_file file = {request->files[request->entry].path, {head, strlen(head)}};
    struct nv_request q = {.arch = request->arch, .n_files = 1, .files = &file};
    if (!make_folder(folder, sizeof(folder)))
        return -1;
    snprintf(path, sizeof(path), "%s/pch", folder);
    snprintf(create, sizeof(create), "--create-pch=%s", path);
    int sealed = compile_head(tools, &q, options, std, create) ? seal(path, bytes) : -1;
    unlink(path);
    rmdir(folder);
    return sealed;
}

/* ---- The three calls ------------------------------------------------------------------------ */

void nv_pch_init(struct nv_tools *tools, char why[100])
{
    struct nv_pch *pch = &tools->pch;
    const char *off = getenv("NVRTC_DISABLE_PCH");
    pch->scratch = pch->staged_file = -1;
    for (int i = 0; i < NV_PCH_KEPT; i++)
        pch->kept[i].file = -1;
    if (!tools->api.pch_status || tools->api.pch_heap(&pch->heap) != NV_SUCCESS || !pch->heap)
        snprintf(why, 100, "no precompiled headers: %s has none", tools->compiler);
    else if (off)
        snprintf(why, 100, "no precompiled headers: NVRTC_DISABLE_PCH is set");
    else if (!nv_gate_possible())
        snprintf(why, 100, "no precompiled headers: no seccomp filters here");
    else
        pch->possible = true;
    if (pch->possible)
        sweep();
    if (pch->possible)
        snprintf(why, 100, "precompiled headers are made for #include lines once seen");
}

/* In one line of the debug log. */
static void tell(struct nv_buffer *said, const struct nv_request *request, bool made,
                 const char *head)
{
    nv_printf(said, "%s precompiled header for %s:", made ? "made a" : "can't make a",
              request->arch);
    for (size_t n; *head; head += n) {
        n = strcspn(head, "\n") + 1;
        nv_printf(said, " %.*s", (int)(n - 1), head);
    }
}

/* Whose request has been answered: found, or made. NULL when it has no head. */
static struct nv_pch_kept *learn(struct nv_tools *tools, const struct nv_request *request,
                                 struct nv_buffer *said)
{
    struct nv_pch *pch = &tools->pch;
    struct nv_pch_kept *kept = NULL;
    struct nv_options options;
    struct nv_buffer key = {0};
    char head[MAX_HEAD];
    size_t bytes = 0;
    if (!nv_includes_head(&tools->store, request, head, sizeof(head)))
        return NULL;
    bool std = nv_mentions_std(request);
    nv_options_make(&tools->settings, request, std, &options);
    write_key(&key, request, &options, head);
    int known = key.failed ? -1 : find(pch, key.ptr);
    if (known >= 0) {
        kept = &pch->kept[known];
        kept->used = ++pch->clock;
    } else if (!key.failed && pch->made < MAX_MADE) {
        pch->made++;
        int file = make(tools, request, &options, std, head, &bytes);
        kept = make_room(pch, bytes);
        *kept = (struct nv_pch_kept){key.ptr, file, bytes, ++pch->clock};
        tell(said, request, file >= 0, head);
        return kept; /* with the key */
    }
    nv_free(&key);
    return kept;
}

void nv_pch_prepare(struct nv_tools *tools, const struct nv_request *request,
                    struct nv_buffer *said)
{
    struct nv_pch *pch = &tools->pch;
    if (!pch->possible)
        return;
    struct nv_pch_kept *kept = request ? learn(tools, request, said) : NULL;
    if (kept)
        stage(pch, kept);
    if (pch->scratch >= 0)
        close(pch->scratch);
    pch->scratch = nv_gate_scratch(pch->heap);
}

bool nv_pch_use(const struct nv_tools *tools, const struct nv_request *request,
                const struct nv_options *options, char *option, size_t size)
{
    static char path[64]; /* the gate keeps it */
    const struct nv_pch *pch = &tools->pch;
    struct nv_buffer key = {0};
    char head[MAX_HEAD];
    if (!pch->possible || !nv_includes_head(&tools->store, request, head, sizeof(head)))
        return false;
    write_key(&key, request, options, head);
    int at = key.failed ? -1 : find(pch, key.ptr);
    nv_free(&key);
    if (at < 0 || pch->kept[at].file < 0)
        return false;
    struct nv_gate gate = {.path = path, .file = pch->kept[at].file, .scratch = pch->scratch};
    if (pch->staged && pch->staged_file == gate.file) {
        gate.staged = pch->staged;
        gate.n_staged = pch->n_staged;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", gate.file);
    snprintf(option, size, "--use-pch=%s", path);
    return nv_gate_set(&gate);
}
