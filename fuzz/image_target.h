/* image_target.h - what the four picture targets do with their bytes: read them as one format, turn
 * the picture as its EXIF says, fit it. Small limits keep a run fast.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_FUZZ_IMAGE_TARGET_H
#define RENYI_FUZZ_IMAGE_TARGET_H

#include "base/alloc.h"
#include "base/limits.h"
#include "image/decode.h"
#include "image/exif.h"

#include <stdlib.h>

static inline int fuzz_image(ry_image_reader *reader, renyi_image_format format,
                             const uint8_t *data, size_t size)
{
    const renyi_limits small = {.max_pixels = 1u << 18, .max_image_side = 4096};
    const ry_encoded in = {data, size, ry_limits(&small), NULL};
    const uint32_t orientation = ry_exif_orientation(data, size, format);
    renyi_error err;
    renyi_image image;
    if (renyi_image_sniff(data, size) != format || reader(&image, &in, &err)) return 0;
    if (orientation < 1 || orientation > 8) abort();
    if (ry_image_turn(&image, orientation, NULL, &err) == RENYI_OK) {
        uint8_t out[24 * 24 * 3];
        const renyi_preprocess spec = {24,
                                       (renyi_crop_mode)(size % 3),
                                       (renyi_interpolation)(size / 3 % 3),
                                       0.9,
                                       {0.5, 0.5, 0.5},
                                       {1, 1, 1}};
        if (renyi_image_fit(out, &image, &spec, NULL, &err)) abort();
    }
    ry_free(NULL, (void *)(uintptr_t)image.rgb);
    return 0;
}

#endif
