/* text_tower_forward.c - runs a pass of texts: token embedding, blocks of causal attention and MLP,
 * projection of the last tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/clip_text/text_tower_plan.h"
#include "model/common/weight_loader.h"

#include <string.h>

/* One thread. */
typedef struct worker {
    ry_text_plan *p;
    float *out;
    ry_runner *run;
} worker;

static ry_extent plain_rows(size_t rows) { return (ry_extent){1, rows}; }

/* y = op(LayerNorm x), with the normalized rows in h. */
static void norm_linear(worker *w, const ry_linear_op *op, size_t rows, const float *x,
                        const float *weight, const float *bias, float *h, float *y)
{
    const ry_text_plan *p = w->p;
    const size_t C = p->text->config.dim;
    const ry_norm norm = {&p->kernels, weight, bias, C, (float)p->text->config.norm_eps};
    ry_runner_norm(w->run, &norm, plain_rows(rows), x, h, ry_text_row(p, C), op);
    ry_runner_product(w->run, op, plain_rows(rows), h, y);
}

/* x[r] = token + position */
static void embed_row(const ry_text_plan *p, size_t r)
{
    const size_t C = p->text->config.dim;
    const float *pos = p->text->pos + p->pass.positions[r] * C;
    float *x = p->x + r * C;
    ry_token_table_row(&p->text->tokens, (size_t)p->pass.ids[r], x);
    for (size_t k = 0; k < C; k++) x[k] += pos[k];
}

static void embed_tokens(worker *w)
{
    const size_t rows = w->p->pass.n_rows;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, rows); r++) embed_row(w->p, r);
    ry_step_end(&step);
}

/* The row of a text's last token. */
static size_t last_row(const ry_text_pass *pass, size_t i)
{
    return pass->paths[i * pass->context + pass->texts[i].length - 1];
}

/* h = attention of the rows that each text does not share; with only_last, row i of h is that of
 * the last token of text i */
static void attend(worker *w, int only_last)
{
    ry_text_plan *p = w->p;
    const ry_text_config *c = &p->text->config;
    const ry_text_pass *pass = &p->pass;
    ry_causal at = {.n_heads = c->n_heads, .head = c->dim / c->n_heads, .qkv = p->wide};
    at.qkv_row = ry_text_row(p, 3 * (size_t)c->dim);
    at.out_row = ry_text_row(p, c->dim);
    ry_step step = ry_runner_step(w->run, pass->n_texts);
    for (size_t i; ry_step_next(&step, &i);) {
        const ry_text_span *text = &pass->texts[i];
        at.rows = pass->paths + i * pass->context;
        at.n_tokens = text->length;
        at.first = only_last ? text->length - 1 : text->shared;
        if (at.first == at.n_tokens) continue; /* all of it is shared */
        at.out = p->h + (only_last ? i : at.rows[at.first]) * at.out_row;
        p->kernels.causal(&at, p->attention + w->run->thread * p->attention_each);
    }
    ry_step_end(&step);
}

/* x [rows, C] += projection of attention in h, then += MLP(LayerNorm x) */
static void finish_block(worker *w, uint32_t i, size_t rows, float *x, float *h)
{
    ry_text_plan *p = w->p;
    const ry_block_weights *weights = &p->text->blocks[i];
    ry_runner_linear(w->run, p->ops[i].proj, plain_rows(rows), p->h, x);
    norm_linear(w, p->ops[i].fc1, rows, x, weights->norm2_w, weights->norm2_b, h, p->wide);
    ry_runner_linear(w->run, p->ops[i].fc2, plain_rows(rows), p->wide, x);
}

static void project_qkv(worker *w, uint32_t i)
{
    ry_text_plan *p = w->p;
    const ry_block_weights *weights = &p->text->blocks[i];
    norm_linear(w, p->ops[i].qkv, p->pass.n_rows, p->x, weights->norm1_w, weights->norm1_b, p->h,
                p->wide);
}

/* Only the last token of each text is read; the others contribute keys and values. */
static void run_last_block(worker *w, uint32_t i)
{
    ry_text_plan *p = w->p;
    const size_t C = p->text->config.dim;
    ry_step step = ry_runner_step(w->run, p->pass.n_texts);
    for (size_t k; ry_step_next(&step, &k);)
        memcpy(p->pooled_x + k * C, p->x + last_row(&p->pass, k) * C, C * sizeof(float));
    ry_step_end(&step);
    project_qkv(w, i);
    attend(w, 1);
    finish_block(w, i, p->pass.n_texts, p->pooled_x, p->pooled_h);
}

static void run_thread(ry_runner *run, void *user)
{
    worker mine = *(const worker *)user, *w = &mine;
    w->run = run;
    ry_text_plan *p = w->p;
    const ry_text *t = p->text;
    const uint32_t L = t->config.n_blocks;
    const size_t E = t->config.embed_dim;

    embed_tokens(w);
    for (uint32_t i = 0; i + 1 < L; i++) {
        project_qkv(w, i);
        attend(w, 0);
        finish_block(w, i, p->pass.n_rows, p->x, p->h);
    }
    run_last_block(w, L - 1);
    norm_linear(w, p->projection, p->pass.n_texts, p->pooled_x, t->norm_w, t->norm_b, p->pooled_h,
                p->embeddings);
    ry_step step = ry_runner_step(w->run, p->pass.n_texts);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(w->out + p->pass.texts[i].index * E, p->embeddings + i * E, E * sizeof(float));
    ry_step_end(&step);
}

void ry_text_forward(ry_text_plan *p, float *out)
{
    worker w = {.p = p, .out = out};
    ry_team_run(&p->team, run_thread, &w);
}
