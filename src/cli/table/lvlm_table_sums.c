/* lvlm_table_sums.c - what renyi table adds up over benchmarks: percent of the full model, paired
 * tests, costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/lvlm_table.h"

#include "renyi/eval.h"

#include <math.h>
#include <string.h>

double lvlm_table_percent(const lvlm_table *t, size_t row, size_t task)
{
    const double full = lvlm_table_cell(t, 0, task)->value,
                 value = lvlm_table_cell(t, row, task)->value;

    return full > 0 ? 100 * value / full : NAN;
}

double lvlm_table_mean_percent(const lvlm_table *t, size_t row)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < t->n_tasks; i++) {
        const double percent = lvlm_table_percent(t, row, i);
        if (!isfinite(percent)) continue;
        sum += percent;
        n++;
    }
    return n ? sum / (double)n : NAN;
}

size_t lvlm_table_find(const lvlm_table *t, const char *method, uint64_t tokens)
{
    for (size_t i = 1; i < t->n_rows; i++)
        if (t->rows[i].tokens == tokens && strcmp(lvlm_table_title(&t->rows[i]), method) == 0)
            return i;
    return t->n_rows;
}

void lvlm_table_compare(const lvlm_table *t, size_t a, size_t b, table_pair *out)
{
    double sum = 0;

    *out = (table_pair){.difference = NAN, .p_value = NAN};
    for (size_t i = 0; i < t->n_tasks; i++) {
        const table_cell *x = lvlm_table_cell(t, a, i), *y = lvlm_table_cell(t, b, i);
        renyi_vqa_pair p;
        if (!x->answers || !y->answers) continue;
        renyi_vqa_compare(x->answers, y->answers, &p);
        if (!p.n) continue;
        out->n += p.n;
        out->better_a += p.better_a;
        out->better_b += p.better_b;
        sum += (double)p.n * p.difference;
    }
    if (!out->n) return;
    out->difference = sum / (double)out->n;
    out->p_value = renyi_stats_mcnemar(out->better_a, out->better_b);
    out->is_noise = out->p_value >= 0.05;
}

/* A running mean of numbers that may be unknown, weighted by answers. */
static void add_mean(double *mean, double *weight, double value, double n)
{
    if (!isfinite(value) || n <= 0) return;
    *weight += n;
    *mean = *weight == n ? value : *mean + (value - *mean) * n / *weight;
}

void lvlm_table_costs(const lvlm_table *t, size_t row, table_cost *out)
{
    enum { COSTS = sizeof(table_cost) / sizeof(double) };
    double mean[COSTS], weight[COSTS] = {0}, value[COSTS];

    for (int i = 0; i < COSTS; i++) mean[i] = NAN;
    for (size_t i = 0; i < t->n_tasks; i++) {
        const table_cell *cell = lvlm_table_cell(t, row, i);
        const table_cost here = {cell->info.visual_tokens, cell->info.cost};
        if (!cell->answers) continue;
        memcpy(value, &here, sizeof value);
        for (int k = 0; k < COSTS; k++)
            add_mean(&mean[k], &weight[k], value[k], (double)cell->info.n_answered);
    }
    memcpy(out, mean, sizeof mean);
}
