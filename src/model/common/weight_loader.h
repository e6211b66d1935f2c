/* weight_loader.h - turns the tensors of a checkpoint into vectors, packed matrices and tables, one
 * at a time: the peak of memory is one copy of the weights and one matrix. All towers use it.
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
    float *scratch;       /* space for the largest matrix, its bias and scale */
    uint64_t done, total; /* tensors */
    uint64_t n_params;    /* elements of the tensors read so far */
    renyi_error *err;
} ry_loader;

/* Counts the tensors of the naming and allocates scratch of so many floats. */
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
    size_t n_out, n_in; /* of all parts together */
    ry_epilogue epilogue;
    renyi_dtype dtype; /* of the product */
    int transposed;    /* one part, stored [n_in, n_out] */
    ry_tensor_role
        scale; /* with `scaled`: a vector [n_out] that rows and biases are multiplied by */
    int scaled;
} ry_linear_source;

/* Floats of scratch that a matrix of n_out rows needs, with bias, scale and layer scale. */
static inline size_t ry_loader_floats(size_t n_out, size_t n_in) { return n_out * (n_in + 3); }

renyi_status ry_loader_linear(ry_loader *ld, const ry_linear_source *s,
                              ry_linear **out) RENYI_CHECK;

/* A linear for few rows (kernels/linear/linear.h), packed while it is read, without scratch: the
 * largest matrix of a language model would be half a gigabyte of floats. Float weights only, no
 * biases. */
renyi_status ry_loader_rows(ry_loader *ld, const ry_linear_source *s, ry_linear **out) RENYI_CHECK;

/* Float matrices stacked below each other, read as one: rows first .. first + count - 1. */
typedef struct ry_parts {
    const ry_tensor *part[3];
    uint32_t n;
} ry_parts;
renyi_status ry_parts_rows(const ry_parts *p, size_t first, size_t count, float *to,
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
size_t ry_loader_block_floats(size_t dim, size_t mlp_dim);                  /* of scratch */
void ry_block_weights_free(ry_block_weights *b, const renyi_allocator *al); /* partly built too */

/* ---- token embeddings ---------------------------------------------------------------------- */

/* *out [vocab, width]: a copy of RY_TOKEN_EMBED in the type of the file, with an empty name. It is
 * not converted: F16 and BF16 take half the memory, and a pass reads only a few rows. All of it
 * must be finite; it is checked in pieces of `piece` floats, at most the loader's scratch. */
renyi_status ry_token_table_load(ry_tensor *out, ry_loader *ld, size_t piece) RENYI_CHECK;
void ry_token_table_free(ry_tensor *t, const renyi_allocator *al); /* a zeroed one too */

/* out [width] = the row of a token below vocab */
void ry_token_table_row(const ry_tensor *t, size_t token, float *out);

#endif
