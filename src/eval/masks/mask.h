/* mask.h - the mask of one image: which patches show the object, how well scores rank them, and
 * what cuts do to them.
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

/* Patches per side; the model ignores a remainder at the right and bottom. */
static inline uint32_t ry_mask_grid(const ry_mask_spec *s) { return s->preprocess.size / s->patch; }

/* Sides [grid * grid] from the bytes of a PNG mask. image_size: width and height of the image after
 * EXIF rotation. *kind: how the mask was read. Uses the C heap, so any thread may call it. */
renyi_status ry_mask_read(uint8_t *sides, renyi_mask_kind *kind, const void *bytes, size_t size,
                          const uint32_t image_size[2], const ry_mask_spec *spec,
                          renyi_error *err) RENYI_CHECK;

typedef struct ry_ranked {
    double auc; /* a tie counts one half; NaN scores rank lowest and tie with each other */
    double kept_object, kept_background;
} ry_ranked;

/* Ranks `n` patches by score; the first n_kept would stay. Both sides must occur.
 * order: [n], scratch: [2n]. */
void ry_mask_rank(ry_ranked *out, const float *score, const uint8_t *sides, uint32_t n,
                  uint32_t n_kept, uint32_t *order, uint64_t *scratch);

typedef enum ry_fate {
    RY_FATE_ALONE,
    RY_FATE_MERGED,
    RY_FATE_FUSED,
    RY_FATE_DROPPED,
    RY_FATES
} ry_fate;

/* Before the first cut. row: [n] the token row of every patch, or RENYI_NONE. */
void ry_fate_begin(uint8_t *fate, uint32_t *row, uint32_t n, uint32_t n_prefix);
/* Updates fate and row after a cut; members: [cut->n_out] scratch. */
void ry_fate_cut(uint8_t *fate, uint32_t *row, uint32_t n, const renyi_cut *cut, uint32_t *members);

#endif
