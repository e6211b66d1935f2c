/* vit_head.c - after the blocks: the rows that are read, and what a run answers with.
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
    ry_step step = ry_begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(p->pooled_x + i * K * row, from + i * n_tokens * row, K * row * sizeof(float));
    ry_step_end(&step);
}

void ry_pool_rows(ry_worker *w, size_t n_tokens)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit *v = p->vit;
    const size_t C = v->config.dim;

    switch (v->config.pool) {
    case RY_POOL_TOKEN: ry_gather_prefix(w, n_tokens); break;
    case RY_POOL_MEAN: ry_pool_mean(w, p->pooled_x, ry_tokens(w), C, n_tokens); break;
    case RY_POOL_NORM_MEAN:
        ry_run_layernorm(w, p->h, ry_vit_row(p, C), ry_tokens(w), w->r->in->n * n_tokens, v->norm_w,
                         v->norm_b, NULL);
        ry_pool_mean(w, p->pooled_h, p->h, ry_vit_row(p, C), n_tokens);
        break;
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

/* The head's logits; of two heads their mean. */
static void classify(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const size_t n = p->n_outputs;

    ry_run_linear(w, p->head, 1, p->pooled_h, w->r->out);
    if (!p->head_dist) return;
    ry_run_linear(w, p->head_dist, 1, p->pooled_h + ry_vit_row(p, p->vit->config.dim),
                  p->logits_dist);
    ry_step step = ry_begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        for (size_t j = i * n; j < (i + 1) * n; j++)
            w->r->out[j] = 0.5f * (w->r->out[j] + p->logits_dist[j]);
    ry_step_end(&step);
}

/* to [n, embedding], rows `to_row` apart: the projected row, or all pooled rows as they are. */
static void embed(ry_worker *w, float *to, size_t to_row)
{
    ry_vit_plan *p = w->r->p;
    const size_t C = p->vit->config.dim, h_row = ry_vit_row(p, C);
    const size_t rows = ry_vit_pooled_rows(&p->vit->config);
    if (p->projection) {
        ry_run_linear(w, p->projection, 1, p->pooled_h, to);
        return;
    }
    ry_step step = ry_begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        for (size_t k = 0; k < rows; k++)
            memcpy(to + i * to_row + k * C, p->pooled_h + (i * rows + k) * h_row,
                   C * sizeof(float));
    ry_step_end(&step);
}

/* Embeddings of one length against the rows of words. */
static void match_words(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const size_t E = ry_vit_embed_dim(&p->vit->config), row = ry_vit_row(p, E);

    embed(w, p->embedding, row);
    ry_step step = ry_begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        ry_row_to_length(p->embedding + i * row, E, p->vit->words_scale);
    ry_step_end(&step);
    ry_run_linear(w, p->words, 1, p->embedding, w->r->out);
}

void ry_head(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;

    if (c->pool != RY_POOL_NORM_MEAN)
        ry_run_layernorm(w, p->pooled_h, ry_vit_row(p, c->dim), p->pooled_x,
                         (size_t)w->r->in->n * ry_vit_pooled_rows(c), p->vit->norm_w,
                         p->vit->norm_b, NULL);
    if (p->words)
        match_words(w);
    else if (p->head)
        classify(w);
    else
        embed(w, w->r->out, p->n_outputs);
}
