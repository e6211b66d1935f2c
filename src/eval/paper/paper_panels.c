/* paper_panels.c - the figures of the paper's tables of LLaVA: ten benchmarks with fewer visual
 * tokens, as printed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/paper.h"

#include <math.h>

typedef struct figures {
    const char *title;
    renyi_panel_kind kind;
    renyi_vqa_task task;
    double values[RENYI_PANEL_COLUMNS];
} figures;

enum { ROWS = 12 };

#define TASK(title, task) title, RENYI_PANEL_TASK, task
#define AVERAGE "Average", RENYI_PANEL_AVERAGE, RENYI_VQA_POPE
#define REL "Rel", RENYI_PANEL_REL, RENYI_VQA_POPE

/* clang-format off */
static const figures table_6[ROWS] = {
    {TASK("VQAv2", RENYI_VQA_VQAV2), {76.7, 70.8, 75.2, 69.0, 74.6}},
    {TASK("GQA", RENYI_VQA_GQA), {62.0, 55.7, 59.5, 54.3, 58.9}},
    {TASK("VizWiz", RENYI_VQA_VIZWIZ), {54.2, 56.0, 54.4, 55.9, 55.0}},
    {TASK("SQA-IMG", RENYI_VQA_SQA), {69.5, 68.0, 67.9, 67.2, 67.8}},
    {TASK("TextVQA", RENYI_VQA_TEXTVQA), {58.2, 54.7, 55.4, 54.2, 54.7}},
    {TASK("POPE", RENYI_VQA_POPE), {85.9, 73.7, 85.9, 71.3, 85.2}},
    {TASK("MME", RENYI_VQA_MME), {1505, 1364, 1471, 1298, 1434}},
    {TASK("MMB", RENYI_VQA_MMBENCH), {64.6, 61.8, 63.7, 59.3, 63.3}},
    {TASK("MMB-CN", RENYI_VQA_MMBENCH_CN), {58.1, 56.4, 58.5, 53.0, 57.0}},
    {TASK("MM-Vet", RENYI_VQA_MMVET), {29.7, 26.8, 29.2, 26.6, 29.9}},
    {AVERAGE, {63.4, 59.2, 62.3, 57.8, 61.8}},
    {REL, {100.0, 93.4, 98.3, 91.2, 97.5}},
};
static const figures table_12[ROWS] = {
    {TASK("VQAv2", RENYI_VQA_VQAV2), {76.7, 76.0, 76.0, 75.2, 75.2}},
    {TASK("GQA", RENYI_VQA_GQA), {62.0, 60.4, 60.4, 59.4, 59.4}},
    {TASK("VizWiz", RENYI_VQA_VIZWIZ), {54.2, 53.9, 54.0, 54.6, 54.6}},
    {TASK("SQA-IMG", RENYI_VQA_SQA), {69.5, 68.4, 69.1, 68.7, 68.7}},
    {TASK("TextVQA", RENYI_VQA_TEXTVQA), {58.2, 57.7, 57.9, 57.4, 57.8}},
    {TASK("POPE", RENYI_VQA_POPE), {85.9, 86.4, 86.5, 85.7, 86.0}},
    {TASK("MME", RENYI_VQA_MME), {1505, 1454, 1483, 1459, 1482}},
    {TASK("MMB", RENYI_VQA_MMBENCH), {64.6, 63.4, 63.4, 62.3, 63.1}},
    {TASK("MMB-CN", RENYI_VQA_MMBENCH_CN), {58.1, 57.2, 58.0, 57.2, 57.9}},
    {TASK("MM-Vet", RENYI_VQA_MMVET), {29.7, 31.1, 32.1, 30.5, 33.3}},
    {AVERAGE, {63.4, 62.7, 63.2, 62.4, 63.0}},
    {REL, {100.0, 98.9, 99.7, 98.4, 99.4}},
};
/* clang-format on */

static const figures *const rows[] = {table_6, table_12};

#define LLAVA "LLaVA-1.5-7B", "llava-hf/llava-1.5-7b-hf", ROWS
#define ABOUT_AVERAGE                                                                               \
    "the mean of the ten with MME / 20; Rel is it in per cent of that of all tokens. Marked where " \
    "the rows above give another figure: "
#define ABOUT_FIGURES                                                                            \
    "the column of all tokens is not what LLaVA's authors report of these weights (VQAv2 78.5, " \
    "VizWiz 50.0, SQA 66.8, MME 1510.7, MM-Vet 31.1), so some splits or scorers are others"

static const renyi_panel panels[] = {
    {6, "tab:vlm_prumerge", "LLaVA-1.5 with PruMerge", LLAVA,
     "those that PruMerge selects; one more, merged of the rest, reaches the language model",
     "Col-L4 in place of class attention, n as in the published code",
     ABOUT_AVERAGE "57.6 and 90.8", ABOUT_FIGURES},
    {12, "tab:vlm_vispruner", "LLaVA-1.5 with VisPruner", LLAVA, NULL,
     "class attention corrected by Col-L4, n and c as in the published code, which had c=0.8 "
     "first; there the other tokens are looked at in their order in the picture, not by score",
     ABOUT_AVERAGE "99.6",
     ABOUT_FIGURES ". At 192 tokens VQAv2, GQA, VizWiz and SQA are the same in both columns"},
};

#define FULL                     \
    {                            \
        "LLaVA-1.5", 576, "none" \
    }
#define PRUMERGE(n, metric) "prumerge tokens=" n " metric=" metric
#define VISPRUNER(n, metric) "vispruner tokens=" n " important=0.5 metric=" metric

static const renyi_panel_column columns[][RENYI_PANEL_COLUMNS] = {
    {FULL,
     {"PruMerge", 256, PRUMERGE("256", "cls")},
     {"Ours", 256, PRUMERGE("256", "col n=4")},
     {"PruMerge", 192, PRUMERGE("192", "cls")},
     {"Ours", 192, PRUMERGE("192", "col n=4")}},
    {FULL,
     {"VisPruner", 256, VISPRUNER("256", "cls")},
     {"Ours", 256, VISPRUNER("256", "correct n=4 c=0.2 residual=position")},
     {"VisPruner", 192, VISPRUNER("192", "cls")},
     {"Ours", 192, VISPRUNER("192", "correct n=4 c=0.2 residual=position")}},
};

size_t renyi_panel_count(void) { return sizeof panels / sizeof *panels; }

void renyi_panel_get(size_t i, renyi_panel *out) { *out = panels[i]; }

void renyi_panel_get_column(size_t i, size_t column, renyi_panel_column *out)
{
    *out = columns[i][column];
}

double renyi_panel_average(const double scores[RENYI_VQA_TASKS])
{
    double sum = 0;
    for (int i = 0; i < RENYI_VQA_TASKS; i++)
        sum += i == RENYI_VQA_MME ? scores[i] / 20 : scores[i];
    return sum / RENYI_VQA_TASKS;
}

static double average_of(size_t i, size_t column)
{
    double scores[RENYI_VQA_TASKS] = {0};
    for (int row = 0; row < ROWS; row++)
        if (rows[i][row].kind == RENYI_PANEL_TASK)
            scores[rows[i][row].task] = rows[i][row].values[column];
    return renyi_panel_average(scores);
}

/* One decimal is printed. */
static int is_off(size_t i, const figures *f, size_t column)
{
    const double average = average_of(i, column);
    if (f->kind == RENYI_PANEL_TASK) return 0;
    const double wanted =
        f->kind == RENYI_PANEL_AVERAGE ? average : 100 * average / average_of(i, 0);
    return fabs(wanted - f->values[column]) > 0.05 + 1e-9;
}

void renyi_panel_get_row(size_t i, uint32_t row, renyi_panel_row *out)
{
    const figures *f = &rows[i][row];
    *out = (renyi_panel_row){.title = f->title, .kind = f->kind, .task = f->task};
    out->digits = f->kind == RENYI_PANEL_TASK && f->task == RENYI_VQA_MME ? 0 : 1;
    for (size_t c = 0; c < RENYI_PANEL_COLUMNS; c++) {
        out->figures[c] = f->values[c];
        out->is_off[c] = is_off(i, f, c);
    }
}
