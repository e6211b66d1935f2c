/* visual.h - the visual side of a LLaVA in memory: the blocks of CLIP's image tower that are run,
 * what pruning may ask of the block behind them, and the projector into the language model.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_H
#define RY_VISUAL_H

#include "model/vit/vit.h"

typedef struct ry_visual_config {
    const char *layout;  /* "transformers", "llava-hf", "llava"; static */
    ry_vit_config tower; /* its n_blocks are those that are run */
    uint32_t n_blocks;   /* of the whole tower */
    uint32_t mid_dim;    /* between the projector's two products */
    uint32_t lm_dim;
    int pad_to_square;
} ry_visual_config;

typedef struct ry_visual {
    ry_visual_config config;
    ry_vit tower;
    ry_linear *project[2]; /* C -> mid_dim with GELU, mid_dim -> lm_dim */
    /* Of the block behind the last that is run; all NULL if the tower ends there. */
    float *norm_w, *norm_b; /* [C] */
    ry_linear *qk; /* C -> 2C, queries and keys; 3C where the file keeps values with them */
    uint64_t n_params;
} ry_visual;

/* Where the parts come from: the LLaVA, and the tower if it lies elsewhere (else NULL). */
typedef struct ry_visual_source {
    const ry_checkpoint *llava, *tower;
} ry_visual_source;

/* 1 when the checkpoint has a projector; an image tower of its own. */
int ry_visual_is_llava(const ry_checkpoint *llava);
int ry_visual_has_tower(const ry_checkpoint *llava);

/* Sizes, layout and preprocessing; checks every tensor that will be read. image_size 0 = what the
 * positions fit. */
renyi_status ry_visual_configure(ry_visual_config *out, const ry_visual_source *from,
                                 uint32_t image_size, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;

/* `config` is what ry_visual_configure said of this source. On failure *out is freed and zero. */
renyi_status ry_visual_load(ry_visual *out, const ry_visual_config *config,
                            const ry_visual_source *from, const renyi_options *opt, renyi_cpu level,
                            renyi_dtype dtype, renyi_error *err) RENYI_CHECK;
void ry_visual_free(ry_visual *v, const renyi_allocator *al); /* any partly built state */

#endif
