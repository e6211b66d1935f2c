/* visual.h - the visual side of a LLaVA in memory: the blocks of CLIP's image tower that are run,
 * the attention of the block after them (for pruning), and the projector into the language model.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_H
#define RY_VISUAL_H

#include "image/tile_grid.h"
#include "model/common/tensor_names.h"

typedef struct ry_visual_config {
    const char *layout;  /* "transformers", "llava-hf", "llava"; static */
    ry_vit_config tower; /* its n_blocks are those that are run */
    uint32_t n_blocks;   /* of the whole tower */
    uint32_t mid_dim;    /* between the projector's two products */
    uint32_t lm_dim;
    int pad_to_square;
    ry_tile_grids tiles; /* LLaVA-NeXT; n = 0: an image is one square */
    int ends_lines;      /* a line of patches of the tiles ends with the row `newline` */
} ry_visual_config;

typedef struct ry_visual {
    ry_visual_config config;
    ry_vit tower;
    ry_linear *project[2]; /* C -> mid_dim with GELU, mid_dim -> lm_dim */
    /* Of the block after the last that is run; all NULL if the tower ends there. */
    float *norm_w, *norm_b; /* [C] */
    ry_linear *qk;  /* C -> 2C, queries and keys; C -> 3C if the file stores values with them */
    float *newline; /* [lm_dim] with ends_lines, else NULL */
    uint64_t n_params;
} ry_visual;

/* The LLaVA, and the tower if it is in another file (else NULL). */
typedef struct ry_visual_source {
    const ry_checkpoint *llava, *tower;
} ry_visual_source;

/* 1 if the checkpoint has a projector; if it has an image tower. */
int ry_visual_is_llava(const ry_checkpoint *llava);
int ry_visual_has_tower(const ry_checkpoint *llava);

/* Sizes, layout and preprocessing; checks every tensor that will be read. image_size 0 = what the
 * positions fit. */
renyi_status ry_visual_configure(ry_visual_config *out, const ry_visual_source *from,
                                 uint32_t image_size, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;

/* `config` is the result of ry_visual_configure for this source. On failure *out is freed and
 * zero. */
renyi_status ry_visual_load(ry_visual *out, const ry_visual_config *config,
                            const ry_visual_source *from, const renyi_options *opt, renyi_cpu level,
                            renyi_dtype dtype, renyi_error *err) RENYI_CHECK;
void ry_visual_free(ry_visual *v, const renyi_allocator *al); /* any partly built state */

/* ---- base and tiles (LLaVA-NeXT) ----------------------------------------------------------- */

renyi_status ry_visual_has_tiles(int *out, const ry_checkpoint *llava,
                                 renyi_error *err) RENYI_CHECK;
/* Fills config->tiles and ends_lines; layout, tower and lm_dim are there. */
renyi_status ry_visual_configure_tiles(ry_visual_config *c, const ry_checkpoint *llava,
                                       renyi_error *err) RENYI_CHECK;
/* v owns newline even on failure. */
renyi_status ry_visual_load_newline(ry_visual *v, const ry_checkpoint *llava,
                                    const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* ---- tensors of the visual side ------------------------------------------------------------ */

/* The image tower as a checkpoint of its own: only its tensors, and its part of the config. Borrows
 * from the source; `tensors` is its own if `owned`. */
typedef struct ry_visual_tower_file {
    ry_checkpoint ckpt;
    int owned;
} ry_visual_tower_file;

renyi_status ry_visual_tower_open(ry_visual_tower_file *out, const ry_visual_source *from,
                                  const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_visual_tower_close(ry_visual_tower_file *t);

/* The projector: roles RY_FC1_* and RY_FC2_*, extents DIM, MLP and EMBED. 1 if it is present;
 * *layout (may be NULL) is then the layout of the whole file. */
int ry_visual_projector_find(ry_tensor_naming *out, const char **layout, const ry_tensors *set);

/* Naming for the projector of a LLaVA to be written, in llava-hf's layout. */
ry_tensor_naming ry_visual_projector_naming(void);

/* Only the tensors of the projector. */
renyi_status ry_visual_projector_tensors(ry_tensors **out, const ry_tensor_naming *n,
                                         const ry_tensors *set, const renyi_allocator *al,
                                         renyi_error *err) RENYI_CHECK;

#endif
