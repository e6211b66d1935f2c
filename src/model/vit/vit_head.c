/* vit_head.c - after the blocks of a ViT: pools the rows that the head reads and computes the
 * output: logits, an embedding, or similarities to the texts of classes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/vit/vit_run.h"

#include <string.h>

/* ---- pooling -------------------------------------------------------------------------------- */

void ry_gather_prefix(ry_worker *w, size_t n_tokens)
{
    const ry_vit_plan *p = w->r->p;
    const size_t K = p->vit->config.n_prefix, row = p->vit->config.dim;
    const float *from = ry_tokens(w);
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(p->pooled_x + i * K * row, from + i * n_tokens * row, K * row * sizeof(float));
    ry_step_end(&step);
}

/* The mean of the patch rows of every image after the last block: to [B, row] from rows
 * [B, n_tokens, row]. A merged token counts as often as the patches it stands for, so the mean is
 * sum(size x) / sum(size), as in "Token Merging: Your ViT But Faster" for MAE; a fused one counts
 * once. */
static void pool_mean(ry_worker *w, float *to, const float *rows, size_t row, size_t n_tokens)
{
    const ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;
    const ry_block_rows *last = &p->rows[c->n_blocks - 1];
    const int sized = last->sized || last->needs.sizes;
    enum { COLUMNS = 256 }; /* of a tile */
    const size_t tiles = (c->dim + COLUMNS - 1) / COLUMNS;

    ry_step step = ry_runner_step(w->run, w->r->in->n * tiles);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / tiles, at = t % tiles * COLUMNS;
        const size_t width = c->dim - at < COLUMNS ? c->dim - at : COLUMNS;
        const float *sizes = sized ? p->cuts.sizes[w->sizes_now] + image * n_tokens : NULL;
        ry_token_mean(to + image * row + at, rows + image * n_tokens * row + at, row, width, sizes,
                      c->n_prefix, n_tokens);
    }
    ry_step_end(&step);
}

void ry_pool_rows(ry_worker *w, size_t n_tokens)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit *v = p->vit;
    const size_t C = v->config.dim;

    switch (v->config.pool) {
    case RY_POOL_TOKEN: ry_gather_prefix(w, n_tokens); break;
    case RY_POOL_MEAN: pool_mean(w, p->pooled_x, ry_tokens(w), C, n_tokens); break;
    case RY_POOL_NORM_MEAN:
        ry_run_layernorm(w, p->h, ry_vit_row(p, C), ry_tokens(w), n_tokens, v->norm_w, v->norm_b,
                         NULL);
        pool_mean(w, p->pooled_h, p->h, ry_vit_row(p, C), n_tokens);
        break;
    }
}

/* ---- output --------------------------------------------------------------------------------- */

/* The logits of the head, or the mean of two heads. */
static void classify(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const size_t n = p->n_outputs;

    ry_run_linear(w, p->head, 1, p->pooled_h, w->r->out);
    if (!p->head_dist) return;
    ry_run_linear(w, p->head_dist, 1, p->pooled_h + ry_vit_row(p, p->vit->config.dim),
                  p->logits_dist);
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        for (size_t j = i * n; j < (i + 1) * n; j++)
            w->r->out[j] = 0.5f * (w->r->out[j] + p->logits_dist[j]);
    ry_step_end(&step);
}

/* to [n, embedding], rows `to_row` apart: the projected row, or all pooled rows as they are. */
static void write_embedding(ry_worker *w, float *to, size_t to_row)
{
    ry_vit_plan *p = w->r->p;
    const size_t C = p->vit->config.dim, h_row = ry_vit_row(p, C);
    const size_t rows = ry_vit_pooled_rows(&p->vit->config);
    if (p->projection) {
        ry_run_linear(w, p->projection, 1, p->pooled_h, to);
        return;
    }
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        for (size_t k = 0; k < rows; k++)
            memcpy(to + i * to_row + k * C, p->pooled_h + (i * rows + k) * h_row,
                   C * sizeof(float));
    ry_step_end(&step);
}

/* Embeddings, scaled to one length, times the texts of the classes. */
static void compare_with_texts(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const size_t E = ry_vit_embed_dim(&p->vit->config), row = ry_vit_row(p, E);

    write_embedding(w, p->embedding, row);
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        ry_row_to_length(p->embedding + i * row, E, p->vit->text_head_scale);
    ry_step_end(&step);
    ry_run_linear(w, p->text_head, 1, p->embedding, w->r->out);
}

void ry_head(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;

    if (c->pool != RY_POOL_NORM_MEAN)
        ry_run_layernorm(w, p->pooled_h, ry_vit_row(p, c->dim), p->pooled_x, ry_vit_pooled_rows(c),
                         p->vit->norm_w, p->vit->norm_b, NULL);
    if (p->text_head)
        compare_with_texts(w);
    else if (p->head)
        classify(w);
    else
        write_embedding(w, w->r->out, p->n_outputs);
}
