/* tensor.h - named tensors as a file stores them, and the set that keeps their bytes alive.
 * Readers of every format fill a ry_tensors; callers do not know the format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TENSOR_H
#define RY_TENSOR_H

#include "renyi/renyi.h"

#include <stddef.h>
#include <stdint.h>

#define RY_MAX_DIMS 8

typedef enum ry_dtype {
    RY_BOOL,
    RY_U8,
    RY_I8,
    RY_U16,
    RY_I16,
    RY_U32,
    RY_I32,
    RY_U64,
    RY_I64,
    RY_F16,
    RY_BF16,
    RY_F32,
    RY_F64,
    /* Blocks of 32 numbers, or 256 (_K), that share scales: only GGUF has them. */
    RY_Q8_0,
    RY_Q4_0,
    RY_Q4_1,
    RY_Q5_0,
    RY_Q5_1,
    RY_Q4_K,
    RY_Q5_K,
    RY_Q6_K
} ry_dtype;

/* Bytes of a block, and its elements: 1 unless the type has blocks. */
size_t ry_dtype_size(ry_dtype t);
size_t ry_dtype_block(ry_dtype t);
const char *ry_dtype_name(ry_dtype t);               /* "F32", as safetensors spells it; "Q4_K" */
int ry_dtype_parse(const char *name, ry_dtype *out); /* the reverse, of types without blocks; 0 if
                                                        there is no such type */

/* Bytes of n elements; whole blocks. */
static inline size_t ry_dtype_bytes(ry_dtype t, size_t n)
{
    return n / ry_dtype_block(t) * ry_dtype_size(t);
}

typedef struct ry_tensor {
    const char *name;
    ry_dtype dtype;
    uint32_t n_dims;
    uint64_t shape[RY_MAX_DIMS];
    const void *data; /* any alignment; row-major */
    uint64_t bytes;   /* of all elements; a row is whole blocks; checked by the reader */
} ry_tensor;

typedef struct ry_tensors ry_tensors;

size_t ry_tensors_count(const ry_tensors *set);
const ry_tensor *ry_tensors_at(const ry_tensors *set, size_t i);
const ry_tensor *ry_tensors_find(const ry_tensors *set, const char *name); /* NULL if absent */
const char *ry_tensors_meta(const ry_tensors *set, const char *key);       /* NULL if absent */
void ry_tensors_free(ry_tensors *set);

/* A set of the tensors whose names begin with `prefix`, and of all metadata. It borrows the bytes:
 * `set` must outlive it. */
renyi_status ry_tensors_under(ry_tensors **out, const ry_tensors *set, const char *prefix,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Keys of the metadata in file order; NULL after the last. */
const char *ry_tensors_meta_key(const ry_tensors *set, size_t i);

/* 1 if the set reads tensors from the file at `path`, also under another name. */
int ry_tensors_reads(const ry_tensors *set, const char *path);

/* A hint that the bytes of `t` will not be read again, so that their pages can be dropped and
 * loading needs memory for one copy of the weights only. Reading them again is still correct. */
void ry_tensors_drop_pages(const ry_tensors *set, const ry_tensor *t);

/* Number of elements. */
uint64_t ry_tensor_elements(const ry_tensor *t);

/* Copy F32, F16, BF16, F64 or blocks into out [elements] as floats; any other type is an error that
 * names the tensor. */
renyi_status ry_tensor_to_f32(const ry_tensor *t, float *out, renyi_error *err) RENYI_CHECK;

#endif
