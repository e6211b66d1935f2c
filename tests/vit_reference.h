/* vit_reference.h - the forward pass of a small dense ViT in doubles, from the tensors of a fixture
 * and by the equations alone. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_VIT_REFERENCE_H
#define RENYI_TESTS_VIT_REFERENCE_H

#include "model/vit.h"
#include "vit_fixture.h"

#include <math.h>

enum { REF_TOKENS = 32, REF_WIDEST = 3 * FIX_DIM > FIX_MLP ? 3 * FIX_DIM : FIX_MLP };

typedef double ref_rows[REF_TOKENS][FIX_DIM];

typedef struct reference {
    fixture *f;
    const ry_vit_config *c;
    const char *norm; /* "norm" or "fc_norm" */
} reference;

static inline const float *ref_data(const reference *r, const char *name, const char *kind)
{
    char text[96];
    snprintf(text, sizeof text, "%s.%s", name, kind);
    return fix_find(r->f, text)->data;
}

/* y [n_out] = W x + b */
static inline void ref_linear(const reference *r, const char *name, double *y, size_t n_out,
                              const double *x, size_t n_in)
{
    const float *w = ref_data(r, name, "weight"), *b = ref_data(r, name, "bias");
    for (size_t o = 0; o < n_out; o++) {
        y[o] = b[o];
        for (size_t i = 0; i < n_in; i++) y[o] += w[o * n_in + i] * x[i];
    }
}

static inline void ref_norm(const reference *r, const char *name, double *y, const double *x)
{
    const float *w = ref_data(r, name, "weight"), *b = ref_data(r, name, "bias");
    double mean = 0.0, variance = 0.0;
    for (int k = 0; k < FIX_DIM; k++) mean += x[k] / FIX_DIM;
    for (int k = 0; k < FIX_DIM; k++) variance += (x[k] - mean) * (x[k] - mean) / FIX_DIM;
    for (int k = 0; k < FIX_DIM; k++)
        y[k] = (x[k] - mean) / sqrt(variance + r->c->norm_eps) * w[k] + b[k];
}

/* chw: [3, S, S] */
static inline void ref_embed(const reference *r, ref_rows x, const float *chw)
{
    const uint32_t p = r->c->patch_size, S = r->c->image_size, side = S / p, K = r->c->n_prefix;
    const float *pos = fix_find(r->f, "pos_embed")->data;
    double patch[3 * 16 * 16];
    assert_true(K + side * side <= REF_TOKENS && p <= 16);
    for (uint32_t j = 0; j < side * side; j++) {
        size_t n = 0;
        for (uint32_t ch = 0; ch < 3; ch++)
            for (uint32_t i = 0; i < p * p; i++)
                patch[n++] =
                    chw[((size_t)ch * S + j / side * p + i / p) * S + j % side * p + i % p];
        ref_linear(r, "patch_embed.proj", x[K + j], FIX_DIM, patch, n);
    }
    if (K) {
        const float *token = fix_find(r->f, "cls_token")->data;
        for (int k = 0; k < FIX_DIM; k++) x[0][k] = token[k];
    }
    for (uint32_t j = 0; j < (K + side * side) * FIX_DIM; j++)
        x[j / FIX_DIM][j % FIX_DIM] += pos[j];
}

/* out [D] of token i in head h */
static inline void ref_attend(double *out, double qkv[][3 * FIX_DIM], uint32_t n, uint32_t i,
                              uint32_t h)
{
    enum { D = FIX_DIM / FIX_HEADS };
    double a[REF_TOKENS], sum = 0.0;
    for (uint32_t j = 0; j < n; j++) {
        double dot = 0.0;
        for (uint32_t k = h * D; k < (h + 1) * D; k++) dot += qkv[i][k] * qkv[j][FIX_DIM + k];
        sum += a[j] = exp(dot / sqrt(D));
    }
    for (uint32_t k = 0; k < D; k++) {
        out[k] = 0.0;
        for (uint32_t j = 0; j < n; j++) out[k] += a[j] / sum * qkv[j][2 * FIX_DIM + h * D + k];
    }
}

static inline void ref_block(const reference *r, uint32_t block, ref_rows x, uint32_t n)
{
    static double qkv[REF_TOKENS][3 * FIX_DIM];
    char names[6][64];
    static const char *const parts[] = {"norm1", "attn.qkv", "attn.proj",
                                        "norm2", "mlp.fc1",  "mlp.fc2"};
    double h[FIX_DIM], y[REF_WIDEST];
    for (int k = 0; k < 6; k++) snprintf(names[k], 64, "blocks.%u.%s", block, parts[k]);
    for (uint32_t i = 0; i < n; i++) {
        ref_norm(r, names[0], h, x[i]);
        ref_linear(r, names[1], qkv[i], 3 * FIX_DIM, h, FIX_DIM);
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < FIX_HEADS; k++)
            ref_attend(h + k * (FIX_DIM / FIX_HEADS), qkv, n, i, k);
        ref_linear(r, names[2], y, FIX_DIM, h, FIX_DIM);
        for (int k = 0; k < FIX_DIM; k++) x[i][k] += y[k];
        ref_norm(r, names[3], h, x[i]);
        ref_linear(r, names[4], y, FIX_MLP, h, FIX_DIM);
        for (int k = 0; k < FIX_MLP; k++) y[k] *= 0.5 * (1.0 + erf(y[k] / sqrt(2.0)));
        ref_linear(r, names[5], h, FIX_DIM, y, FIX_MLP);
        for (int k = 0; k < FIX_DIM; k++) x[i][k] += h[k];
    }
}

/* logits [classes] from the rows after the last block; sizes [n] or NULL. */
static inline void ref_head(const reference *r, ref_rows x, uint32_t n, const float *sizes,
                            double *logits)
{
    const int by_token = r->c->pool == RY_POOL_TOKEN, first = r->c->pool == RY_POOL_NORM_MEAN;
    double pooled[FIX_DIM] = {0}, h[FIX_DIM], sum = 0.0;
    for (uint32_t i = by_token ? 0 : r->c->n_prefix; i < (by_token ? 1 : n); i++) {
        const double size = sizes && !by_token ? sizes[i] : 1.0;
        memcpy(h, x[i], sizeof h);
        if (first) ref_norm(r, r->norm, h, x[i]);
        for (int k = 0; k < FIX_DIM; k++) pooled[k] += size * h[k];
        sum += size;
    }
    for (int k = 0; k < FIX_DIM; k++) h[k] = pooled[k] / sum;
    if (!first) {
        memcpy(pooled, h, sizeof h);
        ref_norm(r, r->norm, h, pooled);
    }
    ref_linear(r, "head", logits, FIX_CLASSES, h, FIX_DIM);
}

static inline void ref_forward(const reference *r, const float *chw, double *logits)
{
    static ref_rows x;
    const uint32_t side = r->c->image_size / r->c->patch_size, n = side * side + r->c->n_prefix;
    ref_embed(r, x, chw);
    for (uint32_t b = 0; b < r->c->n_blocks; b++) ref_block(r, b, x, n);
    ref_head(r, x, n, NULL, logits);
}

#endif
