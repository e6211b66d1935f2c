/* http_connections.h - the open connections: how many an address has, and which are too slow.
 * SPDX-License-Identifier: Apache-2.0
 *
 * libmicrohttpd closes connections that do nothing for a while. A client that sends a byte now and
 * then keeps its connection, so the whole time of a header and of a body is limited here.
 */
#ifndef RENYI_HTTP_CONNECTIONS_H
#define RENYI_HTTP_CONNECTIONS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef enum connection_phase {
    CONNECTION_HEADER, /* the first header arrives */
    CONNECTION_BODY,
    CONNECTION_BUSY, /* the server works or sends */
    CONNECTION_IDLE  /* between requests; the next header may arrive */
} connection_phase;

typedef struct http_connection {
    struct http_connection *next, **link; /* link: what points here */
    int fd;
    char address[64];
    connection_phase phase;
    double since; /* ms */
    int is_over;  /* more than its address may have */
    int is_slow;  /* it was answered 408 and ended */
} http_connection;

typedef struct http_connections {
    pthread_mutex_t lock;
    http_connection *first;
    size_t n;
    uint64_t max_per_address; /* 0 = any */
    double header_ms, body_ms, idle_ms;
} http_connections;

void connections_open(http_connections *c);
void connections_close(http_connections *c);

/* NULL without memory. */
http_connection *connections_add(http_connections *c, int fd, const struct sockaddr *address);
/* Before its descriptor is closed. */
void connections_remove(http_connections *c, http_connection *connection);
void connection_enter(http_connections *c, http_connection *connection, connection_phase phase);
/* Whether it was answered 408. */
int connection_is_slow(http_connections *c, const http_connection *connection);
size_t connections_count(http_connections *c);

/* Answers 408 to connections that are too slow and ends them. Returns how many. */
size_t connections_end_slow(http_connections *c);

#endif
