/* weight_loader.h - turns the tensors of a checkpoint into vectors, packed matrices and tables, one
 * at a time. A matrix is read and packed on all threads, a few rows at a time: the peak of memory
 * is one copy of the weights. All towers use it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_WEIGHT_LOADER_H
#define RY_WEIGHT_LOADER_H

#include "model/common/tensor_names.h"

typedef struct ry_loader {
    ry_tensor_naming naming;
    const ry_tensors *set;
    const renyi_options *opt; /* its progress callback is called */
    const renyi_allocator *al;
    renyi_cpu level;
    float *scratch; /* [scratch_floats] for what a model reads and changes before it keeps it */
    size_t scratch_floats;
    struct ry_thread_pool *pool; /* reads and packs matrices */
    uint64_t done, total;        /* tensors */
    uint64_t n_params;           /* elements of the tensors read so far */
    renyi_error *err;
} ry_loader;

/* Counts the tensors of the naming, allocates scratch of so many floats and starts the threads that
 * help. */
renyi_status ry_loader_begin(ry_loader *ld, size_t scratch_floats) RENYI_CHECK;
void ry_loader_end(ry_loader *ld);

/* ---- tensors ------------------------------------------------------------------------------- */

/* The tensor of a role; NULL if there is none. */
const ry_tensor *ry_loader_find(const ry_loader *ld, ry_tensor_role role, uint32_t block);

/* A tensor as floats into out [elements]; its file pages are dropped. */
renyi_status ry_loader_read(ry_loader *ld, const ry_tensor *t, float *out) RENYI_CHECK;

/* Call after reading a tensor in another way: drops its pages and reports progress. */
renyi_status ry_loader_finished(ry_loader *ld, const ry_tensor *t) RENYI_CHECK;

/* The tensor of a role, which must exist; the caller owns *out even on failure. */
renyi_status ry_loader_vector(ry_loader *ld, ry_tensor_role role, uint32_t block,
                              float **out) RENYI_CHECK;

/* ---- matrices ------------------------------------------------------------------------------ */

/* The weights and biases of a linear: one pair, or up to three stacked (q, k, v). */
typedef struct ry_linear_source {
    ry_tensor_role w[3], b[3]; /* a bias may be absent */
    uint32_t parts, block;
    uint32_t bias_parts; /* biases, each for an equal share of the rows; 0 = one for each part */
    size_t n_out, n_in;  /* of all parts together */
    ry_epilogue epilogue;
    renyi_dtype dtype; /* of the product */
    int transposed;    /* one part, stored [n_in, n_out] */
    ry_tensor_role
        scale; /* with `scaled`: a vector [n_out] that rows and biases are multiplied by */
    int scaled;
    int few_rows;         /* kernels/linear/linear.h; the matrices of language models, which have
                             no biases and no scales: their blocks stay (ry_parts_blocks) */
    uint32_t paired_head; /* ry_parts: of the first two parts; or 0 */
} ry_linear_source;

renyi_status ry_loader_linear(ry_loader *ld, const ry_linear_source *s,
                              ry_linear **out) RENYI_CHECK;

/* Matrices of a set with rows of n_in, stacked below each other and read as one. */
typedef struct ry_parts {
    const ry_tensor *part[3];
    uint32_t n;
    size_t n_in;
    const ry_tensors *set;
    uint32_t paired_head;    /* not 0: the first two parts, queries and keys, have heads of so many
                                rows, and rows i and i + half of a head are stored as 2i and 2i + 1 */
    ry_linear_blocks blocks; /* rows are read as these; NONE = as floats */
} ry_parts;

/* Blocks of the file that a language model in `dtype` computes with as they are, because they have
 * no more bits: Q4_0 in int4 and int8, Q8_0 in int8. All parts must have them. */
ry_linear_blocks ry_parts_blocks(const ry_parts *p, renyi_dtype dtype);

/* Rows first .. first + count - 1, one after the other. */
renyi_status ry_parts_rows(const ry_parts *p, size_t first, size_t count, void *to,
                           renyi_error *err) RENYI_CHECK;

/* ---- blocks -------------------------------------------------------------------------------- */

/* What all blocks of a tower have in common. */
typedef struct ry_block_shape {
    size_t dim, mlp_dim;
    ry_epilogue activation;
    renyi_dtype dtype; /* of the products */
    int layer_scale;   /* RY_SCALE1 and RY_SCALE2 exist; they become part of proj and fc2 */
    int gated;         /* fc1 is gate and up, stacked, without activation */
} ry_block_shape;

/* Block i of the tower. After a failure *out holds what was loaded; the caller frees it. */
renyi_status ry_loader_block(ry_loader *ld, const ry_block_shape *c, uint32_t i,
                             ry_block_weights *out) RENYI_CHECK;
void ry_block_weights_free(ry_block_weights *b, const renyi_allocator *al); /* partly built too */

/* ---- token embeddings ---------------------------------------------------------------------- */

/* *out [vocab, width]: a copy of RY_TOKEN_EMBED in the type of the file, with an empty name. It is
 * not converted: F16 and BF16 take half the memory, and a pass reads only a few rows. All of it
 * must be finite; it is checked in pieces of the loader's scratch. */
renyi_status ry_token_table_load(ry_tensor *out, ry_loader *ld) RENYI_CHECK;
void ry_token_table_free(ry_tensor *t, const renyi_allocator *al); /* a zeroed one too */

/* out [width] = the row of a token below vocab */
void ry_token_table_row(const ry_tensor *t, size_t token, float *out);

#endif
