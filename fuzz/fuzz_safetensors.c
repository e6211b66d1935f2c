/* fuzz_safetensors.c - any bytes as a safetensors file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/safetensors.h"
#include "fuzz_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_tensors(ry_safetensors_parse, data, size);
}
