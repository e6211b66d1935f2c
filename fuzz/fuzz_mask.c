/* fuzz_mask.c - any bytes as a PNG mask of any kind, turned as its EXIF says, to the sides of
 * patches; then the same with right checksums.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "eval/masks/mask.h"
#include "png_repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_mask(const uint8_t *data, size_t size)
{
    static const renyi_limits small = {.max_pixels = 1u << 18, .max_image_side = 4096};
    uint32_t photo[2] = {0, 0};
    for (size_t i = 16; i < 24 && size >= 24; i++) /* what the header says, so that it fits */
        photo[(i - 16) / 4] = photo[(i - 16) / 4] << 8 | data[i];
    for (int variant = 0; variant < 6; variant++) {
        const ry_mask_spec spec = {
            .kind = (renyi_mask_kind)(variant % 3),
            .border_is_object = variant > 2,
            .apply_exif = variant > 2,
            .limits = ry_limits(&small),
            .preprocess = {.size = 24, .crop_mode = (renyi_crop_mode)(size % 3), .crop_pct = 0.9},
            .patch = 5};
        uint8_t sides[16];
        renyi_mask_kind kind;
        renyi_error err;
        if (ry_mask_read(sides, &kind, data, size, photo, &spec, &err)) continue;
        if (kind != RENYI_MASK_TRIMAP && kind != RENYI_MASK_BINARY) abort();
        for (int p = 0; p < 16; p++)
            if (sides[p] > RY_OBJECT) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_mask(data, size);
    uint8_t *copy = png_repaired(data, size);
    if (copy) read_mask(copy, size);
    free(copy);
    return 0;
}
