/* attention_scores.c - turns the column sums of all blocks into token scores: norms (Col-Ln),
 * powers and entropies.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.h"
#include "kernels/attention/column_stat.h"

/* How many sums of a column make one score. */
static size_t sums_per_score(const ry_column_spec *spec)
{
    return spec->kind == RY_COLUMN_ENTROPY ? 2 : 1;
}

size_t ry_column_sets(const ry_column_spec *spec, size_t n_heads)
{
    return (spec->each_head ? n_heads : 1) * sums_per_score(spec);
}

static double root(double sum, double n)
{
    if (n == 1.0) return sum;
    if (n == 2.0) return sqrt(sum);
    return n == 4.0 ? sqrt(sqrt(sum)) : pow(sum, 1.0 / n);
}

/* sum of part[b * step] over all blocks, always in the same order */
static double sum_blocks(const double *part, size_t step, size_t n_blocks)
{
    double sum = 0.0;
    for (size_t b = 0; b < n_blocks; b++) sum += part[b * step];
    return sum;
}

static double top_of_blocks(const double *part, size_t step, size_t n_blocks)
{
    double top = 0.0;
    for (size_t b = 0; b < n_blocks; b++) {
        const double x = part[b * step];
        if (isnan(x)) return x;
        if (x > top) top = x;
    }
    return top;
}

/* The norm of the norms of all blocks. Dividing by the largest keeps any order in range. */
static double norm_of_blocks(const double *part, size_t step, size_t n_blocks, double n)
{
    const double top = top_of_blocks(part, step, n_blocks);
    double sum = 0.0;
    if (!(top > 0.0)) return top;
    for (size_t b = 0; b < n_blocks; b++) sum += pow(part[b * step] / top, n);
    return top * root(sum, n);
}

/* One column of one set. */
typedef struct column {
    const ry_attention *at;
    const double *part; /* of the first block */
    size_t step;        /* doubles from block to block */
    size_t n_blocks;
} column;

static double norm_of(const column *c)
{
    const double n = c->at->columns.order;
    switch (ry_column_stat_of(&c->at->columns)) {
    case RY_STAT_TOP: return top_of_blocks(c->part, c->step, c->n_blocks);
    case RY_STAT_NORM: return norm_of_blocks(c->part, c->step, c->n_blocks, n);
    default: return root(sum_blocks(c->part, c->step, c->n_blocks), n) / (double)c->at->n_tokens;
    }
}

/* log(number of rows that count): the entropy of a column that all rows attend to equally. */
static double largest_entropy(const ry_attention *at)
{
    double rows = 0.0;
    for (size_t r = 0; r < ry_query_count(at); r++)
        rows += (double)ry_row_count(at, ry_query_row(at, r));
    return rows > 1.0 ? log(rows) : 0.0;
}

/* With p = a / mass: H_n = log(sum p^n) / (1 - n) = log(|a|_n / mass) n / (1 - n), and its limits.
 */
static double entropy_of(const column *c)
{
    const double n = c->at->columns.order;
    const double mass = sum_blocks(c->part, c->step, c->n_blocks) / (double)c->at->n_tokens;
    column second = *c;
    double h;

    second.part += c->at->n_tokens;
    if (mass <= 0.0) return largest_entropy(c->at);
    if (n == 1.0) {
        h = log(mass) - sum_blocks(second.part, c->step, c->n_blocks) / mass;
    } else {
        const double size = norm_of(&second);
        if (size <= 0.0) return largest_entropy(c->at); /* the powers underflowed */
        h = log(size / mass) * (isinf(n) ? -1.0 : n / (1.0 - n));
    }
    return h < 0.0 ? 0.0 : h;
}

static double score_of(const column *c)
{
    const ry_column_spec *spec = &c->at->columns;
    if (spec->kind == RY_COLUMN_ENTROPY) return entropy_of(c);
    const double size = norm_of(c);
    return spec->kind == RY_COLUMN_NORM || isinf(spec->order) ? size : pow(size, spec->order);
}

void ry_attention_scores(float *scores, const ry_attention *at, size_t n_blocks)
{
    const size_t N = at->n_tokens, sets = ry_column_sets(&at->columns, at->n_heads);
    const size_t each = sums_per_score(&at->columns);
    for (size_t j = 0; j < N; j++) {
        double sum = 0.0;
        for (size_t s = 0; s < sets; s += each) {
            const column c = {at, at->column_parts + s * N + j, sets * N, n_blocks};
            sum += score_of(&c);
        }
        scores[j] = (float)(sum / (double)(sets / each));
    }
}
