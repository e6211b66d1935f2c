/* mix.c - see mix.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/mix.h"

#include "train/data/augment_rand.h"

#include <math.h>
#include <string.h>

/* ---- chance -------------------------------------------------------------------------------- */

/* The logarithm of a Gamma(shape) number: Marsaglia and Tsang 2000; shapes below 1 by way of
 * shape + 1. A logarithm because tiny shapes give numbers that a double cannot hold. */
static double log_gamma_number(ry_rng *rng, double shape)
{
    double boost = 0.0;
    if (shape < 1.0) {
        boost = log(1.0 - ry_rng_uniform(rng)) / shape;
        shape += 1.0;
    }
    const double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double x = ry_rng_normal(rng), base = 1.0 + c * x, v = base * base * base;
        const double u = 1.0 - ry_rng_uniform(rng);
        if (base > 0.0 && log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return boost + log(d) + log(v);
    }
}

double ry_rng_beta(ry_rng *rng, double alpha)
{
    const double a = log_gamma_number(rng, alpha), b = log_gamma_number(rng, alpha);
    return 1.0 / (1.0 + exp(b - a));
}

/* ---- draw ---------------------------------------------------------------------------------- */

static uint32_t clip(int64_t i, uint32_t n) { return i < 0 ? 0 : i < n ? (uint32_t)i : n; }

/* A square of share 1 - lambda round a random centre; what falls off the picture is lost, and
 * lambda is made right again. */
static void draw_box(ry_mix *m, uint32_t size, ry_rng *rng)
{
    const int64_t side = (int64_t)(size * sqrt(1.0 - m->lambda));
    const int64_t y = ry_rng_below(rng, size), x = ry_rng_below(rng, size);
    m->top = clip(y - side / 2, size);
    m->bottom = clip(y + (side + 1) / 2, size);
    m->left = clip(x - side / 2, size);
    m->right = clip(x + (side + 1) / 2, size);
    const double area = (double)(m->bottom - m->top) * (m->right - m->left);
    m->lambda = 1.0 - area / ((double)size * size);
}

ry_mix ry_mix_draw(const ry_augment *a, uint32_t size, ry_rng *rng)
{
    ry_mix m = {.lambda = 1.0};
    const int can_mix = a->mixup_alpha > 0.0, can_cut = a->cutmix_alpha > 0.0;
    if ((!can_mix && !can_cut) || ry_rng_uniform(rng) >= a->mix_prob) return m;
    m.is_cut = can_cut && (!can_mix || ry_rng_uniform(rng) < a->mix_switch_prob);
    m.lambda = ry_rng_beta(rng, m.is_cut ? a->cutmix_alpha : a->mixup_alpha);
    if (m.is_cut && m.lambda < 1.0) draw_box(&m, size, rng);
    return m;
}

/* ---- apply --------------------------------------------------------------------------------- */

static void swap_box(float *a, float *b, uint32_t size, const ry_mix *m)
{
    for (size_t c = 0; c < 3; c++)
        for (size_t y = m->top; y < m->bottom; y++)
            for (size_t x = m->left; x < m->right; x++) {
                const size_t i = (c * size + y) * size + x;
                const float own = a[i];
                a[i] = b[i];
                b[i] = own;
            }
}

void ry_mix_pair(float *a, float *b, uint32_t size, const ry_mix *m)
{
    if (m->lambda == 1.0) return;
    if (m->is_cut) {
        swap_box(a, b, size, m);
        return;
    }
    const float own = (float)m->lambda, other = (float)(1.0 - m->lambda);
    for (size_t i = 0; i < 3 * (size_t)size * size; i++) {
        const float x = a[i], y = b[i];
        a[i] = x * own + y * other;
        b[i] = y * own + x * other;
    }
}

void ry_mix_target(float *target, const ry_mix_labels *l)
{
    const double low = l->smoothing / l->n_classes;
    const float off = (float)low, on = (float)(1.0 - l->smoothing + low);
    const float own = (float)l->lambda, other = (float)(1.0 - l->lambda);
    for (uint32_t k = 0; k < l->n_classes; k++)
        target[k] = (k == l->label ? on : off) * own + (k == l->partner ? on : off) * other;
}
