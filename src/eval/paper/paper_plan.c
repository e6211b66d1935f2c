/* paper_plan.c - renyi_paper: selects the rows of the paper's tables for one model, computes their
 * cost, lists the policies to run (each once, though many cells share one) and keeps the results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/data/text_lines.h"
#include "eval/paper/paper_tables.h"
#include "renyi/paper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A policy of one or more cells. */
typedef struct entry {
    const char *text;  /* the complete policy; as written if there is a fault */
    const char *fault; /* why the model cannot run it; NULL = it can */
    uint32_t run;      /* index among the policies to run; RENYI_NONE with a fault */
    double gmacs, gmacs_paper;
} entry;

typedef struct part {
    renyi_paper_part shown;
    size_t first; /* of its rows among all rows of the plan */
} part;

struct renyi_paper {
    renyi_allocator al;
    ry_pool pool;       /* texts */
    part *parts;        /* [n_parts] */
    entry *entries;     /* [n_entries], capacity one per cell */
    uint32_t *cells;    /* [n_rows, METHODS] entry of each cell; RENYI_NONE = no such column */
    const char **texts; /* [n_runs] policies to run */
    renyi_eval_result *results; /* [n_runs] */
    renyi_eval_pair *pairs;     /* [n_rows, PAIRS] */
    size_t n_parts, n_entries, n_rows;
    uint32_t n_runs;
    int is_measured;
};

/* The model that the tables are for. */
typedef struct subject {
    const renyi_model *model;
    const char *architecture;
    uint32_t n_blocks;
} subject;

/* ---- parts ---------------------------------------------------------------------------------- */

static uint32_t rows_from(const ry_paper_table *t, uint32_t first)
{
    uint32_t n = 1;
    while (first + n < t->n_rows && t->rows[first + n].model == t->rows[first].model) n++;
    return n;
}

static void add_part(renyi_paper *p, size_t table, uint32_t first, int is_own)
{
    const uint32_t n = rows_from(&ry_paper_tables[table], first);
    p->parts[p->n_parts++] = (part){{table, first, n, is_own}, p->n_rows};
    p->n_rows += n;
}

static uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

/* Adds the part about this architecture. If there is none and own_only is 0, adds the part of the
 * paper's model with the most similar depth, because p patches per block depend on the depth. */
static void add_table(renyi_paper *p, size_t table, const subject *s, int own_only)
{
    const ry_paper_table *t = &ry_paper_tables[table];
    uint32_t nearest = 0, least = UINT32_MAX;
    for (uint32_t row = 0; row < t->n_rows; row += rows_from(t, row)) {
        const ry_paper_model *m = &ry_paper_models[t->rows[row].model];
        if (strcmp(m->architecture, s->architecture) == 0) {
            add_part(p, table, row, 1);
            return;
        }
        if (distance(m->n_blocks, s->n_blocks) >= least) continue;
        least = distance(m->n_blocks, s->n_blocks);
        nearest = row;
    }
    if (!own_only) add_part(p, table, nearest, 0);
}

static int is_wanted(uint32_t number, const renyi_paper_options *o)
{
    for (uint32_t i = 0; i < o->n_tables; i++)
        if (o->tables[i] == number) return 1;
    return o->n_tables == 0;
}

static renyi_status choose_parts(renyi_paper *p, const subject *s, const renyi_paper_options *o,
                                 renyi_error *err)
{
    size_t place;
    for (uint32_t i = 0; i < o->n_tables; i++)
        RY_TRY(renyi_paper_find_table(o->tables[i], &place, err));
    p->parts =
        ry_calloc(&p->al, ry_paper_n_tables, sizeof *p->parts); /* at most one part per table */
    if (!p->parts) return ry_fail_nomem(err, ry_paper_n_tables * sizeof *p->parts);
    for (size_t i = 0; i < ry_paper_n_tables; i++)
        if (is_wanted(ry_paper_tables[i].number, o)) add_table(p, i, s, o->own_only != 0);
    return RENYI_OK;
}

/* ---- cells ---------------------------------------------------------------------------------- */

/* The complete policy and its cost. RENYI_ERR_ARG: the model cannot run this policy. */
static renyi_status compute_cost(entry *out, const subject *s, const char *text,
                                 char full[RENYI_POLICY_MAX], renyi_error *why)
{
    renyi_cost cost;
    *out = (entry){.run = RENYI_NONE, .gmacs = NAN, .gmacs_paper = NAN};
    RY_TRY(renyi_policy_check(text, s->model, full, RENYI_POLICY_MAX, why));
    RY_TRY(renyi_policy_cost(s->model, s->architecture, text, &cost, NULL, 0, why));
    out->gmacs = cost.total.macs * 1e-9;
    out->gmacs_paper = cost.total.macs_paper * 1e-9;
    return RENYI_OK;
}

/* The index of this policy among the entries; adds it if it is new. */
static renyi_status find_entry(renyi_paper *p, const subject *s, const char *text, uint32_t *place,
                               renyi_error *err)
{
    char full[RENYI_POLICY_MAX];
    renyi_error why = {0};
    entry e;
    const renyi_status st = compute_cost(&e, s, text, full, &why);
    if (st != RENYI_OK && st != RENYI_ERR_ARG) return ry_fail(err, st, -1, "%s", why.message);
    const char *shown = st ? text : full;
    for (*place = 0; *place < p->n_entries; ++*place)
        if (strcmp(p->entries[*place].text, shown) == 0) return RENYI_OK;
    e.text = ry_pool_copy(&p->pool, ry_text_of(shown));
    if (st) e.fault = ry_pool_copy(&p->pool, ry_text_of(why.message));
    if (!e.text || (st && !e.fault)) return ry_fail_nomem(err, sizeof full);
    if (!st) {
        e.run = p->n_runs++;
        p->texts[e.run] = e.text;
    }
    p->entries[p->n_entries++] = e;
    return RENYI_OK;
}

static renyi_status fill_row(renyi_paper *p, const subject *s, const part *at, uint32_t row,
                             int no_mosaic, renyi_error *err)
{
    uint32_t *cells = &p->cells[(at->first + row) * RENYI_PAPER_METHODS];
    char text[RENYI_PAPER_POLICY_MAX];
    for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
        cells[m] = RENYI_NONE;
        if (no_mosaic && m == RENYI_PAPER_MOSAIC) continue;
        renyi_paper_policy(at->shown.table, at->shown.first_row + row, (renyi_paper_method)m, text);
        if (*text) RY_TRY(find_entry(p, s, text, &cells[m], err));
    }
    return RENYI_OK;
}

static renyi_status plan_cells(renyi_paper *p, const subject *s, const renyi_paper_options *o,
                               renyi_error *err)
{
    RY_TRY(choose_parts(p, s, o, err));
    const size_t n_cells = p->n_rows * RENYI_PAPER_METHODS; /* a few hundred */
    p->entries = ry_calloc(&p->al, n_cells, sizeof *p->entries);
    p->cells = ry_calloc(&p->al, n_cells, sizeof *p->cells);
    p->texts = ry_calloc(&p->al, n_cells, sizeof *p->texts);
    p->results = ry_calloc(&p->al, n_cells, sizeof *p->results);
    p->pairs = ry_calloc(&p->al, p->n_rows * RENYI_PAPER_PAIRS, sizeof *p->pairs);
    if (!p->entries || !p->cells || !p->texts || !p->results || !p->pairs)
        return ry_fail_nomem(err, n_cells * sizeof *p->results);
    for (size_t i = 0; i < p->n_parts; i++)
        for (uint32_t row = 0; row < p->parts[i].shown.n_rows; row++)
            RY_TRY(fill_row(p, s, &p->parts[i], row, o->no_mosaic != 0, err));
    return RENYI_OK;
}

/* ---- public
 * functions------------------------------------------------------------------------------- */

static renyi_status find_subject(subject *s, const renyi_model *m, const char *architecture,
                                 renyi_error *err)
{
    renyi_model_info info;
    renyi_cost cost, named;
    RY_TRY(renyi_policy_cost(m, architecture, "none", &cost, NULL, 0, err));
    *s = (subject){m, architecture, cost.n_blocks};
    if (!m) return RENYI_OK;
    renyi_model_get_info(m, &info);
    s->architecture = info.architecture;
    /* The same name with other classes or another image size is not the paper's model. */
    if (renyi_policy_cost(NULL, info.architecture, "none", &named, NULL, 0, NULL) != RENYI_OK ||
        fabs(named.total.macs - cost.total.macs) > 0.5)
        s->architecture = "";
    return RENYI_OK;
}

renyi_status renyi_paper_new(renyi_paper **out, const renyi_model *m, const char *architecture,
                             const renyi_paper_options *opt, renyi_error *err)
{
    renyi_paper_options o = {0};
    subject s;
    if (!out || (!m && !architecture))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_paper_new: NULL argument");
    *out = NULL;
    if (opt) {
        if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_paper_options: struct_size %u, this library knows %zu",
                           opt->struct_size, sizeof o);
        memcpy(&o, opt, opt->struct_size);
    }
    if (o.n_tables && !o.tables)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_paper_options: tables is NULL");
    RY_TRY(find_subject(&s, m, architecture, err));
    renyi_paper *p = ry_calloc(&o.allocator, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->al = o.allocator;
    p->pool.al = &p->al;
    const renyi_status st = plan_cells(p, &s, &o, err);
    if (st) {
        renyi_paper_free(p);
        return st;
    }
    *out = p;
    return RENYI_OK;
}

void renyi_paper_free(renyi_paper *p)
{
    if (!p) return;
    const renyi_allocator al = p->al;
    ry_pool_free(&p->pool);
    ry_free(&al, p->parts);
    ry_free(&al, p->entries);
    ry_free(&al, p->cells);
    ry_free(&al, p->texts);
    ry_free(&al, p->results);
    ry_free(&al, p->pairs);
    ry_free(&al, p);
}

/* ---- results -------------------------------------------------------------------------------- */

const char *const *renyi_paper_policies(const renyi_paper *p, uint32_t *count)
{
    *count = p->n_runs;
    return p->texts;
}

size_t renyi_paper_part_count(const renyi_paper *p) { return p->n_parts; }

void renyi_paper_get_part(const renyi_paper *p, size_t i, renyi_paper_part *out)
{
    *out = p->parts[i].shown;
}

/* The entry of a cell, or NULL. */
static const entry *entry_of(const renyi_paper *p, size_t row, renyi_paper_method m)
{
    const uint32_t i = p->cells[row * RENYI_PAPER_METHODS + m];
    return i == RENYI_NONE ? NULL : &p->entries[i];
}

static int is_measured(const renyi_paper *p, const entry *e)
{
    return p->is_measured && e && e->run != RENYI_NONE && p->results[e->run].images;
}

void renyi_paper_get_cell(const renyi_paper *p, size_t i, uint32_t row, renyi_paper_method method,
                          renyi_paper_cell *out)
{
    const part *at = &p->parts[i];
    const entry *e = entry_of(p, at->first + row, method);
    renyi_paper_row printed;
    renyi_paper_get_row(at->shown.table, at->shown.first_row + row, &printed);
    *out = (renyi_paper_cell){.gmacs = NAN, .gmacs_paper = NAN, .paper = printed.top1[method]};
    if (!e) return;
    out->policy = e->text;
    out->fault = e->fault;
    out->gmacs = e->gmacs;
    out->gmacs_paper = e->gmacs_paper;
    if (is_measured(p, e)) out->measured = &p->results[e->run];
}

/* Which columns of a row are compared: [RENYI_PAPER_PAIRS] at most. */
static uint32_t pairs_of(const renyi_paper *p, size_t row, renyi_paper_pair *out)
{
    static const renyi_paper_method with_ours[][2] = {{RENYI_PAPER_CLS, RENYI_PAPER_OURS},
                                                      {RENYI_PAPER_RANDOM, RENYI_PAPER_OURS},
                                                      {RENYI_PAPER_OURS, RENYI_PAPER_MOSAIC}};
    static const renyi_paper_method without[][2] = {{RENYI_PAPER_CLS, RENYI_PAPER_RANDOM},
                                                    {RENYI_PAPER_RANDOM, RENYI_PAPER_MOSAIC}};
    const int has_ours = entry_of(p, row, RENYI_PAPER_OURS) != NULL;
    const renyi_paper_method(*const list)[2] = has_ours ? with_ours : without;
    uint32_t n = 0;
    for (uint32_t i = 0; i < (has_ours ? 3u : 2u); i++)
        if (entry_of(p, row, list[i][0]) && entry_of(p, row, list[i][1]))
            out[n++] = (renyi_paper_pair){.a = list[i][0], .b = list[i][1]};
    return n;
}

uint32_t renyi_paper_get_pairs(const renyi_paper *p, size_t i, uint32_t row,
                               renyi_paper_pair out[RENYI_PAPER_PAIRS])
{
    const size_t at = p->parts[i].first + row;
    const uint32_t n = pairs_of(p, at, out);
    for (uint32_t k = 0; k < n; k++) {
        const entry *a = entry_of(p, at, out[k].a), *b = entry_of(p, at, out[k].b);
        if (a == b || !is_measured(p, a) || !is_measured(p, b)) continue; /* the same policy */
        out[k].is_measured = 1;
        out[k].pair = p->pairs[at * RENYI_PAPER_PAIRS + k];
    }
    return n;
}

static void copy_pairs(renyi_paper *p, size_t row, const renyi_eval *e)
{
    renyi_paper_pair list[RENYI_PAPER_PAIRS];
    const uint32_t n = pairs_of(p, row, list);
    for (uint32_t k = 0; k < n; k++) {
        const entry *a = entry_of(p, row, list[k].a), *b = entry_of(p, row, list[k].b);
        if (a == b || a->fault || b->fault) continue;
        renyi_eval_get_pair(e, a->run, b->run, &p->pairs[row * RENYI_PAPER_PAIRS + k]);
    }
}

renyi_status renyi_paper_take(renyi_paper *p, const renyi_eval *e, renyi_error *err)
{
    if (!p || !e) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_paper_take: NULL argument");
    if (renyi_eval_policy_count(e) != p->n_runs)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_paper_take: the evaluation has %u policies, the tables %u",
                       renyi_eval_policy_count(e), p->n_runs);
    p->is_measured = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        renyi_eval_result *r = &p->results[i];
        renyi_eval_get_result(e, i, r);
        if (strcmp(r->policy, p->texts[i]) != 0)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_paper_take: policy %u of the evaluation is '%.100s', of the "
                           "tables '%.100s'",
                           i, r->policy, p->texts[i]);
        r->policy = p->texts[i]; /* the evaluation's text is freed with it */
    }
    p->is_measured = 1;
    for (size_t row = 0; row < p->n_rows; row++) copy_pairs(p, row, e);
    return RENYI_OK;
}
