/* vit_forward.c - runs a plan: patch embedding, blocks of attention and MLP, head.
 *
 * All threads run through forward() and share the tiles of every step (base/steps.h). Which thread
 * computes a tile does not change its bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "base/steps.h"
#include "image/patches.h"
#include "model/vit_plan.h"

#include <omp.h>
#include <string.h>

typedef struct run {
    ry_vit_plan *p;
    const ry_vit_input *in;
    float *logits;
    int stop; /* written by thread 0 inside report() */
} run;

typedef struct worker {
    run *r;
    unsigned thread;
    size_t ticket; /* index of the next step's ticket: every thread counts the same steps */
} worker;

static ry_step begin(worker *w, size_t tiles)
{
    return (ry_step){&w->r->p->tickets[w->ticket++], tiles, 0};
}

static void linear(worker *w, const ry_linear_op *op, const float *x, float *y)
{
    const size_t n = w->r->in->n;
    ry_step step = begin(w, ry_linear_op_tiles(op, n));
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_tile(op, t, n, w->thread, x, y);
    ry_step_end(&step);
}

/* h [rows, C padded] = LayerNorm of x [rows, C], 16 rows at a time */
static void layernorm(worker *w, float *h, const float *x, size_t rows, const float *weight,
                      const float *bias)
{
    enum { ROWS = 16 };
    const ry_vit_plan *p = w->r->p;
    const size_t C = p->vit->config.dim, h_row = ry_vit_row(p, C);
    ry_step step = begin(w, (rows + ROWS - 1) / ROWS);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * ROWS, count = rows - first < ROWS ? rows - first : ROWS;
        p->kernels.layernorm(h + first * h_row, h_row, x + first * C, C, count, C, weight, bias,
                             (float)p->vit->config.norm_eps);
    }
    ry_step_end(&step);
}

/* x = [prefix, patches W + b] + positions */
static void embed(worker *w)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_input *in = w->r->in;
    const ry_vit_config *c = &p->vit->config;
    const size_t C = c->dim, P = p->vit->n_patches, N = P + c->n_prefix, S = c->image_size;
    const size_t patch = 3 * (size_t)c->patch_size * c->patch_size;

    ry_step step = begin(w, in->n);
    for (size_t i; ry_step_next(&step, &i);) {
        float *x = p->x + i * N * C, *rows = p->wide + i * P * patch;
        memcpy(x, p->vit->prefix, c->n_prefix * C * sizeof(float));
        memcpy(x + c->n_prefix * C, p->vit->pos, P * C * sizeof(float));
        if (in->pixels)
            ry_patches_from_pixels(rows, in->pixels + i * S * S * 3, c->image_size, c->patch_size,
                                   in->lut);
        else
            ry_patches_from_chw(rows, in->chw + i * 3 * S * S, c->image_size, c->patch_size);
    }
    ry_step_end(&step);
    linear(w, p->patch_embed, p->wide,
           p->x + c->n_prefix * C); /* += : positions are there already */
}

/* What attention has to hand out for image i of block b; nothing in a dense run. */
static ry_attention attention_of(const ry_vit_plan *p, const ry_block_plan *b, size_t i)
{
    const size_t C = p->vit->config.dim, N = b->n_in, H = p->vit->config.n_heads;
    ry_attention at = {.n_tokens = N, .n_heads = H, .head = C / H, .columns = b->needs.columns};
    at.qkv_row = ry_vit_row(p, 3 * C);
    at.out_row = ry_vit_row(p, C);
    at.qkv = p->wide + i * N * at.qkv_row;
    at.out = p->h + i * N * at.out_row;
    if (b->needs.what & RY_NEED_CLASS_ROW) at.class_row = p->class_row + i * N;
    if (b->needs.what & RY_NEED_COLUMNS)
        at.column_parts =
            p->column_parts + i * N * ry_attention_blocks(N, p->kernels.attention_rows);
    return at;
}

static void attention(worker *w, const ry_block_plan *b)
{
    const ry_vit_plan *p = w->r->p;
    const size_t rows = b->prefix_only ? p->vit->config.n_prefix : b->n_in;
    const size_t blocks = ry_attention_blocks(rows, p->kernels.attention_rows);
    ry_step step = begin(w, w->r->in->n * blocks);
    for (size_t t; ry_step_next(&step, &t);) {
        const ry_attention at = attention_of(p, b, t / blocks);
        p->kernels.attention(&at, t % blocks, p->attention + w->thread * p->attention_each);
    }
    ry_step_end(&step);
}

/* Between attention and MLP: let the hook see each image and shorten its token list. */
static void cut(worker *w, uint32_t index, const ry_block_plan *b)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;
    const size_t N = b->n_in, C = c->dim;
    const size_t blocks = ry_attention_blocks(N, p->kernels.attention_rows);

    ry_step step = begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);) {
        const ry_attention at = attention_of(p, b, i);
        float *columns = p->columns + i * N;
        if (at.column_parts) ry_attention_scores(columns, &at, blocks);
        const ry_block_view view = {.block = index,
                                    .image = (uint32_t)i,
                                    .n_tokens = b->n_in,
                                    .dim = c->dim,
                                    .n_heads = c->n_heads,
                                    .n_prefix = c->n_prefix,
                                    .class_row = at.class_row,
                                    .columns = at.column_parts ? columns : NULL,
                                    .qkv = at.qkv,
                                    .qkv_row = at.qkv_row,
                                    .x = p->x + i * N * C};
        if (p->hook->watch) p->hook->watch(p->hook->self, &view, NULL);
    }
    ry_step_end(&step);
}

/* x += attention(LayerNorm x) up to the projection; h then holds attention's output. */
static void attend(worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_plan *b = &p->blocks[i];
    const ry_vit_block *weights = &p->vit->blocks[i];

    layernorm(w, p->h, p->x, (size_t)w->r->in->n * b->n_in, weights->norm1_w, weights->norm1_b);
    linear(w, b->qkv, p->h, p->wide);
    attention(w, b);
}

/* x += MLP(LayerNorm x) over `rows` rows of all images */
static void mlp(worker *w, uint32_t i, float *x, float *h, size_t rows)
{
    const ry_block_plan *b = &w->r->p->blocks[i];
    const ry_vit_block *weights = &w->r->p->vit->blocks[i];

    layernorm(w, h, x, rows, weights->norm2_w, weights->norm2_b);
    linear(w, b->fc1, h, w->r->p->wide);
    linear(w, b->fc2, w->r->p->wide, x);
}

/* Copy the class (and distillation) rows of every image; `row` floats from one row to the next. */
static void gather_prefix(worker *w, float *to, const float *from, size_t row, size_t n_tokens)
{
    const size_t K = w->r->p->vit->config.n_prefix;
    ry_step step = begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(to + i * K * row, from + i * n_tokens * row, K * row * sizeof(float));
    ry_step_end(&step);
}

static void block(worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_plan *b = &p->blocks[i];

    attend(w, i);
    linear(w, b->proj, p->h, p->x);
    if (b->needs.what) cut(w, i, b);
    mlp(w, i, p->x, p->h, (size_t)w->r->in->n * b->n_out);
}

/* After the last block only the class (and distillation) rows are read. They need the keys and
 * values of all tokens, but no other row needs its attention, projection or MLP: the same result
 * for three quarters of a block less. */
static void last_block(worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_plan *b = &p->blocks[i];
    const size_t C = p->vit->config.dim;

    gather_prefix(w, p->prefix_x, p->x, C, b->n_in);
    attend(w, i);
    gather_prefix(w, p->prefix_h, p->h, ry_vit_row(p, C), b->n_in);
    linear(w, b->proj, p->prefix_h, p->prefix_x);
    mlp(w, i, p->prefix_x, p->prefix_h, (size_t)w->r->in->n * p->vit->config.n_prefix);
}

static void head(worker *w)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;

    layernorm(w, p->prefix_h, p->prefix_x, (size_t)w->r->in->n * c->n_prefix, p->vit->norm_w,
              p->vit->norm_b);
    linear(w, p->head, p->prefix_h, w->r->logits);
    if (!p->head_dist) return;
    linear(w, p->head_dist, p->prefix_h + ry_vit_row(p, c->dim), p->logits_dist);
    ry_step step = begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        for (size_t j = i * c->n_classes; j < (i + 1) * c->n_classes; j++)
            w->r->logits[j] = 0.5f * (w->r->logits[j] + p->logits_dist[j]);
    ry_step_end(&step);
}

/* Thread 0, the caller's, speaks to the outside while the others wait. */
static int report(worker *w, uint32_t index, uint32_t n_tokens)
{
    run *r = w->r;
    if (!r->in->progress && !r->in->tap) return 0;
    const uint32_t L = r->p->vit->config.n_blocks;
    ry_step step = begin(w, 1);
    if (w->thread == 0) {
        step.mine = 1;
        if (r->in->tap) r->in->tap(r->in->tap_user, index, r->p->x, n_tokens);
        if (r->in->progress && index < L)
            r->stop = r->in->progress(r->in->progress_user, index + 1, L) != 0;
    }
    ry_step_end(&step);
    return r->stop;
}

static void forward(worker *w)
{
    const ry_vit_plan *p = w->r->p;
    const uint32_t L = p->vit->config.n_blocks;
    uint32_t tokens = p->vit->n_patches + p->vit->config.n_prefix;

    embed(w);
    if (report(w, L, tokens)) return;
    for (uint32_t i = 0; i < L; i++) {
        if (p->blocks[i].prefix_only)
            last_block(w, i);
        else
            block(w, i);
        tokens = p->blocks[i].n_out;
        if (report(w, i, tokens)) return;
    }
    if (!p->blocks[L - 1].prefix_only)
        gather_prefix(w, p->prefix_x, p->x, p->vit->config.dim, tokens);
    head(w);
}

renyi_status ry_vit_forward(ry_vit_plan *p, const ry_vit_input *in, float *logits)
{
    run r = {p, in, logits, 0};
    for (size_t i = 0; i < p->n_tickets; i++) ry_ticket_reset(&p->tickets[i]);
#pragma omp parallel num_threads(p->n_threads)
    {
        worker w = {&r, (unsigned)omp_get_thread_num(), 0};
        omp_set_num_threads(
            1); /* for this region's tasks: a tile never spawns threads of its own */
        forward(&w);
    }
    return r.stop ? RENYI_ERR_ABORTED : RENYI_OK;
}
