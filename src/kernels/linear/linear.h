/* linear.h - y = x W^T + b with weights packed once: the matrix products of all models.
 *
 * A linear bound to a number of rows is an *op*. An op is divided into tiles that threads take one
 * by one. The bits of a result do not depend on the number of tiles, threads or images.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LINEAR_H
#define RY_LINEAR_H

#include "renyi/renyi.h"

#include <stddef.h>

typedef struct ry_linear ry_linear;       /* packed weights; threads may share it read-only */
typedef struct ry_linear_op ry_linear_op; /* a linear bound to a number of rows; one per plan */

/* ---- linears --------------------------------------------------------------------------------- */

/* What happens to a row after the product and the bias. */
typedef enum ry_epilogue {
    RY_EPI_NONE,      /* y = xW + b */
    RY_EPI_GELU,      /* y = gelu(xW + b), erf form */
    RY_EPI_RESIDUAL,  /* y += xW + b */
    RY_EPI_QUICKGELU, /* y = v * sigmoid(1.702 v), v = xW + b */
    RY_EPI_GELU_TANH, /* y = v/2 (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3))) */
    RY_N_EPILOGUES
} ry_epilogue;

/* The name of an activation in Hugging Face's configs. */
static inline const char *ry_activation_name(ry_epilogue activation)
{
    return activation == RY_EPI_QUICKGELU   ? "quick_gelu"
           : activation == RY_EPI_GELU_TANH ? "gelu_pytorch_tanh"
                                            : "gelu";
}

/* One interface, three kinds of implementation: plain C (linear_scalar.c, the specification), our
 * own packed products (linear_template.h and its siblings for int8 and int4; VEC8 is AVX2 or NEON),
 * and on x86 oneDNN (linear_onednn.c) for bf16 and, from AVX-512 on, for int8.
 *
 * Why not oneDNN everywhere? Our f32 product is faster (docs/SPEED.md), has the same bits with AVX2
 * and AVX-512, and takes rows with any stride. And oneDNN's tiles are blocks of rows: a language
 * model computes one row at a time and needs tiles of columns, which ours have. */
typedef enum ry_linear_backend {
    RY_LINEAR_SCALAR,
    RY_LINEAR_VEC8,
    RY_LINEAR_AVX512,
    RY_LINEAR_INT8_SCALAR,
    RY_LINEAR_INT8_VEC8,
    RY_LINEAR_ONEDNN_BF16,
    RY_LINEAR_ONEDNN_INT8,
    RY_LINEAR_BF16_SCALAR, /* weights kept as bf16, arithmetic in f32 */
    RY_LINEAR_BF16_VEC8,
    RY_LINEAR_BF16_AVX512,
    RY_LINEAR_GROUPS_SCALAR, /* int4 and blocks: quant.h */
    RY_LINEAR_GROUPS_VEC8,
    RY_LINEAR_BF16MM /* ARM64 with bf16: rows and weights of bf16 */
} ry_linear_backend;

/* The range of an input, known from calibration; low < high. */
typedef struct ry_quant_range {
    float low, high;
} ry_quant_range;

/* Weights that are blocks of 32 inputs, as GGUF stores them, and are computed with as they are: a
 * half float d, then the numbers; w = d * number. Products are those of int4 (quant.h): activations
 * have 8 bits. */
typedef enum ry_linear_blocks {
    RY_BLOCKS_NONE,
    RY_BLOCKS_Q4, /* Q4_0: 16 bytes; byte j has the numbers j and j + 16, each plus 8 */
    RY_BLOCKS_Q8  /* Q8_0: 32 signed bytes */
} ry_linear_blocks;

/* Weights that are produced while they are packed: writes rows first .. first + count of
 * [n_out, n_in] to `to`, as floats or as the blocks of the spec. The threads of a pool read at the
 * same time, each other rows. Our own implementations read a panel at a time, so that the whole
 * matrix never exists as floats. */
typedef struct ry_linear_reader {
    renyi_status (*rows)(void *user, size_t first, size_t count, void *to, renyi_error *err);
    void *user;
} ry_linear_reader;

/* Weights that are already packed, in the layout of panels.h, for example in a mapped file. They
 * are borrowed and must outlive the linear. Only our own int8 and int4 implementations take them.
 */
typedef struct ry_linear_stored {
    const void *panels; /* [panels of n_out, ry_panel_bytes] */
    const float *scale; /* [n_out] */
    const float *sum;   /* [n_out] for int8; NULL for int4 */
} ry_linear_stored;

/* w: [n_out, n_in] row-major; bias: [n_out] or NULL. Both are copied. If w is NULL the weights come
 * from reader or stored; if these are NULL too they are zeros until ry_linear_update, which needs
 * 16 bits or more. The epilogue is fixed because oneDNN compiles it in. */
typedef struct ry_linear_spec {
    const float *w, *bias;
    size_t n_out, n_in;
    ry_epilogue epilogue;
    renyi_dtype dtype;           /* of the product, 0 = F32 */
    const ry_quant_range *range; /* of x, for int8; NULL = every row has its own range */
    const float *scale; /* [n_out] for int8, if row j of w is integers times scale[j]: exactly these
                           integers are used where they fit. NULL = scales are computed */
    const ry_linear_reader *reader;
    ry_linear_blocks blocks; /* not NONE: the reader gives blocks, n_in is a multiple of 32, and
                                dtype is ignored */
    const ry_linear_stored *stored;
    struct ry_thread_pool *pool; /* helps to read and pack; NULL = the caller alone */
    int few_rows; /* 1 = ops of one row matter as much as ops of many (language models). bf16 then
                     means how weights are kept, and every CPU level has it. Implied by int4 and
                     blocks. */
} ry_linear_spec;

/* The implementation for a spec at a CPU level. */
ry_linear_backend ry_linear_backend_for(renyi_cpu level, const ry_linear_spec *spec);

renyi_status ry_linear_new(ry_linear **out, const ry_linear_spec *spec, renyi_cpu level,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
renyi_status ry_linear_new_backend(ry_linear **out, const ry_linear_spec *spec,
                                   ry_linear_backend backend, const renyi_allocator *al,
                                   renyi_error *err) RENYI_CHECK;
void ry_linear_free(ry_linear *l, const renyi_allocator *al);

/* Replaces the weights in place, as if the linear had been made with them; ops on it stay valid.
 * w: [n_out, n_in], or [n_in, n_out] if transposed; bias NULL = zeros. Fails for fewer than 16 bits
 * and for few_rows. No thread may run the linear meanwhile. */
renyi_status ry_linear_update(ry_linear *l, const float *w, int transposed, const float *bias,
                              renyi_error *err) RENYI_CHECK;
size_t ry_linear_out(const ry_linear *l);
size_t ry_linear_in(const ry_linear *l);
size_t ry_linear_bytes(const ry_linear *l);      /* of its weights, owned or borrowed */
const float *ry_linear_bias(const ry_linear *l); /* [n_out]; zeros if it was made without */

/* ---- ops ------------------------------------------------------------------------------------- */

/* Rows of x and y: image i, row r starts at base + i*image + r*row floats. */
typedef struct ry_rows {
    size_t row, image;
} ry_rows;

/* Row stride for buffers of rows of `width` floats that l reads or writes. Transformer widths are
 * multiples of 1024 bytes; rows that far apart share a few cache sets, so our own products need one
 * cache line more. Products of oneDNN in bf16 need rows without gaps. */
size_t ry_linear_row(const ry_linear *l, size_t width);

/* If the rows of an image are a multiple of this, all tiles of an op have the same height. */
enum { RY_LINEAR_TILE = 64 };

renyi_status ry_linear_op_new(ry_linear_op **out, const ry_linear *l, size_t rows_per_image,
                              ry_rows x, ry_rows y, unsigned n_threads, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
void ry_linear_op_free(ry_linear_op *op, const renyi_allocator *al);
const ry_linear *ry_linear_op_of(const ry_linear_op *op);
ry_rows ry_linear_op_input(const ry_linear_op *op);

/* A run of an op: the first `rows` rows of each of n_images; rows <= rows_per_image. oneDNN rounds
 * up to whole tiles: the rows of y after `rows`, up to rows_per_image, may hold anything then. */
typedef struct ry_extent {
    size_t n_images, rows;
} ry_extent;

/* Number of tiles of a run; and tile t, computed by thread `thread` < n_threads. Tiles may run at
 * the same time, in any order. */
size_t ry_linear_op_tiles(const ry_linear_op *op, ry_extent run);
void ry_linear_op_tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                       const void *x, float *y);

/* Some implementations with fewer bits do not read floats. Their x is the output of
 * ry_linear_op_convert, in a buffer of ry_linear_input_bytes (0 = x are the floats themselves).
 * Conversion has its own tiles of RY_CONVERT_ROWS rows; the rows of all images are numbered
 * consecutively. */
enum { RY_CONVERT_ROWS = 16 };
size_t ry_linear_input_bytes(const ry_linear *l, size_t rows);
int ry_linear_op_converts(const ry_linear_op *op);
void ry_linear_op_convert(const ry_linear_op *op, size_t t, ry_extent run, const float *x,
                          void *to);

/* ---- reference speed ------------------------------------------------------------------------- */

/* Best GFLOP/s of oneDNN's own threaded f32 product (of ours, in a build without oneDNN) on the
 * four shapes of a ViT-B block at batch 8: what `renyi bench` compares with. */
renyi_status ry_measure_peak(unsigned n_threads, double *gflops, renyi_error *err) RENYI_CHECK;

#endif
