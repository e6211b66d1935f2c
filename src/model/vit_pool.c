/* vit_pool.c - what a head without class token reads: the mean of the patch tokens.
 *
 * Merged tokens stand for several patches, so that the mean is sum(size x) / sum(size), as in
 * "Token Merging: Your ViT But Faster" for MAE; without merging the plain mean.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows.h"
#include "model/vit_run.h"

#include <string.h>

/* Columns of a tile. */
enum { COLUMNS = 256 };

/* to [width] = mean of the patch rows' columns; always in the same order. */
static void mean_of(float *to, const float *rows, size_t row, size_t width, const float *sizes,
                    size_t first, size_t n_tokens)
{
    float sum = 0.0f;
    memset(to, 0, width * sizeof *to);
    for (size_t j = first; j < n_tokens; j++) {
        const float size = sizes ? sizes[j] : 1.0f;
        ry_row_add(to, rows + j * row, size, width);
        sum += size;
    }
    ry_row_scale(to, to, 1.0f / sum, width);
}

void ry_pool_mean(ry_worker *w, float *to, const float *rows, size_t row, size_t n_tokens)
{
    const ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;
    const ry_block_rows *last = &p->rows[c->n_blocks - 1];
    const int sized = last->sized || last->needs.sizes;
    const size_t tiles = (c->dim + COLUMNS - 1) / COLUMNS;

    ry_step step = ry_begin(w, w->r->in->n * tiles);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / tiles, at = t % tiles * COLUMNS;
        const size_t width = c->dim - at < COLUMNS ? c->dim - at : COLUMNS;
        const float *sizes = sized ? p->cuts.sizes[w->sizes_now] + image * n_tokens : NULL;
        mean_of(to + image * row + at, rows + image * n_tokens * row + at, row, width, sizes,
                c->n_prefix, n_tokens);
    }
    ry_step_end(&step);
}
