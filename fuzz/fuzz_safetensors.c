/* fuzz_safetensors.c - any bytes as a safetensors file; what is accepted is read to the last byte.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    ry_tensors *set;
    renyi_error err;
    volatile uint8_t sink = 0;

    if (ry_safetensors_parse(&set, data, size, "fuzz", &limits, NULL, &err)) {
        if (set || !err.message[0]) abort();
        return 0;
    }
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        if (ry_tensors_find(set, t->name) != t) abort();
        if (t->bytes != ry_tensor_elements(t) * ry_dtype_size(t->dtype)) abort();
        for (uint64_t k = 0; k < t->bytes; k++) sink ^= ((const uint8_t *)t->data)[k];
    }
    (void)sink;
    ry_tensors_free(set);
    return 0;
}
