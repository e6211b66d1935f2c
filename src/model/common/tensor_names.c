/* tensor_names.c - matching the names of tensors against the tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/tensor_names.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ry_vit_naming_looked_for(void)
{
    return "timm's patch_embed.proj.weight, Hugging Face's "
           "embeddings.patch_embeddings.projection.weight, CLIP's embeddings.class_embedding or "
           "visual.class_embedding";
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
    return row->role >= RY_HEAD_W && row->role <= RY_EMBED_B;
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
        [RY_X_EMBED] = c->proj_dim,
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

static ry_vit_naming naming_of(const ry_vit_layout *l)
{
    return (ry_vit_naming){
        .layout = l->id, .is_clip = l->is_clip, .of = l, .table = l->names, .n_names = l->count};
}

int ry_vit_naming_among(ry_vit_naming *out, const ry_tensors *set, const ry_vit_layout *layouts,
                        size_t n_layouts)
{
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const char *name = ry_tensors_at(set, i)->name;
        for (size_t k = 0; k < n_layouts; k++) {
            const ry_vit_layout *l = &layouts[k];
            const int length = length_before(name, l->names[0].pattern);
            if (length < 0) continue;
            *out = naming_of(l);
            set_prefixes(out, name, length, l->heads_outside);
            take_stock(out, set);
            return 1;
        }
    }
    return 0;
}

int ry_vit_naming_find(ry_vit_naming *out, const ry_tensors *set)
{
    return ry_vit_naming_among(out, set, ry_vit_layouts, RY_N_LAYOUTS);
}

static const ry_vit_layout *layout_of(ry_layout id, int is_clip)
{
    const ry_vit_layout *l = ry_vit_layouts;
    while (l->id != id || l->is_clip != is_clip) l++;
    return l;
}

ry_vit_naming ry_vit_naming_timm(uint32_t n_blocks, uint32_t n_prefix)
{
    ry_vit_naming n = naming_of(layout_of(RY_LAYOUT_TIMM, 0));
    n.n_blocks = n_blocks;
    n.groups = RY_GROUP_CORE | RY_GROUP_QKV_BIAS | RY_GROUP_HEAD;
    n.groups |= n_prefix ? RY_GROUP_CLASS | RY_GROUP_NORM : RY_GROUP_FC_NORM;
    if (n_prefix == 2) n.groups |= RY_GROUP_DISTILLED | RY_GROUP_TEACHER;
    return n;
}

ry_vit_naming ry_vit_naming_clip(uint32_t n_blocks)
{
    ry_vit_naming n = naming_of(layout_of(RY_LAYOUT_HF, 1));
    n.n_blocks = n_blocks;
    n.groups = RY_GROUP_CORE | RY_GROUP_CLASS | RY_GROUP_NORM | RY_GROUP_EMBED;
    strcpy(n.body, "vision_model.");
    return n;
}

int ry_vit_name_is_other(const ry_vit_naming *n, const char *name)
{
    const size_t length = strlen(n->outer);
    if (!n->of || strncmp(name, n->outer, length) != 0) return 0;
    for (const char *const *other = n->of->others; *other; other++)
        if (strncmp(name + length, *other, strlen(*other)) == 0) return 1;
    return 0;
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

renyi_status ry_vit_extents_check(const uint64_t *x, const ry_extent_limit *limits, size_t n,
                                  const char *tower, renyi_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (x[limits[i].extent] > limits[i].max)
            return ry_fail(err, RENYI_ERR_LIMIT, -1,
                           "%s%s of %" PRIu64 "; at most %" PRIu64 " accepted", tower,
                           limits[i].what, x[limits[i].extent], limits[i].max);
    return RENYI_OK;
}
