/* attention_grad_template.h - the backward pass of attention for any vector width.
 *
 * Keys and values of a head are packed once. Queries are computed in blocks of up to QUERIES, and
 * a block in groups of LANES, one query per lane. Row j of the probabilities of a group holds key
 * j for all of them, so the softmax and its derivative need no sum across lanes. A group computes
 * its dq. dk and dv are updated once per block, so that loading and storing a register tile is
 * spread over many queries.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.h"
#include "kernels/grad/grad.h"
#include "kernels/micro.h"
#include "kernels/simd.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 2 * VL,
    QUERIES = 64 /* of a block: probabilities and their gradients stay in the second-level cache */
};

typedef struct head_view {
    const ry_attention_grad *g;
    size_t h;
    size_t keys;          /* N rounded up to whole register tiles */
    size_t row;           /* floats from one packed row to the next */
    float *k, *v;         /* [keys, row] rows of this head; zeros from N on */
    float *dk, *dv;       /* [keys, row] */
    float *q, *dout;      /* [QUERIES, row] rows of this block, q times the scale of the logits */
    float *qt, *doutt;    /* [d, LANES] rows of one group, transposed */
    float *p, *ds;        /* [groups][keys, LANES] probabilities, gradients of the logits */
    size_t first, n_rows; /* queries of the block */
} head_view;

/* A multiple of the vector width, and an odd number of cache lines, so that a column is spread over
 * all sets of the cache. */
static size_t packed_row(size_t d) { return (((d + RY_LINE - 1) / RY_LINE) | 1) * RY_LINE; }

static head_view make_view(const ry_attention_grad *g, size_t h, float *scratch)
{
    head_view w = {.g = g, .h = h, .row = packed_row(g->head)};
    w.keys = (g->n_tokens + RY_MR - 1) / RY_MR * RY_MR;
    float **const parts[] = {&w.k, &w.v, &w.dk, &w.dv};
    for (int i = 0; i < 4; i++) *parts[i] = scratch, scratch += w.keys * w.row;
    w.p = scratch, scratch += w.keys * QUERIES;
    w.ds = scratch, scratch += w.keys * QUERIES;
    w.q = scratch, scratch += QUERIES * w.row;
    w.dout = scratch, scratch += QUERIES * w.row;
    w.qt = scratch, scratch += g->head * LANES;
    w.doutt = scratch;
    return w;
}

/* to[n, row] = from[n, d] * scale, the rest of each row zeros */
static void pack_rows(const head_view *w, float *to, const float *from, size_t from_row, size_t n,
                      float scale)
{
    const vf factor = vf_set1(scale);
    const size_t d = w->g->head;
    for (size_t i = 0; i < n; i++, to += w->row, from += from_row)
        for (size_t c = 0; c < w->row; c += VL)
            vf_store(to + c, c < d ? vf_mul(vf_load_upto(from + c, d - c), factor) : vf_zero());
}

/* q, k or v (part 0, 1, 2) of this head and a token */
static const float *qkv_at(const head_view *w, size_t token, size_t part)
{
    const ry_attention_grad *g = w->g;
    return g->qkv + token * g->qkv_row + (part * g->n_heads + w->h) * g->head;
}

static void pack_part(const head_view *w, float *to, size_t part)
{
    const size_t N = w->g->n_tokens;
    pack_rows(w, to, qkv_at(w, 0, part), w->g->qkv_row, N, 1.0f);
    memset(to + N * w->row, 0, (w->keys - N) * w->row * sizeof(float));
}

/* to[c, lane] = column c of row first + lane, times scale; unused lanes repeat the last row */
static void pack_lanes(const head_view *w, float *to, const float *from, size_t from_row,
                       size_t first, float scale)
{
    const float *rows[LANES];
    for (size_t i = 0; i < LANES; i++)
        rows[i] = from + (first + i < w->n_rows ? first + i : w->n_rows - 1) * from_row;
    ry_micro_pack(to, LANES, rows, w->g->head, scale);
}

/* to[keys, LANES] = or += rows[keys, d] t[d, LANES] */
RY_INLINE void rows_times_lanes(const int nv, const head_view *w, float *to, const float *rows,
                                const float *t, int add)
{
    for (size_t j = 0; j < w->keys; j += RY_MR, to += RY_MR * LANES) {
        const ry_operands op = {rows + j * w->row, w->row, 1, t, LANES, w->g->head};
        vf acc[RY_MR][2];
        RY_UNROLL
        for (int i = 0; i < RY_MR; i++) RY_UNROLL
        for (int v = 0; v < nv; v++) acc[i][v] = add ? vf_load(to + i * LANES + v * VL) : vf_zero();
        ry_micro_sum(RY_MR, nv, &op, VL, acc);
        RY_UNROLL
        for (int i = 0; i < RY_MR; i++) RY_UNROLL
        for (int v = 0; v < nv; v++) vf_store(to + i * LANES + v * VL, acc[i][v]);
    }
}

/* p = exp(p + bias - largest), inverse = 1 / sum; 0 for keys from N on */
RY_INLINE void exponentials(const int nv, const head_view *w, float *p, vf inverse[2])
{
    const size_t N = w->g->n_tokens;
    const float *bias = w->g->key_bias;
    vf top[2], sum[2];
    RY_UNROLL
    for (int v = 0; v < nv; v++) top[v] = vf_set1(-INFINITY), sum[v] = vf_zero();
    for (size_t j = 0; j < N; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) {
        float *at = p + j * LANES + v * VL;
        if (bias) vf_store(at, vf_add(vf_load(at), vf_bcast(bias + j)));
        top[v] = vf_max(top[v], vf_load(at));
    }
    for (size_t j = 0; j < N; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) {
        float *at = p + j * LANES + v * VL;
        const vf e = vf_exp(vf_sub(vf_load(at), top[v]));
        sum[v] = vf_add(sum[v], e);
        vf_store(at, e);
    }
    memset(p + N * LANES, 0, (w->keys - N) * LANES * sizeof(float));
    RY_UNROLL
    for (int v = 0; v < nv; v++) inverse[v] = vf_div(vf_set1(1.0f), sum[v]);
}

/* p [keys, LANES] = probabilities of the group whose first query of the block is `lane` */
RY_INLINE void probabilities(const int nv, const head_view *w, size_t lane, float *p)
{
    vf inverse[2];
    pack_lanes(w, w->qt, qkv_at(w, w->first, 0), w->g->qkv_row, lane,
               ry_logit_scale(w->g->head, w->g->logit_factor));
    rows_times_lanes(nv, w, p, w->k, w->qt, 0);
    exponentials(nv, w, p, inverse);
    for (size_t j = 0; j < w->g->n_tokens; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) {
        float *at = p + j * LANES + v * VL;
        vf_store(at, vf_mul(vf_load(at), inverse[v]));
    }
}

/* ds [keys, LANES] = direct gradient of the probabilities (dclass_row, dmean). Returns 0 if there
 * is none; ds is then not written. */
static int direct_gradient(const head_view *w, size_t lane, float *ds)
{
    const ry_attention_grad *g = w->g;
    const size_t N = g->n_tokens;
    const float share = 1.0f / (float)g->n_heads;
    const int with_class = g->dclass_row && w->first + lane == 0;
    const float *rows[LANES];
    if (!with_class && !g->dmean) return 0;
    memset(ds, 0, w->keys * LANES * sizeof(float));
    for (size_t i = 0; g->dmean && i < LANES; i++)
        rows[i] = g->dmean + (w->first + (lane + i < w->n_rows ? lane + i : w->n_rows - 1)) * N;
    if (g->dmean) ry_micro_pack(ds, LANES, rows, N, share);
    for (size_t j = 0; with_class && j < N; j++) ds[j * LANES] += share * g->dclass_row[j];
    return 1;
}

/* ds [keys, LANES] = p (dp - sum over keys of p dp), dp = v dout^T + direct gradient */
RY_INLINE void logit_gradients(const int nv, const head_view *w, size_t lane, const float *p,
                               float *ds)
{
    const ry_attention_grad *g = w->g;
    vf sum[2];
    pack_lanes(w, w->doutt, g->dout + w->first * g->dout_row + w->h * g->head, g->dout_row, lane,
               1.0f);
    rows_times_lanes(nv, w, ds, w->v, w->doutt, direct_gradient(w, lane, ds));
    sum[0] = sum[1] = vf_zero();
    for (size_t j = 0; j < w->keys; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) {
        const size_t at = j * LANES + v * VL;
        sum[v] = vf_fma(vf_load(p + at), vf_load(ds + at), sum[v]);
    }
    for (size_t j = 0; j < w->keys; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) {
        const size_t at = j * LANES + v * VL;
        vf_store(ds + at, vf_mul(vf_load(p + at), vf_sub(vf_load(ds + at), sum[v])));
    }
}

/* dq[lane .. lane+mr, c .. ] = ds^T k times the scale of the logits; ds at lane, dq at its row */
RY_INLINE void dq_tile(const int mr, const int nv, const head_view *w, const float *ds, float *dq,
                       size_t c, size_t rows)
{
    const ry_operands op = {ds, 1, LANES, w->k + c, w->row, w->g->n_tokens};
    const vf scale = vf_set1(ry_logit_scale(w->g->head, w->g->logit_factor));
    const size_t d = w->g->head;
    vf acc[RY_MR][2];
    RY_UNROLL
    for (int i = 0; i < mr; i++) acc[i][0] = acc[i][1] = vf_zero();
    ry_micro_sum(mr, nv, &op, VL, acc);
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        if ((size_t)i >= rows) continue;
        RY_UNROLL
        for (int v = 0; v < nv; v++) {
            const size_t at = c + (size_t)v * VL;
            vf_store_upto(dq + (size_t)i * w->g->dqkv_row + at, vf_mul(acc[i][v], scale), d - at);
        }
    }
}

/* dq of the group: register tiles of RY_MR, then of 4 queries; unused lanes are not stored */
static void dq_of_group(const head_view *w, size_t lane, const float *ds)
{
    const ry_attention_grad *g = w->g;
    const size_t d = g->head, rows = w->n_rows - lane < LANES ? w->n_rows - lane : LANES;
    float *dq = g->dqkv + (w->first + lane) * g->dqkv_row + w->h * d;
    for (size_t c = 0; c < d; c += 2 * VL) {
        const int pair = d - c > VL;
        for (size_t i = 0; i < rows;) {
            const size_t mr = LANES - i >= RY_MR && rows - i > 4 ? RY_MR : 4;
            float *to = dq + i * g->dqkv_row;
            if (mr == RY_MR && pair) dq_tile(RY_MR, 2, w, ds + i, to, c, rows - i);
            if (mr == RY_MR && !pair) dq_tile(RY_MR, 1, w, ds + i, to, c, rows - i);
            if (mr != RY_MR && pair) dq_tile(4, 2, w, ds + i, to, c, rows - i);
            if (mr != RY_MR && !pair) dq_tile(4, 1, w, ds + i, to, c, rows - i);
            i += mr;
        }
    }
}

/* to[j .. j+RY_MR, c .. ] += sum over the block's queries of a[., j] b[., c]; a: groups [keys,
 * LANES] */
RY_INLINE void add_tile(const int nv, const head_view *w, float *to, const float *a, const float *b,
                        size_t j, size_t c)
{
    vf acc[RY_MR][2];
    to += j * w->row + c;
    RY_UNROLL
    for (int i = 0; i < RY_MR; i++) RY_UNROLL
    for (int v = 0; v < nv; v++) acc[i][v] = vf_load(to + i * w->row + v * VL);
    for (size_t lane = 0; lane < w->n_rows; lane += LANES) {
        const size_t depth = w->n_rows - lane < LANES ? w->n_rows - lane : LANES;
        const ry_operands op = {a + lane * w->keys + j * LANES, LANES,  1,
                                b + lane * w->row + c,          w->row, depth};
        ry_micro_sum(RY_MR, nv, &op, VL, acc);
    }
    RY_UNROLL
    for (int i = 0; i < RY_MR; i++) RY_UNROLL
    for (int v = 0; v < nv; v++) vf_store(to + i * w->row + v * VL, acc[i][v]);
}

static void add_block(const head_view *w, float *to, const float *a, const float *b)
{
    const size_t d = w->g->head;
    for (size_t j = 0; j < w->keys; j += RY_MR) {
        size_t c = 0;
        for (; c + VL < d; c += 2 * VL) add_tile(2, w, to, a, b, j, c);
        if (c < d) add_tile(1, w, to, a, b, j, c);
    }
}

RY_INLINE void query_group(const int nv, const head_view *w, size_t lane)
{
    float *p = w->p + lane * w->keys, *ds = w->ds + lane * w->keys;
    probabilities(nv, w, lane, p);
    logit_gradients(nv, w, lane, p, ds);
    dq_of_group(w, lane, ds);
}

static void query_block(const head_view *w)
{
    const ry_attention_grad *g = w->g;
    for (size_t lane = 0; lane < w->n_rows; lane += LANES) {
        if (w->n_rows - lane > VL)
            query_group(2, w, lane);
        else
            query_group(1, w, lane);
    }
    pack_rows(w, w->q, qkv_at(w, w->first, 0), g->qkv_row, w->n_rows,
              ry_logit_scale(g->head, g->logit_factor));
    pack_rows(w, w->dout, g->dout + w->first * g->dout_row + w->h * g->head, g->dout_row, w->n_rows,
              1.0f);
    add_block(w, w->dv, w->p, w->dout);
    add_block(w, w->dk, w->ds, w->q);
}

/* Sets the queries of a block; 0 after the last. Vectors of queries are divided evenly among
 * blocks, so that the last block is not tiny. */
static int next_block(head_view *w, size_t block)
{
    const size_t rows = w->g->n_rows, vectors = (rows + VL - 1) / VL;
    const size_t blocks = (vectors + QUERIES / VL - 1) / (QUERIES / VL);
    if (block >= blocks) return 0;
    const size_t end = (block + 1) * vectors / blocks * VL;
    w->first = block * vectors / blocks * VL;
    w->n_rows = (end < rows ? end : rows) - w->first;
    return 1;
}

/* Writes dq, dk or dv (part 0, 1, 2) of rows from `first` on: from[n, row], or zeros. */
static void write_part(const head_view *w, size_t part, size_t first, const float *from)
{
    const ry_attention_grad *g = w->g;
    for (size_t i = first; i < g->n_tokens; i++) {
        float *to = g->dqkv + i * g->dqkv_row + (part * g->n_heads + w->h) * g->head;
        if (from)
            memcpy(to, from + i * w->row, g->head * sizeof(float));
        else
            memset(to, 0, g->head * sizeof(float));
    }
}

static RY_DECL_ATTENTION_GRAD(attention_grad)
{
    head_view w = make_view(g, h, scratch);
    pack_part(&w, w.k, 1);
    pack_part(&w, w.v, 2);
    memset(w.dk, 0, 2 * w.keys * w.row * sizeof(float));
    for (size_t block = 0; next_block(&w, block); block++) query_block(&w);
    write_part(&w, 0, g->n_rows, NULL);
    write_part(&w, 1, 0, w.dk);
    write_part(&w, 2, 0, w.dv);
}

/* mean[lane .. , :] = (head 0) or += p^T / H for the queries of the group */
static void add_to_mean(const head_view *w, size_t lane, const float *p, float *mean)
{
    const size_t N = w->g->n_tokens, rows = w->n_rows - lane < LANES ? w->n_rows - lane : LANES;
    const vf share = vf_set1(1.0f / (float)w->g->n_heads);
    mean += (w->first + lane) * N;
    for (size_t j = 0; j < N; j += VL)
        for (size_t l = 0; l < rows; l += VL) {
            vf r[VL];
            RY_UNROLL
            for (int i = 0; i < VL; i++)
                r[i] = vf_load(p + (j + (size_t)i < N ? j + (size_t)i : N - 1) * LANES + l);
            vf_transpose(r);
            RY_UNROLL
            for (int i = 0; i < VL; i++) {
                float *to = mean + (l + (size_t)i) * N + j;
                if (l + (size_t)i >= rows) continue;
                const vf old = w->h ? vf_load_upto(to, N - j) : vf_zero();
                vf_store_upto(to, vf_fma(r[i], share, old), N - j);
            }
        }
}

static RY_DECL_ATTENTION_MEAN(attention_mean)
{
    for (size_t h = 0; h < g->n_heads; h++) {
        head_view w = make_view(g, h, scratch);
        pack_part(&w, w.k, 1);
        for (size_t block = 0; next_block(&w, block); block++)
            for (size_t lane = 0; lane < w.n_rows; lane += LANES) {
                probabilities(2, &w, lane, w.p);
                add_to_mean(&w, lane, w.p, mean);
            }
    }
}
