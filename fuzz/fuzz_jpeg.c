/* fuzz_jpeg.c - any bytes as JPEG.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_image(ry_decode_jpeg, RENYI_IMAGE_JPEG, data, size);
}
