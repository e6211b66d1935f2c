/* mosaic.c - our own rule: thins the grid in block 0, where coverage matters most, and later merges
 * removed patches into kept ones that are important and dissimilar to each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "kernels/rows/rows.h"
#include "prune/rules/reduce.h"
#include "prune/rules/rule.h"
#include "prune/rules/select.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* One image's memory from the first to the last phase of a cut. P patches enter it. */
typedef struct mosaic {
    uint32_t n;      /* P of this image */
    float *memory;   /* [patches of the model] importance left by the merge before, see recall() */
    float *value;    /* [P] what is ranked */
    uint64_t *keys;  /* [2P] for the ranking */
    uint32_t *order; /* [P] best first */
    /* Only for thinning. */
    uint32_t *squares; /* [P] the patches of one colour */
    uint8_t *stays;    /* [P] */
    /* Only for a merge. Rows are patches in the order of falling importance. */
    float *important; /* [P] importance of each patch */
    uint32_t *rows;   /* [P] the patch of each row */
    uint32_t *place;  /* [P] the row of the new list that each row continues or joins */
    uint32_t *kept;   /* [P] rows kept so far in a walk down the matrix, ... */
    uint32_t *gone;   /* [P] ... and those removed */
    float *closeness; /* [P] of each removed row to the kept one it joins */
    float *overlap;   /* [P] largest cosine with a more important row; -2 for the first */
    float *sizes;     /* [n_prefix + P] patches in each new row */
    float *mean;      /* [dim] of all patches */
    float *z;         /* [P, z_row] centred rows of length 1; 0 where there is no direction */
    float *gram;      /* [P, gram_row] z z^T, up to the diagonal */
    float *pack;      /* [blocks of the matrix, pack_each] scratch of each tile */
    size_t z_row, gram_row, pack_each;
} mosaic;

static uint32_t patches_in(const ry_pruner *p, uint32_t cut)
{
    return p->tokens_in[cut] - p->shape.n_prefix;
}

/* Only the first cut can see the full grid: every cut removes something. With likeness there is no
 * number of patches to drop: block 0 merges too. */
static int is_thinning(const ry_pruner *p, uint32_t cut)
{
    return p->policy.cuts[cut].layer == 0 && !(p->policy.likeness > 0) &&
           patches_in(p, cut) == (uint64_t)p->shape.grid * p->shape.grid;
}

/* Floats from one row of a matrix to the next: whole cache lines, and not a multiple of 2048 bytes,
 * which would put one column of all rows into the same few lines of the cache. */
static size_t padded(size_t width)
{
    const size_t row = (width + 15) / 16 * 16;
    return row % 512 == 0 ? row + 16 : row;
}

static mosaic layout(const ry_pruner *p, uint32_t cut, void *base, size_t *bytes)
{
    const size_t P = patches_in(p, cut), R = p->kernels.gram_rows;
    ry_arena a = {.base = base, .cap = base ? p->scratch_each : 0};
    mosaic m = {.n = (uint32_t)P};

    /* First, so that it has the same place in every cut. */
    m.memory = RY_TAKE(&a, p->policy.memory > 0 ? p->shape.n_patches : 0, float);
    m.value = RY_TAKE(&a, P, float);
    m.keys = RY_TAKE(&a, 2 * P, uint64_t);
    m.order = RY_TAKE(&a, P, uint32_t);
    if (is_thinning(p, cut)) {
        m.squares = RY_TAKE(&a, P, uint32_t);
        m.stays = RY_TAKE(&a, P, uint8_t);
    } else {
        m.z_row = padded(p->dim);
        m.gram_row = padded(P);
        m.pack_each = (ry_gram_scratch(P, p->dim, R) + 15) / 16 * 16;
        m.important = RY_TAKE(&a, P, float);
        m.rows = RY_TAKE(&a, P, uint32_t);
        m.place = RY_TAKE(&a, P, uint32_t);
        m.kept = RY_TAKE(&a, P, uint32_t);
        m.gone = RY_TAKE(&a, P, uint32_t);
        m.closeness = RY_TAKE(&a, P, float);
        m.overlap = RY_TAKE(&a, P, float);
        m.sizes = RY_TAKE(&a, P + p->shape.n_prefix, float);
        m.mean = RY_TAKE(&a, p->dim, float);
        m.z = RY_TAKE(&a, P * m.z_row, float);
        m.gram = RY_TAKE(&a, P * m.gram_row, float);
        m.pack = RY_TAKE(&a, ry_gram_blocks(P, R) * m.pack_each, float);
    }
    *bytes = a.overflow ? SIZE_MAX : a.used;
    return m;
}

/* Cuts follow one another, so they share: the largest is enough. Only the memory is left from one
 * cut to the next. */
static size_t scratch(const ry_pruner *p)
{
    size_t most = 0;
    for (uint32_t i = 0; i < p->policy.n_cuts; i++) {
        size_t bytes;
        layout(p, i, NULL, &bytes);
        if (bytes > most) most = bytes;
    }
    return most;
}

/* ---- thinning -------------------------------------------------------------------------------- */

/* Leaves no hole: all squares of one colour of the checkerboard are dropped before any of the
 * other, those with the lowest score first. */

/* Takes up to `count` squares of one colour away, by ascending score q; says how many. A score that
 * is no number goes first. */
static uint32_t drop_squares(const mosaic *m, uint32_t grid, uint32_t colour, const float *q,
                             uint32_t count)
{
    uint32_t n = 0;

    for (uint32_t j = 0; j < m->n; j++) {
        if ((j / grid + j % grid) % 2 != colour) continue;
        m->squares[n] = j;
        m->value[n++] = isnan(q[j]) ? INFINITY : -q[j];
    }
    if (count > n) count = n;
    ry_rank(m->order, m->value, n, m->keys);
    for (uint32_t i = 0; i < count; i++) m->stays[m->squares[m->order[i]]] = 0;
    return count;
}

static void thin_grid(const ry_pruner *p, const mosaic *m, const ry_block_view *view, ry_cut *out)
{
    const uint32_t N = view->n_tokens, grid = p->shape.grid, drops = N - out->n_out;
    const float *q = view->columns + view->n_prefix;

    memcpy(out->score, view->columns, N * sizeof *out->score);
    memset(out->rescued, 0, N);
    memset(m->stays, 1, m->n);
    const uint32_t even = drop_squares(m, grid, 0, q, drops);
    drop_squares(m, grid, 1, q, drops - even);
    ry_select_ascending(m->order, m->stays, m->n);
    ry_reduce_drop(view, out, m->order, m->n - drops);
}

/* ---- merging --------------------------------------------------------------------------------- */

/* Keeps peaks and merges the rest into them. A peak is important (class attention) and dissimilar
 * to every patch that is more important; each removed patch joins the kept one it is most similar
 * to. Similarity is the cosine of the rows after the attention residual, minus the mean of all
 * patches.
 *
 * Rows are sorted by falling importance before the Gram matrix is computed. "Every more important
 * patch" is then "every row above", and only the half below the diagonal is needed. */

enum {
    PHASE_MEAN, /* tile 0: the order of importance; the others: the mean of some columns */
    PHASE_ROWS, /* centred rows of length 1 */
    PHASE_GRAM, /* their products, and the largest of each row */
    PHASE_CHOOSE,
    MEAN_COLUMNS = 128, /* of a tile */
    ROWS = 16,          /* of a tile of PHASE_ROWS */
    LANES = 16          /* independent maxima, so that the compiler can vectorize */
};

static uint32_t merge_tiles(const ry_pruner *p, uint32_t n_patches, uint32_t phase)
{
    switch (phase) {
    case PHASE_MEAN: return 1 + (p->dim + MEAN_COLUMNS - 1) / MEAN_COLUMNS;
    case PHASE_ROWS: return (n_patches + ROWS - 1) / ROWS;
    case PHASE_GRAM: return (uint32_t)ry_gram_blocks(n_patches, p->kernels.gram_rows);
    case PHASE_CHOOSE: return 1;
    default: return 0;
    }
}

/* x^power of x >= 0; the powers in use without rounding of their own. */
static float power_of(float x, float power)
{
    if (power == 0.5f) return sqrtf(x);
    return power == 1.0f ? x : powf(x, power);
}

/* Has a merge been made before this cut? Blocks in which nothing goes have none. */
static int has_memory(const ry_pruner *p, uint32_t cut)
{
    for (uint32_t i = 0; p->policy.memory > 0 && i < cut; i++)
        if (!is_thinning(p, i) && !ry_pruner_is_idle(p, i)) return 1;
    return 0;
}

static double sum_of(const float *x, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t j = 0; j < n; j++) sum += (double)x[j];
    return sum;
}

/* The importance of each patch in this block: attention, and a share of Col-L2, scaled to the same
 * sum. Without a class row it is the attention that a patch receives. */
static void see_importance(const ry_pruner *p, const mosaic *m, const ry_block_view *view)
{
    const int has_row = ry_pruner_row_need(p) != 0;
    const float *a = (has_row ? view->class_row : view->columns) + view->n_prefix;

    memcpy(m->important, a, m->n * sizeof *a);
    if (!has_row || !(p->policy.col > 0)) return;
    const float *q = view->columns + view->n_prefix;
    const double total = sum_of(q, m->n);
    if (!(total > 0 && total <= FLT_MAX)) return;
    const float scale = (float)(p->policy.col * sum_of(a, m->n) / total);
    const float rest = (float)(1.0 - p->policy.col);
    for (uint32_t j = 0; j < m->n; j++) m->important[j] = rest * a[j] + scale * q[j];
}

/* Adds the importance that the members of each patch had at the merge before, as a weighted
 * geometric mean: a^(1 - memory) m^memory. */
static void recall(const ry_pruner *p, uint32_t cut, const mosaic *m)
{
    const float share = (float)p->policy.memory;

    if (!has_memory(p, cut)) return;
    for (uint32_t j = 0; j < m->n; j++)
        m->important[j] = power_of(m->important[j], 1.0f - share) * power_of(m->memory[j], share);
}

/* For the next merge: the importance of all members of each new row. */
static void remember(const ry_pruner *p, const mosaic *m, const ry_block_view *view,
                     const ry_cut *out)
{
    if (!(p->policy.memory > 0)) return;
    memset(m->memory, 0, (out->n_out - view->n_prefix) * sizeof *m->memory);
    for (uint32_t j = 0; j < m->n; j++)
        m->memory[out->target[view->n_prefix + j] - view->n_prefix] += m->important[j];
}

static void mean_of_columns(const mosaic *m, const ry_block_view *view, uint32_t first)
{
    const uint32_t left = view->dim - first, count = left < MEAN_COLUMNS ? left : MEAN_COLUMNS;
    double sum[MEAN_COLUMNS] = {0};

    for (uint32_t j = 0; j < m->n; j++) {
        const float *x = view->x + (size_t)(view->n_prefix + j) * view->dim + first;
        for (uint32_t c = 0; c < count; c++) sum[c] += (double)x[c];
    }
    for (uint32_t c = 0; c < count; c++) m->mean[first + c] = (float)(sum[c] / m->n);
}

/* One row of z. A row without a direction (zero or not finite) becomes zero, so that the matrix
 * is finite. */
static void unit_row(const mosaic *m, const ry_block_view *view, uint32_t row)
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

/* The score of a patch: a power of its attention times its distance from all more important
 * patches. */
static float cost_of(float attention, float alpha, float overlap)
{
    const float distance = 1.0f - overlap;
    return power_of(attention, alpha) * (distance > 1e-6f ? distance : 1e-6f);
}

/* Takes out of m->order, which holds all patches by falling score, those that go: the last ones
 * that are more like a more important patch than the policy says, as many as the budget allows.
 * Returns how many stay. */
static uint32_t take_alike(const ry_pruner *p, uint32_t cut, const mosaic *m)
{
    const float likeness = (float)p->policy.likeness;
    uint32_t may_go = m->n - ry_policy_patches_kept(&p->policy, cut, m->n), stay = 0;

    for (uint32_t r = 0; r < m->n; r++) m->closeness[m->rows[r]] = m->overlap[r];
    for (uint32_t i = m->n; i-- > 0;) {
        const int goes = may_go && m->closeness[m->order[i]] > likeness;
        may_go -= (uint32_t)goes;
        if (goes) m->order[i] = RY_NO_TOKEN;
    }
    for (uint32_t i = 0; i < m->n; i++)
        if (m->order[i] != RY_NO_TOKEN) m->order[stay++] = m->order[i];
    return stay;
}

/* Scores of all tokens; the K best patches, in the order of their scores, become the new rows. */
static void keep_peaks(const ry_pruner *p, uint32_t cut, const mosaic *m, const ry_block_view *view,
                       ry_cut *out)
{
    const float alpha = (float)p->policy.alpha;
    const uint32_t prefix = view->n_prefix;

    for (uint32_t r = 0; r < m->n; r++) {
        const uint32_t j = m->rows[r];
        m->value[j] = cost_of(m->important[j], alpha, m->overlap[r]);
    }
    ry_rank(m->order, m->value, m->n, m->keys);
    memset(out->score, 0, prefix * sizeof *out->score);
    memcpy(out->score + prefix, m->value, m->n * sizeof *out->score);
    memset(out->rescued, 0, view->n_tokens);
    if (p->policy.likeness > 0) out->n_out = prefix + take_alike(p, cut, m);
    ry_reduce_drop(view, out, m->order, out->n_out - prefix);
}

/* Row g, removed, joins the kept row at `place` if that is the most similar so far; equal ones:
 * the earlier. */
static inline void offer(const mosaic *m, uint32_t g, uint32_t place, float cosine)
{
    const float best = m->closeness[g];
    if (cosine > best || (cosine == best && place < m->place[g])) {
        m->closeness[g] = cosine;
        m->place[g] = place;
    }
}

/* Every pair of a kept and a removed row is visited once, down the lower half. */
static void join_nearest(const mosaic *m, const ry_block_view *view, ry_cut *out)
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

/* The weights of a merge: patches, each times a power of the attention that one of them gets. */
static void weigh_members(const ry_pruner *p, const mosaic *m, const ry_block_view *view,
                          ry_cut *out)
{
    const float omega = (float)p->policy.omega;
    const uint32_t prefix = view->n_prefix;

    if (omega == 0.0f) {
        ry_reduce_mean(view, out, m->sizes);
        return;
    }
    for (uint32_t j = 0; j < m->n; j++) {
        const float size = view->sizes ? view->sizes[prefix + j] : 1.0f;
        out->weight[prefix + j] = size * power_of(m->important[j] / size + 1e-9f, omega);
    }
    ry_reduce_shares(view, out, m->sizes);
}

static void phase_mean(const ry_pruner *p, uint32_t cut, const mosaic *m, const ry_block_view *view,
                       uint32_t tile)
{
    if (tile) {
        mean_of_columns(m, view, (tile - 1) * MEAN_COLUMNS);
        return;
    }
    see_importance(p, m, view);
    recall(p, cut, m);
    ry_rank(m->rows, m->important, m->n, m->keys);
}

/* The last rows have the most columns and come first, so that no thread ends with the longest
 * tile. An image with fewer patches than the plan's has fewer tiles. */
static void phase_gram(const ry_pruner *p, const mosaic *m, uint32_t tile)
{
    const size_t rows = p->kernels.gram_rows, blocks = ry_gram_blocks(m->n, rows);
    if (tile >= blocks) return;
    const size_t block = blocks - 1 - tile;
    const size_t first = block * rows, end = m->n - first < rows ? m->n : first + rows;

    p->kernels.gram(m->gram, m->gram_row, m->z, m->z_row, m->n, p->dim, block,
                    m->pack + tile * m->pack_each);
    for (size_t r = first; r < end; r++) m->overlap[r] = largest(m->gram + r * m->gram_row, r);
}

static void merge_peaks(const ry_pruner *p, uint32_t cut, const mosaic *m,
                        const ry_block_view *view, ry_cut *out, uint32_t phase, uint32_t tile)
{
    if (phase == PHASE_MEAN) {
        phase_mean(p, cut, m, view, tile);
    } else if (phase == PHASE_ROWS) {
        const uint32_t end = (tile + 1) * ROWS < m->n ? (tile + 1) * ROWS : m->n;
        for (uint32_t r = tile * ROWS; r < end; r++) unit_row(m, view, r);
    } else if (phase == PHASE_GRAM) {
        phase_gram(p, m, tile);
    } else {
        keep_peaks(p, cut, m, view, out);
        join_nearest(m, view, out);
        weigh_members(p, m, view, out);
        remember(p, m, view, out);
    }
}

/* ---- the rule -------------------------------------------------------------------------------- */

static void needs(const ry_pruner *p, uint32_t cut, ry_block_needs *needs)
{
    if (is_thinning(p, cut)) {
        needs->what = RY_NEED_COLUMNS;
        needs->columns = (ry_column_spec){.kind = RY_COLUMN_POWER, .order = 4.0};
        needs->drops = 1;
        return;
    }
    needs->what = RY_NEED_TOKENS;
    needs->sizes = 1;
    needs->length = p->policy.longest ? RY_LENGTH_LARGEST : RY_LENGTH_MEAN;
    needs->log_factor = (float)p->policy.beta;
    needs->logit_factor = (float)(1.0 / p->policy.temperature);
    needs->adaptive = p->policy.likeness > 0;
    needs->pair_macs = 0.5 * p->dim; /* the Gram matrix, one half by symmetry */
    if (ry_pruner_row_need(p)) {
        needs->what |= ry_pruner_row_need(p);
        if (!(p->policy.col > 0)) return;
        needs->what |= RY_NEED_COLUMNS;
        needs->columns = (ry_column_spec){.kind = RY_COLUMN_NORM, .order = 2.0};
    } else { /* attention received from every patch that a row stands for */
        needs->what |= RY_NEED_COLUMNS;
        needs->columns = (ry_column_spec){.kind = RY_COLUMN_POWER, .order = 1.0, .row_weights = 1};
    }
}

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    if (is_thinning(p, cut)) return phase == 0;
    return merge_tiles(p, n_tokens - p->shape.n_prefix, phase);
}

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *view, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    size_t bytes;
    mosaic m = layout(p, cut, ry_pruner_scratch(p, view->image), &bytes);

    m.n = view->n_tokens - view->n_prefix; /* with likeness fewer than the plan's */
    if (is_thinning(p, cut))
        thin_grid(p, &m, view, out);
    else
        merge_peaks(p, cut, &m, view, out, phase, tile);
}

const ry_rule_ops ry_rule_mosaic = {needs, tiles, work, scratch};
