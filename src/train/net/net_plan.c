/* net_plan.c - the products of a net in both directions, and the memory of its passes. Everything
 * is sized for the run without cuts, so the policy may change between any two steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "train/net/net_state.h"

/* Most steps of one pass: a block backward, after running it forward again; and of the ends.
 * test_net.c checks that no pass needs more. */
enum { STEPS_PER_BLOCK = 112, STEPS_OF_ENDS = 64 };

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* ---- products ------------------------------------------------------------------------------ */

typedef struct binding {
    size_t rows;  /* of each image, as the op counts them */
    ry_rows x, y; /* forward; backward goes from dy to dx */
    ry_rows dy, dx;
    ry_epilogue epilogue;
    renyi_dtype dtype;
    int back;
} binding;

/* With whole tiles an implementation splits micro-batches of any size in the same way: same bits.
 */
static size_t whole_tiles(size_t rows)
{
    return (rows + RY_LINEAR_TILE - 1) / RY_LINEAR_TILE * RY_LINEAR_TILE;
}

static ry_rows flat(size_t row, size_t rows) { return (ry_rows){row, row * rows}; }

static renyi_status make_matrix(ry_net *net, ry_net_matrix *m, const binding *b, renyi_error *err)
{
    const size_t n_out = ry_net_outputs(m), n_in = m->w->size / n_out;
    const ry_linear_spec ahead = {
        .n_out = n_out, .n_in = n_in, .epilogue = b->epilogue, .dtype = b->dtype};
    const ry_linear_spec back = {.n_out = n_in, .n_in = n_out, .dtype = b->dtype};
    RY_TRY(ry_linear_new(&m->ahead, &ahead, net->level, &net->al, err));
    RY_TRY(ry_linear_op_new(&m->ahead_op, m->ahead, b->rows, b->x, b->y, net->team.n_threads,
                            &net->al, err));
    if (!b->back) return RENYI_OK;
    RY_TRY(ry_linear_new(&m->back, &back, net->level, &net->al, err));
    return ry_linear_op_new(&m->back_op, m->back, b->rows, b->dy, b->dx, net->team.n_threads,
                            &net->al, err);
}

static renyi_status make_block(ry_net *net, ry_net_block *b, renyi_error *err)
{
    const size_t C = net->config.dim, M = net->config.mlp_dim;
    const size_t rows = net->max_rows;
    const ry_rows x = flat(C, rows), h = flat(ry_net_row(net, C), rows);
    const ry_rows qkv = flat(ry_net_row(net, 3 * C), rows), g = flat(ry_net_row(net, M), rows);
    const ry_rows u = flat(ry_net_row(net, ry_net_mlp_in(net)), rows);
    const binding to_qkv = {rows, h, qkv, qkv, h, RY_EPI_NONE, net->dtype, 1};
    const binding proj = {rows, h, x, h, h, RY_EPI_RESIDUAL, net->dtype, 1};
    const binding fc1 = {rows, h, u, u, h, RY_EPI_NONE, net->dtype, 1};
    const binding fc2 = {rows, g, x, h, g, RY_EPI_RESIDUAL, net->dtype, 1};
    RY_TRY(make_matrix(net, &b->qkv, &to_qkv, err));
    RY_TRY(make_matrix(net, &b->proj, &proj, err));
    RY_TRY(make_matrix(net, &b->fc1, &fc1, err));
    return make_matrix(net, &b->fc2, &fc2, err);
}

/* Logits are in the caller's memory, which has rows only for the images of the batch: one row per
 * image, as oneDNN would write whole tiles of more. */
static renyi_status make_head(ry_net *net, ry_net_matrix *head, renyi_error *err)
{
    const size_t h = ry_net_pooled_row(net), classes = net->config.n_classes;
    const binding b = {1,          flat(h, 1),  flat(classes, 1), flat(classes, 1),
                       flat(h, 1), RY_EPI_NONE, RENYI_DTYPE_F32,  1};
    return make_matrix(net, head, &b, err);
}

/* The keys and values of all tokens; then one row per image, as the heads have it. */
static renyi_status make_pool(ry_net *net, ry_net_pool *p, renyi_error *err)
{
    const size_t C = net->config.dim, rows = net->max_rows, row = ry_net_row(net, C);
    const renyi_dtype f32 = RENYI_DTYPE_F32;
    const ry_rows h = flat(row, rows), kv = flat(ry_net_row(net, 2 * C), rows);
    const ry_rows x = flat(C, 1), one = flat(row, 1);
    const ry_rows u = flat(ry_net_row(net, net->config.mlp_dim), 1);
    const binding to_kv = {rows, h, kv, kv, h, RY_EPI_NONE, f32, 1};
    const binding proj = {1, one, x, one, one, RY_EPI_NONE, f32, 1};
    const binding fc1 = {1, one, u, u, one, RY_EPI_NONE, f32, 1};
    const binding fc2 = {1, u, one, one, u, RY_EPI_RESIDUAL, f32, 1};
    RY_TRY(make_matrix(net, &p->kv, &to_kv, err));
    RY_TRY(make_matrix(net, &p->proj, &proj, err));
    RY_TRY(make_matrix(net, &p->fc1, &fc1, err));
    return make_matrix(net, &p->fc2, &fc2, err);
}

renyi_status ry_net_make_linears(ry_net *net, renyi_error *err)
{
    const ry_vit_config *c = &net->config;
    const size_t P = net->n_patches, N = net->n_tokens, C = c->dim;
    net->max_rows = whole_tiles(net->max_batch * N);
    const size_t patch = 3 * (size_t)c->patch_size * c->patch_size;
    const binding embed = {.rows = P,
                           .x = flat(patch, P),
                           .y = {C, C * N},
                           .epilogue = RY_EPI_RESIDUAL,
                           .dtype = RENYI_DTYPE_F32};
    RY_TRY(make_matrix(net, &net->patch_embed, &embed, err));
    for (uint32_t i = 0; i < c->n_blocks; i++) RY_TRY(make_block(net, &net->blocks[i], err));
    if (net->pool.probe) RY_TRY(make_pool(net, &net->pool, err));
    RY_TRY(make_head(net, &net->head[0], err));
    if (net->head[1].w) RY_TRY(make_head(net, &net->head[1], err));
    for (uint32_t i = 0; !net->direct && i < net->n_taps; i++) {
        const ry_rows in = flat(ry_net_row(net, C), net->max_rows);
        const ry_rows out = flat(net->feature_dim, net->max_rows);
        const binding tap = {net->max_rows, in, out, out, in, RY_EPI_NONE, RENYI_DTYPE_F32, 1};
        RY_TRY(make_matrix(net, &net->taps[i].proj, &tap, err));
    }
    if (!ry_net_final_features(net)) return RENYI_OK;
    const size_t rows = whole_tiles(net->max_batch * P);
    const ry_rows h = flat(ry_net_row(net, C), rows), f = flat(net->feature_dim, rows);
    const binding feature = {rows, h, f, f, h, RY_EPI_NONE, RENYI_DTYPE_F32, 1};
    return make_matrix(net, &net->feature, &feature, err);
}

static void free_matrix(ry_net_matrix *m, const renyi_allocator *al)
{
    ry_linear_op_free(m->ahead_op, al);
    ry_linear_op_free(m->back_op, al);
    ry_linear_free(m->ahead, al);
    ry_linear_free(m->back, al);
}

void ry_net_free_linears(ry_net *net)
{
    for (uint32_t i = 0; net->blocks && i < net->config.n_blocks; i++) {
        ry_net_block *b = &net->blocks[i];
        free_matrix(&b->qkv, &net->al);
        free_matrix(&b->proj, &net->al);
        free_matrix(&b->fc1, &net->al);
        free_matrix(&b->fc2, &net->al);
    }
    free_matrix(&net->patch_embed, &net->al);
    free_matrix(&net->head[0], &net->al);
    free_matrix(&net->head[1], &net->al);
    free_matrix(&net->feature, &net->al);
    free_matrix(&net->pool.kv, &net->al);
    free_matrix(&net->pool.proj, &net->al);
    free_matrix(&net->pool.fc1, &net->al);
    free_matrix(&net->pool.fc2, &net->al);
    for (uint32_t i = 0; i < net->n_taps; i++) free_matrix(&net->taps[i].proj, &net->al);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Bytes of the converted rows of any product in the blocks. */
static size_t low_bytes(const ry_net *net, size_t rows)
{
    const ry_net_block *b = net->blocks; /* all blocks have the same sizes */
    const ry_linear *const linears[] = {b->qkv.ahead, b->qkv.back, b->proj.ahead, b->proj.back,
                                        b->fc1.ahead, b->fc1.back, b->fc2.ahead,  b->fc2.back};
    size_t most = 0;
    for (int k = 0; k < 8; k++) most = max_size(most, ry_linear_input_bytes(linears[k], rows));
    return most;
}

static void lay_out_block(ry_arena *a, const ry_net *net, ry_net_block *b)
{
    const size_t rows = net->max_rows, C = net->config.dim;
    const int fresh = b == net->blocks || !net->checkpoint_activations;
    b->qkv_rows =
        fresh ? RY_TAKE(a, rows * ry_net_row(net, 3 * C), float) : net->blocks[0].qkv_rows;
    b->heads = fresh ? RY_TAKE(a, rows * ry_net_row(net, C), float) : net->blocks[0].heads;
    b->y = fresh ? RY_TAKE(a, rows * C, float) : net->blocks[0].y;
    b->u = fresh ? RY_TAKE(a, rows * ry_net_row(net, ry_net_mlp_in(net)), float) : net->blocks[0].u;
    b->cut.source = RY_TAKE(a, rows, uint32_t);
    b->cut.target = RY_TAKE(a, rows, uint32_t);
    b->cut.weight = RY_TAKE(a, rows, float);
    b->cut.score = RY_TAKE(a, rows, float);
}

static void lay_out_tokens(ry_arena *a, const ry_net *net, ry_net_tokens *t)
{
    const size_t rows = net->max_rows;
    t->x = RY_TAKE(a, rows * net->config.dim, float);
    t->sizes = RY_TAKE(a, rows, float);
    t->log_sizes = RY_TAKE(a, rows, float);
    t->patch = RY_TAKE(a, rows, uint32_t);
}

static void lay_out_gradients(ry_arena *a, ry_net *net)
{
    const size_t rows = net->max_rows, C = net->config.dim;
    const size_t h = ry_net_row(net, C);
    for (int i = 0; i < 2; i++) net->d[i] = RY_TAKE(a, rows * h, float);
    for (int i = 0; i < 2; i++) net->dheads[i] = RY_TAKE(a, rows * h, float);
    net->dh = RY_TAKE(a, rows * h, float);
    net->dscaled = RY_TAKE(a, rows * h, float);
    net->wide = RY_TAKE(a, rows * ry_net_row(net, max_size(3 * C, ry_net_mlp_in(net))), float);
    net->parts = RY_TAKE(a, ry_layernorm_grad_blocks(rows) * 2 * C, float);
    net->raw = RY_TAKE(a, ry_net_scaled_floats(net), float);
    net->folded = RY_TAKE(a, net->team.n_threads * ry_net_scaled_floats(net), float);
}

static void lay_out_pool(ry_arena *a, const ry_net *net, ry_net_pool *p)
{
    const ry_vit_config *c = &net->config;
    const size_t B = net->max_batch, C = c->dim, h = ry_net_row(net, C);
    const size_t u = ry_net_row(net, c->mlp_dim);
    p->query = RY_TAKE(a, C, float);
    p->kv_rows = RY_TAKE(a, net->max_rows * ry_net_row(net, 2 * C), float);
    p->attention = RY_TAKE(a, B * c->n_heads * net->n_tokens, float);
    p->heads = RY_TAKE(a, B * h, float);
    p->dheads = RY_TAKE(a, B * h, float);
    p->x = RY_TAKE(a, B * C, float);
    p->h = RY_TAKE(a, B * h, float);
    p->u = RY_TAKE(a, B * u, float);
    p->g = RY_TAKE(a, B * u, float);
    p->dquery = RY_TAKE(a, B * C, float);
}

static void lay_out_ends(ry_arena *a, ry_net *net)
{
    const ry_vit_config *c = &net->config;
    const size_t B = net->max_batch, P = net->n_patches, h = ry_net_row(net, c->dim);
    const size_t pooled = ry_net_pooled_row(net);
    const size_t feature_rows = ry_net_final_features(net) ? whole_tiles(B * P) : 0;
    const size_t tap_rows = net->n_taps ? net->max_rows : 0;
    net->patches = RY_TAKE(a, B * P * 3 * c->patch_size * c->patch_size, float);
    net->pooled_x = RY_TAKE(a, B * c->dim, float);
    for (int k = 0; k < 2; k++) {
        net->pooled[k] = RY_TAKE(a, B * pooled, float);
        net->dpooled[k] = RY_TAKE(a, B * pooled, float);
    }
    if (c->pre_norm) net->embedded = RY_TAKE(a, net->max_rows * c->dim, float);
    if (net->pool.probe) lay_out_pool(a, net, &net->pool);
    net->feature_in = RY_TAKE(a, feature_rows * h, float);
    net->features = RY_TAKE(a, feature_rows * net->feature_dim, float);
    net->dfeatures = RY_TAKE(a, max_size(feature_rows, tap_rows) * net->feature_dim, float);
    for (uint32_t i = 0; i < net->n_taps; i++) {
        if (!net->direct) net->taps[i].in = RY_TAKE(a, tap_rows * h, float);
        net->taps[i].rows = RY_TAKE(a, tap_rows * net->feature_dim, float);
        net->taps[i].token = RY_TAKE(a, B * net->n_tokens, uint32_t);
    }
    net->feature_patch = RY_TAKE(a, feature_rows, uint32_t);
    net->prefix_rows = RY_TAKE(a, c->n_prefix, uint32_t);
}

static void lay_out_cuts(ry_arena *a, ry_net *net)
{
    const size_t B = net->max_batch, N = net->n_tokens;
    const size_t sets = 2 * (size_t)net->config.n_heads; /* of the statistic that needs most */
    const size_t blocks = ry_attention_blocks(N, net->kernels.attention_rows);
    net->class_row = RY_TAKE(a, B * N, float);
    net->columns = RY_TAKE(a, B * N, float);
    net->column_parts = RY_TAKE(a, B * N * blocks * sets, double);
    uint8_t *rescued = RY_TAKE(a, B * N, uint8_t); /* not read: one for all blocks */
    for (uint32_t i = 0; i < net->config.n_blocks; i++) net->blocks[i].cut.rescued = rescued;
    net->dweight = RY_TAKE(a, B * N, float);
    net->dmean = RY_TAKE(a, max_size(B, net->team.n_threads) * N * N, float);
    net->image_keys = RY_TAKE(a, B, uint64_t);
}

/* Each thread has space for the kernel that needs most and, after it, for the queries and keys of
 * one head and a row. */
static void lay_out_scratch(ry_arena *a, ry_net *net)
{
    const size_t N = net->n_tokens, d = net->config.dim / net->config.n_heads;
    size_t most = ry_attention_scratch(N, d, net->kernels.attention_rows);
    most = max_size(most, ry_attention_grad_scratch(N, d));
    most = max_size(most, ry_outer_scratch());
    net->matrix_scratch = (most + 15) / 16 * 16; /* whole cache lines */
    net->scratch_each = (net->matrix_scratch + max_size(3 * N * d, net->config.dim) + 15) / 16 * 16;
    net->scratch = RY_TAKE(a, net->team.n_threads * net->scratch_each, float);
    net->team.tickets = RY_TAKE(a, net->team.n_tickets, ry_ticket);
}

/* The order and the sizes of all buffers. */
static void lay_out(ry_arena *a, ry_net *net)
{
    const uint32_t L = net->config.n_blocks;
    const size_t rows = net->max_rows;
    for (uint32_t i = 0; i < L; i++) lay_out_block(a, net, &net->blocks[i]);
    for (uint32_t i = 0; i <= L; i++) lay_out_tokens(a, net, &net->tokens[i]);
    net->pre = RY_TAKE(a, rows * net->config.dim, float);
    net->h = RY_TAKE(a, rows * ry_net_row(net, net->config.dim), float);
    net->g = RY_TAKE(a, rows * ry_net_row(net, net->config.mlp_dim), float);
    net->team.low = RY_TAKE(a, low_bytes(net, rows), uint8_t);
    lay_out_gradients(a, net);
    lay_out_ends(a, net);
    lay_out_cuts(a, net);
    lay_out_scratch(a, net);
}

renyi_status ry_net_make_arena(ry_net *net, renyi_error *err)
{
    ry_arena measure = {0};
    net->team.n_tickets = STEPS_PER_BLOCK * (size_t)net->config.n_blocks + STEPS_OF_ENDS;
    lay_out(&measure, net);
    if (measure.overflow)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "the activations of %u images do not fit in memory; a smaller micro-batch "
                       "needs less",
                       net->max_batch);
    net->arena_bytes = measure.used;
    net->arena = ry_alloc(&net->al, measure.used, 1);
    if (!net->arena) return ry_fail_nomem(err, measure.used);
    ry_arena bind = {net->arena, 0, measure.used, 0};
    lay_out(&bind, net);
    for (uint32_t i = 0; i < net->config.n_prefix; i++) net->prefix_rows[i] = i;
    return RENYI_OK;
}
