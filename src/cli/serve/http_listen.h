/* http_listen.h - the socket on which the server listens.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_HTTP_LISTEN_H
#define RENYI_HTTP_LISTEN_H

#include <stddef.h>

/* Is every address that this host means one of this machine alone? */
int http_is_loopback(const char *host);

/* A socket that listens on host and port (0 = any free one). Writes "http://host:port" to url
 * [size]. -1 after reporting. */
int http_listen(const char *host, unsigned port, int *is_ipv6, char *url, size_t size);
void http_close(int fd); /* -1 is allowed */

#endif
