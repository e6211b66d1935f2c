/* api_keys.h - the keys that clients show: read from a file, compared in constant time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_API_KEYS_H
#define RENYI_API_KEYS_H

#include <pthread.h>
#include <stddef.h>

enum { API_KEY_DIGEST = 32, API_KEY_LEAST = 16 };

/* Only digests stay in memory. */
typedef struct api_keys {
    pthread_mutex_t lock;
    unsigned char (*digests)[API_KEY_DIGEST]; /* [n] */
    size_t n;
    const char *path; /* NULL = no keys are asked for; borrowed */
} api_keys;

/* One key per line, at least API_KEY_LEAST characters; empty lines and lines that begin with '#'
 * are skipped. 0, or -1 after reporting. */
int api_keys_open(api_keys *k, const char *path);
/* Reads the file again. After a failure, which is reported, the old keys stay. */
int api_keys_reload(api_keys *k);
void api_keys_free(api_keys *k);

/* 1 if no keys are asked for, or if the value of an Authorization header is "Bearer KEY" with one
 * of the keys. The time depends on the number of keys and on the length of the value alone. */
int api_keys_allow(api_keys *k, const char *authorization);

#endif
