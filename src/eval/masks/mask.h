/* mask.h - one photo's mask: from the bytes of a PNG to which patches show the object; how well
 * scores rank these; what cuts do to them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MASK_H
#define RY_MASK_H

#include "image/decode.h"
#include "renyi/eval.h"

/* What a pixel or a patch shows. */
typedef enum ry_side { RY_NEITHER = 0, RY_BACKGROUND = 1, RY_OBJECT = 2 } ry_side;

typedef struct ry_mask_spec {
    renyi_mask_kind kind;
    int border_is_object, apply_exif;
    renyi_limits limits; /* defaults filled in */
    renyi_preprocess preprocess;
    uint32_t patch; /* side in pixels */
} ry_mask_spec;

/* Patches per side; a remainder at the right and below is not seen by the model. */
static inline uint32_t ry_mask_grid(const ry_mask_spec *s) { return s->preprocess.size / s->patch; }

/* mask_read.c: sides [grid * grid] from the bytes of a mask for a photo of width x height (turned
 * already). *kind is what it was read as. From the C heap, so any thread may call it. */
renyi_status ry_mask_read(uint8_t *sides, renyi_mask_kind *kind, const void *bytes, size_t size,
                          const uint32_t photo[2], const ry_mask_spec *spec,
                          renyi_error *err) RENYI_CHECK;

/* mask_patches.c: the side of every patch of a plane whose values mean what `meaning` says. */
renyi_status ry_mask_patches(uint8_t *sides, const ry_plane *plane, const uint8_t meaning[256],
                             const ry_mask_spec *spec, renyi_error *err) RENYI_CHECK;

/* mask_rank.c */
typedef struct ry_ranked {
    double auc; /* ties half; NaN scores are the lowest and tie with each other */
    double kept_object, kept_background;
} ry_ranked;

/* `n` patches by score, n_kept of which would stay. Both sides must occur.
 * order: [n], scratch: [2n]. */
void ry_mask_rank(ry_ranked *out, const float *score, const uint8_t *sides, uint32_t n,
                  uint32_t n_kept, uint32_t *order, uint64_t *scratch);

/* mask_fate.c */
typedef enum ry_fate {
    RY_FATE_ALONE,
    RY_FATE_MERGED,
    RY_FATE_FUSED,
    RY_FATE_DROPPED,
    RY_FATES
} ry_fate;

/* Where every patch is: row [n] among the tokens, or RENYI_NONE. */
void ry_fate_begin(uint8_t *fate, uint32_t *row, uint32_t n, uint32_t n_prefix);
/* After a cut; members: [cut->n_out] scratch. */
void ry_fate_cut(uint8_t *fate, uint32_t *row, uint32_t n, const renyi_cut *cut, uint32_t *members);

#endif
