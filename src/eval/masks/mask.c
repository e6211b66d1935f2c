/* mask.c - the mask of one image: reads a PNG, finds which patches show the object, measures how
 * well scores rank these patches, and follows them through the cuts of a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/masks/mask.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "image/decode.h"
#include "image/fit.h"
#include "prune/rules/select.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- areas of patches ----------------------------------------------------------------------- */

/* Resizing makes out_size pixels of in_size. In units in which an input pixel is out_size wide, an
 * output pixel is in_size wide, so all edges and areas are whole numbers. */

/* One axis of a patch, in those units; empty inside the padding. */
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

/* The side of every patch of a plane; meaning: the side of every pixel value. */
static renyi_status find_sides(uint8_t *sides, const ry_plane *plane, const uint8_t meaning[256],
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

/* ---- PNG files ------------------------------------------------------------------------------ */

enum { VALUES = 256 };

static void mark_values(uint8_t seen[VALUES], const ry_plane *p)
{
    memset(seen, 0, VALUES);
    for (size_t i = 0; i < (size_t)p->width * p->height; i++) seen[p->values[i]] = 1;
}

/* "0, 17, 34, ..." for an error message */
static void list_values(char *out, size_t size, const uint8_t seen[VALUES])
{
    int shown = 0;
    out[0] = '\0';
    for (int v = 0; v < VALUES; v++) {
        if (!seen[v]) continue;
        const size_t used = strlen(out);
        snprintf(out + used, size - used, shown == 6 ? ", ..." : "%s%d", shown ? ", " : "", v);
        if (shown++ == 6) return;
    }
}

static int is_trimap(const uint8_t seen[VALUES])
{
    for (int v = 0; v < VALUES; v++)
        if (seen[v] && (v < 1 || v > 3)) return 0;
    return 1;
}

static int is_binary(const uint8_t seen[VALUES])
{
    int others = 0;
    for (int v = 1; v < VALUES; v++) others += seen[v];
    return others <= 1;
}

static renyi_status find_kind(renyi_mask_kind *kind, const uint8_t seen[VALUES],
                              renyi_mask_kind asked, renyi_error *err)
{
    char values[64];
    *kind = asked;
    if (asked == RENYI_MASK_BINARY) return RENYI_OK;
    if (is_trimap(seen)) {
        *kind = RENYI_MASK_TRIMAP; /* a mask of only 1 is all object as either kind */
        return RENYI_OK;
    }
    list_values(values, sizeof values, seen);
    if (asked == RENYI_MASK_TRIMAP)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "values %s; a trimap has 1 (object), 2 (background) and 3 (border)", values);
    *kind = RENYI_MASK_BINARY;
    if (is_binary(seen)) return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_FORMAT, -1,
        "values %s are neither a trimap (1, 2, 3) nor a binary mask (0 and one other); the "
        "kind \"binary\" would read all but 0 as the object",
        values);
}

static void set_meanings(uint8_t meaning[VALUES], renyi_mask_kind kind, int border_is_object)
{
    memset(meaning, kind == RENYI_MASK_BINARY ? RY_OBJECT : RY_NEITHER, VALUES);
    if (kind == RENYI_MASK_BINARY) {
        meaning[0] = RY_BACKGROUND;
        return;
    }
    meaning[1] = RY_OBJECT;
    meaning[2] = RY_BACKGROUND;
    meaning[3] = border_is_object ? RY_OBJECT : RY_NEITHER;
}

static renyi_status read_plane(uint8_t *sides, renyi_mask_kind *kind, const ry_plane *plane,
                               const uint32_t image_size[2], const ry_mask_spec *spec,
                               renyi_error *err)
{
    uint8_t seen[VALUES], meaning[VALUES];
    if (plane->width != image_size[0] || plane->height != image_size[1])
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%" PRIu32 " x %" PRIu32 " pixels for an image of %" PRIu32 " x %" PRIu32,
                       plane->width, plane->height, image_size[0], image_size[1]);
    mark_values(seen, plane);
    RY_TRY(find_kind(kind, seen, spec->kind, err));
    set_meanings(meaning, *kind, spec->border_is_object);
    return find_sides(sides, plane, meaning, spec, err);
}

renyi_status ry_mask_read(uint8_t *sides, renyi_mask_kind *kind, const void *bytes, size_t size,
                          const uint32_t image_size[2], const ry_mask_spec *spec, renyi_error *err)
{
    const ry_encoded in = {bytes, size, spec->limits, NULL, NULL, NULL};
    ry_plane plane;
    if (renyi_image_sniff(bytes, size) != RENYI_IMAGE_PNG)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, 0, "not a PNG file");
    RY_TRY(ry_decode_png_plane(&plane, &in, err));
    renyi_status st = RENYI_OK;
    if (spec->apply_exif) {
        const uint32_t orientation = ry_exif_orientation(bytes, size, RENYI_IMAGE_PNG);
        if (orientation != 1) st = ry_plane_turn(&plane, orientation, NULL, err);
    }
    if (!st) st = read_plane(sides, kind, &plane, image_size, spec, err);
    ry_free(NULL, plane.values);
    return st;
}

/* ---- ranking -------------------------------------------------------------------------------- */

static int is_tie(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

/* From best to worst, ties together: an object patch wins against each background patch below it
 * and half against each it ties with. Wins are counted twice, so that halves are whole numbers. */
static double area_under_curve(const float *score, const uint8_t *sides, const uint32_t *order,
                               uint32_t n)
{
    uint64_t wins2 = 0, objects = 0, backgrounds = 0;
    for (uint32_t i = 0; i < n;) {
        uint64_t here[3] = {0, 0, 0};
        const float s = score[order[i]];
        for (; i < n && is_tie(score[order[i]], s); i++) here[sides[order[i]]]++;
        /* Object patches above these background patches, or tied with them. */
        wins2 += here[RY_BACKGROUND] * (2 * objects + here[RY_OBJECT]);
        objects += here[RY_OBJECT];
        backgrounds += here[RY_BACKGROUND];
    }
    return (double)wins2 / (2.0 * (double)objects * (double)backgrounds);
}

void ry_mask_rank(ry_ranked *out, const float *score, const uint8_t *sides, uint32_t n,
                  uint32_t n_kept, uint32_t *order, uint64_t *scratch)
{
    double all[3] = {0, 0, 0}, kept[3] = {0, 0, 0};
    ry_rank(order, score, n, scratch);
    for (uint32_t i = 0; i < n; i++) {
        all[sides[order[i]]]++;
        if (i < n_kept) kept[sides[order[i]]]++;
    }
    out->auc = area_under_curve(score, sides, order, n);
    out->kept_object = kept[RY_OBJECT] / all[RY_OBJECT];
    out->kept_background = kept[RY_BACKGROUND] / all[RY_BACKGROUND];
}

/* ---- fates of patches ----------------------------------------------------------------------- */

void ry_fate_begin(uint8_t *fate, uint32_t *row, uint32_t n, uint32_t n_prefix)
{
    for (uint32_t p = 0; p < n; p++) {
        fate[p] = RY_FATE_ALONE;
        row[p] = n_prefix + p;
    }
}

static ry_fate fate_in(const renyi_cut *cut, uint32_t row, const uint32_t *members)
{
    if (row == RENYI_NONE) return RY_FATE_DROPPED;
    const uint32_t source = cut->source[row];
    if (source == RENYI_NONE || cut->position[source] == RENYI_FUSED) return RY_FATE_FUSED;
    return members[row] > 1 || row < cut->n_prefix ? RY_FATE_MERGED : RY_FATE_ALONE;
}

void ry_fate_cut(uint8_t *fate, uint32_t *row, uint32_t n, const renyi_cut *cut, uint32_t *members)
{
    memset(members, 0, cut->n_out * sizeof *members);
    for (uint32_t p = 0; p < n; p++) {
        if (row[p] == RENYI_NONE) continue;
        row[p] = cut->target[row[p]];
        if (row[p] != RENYI_NONE) members[row[p]]++;
    }
    for (uint32_t p = 0; p < n; p++) fate[p] = (uint8_t)fate_in(cut, row[p], members);
}
