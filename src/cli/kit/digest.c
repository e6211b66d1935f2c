/* digest.c - see digest.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/digest.h"

#include "cli/kit/cli.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

/* Feeds `size` bytes of the file; 0 or -1. */
static int feed_file(EVP_MD_CTX *md, int fd, uint64_t size)
{
    unsigned char *chunk = cli_alloc(CHUNK, 1);
    uint64_t done = 0;

    while (done < size) {
        const ssize_t n = pread(fd, chunk, CHUNK, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || EVP_DigestUpdate(md, chunk, (size_t)n) != 1) break;
        done += (uint64_t)n;
    }
    free(chunk);
    return done == size ? 0 : -1;
}

static int digest_hex(int fd, uint64_t size, int is_git, char *hex)
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    int rc = md && EVP_DigestInit_ex(md, is_git ? EVP_sha1() : EVP_sha256(), NULL) == 1 ? 0 : -1;

    if (!rc && is_git) {
        char header[40];
        const int n = snprintf(header, sizeof header, "blob %llu", (unsigned long long)size);
        if (EVP_DigestUpdate(md, header, (size_t)n + 1) != 1) rc = -1; /* with its NUL */
    }
    if (!rc) rc = feed_file(md, fd, size);
    if (!rc && EVP_DigestFinal_ex(md, bytes, &length) != 1) rc = -1;
    EVP_MD_CTX_free(md);
    for (unsigned i = 0; !rc && i < length; i++) snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    return rc;
}

digest_verdict digest_check(int fd, uint64_t size, const char *etag)
{
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    const size_t length = strlen(etag);

    if ((length != 40 && length != 64) || strspn(etag, "0123456789abcdef") != length)
        return DIGEST_UNKNOWN;
    if (digest_hex(fd, size, length == 40, hex)) return DIGEST_FAILED;
    return strcmp(hex, etag) == 0 ? DIGEST_RIGHT : DIGEST_WRONG;
}
