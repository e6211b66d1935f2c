/* token_cut.c - counts the rows of each step, runs the hook's decision and makes the new rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/token_cut.h"

#include "kernels/rows/rows.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- rows of each step --------------------------------------------------------------------- */

static ry_block_path path_of(const ry_block_needs *n, int only_prefix_is_read)
{
    if (only_prefix_is_read) return RY_PATH_PREFIX;
    if (n->place == RY_CUT_NONE) return RY_PATH_WHOLE;
    if (n->place == RY_CUT_END) return RY_PATH_END;
    if (n->what & RY_NEED_TOKENS) return RY_PATH_AFTER;
    return n->drops && !(n->what & RY_NEED_COLUMNS) ? RY_PATH_LISTED : RY_PATH_BEFORE;
}

/* The rows of each step, from the tokens that enter and those that leave. */
static void count_steps(ry_block_rows *r, const ry_vit_config *config)
{
    const uint32_t in = r->in, after = r->needs.place == RY_CUT_NONE ? in : r->needs.n_after;
    r->attend = r->project = r->mlp = in;
    r->out = after;
    switch (r->path) {
    case RY_PATH_PREFIX: r->attend = r->project = r->mlp = ry_vit_class_rows(config); break;
    case RY_PATH_LISTED: r->attend = r->project = r->mlp = after; break;
    case RY_PATH_BEFORE: r->project = r->mlp = after; break;
    case RY_PATH_AFTER: r->mlp = after; break;
    case RY_PATH_WHOLE:
    case RY_PATH_END: break;
    }
}

uint32_t ry_plain_blocks(const ry_block_rows *rows, uint32_t n_blocks)
{
    uint32_t n = 0;
    while (n + 1 < n_blocks && rows[n].path == RY_PATH_WHOLE && !rows[n].decide &&
           !rows[n].anchored)
        n++;
    return n;
}

void ry_block_rows_fit(ry_block_rows *r, const ry_vit_config *config, uint32_t in, uint32_t after)
{
    assert(config->n_prefix <= in && in <= r->in);
    assert(r->needs.place == RY_CUT_NONE ||
           (config->n_prefix <= after && after <= r->needs.n_after));
    r->in = in;
    r->needs.n_after = after;
    count_steps(r, config);
}

void ry_vit_rows(ry_block_rows *rows, const ry_vit_config *config, uint32_t n_patches,
                 const ry_rows_options *opt)
{
    const ry_token_hook *hook = opt->hook;
    uint32_t tokens = n_patches + config->n_prefix;
    int sized = 0;
    float log_factor = 1.0f, logit_factor = 1.0f;

    for (uint32_t i = 0; i < config->n_blocks; i++) {
        ry_block_rows *r = &rows[i];
        *r = (ry_block_rows){.in = tokens, .sized = sized, .logit_factor = logit_factor};
        if (hook) hook->needs(hook->self, i, tokens, &r->needs);
        r->anchored = r->needs.anchor;
        r->decide = r->needs.place != RY_CUT_NONE || r->needs.look;
        /* If only class rows are read, a cut in the last block changes no result: it is made
         * only for hooks that watch. */
        const int last = i == config->n_blocks - 1 && !opt->all_rows &&
                         ry_vit_pooling(config, opt->output) == RY_POOL_TOKEN;
        const int only_prefix = last && !(r->decide && hook->watch);
        if (only_prefix) r->decide = 0;
        r->path = path_of(&r->needs, only_prefix);
        count_steps(r, config);
        tokens = r->out;
        sized = sized || r->needs.sizes;
        if (r->needs.sizes) {
            log_factor = r->needs.log_factor;
            logit_factor = r->needs.logit_factor;
        }
        r->log_factor = log_factor;
    }
}

double ry_block_rows_macs(const ry_block_rows *r, const ry_vit_config *config)
{
    const double C = config->dim, M = config->mlp_dim, keys = r->in + (r->anchored != 0);
    const double class_row = r->path == RY_PATH_LISTED && (r->needs.what & RY_NEED_CLASS_ROW);
    const double pool_row = r->decide && (r->needs.what & RY_NEED_POOL_ROW) ? config->n_heads : 0;
    const double patches = r->in - config->n_prefix;
    const double own = r->needs.macs + r->needs.pair_macs * patches * patches;
    const double rule = (r->decide ? own : 0.0) + pool_row * r->in * C;
    return 3.0 * keys * C * C + (2.0 * r->attend + class_row) * keys * C + r->project * C * C +
           (config->gated ? 3.0 : 2.0) * r->mlp * C * M + rule;
}

double ry_vit_pool_macs(const ry_vit_config *c, uint32_t n_tokens)
{
    const double C = c->dim, M = c->mlp_dim, H = c->n_heads, N = n_tokens - c->n_prefix;
    if (c->pool != RY_POOL_ATTENTION) return 0.0;
    return (n_tokens + N) * C * H + 2.0 * C * C + 2.0 * C * M;
}

/* ---- a block of a running pass ------------------------------------------------------------- */

ry_cut ry_block_cut(const ry_block_state *s, size_t image)
{
    const size_t at = image * s->stride;
    return (ry_cut){.n_out = s->rows->out,
                    .source = s->cut.source + at,
                    .target = s->cut.target + at,
                    .weight = s->cut.weight + at,
                    .score = s->cut.score + at,
                    .rescued = s->cut.rescued + at};
}

ry_attention ry_block_attention(const ry_block_state *s, size_t image)
{
    const ry_block_rows *b = s->rows;
    const size_t N = b->in + (b->anchored != 0), H = s->config->n_heads;
    ry_attention at = {.n_tokens = N,
                       .n_heads = H,
                       .head = s->config->dim / H,
                       .qkv = s->qkv + image * N * s->qkv_row,
                       .qkv_row = s->qkv_row,
                       .out = s->heads + image * b->attend * s->heads_row,
                       .out_row = s->heads_row,
                       .logit_factor = b->logit_factor,
                       .columns = b->needs.columns};
    if (b->anchored) { /* the anchor is a key, not a query */
        at.rows = s->row_list;
        at.n_rows = b->in;
    }
    if (s->sizes) {
        at.key_bias = s->log_sizes + image * N;
        at.row_weight = s->sizes + image * N;
    } else {
        at.columns.row_weights = 0; /* all 1 */
    }
    if (!b->decide) return at;
    if (b->needs.what & RY_NEED_CLASS_ROW) at.class_row = s->class_row + image * N;
    if (b->needs.what & RY_NEED_COLUMNS) {
        const size_t blocks = ry_attention_blocks(b->in, s->kernels->attention_rows);
        at.column_parts = s->column_parts + image * N * blocks * ry_column_sets(&at.columns, H);
    }
    return at;
}

ry_block_view ry_block_view_of(const ry_block_state *s, size_t image)
{
    const ry_vit_config *c = s->config;
    const ry_attention at = ry_block_attention(s, image);
    const size_t first = image * s->rows->in;
    const int pool_row = s->rows->decide && (s->rows->needs.what & RY_NEED_POOL_ROW);
    return (ry_block_view){.block = s->block,
                           .image = s->first_image + (uint32_t)image,
                           .n_tokens = s->rows->in,
                           .dim = c->dim,
                           .n_heads = c->n_heads,
                           .n_prefix = c->n_prefix,
                           .class_row = pool_row ? s->class_row + first : at.class_row,
                           .columns = at.column_parts ? s->columns + first : NULL,
                           .qkv = at.qkv,
                           .qkv_row = at.qkv_row,
                           .x = s->x + first * c->dim,
                           .sizes = s->sizes ? s->sizes + first : NULL};
}

/* Scores of the columns from the parts that attention left; on RY_PATH_LISTED the class row. */
static void finish_scores(ry_runner *r, const ry_block_state *s)
{
    static const uint32_t first_row[] = {0};
    const ry_block_rows *b = s->rows;
    const size_t blocks = ry_attention_blocks(b->in, s->kernels->attention_rows);
    const int columns = (b->needs.what & RY_NEED_COLUMNS) != 0;
    const int class_row = b->path == RY_PATH_LISTED && (b->needs.what & RY_NEED_CLASS_ROW);
    if (!columns && !class_row) return;

    ry_step step = ry_runner_step(r, s->n_images);
    for (size_t i; ry_step_next(&step, &i);) {
        ry_attention at = ry_block_attention(s, i);
        if (columns) ry_attention_scores(s->columns + i * b->in, &at, blocks);
        if (!class_row) continue;
        at.rows = first_row;
        at.n_rows = 1;
        at.out = NULL;
        s->kernels->attention(&at, 0, s->scratch + r->thread * s->scratch_each);
    }
    ry_step_end(&step);
}

void ry_block_decide(ry_runner *r, const ry_token_hook *hook, const ry_block_state *s)
{
    finish_scores(r, s);
    for (uint32_t phase = 0; hook->work && phase < RY_MAX_PHASES; phase++) {
        const size_t tiles = hook->tiles(hook->self, s->block, phase);
        if (!tiles) break;
        ry_step step = ry_runner_step(r, s->n_images * tiles);
        for (size_t t; ry_step_next(&step, &t);) {
            const ry_block_view view = ry_block_view_of(s, t / tiles);
            ry_cut cut = ry_block_cut(s, t / tiles);
            hook->work(hook->self, &view, &cut, phase, (uint32_t)(t % tiles));
            if (s->rows->needs.adaptive && tiles == 1) *s->n_out = cut.n_out;
        }
        ry_step_end(&step);
    }
}

/* ---- rows that a cut makes ----------------------------------------------------------------- */

size_t ry_token_chunks(uint32_t n_out)
{
    return ((size_t)n_out + RY_TOKEN_CHUNK - 1) / RY_TOKEN_CHUNK;
}

ry_token_chunk ry_token_chunk_of(uint32_t n_out, size_t t)
{
    const size_t chunks = ry_token_chunks(n_out);
    const uint32_t first = (uint32_t)(t % chunks) * RY_TOKEN_CHUNK;
    const uint32_t last = n_out - first < RY_TOKEN_CHUNK ? n_out : first + RY_TOKEN_CHUNK;
    return (ry_token_chunk){t / chunks, first, last};
}

void ry_token_reduce(const ry_row_lists *l, const ry_cut *cut, uint32_t n_tokens, uint32_t first,
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

void ry_token_lengths(const ry_row_lists *l, const ry_cut *cut, const float *sizes,
                      uint32_t n_tokens, ry_merged_length kind, uint32_t first, uint32_t last)
{
    float wanted[RY_TOKEN_CHUNK] = {0}, sum[RY_TOKEN_CHUNK] = {0};
    uint32_t members[RY_TOKEN_CHUNK] = {0};
    for (uint32_t j = 0; j < n_tokens; j++) {
        if (cut->target[j] < first || cut->target[j] >= last) continue;
        members[cut->target[j] - first]++;
        sum[cut->target[j] - first] += sizes ? sizes[j] : 1.0f;
    }
    for (uint32_t j = 0; j < n_tokens; j++) {
        const uint32_t r = cut->target[j];
        if (r < first || r >= last || members[r - first] < 2) continue;
        const float length = ry_row_length(l->from + j * l->row, l->width);
        float *want = &wanted[r - first];
        if (kind == RY_LENGTH_LARGEST)
            *want = length > *want ? length : *want;
        else
            *want += (sizes ? sizes[j] : 1.0f) / sum[r - first] * length;
    }
    for (uint32_t r = first; r < last; r++) {
        if (members[r - first] < 2) continue;
        float *row = l->to + r * l->row;
        const float length = ry_row_length(row, l->width);
        if (length > 0.0f) ry_row_scale(row, row, wanted[r - first] / length, l->width);
    }
}

float ry_token_weight_sum(const ry_cut *cut, uint32_t n_tokens, uint32_t r)
{
    float sum = 0.0f;
    for (uint32_t j = 0; j < n_tokens; j++)
        if (cut->target[j] == r) sum += cut->weight[j];
    return sum;
}

void ry_token_sizes(float *to, float *log_to, const float *from, const ry_cut *cut,
                    uint32_t n_tokens, float log_factor)
{
    for (uint32_t r = 0; r < cut->n_out; r++) to[r] = cut->source[r] == RY_NO_TOKEN ? 1.0f : 0.0f;
    for (uint32_t j = 0; j < n_tokens; j++) {
        const uint32_t r = cut->target[j];
        if (r != RY_NO_TOKEN && cut->source[r] != RY_NO_TOKEN) to[r] += from ? from[j] : 1.0f;
    }
    for (uint32_t r = 0; r < cut->n_out; r++) log_to[r] = log_factor * logf(to[r]);
}

void ry_token_mean(float *to, const float *rows, size_t row, size_t width, const float *sizes,
                   size_t first, size_t n_tokens)
{
    float sum = 0.0f;
    memset(to, 0, width * sizeof *to);
    for (size_t j = first; j < n_tokens; j++) {
        const float size = sizes ? sizes[j] : 1.0f;
        ry_row_add(to, rows + j * row, size, width);
        sum += size;
    }
    ry_row_scale(to, to, 1.0f / sum, width);
}
