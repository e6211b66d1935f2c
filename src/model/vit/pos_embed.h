/* pos_embed.h - position embeddings for another grid than the one they were trained on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POS_EMBED_H
#define RY_POS_EMBED_H

#include "renyi/renyi.h"

#include <stdint.h>

/* Both are torch.nn.functional.interpolate(mode="bicubic", align_corners=False). */
typedef enum ry_pos_filter {
    RY_POS_ANTIALIAS, /* antialias=True, as timm does: a = -0.5, widened when the grid shrinks */
    RY_POS_PLAIN /* antialias=False, as transformers does: a = -0.75, four taps, edges clamped */
} ry_pos_filter;

/* in: [n_in * n_in, dim] patch positions in raster order, without those of prefix tokens;
 * out: [n_out * n_out, dim]. Equal grids give a copy, bit for bit. */
renyi_status ry_pos_embed_resample(float *out, uint32_t n_out, const float *in, uint32_t n_in,
                                   uint32_t dim, ry_pos_filter filter, const renyi_allocator *al,
                                   renyi_error *err) RENYI_CHECK;

#endif
