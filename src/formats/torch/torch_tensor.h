/* torch_tensor.h - from a tensor of a checkpoint's pickle to one of a set; between torch_state.c
 * and torch_tensor.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TORCH_TENSOR_H
#define RY_TORCH_TENSOR_H

#include "formats/torch/torch_state.h"

typedef struct ry_torch_reader {
    ry_tensors *set;
    const ry_pickle *p;
    const ry_torch_archive *a;
    uint64_t copied; /* bytes of tensors that were not row-major */
    renyi_error *err;
} ry_torch_reader;

/* Its name is `key` behind around [length], the modules it is in: "visual." and "proj". */
renyi_status ry_torch_add_tensor(ry_torch_reader *s, const char *around, size_t length,
                                 const ry_pickle_node *key,
                                 const ry_pickle_node *tensor) RENYI_CHECK;

#endif
