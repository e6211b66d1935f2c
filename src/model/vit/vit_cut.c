/* vit_cut.c - makes cuts: asks the hook, and applies what it decided to the token rows.
 *
 * A cut before attention's projection reduces the projection's input h and the residual stream x
 * alike; because y = x + h P + b is affine in them, that equals reducing y, but for the bias of a
 * row whose weights do not sum to 1 (EViT's fused token): it gets (sum - 1) b on top.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/common/token_rows.h"
#include "model/vit/vit_run.h"

static ry_cut cut_of(const ry_worker *w, size_t image)
{
    const ry_vit_plan *p = w->r->p;
    const ry_vit_cuts *c = &p->cuts;
    const size_t at = image * (p->vit->n_patches + p->vit->config.n_prefix);
    return (ry_cut){.n_out = w->now.out,
                    .source = c->source + at,
                    .target = c->target + at,
                    .weight = c->weight + at,
                    .score = c->score + at,
                    .rescued = c->rescued + at};
}

/* ---- deciding ------------------------------------------------------------------------------ */

static ry_block_view view_of(const ry_worker *w, uint32_t block, size_t image)
{
    const ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;
    const ry_block_rows *b = &w->now;
    const ry_attention at = ry_attention_of(w, image);
    const size_t first = image * b->in;
    return (ry_block_view){.block = block,
                           .image = w->r->turn + (uint32_t)image,
                           .n_tokens = b->in,
                           .dim = c->dim,
                           .n_heads = c->n_heads,
                           .n_prefix = c->n_prefix,
                           .class_row = at.class_row,
                           .columns = at.column_parts ? p->cuts.columns + first : NULL,
                           .qkv = at.qkv,
                           .qkv_row = at.qkv_row,
                           .x = ry_tokens(w) + first * c->dim,
                           .sizes = b->sized ? p->cuts.sizes[w->sizes_now] + first : NULL};
}

/* Scores of the columns from the parts that attention left, or the class row alone. */
static void finish_scores(ry_worker *w)
{
    static const uint32_t first_row[] = {0};
    const ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t blocks = ry_attention_blocks(b->in, p->kernels.attention_rows);
    const int columns = (b->needs.what & RY_NEED_COLUMNS) != 0;
    const int class_row = b->way == RY_WAY_LISTED && (b->needs.what & RY_NEED_CLASS_ROW);
    if (!columns && !class_row) return;

    ry_step step = ry_begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);) {
        ry_attention at = ry_attention_of(w, i);
        if (columns) ry_attention_scores(p->cuts.columns + i * b->in, &at, blocks);
        if (!class_row) continue;
        at.rows = first_row;
        at.n_rows = 1;
        at.out = NULL;
        p->kernels.attention(&at, 0, p->attention + w->thread * p->attention_each);
    }
    ry_step_end(&step);
}

/* The phases of the hook's decision. */
static void ask(ry_worker *w, uint32_t block)
{
    ry_vit_plan *p = w->r->p;
    const ry_token_hook *hook = p->hook;
    const int adaptive = w->now.needs.adaptive;

    for (uint32_t phase = 0; hook->work && phase < RY_MAX_PHASES; phase++) {
        const size_t tiles = hook->tiles(hook->self, block, phase);
        if (!tiles) break;
        ry_step step = ry_begin(w, w->r->in->n * tiles);
        for (size_t t; ry_step_next(&step, &t);) {
            const ry_block_view view = view_of(w, block, t / tiles);
            ry_cut cut = cut_of(w, t / tiles);
            hook->work(hook->self, &view, &cut, phase, (uint32_t)(t % tiles));
            if (adaptive && tiles == 1) p->cuts.n_out[block] = cut.n_out;
        }
        ry_step_end(&step);
    }
    if (adaptive)
        ry_block_rows_fit(&w->now, p->vit->config.n_prefix, w->now.in, p->cuts.n_out[block]);
}

void ry_cut_decide(ry_worker *w, uint32_t block)
{
    const ry_token_hook *hook = w->r->p->hook;

    finish_scores(w);
    ask(w, block);
    if (!hook->watch) return;
    ry_step step = ry_begin(w, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);) {
        const ry_block_view view = view_of(w, block, i);
        const ry_cut cut = cut_of(w, i);
        hook->watch(hook->self, &view, &cut);
    }
    ry_step_end(&step);
}

/* ---- reducing ------------------------------------------------------------------------------ */

/* Bias that fused rows would have had: every token's projection adds it once, times its weight. */
static void add_fused_bias(float *x, const float *bias, size_t dim, const ry_cut *cut,
                           uint32_t n_tokens, uint32_t first, uint32_t last)
{
    for (uint32_t r = first; r < last; r++)
        if (cut->source[r] == RY_NO_TOKEN)
            ry_row_add(x + r * dim, bias, ry_token_weight_sum(cut, n_tokens, r) - 1.0f, dim);
}

static void reduce_sizes(ry_worker *w, const ry_block_rows *b, const ry_cut *cut, size_t image)
{
    const ry_vit_cuts *c = &w->r->p->cuts;
    const float *from = b->sized ? c->sizes[w->sizes_now] + image * b->in : NULL;
    ry_token_sizes(c->sizes[!w->sizes_now] + image * b->out, c->log_sizes + image * b->out, from,
                   cut, b->in);
}

static void reduce_chunk(ry_worker *w, uint32_t block, int heads, size_t image, uint32_t first)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t C = p->vit->config.dim, h_row = ry_vit_row(p, C);
    const uint32_t last = first + RY_TOKEN_CHUNK < b->out ? first + RY_TOKEN_CHUNK : b->out;
    const ry_cut cut = cut_of(w, image);
    const ry_row_lists x = {p->x[w->x_now] + image * b->in * C,
                            p->x[!w->x_now] + image * b->out * C, C, C};

    ry_token_reduce(&x, &cut, b->in, first, last);
    if (heads) {
        const ry_row_lists h = {p->h + image * b->in * h_row, p->wide + image * b->out * h_row,
                                h_row, C};
        const float *bias = ry_linear_bias(p->vit->blocks[block].proj);
        ry_token_reduce(&h, &cut, b->in, first, last);
        add_fused_bias(x.to, bias, C, &cut, b->in, first, last);
    }
    if (b->needs.mean_length) ry_token_lengths(&x, &cut, b->in, first, last);
}

void ry_cut_reduce(ry_worker *w, uint32_t block, int heads)
{
    const ry_block_rows *b = &w->now;
    const size_t chunks = (b->out + RY_TOKEN_CHUNK - 1) / RY_TOKEN_CHUNK;
    const int sizes = b->sized || b->needs.sizes;

    ry_step step = ry_begin(w, w->r->in->n * chunks);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / chunks, chunk = t % chunks;
        if (chunk == 0 && sizes) {
            const ry_cut cut = cut_of(w, image);
            reduce_sizes(w, b, &cut, image);
        }
        reduce_chunk(w, block, heads, image, (uint32_t)(chunk * RY_TOKEN_CHUNK));
    }
    ry_step_end(&step);
    w->x_now = !w->x_now;
    w->sizes_now = sizes ? !w->sizes_now : w->sizes_now;
}
