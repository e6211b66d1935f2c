/* linear.h - y = x W^T + b with weights packed once: the matrix products of the model.
 * One interface, three kinds of body: plain C (linear_scalar.c, the specification), our packed
 * kernels (linear_avx2.c) and oneDNN (linear_onednn.c, the one file that knows it) from AVX-512 on.
 * Why not oneDNN everywhere: without AVX-512 its f32 product packs the weights anew in every call;
 * ours runs at 95 % of the FMA peak there against 80-93 % (docs/SPEED.md). And its tiles are rows:
 * a language model that has one row at a time needs tiles of columns, which ours have.
 *
 * A linear bound to a number of rows is an *op*; an op is cut into tiles that threads take one by
 * one. The bits of a result do not depend on the number of tiles, threads or images.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LINEAR_H
#define RY_LINEAR_H

#include "renyi/renyi.h"

#include <stddef.h>

typedef struct ry_linear ry_linear; /* packed weights; may be shared by threads that only run it */
typedef struct ry_linear_op ry_linear_op; /* a linear on so many rows; belongs to one plan */

/* What happens to a row after the product and the bias. */
typedef enum ry_epilogue {
    RY_EPI_NONE,     /* y = xW + b */
    RY_EPI_GELU,     /* y = gelu(xW + b), erf form */
    RY_EPI_RESIDUAL, /* y += xW + b */
    RY_EPI_QUICKGELU /* y = v * sigmoid(1.702 v), v = xW + b */
} ry_epilogue;

typedef enum ry_linear_backend {
    RY_LINEAR_SCALAR,
    RY_LINEAR_AVX2,
    RY_LINEAR_ONEDNN,
    RY_LINEAR_INT8_SCALAR,
    RY_LINEAR_INT8_AVX2,
    RY_LINEAR_ONEDNN_BF16,
    RY_LINEAR_ONEDNN_INT8,
    RY_LINEAR_BF16_SCALAR, /* weights kept as bf16, arithmetic in f32 */
    RY_LINEAR_BF16_AVX2,
    RY_LINEAR_BF16_AVX512,
    RY_LINEAR_INT4_SCALAR, /* quant4.h */
    RY_LINEAR_INT4_AVX2
} ry_linear_backend;

/* Where the numbers of an input lie, known beforehand from calibration; low < high. */
typedef struct ry_quant_range {
    float low, high;
} ry_quant_range;

/* Weights that are made as they are packed: rows first .. first + count of [n_out, n_in] into `to`.
 * Bodies of our own ask for some panels at a time, so that a matrix of floats need not exist. */
typedef struct ry_linear_reader {
    renyi_status (*rows)(void *user, size_t first, size_t count, float *to, renyi_error *err);
    void *user;
} ry_linear_reader;

/* Weights that are packed already, in the layout of panels.h: borrowed as long as the linear lives,
 * so that a mapped file is all there is of them. Only the bodies of int8 and int4 that serve few
 * rows take them. */
typedef struct ry_linear_stored {
    const void *panels; /* [panels of n_out, ry_panel_bytes] */
    const float *scale; /* [n_out] */
    const float *sum;   /* [n_out] of int8; NULL of int4 */
} ry_linear_stored;

/* w: [n_out, n_in] row-major; bias: [n_out] or NULL. Both are copied (packed). w NULL: from reader,
 * or stored; without these zeros until ry_linear_update, not for fewer than 16 bits. A linear has
 * one epilogue for life, because a backend may compile it in. */
typedef struct ry_linear_spec {
    const float *w, *bias;
    size_t n_out, n_in;
    ry_epilogue epilogue;
    renyi_dtype dtype;           /* of the product, 0 = F32; ry_linear_new picks the body by it */
    const ry_quant_range *range; /* of x, for bodies of 8 bits; NULL = every row has its own */
    const float *scale; /* [n_out] if row j of w is integers times scale[j] already: bodies of 8
                           bits then take just these integers, if they can; NULL = to be found */
    const ry_linear_reader *reader;
    const ry_linear_stored *stored;
    int few_rows; /* 1 = ops of one row are as important as ops of many (language models): bf16 is
                     then what weights are kept in, and every CPU level has it. int4 always is. */
} ry_linear_spec;

/* Which body serves a linear at a CPU level. */
ry_linear_backend ry_linear_backend_for(renyi_cpu level, const ry_linear_spec *spec);

renyi_status ry_linear_new(ry_linear **out, const ry_linear_spec *spec, renyi_cpu level,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
renyi_status ry_linear_new_backend(ry_linear **out, const ry_linear_spec *spec,
                                   ry_linear_backend backend, const renyi_allocator *al,
                                   renyi_error *err) RENYI_CHECK;
void ry_linear_free(ry_linear *l, const renyi_allocator *al);

/* Other weights of the same shape, packed in place: the linear is then as if it had been made of
 * them, and the ops on it stay valid. w: [n_out, n_in], or [n_in, n_out] if transposed; bias NULL =
 * zeros. Bodies of fewer than 16 bits and those for few rows refuse. Nobody may run the linear
 * meanwhile. */
renyi_status ry_linear_update(ry_linear *l, const float *w, int transposed, const float *bias,
                              renyi_error *err) RENYI_CHECK;
size_t ry_linear_out(const ry_linear *l);
size_t ry_linear_in(const ry_linear *l);
size_t ry_linear_bytes(const ry_linear *l);      /* of the weights that it owns or borrows */
const float *ry_linear_bias(const ry_linear *l); /* [n_out]; zeros if it was made without */

/* Rows of x and y: image i, row r starts at base + i*image + r*row floats. */
typedef struct ry_rows {
    size_t row, image;
} ry_rows;

/* How far apart rows of `width` floats should lie around products of l's kind. Widths of
 * transformers are multiples of 1024 bytes, and rows that far apart fall into the same few cache
 * sets: our kernel wants a cache line more. oneDNN accepts only rows that lie one after the other:
 * without that it leaves its blocked kernels. */
size_t ry_linear_row(const ry_linear *l, size_t width);

/* Ops of images whose rows are a multiple of this cut them into tiles of one height. */
enum { RY_LINEAR_TILE = 64 };

renyi_status ry_linear_op_new(ry_linear_op **out, const ry_linear *l, size_t rows_per_image,
                              ry_rows x, ry_rows y, unsigned n_threads, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
void ry_linear_op_free(ry_linear_op *op, const renyi_allocator *al);
const ry_linear *ry_linear_op_of(const ry_linear_op *op);
ry_rows ry_linear_op_input(const ry_linear_op *op);

/* A run of an op: the first `rows` rows of each of n_images, at most as many as it is bound to.
 * oneDNN rounds them up to whole tiles of its binding: what it writes into the rows of y between
 * `rows` and those bound means nothing. */
typedef struct ry_extent {
    size_t n_images, rows;
} ry_extent;

/* Tiles of a run; tile t of them, computed by thread `thread` < n_threads. Tiles may run at the
 * same time, in any order. */
size_t ry_linear_op_tiles(const ry_linear_op *op, ry_extent run);
void ry_linear_op_tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                       const void *x, float *y);

/* Bodies of fewer bits do not take floats: x is then what ry_linear_op_convert made of them, in a
 * buffer of ry_linear_input_bytes (0 = x are the floats themselves). Conversion has tiles of its
 * own, RY_CONVERT_ROWS rows each; rows of all images count through. */
enum { RY_CONVERT_ROWS = 16 };
size_t ry_linear_input_bytes(const ry_linear *l, size_t rows);
int ry_linear_op_converts(const ry_linear_op *op);
void ry_linear_op_convert(const ry_linear_op *op, size_t t, ry_extent run, const float *x,
                          void *to);

#endif
