/* text_tower_plan.c - packs texts into passes, makes the plan of a text tower and runs it: token
 * embedding, blocks of attention and MLP, projection of one token of each text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/clip_text/text_tower_plan.h"

#include "base/alloc.h"
#include "base/status.h"
#include "model/common/weight_loader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- packing ------------------------------------------------------------------------------- */

/* Length of the common beginning of two texts. */
static uint32_t common_length(const ry_text_line *a, const ry_text_line *b)
{
    uint32_t i = 0;
    while (i < a->length && i < b->length && a->ids[i] == b->ids[i]) i++;
    return i;
}

static int compare_ids(const void *left, const void *right)
{
    const ry_text_line *a = left, *b = right;
    const uint32_t i = common_length(a, b);
    if (i < a->length && i < b->length) return a->ids[i] < b->ids[i] ? -1 : 1;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

void ry_text_sort(ry_text_line *lines, size_t n) { qsort(lines, n, sizeof *lines, compare_ids); }

size_t ry_text_pack(ry_text_pass *p, const ry_text_line *lines, size_t n)
{
    size_t k = 0;
    p->n_rows = p->n_texts = 0;
    for (; k < n && k < p->max_rows; k++) {
        const ry_text_line *line = &lines[k];
        const uint32_t shared = k && !p->sees_all ? common_length(line - 1, line) : 0;
        uint32_t *path = p->paths + k * p->context;
        assert(line->length && line->length <= p->context);
        if (line->length - shared > p->max_rows - p->n_rows) break;
        if (shared) memcpy(path, path - p->context, shared * sizeof *path);
        for (uint32_t i = shared; i < line->length; i++) {
            p->ids[p->n_rows] = line->ids[i];
            p->positions[p->n_rows] = i;
            path[i] = p->n_rows++;
        }
        p->texts[p->n_texts++] = (ry_text_span){line->length, shared, line->pool, line->index};
    }
    return k;
}

/* ---- plan ---------------------------------------------------------------------------------- */

/* Steps of a block: LayerNorm and product of qkv, attention, conversion and product of proj,
 * LayerNorm and product of fc1, conversion and product of fc2. Of the ends: token embedding,
 * gathering the last tokens, LayerNorm and projection, copying. test_runner.c
 * checks that no pass needs more. */
enum { STEPS_PER_BLOCK = 9, STEPS_OF_ENDS = 6 };

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* Bytes of the converted rows of any product in the blocks. */
static size_t low_bytes(const ry_text *t, size_t rows)
{
    size_t most = 0;
    for (uint32_t i = 0; i < t->config.n_blocks; i++) {
        const ry_block_weights *b = &t->blocks[i];
        const ry_linear *const linears[] = {b->qkv, b->proj, b->fc1, b->fc2};
        for (int k = 0; k < 4; k++) most = max_size(most, ry_linear_input_bytes(linears[k], rows));
    }
    return most;
}

/* Takes the lists of a pass from the arena; max_rows and context are set. */
static void lay_out_pass(ry_arena *a, ry_text_pass *p)
{
    const size_t R = p->max_rows;
    p->ids = RY_TAKE(a, R, int32_t);
    p->positions = RY_TAKE(a, R, uint32_t);
    p->texts = RY_TAKE(a, R, ry_text_span);
    p->paths = RY_TAKE(a, R * p->context, uint32_t);
}

/* The order and the sizes of all buffers. */
static void lay_out(ry_arena *a, ry_text_plan *p)
{
    const ry_text_config *c = &p->text->config;
    const size_t R = p->max_tokens, C = c->dim;

    p->x = RY_TAKE(a, R * C, float);
    p->h = RY_TAKE(a, R * ry_text_row(p, C), float);
    p->wide = RY_TAKE(a, R * ry_text_row(p, max_size(3 * C, c->mlp_dim)), float);
    p->team.low = RY_TAKE(a, low_bytes(p->text, R), uint8_t);
    p->pooled_x = RY_TAKE(a, R * C, float);
    p->pooled_h = RY_TAKE(a, R * ry_text_row(p, C), float);
    p->embeddings = RY_TAKE(a, R * c->embed_dim, float);
    p->attention_each = ry_causal_scratch(c->context, C / c->n_heads);
    p->attention_each = (p->attention_each + 15) / 16 * 16; /* whole cache lines */
    p->attention = RY_TAKE(a, p->team.n_threads * p->attention_each, float);
    p->team.tickets = RY_TAKE(a, p->team.n_tickets, ry_ticket);
    lay_out_pass(a, &p->pass);
}

static renyi_status take_arena(ry_text_plan *p, const renyi_allocator *al, renyi_error *err)
{
    ry_arena measure = {0};
    lay_out(&measure, p);
    if (measure.overflow)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%u tokens at a time do not fit in memory",
                       p->max_tokens);
    p->arena_bytes = measure.used;
    p->arena = ry_calloc(al, measure.used, 1); /* products may read rows that no text fills */
    if (!p->arena) return ry_fail_nomem(err, measure.used);
    ry_arena bind = {p->arena, 0, measure.used, 0};
    lay_out(&bind, p);
    return RENYI_OK;
}

static renyi_status bind_linear(ry_linear_op **out, const ry_text_plan *p, const ry_linear *l,
                                size_t x_row, size_t y_row, const renyi_allocator *al,
                                renyi_error *err)
{
    const size_t R = p->max_tokens;
    const ry_rows x = {x_row, R * x_row}, y = {y_row, R * y_row};
    return ry_linear_op_new(out, l, R, x, y, p->team.n_threads, al, err);
}

static renyi_status bind_products(ry_text_plan *p, const renyi_allocator *al, renyi_error *err)
{
    const ry_text_config *c = &p->text->config;
    const size_t C = c->dim, h = ry_text_row(p, C);
    const size_t qkv = ry_text_row(p, 3 * C), mlp = ry_text_row(p, c->mlp_dim);
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        const ry_block_weights *w = &p->text->blocks[i];
        ry_block_ops *b = &p->ops[i];
        RY_TRY(bind_linear(&b->qkv, p, w->qkv, h, qkv, al, err));
        RY_TRY(bind_linear(&b->proj, p, w->proj, h, C, al, err));
        RY_TRY(bind_linear(&b->fc1, p, w->fc1, h, mlp, al, err));
        RY_TRY(bind_linear(&b->fc2, p, w->fc2, mlp, C, al, err));
    }
    return bind_linear(&p->projection, p, p->text->projection, h, c->embed_dim, al, err);
}

renyi_status ry_text_plan_new(ry_text_plan **out, const ry_text *text,
                              const ry_text_plan_options *opt, const renyi_allocator *al,
                              renyi_error *err)
{
    const uint32_t L = text->config.n_blocks;
    *out = NULL;
    ry_text_plan *p = ry_calloc(al, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->text = text;
    p->max_tokens = opt->max_tokens;
    p->team.n_threads = opt->n_threads;
    p->team.n_tickets = STEPS_PER_BLOCK * (size_t)L + STEPS_OF_ENDS;
    p->pass.max_rows = opt->max_tokens;
    p->pass.context = text->config.context;
    p->pass.sees_all = text->config.sees_all;
    ry_kernels_init(&p->kernels, opt->level);
    p->ops = ry_calloc(al, L, sizeof *p->ops);
    renyi_status st = p->ops ? RENYI_OK : ry_fail_nomem(err, L * sizeof *p->ops);
    if (!st) st = take_arena(p, al, err);
    if (!st) st = bind_products(p, al, err);
    if (st) {
        ry_text_plan_free(p, al);
        return st;
    }
    *out = p;
    return RENYI_OK;
}

void ry_text_plan_free(ry_text_plan *p, const renyi_allocator *al)
{
    if (!p) return;
    for (uint32_t i = 0; p->ops && i < p->text->config.n_blocks; i++) {
        ry_linear_op *const ops[] = {p->ops[i].qkv, p->ops[i].proj, p->ops[i].fc1, p->ops[i].fc2};
        for (int k = 0; k < 4; k++) ry_linear_op_free(ops[k], al);
    }
    ry_linear_op_free(p->projection, al);
    ry_free(al, p->ops);
    ry_free(al, p->arena);
    ry_free(al, p);
}

/* ---- passes -------------------------------------------------------------------------------- */

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

/* The row of a text's pooled token. */
static size_t pooled_row(const ry_text_pass *pass, size_t i)
{
    return pass->paths[i * pass->context + pass->texts[i].pool];
}

/* h = attention of the rows that each text does not share; with only_pooled, row i of h is that of
 * the pooled token of text i */
static void attend(worker *w, int only_pooled)
{
    ry_text_plan *p = w->p;
    const ry_text_config *c = &p->text->config;
    const ry_text_pass *pass = &p->pass;
    ry_causal at = {.n_heads = c->n_heads,
                    .head = c->dim / c->n_heads,
                    .qkv = p->wide,
                    .sees_all = c->sees_all};
    at.qkv_row = ry_text_row(p, 3 * (size_t)c->dim);
    at.out_row = ry_text_row(p, c->dim);
    ry_step step = ry_runner_step(w->run, pass->n_texts);
    for (size_t i; ry_step_next(&step, &i);) {
        const ry_text_span *text = &pass->texts[i];
        at.rows = pass->paths + i * pass->context;
        at.n_tokens = text->length;
        at.first = only_pooled ? text->pool : text->shared;
        at.end = only_pooled ? text->pool + 1 : text->length;
        if (at.first == at.end) continue; /* all of it is shared */
        at.out = p->h + (only_pooled ? i : at.rows[at.first]) * at.out_row;
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

/* Only one token of each text is read; the others contribute keys and values. */
static void run_last_block(worker *w, uint32_t i)
{
    ry_text_plan *p = w->p;
    const size_t C = p->text->config.dim;
    ry_step step = ry_runner_step(w->run, p->pass.n_texts);
    for (size_t k; ry_step_next(&step, &k);)
        memcpy(p->pooled_x + k * C, p->x + pooled_row(&p->pass, k) * C, C * sizeof(float));
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
