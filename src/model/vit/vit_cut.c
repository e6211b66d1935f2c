/* vit_cut.c - cuts and anchors in a run of a ViT: calls the hook and applies its decision.
 *
 * A cut before attention's projection reduces the projection's input h and the residual stream x in
 * the same way. y = x + h P + b is affine in them, so this equals reducing y, except for the bias
 * of a row whose weights do not sum to 1 (EViT's fused token, any row of a rule that says so): it
 * gets (sum - 1) b in addition.
 *
 * An anchor is one more token in the attention of a block: a key and a value for every query. It
 * attends to nothing and is dropped after the block. It is stored behind the tokens of the image,
 * so nothing else moves: LayerNorm and the qkv product have one more row, attention one more key.
 * Its own query is computed by the product but not used.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/vit/vit_run.h"

#include <assert.h>
#include <string.h>

ry_block_state ry_run_block_state(const ry_worker *w, uint32_t block)
{
    const ry_vit_plan *p = w->r->p;
    const ry_vit_cuts *c = &p->cuts;
    const ry_vit_config *config = &p->vit->config;
    return (ry_block_state){.block = block,
                            .first_image = w->r->turn,
                            .n_images = w->r->in->n,
                            .stride = p->vit->n_patches + config->n_prefix,
                            .rows = &w->now,
                            .config = config,
                            .kernels = &p->kernels,
                            .x = ry_tokens(w),
                            .qkv = p->wide,
                            .heads = p->h,
                            .qkv_row = ry_vit_row(p, 3 * (size_t)config->dim),
                            .heads_row = ry_vit_row(p, config->dim),
                            .sizes = w->now.sized ? c->sizes[w->sizes_now] : NULL,
                            .log_sizes = c->log_sizes,
                            .row_list = p->row_list,
                            .class_row = c->class_row,
                            .columns = c->columns,
                            .column_parts = c->column_parts,
                            .cut = c->cut,
                            .n_out = w->now.needs.adaptive ? c->n_out + block : NULL,
                            .scratch = p->attention,
                            .scratch_each = p->attention_each};
}

/* ---- anchors ------------------------------------------------------------------------------- */

void ry_anchor_enter(ry_worker *w, uint32_t block)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t C = p->vit->config.dim;

    assert(w->r->in->n == 1); /* the plan runs images one by one */
    ry_step step = ry_runner_step(w->run, 1);
    for (size_t i; ry_step_next(&step, &i);) {
        float *x = ry_tokens(w);
        const float *row = p->hook->anchor(p->hook->self, block, x);
        p->anchored[block] = row != NULL;
        if (!row) continue;
        memcpy(x + b->in * C, row, C * sizeof *x);
        if (b->sized) p->cuts.log_sizes[b->in] = 0.0f; /* its size is 1 */
    }
    ry_step_end(&step);
    w->now.anchored = p->anchored[block];
}

/* ---- deciding ------------------------------------------------------------------------------ */

void ry_cut_decide(ry_worker *w, uint32_t block)
{
    const ry_vit_plan *p = w->r->p;
    const ry_token_hook *hook = p->hook;
    const ry_block_state s = ry_run_block_state(w, block); /* s.rows is w->now */

    ry_block_decide(w->run, hook, &s);
    if (w->now.needs.adaptive)
        ry_block_rows_fit(&w->now, &p->vit->config, w->now.in, p->cuts.n_out[block]);
    if (!hook->watch) return;
    ry_step step = ry_runner_step(w->run, s.n_images);
    for (size_t i; ry_step_next(&step, &i);) {
        const ry_block_view view = ry_block_view_of(&s, i);
        const ry_cut cut = ry_block_cut(&s, i);
        hook->watch(hook->self, &view, &cut);
    }
    ry_step_end(&step);
}

/* ---- reducing ------------------------------------------------------------------------------ */

/* Adds the bias that the projections of all members of a fused row would have added: the product
 * adds it once. all: not only of fused rows. */
static void add_fused_bias(float *x, const float *bias, size_t dim, const ry_cut *cut,
                           uint32_t n_tokens, const ry_token_chunk *at, int all)
{
    for (uint32_t r = at->first; r < at->last; r++) {
        if (cut->source[r] != RY_NO_TOKEN && !all) continue;
        const float more = ry_token_weight_sum(cut, n_tokens, r) - 1.0f;
        if (more != 0.0f) ry_row_add(x + r * dim, bias, more, dim);
    }
}

/* Sizes of the tokens of an image that enter the block; NULL = 1 each. */
static const float *sizes_before(const ry_worker *w, size_t image)
{
    const ry_block_rows *b = &w->now;
    return b->sized ? w->r->p->cuts.sizes[w->sizes_now] + image * b->in : NULL;
}

static void reduce_sizes(ry_worker *w, const ry_cut *cut, size_t image)
{
    const ry_block_rows *b = &w->now;
    const ry_vit_cuts *c = &w->r->p->cuts;
    ry_token_sizes(c->sizes[!w->sizes_now] + image * b->out, c->log_sizes + image * b->out,
                   sizes_before(w, image), cut, b->in, b->log_factor);
}

/* A token that continues another has its position, whatever joined it; a fused one has none. */
static void reduce_places(ry_worker *w, uint32_t *to, const ry_cut *cut, size_t image)
{
    const ry_block_rows *b = &w->now;
    const uint32_t prefix = w->r->p->vit->config.n_prefix;
    to += image * b->out;
    for (uint32_t r = 0; r < b->out; r++) {
        const uint32_t s = cut->source[r];
        to[r] = s == RY_NO_TOKEN || s < prefix ? RY_NO_TOKEN
                : w->places                    ? w->places[image * b->in + s]
                                               : s - prefix;
    }
}

static void reduce_chunk(ry_worker *w, uint32_t block, int heads, const ry_token_chunk *at,
                         const ry_cut *cut)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t C = p->vit->config.dim, h_row = ry_vit_row(p, C);
    const ry_row_lists x = {p->x[w->x_now] + at->image * b->in * C,
                            p->x[!w->x_now] + at->image * b->out * C, C, C};

    ry_token_reduce(&x, cut, b->in, at->first, at->last);
    if (heads) {
        const ry_row_lists h = {p->h + at->image * b->in * h_row,
                                p->wide + at->image * b->out * h_row, h_row, C};
        ry_token_reduce(&h, cut, b->in, at->first, at->last);
        add_fused_bias(x.to, ry_linear_bias(p->vit->blocks[block].proj), C, cut, b->in, at,
                       b->needs.any_weights);
    }
    if (b->needs.length)
        ry_token_lengths(&x, cut, sizes_before(w, at->image), b->in, b->needs.length, at->first,
                         at->last);
}

void ry_cut_reduce(ry_worker *w, uint32_t block, int heads)
{
    const ry_block_rows *b = &w->now;
    const ry_block_state s = ry_run_block_state(w, block);
    const int sizes = b->sized || b->needs.sizes;
    const ry_vit_plan *p = w->r->p;
    uint32_t *places = p->vit->rope ? p->cuts.places[w->places == p->cuts.places[0]] : NULL;

    ry_step step = ry_runner_step(w->run, s.n_images * ry_token_chunks(b->out));
    for (size_t t; ry_step_next(&step, &t);) {
        const ry_token_chunk at = ry_token_chunk_of(b->out, t);
        const ry_cut cut = ry_block_cut(&s, at.image);
        if (at.first == 0 && sizes) reduce_sizes(w, &cut, at.image);
        if (at.first == 0 && places) reduce_places(w, places, &cut, at.image);
        reduce_chunk(w, block, heads, &at, &cut);
    }
    ry_step_end(&step);
    w->x_now = !w->x_now;
    w->places = places;
    w->sizes_now = sizes ? !w->sizes_now : w->sizes_now;
}
