/* tensor_check.c - all faults of a checkpoint in one line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/tensor_check.h"

#include "base/status.h"
#include "model/common/faults.h"
#include "model/vit/vit_quant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- another architecture ------------------------------------------------------------------ */

/* Parts of names that belong to relatives of the ViT, and what they mean. */
static const struct relative {
    const char *part, *what;
} relatives[] = {
    {"ls1.gamma", "layer scale"},
    {"ls2.gamma", "layer scale"},
    {"gamma_1", "layer scale"},
    {"layer_scale", "layer scale"},
    {"lambda_1", "layer scale"},
    {"q_norm.", "normalised queries"},
    {"k_norm.", "normalised keys"},
    {"norm_pre.", "a LayerNorm before the blocks"},
    {"attn_pool.", "attention pooling"},
    {"reg_token", "register tokens"},
    {"register_tokens", "register tokens"},
    {"rel_pos", "relative positions"},
    {"relative_position", "relative positions"},
    {"mlp.fc1_g.", "a gated MLP"},
    {"mlp.fc1_x.", "a gated MLP"},
    {"mlp.w12.", "a gated MLP"},
    {"mlp.w1.", "a gated MLP"},
    {"mlp.weights_in.", "a gated MLP"},
    {"mlp.norm.", "a LayerNorm inside the MLP"},
    {"attn.norm.", "a LayerNorm inside the attention"},
    {"pre_logits.", "a representation layer before the head"},
    {"patch_embed.backbone.", "a convolutional stem"},
    {"patch_embeddings.backbone.", "a convolutional stem"},
    {"patch_embed.norm.", "a LayerNorm after the patches"},
    {"patch_embed.conv", "a convolutional stem"},
    {"downsample.", "a pyramid of stages"},
    {"decoder.", "a decoder"},
    {"detection_tokens", "detection tokens"},
};

/* Two of a kind where a model has one. */
static renyi_status check_choices(const ry_vit_naming *n, renyi_error *err)
{
    static const struct {
        unsigned groups;
        const char *what;
    } pairs[] = {
        {RY_GROUP_HEAD | RY_GROUP_TEACHER, "'classifier' and 'cls_classifier'"}, /* HF only */
        {RY_GROUP_NORM | RY_GROUP_FC_NORM, "'norm.' and 'fc_norm.'"},
        {RY_GROUP_DISTILLED | RY_GROUP_FC_NORM, "'dist_token' and 'fc_norm.'"},
    };
    for (size_t i = n->layout == RY_LAYOUT_HF && !n->is_clip ? 0 : 1;
         i < sizeof pairs / sizeof pairs[0]; i++)
        if ((n->groups & pairs[i].groups) == pairs[i].groups)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "unsupported model: both %s are there",
                           pairs[i].what);
    return RENYI_OK;
}

renyi_status ry_vit_check_family(const ry_vit_naming *n, const ry_tensors *set, renyi_error *err)
{
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const char *name = ry_tensors_at(set, i)->name;
        if (ry_vit_name_is_other(n, name)) continue;
        for (size_t k = 0; k < sizeof relatives / sizeof relatives[0]; k++)
            if (strstr(name, relatives[k].part))
                return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                               "unsupported model: tensor '%.100s' means %s, which this build does "
                               "not run (plain ViT, DeiT and CLIP only)",
                               name, relatives[k].what);
    }
    return check_choices(n, err);
}

renyi_status ry_vit_not_found(const ry_tensors *set, renyi_error *err)
{
    ry_faults found = {0};
    char text[RY_FAULTS_TEXT];
    for (size_t i = 0; i < ry_tensors_count(set); i++)
        ry_faults_add(&found, "", "'%.80s'", ry_tensors_at(set, i)->name);
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "not a Vision Transformer: looked for %s; found %s", ry_vit_naming_looked_for(),
                   found.count ? ry_faults_text(&found, text) : "no tensors at all");
}

/* ---- every tensor in its place ------------------------------------------------------------- */

/* "[384, ?, 3]" */
static void shape_text(char out[96], const uint64_t *shape, uint32_t n_dims)
{
    size_t used = 0;
    out[used++] = '[';
    for (uint32_t i = 0; i < n_dims && used < 72; i++) {
        const int n = shape[i]
                          ? snprintf(out + used, 96 - used, "%s%" PRIu64, i ? ", " : "", shape[i])
                          : snprintf(out + used, 96 - used, "%s?", i ? ", " : "");
        used += (size_t)n;
    }
    strcpy(out + used, "]");
}

static void check_shape(ry_faults *faults, const char *name, const ry_tensor *t,
                        const ry_vit_name *row, const uint64_t extents[RY_X_COUNT])
{
    uint64_t want[4];
    uint32_t n_dims = 0;
    for (; n_dims < 4 && row->shape[n_dims] != RY_X_END; n_dims++)
        want[n_dims] = extents[row->shape[n_dims]];
    int fits = t->n_dims == n_dims;
    for (uint32_t i = 0; fits && i < n_dims; i++)
        fits = t->shape[i] && (!want[i] || t->shape[i] == want[i]);
    if (fits) return;
    char is[96], should[96];
    shape_text(is, t->shape, t->n_dims);
    shape_text(should, want, n_dims);
    ry_faults_add(faults, "wrong shape ", "%s %s instead of %s", name, is, should);
}

static int is_float(ry_dtype t)
{
    return t == RY_F32 || t == RY_F16 || t == RY_BF16 || t == RY_F64;
}

typedef enum pass { PASS_MISSING, PASS_SHAPE, PASS_TYPE, N_PASSES } pass;

/* What belongs to an 8-bit weight: a scale for each of its rows and, if its input was calibrated, a
 * range. */
static void check_beside(ry_faults *faults, const ry_tensor *weight, const ry_tensors *set,
                         pass what)
{
    const unsigned before = faults->count;
    for (ry_vit_beside k = 0; k < RY_N_BESIDE; k++) {
        char name[RY_NAME_MAX + RY_BESIDE_MAX], is[96];
        const uint64_t want = k == RY_BESIDE_SCALE ? weight->shape[0] : 2;
        ry_vit_beside_name(name, weight->name, k);
        const ry_tensor *t = ry_tensors_find(set, name);
        if (!t && what == PASS_MISSING && k == RY_BESIDE_SCALE)
            ry_faults_add(faults, "missing ", "%s", name);
        if (t && what == PASS_SHAPE && (t->n_dims != 1 || t->shape[0] != want)) {
            shape_text(is, t->shape, t->n_dims);
            ry_faults_add(faults, "wrong shape ", "%s %s instead of [%" PRIu64 "]", name, is, want);
        }
        if (t && what == PASS_TYPE && t->dtype != RY_F32)
            ry_faults_add(faults, "not F32 ", "%s %s", name, ry_dtype_name(t->dtype));
    }
    faults->quantised |= faults->count > before;
}

static void check_one(ry_faults *faults, const ry_vit_naming *n, const ry_vit_name *row,
                      uint32_t block, const uint64_t extents[RY_X_COUNT], const ry_tensors *set,
                      pass what)
{
    char name[RY_NAME_MAX];
    ry_vit_name_write(name, n, row, block);
    const ry_tensor *t = ry_tensors_find(set, name);
    if (!t && what == PASS_MISSING) ry_faults_add(faults, "missing ", "%s", name);
    if (t && what == PASS_SHAPE) check_shape(faults, name, t, row, extents);
    if (t && t->dtype == RY_I8 && ry_vit_is_product(row->role))
        check_beside(faults, t, set, what);
    else if (t && what == PASS_TYPE && !is_float(t->dtype))
        ry_faults_add(faults, "not a float type ", "%s %s", name, ry_dtype_name(t->dtype));
}

/* Buffers and leftovers of training that no forward pass reads. */
static int is_harmless(const char *name)
{
    static const char *const parts[] = {"position_ids", "num_batches_tracked", "pooler.dense.",
                                        "mask_token",   "rotary_emb.inv_freq", RY_TRAINING_PREFIX};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(name, parts[i])) return 1;
    return 0;
}

static void check_unknown(ry_faults *faults, const ry_vit_naming *n, const ry_tensors *set)
{
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const char *name = ry_tensors_at(set, i)->name;
        uint32_t block;
        if (ry_vit_name_match(n, name, &block) || ry_vit_name_is_other(n, name) ||
            is_harmless(name))
            continue;
        const ry_tensor *weight = ry_vit_beside_weight(n, name, set);
        if (weight && weight->dtype == RY_I8) continue;
        faults->quantised |= weight != NULL;
        ry_faults_add(faults, weight ? "beside a weight that is not I8 " : "unknown ", "%.120s",
                      name);
    }
}

/* The first name that every block would have. */
static const char *first_in_block(const ry_vit_naming *n)
{
    const ry_vit_name *row = n->table;
    while (!ry_vit_name_in_block(row)) row++;
    return row->pattern;
}

renyi_status ry_vit_check_tensors(const ry_vit_naming *n, const uint64_t extents[RY_X_COUNT],
                                  const ry_tensors *set, renyi_error *err)
{
    ry_faults faults = {0};
    if (n->n_blocks == 0) ry_faults_add(&faults, "missing ", "all blocks (%s)", first_in_block(n));
    for (pass what = PASS_MISSING; what < N_PASSES; what++)
        for (size_t i = 0; i < n->n_names; i++) {
            const ry_vit_name *row = &n->table[i];
            const uint32_t count = ry_vit_name_in_block(row) ? n->n_blocks : 1;
            if (!(row->group & n->groups)) continue;
            for (uint32_t b = 0; b < count; b++) check_one(&faults, n, row, b, extents, set, what);
        }
    check_unknown(&faults, n, set);
    if (!faults.count) return RENYI_OK;
    char text[RY_FAULTS_TEXT];
    const char *what = n->of->what ? n->of->what : n->is_clip ? "a CLIP" : "a ViT";
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%u tensor%s not as %s in %s names has them: %s%s",
                   faults.count, faults.count == 1 ? "" : "s", what, n->of->house,
                   ry_faults_text(&faults, text), faults.quantised ? "; " RY_QUANTISE_AGAIN : "");
}
