/* vit_pool.c - what a head without class token reads: the mean of the patch tokens.
 *
 * Merged tokens stand for several patches, so that the mean is sum(size x) / sum(size), as in
 * "Token Merging: Your ViT But Faster" for MAE; without merging the plain mean.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/token_rows.h"
#include "model/vit/vit_run.h"

/* Columns of a tile. */
enum { COLUMNS = 256 };

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
        ry_token_mean(to + image * row + at, rows + image * n_tokens * row + at, row, width, sizes,
                      c->n_prefix, n_tokens);
    }
    ry_step_end(&step);
}
