/* weight_loader.h - from the tensors of a checkpoint to vectors and packed matrices, one at a time,
 * so that the peak of loading is one copy of the weights and one matrix. What every tower is loaded
 * with.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_WEIGHT_LOADER_H
#define RY_WEIGHT_LOADER_H

#include "model/common/tensor_names.h"

typedef struct ry_loader {
    ry_vit_naming naming;
    const ry_tensors *set;
    const renyi_options *opt; /* its progress is called */
    const renyi_allocator *al;
    renyi_cpu level;
    float *scratch;       /* room for the largest matrix, its bias and scale */
    uint64_t done, total; /* tensors */
    uint64_t n_params;    /* elements of the tensors read so far */
    renyi_error *err;
} ry_loader;

/* Counts the tensors of the naming and takes scratch of so many floats. */
renyi_status ry_loader_begin(ry_loader *ld, size_t scratch_floats) RENYI_CHECK;
void ry_loader_end(ry_loader *ld);

/* The tensor of a role; NULL if there is none. */
const ry_tensor *ry_loader_find(const ry_loader *ld, ry_vit_role role, uint32_t block);

/* A tensor as floats into out [elements]; its pages may then go. */
renyi_status ry_loader_read(ry_loader *ld, const ry_tensor *t, float *out) RENYI_CHECK;

/* A tensor has been read: its pages may go, and progress is told. */
renyi_status ry_loader_finished(ry_loader *ld, const ry_tensor *t) RENYI_CHECK;

/* The tensor of a role, which must be there; *out is owned by the caller even on failure. */
renyi_status ry_loader_vector(ry_loader *ld, ry_vit_role role, uint32_t block,
                              float **out) RENYI_CHECK;

/* Where the weights and biases of a linear come from: one pair, or up to three stacked (q, k, v).
 */
typedef struct ry_linear_source {
    ry_vit_role w[3], b[3]; /* a bias may be absent */
    uint32_t parts, block;
    size_t n_out, n_in; /* of all parts together */
    ry_epilogue epilogue;
    renyi_dtype dtype; /* of the product */
    int transposed;    /* one part, stored [n_in, n_out] */
} ry_linear_source;

/* Floats of scratch that a matrix of n_out rows needs, with bias and scale. */
static inline size_t ry_loader_floats(size_t n_out, size_t n_in) { return n_out * (n_in + 2); }

renyi_status ry_loader_linear(ry_loader *ld, const ry_linear_source *s,
                              ry_linear **out) RENYI_CHECK;

/* Matrices of floats below each other, as one. */
typedef struct ry_parts {
    const ry_tensor *part[3];
    uint32_t n;
} ry_parts;
renyi_status ry_parts_rows(const ry_parts *p, size_t first, size_t count, float *to,
                           renyi_error *err) RENYI_CHECK;

/* A linear for few rows (kernels/linear/linear.h), packed as it is read, without scratch. No
 * biases, and weights of floats. */
renyi_status ry_loader_rows(ry_loader *ld, const ry_linear_source *s, ry_linear **out) RENYI_CHECK;

/* What all blocks of a tower have in common. */
typedef struct ry_block_shape {
    size_t dim, mlp_dim;
    ry_epilogue activation;
    renyi_dtype dtype; /* of the products */
} ry_block_shape;

/* A block of the tower; what was loaded before a failure is in *out, to be freed. */
renyi_status ry_loader_block(ry_loader *ld, const ry_block_shape *c, uint32_t i,
                             ry_vit_block *out) RENYI_CHECK;
size_t ry_loader_block_floats(size_t dim, size_t mlp_dim);          /* of scratch */
void ry_vit_block_free(ry_vit_block *b, const renyi_allocator *al); /* any partly built state */

#endif
