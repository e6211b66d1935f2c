/* visual_smaller.c - makes the visual side of a LLaVA that reads smaller images (the policy
 * downsample): position embeddings for a smaller grid, everything else borrowed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/visual_smaller.h"

#include "base/alloc.h"
#include "base/status.h"

renyi_status ry_visual_smaller(ry_visual *out, float **positions, const ry_visual *from,
                               uint32_t grid, const renyi_allocator *al, renyi_error *err)
{
    const ry_vit_config *c = &from->config.tower;
    const uint32_t full = c->image_size / c->patch_size, size = grid * c->patch_size;
    const size_t n = (size_t)grid * grid * c->dim;
    float *pos = ry_alloc(al, n, sizeof *pos);
    if (!pos) return ry_fail_nomem(err, n * sizeof *pos);
    const renyi_status st =
        ry_pos_embed_resample(pos, grid, from->tower.pos, full, c->dim, c->pos_filter, al, err);
    if (st) {
        ry_free(al, pos);
        return st;
    }
    *out = *from;
    out->config.tower.image_size = out->config.tower.preprocess.size = size;
    out->tower.config.image_size = out->tower.config.preprocess.size = size;
    out->config.tiles.side = size;
    out->config.tiles.patches = grid;
    out->tower.n_patches = grid * grid;
    out->tower.pos = *positions = pos;
    return RENYI_OK;
}
