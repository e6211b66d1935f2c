/* mask_patches.c - which patches show the object: exact areas of the mask inside every patch.
 *
 * Resizing makes out_size pixels of in_size. In units in which an input pixel is out_size wide, an
 * output pixel is in_size wide, so all edges are whole numbers and so are all areas.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"
#include "base/status.h"
#include "eval/masks/mask.h"
#include "image/fit.h"

#include <inttypes.h>

/* One axis of a patch, in those units; empty where it lies in the padding. */
typedef struct extent {
    uint64_t from, to;
} extent;

static extent patch_extent(const ry_placed *p, uint32_t patch, uint32_t i)
{
    const uint32_t edges[2] = {patch * i, patch * (i + 1)};
    uint64_t at[2];
    for (int e = 0; e < 2; e++) {
        const uint32_t inside = edges[e] < p->pad ? 0 : edges[e] - p->pad;
        at[e] =
            (uint64_t)(p->axis.from + (inside < p->axis.n ? inside : p->axis.n)) * p->axis.in_size;
    }
    return (extent){at[0], at[1]};
}

/* How much of an extent input pixel i covers. */
static uint64_t overlap(const extent *e, uint64_t i, uint64_t width)
{
    const uint64_t from = i * width > e->from ? i * width : e->from;
    const uint64_t to = (i + 1) * width < e->to ? (i + 1) * width : e->to;
    return to - from;
}

typedef struct areas {
    uint64_t object, background;
} areas;

static areas areas_of(const ry_plane *plane, const uint8_t meaning[256], const extent *x,
                      const extent *y, uint64_t x_width, uint64_t y_width)
{
    areas sum = {0, 0};
    for (uint64_t r = y->from / y_width; r * y_width < y->to; r++) {
        const uint8_t *row = plane->values + (size_t)r * plane->width;
        uint64_t length[3] = {0, 0, 0}; /* of each side in this row */
        for (uint64_t c = x->from / x_width; c * x_width < x->to; c++)
            length[meaning[row[c]]] += overlap(x, c, x_width);
        sum.object += length[RY_OBJECT] * overlap(y, r, y_width);
        sum.background += length[RY_BACKGROUND] * overlap(y, r, y_width);
    }
    return sum;
}

static ry_side side_of(const areas *a, uint64_t whole)
{
    const uint64_t counted = a->object + a->background;
    if (2 * counted < whole) return RY_NEITHER;
    return 2 * a->object >= counted ? RY_OBJECT : RY_BACKGROUND;
}

renyi_status ry_mask_patches(uint8_t *sides, const ry_plane *plane, const uint8_t meaning[256],
                             const ry_mask_spec *spec, renyi_error *err)
{
    const uint32_t grid = ry_mask_grid(spec);
    ry_placed x, y;
    uint64_t whole;
    RY_TRY(ry_fit_place(&x, &y, plane->width, plane->height, &spec->preprocess, err));
    if (!ry_mul_u64((uint64_t)spec->patch * plane->width, (uint64_t)spec->patch * plane->height,
                    &whole) ||
        whole > UINT64_MAX / 4) /* twice an area is compared */
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "a mask of %" PRIu32 " x %" PRIu32 " is too large for patches of %" PRIu32,
                       plane->width, plane->height, spec->patch);
    for (uint32_t i = 0; i < grid * grid; i++) {
        const extent across = patch_extent(&x, spec->patch, i % grid);
        const extent down = patch_extent(&y, spec->patch, i / grid);
        const areas a = areas_of(plane, meaning, &across, &down, x.axis.out_size, y.axis.out_size);
        sides[i] = (uint8_t)side_of(&a, whole);
    }
    return RENYI_OK;
}
