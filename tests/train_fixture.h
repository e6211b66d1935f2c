/* train_fixture.h - made-up photos of four colours and runs of a toy model, for tests of training.
 * Define _GNU_SOURCE or _POSIX_C_SOURCE 200809L before the first include.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_FIXTURE_H
#define TRAIN_FIXTURE_H

#include "renyi/train.h"

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

enum { TOY_CLASSES = 4, TOY_PHOTOS = 32, TOY_VAL = 12, MOST_STEPS = 64 };

static char toy_root[64];

/* Path of `name` in the folder of the test; good until the eighth next call. */
static inline const char *at(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", toy_root, name);
    return path;
}

/* Noise around a colour. */
static inline void make_photo(const char *part, int i)
{
    static const int colours[TOY_CLASSES][3] = {
        {200, 60, 60}, {60, 200, 60}, {60, 60, 200}, {180, 180, 60}};
    char name[96];
    snprintf(name, sizeof name, "%s/colour%d", part, i % TOY_CLASSES);
    mkdir(at(name), 0777);
    snprintf(name, sizeof name, "%s/colour%d/%02d.ppm", part, i % TOY_CLASSES, i);
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    uint32_t state = (uint32_t)i * 977 + (part[0] == 'v');
    fputs("P6\n24 20\n255\n", f);
    for (int k = 0; k < 3 * 24 * 20; k++) {
        state = state * 1664525u + 1013904223u;
        putc(colours[i % TOY_CLASSES][k % 3] + (int)(state >> 24) / 4 - 32, f);
    }
    fclose(f);
}

static inline int toys_open(void **state)
{
    (void)state;
    strcpy(toy_root, "/tmp/renyi_train_XXXXXX");
    if (!mkdtemp(toy_root) || mkdir(at("train"), 0777) || mkdir(at("val"), 0777)) return -1;
    for (int i = 0; i < TOY_PHOTOS; i++) make_photo("train", i);
    for (int i = 0; i < TOY_VAL; i++) make_photo("val", i);
    return 0;
}

static inline int toys_close(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", toy_root);
    return system(command);
}

/* What a run said. */
typedef struct toy_run {
    double loss[MOST_STEPS]; /* of update i + 1 */
    uint64_t first, last;    /* updates that were seen */
    uint64_t stop_after;     /* 0 = never */
    renyi_train_result result;
    renyi_error err;
    char notes[512], data[128], val[128], out[128];
} toy_run;

static inline int toy_on_step(void *user, const renyi_train_step *s)
{
    toy_run *r = user;
    assert_true(s->step >= 1 && s->step <= MOST_STEPS);
    if (!r->first) r->first = s->step;
    r->last = s->step;
    r->loss[s->step - 1] = s->loss;
    return r->stop_after && s->step >= r->stop_after;
}

static inline void toy_on_note(void *user, const char *text)
{
    snprintf(((toy_run *)user)->notes, sizeof((toy_run *)user)->notes, "%s", text);
}

/* A toy of 2 blocks on 16 patches, with everything random switched on. */
static inline void toy_options(renyi_train_options *opt, toy_run *r, const char *out)
{
    static const char *const settings[] = {"arch",
                                           "vit_tiny_patch8_32",
                                           "dim",
                                           "32",
                                           "heads",
                                           "2",
                                           "depth",
                                           "2",
                                           "mlp-dim",
                                           "64",
                                           "batch-size",
                                           "8",
                                           "epochs",
                                           "3",
                                           "lr",
                                           "2e-3",
                                           "ema",
                                           "0.9",
                                           "drop-path",
                                           "0.2",
                                           "threads",
                                           "1",
                                           "seed",
                                           "7",
                                           "checkpoint-every",
                                           "3"};
    renyi_error err = {0};
    renyi_train_defaults(opt);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i += 2)
        if (renyi_train_set(opt, settings[i], settings[i + 1], &err)) fail_msg("%s", err.message);
    snprintf(r->data, sizeof r->data, "%s", at("train"));
    snprintf(r->val, sizeof r->val, "%s", at("val"));
    snprintf(r->out, sizeof r->out, "%s", at(out));
    opt->data = r->data;
    opt->val = r->val;
    opt->out = r->out;
    opt->user = r;
    opt->on_step = toy_on_step;
    opt->on_note = toy_on_note;
}

static inline void toy_set(renyi_train_options *opt, const char *name, const char *text)
{
    renyi_error err = {0};
    if (renyi_train_set(opt, name, text, &err)) fail_msg("%s", err.message);
}

static inline renyi_status toy_train(const renyi_train_options *opt, toy_run *r)
{
    renyi_train *t = NULL;
    renyi_status st = renyi_train_new(&t, opt, &r->err);
    if (!st) st = renyi_train_run(t, &r->err);
    if (t) renyi_train_get_result(t, &r->result);
    renyi_train_free(t);
    return st;
}

/* The whole file, to be freed. */
static inline char *read_bytes(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s", path);
    char *bytes = malloc(1 << 22);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 22, f);
    assert_true(*size < 1 << 22);
    fclose(f);
    return bytes;
}

static inline int same_files(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_bytes(a, &n), *y = read_bytes(b, &m);
    const int same = n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

#endif
