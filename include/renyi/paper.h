/* paper.h - the paper's tables for ViT, CLIP, LLaVA and fine-tuning, and those of ViT for one
 * model.
 *
 * Call order: renyi_paper_new -> renyi_paper_policies -> renyi_eval_new, renyi_eval_run ->
 * renyi_paper_take -> renyi_paper_get_cell, renyi_paper_get_pairs -> renyi_paper_free.
 *
 * A table has rows (settings) and columns (methods). Costs need no weights, so the name of an
 * architecture is enough. Values that were not measured are NaN or NULL. The rules of renyi.h
 * apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_PAPER_H
#define RENYI_PAPER_H

#include "renyi/vqa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tables of Vision Transformers ----------------------------------------------------------- */

/* The values as printed in the paper. Call order: renyi_paper_find_table -> renyi_paper_get_table
 * -> renyi_paper_get_row, renyi_paper_policy. Nothing needs to be freed. */

/* Columns of a table. */
typedef enum renyi_paper_method {
    RENYI_PAPER_CLS = 0,    /* tokens ranked by class attention */
    RENYI_PAPER_OURS = 1,   /* the paper's metric: Col-Ln, or class attention corrected by it */
    RENYI_PAPER_RANDOM = 2, /* tokens ranked at random */
    RENYI_PAPER_MOSAIC = 3  /* not in the paper: renyi's own rule at the same keep rate or p */
} renyi_paper_method;
#define RENYI_PAPER_METHODS 4

typedef struct renyi_paper_table {
    uint32_t number;       /* number in the paper */
    const char *label;     /* label in the paper's LaTeX source */
    const char *title;     /* title used here */
    const char *framework; /* "naive" (rows differ in p) or "evit" (rows differ in keep rate and
                              layers) */
    const char *methods[RENYI_PAPER_METHODS]; /* column names; NULL = not in this table */
    uint32_t n_rows;
    uint32_t digits; /* decimals of the accuracies */
    /* Texts about what is uncertain, for display; each may be NULL. */
    const char *about_ours;   /* parameters that the paper does not give, and what is used here */
    const char *about_random; /* the same for column Random */
    const char *about_gflops; /* why rows with gflops_are_off differ from the computed cost */
    const char *about_photos; /* preprocessing */
} renyi_paper_table;          /* strings are static */

RENYI_API size_t renyi_paper_table_count(void);
RENYI_API void renyi_paper_get_table(size_t i, renyi_paper_table *out);
/* Index of the table with this number. RENYI_ERR_ARG: another number; the message says what that
 * table is (4 and 5 are surveys, 6 and 12 panels, 13 and 16 fine-tuning, see below). */
RENYI_API RENYI_CHECK renyi_status renyi_paper_find_table(uint32_t number, size_t *i,
                                                          renyi_error *err);

typedef struct renyi_paper_row {
    const char *model;                /* name in the paper: "ViT-S/16" */
    const char *architecture;         /* "vit_small_patch16_224" */
    const char *weights;              /* Hugging Face name of the weights used in the paper */
    uint32_t p;                       /* naive: patches removed per cut */
    double keep;                      /* evit: share of the patches kept per cut */
    const char *layers;               /* "0,3,6", "early" (the first six), "all"; NULL = no cuts */
    double gflops;                    /* as printed; NaN = the table has none */
    int gflops_are_off;               /* 1 = the printed value is not the cost of this row, see
                                         about_gflops */
    double top1[RENYI_PAPER_METHODS]; /* percent on ImageNet's 50,000 images; NaN = not in the
                                         table */
} renyi_paper_row;                    /* strings are static */

RENYI_API void renyi_paper_get_row(size_t table, uint32_t row, renyi_paper_row *out);

/* Writes the policy of a cell; "" if the table has no such column. */
#define RENYI_PAPER_POLICY_MAX 96
RENYI_API void renyi_paper_policy(size_t table, uint32_t row, renyi_paper_method method,
                                  char out[RENYI_PAPER_POLICY_MAX]);

/* ---- tables over datasets -------------------------------------------------------------------- */

/* Tables 4 and 5: CLIP, and CLIP with TCA by class attention or Col-Ln; one dataset per row. Both
 * tables have the same columns. Call order: renyi_survey_get -> renyi_survey_get_column,
 * renyi_survey_get_row. */
#define RENYI_SURVEY_COLUMNS 5

typedef struct renyi_survey {
    uint32_t number; /* number in the paper */
    const char *label, *title;
    const char *model, *architecture, *weights; /* as in renyi_paper_row */
    uint32_t n_rows, digits;
    /* Texts about what is uncertain, for display; each may be NULL. */
    const char *about_tca;     /* what the paper's keep rate of 0.7 is in terms of TCA */
    const char *about_ours;    /* parameters of the paper's metric */
    const char *about_layers;  /* the layers 0,3,6 */
    const char *about_average; /* averages that are not the mean of their column */
    const char *about_gflops, *about_figures;
} renyi_survey; /* strings are static */

typedef struct renyi_survey_column {
    const char *method; /* "CLIP", "TCA", "Ours" */
    const char *layers; /* NULL = no cuts */
    const char *policy; /* pruning policy */
    int is_adapted;     /* 1 = with TCA's reservoir, anchors and correction; 0 = cuts only */
    double gflops;      /* as printed in Table 4 */
} renyi_survey_column;  /* strings are static */

typedef struct renyi_survey_row {
    const char *title;                 /* dataset name in the paper, or "Average" */
    const char *collection;            /* its name in renyi_collection_find (eval.h); NULL = the
                                          average */
    double top1[RENYI_SURVEY_COLUMNS]; /* percent, as printed */
    int is_off[RENYI_SURVEY_COLUMNS];  /* 1 = an average that is not the mean of the column */
} renyi_survey_row;                    /* strings are static */

RENYI_API size_t renyi_survey_count(void);
RENYI_API void renyi_survey_get(size_t i, renyi_survey *out);
RENYI_API void renyi_survey_get_column(size_t column, renyi_survey_column *out);
RENYI_API void renyi_survey_get_row(size_t i, uint32_t row, renyi_survey_row *out);

/* ---- tables of LLaVA ------------------------------------------------------------------------- */

/* Tables 6 and 12: LLaVA-1.5-7B with all visual tokens, and with fewer by PruMerge or VisPruner,
 * with their metrics or the paper's. One benchmark (vqa.h) per row, then Average and Rel. Call
 * order: renyi_panel_get -> renyi_panel_get_column, renyi_panel_get_row. */
#define RENYI_PANEL_COLUMNS 5

typedef struct renyi_panel {
    uint32_t number; /* number in the paper */
    const char *label, *title;
    const char *model, *weights; /* as in renyi_paper_row */
    uint32_t n_rows;
    /* Texts about what is uncertain, for display; each may be NULL. */
    const char *about_tokens;  /* what the token numbers count */
    const char *about_ours;    /* parameters of the paper's metric */
    const char *about_average; /* its definition, and where the printed value differs */
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
    RENYI_PANEL_REL = 2      /* Average in percent of the Average with all tokens */
} renyi_panel_kind;

typedef struct renyi_panel_row {
    const char *title; /* name in the paper: "SQA-IMG" */
    renyi_panel_kind kind;
    renyi_vqa_task task; /* for RENYI_PANEL_TASK */
    uint32_t digits;
    double figures[RENYI_PANEL_COLUMNS]; /* as printed */
    int is_off[RENYI_PANEL_COLUMNS];     /* 1 = Average or Rel that does not follow from the rows
                                            above */
} renyi_panel_row;                       /* strings are static */

RENYI_API size_t renyi_panel_count(void);
RENYI_API void renyi_panel_get(size_t i, renyi_panel *out);
RENYI_API void renyi_panel_get_column(size_t i, size_t column, renyi_panel_column *out);
RENYI_API void renyi_panel_get_row(size_t i, uint32_t row, renyi_panel_row *out);
/* The paper's Average of scores [RENYI_VQA_TASKS]: the mean of its ten benchmarks, with MME divided
 * by 20; NaN if one of them is NaN. */
RENYI_API double renyi_panel_average(const double scores[RENYI_VQA_TASKS]);

/* ---- fine-tuning ----------------------------------------------------------------------------- */

/* Table 13: ViT-S after 30 epochs of training with cuts. It has the form of the ViT tables, but its
 * accuracies belong to trained weights: they come from runs of train.h. Call order: renyi_tuned_get
 * -> renyi_tuned_get_row, renyi_tuned_policy. */
#define RENYI_TUNED_TABLE 13
#define RENYI_TUNED_EPOCHS 30
RENYI_API void renyi_tuned_get(renyi_paper_table *out);
RENYI_API void renyi_tuned_get_row(uint32_t row, renyi_paper_row *out);
RENYI_API void renyi_tuned_policy(uint32_t row, renyi_paper_method method,
                                  char out[RENYI_PAPER_POLICY_MAX]);

/* Table 16: the recipe of these runs, one item per row. */
#define RENYI_HYPER_TABLE 16
typedef struct renyi_hyper {
    const char *item;    /* as printed: "Total Batch Size" */
    const char *value;   /* as printed: "2048" */
    const char *setting; /* its name in train.h; NULL = not a setting there */
    const char *key;     /* setting "prune": key of the policy; else NULL */
    const char *about;   /* what the paper does not say, for display; may be NULL */
} renyi_hyper;           /* strings are static */
RENYI_API size_t renyi_hyper_count(void);
RENYI_API void renyi_hyper_get(size_t i, renyi_hyper *out);

/* ---- tables for one model -------------------------------------------------------------------- */

/* Selected tables for one model or architecture: the cost of every cell, and the accuracy if
 * measured. Call order: see the top of this file. */

typedef struct renyi_paper renyi_paper; /* costs and measured accuracies */

typedef struct renyi_paper_options {
    uint32_t struct_size;
    uint32_t n_tables;      /* 0 = all */
    const uint32_t *tables; /* [n_tables] table numbers; duplicates count once */
    uint32_t own_only;      /* 1 = only parts of tables about exactly this architecture */
    uint32_t no_mosaic;     /* 1 = only the paper's columns */
    renyi_allocator allocator;
} renyi_paper_options;

/* For an open model or, if m is NULL, for an architecture by name. A table about other
 * architectures is computed for this one too, next to the paper's model with the nearest number of
 * blocks. m is not needed after the call. On success *out is owned by the caller
 * (renyi_paper_free). */
RENYI_API RENYI_CHECK renyi_status renyi_paper_new(renyi_paper **out, const renyi_model *m,
                                                   const char *architecture,
                                                   const renyi_paper_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_paper_free(renyi_paper *p);

/* All policies of these tables that fit the model, without duplicates, for renyi_eval_options.
 * Borrowed until renyi_paper_free. *count may be 0. */
RENYI_API const char *const *renyi_paper_policies(const renyi_paper *p, uint32_t *count);

/* Takes the results of an evaluation of exactly these policies, complete or not. `e` may be freed
 * afterwards. */
RENYI_API RENYI_CHECK renyi_status renyi_paper_take(renyi_paper *p, const renyi_eval *e,
                                                    renyi_error *err);

/* Rows of one table that are about one model of the paper. */
typedef struct renyi_paper_part {
    size_t table;
    uint32_t first_row, n_rows;
    int is_own; /* 1 = about this architecture; 0 = the paper's values are for another model */
} renyi_paper_part;
RENYI_API size_t renyi_paper_part_count(const renyi_paper *p);
RENYI_API void renyi_paper_get_part(const renyi_paper *p, size_t part, renyi_paper_part *out);

typedef struct renyi_paper_cell {
    const char *policy; /* with all defaults; as written if it does not fit the model; NULL = no
                           such column */
    const char *fault;  /* why the policy does not fit the model; NULL = it fits */
    double gmacs;       /* products per image, 1e9; NaN if the policy does not fit */
    double gmacs_paper; /* counted as in the paper: plus 5 per element of LayerNorm */
    double paper;       /* top-1 as printed; NaN = none */
    const renyi_eval_result *measured; /* NULL = not measured */
} renyi_paper_cell;                    /* pointers are borrowed until renyi_paper_free */
RENYI_API void renyi_paper_get_cell(const renyi_paper *p, size_t part, uint32_t row,
                                    renyi_paper_method method, renyi_paper_cell *out);

/* Two methods of a row compared on the same images: Ours with CLS and Random, mosaic with Ours.
 * Without Ours: Random with CLS, mosaic with Random. */
typedef struct renyi_paper_pair {
    renyi_paper_method a, b; /* pair.difference is the accuracy of b minus the accuracy of a */
    int is_measured;
    renyi_eval_pair pair; /* zero if not measured */
} renyi_paper_pair;
#define RENYI_PAPER_PAIRS 3
/* Fills up to RENYI_PAPER_PAIRS pairs and returns their number. `row` counts from the first row of
 * the part. */
RENYI_API uint32_t renyi_paper_get_pairs(const renyi_paper *p, size_t part, uint32_t row,
                                         renyi_paper_pair out[RENYI_PAPER_PAIRS]);

#ifdef __cplusplus
}
#endif
#endif
