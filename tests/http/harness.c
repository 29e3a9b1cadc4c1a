#include "harness.h"
#include "base/io.h"
#include "base/status.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void become_server(int input, int output, const char *const *words)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    execvp("python3", (char *const *)words);
    _exit(127);
}

static struct server start_python(const char *const *words)
{
    struct server server;
    int in[2], out[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    server.pid = fork();
    assert_true(server.pid >= 0);
    if (server.pid == 0)
        become_server(in[0], out[1], words);
    close(in[0]);
    close(out[1]);
    server.input = in[1];
    server.output = fdopen(out[0], "r");
    assert_non_null(server.output);
    char line[32];
    if (!fgets(line, sizeof line, server.output))
        fail_msg("the server doesn't start");
    server.port = (int)strtol(line, NULL, 10);
    assert_true(server.port > 0);
    return server;
}

struct server server_start(const char *certificate, const char *key)
{
    const char *const plain[] = {"python3", HTTP_SERVERS "/server.py", NULL};
    const char *const tls[] = {"python3", HTTP_SERVERS "/server.py", "--tls", certificate, key,
                               NULL};
    return start_python(certificate ? tls : plain);
}

struct server server_start_h2(const char *certificate, const char *key)
{
    const char *const words[] = {"python3", HTTP_SERVERS "/h2_server.py", certificate, key, NULL};
    return start_python(words);
}

bool server_certificate(const char *certificate, const char *key)
{
    char command[2048];
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout %s -out %s "
             ">/dev/null 2>&1",
             key, certificate);
    return system(command) == 0;
}

void server_stop(struct server *server)
{
    close(server->input);
    fclose(server->output);
    waitpid(server->pid, NULL, 0);
}

static void keep_line(const struct rung_host *host, uint32_t level, const char *message)
{
    struct http_call *c = host->ctx;
    size_t n = strlen(c->log);
    snprintf(c->log + n, sizeof c->log - n, "%u %s\n", level, message);
}

void http_begin(struct http_call *c, const struct server *server, const char *path)
{
    *c = (struct http_call){.error = rung_error_init(), .arena = rung_arena_new()};
    c->call =
        (struct rung_call){.struct_size = sizeof c->call, .arena = c->arena, .error = &c->error};
    c->request.struct_size = sizeof c->request;
    c->response.struct_size = sizeof c->response;
    if (server)
        snprintf(c->url, sizeof c->url, "http://127.0.0.1:%d%s", server->port, path);
    else
        snprintf(c->url, sizeof c->url, "%s", path);
    c->request.url = c->url;
}

int32_t http_try(struct http_call *c)
{
    struct rung_host host = {.struct_size = sizeof host, .ctx = c, .log = keep_line};
    c->error = rung_error_init();
    return rung_http_table.perform(&host, &c->call, &c->request, &c->response);
}

int32_t http_do(struct http_call *c)
{
    int32_t status = http_try(c);
    assert_int_equal(status, c->error.code);
    assert_int_equal(status != RUNG_OK, c->error.message[0] != 0);
    return status;
}

void http_end(struct http_call *c)
{
    rung_arena_free(c->arena);
}

static struct rung_text text_of(const char *text)
{
    return (struct rung_text){text, strlen(text)};
}

struct rung_http_header http_header(const char *name, const char *value)
{
    return (struct rung_http_header){.struct_size = sizeof(struct rung_http_header),
                                     .name = text_of(name),
                                     .value = text_of(value)};
}

struct rung_http_header http_secret(const char *name, const char *secret, const char *prefix)
{
    struct rung_http_header header = http_header(name, "");
    header.secret = secret;
    header.prefix = prefix;
    return header;
}

const char *http_value(const struct http_call *c, const char *name)
{
    struct rung_text value = rung_http_table.find(&c->response, name);
    return value.ptr ? value.ptr : "";
}
