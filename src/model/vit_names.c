/* vit_names.c - the tables of tensor names, and matching against them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE_TOKEN              \
    {                            \
        RY_X_1, RY_X_1, RY_X_DIM \
    }
#define SHAPE_POS                     \
    {                                 \
        RY_X_1, RY_X_TOKENS, RY_X_DIM \
    }
#define SHAPE_PATCH                                \
    {                                              \
        RY_X_DIM, RY_X_RGB, RY_X_PATCH, RY_X_PATCH \
    }
#define SHAPE_DIM \
    {             \
        RY_X_DIM  \
    }
#define SHAPE_HEAD             \
    {                          \
        RY_X_CLASSES, RY_X_DIM \
    }

/* clang-format off: a table reads by columns */
static const ry_vit_name timm_names[] = {
    {RY_PATCH_W, RY_GROUP_CORE, "patch_embed.proj.weight", SHAPE_PATCH},
    {RY_PATCH_B, RY_GROUP_CORE, "patch_embed.proj.bias", SHAPE_DIM},
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "cls_token", SHAPE_TOKEN},
    {RY_DIST_TOKEN, RY_GROUP_DISTILLED, "dist_token", SHAPE_TOKEN},
    {RY_POS_EMBED, RY_GROUP_CORE, "pos_embed", SHAPE_POS},
    {RY_NORM1_W, RY_GROUP_CORE, "blocks.#.norm1.weight", SHAPE_DIM},
    {RY_NORM1_B, RY_GROUP_CORE, "blocks.#.norm1.bias", SHAPE_DIM},
    {RY_QKV_W, RY_GROUP_CORE, "blocks.#.attn.qkv.weight", {RY_X_3DIM, RY_X_DIM}},
    {RY_QKV_B, RY_GROUP_QKV_BIAS, "blocks.#.attn.qkv.bias", {RY_X_3DIM}},
    {RY_PROJ_W, RY_GROUP_CORE, "blocks.#.attn.proj.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_PROJ_B, RY_GROUP_CORE, "blocks.#.attn.proj.bias", SHAPE_DIM},
    {RY_NORM2_W, RY_GROUP_CORE, "blocks.#.norm2.weight", SHAPE_DIM},
    {RY_NORM2_B, RY_GROUP_CORE, "blocks.#.norm2.bias", SHAPE_DIM},
    {RY_FC1_W, RY_GROUP_CORE, "blocks.#.mlp.fc1.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_CORE, "blocks.#.mlp.fc1.bias", {RY_X_MLP}},
    {RY_FC2_W, RY_GROUP_CORE, "blocks.#.mlp.fc2.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_FC2_B, RY_GROUP_CORE, "blocks.#.mlp.fc2.bias", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_NORM, "norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "norm.bias", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_FC_NORM, "fc_norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_FC_NORM, "fc_norm.bias", SHAPE_DIM},
    {RY_HEAD_W, RY_GROUP_HEAD, "head.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_HEAD, "head.bias", {RY_X_CLASSES}},
    {RY_HEAD_DIST_W, RY_GROUP_TEACHER, "head_dist.weight", SHAPE_HEAD},
    {RY_HEAD_DIST_B, RY_GROUP_TEACHER, "head_dist.bias", {RY_X_CLASSES}},
};

#define LAYER "encoder.layer.#."
static const ry_vit_name hf_names[] = {
    {RY_PATCH_W, RY_GROUP_CORE, "embeddings.patch_embeddings.projection.weight", SHAPE_PATCH},
    {RY_PATCH_B, RY_GROUP_CORE, "embeddings.patch_embeddings.projection.bias", SHAPE_DIM},
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "embeddings.cls_token", SHAPE_TOKEN},
    {RY_DIST_TOKEN, RY_GROUP_DISTILLED, "embeddings.distillation_token", SHAPE_TOKEN},
    {RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embeddings", SHAPE_POS},
    {RY_NORM1_W, RY_GROUP_CORE, LAYER "layernorm_before.weight", SHAPE_DIM},
    {RY_NORM1_B, RY_GROUP_CORE, LAYER "layernorm_before.bias", SHAPE_DIM},
    {RY_Q_W, RY_GROUP_CORE, LAYER "attention.attention.query.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_Q_B, RY_GROUP_QKV_BIAS, LAYER "attention.attention.query.bias", SHAPE_DIM},
    {RY_K_W, RY_GROUP_CORE, LAYER "attention.attention.key.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_K_B, RY_GROUP_QKV_BIAS, LAYER "attention.attention.key.bias", SHAPE_DIM},
    {RY_V_W, RY_GROUP_CORE, LAYER "attention.attention.value.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_V_B, RY_GROUP_QKV_BIAS, LAYER "attention.attention.value.bias", SHAPE_DIM},
    {RY_PROJ_W, RY_GROUP_CORE, LAYER "attention.output.dense.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_PROJ_B, RY_GROUP_CORE, LAYER "attention.output.dense.bias", SHAPE_DIM},
    {RY_NORM2_W, RY_GROUP_CORE, LAYER "layernorm_after.weight", SHAPE_DIM},
    {RY_NORM2_B, RY_GROUP_CORE, LAYER "layernorm_after.bias", SHAPE_DIM},
    {RY_FC1_W, RY_GROUP_CORE, LAYER "intermediate.dense.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_CORE, LAYER "intermediate.dense.bias", {RY_X_MLP}},
    {RY_FC2_W, RY_GROUP_CORE, LAYER "output.dense.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_FC2_B, RY_GROUP_CORE, LAYER "output.dense.bias", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_NORM, "layernorm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "layernorm.bias", SHAPE_DIM},
    {RY_HEAD_W, RY_GROUP_HEAD, "classifier.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_HEAD, "classifier.bias", {RY_X_CLASSES}},
    {RY_HEAD_W, RY_GROUP_TEACHER, "cls_classifier.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_TEACHER, "cls_classifier.bias", {RY_X_CLASSES}},
    {RY_HEAD_DIST_W, RY_GROUP_TEACHER, "distillation_classifier.weight", SHAPE_HEAD},
    {RY_HEAD_DIST_B, RY_GROUP_TEACHER, "distillation_classifier.bias", {RY_X_CLASSES}},
};
/* clang-format on */

static const struct layout {
    ry_layout id;
    const ry_vit_name *names;
    size_t count;
    int heads_outside; /* the last part of the prefix ("vit.") is not in front of the heads */
} layouts[] = {
    {RY_LAYOUT_TIMM, timm_names, sizeof timm_names / sizeof timm_names[0], 0},
    {RY_LAYOUT_HF, hf_names, sizeof hf_names / sizeof hf_names[0], 1},
};

const char *ry_vit_naming_looked_for(void)
{
    return "timm's patch_embed.proj.weight, Hugging Face's "
           "embeddings.patch_embeddings.projection.weight";
}

/* Length of what stands before `tail` in `name`, or -1: "model.a.b" with "a.b" gives 6. */
static int length_before(const char *name, const char *tail)
{
    const size_t n = strlen(name), t = strlen(tail);
    if (n < t || n - t >= RY_PREFIX_MAX || strcmp(name + n - t, tail) != 0) return -1;
    return n == t || name[n - t - 1] == '.' ? (int)(n - t) : -1;
}

static void set_prefixes(ry_vit_naming *out, const char *name, int length, int heads_outside)
{
    memcpy(out->body, name, (size_t)length);
    out->body[length] = '\0';
    strcpy(out->outer, out->body);
    if (!heads_outside || !length) return;
    out->outer[length - 1] = '\0'; /* "module.vit." -> "module.vit" -> "module." */
    char *dot = strrchr(out->outer, '.');
    *(dot ? dot + 1 : out->outer) = '\0';
}

static int is_head(const ry_vit_name *row)
{
    return row->role >= RY_HEAD_W && row->role <= RY_HEAD_DIST_B;
}

int ry_vit_name_in_block(const ry_vit_name *row) { return row->role >= RY_NORM1_W; }

void ry_vit_name_write(char out[RY_NAME_MAX], const ry_vit_naming *n, const ry_vit_name *row,
                       uint32_t block)
{
    const char *prefix = is_head(row) ? n->outer : n->body, *hash = strchr(row->pattern, '#');
    if (hash)
        snprintf(out, RY_NAME_MAX, "%s%.*s%u%s", prefix, (int)(hash - row->pattern), row->pattern,
                 block, hash + 1);
    else
        snprintf(out, RY_NAME_MAX, "%s%s", prefix, row->pattern);
}

void ry_vit_extents(uint64_t out[RY_X_COUNT], const ry_vit_config *c)
{
    const uint64_t side = c->image_size / c->patch_size;
    const uint64_t extents[RY_X_COUNT] = {
        [RY_X_1] = 1,
        [RY_X_RGB] = 3,
        [RY_X_PATCH] = c->patch_size,
        [RY_X_TOKENS] = side * side + c->n_prefix,
        [RY_X_DIM] = c->dim,
        [RY_X_3DIM] = 3 * (uint64_t)c->dim,
        [RY_X_MLP] = c->mlp_dim,
        [RY_X_CLASSES] = c->n_classes,
    };
    memcpy(out, extents, sizeof extents);
}

void ry_vit_names_each(const ry_vit_naming *n, ry_vit_see_name see, void *user)
{
    for (size_t i = 0; i < n->n_names; i++) {
        if (!ry_vit_name_in_block(&n->table[i])) {
            if (n->table[i].group & n->groups) see(user, n, &n->table[i], 0);
            continue;
        }
        size_t end = i;
        while (end < n->n_names && ry_vit_name_in_block(&n->table[end])) end++;
        for (uint32_t b = 0; b < n->n_blocks; b++)
            for (size_t k = i; k < end; k++)
                if (n->table[k].group & n->groups) see(user, n, &n->table[k], b);
        i = end - 1;
    }
}

/* Decimal number without sign or leading zero at *at, moved behind it; 0 when there is none. */
static int read_number(const char **at, uint32_t *out)
{
    uint64_t v = 0;
    const char *p = *at;
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9')) return 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (v <= UINT32_MAX) v = v * 10 + (uint64_t)(*p - '0');
    *out = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
    *at = p;
    return 1;
}

static int matches(const char *name, const char *pattern, uint32_t *block)
{
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            if (!read_number(&name, block)) return 0;
        } else if (*name++ != *pattern) {
            return 0;
        }
    }
    return *name == '\0';
}

const ry_vit_name *ry_vit_name_match(const ry_vit_naming *n, const char *name, uint32_t *block)
{
    *block = 0;
    for (size_t i = 0; i < n->n_names; i++) {
        const char *prefix = is_head(&n->table[i]) ? n->outer : n->body;
        const size_t length = strlen(prefix);
        if (strncmp(name, prefix, length) == 0 &&
            matches(name + length, n->table[i].pattern, block))
            return &n->table[i];
    }
    return NULL;
}

/* One position for each patch of a square, and none to spare for a class token. */
static int positions_are_square(const ry_vit_naming *n, const ry_tensors *set)
{
    const ry_tensor *pos = ry_vit_tensor(n, set, RY_POS_EMBED, 0);
    if (!pos || pos->n_dims != 3 || pos->shape[1] > (1u << 24)) return 0;
    uint64_t side = 1;
    while (side * side < pos->shape[1]) side++;
    return side * side == pos->shape[1];
}

/* Groups that others cannot do without. */
static void complete_groups(ry_vit_naming *n, const ry_tensors *set)
{
    const unsigned both = RY_GROUP_HEAD | RY_GROUP_DISTILLED;
    if (n->layout == RY_LAYOUT_TIMM && (n->groups & both) == both) n->groups |= RY_GROUP_TEACHER;
    if (n->groups & RY_GROUP_TEACHER)
        n->groups |= n->layout == RY_LAYOUT_TIMM ? both : RY_GROUP_DISTILLED;
    if ((n->groups & RY_GROUP_DISTILLED) || !positions_are_square(n, set))
        n->groups |= RY_GROUP_CLASS;
    if (!(n->groups & RY_GROUP_FC_NORM)) n->groups |= RY_GROUP_NORM;
}

/* Which optional groups are there, and how many blocks. */
static void take_stock(ry_vit_naming *out, const ry_tensors *set)
{
    out->groups = RY_GROUP_CORE;
    out->n_blocks = 0;
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        uint32_t block;
        const ry_vit_name *row = ry_vit_name_match(out, ry_tensors_at(set, i)->name, &block);
        if (!row) continue;
        out->groups |= row->group;
        if (ry_vit_name_in_block(row) && block >= out->n_blocks)
            out->n_blocks = block < UINT32_MAX ? block + 1 : block;
    }
    complete_groups(out, set);
}

int ry_vit_naming_find(ry_vit_naming *out, const ry_tensors *set)
{
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const char *name = ry_tensors_at(set, i)->name;
        for (size_t k = 0; k < sizeof layouts / sizeof layouts[0]; k++) {
            const int length = length_before(name, layouts[k].names[0].pattern);
            if (length < 0) continue;
            *out = (ry_vit_naming){
                .layout = layouts[k].id, .table = layouts[k].names, .n_names = layouts[k].count};
            set_prefixes(out, name, length, layouts[k].heads_outside);
            take_stock(out, set);
            return 1;
        }
    }
    return 0;
}

ry_vit_naming ry_vit_naming_timm(uint32_t n_blocks, uint32_t n_prefix)
{
    ry_vit_naming n = {.layout = RY_LAYOUT_TIMM,
                       .table = timm_names,
                       .n_names = sizeof timm_names / sizeof timm_names[0],
                       .n_blocks = n_blocks,
                       .groups = RY_GROUP_CORE | RY_GROUP_QKV_BIAS | RY_GROUP_HEAD};
    n.groups |= n_prefix ? RY_GROUP_CLASS | RY_GROUP_NORM : RY_GROUP_FC_NORM;
    if (n_prefix == 2) n.groups |= RY_GROUP_DISTILLED | RY_GROUP_TEACHER;
    return n;
}

const ry_tensor *ry_vit_tensor(const ry_vit_naming *n, const ry_tensors *set, ry_vit_role role,
                               uint32_t block)
{
    for (size_t i = 0; i < n->n_names; i++) {
        char name[RY_NAME_MAX];
        if (n->table[i].role != role) continue;
        ry_vit_name_write(name, n, &n->table[i], block);
        const ry_tensor *t = ry_tensors_find(set, name);
        if (t) return t;
    }
    return NULL;
}
