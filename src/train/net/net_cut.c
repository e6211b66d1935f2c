/* net_cut.c - cuts in the forward pass of a net: where a block keeps its decision, and the rows
 * that stay (model/vit/token_cut.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

ry_block_state ry_net_block_state(const ry_net_worker *w, uint32_t i, const float *x)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    return (ry_block_state){.block = i,
                            .n_images = w->n,
                            .stride = net->n_tokens,
                            .rows = &b->rows,
                            .config = &net->config,
                            .kernels = &net->kernels,
                            .x = x,
                            .qkv = b->qkv_rows,
                            .heads = b->heads,
                            .qkv_row = ry_net_row(net, 3 * (size_t)net->config.dim),
                            .heads_row = ry_net_row(net, net->config.dim),
                            .sizes = ry_net_sizes(net, i, 0, b->rows.in),
                            .log_sizes = net->tokens[net->tokens[i].facts].log_sizes,
                            .class_row = net->class_row,
                            .columns = net->columns,
                            .column_parts = net->column_parts,
                            .cut = b->cut,
                            .scratch = net->scratch,
                            .scratch_each = net->scratch_each};
}

/* Sizes and patches of the tokens after the cut of an image. */
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

void ry_net_reduce(ry_net_worker *w, uint32_t i, const float *from, float *to)
{
    const ry_block_rows *b = &w->net->blocks[i].rows;
    const size_t C = w->net->config.dim;
    const ry_block_state s = ry_net_block_state(w, i, NULL);
    ry_step step = ry_runner_step(w->run, w->n * ry_token_chunks(b->out));
    for (size_t t; ry_step_next(&step, &t);) {
        const ry_token_chunk at = ry_token_chunk_of(b->out, t);
        const ry_cut cut = ry_block_cut(&s, at.image);
        const ry_row_lists l = {from + at.image * b->in * C, to + at.image * b->out * C, C, C};
        ry_token_reduce(&l, &cut, b->in, at.first, at.last);
        if (b->needs.mean_length) ry_token_lengths(&l, &cut, b->in, at.first, at.last);
        if (at.first == 0) reduce_facts(w, i, at.image, &cut);
    }
    ry_step_end(&step);
}

/* y = reduced x + (factor * sum - 1) b for each row: the projection adds b once. */
static void start_rows(const ry_net_worker *w, uint32_t i, const ry_token_chunk *at,
                       const ry_cut *cut, float *y)
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
    const ry_block_state s = ry_net_block_state(w, i, NULL);
    ry_step step = ry_runner_step(w->run, w->n * ry_token_chunks(b->rows.out));
    for (size_t t; ry_step_next(&step, &t);) {
        const ry_token_chunk at = ry_token_chunk_of(b->rows.out, t);
        const ry_cut cut = ry_block_cut(&s, at.image);
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
