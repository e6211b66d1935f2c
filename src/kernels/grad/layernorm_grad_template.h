/* layernorm_grad_template.h - the backward pass of LayerNorm for any vector width: three passes
 * over a row, which stays in the first-level cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/grad.h"
#include "kernels/simd.h"

#include <math.h>
#include <string.h>

typedef struct row_moments {
    float mean, scale; /* of x; scale = 1 / sqrt(var + eps) */
    float e, ez;       /* means of e = dy w and of e z */
} row_moments;

/* The sum of four chains: one chain would be slow, because each addition waits for the one before.
 */
RY_INLINE float chains_sum(const vf sum[4])
{
    return vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
}

static float row_mean(const float *x, size_t n)
{
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    size_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) RY_UNROLL
    for (int s = 0; s < 4; s++) sum[s] = vf_add(sum[s], vf_load(x + i + s * VL));
    for (; i < n; i += VL) sum[0] = vf_add(sum[0], vf_load_upto(x + i, n - i));
    return chains_sum(sum) / (float)n;
}

/* mean of (x - mean)^2; a single pass with mean(x^2) - mean^2 loses digits when the mean is large
 */
static float row_variance(const float *x, size_t n, float mean)
{
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    float rest = 0.0f;
    size_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) RY_UNROLL
    for (int s = 0; s < 4; s++) {
        const vf d = vf_sub(vf_load(x + i + s * VL), vf_set1(mean));
        sum[s] = vf_fma(d, d, sum[s]);
    }
    for (; i < n; i++) rest += (x[i] - mean) * (x[i] - mean);
    return (chains_sum(sum) + rest) / (float)n;
}

/* z = (x - mean) scale. Lanes after the row hold anything; they are multiplied with dy = 0. */
RY_INLINE vf normalized(const float *x, const row_moments *m, size_t left)
{
    return vf_mul(vf_sub(vf_load_upto(x, left), vf_set1(m->mean)), vf_set1(m->scale));
}

/* dw += dy z, db += dy; and the means of e and e z */
static void add_row_sums(const float *x, const float *dy, const float *w, size_t n, float *dw,
                         float *db, row_moments *m)
{
    vf e_sum = vf_zero(), ez_sum = vf_zero();
    for (size_t i = 0; i < n; i += VL) {
        const size_t left = n - i;
        const vf g = vf_load_upto(dy + i, left), z = normalized(x + i, m, left);
        const vf e = vf_mul(g, vf_load_upto(w + i, left));
        e_sum = vf_add(e_sum, e);
        ez_sum = vf_fma(e, z, ez_sum);
        vf_store_upto(dw + i, vf_fma(g, z, vf_load_upto(dw + i, left)), left);
        vf_store_upto(db + i, vf_add(g, vf_load_upto(db + i, left)), left);
    }
    m->e = vf_sum(e_sum) / (float)n;
    m->ez = vf_sum(ez_sum) / (float)n;
}

/* dx += (e - mean(e) - z mean(e z)) scale */
static void add_dx(float *dx, const float *x, const float *dy, const float *w, size_t n,
                   const row_moments *m)
{
    const vf scale = vf_set1(m->scale), e_mean = vf_set1(m->e), ez_mean = vf_set1(-m->ez);
    for (size_t i = 0; i < n; i += VL) {
        const size_t left = n - i;
        const vf e = vf_mul(vf_load_upto(dy + i, left), vf_load_upto(w + i, left));
        const vf inner = vf_fma(normalized(x + i, m, left), ez_mean, vf_sub(e, e_mean));
        vf_store_upto(dx + i, vf_fma(inner, scale, vf_load_upto(dx + i, left)), left);
    }
}

static RY_DECL_LAYERNORM_GRAD(layernorm_grad)
{
    const size_t first = block * RY_LAYERNORM_GRAD_ROWS, n = g->n;
    float *dw = g->parts + block * 2 * n, *db = dw + n;
    memset(dw, 0, 2 * n * sizeof(float));
    for (size_t r = first; r < g->rows && r < first + RY_LAYERNORM_GRAD_ROWS; r++) {
        const float *x = g->x + r * g->x_row, *dy = g->dy + r * g->dy_row;
        row_moments m = {.mean = row_mean(x, n)};
        m.scale = 1.0f / sqrtf(row_variance(x, n, m.mean) + g->eps);
        add_row_sums(x, dy, g->w, n, dw, db, &m);
        add_dx(g->dx + r * g->dx_row, x, dy, g->w, n, &m);
    }
}
