/* eval_fixture.h - a toy model and a folder of made-up photos for tests of evaluations.
 * Define _POSIX_C_SOURCE 200809L before the first include. SPDX-License-Identifier: Apache-2.0 */
#ifndef EVAL_FIXTURE_H
#define EVAL_FIXTURE_H

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

enum { PHOTOS = 23, BROKEN = 2, CLASSES = 10 };

typedef struct eval_fixture {
    char root[64];
    renyi_model *model;
    renyi_dataset *data;
} eval_fixture;

static eval_fixture fixture;

/* Path of `name` in the folder of the test; good until the eighth next call. One thread only. */
static inline const char *at(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", fixture.root, name);
    return path;
}

/* A small picture of noise; number 7 is no picture and 11 is cut short. */
static inline void make_photo(int i)
{
    char name[64];
    snprintf(name, sizeof name, "photos/%03d", i % CLASSES);
    mkdir(at(name), 0777);
    snprintf(name, sizeof name, "photos/%03d/%02d.ppm", i % CLASSES, i);
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    uint32_t state = (uint32_t)i + 1;
    if (i == 7)
        fputs("no picture", f);
    else
        fputs("P6\n20 20\n255\n", f);
    for (int k = 0; k < (i == 11 ? 300 : i == 7 ? 0 : 1200); k++) {
        state = state * 1664525u + 1013904223u;
        putc((int)((state >> 24) * (unsigned)(i % 5 + 1) / 5), f);
    }
    fclose(f);
}

/* The whole file with a NUL, to be freed; "" if there is none. */
static inline char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    if (!f) return text;
    assert_true(fread(text, 1, (1 << 20) - 1, f) < (1 << 20) - 1);
    fclose(f);
    return text;
}

static inline void write_all(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fwrite(text, 1, n, f) == n);
    fclose(f);
}

/* All that must not depend on how it was run: 17 digits of the loss, every answer, failures. */
static inline char *totals(const renyi_eval *e)
{
    char *text = calloc(1, 1 << 16), *to = text;
    assert_non_null(text);
    for (uint32_t p = 0; p < renyi_eval_policy_count(e); p++) {
        renyi_eval_result r;
        renyi_eval_get_result(e, p, &r);
        to += sprintf(to, "%s: %d of %d, %d, %d failed, loss %.17g, %.9g GMACs, %.9g done\n",
                      r.policy, (int)r.n_top1, (int)r.images, (int)r.n_top5, (int)r.failed, r.loss,
                      r.gmacs, r.gmacs_executed);
        for (size_t i = 0; i < PHOTOS; i++) {
            renyi_eval_sample s;
            if (!renyi_eval_get_sample(e, p, i, &s)) continue;
            to += sprintf(to, "%s %u %u %u %u %u%u %.9g %.17g\n", s.file, s.label, s.prediction,
                          s.top[1], s.top[4], s.is_top1, s.is_top5, s.margin, s.loss);
        }
    }
    for (size_t i = 0; i < renyi_eval_failure_count(e); i++) {
        renyi_eval_failure f;
        renyi_eval_get_failure(e, i, &f);
        to += sprintf(to, "%s: %s\n", f.file, f.message);
    }
    return text;
}

static inline void assert_totals(const renyi_eval *e, const char *want)
{
    char *got = totals(e);
    assert_string_equal(got, want);
    free(got);
}

static inline int fixture_open(void **state)
{
    (void)state;
    const renyi_init_options init = {.struct_size = sizeof init,
                                     .seed = 1,
                                     .n_classes = CLASSES,
                                     .dim = 64,
                                     .n_blocks = 2,
                                     .n_heads = 2};
    renyi_error err = {0};
    strcpy(fixture.root, "/tmp/renyi_eval_XXXXXX");
    if (!mkdtemp(fixture.root) || mkdir(at("photos"), 0777)) return -1;
    for (int i = 0; i < PHOTOS; i++) make_photo(i);
    if (renyi_model_init_file(at("m.safetensors"), "vit_tiny_patch16_224", &init, &err) ||
        renyi_model_open(&fixture.model, at("m.safetensors"), NULL, &err) ||
        renyi_dataset_open(&fixture.data, at("photos"), fixture.model, NULL, &err)) {
        printf("%s\n", err.message);
        return -1;
    }
    return 0;
}

static inline int fixture_close(void **state)
{
    char command[600];
    (void)state;
    renyi_dataset_free(fixture.data);
    renyi_model_free(fixture.model);
    snprintf(command, sizeof command, "rm -rf '%s'", fixture.root);
    return system(command);
}

#endif
