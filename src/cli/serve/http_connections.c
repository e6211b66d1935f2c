/* http_connections.c - the open connections: how many an address has, and which are too slow.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/http_connections.h"

#include "cli/kit/cli.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

void connections_open(http_connections *c) { pthread_mutex_init(&c->lock, NULL); }

void connections_close(http_connections *c) { pthread_mutex_destroy(&c->lock); }

static void name_address(char out[64], const struct sockaddr *address)
{
    const int is_ipv6 = address->sa_family == AF_INET6;
    const socklen_t size = is_ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    if (getnameinfo(address, size, out, 64, NULL, 0, NI_NUMERICHOST)) memcpy(out, "unknown", 8);
}

http_connection *connections_add(http_connections *c, int fd, const struct sockaddr *address)
{
    http_connection *connection = calloc(1, sizeof *connection);
    uint64_t n_same = 0;

    if (!connection) return NULL;
    connection->fd = fd;
    connection->since = cli_now_ms();
    name_address(connection->address, address);
    pthread_mutex_lock(&c->lock);
    for (const http_connection *other = c->first; other; other = other->next)
        n_same += strcmp(other->address, connection->address) == 0;
    connection->is_over = c->max_per_address && n_same >= c->max_per_address;
    connection->next = c->first;
    connection->link = &c->first;
    if (c->first) c->first->link = &connection->next;
    c->first = connection;
    c->n++;
    pthread_mutex_unlock(&c->lock);
    return connection;
}

void connections_remove(http_connections *c, http_connection *connection)
{
    pthread_mutex_lock(&c->lock);
    *connection->link = connection->next;
    if (connection->next) connection->next->link = connection->link;
    c->n--;
    pthread_mutex_unlock(&c->lock);
    free(connection);
}

void connection_enter(http_connections *c, http_connection *connection, connection_phase phase)
{
    pthread_mutex_lock(&c->lock);
    connection->phase = phase;
    connection->since = cli_now_ms();
    pthread_mutex_unlock(&c->lock);
}

int connection_is_slow(http_connections *c, const http_connection *connection)
{
    pthread_mutex_lock(&c->lock);
    const int is_slow = connection->is_slow;
    pthread_mutex_unlock(&c->lock);
    return is_slow;
}

size_t connections_count(http_connections *c)
{
    pthread_mutex_lock(&c->lock);
    const size_t n = c->n;
    pthread_mutex_unlock(&c->lock);
    return n;
}

/* ---- slow ones ---------------------------------------------------------------------------------
 */

static double limit(const http_connections *c, connection_phase phase)
{
    switch (phase) {
    case CONNECTION_HEADER: return c->header_ms;
    case CONNECTION_BODY: return c->body_ms;
    case CONNECTION_IDLE: return c->idle_ms + c->header_ms;
    default: return 1e300;
    }
}

/* HTTP has sent nothing yet in these phases, so an answer does not mix with another. The other
 * thread sees the end of the connection and closes it. */
static void end_slow(http_connection *connection)
{
    static const char answer[] =
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json\r\n"
        "Content-Length: 120\r\n\r\n"
        "{\"error\":{\"message\":\"the request took too long to arrive\","
        "\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"timeout\"}}";

    if (connection->phase != CONNECTION_IDLE) /* else nobody reads it */
        connection->is_slow =
            send(connection->fd, answer, sizeof answer - 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
    shutdown(connection->fd, SHUT_RDWR);
    connection->phase = CONNECTION_BUSY; /* once */
}

size_t connections_end_slow(http_connections *c)
{
    const double now = cli_now_ms();
    size_t n = 0;

    pthread_mutex_lock(&c->lock);
    for (http_connection *one = c->first; one; one = one->next) {
        if (now - one->since <= limit(c, one->phase)) continue;
        end_slow(one);
        n++;
    }
    pthread_mutex_unlock(&c->lock);
    return n;
}
