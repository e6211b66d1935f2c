/* dataset_fixture.h - a folder of its own for tests of data sets: files are put into it, data sets
 * opened and compared. Define _POSIX_C_SOURCE 200809L before the first include.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_FIXTURE_H
#define DATASET_FIXTURE_H

#include "renyi/eval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/renyi_dataset_XXXXXX";

/* A path below the test's folder; good until the eighth next call. */
static inline const char *at(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

/* Write a file, making the folders above it. */
static inline const char *put(const char *name, const char *text)
{
    const char *path = at(name);
    char folder[512];
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        mkdir(folder, 0777);
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static inline renyi_dataset *open_ok(const char *path, const renyi_dataset_options *o)
{
    renyi_error err = {0};
    renyi_dataset *d;
    if (renyi_dataset_open(&d, path, NULL, o, &err)) fail_msg("%s", err.message);
    return d;
}

/* Fails with a message that holds `part`. */
static inline void open_bad(const char *path, const renyi_dataset_options *o, const char *part)
{
    renyi_error err = {0};
    renyi_dataset *d;
    if (renyi_dataset_open(&d, path, NULL, o, &err) == RENYI_OK) fail_msg("opened: %s", path);
    assert_null(d);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

/* "file=label file=label ..." of the whole dataset */
static inline void assert_photos(renyi_dataset *d, const char *want)
{
    char got[1024] = "";
    renyi_dataset_info info;
    renyi_dataset_get_info(d, &info);
    for (size_t i = 0; i < info.n_images; i++) {
        renyi_dataset_image im;
        renyi_dataset_get_image(d, i, &im);
        assert_string_equal(im.path + strlen(im.path) - strlen(im.file), im.file);
        const size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, "%s%s=%u", n ? " " : "", im.file, im.label);
    }
    assert_string_equal(got, want);
}

#define OPTIONS(...) \
    (&(renyi_dataset_options){.struct_size = sizeof(renyi_dataset_options), __VA_ARGS__})

static inline int set_up(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static inline int tear_down(void **state)
{
    char command[600];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

#endif
