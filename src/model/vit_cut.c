/* vit_cut.c - makes cuts: asks the hook, and applies what it decided to the token rows.
 *
 * A cut before attention's projection reduces the projection's input h and the residual stream x
 * alike; because y = x + h P + b is affine in them, that equals reducing y, but for the bias of a
 * row whose weights do not sum to 1 (EViT's fused token): it gets (sum - 1) b on top.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows.h"
#include "model/vit_run.h"

#include <math.h>
#include <string.h>

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

enum { CHUNK = 16 }; /* new rows of a tile */

/* One list of rows and the list it becomes. */
typedef struct row_lists {
    const float *from; /* [N, row] */
    float *to;         /* [n_out, row] */
    size_t row, width; /* floats from one row to the next, and those that count */
} row_lists;

/* New rows first .. last-1: each the token it continues times its weight, plus those that join. */
static void reduce_rows(const row_lists *l, const ry_cut *cut, uint32_t n_tokens, uint32_t first,
                        uint32_t last)
{
    for (uint32_t r = first; r < last; r++) {
        float *to = l->to + r * l->row;
        const uint32_t s = cut->source[r];
        if (s == RY_NO_TOKEN)
            memset(to, 0, l->width * sizeof *to);
        else
            ry_row_scale(to, l->from + s * l->row, cut->weight[s], l->width);
    }
    for (uint32_t j = 0; j < n_tokens; j++) {
        const uint32_t r = cut->target[j];
        if (r < first || r >= last || cut->source[r] == j) continue;
        ry_row_add(l->to + r * l->row, l->from + j * l->row, cut->weight[j], l->width);
    }
}

/* Bias that fused rows would have had: every token's projection adds it once, times its weight. */
static void add_fused_bias(float *x, const float *bias, size_t dim, const ry_cut *cut,
                           uint32_t n_tokens, uint32_t first, uint32_t last)
{
    for (uint32_t r = first; r < last; r++) {
        if (cut->source[r] != RY_NO_TOKEN) continue;
        float sum = 0.0f;
        for (uint32_t j = 0; j < n_tokens; j++)
            if (cut->target[j] == r) sum += cut->weight[j];
        ry_row_add(x + r * dim, bias, sum - 1.0f, dim);
    }
}

/* Rows that several tokens went into: to the mean length of these, as the mean of vectors that do
 * not point the same way is shorter than each. */
static void restore_lengths(const row_lists *l, const ry_cut *cut, uint32_t n_tokens,
                            uint32_t first, uint32_t last)
{
    float mean[CHUNK] = {0};
    uint32_t members[CHUNK] = {0};
    for (uint32_t j = 0; j < n_tokens; j++)
        if (cut->target[j] >= first && cut->target[j] < last) members[cut->target[j] - first]++;
    for (uint32_t j = 0; j < n_tokens; j++) {
        const uint32_t r = cut->target[j];
        if (r < first || r >= last || members[r - first] < 2) continue;
        mean[r - first] += cut->weight[j] * ry_row_length(l->from + j * l->row, l->width);
    }
    for (uint32_t r = first; r < last; r++) {
        if (members[r - first] < 2) continue;
        float *row = l->to + r * l->row;
        const float length = ry_row_length(row, l->width);
        if (length > 0.0f) ry_row_scale(row, row, mean[r - first] / length, l->width);
    }
}

/* Patches that the new rows stand for; a fused token counts as one. */
static void reduce_sizes(ry_worker *w, const ry_block_rows *b, const ry_cut *cut, size_t image)
{
    const ry_vit_cuts *c = &w->r->p->cuts;
    const float *from = c->sizes[w->sizes_now] + image * b->in;
    float *to = c->sizes[!w->sizes_now] + image * b->out;
    float *log_to = c->log_sizes + image * b->out;

    for (uint32_t r = 0; r < b->out; r++) to[r] = cut->source[r] == RY_NO_TOKEN ? 1.0f : 0.0f;
    for (uint32_t j = 0; j < b->in; j++) {
        const uint32_t r = cut->target[j];
        if (r != RY_NO_TOKEN && cut->source[r] != RY_NO_TOKEN) to[r] += b->sized ? from[j] : 1.0f;
    }
    for (uint32_t r = 0; r < b->out; r++) log_to[r] = logf(to[r]);
}

static void reduce_chunk(ry_worker *w, uint32_t block, int heads, size_t image, uint32_t first)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t C = p->vit->config.dim, h_row = ry_vit_row(p, C);
    const uint32_t last = first + CHUNK < b->out ? first + CHUNK : b->out;
    const ry_cut cut = cut_of(w, image);
    const row_lists x = {p->x[w->x_now] + image * b->in * C, p->x[!w->x_now] + image * b->out * C,
                         C, C};

    reduce_rows(&x, &cut, b->in, first, last);
    if (heads) {
        const row_lists h = {p->h + image * b->in * h_row, p->wide + image * b->out * h_row, h_row,
                             C};
        const float *bias = ry_linear_bias(p->vit->blocks[block].proj);
        reduce_rows(&h, &cut, b->in, first, last);
        add_fused_bias(x.to, bias, C, &cut, b->in, first, last);
    }
    if (b->needs.mean_length) restore_lengths(&x, &cut, b->in, first, last);
}

void ry_cut_reduce(ry_worker *w, uint32_t block, int heads)
{
    const ry_block_rows *b = &w->now;
    const size_t chunks = (b->out + CHUNK - 1) / CHUNK;
    const int sizes = b->sized || b->needs.sizes;

    ry_step step = ry_begin(w, w->r->in->n * chunks);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / chunks, chunk = t % chunks;
        if (chunk == 0 && sizes) {
            const ry_cut cut = cut_of(w, image);
            reduce_sizes(w, b, &cut, image);
        }
        reduce_chunk(w, block, heads, image, (uint32_t)(chunk * CHUNK));
    }
    ry_step_end(&step);
    w->x_now = !w->x_now;
    w->sizes_now = sizes ? !w->sizes_now : w->sizes_now;
}
