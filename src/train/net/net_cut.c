/* net_cut.c - cuts in the forward pass of a net: asks the hook, remembers what it decided, and
 * makes the rows that stay (model/common/token_rows.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/common/token_rows.h"
#include "model/vit/vit_plan.h" /* RY_MAX_PHASES */
#include "train/net/net_run.h"

ry_cut ry_net_cut_of(const ry_net_worker *w, uint32_t i, size_t image)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t at = image * net->n_tokens;
    return (ry_cut){.n_out = b->rows.out,
                    .source = b->source + at,
                    .target = b->target + at,
                    .weight = b->weight + at,
                    .score = b->score + at,
                    .rescued = net->rescued + at};
}

ry_attention ry_net_attention_of(const ry_net_worker *w, uint32_t i, size_t image)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const ry_block_rows *rows = &b->rows;
    const size_t C = net->config.dim, N = rows->in, H = net->config.n_heads;
    ry_attention at = {.n_tokens = N, .n_heads = H, .head = C / H, .columns = rows->needs.columns};
    at.qkv_row = ry_net_row(net, 3 * C);
    at.out_row = ry_net_row(net, C);
    at.qkv = b->qkv_rows + image * N * at.qkv_row;
    at.out = b->heads + image * rows->attend * at.out_row;
    at.row_weight = ry_net_sizes(net, i, image, N);
    if (at.row_weight)
        at.key_bias = net->tokens[net->tokens[i].facts].log_sizes + image * N;
    else
        at.columns.row_weights = 0; /* all 1 */
    if (!rows->decide) return at;
    if (rows->needs.what & RY_NEED_CLASS_ROW) at.class_row = net->class_row + image * N;
    if (rows->needs.what & RY_NEED_COLUMNS) {
        const size_t blocks = ry_attention_blocks(N, net->kernels.attention_rows);
        at.column_parts = net->column_parts + image * N * blocks * ry_column_sets(&at.columns, H);
    }
    return at;
}

/* ---- deciding ------------------------------------------------------------------------------ */

static ry_block_view view_of(const ry_net_worker *w, uint32_t i, size_t image, const float *x)
{
    const ry_net *net = w->net;
    const ry_vit_config *c = &net->config;
    const uint32_t N = net->blocks[i].rows.in;
    const ry_attention at = ry_net_attention_of(w, i, image);
    return (ry_block_view){.block = i,
                           .image = (uint32_t)image,
                           .n_tokens = N,
                           .dim = c->dim,
                           .n_heads = c->n_heads,
                           .n_prefix = c->n_prefix,
                           .class_row = at.class_row,
                           .columns = at.column_parts ? net->columns + image * N : NULL,
                           .qkv = at.qkv,
                           .qkv_row = at.qkv_row,
                           .x = x + image * N * c->dim,
                           .sizes = at.row_weight};
}

static void finish_columns(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const uint32_t N = net->blocks[i].rows.in;
    if (!(net->blocks[i].rows.needs.what & RY_NEED_COLUMNS)) return;
    ry_step step = ry_net_begin(w, w->n);
    for (size_t image; ry_step_next(&step, &image);) {
        const ry_attention at = ry_net_attention_of(w, i, image);
        ry_attention_scores(net->columns + image * N, &at,
                            ry_attention_blocks(N, net->kernels.attention_rows));
    }
    ry_step_end(&step);
}

void ry_net_decide(ry_net_worker *w, uint32_t i, const float *x)
{
    const ry_token_hook *hook = &w->net->hook;
    finish_columns(w, i);
    for (uint32_t phase = 0; phase < RY_MAX_PHASES; phase++) {
        const size_t tiles = hook->tiles(hook->self, i, phase);
        if (!tiles) break;
        ry_step step = ry_net_begin(w, w->n * tiles);
        for (size_t t; ry_step_next(&step, &t);) {
            const ry_block_view view = view_of(w, i, t / tiles, x);
            ry_cut cut = ry_net_cut_of(w, i, t / tiles);
            hook->work(hook->self, &view, &cut, phase, (uint32_t)(t % tiles));
        }
        ry_step_end(&step);
    }
}

/* ---- reducing ------------------------------------------------------------------------------ */

/* Sizes and patches of the tokens that leave the cut of an image. */
static void reduce_facts(const ry_net_worker *w, uint32_t i, size_t image, const ry_cut *cut)
{
    const ry_net *net = w->net;
    const ry_block_rows *b = &net->blocks[i].rows;
    const ry_net_tokens *from = &net->tokens[net->tokens[i].facts], *to = &net->tokens[i + 1];
    if (b->sized || b->needs.sizes)
        ry_token_sizes(to->sizes + image * b->out, to->log_sizes + image * b->out,
                       ry_net_sizes(net, i, image, b->in), cut, b->in);
    for (uint32_t r = 0; r < b->out; r++)
        to->patch[image * b->out + r] = cut->source[r] == RY_NO_TOKEN
                                            ? RY_NO_TOKEN
                                            : from->patch[image * b->in + cut->source[r]];
}

/* Tiles of a cut: (image, chunk of new rows). */
typedef struct tile_rows {
    size_t image;
    uint32_t first, last;
} tile_rows;

static size_t chunks_of(const ry_block_rows *b)
{
    return (b->out + RY_TOKEN_CHUNK - 1) / RY_TOKEN_CHUNK;
}

static tile_rows rows_of(const ry_block_rows *b, size_t t)
{
    const uint32_t first = (uint32_t)(t % chunks_of(b)) * RY_TOKEN_CHUNK;
    const uint32_t last = b->out - first < RY_TOKEN_CHUNK ? b->out : first + RY_TOKEN_CHUNK;
    return (tile_rows){t / chunks_of(b), first, last};
}

void ry_net_reduce(ry_net_worker *w, uint32_t i, const float *from, float *to)
{
    const ry_block_rows *b = &w->net->blocks[i].rows;
    const size_t C = w->net->config.dim;
    ry_step step = ry_net_begin(w, w->n * chunks_of(b));
    for (size_t t; ry_step_next(&step, &t);) {
        const tile_rows at = rows_of(b, t);
        const ry_cut cut = ry_net_cut_of(w, i, at.image);
        const ry_row_lists l = {from + at.image * b->in * C, to + at.image * b->out * C, C, C};
        ry_token_reduce(&l, &cut, b->in, at.first, at.last);
        if (b->needs.mean_length) ry_token_lengths(&l, &cut, b->in, at.first, at.last);
        if (at.first == 0) reduce_facts(w, i, at.image, &cut);
    }
    ry_step_end(&step);
}

/* y = reduced x + (factor sum - 1) b for each row: the projection will add b once. */
static void start_rows(const ry_net_worker *w, uint32_t i, const tile_rows *at, const ry_cut *cut,
                       float *y)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t C = net->config.dim;
    const float factor = ry_net_factor(w, 2 * i, at->image);
    const ry_row_lists l = {net->tokens[i].x + at->image * b->rows.in * C,
                            y + at->image * b->rows.out * C, C, C};
    ry_token_reduce(&l, cut, b->rows.in, at->first, at->last);
    for (uint32_t r = at->first; r < at->last; r++) {
        const int fused = cut->source[r] == RY_NO_TOKEN;
        const float sum = fused ? ry_token_weight_sum(cut, b->rows.in, r) : 1.0f;
        if (fused || factor != 1.0f)
            ry_row_add(l.to + r * C, ry_net_value(net, b->proj.b), factor * sum - 1.0f, C);
    }
    if (at->first == 0) reduce_facts(w, i, at->image, cut);
}

void ry_net_reduce_heads(ry_net_worker *w, uint32_t i, float *y, float *heads, int scaled)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    ry_step step = ry_net_begin(w, w->n * chunks_of(&b->rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const tile_rows at = rows_of(&b->rows, t);
        const ry_cut cut = ry_net_cut_of(w, i, at.image);
        const float factor = scaled ? ry_net_factor(w, 2 * i, at.image) : 1.0f;
        const ry_row_lists l = {b->heads + at.image * b->rows.in * row,
                                heads + at.image * b->rows.out * row, row, C};
        ry_token_reduce(&l, &cut, b->rows.in, at.first, at.last);
        for (uint32_t r = at.first; factor != 1.0f && r < at.last; r++)
            ry_row_scale(l.to + r * row, l.to + r * row, factor, C);
        if (y) start_rows(w, i, &at, &cut, y);
    }
    ry_step_end(&step);
}
