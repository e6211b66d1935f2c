/* prune_model.h - random models that are deep enough for every policy of the paper, and runs of a
 * policy over a few made-up pictures: what the tests of whole pruned runs share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_PRUNE_MODEL_H
#define RENYI_TESTS_PRUNE_MODEL_H

#include "base/rng.h"
#include "vit_fixture.h"

#include <math.h>

enum { PM_BLOCKS = 12, PM_SIDE = 88, PM_PATCHES = 11 * 11, PM_IMAGES = 5 };
#define PM_VIT "vit_tiny_patch8_88"
#define PM_DISTILLED "deit_tiny_distilled_patch8_88"
#define PM_POOLED "vit_tiny_patch8_gap_88" /* no class token: the head reads the mean */
#define PM_PIXELS ((size_t)PM_SIDE * PM_SIDE * 3)

/* Every rule, metric, reduction and place; layers that touch, and the last block among them. A
 * fused or merged token meets every metric in a later cut. */
static const char *const pm_policies[] = {
    "naive p=8 layers=0-5 metric=cls",
    "naive p=8 layers=all metric=cls reduce=fuse",
    "naive p=9 layers=0-5,11 metric=col n=4",
    "naive p=8 layers=0-5 metric=col n=1 at=end",
    "naive p=8 layers=0,11 metric=col n=inf at=end reduce=fuse",
    "naive p=8 layers=0-5 metric=col n=2.5 heads=each",
    "naive p=8 layers=0-5 metric=col n=3 class_row=no diagonal=no order=position",
    "naive p=8 layers=all metric=correct n=4 c=0.4",
    "naive p=8 layers=0-5 metric=renyi n=2",
    "naive p=8 layers=0-5 metric=renyi n=inf heads=each",
    "naive p=8 layers=0-5 metric=shannon diagonal=no",
    "naive p=8 layers=0-5 metric=colv n=4",
    "naive p=8 layers=0-5 metric=random seed=5",
    "naive p=8 layers=0-5 metric=col n=4 reduce=merge",
    "evit keep=0.7 layers=0,3,6 metric=cls fuse",
    "evit keep=0.7 layers=0,3,6 metric=cls reduce=drop",
    "evit keep=0.7 layers=0,3,6 metric=cls reduce=merge",
    "evit keep=0.7 layers=3,6,9 metric=correct n=2 c=0.8 fuse",
    "evit keep=0.7 layers=3,6,9 metric=correct n=2 c=0.8 rounding=paper reduce=merge",
    "evit keep=0.7 layers=3,6,9 metric=col n=4 fuse weights=score",
    "evit keep=0.7 layers=3,6,9 metric=renyi n=2 fuse weights=score",
    "evit keep=0.7 layers=3,6,9 metric=random fuse",
    "evit keep=0.7 layers=3,6,9 metric=random reduce=merge at=end",
    "evit keep=0.7,0.8,0.5 layers=0,3,6 metric=colv n=2 reduce=drop,merge,fuse",
    "evit tokens=40 layers=4 metric=col reduce=merge",
    "mosaic keep=0.7 layers=0,3,6",
    "mosaic keep=0.5 layers=3,6,9",
    "mosaic p=16 layers=0-5",
    "mosaic p=3 layers=all",
    "tome r=5",
    "tome r=8 layers=0-5",
    "ats keep=0.7 layers=3,6,9",
    "tca drop=0.1 layers=0,3,6 metric=col n=4",
    "tca drop=0.1 layers=3,6,11 metric=cls start=5",
};
enum { PM_POLICIES = sizeof pm_policies / sizeof *pm_policies };

/* Writes a model of 12 blocks; its path is good until the fourth next one. */
static inline const char *pm_write(const char *architecture, const char *name)
{
    static fixture f;
    ry_rng r = ry_rng_new(17);
    fix_make_deep(&f, architecture, PM_BLOCKS);
    for (size_t i = 0; i < f.n; i++) { /* a new model has none, and then nobody would miss one */
        float *data = (float *)(uintptr_t)f.t[i].data;
        if (!strstr(f.names[i], ".bias")) continue;
        for (size_t k = 0; k < f.t[i].bytes / 4; k++) data[k] = 0.1f * (float)ry_rng_normal(&r);
    }
    const char *path = fix_write(&f, name);
    fix_free(&f);
    return path;
}

static inline renyi_model *pm_open(const char *architecture, const renyi_allocator *al,
                                   renyi_cpu level)
{
    renyi_model *m = NULL;
    renyi_options opt = {.struct_size = sizeof opt, .cpu = level};
    if (al) opt.allocator = *al;
    const char *path = pm_write(architecture, "prune.safetensors");
    assert_ok(renyi_model_open(&m, path, &opt, err));
    unlink(path);
    return m;
}

/* [PM_IMAGES] pictures of smooth shades and noise, each different. */
static inline const uint8_t *pm_pixels(void)
{
    static uint8_t pixels[PM_IMAGES * PM_PIXELS];
    static int made;
    if (made++) return pixels;
    ry_rng r = ry_rng_new(11);
    for (size_t i = 0; i < sizeof pixels; i++) {
        const size_t image = i / PM_PIXELS, at = i % PM_PIXELS;
        const size_t row = at / (PM_SIDE * 3), column = at % (PM_SIDE * 3) / 3;
        const double wave = sin((double)(row * (image + 1)) / 9.0) * cos((double)column / 7.0);
        pixels[i] = (uint8_t)(128.0 + 90.0 * wave + (double)(ry_rng_next(&r) >> 59));
    }
    return pixels;
}

/* A session, or NULL when the policy needs a class token and the model has none. */
static inline renyi_session *pm_session(const renyi_model *m, const char *policy, uint32_t batch,
                                        uint32_t threads, uint32_t trace)
{
    renyi_session *s;
    renyi_error err = {0};
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = batch,
                                       .n_threads = threads,
                                       .policy = policy,
                                       .trace = trace};
    const renyi_status st = renyi_session_new(&s, m, &opt, &err);
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    if (st == RENYI_ERR_ARG && !info.n_prefix && strstr(err.message, "class token")) return NULL;
    if (st) fail_msg("%s: %s", policy, err.message);
    return s;
}

/* All pictures, `batch` at a time; logits: [PM_IMAGES, FIX_CLASSES]. 0: as above. */
static inline int pm_run(const renyi_model *m, const char *policy, uint32_t batch, uint32_t threads,
                         uint32_t trace, float *logits)
{
    renyi_session *s = pm_session(m, policy, batch, threads, trace);
    if (!s) return 0;
    for (uint32_t i = 0; i < PM_IMAGES; i += batch) {
        const uint32_t n = PM_IMAGES - i < batch ? PM_IMAGES - i : batch;
        assert_ok(
            renyi_run_pixels(s, pm_pixels() + i * PM_PIXELS, n, logits + i * FIX_CLASSES, err));
    }
    renyi_session_free(s);
    for (size_t i = 0; i < PM_IMAGES * FIX_CLASSES; i++) assert_true(isfinite(logits[i]));
    return 1;
}

static inline void pm_same(const char *what, const float *a, const float *b)
{
    if (memcmp(a, b, PM_IMAGES * FIX_CLASSES * sizeof *a) == 0) return;
    double worst = 0.0;
    for (size_t i = 0; i < PM_IMAGES * FIX_CLASSES; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    fail_msg("%s: logits differ by up to %g", what, worst);
}

#endif
