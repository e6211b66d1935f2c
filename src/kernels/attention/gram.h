/* gram.h - dot products of rows with each other, the lower triangle of Z Z^T. Of unit rows they
 * are the cosines that merging rules compare tokens by.
 *
 * The unit of work is a block of rows; a block is computed alone, in one order, so the bits do not
 * depend on the number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_GRAM_H
#define RY_GRAM_H

#include <stddef.h>

/* out[i*out_row + j] = z_i . z_j for the rows i of one block (block*R <= i < block*R + R, i < n; R
 * rows to a block) and every j up to the last of them: the triangle, and the block on its diagonal
 * in full. z [n, dim], out [n, n]; scratch: ry_gram_scratch floats, 64-byte aligned. */
#define RY_DECL_GRAM(fn)                                                                    \
    void fn(float *out, size_t out_row, const float *z, size_t z_row, size_t n, size_t dim, \
            size_t block, float *scratch)

/* Columns of z that are taken at a time, so that the packed ones stay in the nearest cache. */
enum { RY_GRAM_DEPTH = 384 };

/* Blocks of n rows, and floats of scratch for one thread, with blocks of `rows` of them. */
size_t ry_gram_blocks(size_t n, size_t rows);
size_t ry_gram_scratch(size_t n, size_t dim, size_t rows);

#endif
