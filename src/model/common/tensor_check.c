/* tensor_check.c - checks that a checkpoint has the tensors of its layout, and lists all faults in
 * one message.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/tensor_names.h"

#include "base/status.h"
#include "formats/tensor_set.h"
#include "model/common/tensor_quant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- list of faults ------------------------------------------------------------------------ */

enum {
    FAULTS_MAX = 256,              /* bytes of a list; leaves space for a path in the message */
    FAULTS_TEXT = FAULTS_MAX + 32, /* with "and 3 more" */
    FAULT_MAX = 288                /* one name and two shapes */
};

typedef struct fault_list {
    char text[FAULTS_MAX];
    size_t used;
    unsigned count, left_out;
    const char *kind; /* of the last fault; written once in front of each run of a kind */
    int quantized;    /* at least one fault is about 8-bit weights */
} fault_list;

/* kind: "missing ", "wrong shape ", ...; compared by pointer. */
static void __attribute__((format(printf, 3, 4)))
add_fault(fault_list *l, const char *kind, const char *fmt, ...)
{
    char item[FAULT_MAX], joined[FAULT_MAX + 32];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(item, sizeof item, fmt, ap);
    va_end(ap);
    const char *joint = !l->used ? "" : l->kind == kind ? ", " : "; ";
    const int n =
        snprintf(joined, sizeof joined, "%s%s%s", joint, l->kind == kind ? "" : kind, item);
    l->count++;
    if (l->left_out || n < 0 || l->used + (size_t)n >= sizeof l->text) {
        l->left_out++;
        return;
    }
    memcpy(l->text + l->used, joined, (size_t)n + 1);
    l->used += (size_t)n;
    l->kind = kind;
}

/* "a, b and 3 more" into out, which is returned. */
static const char *write_faults(const fault_list *l, char out[FAULTS_TEXT])
{
    snprintf(out, FAULTS_TEXT, "%s", l->text);
    if (l->left_out) snprintf(out, FAULTS_TEXT, "%s and %u more", l->text, l->left_out);
    return out;
}

/* ---- extents ------------------------------------------------------------------------------- */

void ry_vit_extents(uint64_t out[RY_X_COUNT], const ry_vit_config *c)
{
    const uint64_t side = c->image_size / c->patch_size;
    const uint64_t extents[RY_X_COUNT] = {
        [RY_X_1] = 1,
        [RY_X_RGB] = 3,
        [RY_X_PATCH] = c->patch_size,
        [RY_X_TOKENS] = side * side + c->n_placed,
        [RY_X_DIM] = c->dim,
        [RY_X_2DIM] = 2 * (uint64_t)c->dim,
        [RY_X_3DIM] = 3 * (uint64_t)c->dim,
        [RY_X_REGISTERS] = c->n_registers,
        [RY_X_MLP] = c->mlp_dim,
        [RY_X_MLP_IN] = (c->gated ? 2 : 1) * (uint64_t)c->mlp_dim,
        [RY_X_CLASSES] = c->n_classes,
        [RY_X_EMBED] = c->proj_dim,
    };
    memcpy(out, extents, sizeof extents);
}

uint64_t ry_tensor_size(const ry_tensor_naming *n, const ry_tensors *set, ry_tensor_role role,
                        uint32_t n_dims, uint32_t axis)
{
    const ry_tensor *t = ry_tensor_of_role(n, set, role, 0);
    return t && t->n_dims == n_dims ? t->shape[axis] : 0;
}

renyi_status ry_tensor_check_extents(const uint64_t *x, const ry_extent_limit *limits, size_t n,
                                     const char *tower, renyi_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (x[limits[i].extent] > limits[i].max)
            return ry_fail(err, RENYI_ERR_LIMIT, -1,
                           "%s%s of %" PRIu64 "; at most %" PRIu64 " accepted", tower,
                           limits[i].what, x[limits[i].extent], limits[i].max);
    return RENYI_OK;
}

/* ---- another architecture ------------------------------------------------------------------ */

/* Parts of names that only occur in other variants of the ViT, and what they mean. */
static const struct variant {
    const char *part, *what;
} variants[] = {
    {"q_norm.", "normalized queries"},
    {"k_norm.", "normalized keys"},
    {"rel_pos", "relative positions"},
    {"relative_position", "relative positions"},
    {"mlp.fc1_g.", "a gated MLP"},
    {"mlp.fc1_x.", "a gated MLP"},
    {"mlp.w1.", "a gated MLP"},
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

/* Refuses files with both of two alternatives. */
static renyi_status check_choices(const ry_tensor_naming *n, renyi_error *err)
{
    static const struct {
        unsigned groups;
        const char *what;
    } pairs[] = {
        {RY_GROUP_HEAD | RY_GROUP_TEACHER, "'classifier' and 'cls_classifier'"}, /* HF only */
        {RY_GROUP_NORM | RY_GROUP_FC_NORM, "'norm.' and 'fc_norm.'"},
        {RY_GROUP_DISTILLED | RY_GROUP_FC_NORM, "'dist_token' and 'fc_norm.'"},
        {RY_GROUP_LAYER_SCALE | RY_GROUP_GAMMA, "'ls1.gamma' and 'gamma_1'"},
        {RY_GROUP_MLP | RY_GROUP_GATED, "a plain and a gated MLP"},
    };
    for (size_t i = n->layout == RY_LAYOUT_HF && !n->is_clip ? 0 : 1;
         i < sizeof pairs / sizeof pairs[0]; i++)
        if ((n->groups & pairs[i].groups) == pairs[i].groups)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "unsupported model: both %s are there",
                           pairs[i].what);
    return RENYI_OK;
}

/* NaFlex's patches are rows of a matrix product, of any count and shape. */
static renyi_status check_naflex(const ry_tensor_naming *n, const ry_tensors *set, renyi_error *err)
{
    const ry_tensor *patch = n->is_siglip ? ry_tensor_of_role(n, set, RY_PATCH_W, 0) : NULL;
    if (!patch || patch->n_dims != 2) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "unsupported model: '%.100s' has 2 dimensions, which means SigLIP 2 NaFlex: "
                   "images of any shape with a mask, which renyi does not run; the SigLIP 2 "
                   "models of a fixed resolution work",
                   patch->name);
}

/* A row of the table, or the scales or the range of one. */
static int is_known(const ry_tensor_naming *n, const char *name, const ry_tensors *set)
{
    uint32_t block;
    return ry_tensor_name_match(n, name, &block) || ry_quant_part_weight(n, name, set);
}

renyi_status ry_vit_check_family(const ry_tensor_naming *n, const ry_tensors *set, renyi_error *err)
{
    RY_TRY(check_naflex(n, set, err));
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const char *name = ry_tensors_at(set, i)->name;
        if (ry_tensor_name_is_other(n, name)) continue;
        for (size_t k = 0; k < sizeof variants / sizeof variants[0]; k++)
            if (strstr(name, variants[k].part) && !is_known(n, name, set))
                return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                               "unsupported model: tensor '%.100s' means %s, which renyi does not "
                               "run (ViT, DeiT, DINOv2, DINOv3, CLIP and SigLIP only)",
                               name, variants[k].what);
    }
    return check_choices(n, err);
}

renyi_status ry_vit_not_found(const ry_tensors *set, const char *said, renyi_error *err)
{
    fault_list found = {0};
    char text[FAULTS_TEXT];
    for (size_t i = 0; i < ry_tensors_count(set); i++)
        add_fault(&found, "", "'%.80s'", ry_tensors_at(set, i)->name);
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "not a Vision Transformer%s%.60s%s: looked for %s; found %s",
                   said ? ", but '" : "", said ? said : "", said ? "' by its config" : "",
                   ry_vit_naming_looked_for(),
                   found.count ? write_faults(&found, text) : "no tensors at all");
}

/* ---- names, shapes and types --------------------------------------------------------------- */

/* "[384, ?, 3]": an extent of 0 is not known. */
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

static void check_shape(fault_list *faults, const char *name, const ry_tensor *t,
                        const ry_tensor_name *row, const uint64_t extents[RY_X_COUNT])
{
    uint64_t want[4];
    uint32_t n_dims = 0;
    for (; n_dims < 4 && row->shape[n_dims] != RY_X_END; n_dims++)
        want[n_dims] = extents[row->shape[n_dims]];
    int fits = t->n_dims == n_dims || (!n_dims && t->n_dims == 1 && t->shape[0] == 1);
    for (uint32_t i = 0; fits && i < n_dims; i++)
        fits = t->shape[i] && (!want[i] || t->shape[i] == want[i]);
    if (fits) return;
    char is[96], should[96];
    ry_tensor_shape_text(t, is, sizeof is);
    shape_text(should, want, n_dims);
    add_fault(faults, "wrong shape ", "%s %s instead of %s", name, is, should);
}

static int is_float(ry_dtype t)
{
    return t == RY_F32 || t == RY_F16 || t == RY_BF16 || t == RY_F64 || t >= RY_Q8_0;
}

/* Faults are listed by kind: one pass over all tensors for each. */
typedef enum pass { PASS_MISSING, PASS_SHAPE, PASS_TYPE, N_PASSES } pass;

/* An 8-bit weight needs a scale for each row; if its input was calibrated it has a range too. */
static void check_quant_parts(fault_list *faults, const ry_tensor *weight, const ry_tensors *set,
                              pass what)
{
    const unsigned before = faults->count;
    for (ry_quant_part k = 0; k < RY_N_QUANT_PARTS; k++) {
        char name[RY_NAME_MAX + RY_QUANT_SUFFIX_MAX], is[96];
        const uint64_t want = k == RY_QUANT_SCALE ? weight->shape[0] : 2;
        ry_quant_part_name(name, weight->name, k);
        const ry_tensor *t = ry_tensors_find(set, name);
        if (!t && what == PASS_MISSING && k == RY_QUANT_SCALE)
            add_fault(faults, "missing ", "%s", name);
        if (t && what == PASS_SHAPE && (t->n_dims != 1 || t->shape[0] != want)) {
            ry_tensor_shape_text(t, is, sizeof is);
            add_fault(faults, "wrong shape ", "%s %s instead of [%" PRIu64 "]", name, is, want);
        }
        if (t && what == PASS_TYPE && t->dtype != RY_F32)
            add_fault(faults, "not F32 ", "%s %s", name, ry_dtype_name(t->dtype));
    }
    faults->quantized |= faults->count > before;
}

static void check_tensor(fault_list *faults, const ry_tensor_naming *n, const ry_tensor_name *row,
                         uint32_t block, const uint64_t extents[RY_X_COUNT], const ry_tensors *set,
                         pass what)
{
    char name[RY_NAME_MAX];
    ry_tensor_name_write(name, n, row, block);
    const ry_tensor *t = ry_tensors_find(set, name);
    if (!t && what == PASS_MISSING) add_fault(faults, "missing ", "%s", name);
    if (t && what == PASS_SHAPE) check_shape(faults, name, t, row, extents);
    if (t && t->dtype == RY_I8 && ry_tensor_role_is_product(row->role))
        check_quant_parts(faults, t, set, what);
    else if (t && what == PASS_TYPE && !is_float(t->dtype))
        add_fault(faults, "not a float type ", "%s %s", name, ry_dtype_name(t->dtype));
}

/* Buffers and remains of training that no forward pass reads. */
static int is_harmless(const char *name)
{
    static const char *const parts[] = {"position_ids", "num_batches_tracked", "pooler.dense.",
                                        "mask_token",   "rotary_emb.inv_freq", RY_TRAINING_PREFIX};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(name, parts[i])) return 1;
    return 0;
}

static void check_unknown(fault_list *faults, const ry_tensor_naming *n, const ry_tensors *set)
{
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const char *name = ry_tensors_at(set, i)->name;
        uint32_t block;
        if (ry_tensor_name_match(n, name, &block) || ry_tensor_name_is_other(n, name) ||
            is_harmless(name))
            continue;
        const ry_tensor *weight = ry_quant_part_weight(n, name, set);
        if (weight && weight->dtype == RY_I8) continue;
        faults->quantized |= weight != NULL;
        add_fault(faults, weight ? "beside a weight that is not I8 " : "unknown ", "%.120s", name);
    }
}

/* The first name in the table that belongs to a block. */
static const char *first_in_block(const ry_tensor_naming *n)
{
    const ry_tensor_name *row = n->table;
    while (!ry_tensor_name_in_block(row)) row++;
    return row->pattern;
}

renyi_status ry_tensor_check_all(const ry_tensor_naming *n, const uint64_t extents[RY_X_COUNT],
                                 const ry_tensors *set, renyi_error *err)
{
    fault_list faults = {0};
    if (n->n_blocks == 0) add_fault(&faults, "missing ", "all blocks (%s)", first_in_block(n));
    for (pass what = PASS_MISSING; what < N_PASSES; what++)
        for (size_t i = 0; i < n->n_names; i++) {
            const ry_tensor_name *row = &n->table[i];
            const uint32_t count = ry_tensor_name_in_block(row) ? n->n_blocks : 1;
            if (!(row->group & n->groups)) continue;
            for (uint32_t b = 0; b < count; b++)
                check_tensor(&faults, n, row, b, extents, set, what);
        }
    check_unknown(&faults, n, set);
    if (!faults.count) return RENYI_OK;
    static const char remedy[] = "take the whole, unchanged file of such a model";
    char text[FAULTS_TEXT];
    const char *what = n->of->what ? n->of->what : n->is_clip ? "a CLIP" : "a ViT";
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%u tensor%s not as %s in %s names has them: %s; %s",
                   faults.count, faults.count == 1 ? "" : "s", what, n->of->vendor,
                   write_faults(&faults, text), faults.quantized ? RY_QUANTIZE_AGAIN : remedy);
}
