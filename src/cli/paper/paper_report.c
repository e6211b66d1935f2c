/* paper_report.c - renyi paper for people: the paper's figures beside measured ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/paper/paper_report.h"

#include "cli/kit/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 100 };

/* ---- for all kinds of tables ----------------------------------------------------------------- */

void paper_put_title(uint32_t number, const char *title, int is_markdown)
{
    if (is_markdown)
        printf("## Table %u: %s\n", number, title);
    else
        printf("%sTable %u: %s%s\n", cli_bold(stdout), number, title, cli_plain(stdout));
}

void paper_put_heading(char *line, int is_markdown)
{
    puts("");
    fputs(is_markdown ? "**" : "", stdout);
    cli_put_clean(stdout, line);
    puts(is_markdown ? "**" : "");
    free(line);
}

void paper_put_note(const char *mark, const char *text, int is_markdown)
{
    if (text) text_put_wrapped(mark, text, is_markdown ? SIZE_MAX : WIDTH);
    if (text && is_markdown) puts(""); /* each note is a paragraph */
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_blocks(const void *x, const void *y)
{
    const paper_block *a = x, *b = y;

    if (a->shape.table != b->shape.table) return a->shape.table < b->shape.table ? -1 : 1;
    if (a->shape.is_own != b->shape.is_own) return a->shape.is_own ? -1 : 1;
    if (a->shape.is_own && a->shape.first_row != b->shape.first_row)
        return a->shape.first_row < b->shape.first_row ? -1 : 1;
    return a->subject < b->subject ? -1 : a->subject > b->subject; /* as they were given */
}

paper_block *paper_blocks(const paper_subjects *list, size_t *count)
{
    paper_block *blocks = NULL;

    *count = 0;
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < renyi_paper_part_count(list->items[i].paper); k++) {
            blocks = cli_grow(blocks, *count + 1, sizeof *blocks);
            paper_block *b = &blocks[(*count)++];
            *b = (paper_block){.subject = &list->items[i], .part = k};
            renyi_paper_get_part(b->subject->paper, k, &b->shape);
            renyi_paper_get_table(b->shape.table, &b->table);
        }
    if (blocks) qsort(blocks, *count, sizeof *blocks, compare_blocks);
    return blocks;
}

const char *paper_cell_state(const paper_block *b, const renyi_paper_cell *cell)
{
    if (cell->measured) return paper_state_name(PAPER_RUN);
    if (cell->fault) return "not fit";
    return paper_state_name(b->subject->state == PAPER_RUN ? PAPER_NOT_RUN : b->subject->state);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void put_number(text_table *t, int digits, double value, const char *mark)
{
    if (isfinite(value))
        text_table_cell(t, "%.*f%s", digits, value, mark);
    else
        text_table_cell(t, "-%s", mark);
}

/* "71.4 ±3.9": the interval's half width. "!": the paper's figure for this model is outside. */
static void put_accuracy(text_table *t, const paper_block *b, const renyi_paper_cell *cell)
{
    const renyi_eval_result *r = cell->measured;

    if (!r) {
        text_table_cell(t, "%s", paper_cell_state(b, cell));
        return;
    }
    const int is_outside = b->shape.is_own && isfinite(cell->paper) &&
                           (cell->paper < r->top1_range.low || cell->paper > r->top1_range.high);
    text_table_cell(t, "%.*f ±%.1f%s", (int)b->table.digits, r->top1,
                    0.5 * (r->top1_range.high - r->top1_range.low), is_outside ? "!" : "");
}

static int is_naive(const paper_block *b) { return strcmp(b->table.framework, "naive") == 0; }

static void setting_columns(text_table *t, const paper_block *b)
{
    text_table_column(t, TEXT_LEFT, is_naive(b) ? "p" : "keep");
    if (!is_naive(b)) text_table_column(t, TEXT_LEFT, "layers");
}

static void put_setting(text_table *t, const paper_block *b, const renyi_paper_row *r)
{
    if (is_naive(b)) {
        text_table_cell(t, "%u", r->p);
        return;
    }
    text_table_cell(t, "%.1f", r->keep);
    text_table_cell(t, "%s", r->layers ? r->layers : "-");
}

/* Does the block have this column? All rows have the same ones. */
static int has_column(const paper_block *b, renyi_paper_method m)
{
    renyi_paper_cell cell;

    renyi_paper_get_cell(b->subject->paper, b->part, 0, m, &cell);
    return cell.policy != NULL;
}

/* ---- accuracies ------------------------------------------------------------------------------ */

static const char *const short_names[RENYI_PAPER_METHODS] = {"CLS", "Ours", "Random", "mosaic"};

static void accuracy_columns(text_table *t, const paper_block *b, int is_markdown)
{
    static const char *const marks[RENYI_PAPER_MOSAIC] = {"", " a", " b"};

    setting_columns(t, b);
    text_table_column(t, TEXT_RIGHT, "GFLOPs");
    text_table_column(t, TEXT_CLOSE, "here");
    for (int m = 0; m < RENYI_PAPER_MOSAIC; m++) {
        if (!has_column(b, (renyi_paper_method)m)) continue;
        text_table_column(t, TEXT_RIGHT, "%s%s", short_names[m], marks[m]);
        text_table_column(t, TEXT_CLOSE, "here");
    }
    if (!has_column(b, RENYI_PAPER_MOSAIC)) return;
    if (!is_markdown) text_table_column(t, TEXT_LEFT, "|");
    text_table_column(t, TEXT_CLOSE, "mosaic d");
}

static void put_row(text_table *t, const paper_block *b, uint32_t row, int is_markdown)
{
    renyi_paper_row r;
    renyi_paper_cell cell;

    renyi_paper_get_row(b->shape.table, b->shape.first_row + row, &r);
    put_setting(t, b, &r);
    put_number(t, 1, r.gflops, r.gflops_are_off ? " c" : "");
    renyi_paper_get_cell(b->subject->paper, b->part, row, RENYI_PAPER_CLS, &cell);
    put_number(t, 2, cell.gmacs_paper, "");
    for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
        if (!has_column(b, (renyi_paper_method)m)) continue;
        renyi_paper_get_cell(b->subject->paper, b->part, row, (renyi_paper_method)m, &cell);
        if (m != RENYI_PAPER_MOSAIC)
            put_number(t, (int)b->table.digits, cell.paper, "");
        else if (!is_markdown)
            text_table_cell(t, "|");
        put_accuracy(t, b, &cell);
    }
}

/* ---- image by image -------------------------------------------------------------------------- */

static void put_pair(text_table *t, const renyi_paper_pair *p)
{
    char p_value[32];

    if (!p->is_measured) {
        text_table_cell(t, "-");
        text_table_cell(t, "-");
        return;
    }
    snprintf(p_value, sizeof p_value, p->pair.p_value < 1e-4 ? "%.0e" : "%.4f", p->pair.p_value);
    text_table_cell(t, "%+.2f", p->pair.difference);
    text_table_cell(t, "%s%s", p_value, p->pair.is_noise ? " noise" : "");
}

static void put_pairs(const paper_block *b, int is_markdown)
{
    renyi_paper_pair pairs[RENYI_PAPER_PAIRS];
    renyi_paper_row r;
    text_table t = {0};

    setting_columns(&t, b);
    uint32_t n = renyi_paper_get_pairs(b->subject->paper, b->part, 0, pairs);
    for (uint32_t i = 0; i < n; i++) {
        text_table_column(&t, TEXT_RIGHT, "%s-%s", short_names[pairs[i].b],
                          short_names[pairs[i].a]);
        text_table_column(&t, TEXT_LEFT, "p-value");
    }
    for (uint32_t row = 0; row < b->shape.n_rows; row++) {
        renyi_paper_get_row(b->shape.table, b->shape.first_row + row, &r);
        if (!r.layers) continue; /* dense: nothing to compare */
        put_setting(&t, b, &r);
        n = renyi_paper_get_pairs(b->subject->paper, b->part, row, pairs);
        for (uint32_t i = 0; i < n; i++) put_pair(&t, &pairs[i]);
    }
    puts(is_markdown ? "\nPhoto by photo, points:\n" : "\n  photo by photo, points");
    text_table_put(&t, is_markdown, 2);
}

/* ---- a block -----------------------------------------------------------------------------------
 */

static void put_heading(const paper_block *b, int is_markdown)
{
    const paper_subject *s = b->subject;
    renyi_paper_row r;
    char *line;

    renyi_paper_get_row(b->shape.table, b->shape.first_row, &r);
    if (!s->name)
        line = cli_format("%s: %s (renyi %s %s)", r.model, paper_state_name(s->state),
                          s->state == PAPER_NO_WEIGHTS ? "pull" : "paper -m", r.weights);
    else
        line = cli_format("%s%s%s, %llu photo%s", s->title,
                          b->shape.is_own ? " as the paper's " : " beside the paper's ", r.model,
                          (unsigned long long)s->n_images, s->n_images == 1 ? "" : "s");
    paper_put_heading(line, is_markdown);
    if (is_markdown) puts("");
}

static void put_block(const paper_block *b, int is_markdown)
{
    text_table t = {0};

    put_heading(b, is_markdown);
    accuracy_columns(&t, b, is_markdown);
    for (uint32_t row = 0; row < b->shape.n_rows; row++) put_row(&t, b, row, is_markdown);
    text_table_put(&t, is_markdown, 2);
    if (b->subject->state == PAPER_RUN) put_pairs(b, is_markdown);
}

/* ---- a table -----------------------------------------------------------------------------------
 */

static void put_notes(const paper_block *b, int is_markdown)
{
    const renyi_paper_table *t = &b->table;

    puts("");
    paper_put_note("a Ours: ", t->about_ours, is_markdown);
    paper_put_note("b Random: ", t->about_random, is_markdown);
    paper_put_note("c GFLOPs: ", t->about_gflops, is_markdown);
    if (has_column(b, RENYI_PAPER_MOSAIC))
        paper_put_note(
            "d mosaic: ",
            is_naive(b)
                ? "our own rule, not in the paper, at the same p and GFLOPs"
                : "our own rule, not in the paper, at the same keep rate; slightly fewer GFLOPs, "
                  "as it fuses no token",
            is_markdown);
    paper_put_note("Photos: ", t->about_photos, is_markdown);
}

void paper_report_text(const paper_block *blocks, size_t count, int is_markdown)
{
    for (size_t i = 0; i < count; i++) {
        const paper_block *b = &blocks[i];
        if (i == 0 || b[-1].shape.table != b->shape.table)
            paper_put_title(b->table.number, b->table.title, is_markdown);
        put_block(b, is_markdown);
        if (i + 1 < count && b[1].shape.table == b->shape.table) continue;
        put_notes(b, is_markdown);
        puts("");
    }
}

int paper_is_measured(const paper_block *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (blocks[i].subject->state == PAPER_RUN) return 1;
    return 0;
}

void paper_report_legend(int is_measured, int is_markdown)
{
    paper_put_note(
        "",
        "A column is the paper's, 'here' behind it this machine's. GFLOPs are counted as the "
        "paper does: multiply-accumulates, and 5 for each value that a LayerNorm sees. "
        "Accuracies are top-1 in per cent.",
        is_markdown);
    if (is_measured)
        paper_put_note(
            "",
            "± is half of Wilson's 95 % interval; '!': the paper's figure for the same model "
            "lies outside of it. p-value: McNemar's exact test; 'noise': 0.05 or more, these "
            "photos do not tell the two apart.",
            is_markdown);
}
