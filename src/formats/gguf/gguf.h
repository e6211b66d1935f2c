/* gguf.h - reads GGUF, the format of llama.cpp: values by key, then tensors.
 *
 * File: "GGUF" | u32 version 2 or 3 | u64 tensors | u64 values
 *       | each value: text key, u32 kind, its bytes
 *       | each tensor: text name, u32 dimensions, u64 sizes (the fastest first), u32 type,
 *         u64 offset
 *       | zeros up to a multiple of general.alignment (32)
 *       | tensor bytes
 *
 * A text is a u64 length and bytes; an array is a u32 kind, a u64 count and its elements. All
 * numbers are little-endian; offsets are counted from the tensor bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_GGUF_H
#define RY_GGUF_H

#include "formats/tensor.h"

#include <jansson.h>

/* As files number them. */
typedef enum ry_gguf_kind {
    RY_GGUF_U8,
    RY_GGUF_I8,
    RY_GGUF_U16,
    RY_GGUF_I16,
    RY_GGUF_U32,
    RY_GGUF_I32,
    RY_GGUF_F32,
    RY_GGUF_BOOL,
    RY_GGUF_TEXT,
    RY_GGUF_ARRAY,
    RY_GGUF_U64,
    RY_GGUF_I64,
    RY_GGUF_F64,
    RY_GGUF_N_KINDS
} ry_gguf_kind;

typedef struct ry_gguf_text { /* not NUL-terminated */
    const char *at;
    size_t n;
} ry_gguf_text;

/* Borrows the bytes of the file; all of it is inside the file. */
typedef struct ry_gguf_value {
    ry_gguf_text key;
    ry_gguf_kind kind; /* of the value or, of an array, of its elements */
    int is_array;
    uint64_t count;    /* elements; 1 unless it is an array */
    const uint8_t *at; /* the first element */
    uint64_t offset;   /* of the key in the file, for messages */
} ry_gguf_value;

typedef struct ry_gguf {
    ry_gguf_value *values; /* [n_values] sorted by key */
    size_t n_values;
    ry_tensors *tensors; /* shapes as usual here: the slowest size first */
} ry_gguf;

/* Borrows the bytes. `what` names the file in messages. On failure *out is zero. */
renyi_status ry_gguf_parse(ry_gguf *out, const void *bytes, size_t size, const char *what,
                           const renyi_limits *limits, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;
void ry_gguf_free(ry_gguf *g, const renyi_allocator *al); /* a zeroed one is allowed */

/* ---- values -------------------------------------------------------------------------------- */

const ry_gguf_value *ry_gguf_find(const ry_gguf *g, const char *key); /* NULL if absent */

/* Element i as a number; 1 if it is one, and for the first an integer. */
int ry_gguf_integer(const ry_gguf_value *v, uint64_t i, int64_t *out);
int ry_gguf_number(const ry_gguf_value *v, uint64_t i, double *out);

/* Texts in order: start with v->at and a count of 0. */
typedef struct ry_gguf_texts {
    const ry_gguf_value *of;
    const uint8_t *at;
    uint64_t done;
} ry_gguf_texts;
static inline ry_gguf_texts ry_gguf_texts_of(const ry_gguf_value *v)
{
    return (ry_gguf_texts){v, v->at, 0};
}
int ry_gguf_next_text(ry_gguf_texts *t, ry_gguf_text *out); /* 0 after the last */

/* All values but long arrays and arrays of texts as one JSON object, for models to read as they
 * read a config.json. Texts that are not UTF-8, numbers that
 * are not finite and integers beyond 63 bits are left out. Owned by the caller. */
renyi_status ry_gguf_config(json_t **out, const ry_gguf *g, const char *what,
                            renyi_error *err) RENYI_CHECK;

#endif
