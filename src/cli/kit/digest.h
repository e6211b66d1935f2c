/* digest.h - does a file hold what its Hugging Face ETag promises?
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_DIGEST_H
#define RENYI_DIGEST_H

#include <stdint.h>

typedef enum digest_verdict {
    DIGEST_RIGHT,
    DIGEST_WRONG,
    DIGEST_UNKNOWN, /* the ETag is no digest */
    DIGEST_FAILED   /* the file cannot be read */
} digest_verdict;

/* 64 hexadecimal digits: SHA-256 of the bytes (large files). 40: the SHA-1 that git gives a blob,
 * of "blob <size>\0" and the bytes (small files). */
digest_verdict digest_check(int fd, uint64_t size, const char *etag);

#endif
