/* causal_template.h - attention of texts for any vector width.
 *
 * VL queries are computed together, one per lane, and row j of the probabilities holds token j for
 * all of them, as in attention_template.h. A lane that must not see token j has probability 0
 * there. Adding it changes no bit, so a row has the same bits in every lane and beside any other
 * rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/causal.h"
#include "kernels/kernels.h"
#include "kernels/micro.h"
#include "kernels/simd.h"

#include <math.h>

enum {
    CAUSAL_KEYS = 8, /* keys whose logits are computed together, one vector of sums each */
    CAUSAL_ROWS = 4  /* queries whose outputs are computed together, two vectors of sums each */
};

typedef struct causal_view {
    const ry_causal *at;
    size_t h;
    size_t first, rows; /* queries of this block: the first, and how many */
    size_t keys;        /* tokens that the last query sees */
    float *q;           /* [d, VL] queries, scaled and transposed */
    float *p;           /* [keys, VL] logits, then exponentials */
    float *inverse;     /* [VL] 1 / sum of the exponentials */
} causal_view;

/* Row j of this head's queries (part 0), keys (1) or values (2). */
RY_INLINE const float *causal_part(const causal_view *b, size_t part, size_t j)
{
    const ry_causal *at = b->at;
    return at->qkv + at->rows[j] * at->qkv_row + (part * at->n_heads + b->h) * at->head;
}

/* Unused lanes repeat the last query. */
static void causal_pack(const causal_view *b)
{
    const float *rows[VL];
    for (size_t i = 0; i < VL; i++)
        rows[i] = causal_part(b, 0, b->first + (i < b->rows ? i : b->rows - 1));
    ry_micro_pack(b->q, VL, rows, b->at->head, 1.0f / sqrtf((float)b->at->head));
}

/* p[j .. j+n, :] = k_j . q */
RY_INLINE void causal_logits_of(const int n, const causal_view *b, size_t j)
{
    const float *k[CAUSAL_KEYS];
    vf acc[CAUSAL_KEYS];
    RY_UNROLL
    for (int i = 0; i < n; i++) {
        k[i] = causal_part(b, 1, j + (size_t)i);
        acc[i] = vf_zero();
    }
    for (size_t c = 0; c < b->at->head; c++) {
        const vf q = vf_load(b->q + c * VL);
        RY_UNROLL
        for (int i = 0; i < n; i++) acc[i] = vf_fma(vf_bcast(k[i] + c), q, acc[i]);
    }
    RY_UNROLL
    for (int i = 0; i < n; i++) vf_store(b->p + (j + (size_t)i) * VL, acc[i]);
}

static void causal_logits(const causal_view *b)
{
    size_t j = 0;
    for (; j + CAUSAL_KEYS <= b->keys; j += CAUSAL_KEYS) causal_logits_of(CAUSAL_KEYS, b, j);
    if (j == b->keys) return;
    if (b->keys >= CAUSAL_KEYS) /* computes some keys again, with the same bits */
        causal_logits_of(CAUSAL_KEYS, b, b->keys - CAUSAL_KEYS);
    else
        for (; j < b->keys; j++) causal_logits_of(1, b, j);
}

/* p = value where a query must not see a token: query first + i, token j > first + i. */
static void causal_mask(const causal_view *b, float value)
{
    if (b->at->sees_all) return;
    for (size_t j = b->first + 1; j < b->keys; j++)
        for (size_t i = 0; b->first + i < j; i++) b->p[j * VL + i] = value;
}

/* p = exp(p - max over the tokens seen); inverse = 1 / sum over them */
static void causal_exponentials(const causal_view *b)
{
    causal_mask(b, -INFINITY);
    vf top = vf_load(b->p), sum = vf_zero();
    for (size_t j = 1; j < b->keys; j++) top = vf_max(top, vf_load(b->p + j * VL));
    for (size_t j = 0; j < b->keys; j++)
        vf_store(b->p + j * VL, vf_exp(vf_sub(vf_load(b->p + j * VL), top)));
    causal_mask(b, 0.0f);
    for (size_t j = 0; j < b->keys; j++) sum = vf_add(sum, vf_load(b->p + j * VL));
    vf_store(b->inverse, vf_div(vf_set1(1.0f), sum));
}

/* out[i .. i+n, c .. c + nv*VL] = p[:, i]^T v / sum; the last vector has `last` lanes */
RY_INLINE void causal_values_of(const int n, const int nv, const size_t last, const causal_view *b,
                                size_t i, size_t c)
{
    const ry_causal *at = b->at;
    vf acc[CAUSAL_ROWS][2];
    RY_UNROLL
    for (int r = 0; r < n; r++) acc[r][0] = acc[r][1] = vf_zero();
    for (size_t j = 0; j < b->keys; j++) {
        const float *from = causal_part(b, 2, j) + c, *p = b->p + j * VL + i;
        vf v[2];
        RY_UNROLL
        for (int k = 0; k < nv; k++) v[k] = vf_load_upto(from + k * VL, k == nv - 1 ? last : VL);
        RY_UNROLL
        for (int r = 0; r < n; r++) RY_UNROLL
        for (int k = 0; k < nv; k++) acc[r][k] = vf_fma(vf_bcast(p + r), v[k], acc[r][k]);
    }
    float *out = at->out + (b->first - at->first + i) * at->out_row + b->h * at->head + c;
    RY_UNROLL
    for (int r = 0; r < n; r++) RY_UNROLL
    for (int k = 0; k < nv; k++)
        vf_store_upto(out + (size_t)r * at->out_row + k * VL,
                      vf_mul(acc[r][k], vf_bcast(b->inverse + i + r)), k == nv - 1 ? last : VL);
}

/* n rows over all columns of the head: pairs of vectors, then the rest. */
RY_INLINE void causal_values(const int n, const causal_view *b, size_t i)
{
    const size_t d = b->at->head;
    size_t c = 0;
    for (; c + 2 * VL <= d; c += 2 * VL) causal_values_of(n, 2, VL, b, i, c);
    for (; c < d; c += VL) causal_values_of(n, 1, d - c < VL ? d - c : VL, b, i, c);
}

static void causal_block(const causal_view *b)
{
    size_t i = 0;
    causal_pack(b);
    causal_logits(b);
    causal_exponentials(b);
    for (; i + CAUSAL_ROWS <= b->rows; i += CAUSAL_ROWS) causal_values(CAUSAL_ROWS, b, i);
    for (; i < b->rows; i++) causal_values(1, b, i);
}

static RY_DECL_CAUSAL(causal_text)
{
    causal_view b = {.at = at, .q = scratch};
    b.p = b.q + at->head * VL;
    b.inverse = b.p + at->n_tokens * VL;
    for (b.first = at->first; b.first < at->end; b.first += VL) {
        b.rows = at->end - b.first < VL ? at->end - b.first : VL;
        b.keys = at->sees_all ? at->n_tokens : b.first + b.rows;
        for (b.h = 0; b.h < at->n_heads; b.h++) causal_block(&b);
    }
}
