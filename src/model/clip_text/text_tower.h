/* text_tower.h - CLIP's text tower in memory: its configuration and its packed weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEXT_TOWER_H
#define RY_TEXT_TOWER_H

#include "model/vit/vit.h"

typedef struct ry_text_config {
    ry_layout layout;
    uint32_t dim, n_blocks, n_heads, mlp_dim;
    uint32_t vocab, context; /* ids, and most of them in a text */
    uint32_t embed_dim;
    double norm_eps;
    double logit_scale; /* exp of the number in the file */
    ry_epilogue activation;
    int quantised; /* the file has 8-bit weights */
} ry_text_config;

typedef struct ry_text {
    ry_text_config config;
    ry_tensor tokens;       /* [vocab, C] a copy as stored: half of it when the file is F16 */
    float *pos;             /* [context, C] */
    ry_vit_block *blocks;   /* [n_blocks] */
    float *norm_w, *norm_b; /* [C] final LayerNorm */
    ry_linear *projection;  /* C -> embed_dim, f32, without bias */
    uint64_t n_params;
    uint64_t fingerprint; /* hash of all tensors of the tower and of the configuration */
} ry_text;

/* Sizes from the shapes, the rest from the config or from the habits of CLIP. Checks name, shape
 * and type of every tensor of the tower; all faults are named at once. A checkpoint without a text
 * tower is RENYI_ERR_UNSUPPORTED. */
renyi_status ry_text_configure(ry_text_config *out, const ry_checkpoint *ckpt,
                               renyi_error *err) RENYI_CHECK;

/* Convert and pack; `config` is what ry_text_configure said of this checkpoint. On failure *out is
 * freed and zero. */
renyi_status ry_text_load(ry_text *out, const ry_text_config *config, const ry_checkpoint *ckpt,
                          const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                          renyi_error *err) RENYI_CHECK;
void ry_text_free(ry_text *t, const renyi_allocator *al); /* any partly built state */

#endif
