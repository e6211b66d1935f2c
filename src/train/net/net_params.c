/* net_params.c - the parameters of a net: their list, values and gradients, and first values,
 * random as in timm or from a checkpoint of any layout.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/status.h"
#include "kernels/rows/rows.h"
#include "model/common/tensor_quant.h"
#include "train/net/net_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- list ---------------------------------------------------------------------------------- */

enum { ALIGN = 16 }; /* floats: a cache line */

typedef struct builder {
    ry_params *p;
    uint32_t head_in; /* columns of a head */
    uint64_t extents[RY_X_COUNT];
} builder;

static void place_param(ry_params *p, ry_param *q)
{
    q->size = 1;
    for (uint32_t i = 0; i < q->n_dims; i++) q->size *= (size_t)q->shape[i];
    q->offset = p->total;
    p->total += (q->size + ALIGN - 1) / ALIGN * ALIGN;
}

static void add_tensor(void *user, const ry_tensor_naming *n, const ry_tensor_name *row,
                       uint32_t block)
{
    const builder *b = user;
    ry_param *q = &b->p->list[b->p->n++];
    *q = (ry_param){.role = row->role, .block = block, .is_model = 1};
    ry_tensor_name_write(q->name, n, row, block);
    for (; q->n_dims < 4 && row->shape[q->n_dims]; q->n_dims++)
        q->shape[q->n_dims] = b->extents[row->shape[q->n_dims]];
    if (row->role == RY_HEAD_W) q->shape[1] = b->head_in;
    q->decay = q->n_dims > 1 && row->role > RY_POS_EMBED && row->role != RY_POOL_PROBE; /* tokens */
    place_param(b->p, q);
}

/* A parameter that only training uses. shape: [n_dims] */
static void add_training_param(ry_params *p, int role, uint32_t tap, const uint64_t *shape,
                               uint32_t n_dims, const char *name)
{
    ry_param *q = &p->list[p->n++];
    *q = (ry_param){
        .role = (ry_tensor_role)role, .block = tap, .n_dims = n_dims, .decay = n_dims == 2};
    snprintf(q->name, sizeof q->name, "%s", name);
    memcpy(q->shape, shape, n_dims * sizeof *shape);
    place_param(p, q);
}

static void add_feature(ry_params *p, const ry_net *net)
{
    const uint64_t shape[2] = {net->feature_dim, net->config.dim};
    add_training_param(p, RY_FEATURE_W, 0, shape, 2, "feature_proj.weight");
    add_training_param(p, RY_FEATURE_B, 0, shape, 1, "feature_proj.bias");
}

static void add_tap(ry_params *p, const ry_net *net, uint32_t tap)
{
    static const char *const parts[] = {"norm.weight", "norm.bias", "proj.weight", "proj.bias"};
    static const int roles[] = {RY_FEATURE_NORM_W, RY_FEATURE_NORM_B, RY_FEATURE_W, RY_FEATURE_B};
    const uint64_t width[1] = {net->config.dim}, proj[2] = {net->feature_dim, net->config.dim};
    for (int i = 0; i < 4; i++) {
        char name[48];
        snprintf(name, sizeof name, "feature_taps.%u.%s", net->taps[tap].block, parts[i]);
        add_training_param(p, roles[i], tap, i < 2 ? width : proj, i == 2 ? 2 : 1, name);
    }
}

const ry_param *ry_params_find(const ry_params *p, ry_tensor_role role, uint32_t block)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].role == role && p->list[i].block == block) return &p->list[i];
    return NULL;
}

static ry_net_matrix pool_matrix(const ry_params *p, ry_tensor_role w, ry_tensor_role b)
{
    return (ry_net_matrix){.w = ry_params_find(p, w, 0), .b = ry_params_find(p, b, 0)};
}

static void find_pool(ry_net_pool *pool, const ry_params *p)
{
    pool->probe = ry_params_find(p, RY_POOL_PROBE, 0);
    pool->q_w = ry_params_find(p, RY_POOL_Q_W, 0);
    pool->q_b = ry_params_find(p, RY_POOL_Q_B, 0);
    pool->kv = pool_matrix(p, RY_POOL_KV_W, RY_POOL_KV_B);
    pool->proj = pool_matrix(p, RY_POOL_PROJ_W, RY_POOL_PROJ_B);
    pool->fc1 = pool_matrix(p, RY_POOL_FC1_W, RY_POOL_FC1_B);
    pool->fc2 = pool_matrix(p, RY_POOL_FC2_W, RY_POOL_FC2_B);
    pool->norm.w = ry_params_find(p, RY_POOL_NORM_W, 0);
    pool->norm.b = ry_params_find(p, RY_POOL_NORM_B, 0);
}

static void find_params(ry_net *net)
{
    const ry_params *p = &net->params;
    net->pos = ry_params_find(p, RY_POS_EMBED, 0);
    net->token[0] = ry_params_find(p, RY_CLS_TOKEN, 0);
    net->token[1] = ry_params_find(p, RY_DIST_TOKEN, 0);
    net->token[2] = ry_params_find(p, RY_REGISTERS, 0);
    net->norm.w = ry_params_find(p, RY_NORM_W, 0);
    net->norm.b = ry_params_find(p, RY_NORM_B, 0);
    net->pre_norm.w = ry_params_find(p, RY_PRE_NORM_W, 0);
    net->pre_norm.b = ry_params_find(p, RY_PRE_NORM_B, 0);
    find_pool(&net->pool, p);
    net->patch_embed.w = ry_params_find(p, RY_PATCH_W, 0);
    net->patch_embed.b = ry_params_find(p, RY_PATCH_B, 0);
    net->head[0].w = ry_params_find(p, RY_HEAD_W, 0);
    net->head[0].b = ry_params_find(p, RY_HEAD_B, 0);
    net->head[1].w = ry_params_find(p, RY_HEAD_DIST_W, 0);
    net->head[1].b = ry_params_find(p, RY_HEAD_DIST_B, 0);
    if (ry_net_final_features(net)) {
        net->feature.w = ry_params_find(p, (ry_tensor_role)RY_FEATURE_W, 0);
        net->feature.b = ry_params_find(p, (ry_tensor_role)RY_FEATURE_B, 0);
    }
    for (uint32_t i = 0; !net->direct && i < net->n_taps; i++) {
        ry_net_tap *t = &net->taps[i];
        t->norm.w = ry_params_find(p, (ry_tensor_role)RY_FEATURE_NORM_W, i);
        t->norm.b = ry_params_find(p, (ry_tensor_role)RY_FEATURE_NORM_B, i);
        t->proj.w = ry_params_find(p, (ry_tensor_role)RY_FEATURE_W, i);
        t->proj.b = ry_params_find(p, (ry_tensor_role)RY_FEATURE_B, i);
    }
    for (uint32_t i = 0; i < net->config.n_blocks; i++) {
        ry_net_block *b = &net->blocks[i];
        b->norm1.w = ry_params_find(p, RY_NORM1_W, i);
        b->norm1.b = ry_params_find(p, RY_NORM1_B, i);
        b->norm2.w = ry_params_find(p, RY_NORM2_W, i);
        b->norm2.b = ry_params_find(p, RY_NORM2_B, i);
        b->qkv.w = ry_params_find(p, RY_QKV_W, i);
        b->qkv.b = ry_params_find(p, RY_QKV_B, i);
        b->proj.w = ry_params_find(p, RY_PROJ_W, i);
        b->proj.b = ry_params_find(p, RY_PROJ_B, i);
        b->proj.gamma = ry_params_find(p, RY_SCALE1, i);
        b->fc1.w = ry_params_find(p, RY_FC1_W, i);
        b->fc1.b = ry_params_find(p, RY_FC1_B, i);
        b->fc2.w = ry_params_find(p, RY_FC2_W, i);
        b->fc2.b = ry_params_find(p, RY_FC2_B, i);
        b->fc2.gamma = ry_params_find(p, RY_SCALE2, i);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct file_builder {
    const ry_params *from;
    ry_param *list;
    uint32_t n;
} file_builder;

/* The parameter that a tensor of this role is part of; *part counts the tensors before it in it. */
static const ry_param *whole_of(const ry_params *p, ry_tensor_role role, uint32_t block,
                                uint32_t *part)
{
    *part = role == RY_K_W || role == RY_K_B ? 1 : role == RY_V_W || role == RY_V_B ? 2 : 0;
    if (role == RY_Q_W || role == RY_K_W || role == RY_V_W) role = RY_QKV_W;
    if (role == RY_Q_B || role == RY_K_B || role == RY_V_B) role = RY_QKV_B;
    return ry_params_find(p, role, block);
}

static void add_file_tensor(void *user, const ry_tensor_naming *n, const ry_tensor_name *row,
                            uint32_t block)
{
    file_builder *b = user;
    uint32_t part;
    const ry_param *whole = whole_of(b->from, row->role, block, &part);
    const uint32_t parts = whole->role != row->role ? 3 : 1;
    ry_param *q = &b->list[b->n++];
    *q = *whole;
    ry_tensor_name_write(q->name, n, row, block);
    q->shape[0] /= parts;
    q->size /= parts;
    q->offset += part * q->size;
}

/* The names of transformers' DINOv2. Its state dict has a mask token, which no classifier reads: it
 * stays zero, the first value that transformers gives it. */
static renyi_status name_as_dinov2(ry_net *net, renyi_error *err)
{
    ry_params *p = &net->params;
    const ry_tensor_naming n = ry_vit_naming_dinov2(&net->config);
    const size_t most = (size_t)p->n + 4 * (size_t)net->config.n_blocks + 1;
    file_builder b = {.from = p, .list = ry_calloc(&net->al, most, sizeof *b.list)};
    p->files = b.list;
    if (!b.list) return ry_fail_nomem(err, most * sizeof *b.list);
    ry_tensor_names_each(&n, add_file_tensor, &b);
    ry_param *mask = &b.list[b.n++];
    *mask = (ry_param){.n_dims = 2, .shape = {1, net->config.dim}, .is_model = 1};
    snprintf(mask->name, sizeof mask->name, "%sembeddings.mask_token", n.prefix);
    place_param(p, mask);
    for (uint32_t i = 0; i < p->n; i++)
        if (!p->list[i].is_model) b.list[b.n++] = p->list[i];
    p->n_files = b.n;
    return RENYI_OK;
}

renyi_status ry_net_make_params(ry_net *net, renyi_error *err)
{
    const ry_tensor_naming n = ry_vit_naming_timm(&net->config);
    const size_t most = n.n_names * ((size_t)net->config.n_blocks + 1) + 2 + 4 * net->n_taps;
    ry_params *p = &net->params;
    builder b = {.p = p, .head_in = ry_vit_pooled_width(&net->config, net->config.pool)};
    ry_vit_extents(b.extents, &net->config);
    p->list = ry_calloc(&net->al, most, sizeof *p->list);
    if (!p->list) return ry_fail_nomem(err, most * sizeof *p->list);
    ry_tensor_names_each(&n, add_tensor, &b);
    if (ry_net_final_features(net)) add_feature(p, net);
    for (uint32_t i = 0; !net->direct && i < net->n_taps; i++) add_tap(p, net, i);
    p->files = p->list;
    p->n_files = p->n;
    if (net->config.pool == RY_POOL_CLASS_MEAN) RY_TRY(name_as_dinov2(net, err));
    p->value = ry_calloc(&net->al, p->total, sizeof *p->value);
    p->grad = ry_calloc(&net->al, p->total, sizeof *p->grad);
    if (!p->value || !p->grad) return ry_fail_nomem(err, 2 * p->total * sizeof *p->value);
    find_params(net);
    return RENYI_OK;
}

/* ---- random values ------------------------------------------------------------------------- */

#define DEVIATION 0.02 /* of timm's trunc_normal_ */

static int is_norm_weight(ry_tensor_role role)
{
    return role == RY_NORM_W || role == RY_NORM1_W || role == RY_NORM2_W || role == RY_PRE_NORM_W ||
           role == RY_POOL_NORM_W || role == (ry_tensor_role)RY_FEATURE_NORM_W;
}

void ry_net_init(ry_net *net, uint64_t seed)
{
    const ry_params *p = &net->params;
    for (uint32_t i = 0; i < p->n; i++) {
        const ry_param *q = &p->list[i];
        float *value = p->value + q->offset;
        const int is_scale = q->role == RY_SCALE1 || q->role == RY_SCALE2;
        ry_rng mix = ry_rng_new(seed);
        ry_rng rng = ry_rng_new(ry_rng_next(&mix) ^ ry_hash(q->name, strlen(q->name)));
        for (size_t k = 0; k < q->size; k++)
            value[k] = q->n_dims > 1 ? (float)(ry_rng_truncated_normal(&rng) * DEVIATION)
                       : is_norm_weight(q->role) ? 1.0f
                       : is_scale                ? (float)ry_vit_first_scale(&net->config)
                                                 : 0.0f;
    }
    net->n_last = 0;
}

/* ---- values from a checkpoint -------------------------------------------------------------- */

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

/* 1 if the file has a tensor of this role. */
static int has(const loader *ld, ry_tensor_role role, uint32_t block)
{
    return ry_tensor_of_role(&ld->naming, ld->set, role, block) != NULL;
}

/* The roles of the tensors that make up `q`: three for qkv and two for a gate and what it
 * multiplies, if the file has them separately; else one. */
static uint32_t roles_of(const loader *ld, const ry_param *q, ry_tensor_role roles[3])
{
    static const ry_tensor_role w[] = {RY_Q_W, RY_K_W, RY_V_W}, b[] = {RY_Q_B, RY_K_B, RY_V_B};
    roles[0] = q->role;
    if ((q->role == RY_QKV_W || q->role == RY_QKV_B) && !has(ld, RY_QKV_W, q->block)) {
        memcpy(roles, q->role == RY_QKV_W ? w : b, sizeof w);
        return 3;
    }
    if ((q->role != RY_FC1_W && q->role != RY_FC1_B) || !has(ld, RY_UP_W, q->block)) return 1;
    roles[1] = q->role == RY_FC1_W ? RY_UP_W : RY_UP_B;
    return 2;
}

/* What the net has as query, and keys and values of its pooling head, some files have in one. */
static int in_pool_qkv(const loader *ld, const ry_param *q)
{
    return q->role >= RY_POOL_Q_W && q->role <= RY_POOL_KV_B && has(ld, RY_POOL_QKV_W, 0);
}

static renyi_status load_pool_part(const loader *ld, const ry_param *q)
{
    const int is_bias = q->role == RY_POOL_Q_B || q->role == RY_POOL_KV_B;
    const int is_query = q->role == RY_POOL_Q_W || q->role == RY_POOL_Q_B;
    const ry_tensor *t =
        ry_tensor_of_role(&ld->naming, ld->set, is_bias ? RY_POOL_QKV_B : RY_POOL_QKV_W, 0);
    const size_t whole = is_query ? 3 * q->size : q->size / 2 * 3;
    if (!t)
        return ry_fail(ld->err, RENYI_ERR_FORMAT, -1, "the checkpoint has no tensor for %.100s",
                       q->name);
    RY_TRY(check_elements(ld, t, whole, q));
    float *read = ry_alloc(&ld->net->al, whole, sizeof *read);
    if (!read) return ry_fail_nomem(ld->err, whole * sizeof *read);
    const renyi_status st = ry_tensor_read(read, t, ld->set, ld->err);
    if (!st)
        memcpy(ld->net->params.value + q->offset, is_query ? read : read + whole / 3,
               q->size * sizeof *read);
    ry_free(&ld->net->al, read);
    return st;
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

/* How many tokens before the patches have one of these positions: as many as in the net, or those
 * of the class token, or all, so that the others form a square. UINT32_MAX: none of these. */
static uint32_t stored_prefix(const ry_vit_config *c, uint64_t positions)
{
    const uint32_t tries[] = {c->n_placed, ry_vit_class_rows(c), c->n_prefix, 0};
    for (int i = 0; i < 4; i++) {
        const uint64_t patches = positions > tries[i] ? positions - tries[i] : 0;
        const uint64_t side = (uint64_t)llround(sqrt((double)patches));
        if (side && side * side == patches) return tries[i];
    }
    return UINT32_MAX;
}

/* Positions of the prefix [n, C]: to those of the net or, if it has none, to its tokens, as timm
 * does it. */
static void place_prefix(const ry_net *net, const float *pos, uint32_t n)
{
    const size_t C = net->config.dim;
    float *value = net->params.value + net->pos->offset;
    for (uint32_t k = 0; k < n; k++) {
        if (net->config.n_placed)
            memcpy(value + k * C, pos + k * C, C * sizeof *value);
        else
            ry_row_add(ry_net_prefix(net, net->params.value, k), pos + k * C, 1.0f, C);
    }
}

/* Copies positions of the prefix and resamples those of the patches to the net's grid. */
static renyi_status load_positions(const loader *ld, const ry_param *q)
{
    const ry_net *net = ld->net;
    const ry_vit_config *c = &net->config;
    const ry_tensor *t = ry_tensor_of_role(&ld->naming, ld->set, RY_POS_EMBED, 0);
    float *value = net->params.value + q->offset + (size_t)c->n_placed * c->dim;
    const uint32_t axis = t && t->n_dims == 2 ? 0 : 1; /* SigLIP's have two dimensions */
    if (!t || t->n_dims != axis + 2 || t->shape[axis + 1] != c->dim)
        return ry_fail(ld->err, RENYI_ERR_ARG, -1, "the checkpoint has no positions of width %u",
                       c->dim);
    const uint32_t prefix = stored_prefix(c, t->shape[axis]);
    if (prefix == UINT32_MAX || (c->n_placed && c->n_placed != prefix))
        return ry_fail(ld->err, RENYI_ERR_ARG, -1,
                       "tensor '%.100s' has %" PRIu64 " positions; a square and %u more wanted",
                       t->name, t->shape[axis], c->n_placed);
    const uint32_t stored = (uint32_t)lround(sqrt((double)(t->shape[axis] - prefix)));
    const size_t n = (size_t)ry_tensor_elements(t);
    float *read = ry_alloc(&net->al, n, sizeof *read);
    if (!read) return ry_fail_nomem(ld->err, n * sizeof *read);
    renyi_status st = ry_tensor_read(read, t, ld->set, ld->err);
    if (!st) place_prefix(net, read, prefix);
    if (!st)
        st = ry_pos_embed_resample(
            value, c->image_size / c->patch_size, read + (size_t)prefix * c->dim, stored, c->dim,
            ry_vit_pos_filter(ld->naming.layout, c->n_registers), &net->al, ld->err);
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
        if (!t || t->n_dims != 2 || t->shape[0] != net->config.n_classes ||
            t->shape[1] != net->head[k].w->shape[1])
            return 0;
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
    if (has(&ld, RY_PATCH_B, 0) && !net->patch_embed.b)
        return ry_fail(
            err, RENYI_ERR_UNSUPPORTED, -1,
            "the patches have a bias and a LayerNorm before the blocks; timm, whose names "
            "the trained file gets, has only one of them");
    const int heads = heads_fit(&ld);
    if (new_head) *new_head = !heads;
    net->n_last = 0;
    for (uint32_t i = 0; i < net->params.n; i++) {
        const ry_param *q = &net->params.list[i];
        if (!q->is_model || (is_head(q->role) && !heads)) continue;
        RY_TRY(q->role == RY_POS_EMBED ? load_positions(&ld, q)
               : in_pool_qkv(&ld, q)   ? load_pool_part(&ld, q)
                                       : load_param(&ld, q));
    }
    return RENYI_OK;
}
