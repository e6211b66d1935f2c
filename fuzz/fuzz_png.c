/* fuzz_png.c - any bytes as PNG; then the same with the checksum of every chunk made right, because
 * otherwise hardly a changed byte gets past it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image_target.h"
#include "png_repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_image(ry_decode_png, RENYI_IMAGE_PNG, data, size);
    uint8_t *copy = png_repaired(data, size);
    if (!copy) return 0;
    fuzz_image(ry_decode_png, RENYI_IMAGE_PNG, copy, size);
    free(copy);
    return 0;
}
