/* gram.c - dot products of rows in plain C, and the sizes all levels share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/gram.h"

#include "kernels/kernels.h"

enum { ROWS = 16 }; /* rows of a block at the scalar level */

size_t ry_gram_blocks(size_t n, size_t rows) { return (n + rows - 1) / rows; }

/* Some columns of the block's rows transposed, and its products transposed [n, rows]. */
size_t ry_gram_scratch(size_t n, size_t dim, size_t rows)
{
    return ((dim < RY_GRAM_DEPTH ? dim : RY_GRAM_DEPTH) + n) * rows;
}

static RY_DECL_GRAM(gram)
{
    const size_t first = block * ROWS, last = first + ROWS < n ? first + ROWS : n;
    (void)scratch;
    for (size_t i = first; i < last; i++)
        for (size_t j = 0; j < last; j++) {
            const float *a = z + i * z_row, *b = z + j * z_row;
            float dot = 0.0f;
            for (size_t c = 0; c < dim; c++) dot += a[c] * b[c];
            out[i * out_row + j] = dot;
        }
}

void ry_gram_init(ry_kernels *k)
{
    k->gram = gram;
    k->gram_rows = ROWS;
}
