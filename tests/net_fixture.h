/* net_fixture.h - a tiny model as a net that learns and as a model of the engine, with the same
 * weights. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_NET_FIXTURE_H
#define RENYI_TESTS_NET_FIXTURE_H

#include "base/rng.h"
#include "engine/policy.h"
#include "train/net.h"

#include "vit_fixture.h"

#include <math.h>

enum { NET_MAX_IMAGES = 4, NET_SIDE = 48 };

typedef struct net_case {
    const char *arch; /* patches of 8 in a picture of 48: 36 patches */
    uint32_t n_blocks;
    const char *policy; /* NULL = none */
    uint32_t feature_dim;
    const char *pool; /* NULL, or "avg": mean of the normalised patches, by a config */
    uint32_t n_taps;  /* features after these blocks instead of at the end */
    uint32_t taps[2];
    int direct, forced;
} net_case;

/* Numbers in [-1, 1). */
static inline void net_fill(float *x, size_t n, uint64_t seed)
{
    ry_rng r = ry_rng_new(seed);
    for (size_t i = 0; i < n; i++) x[i] = (float)(2.0 * ry_rng_uniform(&r) - 1.0);
}

/* Writes the case's model and opens its checkpoint. */
static inline const char *net_write(const net_case *c)
{
    fixture f;
    fix_make_deep(&f, c->arch, c->n_blocks);
    for (size_t i = 0; i < f.n; i++) { /* tame, but with attention that has favourites */
        const int qkv = strstr(f.names[i], "qkv.weight") != NULL;
        const int norm = strstr(f.names[i], "norm") && strstr(f.names[i], "weight");
        float *x = (float *)(uintptr_t)f.t[i].data;
        for (size_t k = 0; k < f.t[i].bytes / 4; k++) x[k] *= norm ? 0.2f : qkv ? 2.0f : 0.6f;
    }
    if (c->pool) {
        f.meta[2] = "config";
        f.meta[3] = "{\"global_pool\": \"avg\", \"num_attention_heads\": 4}";
    }
    const char *path = fix_write(&f, "net.safetensors");
    fix_free(&f);
    return path;
}

/* The net of a model file; opt NULL = defaults with `images` a micro-batch. */
static inline ry_net *net_open(const net_case *c, const char *path, const ry_net_options *opt,
                               uint32_t images)
{
    ry_net_options o = {.micro_batch = images};
    ry_checkpoint ckpt = {0};
    ry_vit_config config;
    ry_policy policy;
    ry_net *net = NULL;
    int new_head = -1;
    if (opt) o = *opt;
    o.feature_dim = c->feature_dim;
    o.taps = c->taps;
    o.n_taps = c->n_taps;
    o.direct = c->direct;
    o.feature_prefix = 1;
    assert_ok(ry_checkpoint_open(&ckpt, path, NULL, NULL, err));
    assert_ok(ry_vit_configure(&config, &ckpt, 0, err));
    assert_ok(ry_net_new(&net, &config, &o, NULL, err));
    ry_net_init(net, 7);
    assert_ok(ry_net_load(net, &ckpt, &new_head, err));
    assert_int_equal(new_head, 0);
    ry_checkpoint_close(&ckpt, NULL);
    assert_ok(ry_net_update(net, err));
    if (c->policy) {
        assert_ok(ry_policy_for(&policy, c->policy, &config, ry_net_patches(net), err));
        assert_ok(ry_net_prune(net, &policy, err));
    }
    return net;
}

#endif
