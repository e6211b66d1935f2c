/* shared.h - finds the reference files (models, golden taps, photos) that live beside the project
 * and are never part of it. A test that needs one skips loudly when it is absent.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_SHARED_H
#define RENYI_TESTS_SHARED_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SHARED_SKIPPED 77 /* exit code that ctest counts as "skipped" */

/* How many files were asked for and not there, in this program. */
static inline int *shared_missing(void)
{
    static int count;
    return &count;
}

/* Full path of `rel` below $RENYI_SHARED (or ../shared beside the source tree). NULL, and one loud
 * line, when there is no such file or folder. The string is good until the fourth next call. */
static inline const char *shared_path(const char *rel)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    const char *root = getenv("RENYI_SHARED");
    struct stat st;
    snprintf(path, sizeof paths[0], "%s/%s", root ? root : RENYI_SOURCE_DIR "/../shared", rel);
    if (stat(path, &st) == 0) return path;
    printf("SKIP: %s is absent; set RENYI_SHARED (%d skipped so far)\n", path, ++*shared_missing());
    fflush(stdout);
    return NULL;
}

#endif
