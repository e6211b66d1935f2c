/* fuzz_torch.c - any bytes as a PyTorch zip checkpoint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/torch_zip.h"
#include "fuzz_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_tensors(ry_torch_parse, data, size);
}
