/* net_params.c - lists the parameters of a net and allocates their values and gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "train/net/net_state.h"

#include <stdio.h>
#include <string.h>

enum { ALIGN = 16 }; /* floats: a cache line */

typedef struct builder {
    ry_params *p;
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
    q->decay = q->n_dims > 1 && row->role != RY_POS_EMBED && row->role != RY_CLS_TOKEN &&
               row->role != RY_DIST_TOKEN;
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

/* Parameters have timm's names, whatever file the model comes from. */
static ry_tensor_naming naming_of(const ry_vit_config *c)
{
    ry_tensor_naming n = ry_vit_naming_timm(c->n_blocks, c->n_prefix);
    n.groups &= ~(unsigned)(RY_GROUP_NORM | RY_GROUP_FC_NORM);
    n.groups |= c->pool == RY_POOL_MEAN ? RY_GROUP_FC_NORM : RY_GROUP_NORM;
    return n;
}

const ry_param *ry_params_find(const ry_params *p, ry_tensor_role role, uint32_t block)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].role == role && p->list[i].block == block) return &p->list[i];
    return NULL;
}

static void find_params(ry_net *net)
{
    const ry_params *p = &net->params;
    net->pos = ry_params_find(p, RY_POS_EMBED, 0);
    net->token[0] = ry_params_find(p, RY_CLS_TOKEN, 0);
    net->token[1] = ry_params_find(p, RY_DIST_TOKEN, 0);
    net->norm.w = ry_params_find(p, RY_NORM_W, 0);
    net->norm.b = ry_params_find(p, RY_NORM_B, 0);
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
        b->fc1.w = ry_params_find(p, RY_FC1_W, i);
        b->fc1.b = ry_params_find(p, RY_FC1_B, i);
        b->fc2.w = ry_params_find(p, RY_FC2_W, i);
        b->fc2.b = ry_params_find(p, RY_FC2_B, i);
    }
}

renyi_status ry_net_make_params(ry_net *net, renyi_error *err)
{
    const ry_tensor_naming n = naming_of(&net->config);
    const size_t most = n.n_names * ((size_t)net->config.n_blocks + 1) + 2 + 4 * net->n_taps;
    ry_params *p = &net->params;
    builder b = {.p = p};
    ry_vit_extents(b.extents, &net->config);
    p->list = ry_calloc(&net->al, most, sizeof *p->list);
    if (!p->list) return ry_fail_nomem(err, most * sizeof *p->list);
    ry_tensor_names_each(&n, add_tensor, &b);
    if (ry_net_final_features(net)) add_feature(p, net);
    for (uint32_t i = 0; !net->direct && i < net->n_taps; i++) add_tap(p, net, i);
    p->value = ry_calloc(&net->al, p->total, sizeof *p->value);
    p->grad = ry_calloc(&net->al, p->total, sizeof *p->grad);
    if (!p->value || !p->grad) return ry_fail_nomem(err, 2 * p->total * sizeof *p->value);
    find_params(net);
    return RENYI_OK;
}
