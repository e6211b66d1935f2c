/* mask_read.c - a PNG as a mask: what its numbers mean, and whether it fits the photo.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/masks/mask.h"
#include "image/exif.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VALUES = 256 };

static void mark_values(uint8_t seen[VALUES], const ry_plane *p)
{
    memset(seen, 0, VALUES);
    for (size_t i = 0; i < (size_t)p->width * p->height; i++) seen[p->values[i]] = 1;
}

/* "0, 17, 34, ..." for a message */
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
        *kind = RENYI_MASK_TRIMAP; /* all 1 is an object in either reading */
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
        "values %s are neither a trimap (1, 2, 3) nor a mask (0 and one other); the kind "
        "\"binary\" would take all but 0 as the object",
        values);
}

static void mean_values(uint8_t meaning[VALUES], renyi_mask_kind kind, int border_is_object)
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

static renyi_status use_plane(uint8_t *sides, renyi_mask_kind *kind, const ry_plane *plane,
                              const uint32_t photo[2], const ry_mask_spec *spec, renyi_error *err)
{
    uint8_t seen[VALUES], meaning[VALUES];
    if (plane->width != photo[0] || plane->height != photo[1])
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%" PRIu32 " x %" PRIu32 " pixels for a photo of %" PRIu32 " x %" PRIu32,
                       plane->width, plane->height, photo[0], photo[1]);
    mark_values(seen, plane);
    RY_TRY(find_kind(kind, seen, spec->kind, err));
    mean_values(meaning, *kind, spec->border_is_object);
    return ry_mask_patches(sides, plane, meaning, spec, err);
}

renyi_status ry_mask_read(uint8_t *sides, renyi_mask_kind *kind, const void *bytes, size_t size,
                          const uint32_t photo[2], const ry_mask_spec *spec, renyi_error *err)
{
    const ry_encoded in = {bytes, size, spec->limits, NULL};
    ry_plane plane;
    if (renyi_image_sniff(bytes, size) != RENYI_IMAGE_PNG)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, 0, "not a PNG file");
    RY_TRY(ry_decode_png_plane(&plane, &in, err));
    renyi_status st = RENYI_OK;
    if (spec->apply_exif) {
        const uint32_t orientation = ry_exif_orientation(bytes, size, RENYI_IMAGE_PNG);
        if (orientation != 1) st = ry_plane_turn(&plane, orientation, NULL, err);
    }
    if (!st) st = use_plane(sides, kind, &plane, photo, spec, err);
    ry_free(NULL, plane.values);
    return st;
}
