/* vit_sizes.c - what the tensors of a checkpoint alone say of its model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/vit_sizes.h"

#include "base/status.h"
#include "model/common/tensor_check.h"
#include "model/vit/vit_quant.h"

#include <inttypes.h>
#include <string.h>

/* Above these a file lies or is not for this engine; they keep every later product within 64 bits.
 */
enum { MAX_MLP = 1 << 20, MAX_CLASSES = 1 << 24, MAX_PATCH = 512, MAX_IMAGE = 4096 };

/* ---- sizes --------------------------------------------------------------------------------- */

/* Extent `axis` of a tensor of `n_dims` dimensions; 0 when it is absent or has another rank. */
static uint64_t extent(const ry_vit_naming *n, const ry_tensors *set, ry_vit_role role,
                       uint32_t n_dims, uint32_t axis)
{
    const ry_tensor *t = ry_vit_tensor(n, set, role, 0);
    return t && t->n_dims == n_dims ? t->shape[axis] : 0;
}

static void read_extents(uint64_t x[RY_X_COUNT], const ry_vit_naming *n, const ry_tensors *set)
{
    memset(x, 0, RY_X_COUNT * sizeof *x);
    x[RY_X_1] = 1;
    x[RY_X_RGB] = 3;
    x[RY_X_DIM] = extent(n, set, RY_PATCH_W, 4, 0);
    x[RY_X_PATCH] = extent(n, set, RY_PATCH_W, 4, 2);
    x[RY_X_TOKENS] =
        n->is_clip ? extent(n, set, RY_POS_EMBED, 2, 0) : extent(n, set, RY_POS_EMBED, 3, 1);
    x[RY_X_MLP] = extent(n, set, RY_FC1_W, 2, 0);
    x[RY_X_CLASSES] = extent(n, set, RY_HEAD_W, 2, 0);
    x[RY_X_EMBED] = extent(n, set, RY_EMBED_W, 2, n->layout == RY_LAYOUT_OPENAI ? 1 : 0);
    if (x[RY_X_DIM] <= RY_MAX_DIM) x[RY_X_3DIM] = 3 * x[RY_X_DIM];
}

static renyi_status check_extents(const uint64_t x[RY_X_COUNT], renyi_error *err)
{
    static const ry_extent_limit limits[] = {
        {RY_X_DIM, RY_MAX_DIM, "width"},
        {RY_X_MLP, MAX_MLP, "MLP width"},
        {RY_X_CLASSES, MAX_CLASSES, "number of classes"},
        {RY_X_EMBED, RY_MAX_DIM, "width of the embedding"},
        {RY_X_PATCH, MAX_PATCH, "patch size"},
        {RY_X_TOKENS, (uint64_t)MAX_IMAGE * MAX_IMAGE, "number of positions"}};
    return ry_vit_extents_check(x, limits, sizeof limits / sizeof *limits, "", err);
}

renyi_status ry_vit_sizes(ry_vit_config *c, ry_vit_naming *n, uint64_t *n_positions,
                          const ry_tensors *set, renyi_error *err)
{
    uint64_t x[RY_X_COUNT];
    if (!ry_vit_naming_find(n, set)) return ry_vit_not_found(set, err);
    RY_TRY(ry_vit_check_family(n, set, err));
    if (n->n_blocks > RY_MAX_BLOCKS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a tensor of block %u; at most %d blocks accepted",
                       n->n_blocks - 1, RY_MAX_BLOCKS);
    read_extents(x, n, set);
    RY_TRY(check_extents(x, err));
    RY_TRY(ry_vit_check_tensors(n, x, set, err));
    RY_TRY(ry_vit_quant_describe(c, n, set, err));
    c->layout = n->layout;
    c->is_clip = n->is_clip;
    c->dim = (uint32_t)x[RY_X_DIM];
    c->patch_size = (uint32_t)x[RY_X_PATCH];
    c->mlp_dim = (uint32_t)x[RY_X_MLP];
    c->n_classes = (uint32_t)x[RY_X_CLASSES];
    c->proj_dim = (uint32_t)x[RY_X_EMBED];
    c->n_blocks = n->n_blocks;
    c->n_prefix = (n->groups & RY_GROUP_CLASS ? 1 : 0) + (n->groups & RY_GROUP_DISTILLED ? 1 : 0);
    *n_positions = x[RY_X_TOKENS];
    return RENYI_OK;
}

/* ---- input size ---------------------------------------------------------------------------- */

static renyi_status wrong_image_size(uint32_t wanted, uint32_t patch, renyi_error *err)
{
    const uint32_t below = wanted / patch * patch, top = MAX_IMAGE / patch * patch;
    if (wanted > top)
        return ry_fail(err, RENYI_ERR_ARG, -1, "input side of %u pixels; at most %u accepted",
                       wanted, top);
    if (!below || below + patch > top)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "input side of %u pixels is not a multiple of the patch size %u; %u would fit", wanted,
            patch, below ? below : patch);
    return ry_fail(
        err, RENYI_ERR_ARG, -1,
        "input side of %u pixels is not a multiple of the patch size %u; %u or %u would fit",
        wanted, patch, below, below + patch);
}

renyi_status ry_vit_image_size(ry_vit_config *c, uint64_t n_positions, uint32_t wanted,
                               uint32_t *native, renyi_error *err)
{
    const uint64_t patches = n_positions > c->n_prefix ? n_positions - c->n_prefix : 0;
    uint64_t side = 0;
    while ((side + 1) * (side + 1) <= patches) side++;
    if (!side || side * side != patches)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%" PRIu64 " positions, %u of them for prefix tokens: the other %" PRIu64
                       " do not form a square, and only square inputs are supported",
                       n_positions, c->n_prefix, patches);
    if (side * c->patch_size > MAX_IMAGE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "positions for an input of %" PRIu64 " pixels; at most %d accepted",
                       side * c->patch_size, MAX_IMAGE);
    *native = (uint32_t)side * c->patch_size;
    if (wanted && (wanted % c->patch_size || wanted > MAX_IMAGE))
        return wrong_image_size(wanted, c->patch_size, err);
    c->image_size = wanted ? wanted : *native;
    return RENYI_OK;
}
