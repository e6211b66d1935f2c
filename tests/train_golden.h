/* train_golden.h - what the tests against PyTorch share: the files that tools/ref/ wrote into
 * tests/golden_train, the pictures of its formula, a net with the weights of a file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_TRAIN_GOLDEN_H
#define RENYI_TESTS_TRAIN_GOLDEN_H

#include "base/rng.h"
#include "engine/policy.h"
#include "formats/safetensors.h"
#include "train/net.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_ok(expr)                                                  \
    do {                                                                 \
        renyi_error e_ = {0};                                            \
        renyi_error *const err = &e_;                                    \
        if ((expr) != RENYI_OK) fail_msg("%s: %s", #expr, err->message); \
    } while (0)

static inline const char *golden_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/golden_train/%s.safetensors", RENYI_SOURCE_DIR, name);
    return path;
}

/* A tensor of the file as floats; NULL if there is none. free() it. */
static inline float *golden_floats(const ry_tensors *set, const char *name)
{
    const ry_tensor *t = ry_tensors_find(set, name);
    if (!t) return NULL;
    float *out = malloc(ry_tensor_elements(t) * sizeof *out);
    assert_ok(ry_tensor_to_f32(t, out, err));
    return out;
}

/* noise() of tools/ref/tiny_vit.py: uniform in [-2, 2). */
static inline void golden_noise(float *out, size_t n, uint64_t seed)
{
    ry_rng r = ry_rng_new(seed);
    for (size_t i = 0; i < n; i++) out[i] = (float)(4.0 * ry_rng_uniform(&r) - 2.0);
}

/* A net with the weights of a golden model, ready for a forward pass; ry_net_free it. */
static inline ry_net *golden_net(const char *model, const ry_net_options *opt)
{
    ry_checkpoint ckpt;
    ry_vit_config config;
    ry_net *net = NULL;
    int new_head = 0;
    assert_ok(ry_checkpoint_open(&ckpt, golden_path(model), NULL, NULL, err));
    assert_ok(ry_vit_configure(&config, &ckpt, 0, err));
    assert_ok(ry_net_new(&net, &config, opt, NULL, err));
    assert_ok(ry_net_load(net, &ckpt, &new_head, err));
    assert_false(new_head);
    ry_checkpoint_close(&ckpt, NULL);
    return net;
}

static inline void golden_prune(ry_net *net, const char *text)
{
    ry_policy policy;
    assert_ok(ry_policy_for(&policy, text, ry_net_config(net), ry_net_patches(net), err));
    assert_ok(ry_net_prune(net, &policy, err));
}

#endif
