/* linear_backend.h - what the bodies of linear.h share: the structs behind the handles and the
 * table of a backend.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LINEAR_BACKEND_H
#define RY_LINEAR_BACKEND_H

#include "kernels/linear/linear.h"
#include "kernels/rows/quant.h"

/* unpack, bind and unbind may be NULL: nothing to do. What linear.c allocates it frees itself. */
typedef struct ry_linear_vtable {
    /* Pack spec into l->packed / l->bias (or l->impl). */
    renyi_status (*pack)(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err);
    void (*unpack)(ry_linear *l, const renyi_allocator *al);
    /* Fill l->packed anew: ry_linear_update, which sees to the bias. NULL = refuses. */
    renyi_status (*update)(ry_linear *l, const float *w, int transposed, renyi_error *err);
    /* Choose the tiles; allocate what a run needs. */
    renyi_status (*bind)(ry_linear_op *op, const renyi_allocator *al, renyi_error *err);
    void (*unbind)(ry_linear_op *op, const renyi_allocator *al);
    size_t (*tiles)(const ry_linear_op *op, ry_extent run);
    void (*tile)(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread, const void *x,
                 float *y);
    size_t row_padding; /* floats between the rows that the body likes: ry_linear_row */
    int reads;          /* packs by ry_linear_each_panel; else linear.c reads all rows for it */
    /* Bodies that do not take floats: bytes of so many rows, and `count` of `rows` rows from
     * `first` on. NULL = x is read as it is. */
    size_t (*input_bytes)(const ry_linear *l, size_t rows);
    void (*convert)(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                    const float *x, size_t x_row);
} ry_linear_vtable;

struct ry_linear {
    const ry_linear_vtable *vt;
    size_t n_out, n_in;
    ry_epilogue epilogue;
    void *packed; /* layout of the backend */
    size_t packed_bytes;
    int borrowed; /* packed is somebody else's: ry_linear_stored */
    int few_rows; /* of the spec */
    float *bias;  /* [n_out], zeros if the model has none; padded by the backend */
    void *impl;   /* oneDNN's objects */
    /* of 8-bit weights, padded like bias: quant.h */
    float *scale, *sum;
    int has_range;
    ry_quant_range range;
};

struct ry_linear_op {
    const ry_linear *l;
    size_t rows; /* per image, at most */
    ry_rows x, y;
    unsigned n_threads;
    float *scratch; /* [n_threads, scratch_each] partial sums of a tile */
    size_t scratch_each;
    void *impl;
};

extern const ry_linear_vtable ry_linear_scalar, ry_linear_avx2, ry_linear_onednn,
    ry_linear_int8_scalar, ry_linear_int8_avx2, ry_linear_onednn_bf16, ry_linear_onednn_int8,
    ry_linear_bf16_scalar, ry_linear_bf16_avx2, ry_linear_bf16_avx512, ry_linear_int4_scalar,
    ry_linear_int4_avx2;

/* What a body does with `count` <= panel rows of weights from output `first` on; scratch:
 * [n_in + 64]. */
typedef void (*ry_panel_packer)(ry_linear *l, const ry_linear_spec *spec, size_t first,
                                size_t count, const float *rows, float *scratch);

/* Calls it for all weights of the spec, `panel` rows at a time, wherever they come from. */
renyi_status ry_linear_each_panel(ry_linear *l, const ry_linear_spec *spec, size_t panel,
                                  ry_panel_packer pack, const renyi_allocator *al,
                                  renyi_error *err) RENYI_CHECK;

/* Memory of the packed weights, zeros, which linear.c frees. */
renyi_status ry_linear_take(ry_linear *l, size_t bytes, const renyi_allocator *al,
                            renyi_error *err) RENYI_CHECK;

#endif
