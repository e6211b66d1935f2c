/* paper.h - the paper's tables of Vision Transformers, CLIP and LLaVA, and the same on this
 * machine.What the paper prints is here as figures: tables, rows (a setting), columns (a method). A
 * renyi_paper is a choice of tables for one model: what every cell costs, and the policies to run.
 *
 *   renyi_paper_new -> renyi_paper_policies -> renyi_eval_new, renyi_eval_run -> renyi_paper_take
 *   -> renyi_paper_get_cell, renyi_paper_get_pair -> renyi_paper_free
 *
 * Costs need no weights, so an architecture's name will do. Figures that nobody measured are never
 * filled in. The rest is as in renyi.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_PAPER_H
#define RENYI_PAPER_H

#include "renyi/vqa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what the paper prints ----------------------------------------------------------------- */

/* Columns. */
typedef enum renyi_paper_method {
    RENYI_PAPER_CLS = 0,    /* tokens ranked by class attention */
    RENYI_PAPER_OURS = 1,   /* the paper's own: Col-Ln, or class attention corrected by it */
    RENYI_PAPER_RANDOM = 2, /* chance */
    RENYI_PAPER_MOSAIC = 3  /* not in the paper: our own rule at the same keep rate or p */
} renyi_paper_method;
#define RENYI_PAPER_METHODS 4

typedef struct renyi_paper_table {
    uint32_t number;       /* as the paper counts */
    const char *label;     /* in the paper's LaTeX source */
    const char *title;     /* our words */
    const char *framework; /* "naive" (rows differ in p) or "evit" (in keep rate and layers) */
    const char *methods[RENYI_PAPER_METHODS]; /* names of the columns; NULL = not in this table */
    uint32_t n_rows;
    uint32_t digits; /* decimals of its accuracies */
    /* What is uncertain, for people; each may be NULL. */
    const char *about_ours;   /* parameters that the paper leaves open, and what is used here */
    const char *about_random; /* the same of column Random */
    const char *about_gflops; /* why rows with gflops_are_off disagree with the arithmetic */
    const char *about_photos; /* preprocessing */
} renyi_paper_table;          /* strings are static */

RENYI_API size_t renyi_paper_table_count(void);
RENYI_API void renyi_paper_get_table(size_t i, renyi_paper_table *out);
/* Place of the table with this number. RENYI_ERR_ARG: not one of them, and what it is about (4 and
 * 5 are surveys, 6 and 12 panels, below). */
RENYI_API RENYI_CHECK renyi_status renyi_paper_find_table(uint32_t number, size_t *i,
                                                          renyi_error *err);

typedef struct renyi_paper_row {
    const char *model;        /* as the paper calls it: "ViT-S/16" */
    const char *architecture; /* "vit_small_patch16_224" */
    const char *weights;      /* Hugging Face name of what the paper used */
    uint32_t p;               /* naive: patches removed by each cut */
    double keep;              /* evit: share of the patches kept by each cut */
    const char *layers;       /* "0,3,6", "early" (the first six), "all"; NULL = nothing is cut */
    double gflops;            /* as printed; NaN = the table has none */
    int gflops_are_off;       /* printed, and not what this row costs: see about_gflops */
    double top1[RENYI_PAPER_METHODS]; /* per cent on ImageNet's 50,000; NaN = not in the table */
} renyi_paper_row;                    /* strings are static */

RENYI_API void renyi_paper_get_row(size_t table, uint32_t row, renyi_paper_row *out);

/* The policy of a cell, as text. `out` gets "" where the table has no such column. */
#define RENYI_PAPER_POLICY_MAX 96
RENYI_API void renyi_paper_policy(size_t table, uint32_t row, renyi_paper_method method,
                                  char out[RENYI_PAPER_POLICY_MAX]);

/* ---- tables over data sets ----------------------------------------------------------------- */

/* Tables 4 and 5: CLIP as it is, and inside TCA with class attention or Col-Ln, one data set a row.
 * Columns are the same in both. */
#define RENYI_SURVEY_COLUMNS 5

typedef struct renyi_survey {
    uint32_t number; /* as the paper counts */
    const char *label, *title;
    const char *model, *architecture, *weights; /* as in renyi_paper_row */
    uint32_t n_rows, digits;
    /* What is uncertain, for people; each may be NULL. */
    const char *about_tca;     /* what the paper's keep rate of 0.7 is in TCA's own words */
    const char *about_ours;    /* parameters of the paper's metric */
    const char *about_layers;  /* 0,3,6 */
    const char *about_average; /* averages that are not the mean of their column */
    const char *about_gflops, *about_figures;
} renyi_survey; /* strings are static */

typedef struct renyi_survey_column {
    const char *method; /* "CLIP", "TCA", "Ours" */
    const char *layers; /* NULL = nothing is cut */
    const char *policy; /* of the cuts */
    int is_adapted;     /* with TCA's reservoir, anchors and correction, not cuts alone */
    double gflops;      /* as Table 4 prints them */
} renyi_survey_column;  /* strings are static */

typedef struct renyi_survey_row {
    const char *title;                 /* as the paper calls the data set, or "Average" */
    const char *collection;            /* its name in eval.h; NULL = the average */
    double top1[RENYI_SURVEY_COLUMNS]; /* per cent, as printed */
    int is_off[RENYI_SURVEY_COLUMNS];  /* an average that is not the mean of the column */
} renyi_survey_row;                    /* strings are static */

RENYI_API size_t renyi_survey_count(void);
RENYI_API void renyi_survey_get(size_t i, renyi_survey *out);
RENYI_API void renyi_survey_get_column(size_t column, renyi_survey_column *out);
RENYI_API void renyi_survey_get_row(size_t i, uint32_t row, renyi_survey_row *out);

/* ---- tables of LLaVA ------------------------------------------------------------------------ */

/* Tables 6 and 12: LLaVA-1.5-7B with all visual tokens, and with fewer by PruMerge or VisPruner and
 * by the paper's metric inside them. A row is a benchmark (vqa.h), then Average and Rel. */
#define RENYI_PANEL_COLUMNS 5

typedef struct renyi_panel {
    uint32_t number; /* as the paper counts */
    const char *label, *title;
    const char *model, *weights; /* as in renyi_paper_row */
    uint32_t n_rows;
    /* What is uncertain, for people; each may be NULL. */
    const char *about_tokens;  /* what the numbers of tokens count */
    const char *about_ours;    /* parameters of the paper's metric */
    const char *about_average; /* what it is, and where it is not what is printed */
    const char *about_figures;
} renyi_panel; /* strings are static */

typedef struct renyi_panel_column {
    const char *method; /* "LLaVA-1.5", "PruMerge", "Ours" */
    uint32_t tokens;    /* visual tokens, as printed */
    const char *policy;
} renyi_panel_column; /* strings are static */

typedef enum renyi_panel_kind {
    RENYI_PANEL_TASK = 0,
    RENYI_PANEL_AVERAGE = 1, /* see renyi_panel_average */
    RENYI_PANEL_REL = 2      /* Average in per cent of that of all tokens */
} renyi_panel_kind;

typedef struct renyi_panel_row {
    const char *title; /* as the paper calls it: "SQA-IMG" */
    renyi_panel_kind kind;
    renyi_vqa_task task; /* of RENYI_PANEL_TASK */
    uint32_t digits;
    double figures[RENYI_PANEL_COLUMNS]; /* as printed */
    int is_off[RENYI_PANEL_COLUMNS];     /* Average or Rel: not what follows from the rows above */
} renyi_panel_row;                       /* strings are static */

RENYI_API size_t renyi_panel_count(void);
RENYI_API void renyi_panel_get(size_t i, renyi_panel *out);
RENYI_API void renyi_panel_get_column(size_t i, size_t column, renyi_panel_column *out);
RENYI_API void renyi_panel_get_row(size_t i, uint32_t row, renyi_panel_row *out);
/* The paper's Average of scores by task: their mean, MME's divided by 20; NaN if one is. */
RENYI_API double renyi_panel_average(const double scores[RENYI_VQA_TASKS]);

/* ---- the same for a model ------------------------------------------------------------------ */

typedef struct renyi_paper renyi_paper; /* tables of one model: costs, and accuracies if measured */

typedef struct renyi_paper_options {
    uint32_t struct_size;
    uint32_t n_tables;      /* 0 = all */
    const uint32_t *tables; /* [n_tables] numbers; one given twice counts once */
    uint32_t own_only;      /* 1 = only the parts of tables that are about this very architecture */
    uint32_t no_mosaic;     /* 1 = only the paper's own columns */
    renyi_allocator allocator;
} renyi_paper_options;

/* For an open model, or (m = NULL) for an architecture by its name. A table that is not about this
 * architecture is made for it nevertheless, row by row beside the paper's model that has as many
 * blocks or nearly so. m is not kept. On success *out is owned by the caller (renyi_paper_free). */
RENYI_API RENYI_CHECK renyi_status renyi_paper_new(renyi_paper **out, const renyi_model *m,
                                                   const char *architecture,
                                                   const renyi_paper_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_paper_free(renyi_paper *p);

/* All policies of these tables that suit the model, each once, for renyi_eval_options: many cells
 * share one. Borrowed until renyi_paper_free; *count may be 0. */
RENYI_API const char *const *renyi_paper_policies(const renyi_paper *p, uint32_t *count);

/* Take the results of an evaluation of exactly these policies, complete or not; it may be freed
 * afterwards. */
RENYI_API RENYI_CHECK renyi_status renyi_paper_take(renyi_paper *p, const renyi_eval *e,
                                                    renyi_error *err);

/* Rows of one table that are about one model of the paper. */
typedef struct renyi_paper_part {
    size_t table;
    uint32_t first_row, n_rows;
    int is_own; /* about this architecture; else the paper's figures are another model's */
} renyi_paper_part;
RENYI_API size_t renyi_paper_part_count(const renyi_paper *p);
RENYI_API void renyi_paper_get_part(const renyi_paper *p, size_t part, renyi_paper_part *out);

typedef struct renyi_paper_cell {
    const char *policy; /* in full; as written where it does not suit the model; NULL = no column */
    const char *fault;  /* why the policy does not suit the model; NULL = it does */
    double gmacs;       /* products of one photo, 1e9; NaN with a fault */
    double gmacs_paper; /* counted as the paper does, with 5 for each element of a LayerNorm */
    double paper;       /* top-1 as printed; NaN = none */
    const renyi_eval_result *measured; /* NULL = not measured */
} renyi_paper_cell;                    /* pointers are borrowed until renyi_paper_free */
RENYI_API void renyi_paper_get_cell(const renyi_paper *p, size_t part, uint32_t row,
                                    renyi_paper_method method, renyi_paper_cell *out);

/* Methods of a row on the same photos: Ours against CLS and Random, mosaic against Ours; without
 * Ours, Random against CLS and mosaic against Random. `row` counts from the part's first. */
typedef struct renyi_paper_pair {
    renyi_paper_method a, b; /* pair.difference is the accuracy of b minus that of a */
    int is_measured;
    renyi_eval_pair pair; /* zero unless measured */
} renyi_paper_pair;
#define RENYI_PAPER_PAIRS 3
/* Fills up to RENYI_PAPER_PAIRS of them and returns how many the table has. */
RENYI_API uint32_t renyi_paper_get_pairs(const renyi_paper *p, size_t part, uint32_t row,
                                         renyi_paper_pair out[RENYI_PAPER_PAIRS]);

#ifdef __cplusplus
}
#endif
#endif
