/* http_listen.c - the socket on which the server listens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/http_listen.h"

#include "cli/kit/cli.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 512 };

/* NULL if the host is not known; freeaddrinfo. */
static struct addrinfo *find_host(const char *host, const char *port, int *code)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;

    *code = getaddrinfo(host, port, &hints, &found);
    return *code ? NULL : found;
}

static int is_loopback_address(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family != AF_INET6) return 0;
    const struct sockaddr_in6 *in6 = (const void *)address;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

int http_is_loopback(const char *host)
{
    int code, is_loopback = 1;
    struct addrinfo *found = find_host(host, NULL, &code);

    for (const struct addrinfo *a = found; a; a = a->ai_next)
        is_loopback &= is_loopback_address(a->ai_addr);
    if (found) freeaddrinfo(found);
    return found && is_loopback;
}

void http_close(int fd)
{
    if (fd >= 0) close(fd);
}

static int open_socket(const struct addrinfo *a)
{
    const int on = 1;
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* The port that the system chose. */
static unsigned port_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    char port[16] = "0";

    if (getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    unsigned number = 0;
    for (const char *at = port; *at; at++) number = number * 10 + (unsigned)(*at - '0');
    return number;
}

int http_listen(const char *host, unsigned port, int *is_ipv6, char *url, size_t size)
{
    char text[16];
    int code, fd = -1;

    snprintf(text, sizeof text, "%u", port);
    struct addrinfo *found = find_host(host, text, &code);
    if (!found) {
        cli_error("option '--host': %s: %s", host, gai_strerror(code));
        return -1;
    }
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        *is_ipv6 = a->ai_family == AF_INET6;
        fd = open_socket(a);
    }
    if (fd < 0)
        cli_error("cannot listen on %s port %u: %s%s", host, port, strerror(errno),
                  errno == EADDRINUSE ? "; --port 0 takes a free one" : "");
    else
        snprintf(url, size, strchr(host, ':') ? "http://[%s]:%u" : "http://%s:%u", host,
                 port_of(fd));
    freeaddrinfo(found);
    return fd;
}
