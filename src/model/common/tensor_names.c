/* tensor_names.c - finds the layout of a checkpoint and matches its tensors with the rows of its
 * table (tensor_tables.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/tensor_names.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- matching ------------------------------------------------------------------------------ */

/* The length of the prefix of `name` before `tail`, or -1: "model.a.b" with "a.b" gives 6. */
static int length_before(const char *name, const char *tail)
{
    const size_t n = strlen(name), t = strlen(tail);
    if (n < t || n - t >= RY_PREFIX_MAX || strcmp(name + n - t, tail) != 0) return -1;
    return n == t || name[n - t - 1] == '.' ? (int)(n - t) : -1;
}

/* Removes the last part of a prefix: "module.vit." becomes "module.". */
static void drop_part(char *prefix)
{
    if (!*prefix) return;
    prefix[strlen(prefix) - 1] = '\0';
    char *dot = strrchr(prefix, '.');
    *(dot ? dot + 1 : prefix) = '\0';
}

static void set_prefixes(ry_tensor_naming *out, const char *name, int length,
                         const ry_tensor_layout *l)
{
    memcpy(out->prefix, name, (size_t)length);
    out->prefix[length] = '\0';
    strcpy(out->head_prefix, out->prefix);
    if (l->heads_outside) drop_part(out->head_prefix);
    strcpy(out->root, out->head_prefix);
    if (l->within) out->root[length - (int)strlen(l->within)] = '\0';
}

static int ends_with(const char *text, int length, const char *tail)
{
    const int n = (int)strlen(tail);
    return length >= n && memcmp(text + length - n, tail, (size_t)n) == 0;
}

static int is_head(const ry_tensor_name *row)
{
    return row->role >= RY_HEAD_W && row->role <= RY_EMBED_B;
}

int ry_tensor_name_in_block(const ry_tensor_name *row) { return row->role >= RY_NORM1_W; }

void ry_tensor_name_write(char out[RY_NAME_MAX], const ry_tensor_naming *n,
                          const ry_tensor_name *row, uint32_t block)
{
    const char *prefix = is_head(row) ? n->head_prefix : n->prefix,
               *hash = strchr(row->pattern, '#');
    if (hash)
        snprintf(out, RY_NAME_MAX, "%s%.*s%u%s", prefix, (int)(hash - row->pattern), row->pattern,
                 block, hash + 1);
    else
        snprintf(out, RY_NAME_MAX, "%s%s", prefix, row->pattern);
}

void ry_tensor_names_each(const ry_tensor_naming *n, ry_tensor_name_visitor visit, void *user)
{
    for (size_t i = 0; i < n->n_names; i++) {
        if (!ry_tensor_name_in_block(&n->table[i])) {
            if (n->table[i].group & n->groups) visit(user, n, &n->table[i], 0);
            continue;
        }
        size_t end = i;
        while (end < n->n_names && ry_tensor_name_in_block(&n->table[end])) end++;
        for (uint32_t b = 0; b < n->n_blocks; b++)
            for (size_t k = i; k < end; k++)
                if (n->table[k].group & n->groups) visit(user, n, &n->table[k], b);
        i = end - 1;
    }
}

/* Reads a decimal number without sign or leading zero and moves *at behind it; 0 if none. */
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

static int matches_pattern(const char *name, const char *pattern, uint32_t *block)
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

const ry_tensor_name *ry_tensor_name_match(const ry_tensor_naming *n, const char *name,
                                           uint32_t *block)
{
    *block = 0;
    for (size_t i = 0; i < n->n_names; i++) {
        const char *prefix = is_head(&n->table[i]) ? n->head_prefix : n->prefix;
        const size_t length = strlen(prefix);
        if (strncmp(name, prefix, length) == 0 &&
            matches_pattern(name + length, n->table[i].pattern, block))
            return &n->table[i];
    }
    return NULL;
}

static int is_square(uint64_t n)
{
    uint64_t side = 1;
    while (side * side < n && side < 4096) side++;
    return side * side == n;
}

/* 1 if there is a position for each patch of a square grid, perhaps some for registers, and none
 * for a class token. */
static int positions_are_square(const ry_tensor_naming *n, const ry_tensors *set)
{
    const ry_tensor *pos = ry_tensor_of_role(n, set, RY_POS_EMBED, 0);
    const ry_tensor *registers = ry_tensor_of_role(n, set, RY_REGISTERS, 0);
    if (!pos || pos->n_dims != 3) return 0;
    if (is_square(pos->shape[1])) return 1;
    return registers && registers->n_dims == 3 && pos->shape[1] > registers->shape[1] &&
           is_square(pos->shape[1] - registers->shape[1]);
}

/* Adds the groups that the present ones require. */
static void complete_groups(ry_tensor_naming *n, const ry_tensors *set)
{
    const unsigned both = RY_GROUP_HEAD | RY_GROUP_DISTILLED;
    if (n->layout == RY_LAYOUT_TIMM && (n->groups & both) == both) n->groups |= RY_GROUP_TEACHER;
    if (n->groups & RY_GROUP_TEACHER)
        n->groups |= n->layout == RY_LAYOUT_TIMM ? both : RY_GROUP_DISTILLED;
    const int needs_class = (n->groups & RY_GROUP_DISTILLED) || !positions_are_square(n, set);
    if (needs_class && !n->is_siglip) n->groups |= RY_GROUP_CLASS;
    if (!(n->groups & RY_GROUP_FC_NORM)) n->groups |= RY_GROUP_NORM;
    if (!(n->groups & RY_GROUP_PRE_NORM)) n->groups |= RY_GROUP_PATCH_BIAS;
    if (!(n->groups & RY_GROUP_GATED)) n->groups |= RY_GROUP_MLP;
    if (n->is_clip && n->layout == RY_LAYOUT_HF) n->groups |= RY_GROUP_PRE_NORM;
}

/* Finds the optional groups that are present and the number of blocks. */
static void count_tensors(ry_tensor_naming *out, const ry_tensors *set)
{
    out->groups = RY_GROUP_CORE;
    out->n_blocks = 0;
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        uint32_t block;
        const ry_tensor_name *row = ry_tensor_name_match(out, ry_tensors_at(set, i)->name, &block);
        if (!row) continue;
        out->groups |= row->group;
        if (ry_tensor_name_in_block(row) && block >= out->n_blocks)
            out->n_blocks = block < UINT32_MAX ? block + 1 : block;
    }
    complete_groups(out, set);
}

static ry_tensor_naming naming_of(const ry_tensor_layout *l)
{
    return (ry_tensor_naming){.layout = l->id,
                              .is_clip = l->is_clip,
                              .is_siglip = l->is_siglip,
                              .of = l,
                              .table = l->names,
                              .n_names = l->count};
}

static int has_tensor(const ry_tensor_naming *n, const ry_tensors *set, const char *what)
{
    char name[RY_NAME_MAX];
    snprintf(name, sizeof name, "%s%s", n->prefix, what);
    return ry_tensors_find(set, name) != NULL;
}

static int has_marks(const ry_tensor_naming *n, const ry_tensors *set)
{
    if (n->of->without && has_tensor(n, set, n->of->without)) return 0;
    return !n->of->mark || has_tensor(n, set, n->of->mark);
}

int ry_tensor_naming_among(ry_tensor_naming *out, const ry_tensors *set,
                           const ry_tensor_layout *layouts, size_t n_layouts)
{
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const char *name = ry_tensors_at(set, i)->name;
        int is_found = 0;
        for (size_t k = 0; k < n_layouts; k++) {
            const ry_tensor_layout *l = &layouts[k];
            const int length = length_before(name, l->names[0].pattern);
            if (length < 0 || (l->within && !ends_with(name, length, l->within))) continue;
            ry_tensor_naming n = naming_of(l);
            set_prefixes(&n, name, length, l);
            if (!has_marks(&n, set)) continue;
            count_tensors(&n, set);
            if (!is_found || n.n_blocks) *out = n;
            is_found = 1;
            if (n.n_blocks) break;
        }
        if (is_found) return 1;
    }
    return 0;
}

int ry_vit_naming_find(ry_tensor_naming *out, const ry_tensors *set)
{
    return ry_tensor_naming_among(out, set, ry_vit_layouts, RY_N_LAYOUTS);
}

static const ry_tensor_layout *layout_of(ry_layout id, int is_clip, int is_siglip, int is_rotary)
{
    const ry_tensor_layout *l = ry_vit_layouts;
    while (l->id != id || l->is_clip != is_clip || l->is_siglip != is_siglip ||
           l->is_rotary != is_rotary || l->within)
        l++;
    return l;
}

ry_tensor_naming ry_vit_naming_timm(const ry_vit_config *c)
{
    const int is_rotary = c->rope_theta > 0.0;
    ry_tensor_naming n = naming_of(layout_of(RY_LAYOUT_TIMM, 0, 0, is_rotary));
    n.n_blocks = c->n_blocks;
    n.groups = RY_GROUP_CORE;
    if (c->n_qkv_bias || !is_rotary) n.groups |= RY_GROUP_QKV_BIAS;
    if (is_rotary) n.groups |= c->gated ? RY_GROUP_GATED : RY_GROUP_MLP;
    n.groups |= c->pool == RY_POOL_MEAN ? RY_GROUP_FC_NORM : RY_GROUP_NORM;
    if (c->n_classes) n.groups |= RY_GROUP_HEAD;
    if (c->pool == RY_POOL_ATTENTION) n.groups |= RY_GROUP_POOL;
    if (ry_vit_class_rows(c)) n.groups |= RY_GROUP_CLASS;
    if (c->is_distilled) n.groups |= RY_GROUP_DISTILLED | RY_GROUP_TEACHER;
    if (c->n_registers) n.groups |= RY_GROUP_REGISTERS;
    if (c->layer_scale) n.groups |= RY_GROUP_LAYER_SCALE;
    n.groups |= c->pre_norm ? RY_GROUP_PRE_NORM : RY_GROUP_PATCH_BIAS;
    return n;
}

ry_tensor_naming ry_vit_naming_dinov2(const ry_vit_config *c)
{
    ry_tensor_naming n =
        naming_of(layout_of(RY_LAYOUT_HF, 0, 0, 0)); /* the first has layer scale */
    n.n_blocks = c->n_blocks;
    n.groups = RY_GROUP_CORE | RY_GROUP_QKV_BIAS | RY_GROUP_CLASS | RY_GROUP_NORM | RY_GROUP_HEAD;
    n.groups |= c->gated ? RY_GROUP_GATED : RY_GROUP_MLP;
    if (c->n_registers) n.groups |= RY_GROUP_REGISTERS;
    if (c->layer_scale) n.groups |= RY_GROUP_LAYER_SCALE;
    strcpy(n.prefix, c->n_registers ? "dinov2_with_registers." : "dinov2.");
    return n;
}

ry_tensor_naming ry_vit_naming_clip(uint32_t n_blocks)
{
    ry_tensor_naming n = naming_of(layout_of(RY_LAYOUT_HF, 1, 0, 0));
    n.n_blocks = n_blocks;
    n.groups = RY_GROUP_CORE | RY_GROUP_CLASS | RY_GROUP_NORM | RY_GROUP_EMBED | RY_GROUP_PRE_NORM;
    strcpy(n.prefix, "vision_model.");
    return n;
}

ry_tensor_naming ry_vit_naming_siglip(uint32_t n_blocks)
{
    ry_tensor_naming n = naming_of(layout_of(RY_LAYOUT_HF, 0, 1, 0));
    n.n_blocks = n_blocks;
    n.groups = RY_GROUP_CORE | RY_GROUP_NORM | RY_GROUP_POOL;
    strcpy(n.prefix, "vision_model.");
    return n;
}

int ry_tensor_name_is_other(const ry_tensor_naming *n, const char *name)
{
    const size_t length = strlen(n->root);
    if (!n->of || strncmp(name, n->root, length) != 0) return 0;
    for (const char *const *other = n->of->others; *other; other++)
        if (strncmp(name + length, *other, strlen(*other)) == 0) return 1;
    return 0;
}

const ry_tensor *ry_tensor_of_role(const ry_tensor_naming *n, const ry_tensors *set,
                                   ry_tensor_role role, uint32_t block)
{
    for (size_t i = 0; i < n->n_names; i++) {
        char name[RY_NAME_MAX];
        if (n->table[i].role != role) continue;
        ry_tensor_name_write(name, n, &n->table[i], block);
        const ry_tensor *t = ry_tensors_find(set, name);
        if (t) return t;
    }
    return NULL;
}
