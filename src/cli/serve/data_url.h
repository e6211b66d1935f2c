/* data_url.h - images inside a request: data: URLs in base64. No other URL is ever read.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_DATA_URL_H
#define RENYI_DATA_URL_H

#include <stddef.h>

typedef enum data_url_status {
    DATA_URL_OK,
    DATA_URL_OTHER, /* no data: URL, such as https: or a path */
    DATA_URL_BAD,   /* a data: URL whose bytes cannot be read */
    DATA_URL_NOMEM
} data_url_status;

/* Decodes "data:image/png;base64,iVBOR...". *bytes is owned (free). On failure *why says what is
 * wrong; a static string. */
data_url_status data_url_decode(const char *url, size_t length, unsigned char **bytes, size_t *size,
                                const char **why);

/* Base64 of bytes, with padding and a NUL. Owned (free); NULL without memory. */
char *base64_text(const void *bytes, size_t size);

#endif
