/* vit_plan.c - makes the plan of a ViT: token counts, bound products, the arena.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/vit_plan.h"

#include "base/alloc.h"
#include "base/status.h"

/* Steps of a block: LayerNorm and product of qkv, rotation, attention, conversion and product of
 * proj, LayerNorm and product of fc1, a gate, conversion and product of fc2, gathering the class
 * rows, the report (13); four calls of watch(); an anchor; a cut: scores, phases, watch(),
 * reducing; the row of the pooling head (4). Of the ends: patches, three steps of their product,
 * LayerNorm, a report; pooling (3), LayerNorm, two products of three steps, averaging; the pooling
 * head: LayerNorm and product twice, two products, attention, copying. test_runner.c checks that no
 * run needs more. */
enum {
    STEPS_PER_BLOCK = 13 + 4 + 1 + 3 + RY_MAX_PHASES + 4,
    STEPS_OF_ENDS = 1 + 3 + 1 + 1 + 3 + 1 + 2 * 3 + 1 + 2 * 3 + 2 * 3 + 2
};

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* The most sums per column that any block needs. */
static size_t most_column_sets(const ry_vit_plan *p)
{
    size_t most = 0;
    for (uint32_t i = 0; i < p->vit->config.n_blocks; i++) {
        const ry_block_needs *n = &p->rows[i].needs;
        if (n->what & RY_NEED_COLUMNS)
            most = max_size(most, ry_column_sets(&n->columns, p->vit->config.n_heads));
    }
    return most;
}

static size_t most_keys(const ry_vit_plan *p)
{
    return p->vit->n_patches + p->vit->config.n_prefix + (p->has_anchors ? 1 : 0);
}

static void lay_out_cuts(ry_arena *a, ry_vit_plan *p, size_t tokens)
{
    const size_t N = p->vit->n_patches + p->vit->config.n_prefix;
    const size_t parts = ry_attention_blocks(N, p->kernels.attention_rows) * most_column_sets(p);
    ry_vit_cuts *c = &p->cuts;

    c->class_row = RY_TAKE(a, tokens, float);
    c->columns = RY_TAKE(a, tokens, float);
    c->column_parts = RY_TAKE(a, tokens * parts, double);
    c->cut.source = RY_TAKE(a, tokens, uint32_t);
    c->cut.target = RY_TAKE(a, tokens, uint32_t);
    c->cut.weight = RY_TAKE(a, tokens, float);
    c->cut.score = RY_TAKE(a, tokens, float);
    c->cut.rescued = RY_TAKE(a, tokens, uint8_t);
    c->n_out = RY_TAKE(a, p->vit->config.n_blocks, uint32_t);
    for (int i = 0; i < 2; i++) c->sizes[i] = RY_TAKE(a, tokens, float);
    c->log_sizes = RY_TAKE(a, tokens, float);
    for (int i = 0; i < 2; i++) c->places[i] = RY_TAKE(a, p->vit->rope ? tokens : 0, uint32_t);
}

static void lay_out_pool(ry_arena *a, ry_vit_plan *p, size_t tokens)
{
    const size_t B = p->max_batch, C = p->vit->config.dim, H = p->vit->config.n_heads;
    p->pooling.logits = RY_TAKE(a, tokens * ry_vit_row(p, H), float);
    p->pooling.means = RY_TAKE(a, B * H * C, float);
    p->pooling.heads = RY_TAKE(a, B * ry_vit_row(p, C), float);
}

/* Bytes of the converted rows of any product in the blocks. */
static size_t low_bytes(const ry_vit *v, size_t rows)
{
    size_t most = 0;
    for (uint32_t i = 0; i < v->config.n_blocks; i++) {
        const ry_block_weights *b = &v->blocks[i];
        const ry_linear *const linears[] = {b->qkv, b->proj, b->fc1, b->fc2};
        for (int k = 0; k < 4; k++) most = max_size(most, ry_linear_input_bytes(linears[k], rows));
    }
    return most;
}

/* The order and the sizes of all buffers. */
static void lay_out(ry_arena *a, ry_vit_plan *p)
{
    const ry_vit_config *c = &p->vit->config;
    const size_t B = p->max_batch, N = p->vit->n_patches + c->n_prefix, C = c->dim;
    const size_t rows = B * N + (p->has_anchors ? 1 : 0);
    const size_t patch = 3 * (size_t)c->patch_size * c->patch_size;
    const size_t wide = max_size(max_size(3 * C, (c->gated ? 2 : 1) * (size_t)c->mlp_dim), patch);
    const size_t pooled = p->pool == RY_POOL_PATCHES ? 0 : ry_vit_pooled_rows(c, p->pool);

    p->x[0] = RY_TAKE(a, rows * C, float);
    p->x[1] = RY_TAKE(a, p->hook ? rows * C : 0, float);
    p->h = RY_TAKE(a, rows * ry_vit_row(p, C), float);
    p->wide = RY_TAKE(a, rows * ry_vit_row(p, wide), float);
    p->gated = c->gated ? RY_TAKE(a, rows * ry_vit_row(p, c->mlp_dim), float) : NULL;
    p->team.low = RY_TAKE(a, low_bytes(p->vit, rows), uint8_t);
    p->pooled_x = RY_TAKE(a, B * pooled * C, float);
    p->pooled_h = RY_TAKE(a, B * pooled * ry_vit_pooled_row(p), float);
    p->row_list = RY_TAKE(a, p->has_anchors ? N : ry_vit_class_rows(c), uint32_t);
    p->anchored = RY_TAKE(a, p->has_anchors ? c->n_blocks : 0, uint8_t);
    p->logits_dist = RY_TAKE(a, p->vit->head_dist ? B * c->n_classes : 0, float);
    p->embedding =
        RY_TAKE(a, p->vit->text_head ? B * ry_vit_row(p, ry_vit_embed_dim(c)) : 0, float);
    p->attention_each =
        ry_attention_scratch(most_keys(p), C / c->n_heads, p->kernels.attention_rows);
    p->attention_each = (p->attention_each + 15) / 16 * 16; /* whole cache lines */
    p->attention = RY_TAKE(a, p->team.n_threads * p->attention_each, float);
    p->team.tickets = RY_TAKE(a, p->team.n_tickets, ry_ticket);
    if (c->pool == RY_POOL_ATTENTION) lay_out_pool(a, p, rows);
    if (p->hook) lay_out_cuts(a, p, rows);
}

static renyi_status take_arena(ry_vit_plan *p, const renyi_allocator *al, renyi_error *err)
{
    ry_arena measure = {0};
    lay_out(&measure, p);
    if (measure.overflow)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a batch of %u images does not fit in memory",
                       (unsigned)p->max_batch);
    p->arena_bytes = measure.used;
    p->arena = ry_alloc(al, measure.used, 1);
    if (!p->arena) return ry_fail_nomem(err, measure.used);
    ry_arena bind = {p->arena, 0, measure.used, 0};
    lay_out(&bind, p);
    const ry_vit_config *c = &p->vit->config;
    const uint32_t listed = p->has_anchors ? p->vit->n_patches + c->n_prefix : ry_vit_class_rows(c);
    for (uint32_t i = 0; i < listed; i++) p->row_list[i] = i;
    return RENYI_OK;
}

static ry_rows packed(size_t row, size_t count) { return (ry_rows){row, row * count}; }

static renyi_status bind_block(ry_vit_plan *p, uint32_t i, const renyi_allocator *al,
                               renyi_error *err)
{
    const ry_vit_config *c = &p->vit->config;
    const ry_block_weights *w = &p->vit->blocks[i];
    const ry_block_rows *r = &p->rows[i];
    ry_block_ops *b = &p->ops[i];
    const size_t C = c->dim, M = c->mlp_dim;
    const size_t in = r->in, mid = r->project, out = r->mlp;
    const unsigned t = p->team.n_threads;
    const size_t h = ry_vit_row(p, C), qkv = ry_vit_row(p, 3 * C);
    const size_t mlp = ry_vit_row(p, M), fc1 = ry_vit_row(p, c->gated ? 2 * M : M);
    RY_TRY(ry_linear_op_new(&b->qkv, w->qkv, in, packed(h, in), packed(qkv, in), t, al, err));
    if (r->anchored)
        RY_TRY(ry_linear_op_new(&b->qkv_anchored, w->qkv, in + 1, packed(h, in + 1),
                                packed(qkv, in + 1), t, al, err));
    if (r->decide && r->needs.what & RY_NEED_POOL_ROW)
        RY_TRY(ry_linear_op_new(&b->pool_keys, p->vit->pool.keys, in, packed(h, in),
                                packed(ry_vit_row(p, c->n_heads), in), t, al, err));
    RY_TRY(ry_linear_op_new(&b->proj, w->proj, mid, packed(h, mid), packed(C, mid), t, al, err));
    RY_TRY(ry_linear_op_new(&b->fc1, w->fc1, out, packed(h, out), packed(fc1, out), t, al, err));
    return ry_linear_op_new(&b->fc2, w->fc2, out, packed(mlp, out), packed(C, out), t, al, err);
}

static renyi_status bind_answer(ry_vit_plan *p, renyi_output output, const renyi_allocator *al,
                                renyi_error *err)
{
    const ry_vit *v = p->vit;
    const ry_vit_config *c = &v->config;
    const size_t h = ry_vit_pooled_row(p), e = ry_vit_row(p, ry_vit_embed_dim(c));
    const ry_rows pooled = {h, ry_vit_pooled_rows(c, p->pool) * h},
                  out = {p->n_outputs, p->n_outputs};
    const ry_rows embedding = {e, e};
    const int logits = output == RENYI_OUTPUT_AUTO, text_head = logits && v->text_head;
    const unsigned t = p->team.n_threads;

    if (logits && v->head) {
        RY_TRY(ry_linear_op_new(&p->head, v->head, 1, pooled, out, t, al, err));
        if (!v->head_dist) return RENYI_OK;
        return ry_linear_op_new(&p->head_dist, v->head_dist, 1, pooled, out, t, al, err);
    }
    if (v->projection && (logits || output == RENYI_OUTPUT_EMBEDDING))
        RY_TRY(ry_linear_op_new(&p->projection, v->projection, 1, pooled,
                                text_head ? embedding : out, t, al, err));
    return text_head ? ry_linear_op_new(&p->text_head, v->text_head, 1, embedding, out, t, al, err)
                     : RENYI_OK;
}

static renyi_status bind_pool(ry_vit_plan *p, const renyi_allocator *al, renyi_error *err)
{
    const ry_vit_config *c = &p->vit->config;
    const ry_pool_head *w = &p->vit->pool;
    const size_t N = p->rows[c->n_blocks - 1].out, C = c->dim;
    const size_t h = ry_vit_row(p, C), mlp = ry_vit_row(p, c->mlp_dim);
    const unsigned t = p->team.n_threads;
    if (p->pool != RY_POOL_ATTENTION) return RENYI_OK;
    RY_TRY(ry_linear_op_new(&p->pooling.keys, w->keys, N, packed(h, N),
                            packed(ry_vit_row(p, c->n_heads), N), t, al, err));
    RY_TRY(ry_linear_op_new(&p->pooling.proj, w->proj, 1, packed(h, 1), packed(C, 1), t, al, err));
    RY_TRY(ry_linear_op_new(&p->pooling.fc1, w->fc1, 1, packed(h, 1), packed(mlp, 1), t, al, err));
    return ry_linear_op_new(&p->pooling.fc2, w->fc2, 1, packed(mlp, 1), packed(C, 1), t, al, err);
}

static renyi_status bind_ends(ry_vit_plan *p, renyi_output output, const renyi_allocator *al,
                              renyi_error *err)
{
    const ry_vit *v = p->vit;
    const ry_vit_config *c = &v->config;
    const size_t C = c->dim, P = v->n_patches, N = P + c->n_prefix;
    const size_t patch = 3 * (size_t)c->patch_size * c->patch_size;

    RY_TRY(ry_linear_op_new(&p->patch_embed, v->patch_embed, P, (ry_rows){patch, patch * P},
                            (ry_rows){C, C * N}, p->team.n_threads, al, err));
    RY_TRY(bind_pool(p, al, err));
    return bind_answer(p, output, al, err);
}

static double embed_macs(const ry_vit_plan *p)
{
    const ry_vit_config *c = &p->vit->config;
    return p->vit->n_patches * 3.0 * c->patch_size * c->patch_size * c->dim;
}

double ry_vit_ends_macs(const ry_vit_plan *p)
{
    const ry_vit_config *c = &p->vit->config;
    const ry_linear_op *const ends[] = {p->head, p->head_dist, p->text_head, p->projection};
    double macs = embed_macs(p);
    for (int i = 0; i < 4; i++)
        if (ends[i])
            macs += (double)ry_linear_in(ry_linear_op_of(ends[i])) *
                    (double)ry_linear_out(ry_linear_op_of(ends[i]));
    if (p->pool == RY_POOL_ATTENTION) macs += ry_vit_pool_macs(c, p->rows[c->n_blocks - 1].out);
    return macs;
}

double ry_vit_macs_before(const ry_vit_plan *p, uint32_t block)
{
    const ry_vit_config *c = &p->vit->config;
    double macs = embed_macs(p);
    for (uint32_t i = 0; i < block; i++) macs += ry_block_rows_macs(&p->rows[i], c);
    return macs;
}

double ry_vit_plan_macs(const ry_vit_plan *p)
{
    const ry_vit_config *c = &p->vit->config;
    double macs = ry_vit_ends_macs(p);
    for (uint32_t i = 0; i < c->n_blocks; i++) macs += ry_block_rows_macs(&p->rows[i], c);
    return macs;
}

renyi_status ry_vit_plan_new(ry_vit_plan **out, const ry_vit *vit, const ry_vit_plan_options *opt,
                             const renyi_allocator *al, renyi_error *err)
{
    const uint32_t L = vit->config.n_blocks;
    *out = NULL;
    ry_vit_plan *p = ry_calloc(al, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->vit = vit;
    p->hook = opt->hook;
    p->max_batch = opt->max_batch;
    p->team.n_threads = opt->n_threads;
    p->pool = ry_vit_pooling(&vit->config, opt->output);
    p->n_outputs = ry_vit_outputs(&vit->config, opt->output);
    p->team.n_tickets = STEPS_PER_BLOCK * (size_t)L + STEPS_OF_ENDS;
    ry_kernels_init(&p->kernels, opt->level);
    p->rows = ry_calloc(al, L, sizeof *p->rows);
    p->ops = ry_calloc(al, L, sizeof *p->ops);
    renyi_status st = p->rows && p->ops ? RENYI_OK : ry_fail_nomem(err, L * sizeof *p->ops);
    const ry_rows_options rows = {p->hook, opt->all_rows, opt->output};
    if (!st) ry_vit_rows(p->rows, &vit->config, vit->n_patches, &rows);
    for (uint32_t i = 0; i < L && !st; i++) {
        p->has_anchors |= p->rows[i].anchored;
        p->one_by_one |= p->rows[i].decide && p->rows[i].needs.adaptive;
    }
    p->one_by_one |= p->has_anchors || opt->one_by_one;
    if (!st) st = take_arena(p, al, err);
    if (!st) st = bind_ends(p, opt->output, al, err);
    for (uint32_t i = 0; i < L && !st; i++) st = bind_block(p, i, al, err);
    if (st) {
        ry_vit_plan_free(p, al);
        return st;
    }
    *out = p;
    return RENYI_OK;
}

void ry_vit_plan_free(ry_vit_plan *p, const renyi_allocator *al)
{
    if (!p) return;
    for (uint32_t i = 0; p->ops && i < p->vit->config.n_blocks; i++) {
        ry_block_ops *b = &p->ops[i];
        ry_linear_op_free(b->qkv, al);
        ry_linear_op_free(b->qkv_anchored, al);
        ry_linear_op_free(b->pool_keys, al);
        ry_linear_op_free(b->proj, al);
        ry_linear_op_free(b->fc1, al);
        ry_linear_op_free(b->fc2, al);
    }
    ry_linear_op *const ends[] = {p->patch_embed,  p->head,        p->head_dist,
                                  p->text_head,    p->projection,  p->pooling.keys,
                                  p->pooling.proj, p->pooling.fc1, p->pooling.fc2};
    for (int i = 0; i < 9; i++) ry_linear_op_free(ends[i], al);
    ry_free(al, p->rows);
    ry_free(al, p->ops);
    ry_free(al, p->arena);
    ry_free(al, p);
}
