/* vit_forward.c - runs a plan: patch embedding, blocks of attention and MLP, head.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "base/steps.h"
#include "image/patches.h"
#include "model/vit/vit_run.h"

#include <omp.h>
#include <string.h>

/* y = op of rows that are there in the form that it reads. rows: of each image */
static void product(ry_worker *w, const ry_linear_op *op, size_t rows, const void *x, float *y)
{
    const ry_extent run = {w->r->in->n, rows};
    ry_step step = ry_begin(w, ry_linear_op_tiles(op, run));
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_tile(op, t, run, w->thread, x, y);
    ry_step_end(&step);
}

/* Shows the floats that a product is about to read to whoever asked for them. */
static void watch(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x)
{
    const ry_vit_input *in = w->r->in;
    if (!in->watch) return;
    ry_step step = ry_begin(w, 1);
    if (w->thread == 0) {
        step.mine = 1;
        in->watch(in->watch_user, op, (ry_extent){in->n, rows}, x);
    }
    ry_step_end(&step);
}

void ry_run_linear(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x, float *y)
{
    watch(w, op, rows, x);
    if (!ry_linear_op_converts(op)) {
        product(w, op, rows, x, y);
        return;
    }
    const ry_extent run = {w->r->in->n, rows};
    ry_step step = ry_begin(w, (run.n_images * rows + RY_CONVERT_ROWS - 1) / RY_CONVERT_ROWS);
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_convert(op, t, run, x, w->r->p->low);
    ry_step_end(&step);
    product(w, op, rows, w->r->p->low, y);
}

void ry_run_layernorm(ry_worker *w, float *h, size_t h_row, const float *x, size_t rows,
                      const float *weight, const float *bias, const ry_linear_op *next)
{
    enum { ROWS = RY_CONVERT_ROWS };
    const ry_vit_plan *p = w->r->p;
    const int converts = next && ry_linear_op_converts(next);
    const ry_extent run = {w->r->in->n, rows / w->r->in->n};
    const size_t C = p->vit->config.dim;
    ry_step step = ry_begin(w, (rows + ROWS - 1) / ROWS);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * ROWS, count = rows - first < ROWS ? rows - first : ROWS;
        p->kernels.layernorm(h + first * h_row, h_row, x + first * C, C, count, C, weight, bias,
                             (float)p->vit->config.norm_eps);
        if (converts) ry_linear_op_convert(next, t, run, h, p->low);
    }
    ry_step_end(&step);
}

/* y = op(LayerNorm x), with the normalised rows in h. rows: of each image */
static void norm_linear(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x,
                        const float *weight, const float *bias, float *h, float *y)
{
    const size_t h_row = ry_vit_row(w->r->p, w->r->p->vit->config.dim);
    ry_run_layernorm(w, h, h_row, x, w->r->in->n * rows, weight, bias, op);
    watch(w, op, rows, h);
    product(w, op, rows, ry_linear_op_converts(op) ? w->r->p->low : h, y);
}

/* x = [prefix, patches W + b] + positions, in CLIP normalised */
static void embed(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_input *in = w->r->in;
    const ry_vit_config *c = &p->vit->config;
    const size_t C = c->dim, P = p->vit->n_patches, N = P + c->n_prefix, S = c->image_size;
    const size_t patch = 3 * (size_t)c->patch_size * c->patch_size;

    ry_step step = ry_begin(w, in->n);
    for (size_t i; ry_step_next(&step, &i);) {
        float *x = p->x[0] + i * N * C, *rows = p->wide + i * P * patch;
        memcpy(x, p->vit->prefix, c->n_prefix * C * sizeof(float));
        memcpy(x + c->n_prefix * C, p->vit->pos, P * C * sizeof(float));
        if (in->pixels)
            ry_patches_from_pixels(rows, in->pixels + i * S * S * 3, c->image_size, c->patch_size,
                                   in->lut);
        else
            ry_patches_from_chw(rows, in->chw + i * 3 * S * S, c->image_size, c->patch_size);
    }
    ry_step_end(&step);
    ry_run_linear(w, p->patch_embed, P, p->wide,
                  p->x[0] + c->n_prefix * C); /* += : positions are there already */
    if (p->vit->pre_norm_w)
        ry_run_layernorm(w, p->x[0], C, p->x[0], in->n * N, p->vit->pre_norm_w, p->vit->pre_norm_b,
                         NULL);
}

ry_attention ry_attention_of(const ry_worker *w, size_t i)
{
    const ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t C = p->vit->config.dim, N = b->in + (b->anchored != 0), H = p->vit->config.n_heads;
    ry_attention at = {.n_tokens = N, .n_heads = H, .head = C / H, .columns = b->needs.columns};
    at.qkv_row = ry_vit_row(p, 3 * C);
    at.out_row = ry_vit_row(p, C);
    at.qkv = p->wide + i * N * at.qkv_row;
    at.out = p->h + i * b->attend * at.out_row;
    if (b->anchored) { /* a key that asks nothing */
        at.rows = p->row_list;
        at.n_rows = b->in;
    }
    if (b->sized) {
        at.key_bias = p->cuts.log_sizes + i * N;
        at.row_weight = p->cuts.sizes[w->sizes_now] + i * N;
    } else {
        at.columns.row_weights = 0; /* all 1 */
    }
    if (!b->decide) return at;
    if (b->needs.what & RY_NEED_CLASS_ROW) at.class_row = p->cuts.class_row + i * N;
    if (b->needs.what & RY_NEED_COLUMNS) {
        const size_t blocks = ry_attention_blocks(b->in, p->kernels.attention_rows);
        at.column_parts = p->cuts.column_parts + i * N * blocks * ry_column_sets(&at.columns, H);
    }
    return at;
}

/* The query rows of a block that does not need them all: those its cut chose, or the prefix. */
static const uint32_t *rows_of(const ry_vit_plan *p, const ry_block_rows *b, size_t image)
{
    const size_t N = p->vit->n_patches + p->vit->config.n_prefix;
    return b->way == RY_WAY_LISTED ? p->cuts.source + image * N : p->row_list;
}

static void attention(ry_worker *w)
{
    const ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t blocks = ry_attention_blocks(b->attend, p->kernels.attention_rows);
    ry_step step = ry_begin(w, w->r->in->n * blocks);
    for (size_t t; ry_step_next(&step, &t);) {
        ry_attention at = ry_attention_of(w, t / blocks);
        if (b->way == RY_WAY_LISTED || b->way == RY_WAY_PREFIX) {
            at.rows = rows_of(p, b, t / blocks);
            at.n_rows = b->attend;
            at.class_row = NULL; /* it was made for the decision */
        }
        p->kernels.attention(&at, t % blocks, p->attention + w->thread * p->attention_each);
    }
    ry_step_end(&step);
}

/* wide = queries, keys and values of x */
static void project_qkv(ry_worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_block *weights = &p->vit->blocks[i];
    const int anchored = w->now.anchored != 0;
    norm_linear(w, anchored ? p->ops[i].qkv_anchored : p->ops[i].qkv, w->now.in + (size_t)anchored,
                ry_tokens(w), weights->norm1_w, weights->norm1_b, p->h, p->wide);
}

/* x += MLP(LayerNorm x) over the block's rows of all images */
static void mlp(ry_worker *w, uint32_t i, float *x, float *h)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_block *weights = &p->vit->blocks[i];

    norm_linear(w, p->ops[i].fc1, w->now.mlp, x, weights->norm2_w, weights->norm2_b, h, p->wide);
    ry_run_linear(w, p->ops[i].fc2, w->now.mlp, p->wide, x);
}

static void block(ry_worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const int by_tokens = (b->needs.what & RY_NEED_TOKENS) != 0;

    project_qkv(w, i);
    if (b->way == RY_WAY_LISTED) ry_cut_decide(w, i);
    attention(w);
    if (b->decide && b->way != RY_WAY_LISTED && !by_tokens) ry_cut_decide(w, i);
    if (b->way == RY_WAY_LISTED) ry_cut_reduce(w, i, 0);
    if (b->way == RY_WAY_BEFORE) ry_cut_reduce(w, i, 1);
    ry_run_linear(w, p->ops[i].proj, b->project, b->way == RY_WAY_BEFORE ? p->wide : p->h,
                  ry_tokens(w));
    if (b->decide && by_tokens) ry_cut_decide(w, i);
    if (b->way == RY_WAY_AFTER) ry_cut_reduce(w, i, 0);
    mlp(w, i, ry_tokens(w), p->h);
    if (b->way == RY_WAY_END) ry_cut_reduce(w, i, 0);
}

/* After the last block only the class (and distillation) rows are read. They need the keys and
 * values of all tokens, but no other row needs its attention, projection or MLP: the same result
 * for three quarters of a block less. */
static void last_block(ry_worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;

    ry_gather_prefix(w, b->in);
    project_qkv(w, i);
    attention(w); /* of the prefix rows, one image after the other in h */
    ry_run_linear(w, p->ops[i].proj, b->project, p->h, p->pooled_x);
    mlp(w, i, p->pooled_x, p->pooled_h);
}

/* Thread 0, the caller's, speaks to the outside while the others wait. */
static int report(ry_worker *w, uint32_t index, uint32_t n_tokens)
{
    ry_vit_run *r = w->r;
    if (!r->in->progress && !r->in->tap) return 0;
    const uint32_t L = r->p->vit->config.n_blocks;
    ry_step step = ry_begin(w, 1);
    if (w->thread == 0) {
        step.mine = 1;
        if (r->in->tap && index < L && w->now.way == RY_WAY_PREFIX)
            r->in->tap(r->in->tap_user, index, r->p->pooled_x, r->p->vit->config.n_prefix);
        else if (r->in->tap)
            r->in->tap(r->in->tap_user, index, ry_tokens(w), n_tokens);
        if (r->in->progress && index < L)
            r->stop = r->in->progress(r->in->progress_user, (uint64_t)r->turn * L + index + 1,
                                      (uint64_t)r->turns * L) != 0;
    }
    ry_step_end(&step);
    return r->stop;
}

/* The plan's rows of block i; after an adaptive cut this image has fewer. */
static void begin_block(ry_worker *w, uint32_t i, uint32_t tokens)
{
    const ry_vit_plan *p = w->r->p;
    w->now = p->rows[i];
    const uint32_t most = w->now.needs.n_after;
    if (tokens != w->now.in)
        ry_block_rows_fit(&w->now, p->vit->config.n_prefix, tokens, tokens < most ? tokens : most);
    if (w->now.anchored) ry_anchor_enter(w, i);
}

static void forward(ry_worker *w)
{
    ry_vit_run *r = w->r;
    const ry_vit_plan *p = r->p;
    const uint32_t L = p->vit->config.n_blocks;
    uint32_t tokens = p->vit->n_patches + p->vit->config.n_prefix;

    embed(w);
    if (report(w, L, tokens)) return;
    for (uint32_t i = 0; i < L; i++) {
        begin_block(w, i, tokens);
        if (w->now.way == RY_WAY_PREFIX)
            last_block(w, i);
        else
            block(w, i);
        tokens = w->now.out;
        if (w->thread == 0) r->block_macs += ry_block_rows_macs(&w->now, &p->vit->config);
        if (report(w, i, tokens)) return;
    }
    if (w->now.way != RY_WAY_PREFIX) ry_pool_rows(w, tokens);
    ry_head(w);
}

static void run_threads(ry_vit_run *r)
{
    ry_vit_plan *p = r->p;
    for (size_t i = 0; i < p->n_tickets; i++) ry_ticket_reset(&p->tickets[i]);
#pragma omp parallel num_threads(p->n_threads)
    {
        ry_worker w = {.r = r, .thread = (unsigned)omp_get_thread_num()};
        omp_set_num_threads(
            1); /* for this region's tasks: a tile never spawns threads of its own */
        forward(&w);
    }
}

/* Image i of a batch alone. */
static ry_vit_input only_image(const ry_vit_plan *p, const ry_vit_input *in, uint32_t i)
{
    const size_t each = (size_t)3 * p->vit->config.image_size * p->vit->config.image_size;
    ry_vit_input one = *in;
    one.n = 1;
    if (in->pixels) one.pixels += i * each;
    if (in->chw) one.chw += i * each;
    return one;
}

renyi_status ry_vit_forward(ry_vit_plan *p, const ry_vit_input *in, float *out)
{
    ry_vit_run r = {.p = p, .in = in, .out = out, .turns = p->one_by_one ? in->n : 1};
    for (; r.turn < r.turns && !r.stop; r.turn++) {
        const ry_vit_input one = only_image(p, in, r.turn);
        if (p->one_by_one) {
            r.in = &one;
            r.out = out + (size_t)r.turn * p->n_outputs;
        }
        run_threads(&r);
        if (in->answered && !r.stop) in->answered(in->answered_user, r.turn, r.out);
    }
    if (r.stop) return RENYI_ERR_ABORTED;
    p->last_macs = ry_vit_ends_macs(p) + r.block_macs / r.turns;
    return RENYI_OK;
}
