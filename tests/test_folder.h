/* test_folder.h - a folder of its own below /tmp for a test that opens files and folders. Define
 * _GNU_SOURCE or _POSIX_C_SOURCE 200809L before the first include.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_TEST_FOLDER_H
#define RENYI_TESTS_TEST_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[] = "/tmp/renyi-test-XXXXXX";

/* A path below the test's folder; good until the fourth next call. */
static inline const char *at(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static inline void put(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void put_text(const char *name, const char *text) { put(name, text, strlen(text)); }

/* The folder and n more in it; 0 = made. */
static inline int folder_make(const char *const *names, size_t n)
{
    if (!mkdtemp(root)) return -1;
    for (size_t i = 0; i < n; i++)
        if (mkdir(at(names[i]), 0777)) return -1;
    return 0;
}

/* A teardown of cmocka's: the folder and all that is in it. */
static inline int folder_remove(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

#endif
