/* fuzz_webp.c - any bytes as WebP.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_image(ry_decode_webp, RENYI_IMAGE_WEBP, data, size);
}
