/*
 * A model's server for bench/http: event streams at a steady pace, as many as are asked for. One
 * thread. Prints its port and ends when its standard input closes.
 *   GET or POST /stream/TOKENS/PER_SECOND
 * Each token is an event as OpenAI's chat completions send it, in a chunk of its own; `due_ns` is
 * when it should have left and `sent_ns` when it did, by CLOCK_MONOTONIC. The last one comes in one
 * piece with the body's end. How late it was itself goes to standard error at its end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FDS = 8192, MAX_REQUEST = 16384, TICK_NS = 500000 };

struct stream {
    char request[MAX_REQUEST];
    size_t have;
    uint32_t left, tokens;
    uint64_t due_ns, gap_ns;
};

static struct stream *streams[MAX_FDS];
static int highest, epoll, started;
static uint64_t sent, most_late_ns;
static double late_ns;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
}

static void drop(int fd)
{
    close(fd);
    free(streams[fd]);
    streams[fd] = NULL;
}

/* Tokens are a few bytes against the socket's buffer: a short write means that nobody reads. */
static void send_all(int fd, const char *bytes, size_t n)
{
    if (send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        drop(fd);
}

/* ---- Requests ---- */

static void answer(int fd, struct stream *s, uint32_t tokens, uint32_t per_second)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    s->tokens = s->left = tokens;
    s->gap_ns = 1000000000 / per_second;
    /* Streams of one moment are not in step: their phases are spread over the gap. */
    s->due_ns = now_ns() + (uint64_t)started++ * 7919000 % s->gap_ns;
    send_all(fd, head, sizeof head - 1);
}

/* A request whose body, if any, has come too. */
static void read_request(int fd, struct stream *s)
{
    unsigned tokens = 0, per_second = 0;
    char *end, *length;
    ssize_t n = recv(fd, s->request + s->have, sizeof s->request - 1 - s->have, 0);
    if (n <= 0) {
        drop(fd);
        return;
    }
    s->have += (size_t)n;
    s->request[s->have] = 0;
    end = strstr(s->request, "\r\n\r\n");
    if (!end)
        return;
    length = strcasestr(s->request, "\r\ncontent-length:");
    if (s->have < (size_t)(end + 4 - s->request) +
                      (length && length < end ? strtoul(length + 17, NULL, 10) : 0))
        return;
    s->have = 0;
    if (sscanf(s->request, "%*s /stream/%u/%u ", &tokens, &per_second) != 2 || !tokens ||
        !per_second)
        drop(fd);
    else
        answer(fd, s, tokens, per_second);
}

static void take_connection(int listener)
{
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || fd >= MAX_FDS)
        die("accept");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    streams[fd] = calloc(1, sizeof *streams[fd]);
    if (!streams[fd])
        die("calloc");
    if (fd > highest)
        highest = fd;
    watch(fd);
}

/* ---- Tokens ---- */

static void send_token(int fd, struct stream *s)
{
    char event[512], chunk[600];
    uint64_t now = now_ns(), late = now - s->due_ns;
    int n = snprintf(event, sizeof event,
                     "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\","
                     "\"created\":1700000000,\"model\":\"mock\",\"due_ns\":%" PRIu64
                     ",\"sent_ns\":%" PRIu64 ",\"choices\":[{\"index\":0,\"delta\":{\"content\":"
                     "\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
                     s->due_ns, now);
    s->left--;
    n = snprintf(chunk, sizeof chunk, "%x\r\n%s\r\n%s", n, event, s->left ? "" : "0\r\n\r\n");
    s->due_ns += s->gap_ns;
    late_ns += (double)late;
    sent++;
    if (late > most_late_ns)
        most_late_ns = late;
    send_all(fd, chunk, (size_t)n);
}

static void send_due(int timer)
{
    uint64_t ticks;
    if (read(timer, &ticks, sizeof ticks) < 0)
        return;
    for (int fd = 0; fd <= highest; fd++)
        while (streams[fd] && streams[fd]->left && now_ns() >= streams[fd]->due_ns)
            send_token(fd, streams[fd]);
}

/* ---- The loop ---- */

static int make_listener(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        die("listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static int make_timer(void)
{
    const struct timespec tick = {.tv_nsec = TICK_NS};
    const struct itimerspec every = {tick, tick};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    if (fd < 0 || timerfd_settime(fd, 0, &every, NULL) != 0)
        die("timerfd");
    return fd;
}

int main(void)
{
    struct epoll_event events[256];
    epoll = epoll_create1(0);
    int listener = make_listener(), timer = make_timer();
    watch(listener);
    watch(timer);
    watch(STDIN_FILENO);
    for (;;) {
        int n = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == STDIN_FILENO) {
                fprintf(stderr,
                        "mock: %" PRIu64 " tokens sent, %.2f ms late on average, %.1f at "
                        "most\n",
                        sent, sent ? late_ns / (double)sent / 1e6 : 0, (double)most_late_ns / 1e6);
                return 0;
            }
            if (fd == listener)
                take_connection(listener);
            else if (fd == timer)
                send_due(timer);
            else if (streams[fd])
                read_request(fd, streams[fd]);
        }
    }
}
