/* grad_scalar.c - the backward kernels in plain C: the specification of the vector levels, and the
 * sizes and tiles all levels share. Also the optimizer update for the baseline instructions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.h"
#include "kernels/grad/grad.h"
#include "kernels/grad/update_template.h"
#include "kernels/linear/activation.h"

#include <math.h>
#include <string.h>

/* ---- weights of a linear --------------------------------------------------------------------- */

enum {
    OUT_STEP = 12, /* sides of a tile are multiples of the register tiles of every level */
    IN_STEP = 32,
    MIN_OUT = 48, /* smaller tiles spend more time on reading than on computing */
    MIN_IN = 96,
    MIN_TILES = 3 /* per thread, if possible: threads wait less at the end */
};

typedef struct outer_grid {
    size_t out_each, in_each, in_tiles, tiles;
} outer_grid;

static size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

static size_t count_pieces(size_t n, size_t each) { return (n + each - 1) / each; }

/* The side of equal tiles, at most `most`. */
static size_t even_side(size_t n, size_t most, size_t step)
{
    const size_t count = n ? count_pieces(n, most) : 1;
    return round_up(count_pieces(n ? n : 1, count), step);
}

/* Halves the longer side until there are enough tiles. */
static outer_grid outer_grid_of(const ry_outer *o)
{
    const size_t wanted = MIN_TILES * (o->n_threads ? o->n_threads : 1);
    size_t out = even_side(o->n_out, RY_OUTER_OUT, OUT_STEP);
    size_t in = even_side(o->n_in, RY_OUTER_IN, IN_STEP);
    while (count_pieces(o->n_out, out) * count_pieces(o->n_in, in) < wanted) {
        if (in >= 2 * out && in >= 2 * MIN_IN)
            in = round_up(in / 2, IN_STEP);
        else if (out >= 2 * MIN_OUT)
            out = round_up(out / 2, OUT_STEP);
        else if (in >= 2 * MIN_IN)
            in = round_up(in / 2, IN_STEP);
        else
            break;
    }
    const size_t in_tiles = count_pieces(o->n_in, in);
    return (outer_grid){out, in, in_tiles, in_tiles * count_pieces(o->n_out, out)};
}

size_t ry_outer_tiles(const ry_outer *o) { return outer_grid_of(o).tiles; }

/* A chunk of dy in panels with a gap after each, and one panel of x, for the widest vectors. */
size_t ry_outer_scratch(void)
{
    return (size_t)RY_OUTER_DEPTH * (RY_OUTER_OUT + 32) + (RY_OUTER_OUT / 6 + 1) * 16;
}

ry_outer_tile ry_outer_tile_of(const ry_outer *o, size_t tile)
{
    const outer_grid g = outer_grid_of(o);
    ry_outer_tile t = {tile / g.in_tiles * g.out_each, g.out_each, tile % g.in_tiles * g.in_each,
                       g.in_each};
    if (o->n_out - t.out < t.n_out) t.n_out = o->n_out - t.out;
    if (o->n_in - t.in < t.n_in) t.n_in = o->n_in - t.in;
    return t;
}

static RY_DECL_OUTER(outer)
{
    const ry_outer_tile t = ry_outer_tile_of(o, tile);
    (void)scratch;
    for (size_t r = 0; r < o->rows; r++) {
        const float *dy = o->dy + r * o->dy_row, *x = o->x + r * o->x_row;
        for (size_t i = t.out; i < t.out + t.n_out; i++) {
            float *dw = o->dw + i * o->n_in;
            for (size_t j = t.in; j < t.in + t.n_in; j++) dw[j] += dy[i] * x[j];
            if (o->db && t.in == 0) o->db[i] += dy[i];
        }
    }
}

/* ---- attention -------------------------------------------------------------------------------
 * With P = softmax(s Q K^T + bias), s the scale of the logits, and O = P V:
 *
 *   dV = P^T dO    dP = dO V^T + shares of dclass_row and dmean    dS = P (dP - rowsum(P dP))
 *   dQ = s dS K    dK = s dS^T Q */

/* Padded rows of k, v, dk, dv; probabilities and their gradients of a block of queries; four views
 * of the block's q and dout. 64 lanes and rows of d + 31 cover every level. */
size_t ry_attention_grad_scratch(size_t n_tokens, size_t head)
{
    const size_t row = head + 32, padded = n_tokens + 16;
    return 4 * padded * row + 2 * padded * 64 + 4 * 64 * row + 256;
}

static const float *row_of(const ry_attention_grad *g, size_t token, size_t part, size_t h)
{
    return g->qkv + token * g->qkv_row + (part * g->n_heads + h) * g->head;
}

static float *drow_of(const ry_attention_grad *g, size_t token, size_t part, size_t h)
{
    return g->dqkv + token * g->dqkv_row + (part * g->n_heads + h) * g->head;
}

static float dot(const float *a, const float *b, size_t n)
{
    float sum = 0.0f;
    for (size_t c = 0; c < n; c++) sum += a[c] * b[c];
    return sum;
}

static void add_scaled(float *to, const float *x, float w, size_t n)
{
    for (size_t c = 0; c < n; c++) to[c] += w * x[c];
}

/* p[N] of query i in head h */
static void probabilities(const ry_attention_grad *g, size_t h, size_t i, float *p)
{
    const size_t N = g->n_tokens;
    const float scale = ry_logit_scale(g->head, g->logit_factor);
    float top = -INFINITY, sum = 0.0f;
    for (size_t j = 0; j < N; j++) {
        p[j] = dot(row_of(g, i, 0, h), row_of(g, j, 1, h), g->head) * scale;
        if (g->key_bias) p[j] += g->key_bias[j];
        if (p[j] > top) top = p[j];
    }
    for (size_t j = 0; j < N; j++) sum += p[j] = expf(p[j] - top);
    for (size_t j = 0; j < N; j++) p[j] /= sum;
}

/* ds[N]: the gradient of the logits of query i, from p */
static void logit_gradients(const ry_attention_grad *g, size_t h, size_t i, const float *p,
                            float *ds)
{
    const size_t N = g->n_tokens;
    const float share = 1.0f / (float)g->n_heads;
    const float *dout = g->dout + i * g->dout_row + h * g->head;
    float sum = 0.0f;
    for (size_t j = 0; j < N; j++) {
        ds[j] = dot(dout, row_of(g, j, 2, h), g->head);
        if (g->dmean) ds[j] += share * g->dmean[i * N + j];
        if (g->dclass_row && i == 0) ds[j] += share * g->dclass_row[j];
        sum += p[j] * ds[j];
    }
    for (size_t j = 0; j < N; j++) ds[j] = p[j] * (ds[j] - sum);
}

static RY_DECL_ATTENTION_GRAD(attention_grad)
{
    const size_t N = g->n_tokens, d = g->head;
    const float scale = ry_logit_scale(d, g->logit_factor);
    float *p = scratch, *ds = scratch + N;

    for (size_t j = 0; j < N; j++)
        for (size_t part = 0; part < 3; part++)
            memset(drow_of(g, j, part, h), 0, d * sizeof(float));
    for (size_t i = 0; i < g->n_rows; i++) {
        probabilities(g, h, i, p);
        logit_gradients(g, h, i, p, ds);
        for (size_t j = 0; j < N; j++) {
            add_scaled(drow_of(g, i, 0, h), row_of(g, j, 1, h), scale * ds[j], d);
            add_scaled(drow_of(g, j, 1, h), row_of(g, i, 0, h), scale * ds[j], d);
            add_scaled(drow_of(g, j, 2, h), g->dout + i * g->dout_row + h * d, p[j], d);
        }
    }
}

static RY_DECL_ATTENTION_MEAN(attention_mean)
{
    const size_t N = g->n_tokens;
    memset(mean, 0, g->n_rows * N * sizeof(float));
    for (size_t h = 0; h < g->n_heads; h++)
        for (size_t i = 0; i < g->n_rows; i++) {
            probabilities(g, h, i, scratch);
            add_scaled(mean + i * N, scratch, 1.0f / (float)g->n_heads, N);
        }
}

/* ---- LayerNorm -------------------------------------------------------------------------------
 * With z = (x - mean) / s, s = sqrt(var + eps), and e = dy w:
 * dx = (e - mean(e) - z mean(e z)) / s, dw = sum dy z, db = sum dy. */

size_t ry_layernorm_grad_blocks(size_t rows)
{
    return (rows + RY_LAYERNORM_GRAD_ROWS - 1) / RY_LAYERNORM_GRAD_ROWS;
}

void ry_layernorm_grad_sum(float *dw, float *db, const float *parts, size_t n_blocks, size_t n)
{
    for (size_t side = 0; side < 2; side++) {
        float *to = side ? db : dw;
        for (size_t i = 0; i < n; i++) {
            double sum = 0.0;
            for (size_t b = 0; b < n_blocks; b++) sum += (double)parts[(b * 2 + side) * n + i];
            to[i] += (float)sum;
        }
    }
}

static void row_grad(const ry_layernorm_grad *g, size_t r, float *dw, float *db)
{
    const float *x = g->x + r * g->x_row, *dy = g->dy + r * g->dy_row;
    float *dx = g->dx + r * g->dx_row;
    const double n = (double)g->n;
    double mean = 0.0, square = 0.0, e_mean = 0.0, ez_mean = 0.0;

    for (size_t i = 0; i < g->n; i++) mean += (double)x[i] / n;
    for (size_t i = 0; i < g->n; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double scale = 1.0 / sqrt(square / n + (double)g->eps);
    for (size_t i = 0; i < g->n; i++) {
        const double e = (double)dy[i] * (double)g->w[i], z = ((double)x[i] - mean) * scale;
        e_mean += e / n;
        ez_mean += e * z / n;
        dw[i] += (float)((double)dy[i] * z);
        db[i] += dy[i];
    }
    for (size_t i = 0; i < g->n; i++) {
        const double e = (double)dy[i] * (double)g->w[i], z = ((double)x[i] - mean) * scale;
        dx[i] += (float)((e - e_mean - z * ez_mean) * scale);
    }
}

static RY_DECL_LAYERNORM_GRAD(layernorm_grad)
{
    const size_t first = block * RY_LAYERNORM_GRAD_ROWS;
    float *dw = g->parts + block * 2 * g->n, *db = dw + g->n;
    memset(dw, 0, 2 * g->n * sizeof(float));
    for (size_t r = first; r < g->rows && r < first + RY_LAYERNORM_GRAD_ROWS; r++)
        row_grad(g, r, dw, db);
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Phi(u) + u phi(u): the normal distribution and its density */
static float gelu_slope(float u)
{
    return 0.5f * (1.0f + erff(u * 0.70710678f)) + u * 0.39894228f * expf(-0.5f * u * u);
}

static float quick_gelu_slope(float u)
{
    const float s = 1.0f / (1.0f + expf(-1.702f * u));
    return s + 1.702f * u * s * (1.0f - s);
}

static float gelu_tanh_slope(float u)
{
    const float s = 1.0f / (1.0f + expf(ry_gelu_tanh_exponent(u)));
    return s + u * (1.59576912f + 0.214064449f * u * u) * s * (1.0f - s);
}

static RY_DECL_ACTIVATION(gelu)
{
    for (size_t i = 0; i < n; i++) y[i] = ry_gelu(u[i]);
}

static RY_DECL_ACTIVATION_GRAD(gelu_grad)
{
    for (size_t i = 0; i < n; i++) {
        du[i] = dy[i] * gelu_slope(u[i]);
        y[i] = ry_gelu(u[i]);
    }
}

static RY_DECL_ACTIVATION(quick_gelu)
{
    for (size_t i = 0; i < n; i++) y[i] = ry_quick_gelu(u[i]);
}

static RY_DECL_ACTIVATION_GRAD(quick_gelu_grad)
{
    for (size_t i = 0; i < n; i++) {
        du[i] = dy[i] * quick_gelu_slope(u[i]);
        y[i] = ry_quick_gelu(u[i]);
    }
}

static RY_DECL_ACTIVATION(gelu_tanh)
{
    for (size_t i = 0; i < n; i++) y[i] = ry_gelu_tanh(u[i]);
}

static RY_DECL_ACTIVATION_GRAD(gelu_tanh_grad)
{
    for (size_t i = 0; i < n; i++) {
        du[i] = dy[i] * gelu_tanh_slope(u[i]);
        y[i] = ry_gelu_tanh(u[i]);
    }
}

static RY_DECL_SWIGLU_GRAD(swiglu_grad)
{
    for (size_t i = 0; i < n; i++) {
        const float gate = u[i], up = u[n + i], s = 1.0f / (1.0f + expf(-gate)), d = dy[i];
        du[i] = d * up * (s + gate * s * (1.0f - s));
        du[n + i] = d * ry_silu(gate);
        y[i] = ry_silu(gate) * up;
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

void ry_grad_init_scalar(ry_grad_kernels *k)
{
    k->outer = outer;
    k->attention_grad = attention_grad;
    k->attention_mean = attention_mean;
    k->layernorm_grad = layernorm_grad;
    k->gelu = gelu;
    k->gelu_grad = gelu_grad;
    k->quick_gelu = quick_gelu;
    k->quick_gelu_grad = quick_gelu_grad;
    k->gelu_tanh = gelu_tanh;
    k->gelu_tanh_grad = gelu_tanh_grad;
    k->swiglu_grad = swiglu_grad;
}

void ry_update_init_scalar(ry_update_kernels *k) { fill_update_table(k); }
