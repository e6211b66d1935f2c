/* paper_results.c - the tables of renyi paper for programs: the JSON document and the CSV file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_report.h"
#include "cli/kit/output.h"
#include "cli/paper/paper_report.h"

#include <string.h>

const char *paper_method_name(renyi_paper_method m)
{
    static const char *const names[RENYI_PAPER_METHODS] = {"cls", "ours", "random", "mosaic"};
    return names[m];
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *cell_json(const paper_block *b, renyi_paper_method m, const renyi_paper_cell *c)
{
    json_t *cell =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:o}", "method", paper_method_name(m),
                  "name", b->table.methods[m], "policy", c->policy, "gmacs", json_number(c->gmacs),
                  "gmacs_paper", json_number(c->gmacs_paper), "paper_top1", json_number(c->paper),
                  "state", paper_cell_state(b, c), "fault", json_text(c->fault));
    const renyi_eval_result *r = c->measured;

    if (!r) return cell;
    json_object_set_new(cell, "images", json_integer((json_int_t)r->images));
    json_object_set_new(cell, "failed", json_integer((json_int_t)r->failed));
    json_object_set_new(cell, "top1", json_number(r->top1));
    json_object_set_new(cell, "top1_range",
                        json_pack("[f, f]", r->top1_range.low, r->top1_range.high));
    json_object_set_new(cell, "top5", json_number(r->top5));
    json_object_set_new(cell, "loss", json_number(r->loss));
    json_object_set_new(cell, "ms_model", json_number(r->ms_model));
    return cell;
}

static json_t *pairs_json(const paper_block *b, uint32_t row)
{
    renyi_paper_pair pairs[RENYI_PAPER_PAIRS];
    const uint32_t n = renyi_paper_get_pairs(b->subject->paper, b->part, row, pairs);
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++) {
        const renyi_eval_pair *p = &pairs[i].pair;
        if (!pairs[i].is_measured) continue;
        json_array_append_new(list, eval_pair_json(json_string(paper_method_name(pairs[i].a)),
                                                   json_string(paper_method_name(pairs[i].b)), p));
    }
    return list;
}

static json_t *row_json(const paper_block *b, uint32_t row)
{
    renyi_paper_row r;
    json_t *cells = json_array();

    renyi_paper_get_row(b->shape.table, b->shape.first_row + row, &r);
    for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
        renyi_paper_cell c;
        renyi_paper_get_cell(b->subject->paper, b->part, row, (renyi_paper_method)m, &c);
        if (c.policy) json_array_append_new(cells, cell_json(b, (renyi_paper_method)m, &c));
    }
    json_t *out = json_object();
    if (strcmp(b->table.framework, "naive") == 0)
        json_object_set_new(out, "p", json_integer(r.p));
    else
        json_object_set_new(out, "keep", json_number(r.keep));
    json_object_set_new(out, "layers", json_text(r.layers));
    json_object_set_new(out, "paper_gflops", json_number(r.gflops));
    json_object_set_new(out, "paper_gflops_are_off", json_boolean(r.gflops_are_off));
    json_object_set_new(out, "cells", cells);
    json_object_set_new(out, "pairs", pairs_json(b, row));
    return out;
}

static json_t *block_json(const paper_block *b)
{
    renyi_paper_row r;
    json_t *rows = json_array();

    renyi_paper_get_row(b->shape.table, b->shape.first_row, &r);
    for (uint32_t row = 0; row < b->shape.n_rows; row++)
        json_array_append_new(rows, row_json(b, row));
    json_t *block = json_pack(
        "{s:s, s:s, s:b, s:o, s:o, s:o, s:s, s:I, s:o}", "paper_model", r.model, "weights",
        r.weights, "is_papers_model", b->shape.is_own, "model", json_text(b->subject->name),
        "architecture", json_text(b->subject->architecture), "dtype", json_text(b->subject->dtype),
        "state", paper_state_name(b->subject->state), "photos", (json_int_t)b->subject->n_images,
        "rows", rows);
    if (block && b->subject->run)
        eval_run_json(block, b->subject->run, &b->subject->data, &b->subject->times);
    return block;
}

static json_t *table_json(const paper_block *blocks, size_t count)
{
    const renyi_paper_table *t = &blocks->table;
    json_t *list = json_array();

    for (size_t i = 0; i < count && blocks[i].shape.table == blocks->shape.table; i++)
        json_array_append_new(list, block_json(&blocks[i]));
    return json_pack("{s:i, s:s, s:s, s:s, s:{s:o, s:o, s:o, s:o}, s:o}", "table", (int)t->number,
                     "label", t->label, "title", t->title, "framework", t->framework, "notes",
                     "ours", json_text(t->about_ours), "random", json_text(t->about_random),
                     "gflops", json_text(t->about_gflops), "photos", json_text(t->about_photos),
                     "blocks", list);
}

static json_t *failed_json(const paper_subjects *list)
{
    json_t *failed = json_array();

    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < list->items[i].failed_files.count; k++)
            json_array_append_new(failed, json_text(list->items[i].failed_files.items[k]));
    return failed;
}

json_t *paper_report_json(const paper_subjects *list, const paper_block *blocks, size_t count)
{
    json_t *tables = json_array();

    for (size_t i = 0; i < count; i++)
        if (i == 0 || blocks[i - 1].shape.table != blocks[i].shape.table)
            json_array_append_new(tables, table_json(&blocks[i], count - i));
    return json_pack("{s:o, s:b, s:o}", "tables", tables, "interrupted", list->is_interrupted,
                     "failed", failed_json(list));
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void csv_table_cell(FILE *f, const paper_block *b, uint32_t row, renyi_paper_method m)
{
    renyi_paper_cell c;
    renyi_paper_row r;

    renyi_paper_get_cell(b->subject->paper, b->part, row, m, &c);
    if (!c.policy) return;
    renyi_paper_get_row(b->shape.table, b->shape.first_row + row, &r);
    fprintf(f, "%u,", b->table.number);
    csv_cell(f, r.model);
    fprintf(f, ",%s,", paper_method_name(m));
    csv_cell(f, c.policy);
    csv_real(f, 1, r.gflops);
    csv_real(f, (int)b->table.digits, c.paper);
    putc(',', f);
    csv_cell(f, b->subject->name ? b->subject->title : "");
    putc(',', f);
    csv_cell(f, b->subject->architecture);
    fprintf(f, ",%s", paper_cell_state(b, &c));
    csv_real(f, 6, c.gmacs);
    csv_real(f, 6, c.gmacs_paper);
    if (c.measured) {
        fprintf(f, ",%llu", (unsigned long long)c.measured->images);
        csv_real(f, 3, c.measured->top1);
        csv_real(f, 3, c.measured->top1_range.low);
        csv_real(f, 3, c.measured->top1_range.high);
    } else {
        fputs(",,,,", f);
    }
    fputs(",\n", f);
}

void paper_report_csv(FILE *f, const paper_block *blocks, size_t count)
{
    fputs("table,paper_model,method,policy,paper_gflops,paper_top1,model,architecture,state,gmacs,"
          "gmacs_paper,images,top1,top1_low,top1_high,data_set\n",
          f);
    for (size_t i = 0; i < count; i++)
        for (uint32_t row = 0; row < blocks[i].shape.n_rows; row++)
            for (int m = 0; m < RENYI_PAPER_METHODS; m++)
                csv_table_cell(f, &blocks[i], row, (renyi_paper_method)m);
}
