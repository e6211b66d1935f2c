/* torch_zip.c - SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch_zip.h"

#include "base/limits.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "formats/tensor_set.h"

renyi_status ry_torch_parse(ry_tensors **out, const void *bytes, size_t size, const char *what,
                            const renyi_limits *limits, const renyi_allocator *al, renyi_error *err)
{
    (void)bytes, (void)size, (void)limits, (void)al;
    *out = NULL;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "%s: PyTorch zip: use the safetensors file",
                   what);
}

renyi_status ry_torch_open(ry_tensors **out, const char *path, const renyi_limits *limits,
                           const renyi_allocator *al, renyi_error *err)
{
    return ry_torch_parse(out, NULL, 0, path, limits, al, err);
}
