/* paper_tables.h - the paper's ViT and DeiT tables as data: models, rows and columns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PAPER_TABLES_H
#define RY_PAPER_TABLES_H

#include <stddef.h>
#include <stdint.h>

enum { RY_PAPER_COLUMNS = 3 }; /* CLS, Ours, Random */

typedef struct ry_paper_model {
    const char *name, *architecture, *weights;
    uint32_t n_blocks;
} ry_paper_model;

typedef struct ry_paper_row {
    uint32_t model;
    double amount;      /* p, or the keep rate */
    const char *layers; /* NULL = dense */
    double gflops;      /* 0 = not printed */
    int is_off;         /* 1 = the printed GFLOPs are not this row's */
    double top1[RY_PAPER_COLUMNS];
} ry_paper_row;

typedef struct ry_paper_table {
    uint32_t number, digits;
    const char *label, *title, *framework;
    const char *methods[RY_PAPER_COLUMNS]; /* NULL = no such column */
    const char *ours;                      /* metric of its policy */
    const char *about_ours, *about_random, *about_gflops, *about_photos;
    const ry_paper_row *rows;
    uint32_t n_rows;
} ry_paper_table;

extern const ry_paper_model ry_paper_models[];
extern const ry_paper_table ry_paper_tables[];
extern const size_t ry_paper_n_tables;

#endif
