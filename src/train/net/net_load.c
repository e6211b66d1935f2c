/* net_load.c - first values of the parameters: random as in timm, or from a checkpoint of any
 * layout.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/status.h"
#include "model/common/tensor_quant.h"
#include "train/net/net_state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- random -----------------------------------------------------------------------------------
 */

#define DEVIATION 0.02 /* of timm's trunc_normal_ */

static int is_norm_weight(ry_tensor_role role)
{
    return role == RY_NORM_W || role == RY_NORM1_W || role == RY_NORM2_W ||
           role == (ry_tensor_role)RY_FEATURE_NORM_W;
}

void ry_net_init(ry_net *net, uint64_t seed)
{
    const ry_params *p = &net->params;
    for (uint32_t i = 0; i < p->n; i++) {
        const ry_param *q = &p->list[i];
        float *value = p->value + q->offset;
        ry_rng mix = ry_rng_new(seed);
        ry_rng rng = ry_rng_new(ry_rng_next(&mix) ^ ry_hash(q->name, strlen(q->name)));
        for (size_t k = 0; k < q->size; k++)
            value[k] = q->n_dims > 1 ? (float)(ry_rng_truncated_normal(&rng) * DEVIATION)
                       : is_norm_weight(q->role) ? 1.0f
                                                 : 0.0f;
    }
    net->n_last = 0;
}

/* ---- from a checkpoint ------------------------------------------------------------------------
 */

typedef struct loader {
    ry_net *net;
    ry_tensor_naming naming;
    const ry_tensors *set;
    renyi_error *err;
} loader;

static renyi_status check_elements(const loader *ld, const ry_tensor *t, size_t wanted,
                                   const ry_param *q)
{
    if (ry_tensor_elements(t) == wanted) return RENYI_OK;
    return ry_fail(ld->err, RENYI_ERR_ARG, -1,
                   "tensor '%.100s' has %" PRIu64 " elements, but %.60s of the model to be trained "
                   "has %zu",
                   t->name, ry_tensor_elements(t), q->name, wanted);
}

static int is_head(ry_tensor_role role) { return role >= RY_HEAD_W && role <= RY_HEAD_DIST_B; }

/* The roles of the tensors that make up `q`: three for qkv in Hugging Face's layout, else one. */
static uint32_t roles_of(const loader *ld, const ry_param *q, ry_tensor_role roles[3])
{
    static const ry_tensor_role w[] = {RY_Q_W, RY_K_W, RY_V_W}, b[] = {RY_Q_B, RY_K_B, RY_V_B};
    if (ld->naming.layout == RY_LAYOUT_TIMM || (q->role != RY_QKV_W && q->role != RY_QKV_B)) {
        roles[0] = q->role;
        return 1;
    }
    memcpy(roles, q->role == RY_QKV_W ? w : b, sizeof w);
    return 3;
}

static renyi_status load_param(const loader *ld, const ry_param *q)
{
    ry_tensor_role roles[3];
    const uint32_t parts = roles_of(ld, q, roles);
    const size_t each = q->size / parts;
    float *value = ld->net->params.value + q->offset;
    for (uint32_t k = 0; k < parts; k++) {
        const ry_tensor *t = ry_tensor_of_role(&ld->naming, ld->set, roles[k], q->block);
        if (!t && q->role != RY_QKV_B)
            return ry_fail(ld->err, RENYI_ERR_FORMAT, -1, "the checkpoint has no tensor for %.100s",
                           q->name);
        if (!t) {
            memset(value + k * each, 0, each * sizeof *value);
            continue;
        }
        RY_TRY(check_elements(ld, t, each, q));
        RY_TRY(ry_tensor_read(value + k * each, t, ld->set, ld->err));
        ry_tensors_drop_pages(ld->set, t);
    }
    return RENYI_OK;
}

/* Copies positions of the prefix and resamples those of the patches to the net's grid. */
static renyi_status load_positions(const loader *ld, const ry_param *q)
{
    const ry_net *net = ld->net;
    const ry_vit_config *c = &net->config;
    const ry_tensor *t = ry_tensor_of_role(&ld->naming, ld->set, RY_POS_EMBED, 0);
    const size_t prefix = (size_t)c->n_prefix * c->dim;
    float *value = net->params.value + q->offset;
    if (!t || t->n_dims != 3 || t->shape[2] != c->dim || t->shape[1] <= c->n_prefix)
        return ry_fail(ld->err, RENYI_ERR_ARG, -1,
                       "the checkpoint has no positions of width %u for patches and %u tokens "
                       "before them",
                       c->dim, c->n_prefix);
    const uint32_t stored = (uint32_t)lround(sqrt((double)(t->shape[1] - c->n_prefix)));
    if ((uint64_t)stored * stored != t->shape[1] - c->n_prefix)
        return ry_fail(ld->err, RENYI_ERR_ARG, -1,
                       "tensor '%.100s' has %" PRIu64 " positions; a square and %u more wanted",
                       t->name, t->shape[1], c->n_prefix);
    const size_t n = (size_t)ry_tensor_elements(t);
    float *read = ry_alloc(&net->al, n, sizeof *read);
    if (!read) return ry_fail_nomem(ld->err, n * sizeof *read);
    renyi_status st = ry_tensor_read(read, t, ld->set, ld->err);
    if (!st) memcpy(value, read, prefix * sizeof *value);
    if (!st)
        st = ry_pos_embed_resample(
            value + prefix, c->image_size / c->patch_size, read + prefix, stored, c->dim,
            ld->naming.layout == RY_LAYOUT_TIMM ? RY_POS_ANTIALIAS : RY_POS_PLAIN, &net->al,
            ld->err);
    ry_free(&net->al, read);
    return st;
}

/* 1 if the heads of the checkpoint have the net's number of classes. */
static int heads_fit(const loader *ld)
{
    const ry_net *net = ld->net;
    static const ry_tensor_role roles[] = {RY_HEAD_W, RY_HEAD_DIST_W};
    for (uint32_t k = 0; k < (ry_net_is_distilled(net) ? 2u : 1u); k++) {
        const ry_tensor *t = ry_tensor_of_role(&ld->naming, ld->set, roles[k], 0);
        if (!t || t->n_dims != 2 || t->shape[0] != net->config.n_classes) return 0;
    }
    return 1;
}

renyi_status ry_net_load(ry_net *net, const ry_checkpoint *ckpt, int *new_head, renyi_error *err)
{
    loader ld = {.net = net, .set = ckpt->tensors, .err = err};
    if (!ry_vit_naming_find(&ld.naming, ld.set))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "no Vision Transformer: %s not found",
                       ry_vit_naming_looked_for());
    if (ld.naming.n_blocks != net->config.n_blocks)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the checkpoint has %u blocks, the model to be trained has %u",
                       ld.naming.n_blocks, net->config.n_blocks);
    const int heads = heads_fit(&ld);
    if (new_head) *new_head = !heads;
    net->n_last = 0;
    for (uint32_t i = 0; i < net->params.n; i++) {
        const ry_param *q = &net->params.list[i];
        if (!q->is_model || (is_head(q->role) && !heads)) continue;
        RY_TRY(q->role == RY_POS_EMBED ? load_positions(&ld, q) : load_param(&ld, q));
    }
    return RENYI_OK;
}
