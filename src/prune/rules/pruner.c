/* pruner.c - implements the token hook of a policy: finds the cut of a block and calls the
 * rule's functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/pruner.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "prune/rules/own_rules.h"

#include <assert.h>
#include <string.h>

static const ry_rule_ops *ops_of(ry_rule rule)
{
    switch (rule) {
    case RY_RULE_NAIVE:
    case RY_RULE_EVIT:
    case RY_RULE_OWN: return &ry_rule_select;
    case RY_RULE_OWN_CUT: return &ry_rule_own_cut;
    case RY_RULE_MOSAIC: return &ry_rule_mosaic;
    case RY_RULE_TOME: return &ry_rule_tome;
    case RY_RULE_ATS: return &ry_rule_ats;
    case RY_RULE_TCA: return &ry_rule_tca;
    default: return NULL; /* none, and those of a LLaVA: visual_rules.h, lm_rule.h */
    }
}

int ry_pruner_is_idle(const ry_pruner *p, uint32_t cut)
{
    const uint32_t in = p->tokens_in[cut], patches = in - p->shape.n_prefix;
    if (p->policy.likeness > 0) return ry_policy_patches_kept(&p->policy, cut, patches) == patches;
    return p->tokens_out[cut] == in;
}

/* The cut of a block; n_cuts if there is none or if it removes nothing. A cut that removes
 * nothing has no needs, so the run is bit-identical to the dense one. (Fusing a single token
 * removes nothing either. EViT's code does it; we do not, because it only scales that token
 * down.) */
static uint32_t cut_of(const ry_pruner *p, uint32_t block)
{
    const uint32_t n = p->policy.n_cuts;
    for (uint32_t i = 0; p->ops && i < n; i++)
        if (p->policy.cuts[i].layer == block) return ry_pruner_is_idle(p, i) ? n : i;
    return n;
}

static void hook_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const ry_pruner *p = self;
    const uint32_t cut = cut_of(p, block);
    *out = (ry_block_needs){.n_after = n_tokens, .log_factor = 1.0f, .logit_factor = 1.0f};
    if (cut == p->policy.n_cuts) return;
    assert(n_tokens == p->tokens_in[cut]);
    out->place = p->policy.place == RY_PLACE_END ? RY_CUT_END : RY_CUT_MID;
    out->n_after = p->tokens_out[cut];
    p->ops->needs(p, cut, out);
}

static uint32_t hook_tiles(const void *self, uint32_t block, uint32_t phase)
{
    const ry_pruner *p = self;
    const uint32_t cut = cut_of(p, block);
    return cut == p->policy.n_cuts ? 0 : p->ops->tiles(p, cut, p->tokens_in[cut], phase);
}

static void hook_work(void *self, const ry_block_view *view, ry_cut *out, uint32_t phase,
                      uint32_t tile)
{
    ry_pruner *p = self;
    const uint32_t cut = cut_of(p, view->block);
    assert(cut < p->policy.n_cuts && view->image < p->max_batch);
    p->ops->work(p, cut, view, out, phase, tile);
}

static void count_tokens(ry_pruner *p)
{
    uint32_t n = p->shape.n_prefix + p->shape.n_patches;
    for (uint32_t i = 0; i < p->policy.n_cuts; i++) {
        p->tokens_in[i] = n;
        p->tokens_out[i] = n = ry_policy_tokens_after(&p->policy, i, n, p->shape.n_prefix);
    }
}

static renyi_status take_scratch(ry_pruner *p, const renyi_allocator *al, renyi_error *err)
{
    size_t total;
    p->scratch_each = p->ops->scratch ? p->ops->scratch(p) : 0;
    if (!ry_add_size(p->scratch_each, RY_ALIGN - 1, &p->scratch_each) ||
        !ry_mul_size(p->scratch_each &= ~(size_t)(RY_ALIGN - 1), p->max_batch, &total))
        return ry_fail_nomem(err, SIZE_MAX);
    p->scratch = ry_alloc(al, total, 1);
    p->image_keys = ry_calloc(al, p->max_batch, sizeof *p->image_keys);
    if (!p->scratch || !p->image_keys) return ry_fail_nomem(err, total);
    return p->policy.own ? ry_own_new(p, al, err) : RENYI_OK;
}

renyi_status ry_pruner_new(ry_pruner **out, const ry_pruner_spec *spec, const renyi_allocator *al,
                           renyi_error *err)
{
    *out = NULL;
    const ry_rule_ops *ops = ops_of(spec->policy->rule);
    ry_pruner *p = ry_calloc(al, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->policy = *spec->policy;
    p->shape = spec->shape;
    p->dim = spec->dim;
    p->n_heads = spec->n_heads;
    p->max_batch = spec->max_batch;
    p->ops = ops;
    ry_kernels_init(&p->kernels, spec->level);
    count_tokens(p);
    if (ops && p->max_batch) {
        const renyi_status st = take_scratch(p, al, err);
        if (st != RENYI_OK) {
            ry_pruner_free(p, al);
            return st;
        }
    }
    *out = p;
    return RENYI_OK;
}

void ry_pruner_free(ry_pruner *p, const renyi_allocator *al)
{
    if (!p) return;
    ry_free(al, p->scratch);
    ry_free(al, p->image_keys);
    ry_own_free(p, al);
    ry_free(al, p);
}

size_t ry_pruner_bytes(const ry_pruner *p) { return p->scratch_each * p->max_batch; }

ry_token_hook ry_pruner_hook(ry_pruner *p)
{
    return (ry_token_hook){hook_needs, hook_tiles, hook_work, NULL, p, NULL};
}

void ry_pruner_name_images(ry_pruner *p, const uint64_t *keys, uint32_t n)
{
    assert(n <= p->max_batch);
    if (p->image_keys) memcpy(p->image_keys, keys, n * sizeof *keys); /* NULL: no rule uses them */
}
