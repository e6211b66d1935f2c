/* http_load.c - load on an HTTP server: N connections that send the same request again and again.
 * usage: http_load PORT REQUEST CLIENTS SECONDS
 * SPDX-License-Identifier: Apache-2.0
 *
 * One thread with epoll and prepared bytes, because it runs on the machine that it measures. The
 * first second is not counted. stdout: JSON with the answers per second, latencies, answers that
 * are not 200, and the CPU seconds of this process. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CLIENTS = 1024, MAX_ANSWER = 1 << 16 };

typedef struct client {
    int fd;
    size_t sent, got, want; /* want: bytes of the whole answer, 0 = its header is not complete */
    double begun;
    char answer[MAX_ANSWER];
} client;

static char *request;
static size_t n_request;
static double *latencies; /* [n_latencies] ms */
static size_t n_latencies, max_latencies, n_failed;

static void die(const char *what)
{
    fprintf(stderr, "http_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void read_request(const char *path)
{
    FILE *f = fopen(path, "rb");
    long size = -1;

    if (f && fseek(f, 0, SEEK_END) == 0) size = ftell(f);
    if (size <= 0 || fseek(f, 0, SEEK_SET)) die(path);
    request = malloc((size_t)size);
    n_request = (size_t)size;
    if (!request || fread(request, 1, n_request, f) != n_request) die(path);
    fclose(f);
}

static void open_client(client *c, int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&address, sizeof address))
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Sends what the socket takes; the rest follows when it is writable again. */
static void send_request(client *c, int events)
{
    if (!c->sent) c->begun = now();
    while (c->sent < n_request) {
        const ssize_t n = send(c->fd, request + c->sent, n_request - c->sent, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) die("send");
        c->sent += (size_t)n;
    }
    struct epoll_event e = {.events = EPOLLIN | (c->sent < n_request ? EPOLLOUT : 0),
                            .data.ptr = c};
    epoll_ctl(events, EPOLL_CTL_MOD, c->fd, &e);
}

/* The length of the answer once its header is there. */
static void read_header(client *c)
{
    char *end = memmem(c->answer, c->got, "\r\n\r\n", 4);
    if (!end) return;
    *end = 0;
    const char *length = strcasestr(c->answer, "\r\nContent-Length:");
    if (!length) die("an answer without Content-Length");
    c->want = (size_t)(end + 4 - c->answer) + strtoul(length + 17, NULL, 10);
    if (c->want > MAX_ANSWER) die("an answer that is too long");
}

/* 1 when the answer is complete. */
static int read_answer(client *c)
{
    const ssize_t n = recv(c->fd, c->answer + c->got, MAX_ANSWER - c->got, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) die("recv");
    c->got += (size_t)n;
    if (!c->want) read_header(c);
    return c->want && c->got >= c->want;
}

static void take_answer(client *c, double start, double end)
{
    const double at = now();

    if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0) {
        n_failed++;
    } else if (at >= start && at <= end) {
        if (n_latencies == max_latencies) {
            max_latencies = max_latencies ? 2 * max_latencies : 4096;
            latencies = realloc(latencies, max_latencies * sizeof *latencies);
            if (!latencies) die("memory");
        }
        latencies[n_latencies++] = 1e3 * (at - c->begun);
    }
    c->sent = c->got = c->want = 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double q)
{
    if (!n_latencies) return 0.0;
    const size_t i = (size_t)(q * (double)n_latencies);
    return latencies[i < n_latencies ? i : n_latencies - 1];
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static void run(int events, double start, double end)
{
    struct epoll_event ready[64];

    while (now() < end) {
        const int n = epoll_wait(events, ready, 64, 100);
        for (int i = 0; i < n; i++) {
            client *c = ready[i].data.ptr;
            if (c->sent < n_request) send_request(c, events);
            if (!(ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || !read_answer(c)) continue;
            take_answer(c, start, end);
            send_request(c, events);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) return fprintf(stderr, "usage: http_load PORT REQUEST CLIENTS SECONDS\n"), 2;
    const int n = atoi(argv[3]), events = epoll_create1(EPOLL_CLOEXEC);
    const double seconds = atof(argv[4]), start = now() + 1.0;
    client *clients = n > 0 && n <= MAX_CLIENTS ? calloc((size_t)n, sizeof *clients) : NULL;
    struct rusage used;

    if (!clients || events < 0) die("clients");
    read_request(argv[2]);
    for (int i = 0; i < n; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &clients[i]};
        open_client(&clients[i], atoi(argv[1]));
        if (epoll_ctl(events, EPOLL_CTL_ADD, clients[i].fd, &e)) die("epoll");
        send_request(&clients[i], events);
    }
    run(events, start, start + seconds);
    getrusage(RUSAGE_SELF, &used);
    qsort(latencies, n_latencies, sizeof *latencies, by_size);
    printf("{\"images_per_second\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"failed\": %zu, "
           "\"cpu_seconds\": %.3f}\n",
           (double)n_latencies / seconds, quantile(0.5), quantile(0.99), n_failed,
           seconds_of(used.ru_utime) + seconds_of(used.ru_stime));
    return 0;
}
