/* metric.c - scores from a block's class row, column statistics and values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/metric.h"

#include "base/rng.h"
#include "kernels/rows/rows.h"
#include "prune/rules/own_rules.h"

#include <math.h>
#include <string.h>

static int is_entropy(ry_metric m) { return m == RY_METRIC_RENYI || m == RY_METRIC_SHANNON; }

static ry_column_spec column_spec(const ry_pruner *p)
{
    const ry_policy *po = &p->policy;
    const uint32_t prefix = p->shape.n_prefix, class_rows = prefix - p->shape.n_registers;
    return (ry_column_spec){
        .kind = is_entropy(po->metric) ? RY_COLUMN_ENTROPY : RY_COLUMN_NORM,
        .order = po->metric == RY_METRIC_SHANNON ? 1.0 : po->n,
        .each_head = po->heads == RY_HEADS_EACH,
        .skip_rows = !po->registers  ? prefix
                     : po->class_row ? 0
                                     : class_rows,
        .count_rows = po->class_row ? class_rows : 0,
        .skip_diagonal = !po->diagonal,
    };
}

void ry_metric_needs(const ry_pruner *p, ry_block_needs *needs)
{
    const ry_metric m = p->policy.metric;
    if (m == RY_METRIC_CLS || m == RY_METRIC_CORRECT || m == RY_METRIC_POOL)
        needs->what |= ry_pruner_row_need(p);
    if (m == RY_METRIC_OWN)
        ry_own_needs(p, needs);
    else if (m != RY_METRIC_CLS && m != RY_METRIC_POOL && m != RY_METRIC_RANDOM)
        needs->what |= RY_NEED_COLUMNS;
    if (needs->what & RY_NEED_COLUMNS) needs->columns = column_spec(p);
}

/* Three words into one generator: each is mixed before the next is added, so that neighbouring
 * images and blocks share nothing. */
ry_rng ry_metric_draw(const ry_pruner *p, const ry_block_view *v)
{
    ry_rng r = ry_rng_new(p->policy.seed);
    r = ry_rng_new(ry_rng_next(&r) + p->image_keys[v->image]);
    return ry_rng_new(ry_rng_next(&r) + v->block);
}

static void score_random(const ry_pruner *p, const ry_block_view *v, float *score)
{
    ry_rng r = ry_metric_draw(p, v);
    memset(score, 0, v->n_prefix * sizeof *score);
    for (uint32_t j = v->n_prefix; j < v->n_tokens; j++)
        score[j] = (float)(ry_rng_next(&r) >> 40) * 0x1p-24f; /* 24 bits: exact, never 1 */
}

static void score_colv(const ry_block_view *v, float *score)
{
    for (uint32_t j = 0; j < v->n_tokens; j++)
        score[j] =
            v->columns[j] * ry_row_length(v->qkv + j * v->qkv_row + 2 * (size_t)v->dim, v->dim);
}

void ry_metric_score(const ry_pruner *p, const ry_block_view *v, float *score)
{
    switch (p->policy.metric) {
    case RY_METRIC_CLS:
    case RY_METRIC_POOL: memcpy(score, v->class_row, v->n_tokens * sizeof *score); break;
    case RY_METRIC_COL:
    case RY_METRIC_CORRECT: memcpy(score, v->columns, v->n_tokens * sizeof *score); break;
    case RY_METRIC_RENYI:
    case RY_METRIC_SHANNON:
        for (uint32_t j = 0; j < v->n_tokens; j++) score[j] = -v->columns[j];
        break;
    case RY_METRIC_COLV: score_colv(v, score); break;
    case RY_METRIC_RANDOM: score_random(p, v, score); break;
    case RY_METRIC_OWN: ry_own_score(p, v, score); break;
    case RY_METRIC_LAST: break; /* only inside a language model */
    case RY_METRIC_TEXT: break; /* of a rule behind the tower */
    }
}

void ry_metric_weights(const ry_pruner *p, const float *score, uint32_t n, float *weight)
{
    const ry_metric m = p->policy.metric;
    double sum = 1e-6;
    for (uint32_t j = 0; j < n; j++) {
        weight[j] = is_entropy(m) ? expf(score[j]) : score[j];
        sum += (double)weight[j];
    }
    if (m == RY_METRIC_CLS || m == RY_METRIC_POOL) return; /* attention: a share already */
    for (uint32_t j = 0; j < n; j++) weight[j] = (float)((double)weight[j] / sum);
}
