#include "http/loop.h"
#include "base/io.h"
#include "base/status.h"
#include "plugin/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    MAX_EVENTS = 128, /* that are looked at in one go */
    WAKES_PER_MS = 8, /* see wake_readers */
    CANCELS_MS = 50,  /* how often the cancel flags are looked at */
    MAX_IDLE = 128,   /* connections that are kept for a next request */
    MAX_STREAMS = 24, /* of HTTP/2 on one connection: its end takes all of them with it */
};
static const uint64_t ms = 1000 * 1000;

enum { ENTER = 1, RESUME = 2, LEAVE = 4 };

static struct loop {
    /* the thread's */
    const struct rung_curl *curl;
    CURLM *multi;
    int epoll;
    uint64_t timer_ns;   /* when libcurl wants to be called; 0: not */
    uint64_t cancels_ns; /* when the cancel flags are looked at next */
    uint64_t wakes_ns;   /* when a reader is to be woken next; UINT64_MAX: none has news */
    struct rung_flight *flights;
    unsigned n_flights;
    /* everybody's */
    pthread_mutex_t lock; /* of orders, ending and each flight's orders, next_order and landed */
    struct rung_flight *orders;
    bool ending;
    int bell; /* an eventfd: there are orders */
    pthread_t thread;
    pid_t process; /* that the thread is in */
    bool runs;
} the_loop = {.epoll = -1, .bell = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Orders --------------------------------------------------------------------------------- */

static void ring(const struct loop *l)
{
    const uint64_t one = 1;
    ssize_t written;
    do
        written = write(l->bell, &one, sizeof one);
    while (written < 0 && errno == EINTR);
}

/* Under the lock. A flight that has landed takes no more orders: its owner may be about to free it.
 */
static void order(struct loop *l, struct rung_flight *f, unsigned what)
{
    if (f->landed)
        return;
    if (!l->orders)
        ring(l);
    if (!f->orders) {
        f->next_order = l->orders;
        l->orders = f;
    }
    f->orders |= what;
}

/* Takes a flight out of the list of orders; under the lock. */
static void forget_orders(struct loop *l, struct rung_flight *f)
{
    struct rung_flight **link = &l->orders;
    while (*link && *link != f)
        link = &(*link)->next_order;
    if (*link)
        *link = f->next_order;
    f->orders = 0;
}

/* The end of a flight for this thread: nothing here may touch it afterwards. */
static void land(struct loop *l, struct rung_flight *f, CURLcode result, bool dismissed)
{
    if (f->in_air) {
        l->curl->multi_remove_handle(l->multi, f->easy);
        l->n_flights--;
        if (f->before)
            f->before->after = f->after;
        else
            l->flights = f->after;
        if (f->after)
            f->after->before = f->before;
    }
    pthread_mutex_lock(&l->lock);
    f->landed = true;
    forget_orders(l, f);
    pthread_mutex_unlock(&l->lock);
    rung_pipe_end(&f->pipe, result, dismissed);
}

static void take_off(struct loop *l, struct rung_flight *f)
{
    l->curl->easy_setopt(f->easy, CURLOPT_PRIVATE, f);
    if (l->curl->multi_add_handle(l->multi, f->easy) != CURLM_OK) {
        land(l, f, CURLE_OUT_OF_MEMORY, false);
        return;
    }
    f->in_air = true;
    l->n_flights++;
    f->before = NULL;
    f->after = l->flights;
    if (l->flights)
        l->flights->before = f;
    l->flights = f;
}

static void obey(struct loop *l, struct rung_flight *f, unsigned orders)
{
    if (orders & LEAVE) {
        land(l, f, CURLE_OK, true);
        return;
    }
    if (orders & ENTER) {
        take_off(l, f);
        return;
    }
    CURLcode code = l->curl->easy_pause(f->easy, CURLPAUSE_CONT); /* RESUME */
    if (code != CURLE_OK)
        land(l, f, code, false);
}

/* All orders that are there; whether the thread shall end. */
static bool obey_all(struct loop *l)
{
    for (;;) {
        pthread_mutex_lock(&l->lock);
        struct rung_flight *f = l->orders;
        unsigned orders = f ? f->orders : 0;
        bool ending = l->ending;
        if (f)
            forget_orders(l, f);
        pthread_mutex_unlock(&l->lock);
        if (!f)
            return ending;
        obey(l, f, orders);
    }
}

/* ---- libcurl's sockets and timer ------------------------------------------------------------ */

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *loop, void *unused)
{
    const struct loop *l = loop;
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    (void)unused;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    int status = epoll_ctl(l->epoll, EPOLL_CTL_MOD, fd, &event);
    if (status != 0 && errno == ENOENT)
        status = epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &event);
    return status;
}

static int set_timer(CURLM *multi, long timeout_ms, void *loop)
{
    struct loop *l = loop;
    (void)multi;
    l->timer_ns = timeout_ms < 0 ? 0 : rung_now_ns() + (uint64_t)timeout_ms * ms;
    return 0;
}

static void serve_socket(struct loop *l, const struct epoll_event *event)
{
    int running, bits = 0;
    if (event->events & (EPOLLIN | EPOLLHUP))
        bits |= CURL_CSELECT_IN;
    if (event->events & EPOLLOUT)
        bits |= CURL_CSELECT_OUT;
    if (event->events & EPOLLERR)
        bits |= CURL_CSELECT_ERR;
    l->curl->multi_socket_action(l->multi, event->data.fd, bits, &running);
}

static void serve_timer(struct loop *l)
{
    int running;
    if (!l->timer_ns || rung_now_ns() < l->timer_ns)
        return;
    l->timer_ns = 0; /* libcurl sets the next one meanwhile */
    l->curl->multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

/* The transfers that ended by themselves. */
static void land_all_done(struct loop *l)
{
    int left;
    for (CURLMsg *m; (m = l->curl->multi_info_read(l->multi, &left));) {
        struct rung_flight *f = NULL;
        CURLcode result = m->data.result;
        if (m->msg != CURLMSG_DONE)
            continue;
        l->curl->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &f);
        land(l, f, result, false);
    }
}

/* ---- The thread ----------------------------------------------------------------------------- */

static void look_at_cancels(struct loop *l, uint64_t now)
{
    if (now < l->cancels_ns)
        return;
    l->cancels_ns = now + CANCELS_MS * ms;
    for (struct rung_flight *f = l->flights; f; f = f->after)
        if (!f->nudged && rung_cancel_requested(f->cancel)) {
            f->nudged = true;
            rung_pipe_nudge(&f->pipe);
        }
}

/*
 * Switching to a thread costs more than reading a token, so that a few hundred streams would keep a
 * core busy with that alone. With n transfers each reader is woken once in n / WAKES_PER_MS
 * milliseconds: a few ones hear within one, 512 of them 16 times a second. A reply's end is told at
 * once (rung_pipe_end).
 */
static void wake_readers(struct loop *l, uint64_t now)
{
    const uint64_t gap = l->n_flights * ms / WAKES_PER_MS;
    uint64_t next = UINT64_MAX;
    if (now < l->wakes_ns)
        return;
    for (struct rung_flight *f = l->flights; f; f = f->after) {
        if (f->has_news && now >= f->woken_ns + gap) {
            f->has_news = false;
            f->woken_ns = now;
            rung_pipe_wake(&f->pipe);
        } else if (f->has_news && f->woken_ns + gap < next) {
            next = f->woken_ns + gap;
        }
    }
    l->wakes_ns = next < now + ms ? now + ms : next;
}

/* Milliseconds until something other than a socket wants to be served; -1: nothing. */
static int patience(const struct loop *l, uint64_t now)
{
    uint64_t until = l->flights ? l->cancels_ns : 0;
    if (l->timer_ns && (!until || l->timer_ns < until))
        until = l->timer_ns;
    if (l->wakes_ns != UINT64_MAX && (!until || l->wakes_ns < until))
        until = l->wakes_ns;
    if (!until)
        return -1;
    return until <= now ? 0 : (int)((until - now + ms - 1) / ms);
}

static void drain_bell(const struct loop *l)
{
    uint64_t rung;
    while (read(l->bell, &rung, sizeof rung) > 0)
        ;
}

static void *run(void *loop)
{
    struct loop *l = loop;
    struct epoll_event events[MAX_EVENTS];
    bool ending = false;
    while (!ending) {
        int n = epoll_wait(l->epoll, events, MAX_EVENTS, patience(l, rung_now_ns()));
        bool orders = false;
        for (int i = 0; i < n; i++)
            if (events[i].data.fd == l->bell)
                orders = true;
            else
                serve_socket(l, &events[i]);
        serve_timer(l);
        land_all_done(l);
        if (orders) {
            drain_bell(l);
            ending = obey_all(l);
        }
        uint64_t now = rung_now_ns();
        wake_readers(l, now);
        look_at_cancels(l, now);
    }
    while (l->flights)
        land(l, l->flights, CURLE_OK, true);
    return NULL;
}

/* ---- Begin and end -------------------------------------------------------------------------- */

static void set_up_multi(struct loop *l)
{
    bool shares = rung_curl_version(l->curl) >= RUNG_CURL_GOOD_H2;
    l->curl->multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    l->curl->multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
    l->curl->multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    l->curl->multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
    l->curl->multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, (long)MAX_IDLE);
    l->curl->multi_setopt(l->multi, CURLMOPT_PIPELINING,
                          shares ? (long)CURLPIPE_MULTIPLEX : (long)CURLPIPE_NOTHING);
#if LIBCURL_VERSION_NUM >= 0x074300
    l->curl->multi_setopt(l->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)MAX_STREAMS);
#endif
}

/* At the process's end. A forked child has no such thread to join. */
static void stop(void)
{
    struct loop *l = &the_loop;
    pthread_mutex_lock(&l->lock);
    bool mine = l->runs && l->process == getpid();
    l->runs = false;
    l->ending = true;
    if (mine)
        ring(l);
    pthread_mutex_unlock(&l->lock);
    if (!mine)
        return;
    pthread_join(l->thread, NULL);
    l->curl->multi_cleanup(l->multi);
    close(l->epoll);
    close(l->bell);
}

/* Signals are for the process's other threads. */
static bool start_thread(struct loop *l)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&l->thread, NULL, run, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_setname_np(l->thread, "rung-http");
    return started;
}

static bool start(struct loop *l, const struct rung_curl *curl)
{
    struct epoll_event event = {.events = EPOLLIN};
    l->curl = curl;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->bell = event.data.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->multi = curl->multi_init();
    if (l->epoll >= 0 && l->bell >= 0 && l->multi &&
        epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->bell, &event) == 0) {
        set_up_multi(l);
        l->process = getpid();
        if (atexit(stop) == 0 && start_thread(l))
            return true;
    }
    curl->multi_cleanup(l->multi);
    close(l->epoll);
    close(l->bell);
    return false;
}

int32_t rung_loop_enter(const struct rung_curl *curl, struct rung_flight *flight,
                        struct rung_error *err)
{
    struct loop *l = &the_loop;
    int32_t status = RUNG_OK;
    pthread_mutex_lock(&l->lock);
    if (l->ending)
        status = rung_fail(err, RUNG_ECANCELLED, "http.cancelled", "the process is about to end");
    else if (!l->runs && !(l->runs = start(l, curl)))
        status =
            rung_fail(err, RUNG_ENOMEM, "http.memory", "no thread or descriptor is left for HTTP");
    else
        order(l, flight, ENTER);
    pthread_mutex_unlock(&l->lock);
    return status;
}

bool rung_loop_put(struct rung_flight *flight, enum rung_pipe_kind kind, const char *bytes,
                   size_t n, bool bounded)
{
    struct loop *l = &the_loop;
    const uint64_t due = flight->woken_ns + l->n_flights * ms / WAKES_PER_MS;
    if (!flight->has_news && due < l->wakes_ns)
        l->wakes_ns = due;
    flight->has_news = true;
    return rung_pipe_put(&flight->pipe, kind, bytes, n, bounded);
}

void rung_loop_resume(struct rung_flight *flight)
{
    pthread_mutex_lock(&the_loop.lock);
    order(&the_loop, flight, RESUME);
    pthread_mutex_unlock(&the_loop.lock);
}

void rung_loop_leave(struct rung_flight *flight)
{
    pthread_mutex_lock(&the_loop.lock);
    order(&the_loop, flight, LEAVE);
    pthread_mutex_unlock(&the_loop.lock);
    rung_pipe_wait_end(&flight->pipe);
}
