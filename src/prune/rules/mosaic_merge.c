/* mosaic_merge.c - a cut that keeps peaks and merges the rest into them. A peak is important (class
 * attention) and unlike every patch that is more important; each removed patch joins the kept one
 * it resembles most. Resemblance is the cosine of the rows after the attention residual, less the
 * mean over all patches.
 *
 * Rows are put in the order of falling importance before the Gram matrix is taken. Then "every more
 * important patch" is "every row above", and the half below the diagonal is all there is to know.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "prune/rules/mosaic.h"
#include "prune/rules/reduce.h"
#include "prune/rules/select.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    PHASE_MEAN, /* tile 0: the order of importance; the others: the mean of some columns */
    PHASE_ROWS, /* centred rows of length 1 */
    PHASE_GRAM, /* their products, and the largest of each row */
    PHASE_CHOOSE,
    MEAN_COLUMNS = 128, /* of a tile */
    ROWS = 16,          /* of a tile of PHASE_ROWS */
    LANES = 16 /* sums and maxima kept side by side, so that the compiler may use vectors */
};

uint32_t ry_mosaic_merge_tiles(const ry_pruner *p, uint32_t n_patches, uint32_t phase)
{
    switch (phase) {
    case PHASE_MEAN: return 1 + (p->dim + MEAN_COLUMNS - 1) / MEAN_COLUMNS;
    case PHASE_ROWS: return (n_patches + ROWS - 1) / ROWS;
    case PHASE_GRAM: return (uint32_t)ry_gram_blocks(n_patches, p->kernels.gram_rows);
    case PHASE_CHOOSE: return 1;
    default: return 0;
    }
}

/* [P] how important each patch is */
static const float *importance(const ry_pruner *p, const ry_block_view *view)
{
    return (p->shape.n_prefix ? view->class_row : view->columns) + p->shape.n_prefix;
}

static void mean_of_columns(const ry_mosaic *m, const ry_block_view *view, uint32_t first)
{
    const uint32_t left = view->dim - first, count = left < MEAN_COLUMNS ? left : MEAN_COLUMNS;
    double sum[MEAN_COLUMNS] = {0};

    for (uint32_t j = 0; j < m->n; j++) {
        const float *x = view->x + (size_t)(view->n_prefix + j) * view->dim + first;
        for (uint32_t c = 0; c < count; c++) sum[c] += (double)x[c];
    }
    for (uint32_t c = 0; c < count; c++) m->mean[first + c] = (float)(sum[c] / m->n);
}

/* One row of z. A row without a direction (all zero, or not finite) becomes zero: it resembles
 * nothing, and nothing that is no number gets into the matrix. */
static void unit_row(const ry_mosaic *m, const ry_block_view *view, uint32_t row)
{
    const size_t dim = view->dim;
    const float *x = view->x + (view->n_prefix + m->rows[row]) * dim, *mean = m->mean;
    float *z = m->z + row * m->z_row;

    for (size_t c = 0; c < dim; c++) z[c] = x[c] - mean[c];
    const float length = ry_row_length(z, dim);
    if (length >= FLT_MIN && length <= FLT_MAX)
        ry_row_scale(z, z, 1.0f / length, dim);
    else
        memset(z, 0, dim * sizeof *z);
}

static float largest(const float *x, size_t n)
{
    float most[LANES], all = -2.0f; /* below every cosine */
    size_t j = 0;

    for (size_t l = 0; l < LANES; l++) most[l] = all;
    for (; j + LANES <= n; j += LANES)
        for (size_t l = 0; l < LANES; l++) most[l] = x[j + l] > most[l] ? x[j + l] : most[l];
    for (; j < n; j++) all = x[j] > all ? x[j] : all;
    for (size_t l = 0; l < LANES; l++) all = most[l] > all ? most[l] : all;
    return all;
}

/* What a patch counts for: its attention, times its distance from all that have more of it. */
static float cost_of(float attention, float overlap)
{
    const float distance = 1.0f - overlap;
    return sqrtf(attention) * (distance > 1e-6f ? distance : 1e-6f);
}

/* Scores of all tokens; the K best patches, in the order of their scores, become the new rows. */
static void keep_peaks(const ry_pruner *p, const ry_mosaic *m, const ry_block_view *view,
                       ry_cut *out)
{
    const float *a = importance(p, view);
    const uint32_t prefix = view->n_prefix;

    for (uint32_t r = 0; r < m->n; r++) {
        const uint32_t j = m->rows[r];
        m->value[j] = cost_of(a[j], m->overlap[r]);
    }
    ry_rank(m->order, m->value, m->n, m->keys);
    memset(out->score, 0, prefix * sizeof *out->score);
    memcpy(out->score + prefix, m->value, m->n * sizeof *out->score);
    memset(out->rescued, 0, view->n_tokens);
    ry_reduce_drop(view, out, m->order, out->n_out - prefix);
}

/* Row g, removed, may join the kept row that is now in place `place`; equal ones: the earlier. */
static inline void offer(const ry_mosaic *m, uint32_t g, uint32_t place, float cosine)
{
    const float best = m->closeness[g];
    if (cosine > best || (cosine == best && place < m->place[g])) {
        m->closeness[g] = cosine;
        m->place[g] = place;
    }
}

/* Each pair of a kept and a removed row is met once, on the way down the lower half. */
static void join_nearest(const ry_mosaic *m, const ry_block_view *view, ry_cut *out)
{
    uint32_t kept = 0, gone = 0;

    for (uint32_t r = 0; r < m->n; r++) {
        const float *cosine = m->gram + r * m->gram_row;
        m->place[r] = out->target[view->n_prefix + m->rows[r]];
        if (m->place[r] != RY_NO_TOKEN) {
            for (uint32_t i = 0; i < gone; i++)
                offer(m, m->gone[i], m->place[r], cosine[m->gone[i]]);
            m->kept[kept++] = r;
        } else {
            m->closeness[r] = -INFINITY;
            for (uint32_t i = 0; i < kept; i++)
                offer(m, r, m->place[m->kept[i]], cosine[m->kept[i]]);
            m->gone[gone++] = r;
        }
    }
    for (uint32_t r = 0; r < m->n; r++) out->target[view->n_prefix + m->rows[r]] = m->place[r];
}

static void phase_mean(const ry_pruner *p, const ry_mosaic *m, const ry_block_view *view,
                       uint32_t tile)
{
    if (tile)
        mean_of_columns(m, view, (tile - 1) * MEAN_COLUMNS);
    else
        ry_rank(m->rows, importance(p, view), m->n, m->keys);
}

/* The last rows have most columns, so they come first: no thread ends with the longest tile. */
static void phase_gram(const ry_pruner *p, const ry_mosaic *m, uint32_t tile)
{
    const size_t rows = p->kernels.gram_rows, block = ry_gram_blocks(m->n, rows) - 1 - tile;
    const size_t first = block * rows, end = m->n - first < rows ? m->n : first + rows;

    p->kernels.gram(m->gram, m->gram_row, m->z, m->z_row, m->n, p->dim, block,
                    m->pack + tile * m->pack_each);
    for (size_t r = first; r < end; r++) m->overlap[r] = largest(m->gram + r * m->gram_row, r);
}

void ry_mosaic_merge(const ry_pruner *p, const ry_mosaic *m, const ry_block_view *view, ry_cut *out,
                     uint32_t phase, uint32_t tile)
{
    if (phase == PHASE_MEAN) {
        phase_mean(p, m, view, tile);
    } else if (phase == PHASE_ROWS) {
        const uint32_t end = (tile + 1) * ROWS < m->n ? (tile + 1) * ROWS : m->n;
        for (uint32_t r = tile * ROWS; r < end; r++) unit_row(m, view, r);
    } else if (phase == PHASE_GRAM) {
        phase_gram(p, m, tile);
    } else {
        keep_peaks(p, m, view, out);
        join_nearest(m, view, out);
        ry_reduce_mean(view, out, m->sizes);
    }
}
