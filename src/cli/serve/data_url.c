/* data_url.c - images inside a request: data: URLs in base64. No other URL is ever read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/data_url.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Largest text that EVP_DecodeBlock and EVP_EncodeBlock count in an int. */
static const size_t max_text = INT_MAX / 2;

/* Is this base64 with padding and nothing else? EVP_DecodeBlock skips blanks at both ends and takes
 * '=' anywhere, so both are refused here. Sets the number of padding characters. */
static int is_strict(const char *text, size_t n, size_t *n_padding)
{
    *n_padding = 0;
    if (!n || n % 4 || n > max_text) return 0;
    while (*n_padding < 2 && text[n - 1 - *n_padding] == '=') ++*n_padding;
    for (size_t i = 0; i < n - *n_padding; i++) {
        const char c = text[i];
        const int is_digit = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                             (c >= '0' && c <= '9') || c == '+' || c == '/';
        if (!is_digit) return 0;
    }
    return 1;
}

/* The part between "data:" and the comma must end in ";base64" and begin with an image type. */
static int is_image_type(const char *type, size_t n)
{
    static const char suffix[] = ";base64", image[] = "image/", any[] = "application/octet-stream";
    const size_t n_suffix = sizeof suffix - 1;

    if (n < n_suffix || strncasecmp(type + n - n_suffix, suffix, n_suffix) != 0) return 0;
    return strncasecmp(type, image, sizeof image - 1) == 0 ||
           strncasecmp(type, any, sizeof any - 1) == 0;
}

data_url_status data_url_decode(const char *url, size_t length, unsigned char **bytes, size_t *size,
                                const char **why)
{
    static const char scheme[] = "data:";
    const size_t n_scheme = sizeof scheme - 1;
    size_t n_padding;

    *bytes = NULL;
    *size = 0;
    *why = "only data: URLs are read; the server fetches nothing and opens no files";
    if (length < n_scheme || strncasecmp(url, scheme, n_scheme) != 0) return DATA_URL_OTHER;
    const char *type = url + n_scheme;
    const char *comma = memchr(type, ',', length - n_scheme);
    *why = "a data: URL needs the form data:image/png;base64,...";
    if (!comma || !is_image_type(type, (size_t)(comma - type))) return DATA_URL_BAD;
    const char *text = comma + 1;
    const size_t n = (size_t)(url + length - text);
    *why = "the data: URL is not valid base64 (with padding, without blanks)";
    if (!is_strict(text, n, &n_padding)) return DATA_URL_BAD;
    *why = "out of memory";
    unsigned char *out = malloc(n / 4 * 3);
    if (!out) return DATA_URL_NOMEM;
    const int got = EVP_DecodeBlock(out, (const unsigned char *)text, (int)n);
    if (got < 0 || (size_t)got < n_padding) {
        free(out);
        *why = "the data: URL is not valid base64";
        return DATA_URL_BAD;
    }
    *bytes = out;
    *size = (size_t)got - n_padding;
    *why = NULL;
    return DATA_URL_OK;
}

char *base64_text(const void *bytes, size_t size)
{
    if (size > max_text / 2) return NULL;
    char *text = malloc((size + 2) / 3 * 4 + 1);
    if (!text) return NULL;
    text[0] = 0; /* EVP_EncodeBlock writes nothing for no bytes */
    EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
    return text;
}
