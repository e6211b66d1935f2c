/* net_replay.h - the cuts of a net once decided, kept while its weights move: the same tokens go
 * the same way, and only the weights of fused tokens follow, as the backward pass takes it. For one
 * thread. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_NET_REPLAY_H
#define RENYI_TESTS_NET_REPLAY_H

#include "train/net_state.h"

#include <string.h>

enum { REPLAY_BLOCKS = 4, REPLAY_IMAGES = 4, REPLAY_TOKENS = 64 };

typedef struct replay_cut {
    uint32_t source[REPLAY_TOKENS], target[REPLAY_TOKENS];
    float weight[REPLAY_TOKENS];
} replay_cut;

typedef struct replay {
    const ry_net *net;
    ry_token_hook inner;
    int known; /* 0 = remember what is decided, 1 = keep it */
    replay_cut cuts[REPLAY_BLOCKS][REPLAY_IMAGES];
} replay;

static inline void replay_needs(const void *self, uint32_t block, uint32_t n, ry_block_needs *out)
{
    const replay *r = self;
    r->inner.needs(r->inner.self, block, n, out);
}

static inline uint32_t replay_tiles(const void *self, uint32_t block, uint32_t phase)
{
    const replay *r = self;
    return r->inner.tiles(r->inner.self, block, phase);
}

/* What a fused token j weighs now, by the policy's own words. */
static inline float replay_weight(const replay *r, const ry_block_view *v, const ry_cut *cut,
                                  uint32_t j, float was)
{
    const ry_policy *p = &r->net->policy;
    double sum = 1e-6;
    if (p->weights == RY_FUSE_CLS || p->metric == RY_METRIC_CLS) return v->class_row[j];
    if (p->metric != RY_METRIC_COL && p->metric != RY_METRIC_CORRECT) return was;
    for (uint32_t k = 0; k < v->n_tokens; k++) sum += (double)cut->score[k];
    return (float)((double)cut->score[j] / sum);
}

static inline void replay_work(void *self, const ry_block_view *v, ry_cut *cut, uint32_t phase,
                               uint32_t tile)
{
    replay *r = self;
    replay_cut *c = &r->cuts[v->block][v->image];
    r->inner.work(r->inner.self, v, cut, phase, tile);
    if (tile + 1 < replay_tiles(r, v->block, phase) || replay_tiles(r, v->block, phase + 1)) return;
    if (!r->known) {
        memcpy(c->source, cut->source, cut->n_out * sizeof *c->source);
        memcpy(c->target, cut->target, v->n_tokens * sizeof *c->target);
        memcpy(c->weight, cut->weight, v->n_tokens * sizeof *c->weight);
        return;
    }
    memcpy(cut->source, c->source, cut->n_out * sizeof *c->source);
    memcpy(cut->target, c->target, v->n_tokens * sizeof *c->target);
    for (uint32_t j = 0; j < v->n_tokens; j++) {
        const int fused = c->target[j] != RY_NO_TOKEN && c->source[c->target[j]] == RY_NO_TOKEN;
        cut->weight[j] = fused ? replay_weight(r, v, cut, j, c->weight[j]) : c->weight[j];
    }
}

/* Stands between a net and its hook until ry_net_prune. */
static inline void replay_begin(replay *r, ry_net *net)
{
    memset(r, 0, sizeof *r);
    r->net = net;
    r->inner = net->hook;
    if (net->pruner)
        net->hook = (ry_token_hook){replay_needs, replay_tiles, replay_work, NULL, r, NULL};
}

#endif
