/* paper.c - bodies of paper.h that only look things up: tables, rows, the policy of a cell.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/paper.h"
#include "base/status.h"
#include "eval/paper/paper_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

size_t renyi_paper_table_count(void) { return ry_paper_n_tables; }

void renyi_paper_get_table(size_t i, renyi_paper_table *out)
{
    const ry_paper_table *t = &ry_paper_tables[i];
    *out =
        (renyi_paper_table){.number = t->number,
                            .label = t->label,
                            .title = t->title,
                            .framework = t->framework,
                            .methods = {t->methods[RENYI_PAPER_CLS], t->methods[RENYI_PAPER_OURS],
                                        t->methods[RENYI_PAPER_RANDOM], "mosaic"},
                            .n_rows = t->n_rows,
                            .digits = t->digits,
                            .about_ours = t->about_ours,
                            .about_random = t->about_random,
                            .about_gflops = t->about_gflops,
                            .about_photos = t->about_photos};
}

static const char *other_subject(uint32_t number)
{
    switch (number) {
    case 4:
    case 5: return "about CLIP and TCA";
    case 6: return "about LLaVA and PruMerge";
    case 12: return "about LLaVA and VisPruner";
    case 13: return "about weights that were fine-tuned with pruning, which are not published";
    case 16: return "the recipe of fine-tuning";
    default: return NULL;
    }
}

renyi_status renyi_paper_find_table(uint32_t number, size_t *i, renyi_error *err)
{
    if (!i) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_paper_find_table: NULL argument");
    for (*i = 0; *i < ry_paper_n_tables; ++*i)
        if (ry_paper_tables[*i].number == number) return RENYI_OK;
    const char *subject = other_subject(number);
    if (subject)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "Table %u is %s, not one of the ViT and DeiT tables: 1, 2, 3, 7, 8, 9, 10, "
            "11, 14, 15; 4 and 5 are those of CLIP on data sets, 6 and 12 those of LLaVA",
            number, subject);
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "the paper has no Table %u; its ViT and DeiT tables are 1, 2, 3, 7, 8, 9, 10, "
                   "11, 14, 15, those of CLIP 4 and 5, of LLaVA 6 and 12",
                   number);
}

static int is_naive(const ry_paper_table *t) { return strcmp(t->framework, "naive") == 0; }

void renyi_paper_get_row(size_t table, uint32_t row, renyi_paper_row *out)
{
    const ry_paper_table *t = &ry_paper_tables[table];
    const ry_paper_row *r = &t->rows[row];
    const ry_paper_model *m = &ry_paper_models[r->model];
    *out = (renyi_paper_row){.model = m->name,
                             .architecture = m->architecture,
                             .weights = m->weights,
                             .p = is_naive(t) ? (uint32_t)r->amount : 0,
                             .keep = is_naive(t) ? 1.0 : r->amount,
                             .layers = r->layers,
                             .gflops = r->gflops > 0 ? r->gflops : NAN,
                             .gflops_are_off = r->is_off};
    for (int i = 0; i < RY_PAPER_COLUMNS; i++) out->top1[i] = t->methods[i] ? r->top1[i] : NAN;
    out->top1[RENYI_PAPER_MOSAIC] = NAN;
}

/* What ranks the tokens; NULL = the table has no such column. */
static const char *metric_words(const ry_paper_table *t, renyi_paper_method method)
{
    if (!t->methods[method]) return NULL;
    if (method == RENYI_PAPER_OURS) return t->ours;
    return method == RENYI_PAPER_CLS ? "metric=cls" : "metric=random";
}

void renyi_paper_policy(size_t table, uint32_t row, renyi_paper_method method,
                        char out[RENYI_PAPER_POLICY_MAX])
{
    const ry_paper_table *t = &ry_paper_tables[table];
    const ry_paper_row *r = &t->rows[row];
    const char *amount = is_naive(t) ? "p" : "keep";
    const char *words = method == RENYI_PAPER_MOSAIC ? "" : metric_words(t, method);
    if (!words)
        *out = 0;
    else if (!r->layers)
        snprintf(out, RENYI_PAPER_POLICY_MAX, "none");
    else if (method == RENYI_PAPER_MOSAIC)
        snprintf(out, RENYI_PAPER_POLICY_MAX, "mosaic %s=%g layers=%s", amount, r->amount,
                 r->layers);
    else
        snprintf(out, RENYI_PAPER_POLICY_MAX, "%s %s=%g layers=%s %s%s", t->framework, amount,
                 r->amount, r->layers, words, is_naive(t) ? "" : " fuse");
}
