/* pool_head.c - loads the attention-pooling head and folds its query into the matrix of the keys.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/pool_head.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>

/* The matrices of query, keys and values, in the loader's scratch. */
typedef struct matrices {
    const float *q, *k, *v; /* [C, C] */
    const float *q_bias;    /* [C]; a bias of the keys changes no softmax */
    const float *v_bias;    /* [C] */
} matrices;

/* The file has one matrix, or one of the query and one of keys and values. */
static renyi_status read_matrices(matrices *out, ry_loader *ld, size_t C)
{
    static const ry_tensor_role one[] = {RY_POOL_QKV_W, RY_POOL_QKV_B};
    static const ry_tensor_role two[] = {RY_POOL_Q_W, RY_POOL_Q_B, RY_POOL_KV_W, RY_POOL_KV_B};
    float *w = ld->scratch, *b = w + 3 * C * C;
    const int whole = ry_loader_find(ld, RY_POOL_QKV_W, 0) != NULL;
    const ry_tensor_role *roles = whole ? one : two;
    for (size_t i = 0; i < (whole ? 2 : 4); i += 2) {
        RY_TRY(ry_loader_read(ld, ry_loader_find(ld, roles[i], 0), i ? w + C * C : w));
        RY_TRY(ry_loader_read(ld, ry_loader_find(ld, roles[i + 1], 0), i ? b + C : b));
    }
    *out = (matrices){w, w + C * C, w + 2 * C * C, b, b + 2 * C};
    return RENYI_OK;
}

/* keys [H, C]: row h is K_h^T q_h / sqrt(d) with q = Q probe + bias. In double, because every logit
 * depends on it. */
static void fold_query(float *keys, double *sums, const matrices *m, const float *probe, size_t C,
                       size_t H)
{
    const size_t d = C / H;
    for (size_t h = 0; h < H; h++) {
        for (size_t c = 0; c < C; c++) sums[c] = 0.0;
        for (size_t i = h * d; i < (h + 1) * d; i++) {
            double q = (double)m->q_bias[i];
            for (size_t c = 0; c < C; c++) q += (double)m->q[i * C + c] * (double)probe[c];
            for (size_t c = 0; c < C; c++) sums[c] += q * (double)m->k[i * C + c];
        }
        for (size_t c = 0; c < C; c++) keys[h * C + c] = (float)(sums[c] / sqrt((double)d));
    }
}

/* keys, values and values_bias. memory: [H C + C] floats and [C] doubles */
static renyi_status load_attention(ry_pool_head *p, ry_loader *ld, const ry_vit_config *c,
                                   float *memory, double *sums)
{
    const size_t C = c->dim, H = c->n_heads;
    float *keys = memory, *probe = memory + H * C;
    matrices m;
    RY_TRY(ry_loader_read(ld, ry_loader_find(ld, RY_POOL_PROBE, 0), probe));
    RY_TRY(read_matrices(&m, ld, C));
    fold_query(keys, sums, &m, probe, C, H);
    for (size_t i = 0; i < C; i++) {
        p->values_bias[i] = m.v_bias[i];
        for (size_t k = 0; k < C; k++) p->values[k * C + i] = m.v[i * C + k];
    }
    const ry_linear_spec spec = {.w = keys, .n_out = H, .n_in = C, .epilogue = RY_EPI_NONE};
    return ry_linear_new(&p->keys, &spec, ld->level, ld->al, ld->err);
}

static renyi_status take_attention(ry_pool_head *p, ry_loader *ld, const ry_vit_config *c)
{
    const size_t C = c->dim, n = (size_t)c->n_heads * C + C;
    p->values = ry_alloc(ld->al, C * C, sizeof *p->values);
    p->values_bias = ry_alloc(ld->al, C, sizeof *p->values_bias);
    float *memory = ry_alloc(ld->al, n, sizeof *memory);
    double *sums = ry_alloc(ld->al, C, sizeof *sums);
    const renyi_status st = p->values && p->values_bias && memory && sums
                                ? load_attention(p, ld, c, memory, sums)
                                : ry_fail_nomem(ld->err, (C * C + n) * sizeof *memory);
    ry_free(ld->al, memory);
    ry_free(ld->al, sums);
    return st;
}

renyi_status ry_pool_head_load(ry_pool_head *out, ry_loader *ld, const ry_vit_config *c)
{
    ry_linear_source proj = {.w = {RY_POOL_PROJ_W},
                             .b = {RY_POOL_PROJ_B},
                             .parts = 1,
                             .n_out = c->dim,
                             .n_in = c->dim,
                             .epilogue = RY_EPI_NONE,
                             .dtype = RENYI_DTYPE_F32}; /* like all ends of a model */
    ry_linear_source fc1 = proj, fc2 = proj;
    fc1.w[0] = RY_POOL_FC1_W, fc1.b[0] = RY_POOL_FC1_B;
    fc1.n_out = c->mlp_dim, fc1.epilogue = c->activation;
    fc2.w[0] = RY_POOL_FC2_W, fc2.b[0] = RY_POOL_FC2_B;
    fc2.n_in = c->mlp_dim, fc2.epilogue = RY_EPI_RESIDUAL;
    RY_TRY(take_attention(out, ld, c));
    RY_TRY(ry_loader_linear(ld, &proj, &out->proj));
    RY_TRY(ry_loader_vector(ld, RY_POOL_NORM_W, 0, &out->norm_w));
    RY_TRY(ry_loader_vector(ld, RY_POOL_NORM_B, 0, &out->norm_b));
    RY_TRY(ry_loader_linear(ld, &fc1, &out->fc1));
    return ry_loader_linear(ld, &fc2, &out->fc2);
}

void ry_pool_head_free(ry_pool_head *p, const renyi_allocator *al)
{
    float *const vectors[] = {p->values, p->values_bias, p->norm_w, p->norm_b};
    ry_linear *const linears[] = {p->keys, p->proj, p->fc1, p->fc2};
    for (int k = 0; k < 4; k++) {
        ry_free(al, vectors[k]);
        ry_linear_free(linears[k], al);
    }
    *p = (ry_pool_head){0};
}
