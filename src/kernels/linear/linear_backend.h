/* linear_backend.h - what the implementations of linear.h share: the structs behind the handles,
 * the function table of an implementation, and the packing of weights (linear_pack.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LINEAR_BACKEND_H
#define RY_LINEAR_BACKEND_H

#include "kernels/linear/linear.h"
#include "kernels/linear/panels.h"
#include "kernels/linear/quant.h"

/* unpack, bind and unbind may be NULL: nothing to do. linear.c frees what is in the structs below,
 * except impl. */
typedef struct ry_linear_vtable {
    /* Pack the weights of spec into l->packed and l->bias (or l->impl). */
    renyi_status (*pack)(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err);
    void (*unpack)(ry_linear *l, const renyi_allocator *al);
    /* ry_linear_update: fill l->packed again; linear.c writes the bias. NULL = not supported. */
    renyi_status (*update)(ry_linear *l, const float *w, int transposed, renyi_error *err);
    /* Choose the tiles; allocate what a run needs. */
    renyi_status (*bind)(ry_linear_op *op, const renyi_allocator *al, renyi_error *err);
    void (*unbind)(ry_linear_op *op, const renyi_allocator *al);
    size_t (*tiles)(const ry_linear_op *op, ry_extent run);
    void (*tile)(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread, const void *x,
                 float *y);
    size_t row_padding; /* floats between rows: ry_linear_row */
    int reads;          /* 1 = packs by ry_linear_each_panel; 0 = linear.c reads all rows first */
    /* If x is not floats: bytes of so many converted rows; and convert rows first .. first + count
     * of `rows`. NULL = x is read as it is. */
    size_t (*input_bytes)(const ry_linear *l, size_t rows);
    void (*convert)(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                    const float *x, size_t x_row);
} ry_linear_vtable;

struct ry_linear {
    const ry_linear_vtable *vt;
    size_t n_out, n_in;
    ry_epilogue epilogue;
    void *packed; /* layout of the implementation */
    size_t packed_bytes;
    int borrowed; /* packed belongs to the caller: ry_linear_stored */
    int few_rows; /* of the spec */
    float *bias;  /* [n_out], zeros if the model has none; padded by the implementation */
    void *impl;   /* oneDNN's objects */
    /* of weights of 8 and 4 bits, padded like bias: quant.h. Blocks have scales of 1. */
    float *scale, *sum;
    ry_groups groups; /* of int4 and blocks */
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

extern const ry_linear_vtable ry_linear_scalar, ry_linear_vec8, ry_linear_avx512,
    ry_linear_int8_scalar, ry_linear_int8_vec8, ry_linear_onednn_bf16, ry_linear_onednn_int8,
    ry_linear_bf16_scalar, ry_linear_bf16_vec8, ry_linear_bf16_avx512, ry_linear_groups_scalar,
    ry_linear_groups_vec8;
/* ARM64: with dot products of bytes, and with products of small matrices */
extern const ry_linear_vtable ry_linear_int8_dotprod, ry_linear_int8_i8mm, ry_linear_groups_dotprod,
    ry_linear_bf16_bf16mm;

/* ---- packing --------------------------------------------------------------------------------- */

/* Allocates l->packed, filled with zeros if spec has no weights; and l->bias [n_padded] from spec,
 * zeros after n_out. */
renyi_status ry_linear_take(ry_linear *l, const ry_linear_spec *spec, size_t bytes,
                            const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
renyi_status ry_linear_take_bias(ry_linear *l, const ry_linear_spec *spec, size_t n_padded,
                                 const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Packs `count` <= panel rows of weights from output `first` on, and zeros for the rest of the
 * panel; scratch: [n_in + 64]. The threads of a pool call it, each for other panels. */
typedef void (*ry_panel_packer)(ry_linear *l, const ry_linear_spec *spec, size_t first,
                                size_t count, const float *rows, float *scratch);

/* Calls the packer for all weights of the spec, from w or reader, `panel` rows at a time, with
 * the help of its pool. */
renyi_status ry_linear_each_panel(ry_linear *l, const ry_linear_spec *spec, size_t panel,
                                  ry_panel_packer pack, const renyi_allocator *al,
                                  renyi_error *err) RENYI_CHECK;

/* to [n_out, n_in] = all rows of the spec's reader, with the help of its pool. */
renyi_status ry_linear_read_all(ry_linear *l, const ry_linear_spec *spec, float *to,
                                renyi_error *err) RENYI_CHECK;

/* bf16: packs panels of `width` outputs, panel p = [n_in, width] at packed + p * n_in * width. The
 * bias is padded to whole panels. */
renyi_status ry_bf16_pack(ry_linear *l, const ry_linear_spec *spec, size_t width,
                          const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* int8; int4 and blocks: packs panels (panels.h), or borrows spec->stored; bias, scale and sum are
 * padded to whole panels. pairs: ry_quant_channel */
renyi_status ry_int8_pack(ry_linear *l, const ry_linear_spec *spec, int pairs,
                          const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
renyi_status ry_groups_pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                            renyi_error *err) RENYI_CHECK;

/* Allocates bias, scale and sum [n_padded] and fills the first n_out of bias. */
renyi_status ry_int8_columns(ry_linear *l, const ry_linear_spec *spec, size_t n_padded,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Channel j, w [n_in], as integers q [n_in]; its scale and sum go to l. */
void ry_int8_channel(ry_linear *l, const ry_linear_spec *spec, size_t j, const float *w, int8_t *q,
                     int pairs);

/* Bytes of converted rows: ry_linear_vtable.input_bytes. */
size_t ry_int8_input_bytes(const ry_linear *l, size_t rows);
size_t ry_groups_input_bytes(const ry_linear *l, size_t rows);

#endif
