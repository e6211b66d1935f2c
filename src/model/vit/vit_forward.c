/* vit_forward.c - runs the plan of a ViT: patch embedding, blocks of attention and MLP, pooling,
 * and the output: logits, an embedding, or similarities to the texts of classes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/patches.h"
#include "kernels/rows/rows.h"
#include "model/vit/vit_run.h"

#include <string.h>

/* ---- steps --------------------------------------------------------------------------------- */

/* `rows` rows of each image. */
static ry_extent rows_of_each(const ry_worker *w, size_t rows)
{
    return (ry_extent){w->r->in->n, rows};
}

/* Passes the input of the next product to the caller's watch(). */
static void watch_input(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x)
{
    const ry_vit_input *in = w->r->in;
    if (!in->watch) return;
    ry_step step = ry_runner_step(w->run, 1);
    if (w->run->thread == 0) {
        step.mine = 1;
        in->watch(in->watch_user, op, rows_of_each(w, rows), x);
    }
    ry_step_end(&step);
}

void ry_run_linear(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x, float *y)
{
    watch_input(w, op, rows, x);
    ry_runner_linear(w->run, op, rows_of_each(w, rows), x, y);
}

/* h [rows, h_row] = LayerNorm of x [rows, C], `rows` rows of each image; h may be x. `next` is the
 * product that reads h, or NULL. */
static void run_layernorm(ry_worker *w, float *h, size_t h_row, const float *x, size_t rows,
                          const float *weight, const float *bias, const ry_linear_op *next)
{
    const ry_vit_plan *p = w->r->p;
    const ry_norm norm = {&p->kernels, weight, bias, p->vit->config.dim,
                          (float)p->vit->config.norm_eps};
    ry_runner_norm(w->run, &norm, rows_of_each(w, rows), x, h, h_row, next);
}

void ry_run_norm_linear(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x,
                        const float *weight, const float *bias, float *h, float *y)
{
    const size_t h_row = ry_vit_row(w->r->p, w->r->p->vit->config.dim);
    run_layernorm(w, h, h_row, x, rows, weight, bias, op);
    watch_input(w, op, rows, h);
    ry_runner_product(w->run, op, rows_of_each(w, rows), h, y);
}

/* ---- patches ------------------------------------------------------------------------------- */

/* x = [prefix, patches W + b] + positions; normalized in CLIP */
static void embed_patches(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_input *in = w->r->in;
    const ry_vit_config *c = &p->vit->config;
    const size_t C = c->dim, P = p->vit->n_patches, N = P + c->n_prefix, S = c->image_size;
    const size_t patch = 3 * (size_t)c->patch_size * c->patch_size;

    ry_step step = ry_runner_step(w->run, in->n);
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
                  p->x[0] + c->n_prefix * C); /* adds to the positions */
    if (p->vit->pre_norm_w)
        run_layernorm(w, p->x[0], C, p->x[0], N, p->vit->pre_norm_w, p->vit->pre_norm_b, NULL);
}

/* x = tokens that another run has computed */
static void load_tokens(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_input *in = w->r->in;
    const size_t each = (p->vit->n_patches + p->vit->config.n_prefix) * (size_t)p->vit->config.dim;
    ry_step step = ry_runner_step(w->run, in->n);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(p->x[0] + i * each, in->tokens + in->pick[i] * each, each * sizeof(float));
    ry_step_end(&step);
}

/* ---- pooling ------------------------------------------------------------------------------- */

/* pooled_x = the class (and distillation) rows of every image */
static void gather_class(ry_worker *w, size_t n_tokens)
{
    const ry_vit_plan *p = w->r->p;
    const size_t K = ry_vit_class_rows(&p->vit->config), row = p->vit->config.dim;
    const float *from = ry_tokens(w);
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(p->pooled_x + i * K * row, from + i * n_tokens * row, K * row * sizeof(float));
    ry_step_end(&step);
}

/* The mean of the patch rows of every image after the last block: to [B, to_row] from rows
 * [B, n_tokens, row]. A merged token counts as often as the patches it stands for, so the mean is
 * sum(size x) / sum(size), as in "Token Merging: Your ViT But Faster" for MAE; a fused one counts
 * once. */
static void pool_mean(ry_worker *w, float *to, size_t to_row, const float *rows, size_t row,
                      size_t n_tokens)
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
        ry_token_mean(to + image * to_row + at, rows + image * n_tokens * row + at, row, width,
                      sizes, c->n_prefix, n_tokens);
    }
    ry_step_end(&step);
}

/* Into pooled_h: row 0 of every image, from rows [B, n_tokens, row], each in the first half of a
 * pooled row. */
static void copy_class(ry_worker *w, const float *rows, size_t row, size_t n_tokens)
{
    const ry_vit_plan *p = w->r->p;
    const size_t C = p->vit->config.dim;
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(p->pooled_h + i * ry_vit_pooled_row(p), rows + i * n_tokens * row,
               C * sizeof(float));
    ry_step_end(&step);
}

/* Into the output: the patch rows of every image, from rows [B, n_tokens, row]. */
static void copy_patches(ry_worker *w, const float *rows, size_t row, size_t n_tokens)
{
    const ry_vit_plan *p = w->r->p;
    const size_t C = p->vit->config.dim, K = p->vit->config.n_prefix, P = n_tokens - K;
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        for (size_t j = 0; j < P; j++)
            memcpy(w->r->out + (i * P + j) * C, rows + (i * n_tokens + K + j) * row,
                   C * sizeof(float));
    ry_step_end(&step);
}

/* The rows that the output reads, if the last block computed all rows. */
static void pool_rows(ry_worker *w, size_t n_tokens)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit *v = p->vit;
    const size_t C = v->config.dim, h_row = ry_vit_row(p, C), pooled = ry_vit_pooled_row(p);
    const int norm_first = p->pool == RY_POOL_NORM_MEAN || p->pool == RY_POOL_CLASS_MEAN ||
                           (p->pool == RY_POOL_PATCHES && v->config.pool != RY_POOL_MEAN);

    if (norm_first)
        run_layernorm(w, p->h, h_row, ry_tokens(w), n_tokens, v->norm_w, v->norm_b, NULL);
    switch (p->pool) {
    case RY_POOL_TOKEN: gather_class(w, n_tokens); break;
    case RY_POOL_MEAN: pool_mean(w, p->pooled_x, C, ry_tokens(w), C, n_tokens); break;
    case RY_POOL_NORM_MEAN: pool_mean(w, p->pooled_h, pooled, p->h, h_row, n_tokens); break;
    case RY_POOL_CLASS_MEAN:
        copy_class(w, p->h, h_row, n_tokens);
        pool_mean(w, p->pooled_h + C, pooled, p->h, h_row, n_tokens);
        break;
    case RY_POOL_PATCHES:
        copy_patches(w, norm_first ? p->h : ry_tokens(w), norm_first ? h_row : C, n_tokens);
        break;
    case RY_POOL_ATTENTION: ry_pool_attention(w, n_tokens); break;
    }
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* h = attention of the block's query rows: all, those that the cut chose, or the prefix */
static void attend(ry_worker *w, uint32_t i)
{
    const ry_block_rows *b = &w->now;
    const ry_block_state s = ry_run_block_state(w, i);
    const size_t blocks = ry_attention_blocks(b->attend, s.kernels->attention_rows);
    ry_step step = ry_runner_step(w->run, s.n_images * blocks);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / blocks;
        ry_attention at = ry_block_attention(&s, image);
        if (b->path == RY_PATH_LISTED || b->path == RY_PATH_PREFIX) {
            at.rows = b->path == RY_PATH_LISTED ? s.cut.source + image * s.stride : s.row_list;
            at.n_rows = b->attend;
            at.class_row = NULL; /* already computed for the decision */
        }
        s.kernels->attention(&at, t % blocks, s.scratch + w->run->thread * s.scratch_each);
    }
    ry_step_end(&step);
}

/* Rotates the queries and keys of patches by their positions. The prefix, an anchor and a fused
 * token have none: they are rotated by nothing, which is the centre of the image. */
static void rotate(ry_worker *w)
{
    const ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;
    const size_t H = c->n_heads, head = c->dim / H, row = ry_vit_row(p, 3 * (size_t)c->dim);
    const size_t in = w->now.in, each = in + (w->now.anchored != 0), all = w->r->in->n * each;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(all));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t i = t * RY_CONVERT_ROWS; i < ry_row_end(t, all); i++) {
            const size_t image = i / each, token = i % each;
            if (token < c->n_prefix || token >= in) continue;
            const uint32_t place =
                w->places ? w->places[image * in + token] : (uint32_t)(token - c->n_prefix);
            if (place == RY_NO_TOKEN) continue;
            ry_rope(p->wide + i * row, 2 * H, head, p->vit->rope + place * ry_rope_floats(head));
        }
    ry_step_end(&step);
}

/* wide = queries, keys and values of x */
static void project_qkv(ry_worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_weights *weights = &p->vit->blocks[i];
    const int anchored = w->now.anchored != 0;
    ry_run_norm_linear(w, anchored ? p->ops[i].qkv_anchored : p->ops[i].qkv,
                       w->now.in + (size_t)anchored, ry_tokens(w), weights->norm1_w,
                       weights->norm1_b, p->h, p->wide);
    if (p->vit->rope) rotate(w);
}

/* gated = silu(gate) * up, with gate and up in wide. rows: of each image */
static void apply_gate(ry_worker *w, size_t rows)
{
    const ry_vit_plan *p = w->r->p;
    const size_t M = p->vit->config.mlp_dim, all = w->r->in->n * rows;
    const size_t wide_row = ry_vit_row(p, 2 * M), row = ry_vit_row(p, M);
    ry_step step = ry_runner_step(w->run, ry_row_tiles(all));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * RY_CONVERT_ROWS, count = ry_row_end(t, all) - first;
        p->kernels.swiglu(p->gated + first * row, row, p->wide + first * wide_row, wide_row, count,
                          M);
    }
    ry_step_end(&step);
}

/* x += MLP(LayerNorm x) over the block's rows of all images */
static void add_mlp(ry_worker *w, uint32_t i, float *x, float *h)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_weights *weights = &p->vit->blocks[i];

    ry_run_norm_linear(w, p->ops[i].fc1, w->now.mlp, x, weights->norm2_w, weights->norm2_b, h,
                       p->wide);
    if (p->gated) apply_gate(w, w->now.mlp);
    ry_run_linear(w, p->ops[i].fc2, w->now.mlp, p->gated ? p->gated : p->wide, x);
}

static void run_block(ry_worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const int by_tokens = (b->needs.what & RY_NEED_TOKENS) != 0;

    if (b->decide && b->needs.what & RY_NEED_POOL_ROW) ry_pool_row(w, i);
    project_qkv(w, i);
    if (b->path == RY_PATH_LISTED) ry_cut_decide(w, i);
    attend(w, i);
    if (b->decide && b->path != RY_PATH_LISTED && !by_tokens) ry_cut_decide(w, i);
    if (b->path == RY_PATH_LISTED) ry_cut_reduce(w, i, 0);
    if (b->path == RY_PATH_BEFORE) ry_cut_reduce(w, i, 1);
    ry_run_linear(w, p->ops[i].proj, b->project, b->path == RY_PATH_BEFORE ? p->wide : p->h,
                  ry_tokens(w));
    if (b->decide && by_tokens) ry_cut_decide(w, i);
    if (b->path == RY_PATH_AFTER) ry_cut_reduce(w, i, 0);
    add_mlp(w, i, ry_tokens(w), p->h);
    if (b->path == RY_PATH_END) ry_cut_reduce(w, i, 0);
}

/* After the last block only the class (and distillation) rows are read, not the registers. They
 * need the keys and values of all tokens, but the other rows need no attention, projection or MLP:
 * the same result with a quarter of the work. */
static void run_last_block(ry_worker *w, uint32_t i)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;

    gather_class(w, b->in);
    project_qkv(w, i);
    attend(w, i); /* the class rows of all images, without gaps in h */
    ry_run_linear(w, p->ops[i].proj, b->project, p->h, p->pooled_x);
    add_mlp(w, i, p->pooled_x, p->pooled_h);
}

/* ---- output -------------------------------------------------------------------------------- */

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
    const size_t width = ry_vit_pooled_width(&p->vit->config, p->pool),
                 h_row = ry_vit_pooled_row(p);
    const size_t rows = ry_vit_pooled_rows(&p->vit->config, p->pool);
    if (p->projection) {
        ry_run_linear(w, p->projection, 1, p->pooled_h, to);
        return;
    }
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);)
        for (size_t k = 0; k < rows; k++)
            memcpy(to + i * to_row + k * width, p->pooled_h + (i * rows + k) * h_row,
                   width * sizeof(float));
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

/* From the pooled rows to the output. */
static void compute_output(ry_worker *w)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;

    if (p->pool == RY_POOL_PATCHES) return; /* pool_rows wrote them */
    if (p->pool == RY_POOL_TOKEN || p->pool == RY_POOL_MEAN)
        run_layernorm(w, p->pooled_h, ry_vit_row(p, c->dim), p->pooled_x,
                      ry_vit_pooled_rows(c, p->pool), p->vit->norm_w, p->vit->norm_b, NULL);
    if (p->text_head)
        compare_with_texts(w);
    else if (p->head)
        classify(w);
    else
        write_embedding(w, w->r->out, p->n_outputs);
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* Thread 0, the caller's, calls tap and progress while the others wait. Returns 1 to stop. */
static int report_block(ry_worker *w, uint32_t index, uint32_t n_tokens)
{
    ry_vit_run *r = w->r;
    if (!r->in->progress && !r->in->tap) return 0;
    const uint32_t L = r->p->vit->config.n_blocks, report = index == L ? 1 : index + 2;
    ry_step step = ry_runner_step(w->run, 1);
    if (w->run->thread == 0) {
        step.mine = 1;
        if (r->in->tap && index < L && w->now.path == RY_PATH_PREFIX)
            r->in->tap(r->in->tap_user, index, r->p->pooled_x,
                       ry_vit_class_rows(&r->p->vit->config));
        else if (r->in->tap)
            r->in->tap(r->in->tap_user, index, ry_tokens(w), n_tokens);
        if (r->in->progress && index < L &&
            r->in->progress(r->in->progress_user, (uint64_t)r->turn * L + index + 1,
                            (uint64_t)r->turns * L))
            r->stop = report;
    }
    ry_step_end(&step);
    return r->stop == report;
}

/* Loads the plan's rows of block i; after an adaptive cut this image has fewer. */
static void begin_block(ry_worker *w, uint32_t i, uint32_t tokens)
{
    const ry_vit_plan *p = w->r->p;
    w->now = p->rows[i];
    const uint32_t most = w->now.needs.n_after;
    if (tokens != w->now.in)
        ry_block_rows_fit(&w->now, &p->vit->config, tokens, tokens < most ? tokens : most);
    if (w->now.anchored) ry_anchor_enter(w, i);
}

static void run_thread(ry_runner *run, void *user)
{
    ry_vit_run *r = user;
    ry_worker worker = {.r = r, .run = run}, *w = &worker;
    const ry_vit_plan *p = r->p;
    const uint32_t L = p->vit->config.n_blocks;
    uint32_t tokens = p->vit->n_patches + p->vit->config.n_prefix;

    if (r->in->tokens)
        load_tokens(w);
    else
        embed_patches(w);
    if (report_block(w, L, tokens)) return;
    for (uint32_t i = r->in->first; i < L; i++) {
        begin_block(w, i, tokens);
        if (w->now.path == RY_PATH_PREFIX)
            run_last_block(w, i);
        else
            run_block(w, i);
        tokens = w->now.out;
        if (w->run->thread == 0) r->block_macs += ry_block_rows_macs(&w->now, &p->vit->config);
        if (report_block(w, i, tokens)) return;
    }
    if (w->now.path != RY_PATH_PREFIX) pool_rows(w, tokens);
    compute_output(w);
}

/* Image i of a batch alone. */
static ry_vit_input only_image(const ry_vit_plan *p, const ry_vit_input *in, uint32_t i)
{
    const size_t each = (size_t)3 * p->vit->config.image_size * p->vit->config.image_size;
    ry_vit_input one = *in;
    one.n = 1;
    if (in->pixels) one.pixels += i * each;
    if (in->chw) one.chw += i * each;
    if (in->pick) one.pick += i;
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
        ry_team_run(&p->team, run_thread, &r);
        if (in->answered && !r.stop) in->answered(in->answered_user, r.turn, r.out);
    }
    if (r.stop) return RENYI_ERR_ABORTED;
    p->last_macs = ry_vit_ends_macs(p) + r.block_macs / r.turns;
    if (in->tokens) p->last_macs -= ry_vit_macs_before(p, 0);
    return RENYI_OK;
}
