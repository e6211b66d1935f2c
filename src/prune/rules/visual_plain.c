/* visual_plain.c - the choices that every method has to beat: patches at random, every n-th patch,
 * and averages of neighbouring patches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "kernels/rows/rows.h"
#include "prune/rules/select.h"
#include "prune/rules/visual_rule.h"

#include <math.h>
#include <string.h>

static uint32_t count_of(const ry_visual_rule *a)
{
    return ry_policy_visual_count(&a->policy, a->n_patches);
}

/* ---- random -------------------------------------------------------------------------------- */

/* Every patch draws a number, the largest stay. Seed and image are mixed one after the other, so
 * that neighbouring seeds share nothing. */
static void choose_random(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    ry_rng r = ry_rng_new(a->policy.seed);
    r = ry_rng_new(ry_rng_next(&r) + v->image_key);
    for (uint32_t j = 0; j < a->n_patches; j++)
        a->score[j] = (float)(ry_rng_next(&r) >> 40) * 0x1p-24f; /* 24 bits: exact, never 1 */
    ry_rank(a->order, a->score, a->n_patches, a->rank);
    ry_select_correct(a->kept, a->taken, NULL, 0, a->order, count_of(a), a->n_patches);
    ry_visual_rule_keep_taken(a);
}

const ry_visual_ops ry_visual_random = {.has_scores = 1, .choose = choose_random};

/* ---- uniform ------------------------------------------------------------------------------- */

/* The patches in raster order are cut into n parts of equal length; the middle of each stays. */
static void choose_uniform(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const uint32_t n = count_of(a);
    (void)v;
    for (uint32_t i = 0; i < n; i++)
        a->kept[i] = (uint32_t)((2 * (uint64_t)i + 1) * a->n_patches / (2 * (uint64_t)n));
    a->n_kept = a->n_rows = n;
}

const ry_visual_ops ry_visual_uniform = {.choose = choose_uniform};

/* ---- pool ---------------------------------------------------------------------------------- */

/* Rows of the grid of n averages, at most `grid` and as square as n allows: the divisor of n
 * nearest below its root if the grid is then at most twice as wide as high, else the rounded root,
 * and the rows differ by one average. */
static uint32_t pooled_rows(uint32_t n, uint32_t grid)
{
    const uint32_t root = (uint32_t)sqrt((double)n);
    for (uint32_t r = root < grid ? root : grid; r && n / r <= 2 * r; r--)
        if (n % r == 0 && n / r <= grid) return r;
    return (uint32_t)lround(sqrt((double)n));
}

typedef struct window {
    uint32_t from, to;
} window;

/* Part i of n parts of the grid's side. Parts overlap where n does not divide it, as in PyTorch's
 * AdaptiveAvgPool2d. */
static window part(uint32_t i, uint32_t n, uint32_t grid)
{
    return (window){i * grid / n, ((i + 1) * grid + n - 1) / n};
}

/* The patches that average i stands for. */
static void find_window(const ry_visual_rule *a, uint32_t i, window *y, window *x)
{
    const uint64_t n = a->n_rows, rows = pooled_rows(a->n_rows, a->grid);
    uint64_t row = i * rows / n;
    while ((row + 1) * n / rows <= i) row++;
    const uint64_t first = row * n / rows, end = (row + 1) * n / rows;
    *y = part((uint32_t)row, (uint32_t)rows, a->grid);
    *x = part((uint32_t)(i - first), (uint32_t)(end - first), a->grid);
}

static void choose_pool(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    (void)v;
    a->n_rows = count_of(a);
    a->n_kept = 0;
    for (uint32_t i = 0; i < a->n_rows; i++) {
        window y, x;
        find_window(a, i, &y, &x);
        const int one = y.to - y.from == 1 && x.to - x.from == 1;
        a->kept[i] = one ? y.from * a->grid + x.from : RENYI_NONE;
        a->n_kept += (uint32_t)one;
    }
}

static void average(const ry_visual_rule *a, const ry_visual_rule_view *v, float *row, uint32_t i,
                    const ry_visual_scratch *h)
{
    const size_t C = a->dim;
    window y, x;
    (void)h;
    find_window(a, i, &y, &x);
    memset(row, 0, C * sizeof *row);
    for (uint32_t r = y.from; r < y.to; r++)
        for (uint32_t c = x.from; c < x.to; c++)
            ry_row_add(row, v->x + (size_t)(r * a->grid + c) * C, 1.0f, C);
    const float count = (float)((y.to - y.from) * (x.to - x.from));
    for (size_t k = 0; k < C; k++) row[k] /= count;
}

const ry_visual_ops ry_visual_pool = {.choose = choose_pool, .row = average};
