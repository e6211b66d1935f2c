/* fuzz_tensors.h - what the targets of the tensor formats share: what a reader accepts must hold
 * together and is read to the last byte.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_TENSORS_H
#define FUZZ_TENSORS_H

#include "formats/tensor.h"

#include <stdlib.h>

typedef renyi_status (*fuzz_reader)(ry_tensors **out, const void *bytes, size_t size,
                                    const char *what, const renyi_limits *limits,
                                    const renyi_allocator *al, renyi_error *err);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int fuzz_tensors(fuzz_reader parse, const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    ry_tensors *set;
    renyi_error err;
    volatile uint8_t sink = 0;

    if (parse(&set, data, size, "fuzz", &limits, NULL, &err)) {
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

#endif
