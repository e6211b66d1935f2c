/* vit_rows.h - how many rows every step of every block has, known before an image is seen: the
 * arithmetic of plans and of costs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_ROWS_H
#define RY_VIT_ROWS_H

#include "model/common/hook.h"
#include "model/vit/vit.h"

/* In what order a block does its work: whatever is not needed is not computed. */
typedef enum ry_block_way {
    RY_WAY_WHOLE,  /* every row through everything */
    RY_WAY_PREFIX, /* the last block, when only the head reads it: all keys, but prefix rows only */
    RY_WAY_LISTED, /* decide by the class row alone, then attend only for the rows that stay */
    RY_WAY_BEFORE, /* attend for all, decide, reduce, then project what stays */
    RY_WAY_AFTER,  /* attend and project all, decide by the new rows, reduce */
    RY_WAY_END     /* decide by attention, but reduce after the MLP */
} ry_block_way;

typedef struct ry_block_rows {
    ry_block_way way;
    ry_block_needs needs;
    int decide;                    /* ask the hook in this block */
    int sized;                     /* tokens that enter may stand for several patches */
    int anchored;                  /* an anchor takes part in attention; of a plan: it may */
    uint32_t in;                   /* tokens that enter */
    uint32_t attend, project, mlp; /* rows of each step */
    uint32_t out;                  /* tokens that leave */
} ry_block_rows;

typedef struct ry_rows_options {
    const ry_token_hook *hook; /* NULL = dense */
    int all_rows;              /* finish every row of the last block */
} ry_rows_options;

/* A block of a plan as one image goes through it, when an adaptive cut before it left only `in`
 * tokens, or one in it leaves `after`: at most those of the plan. Without a cut `after` is idle. */
void ry_block_rows_fit(ry_block_rows *r, uint32_t n_prefix, uint32_t in, uint32_t after);

/* rows: [config->n_blocks] */
void ry_vit_rows(ry_block_rows *rows, const ry_vit_config *config, uint32_t n_patches,
                 const ry_rows_options *opt);

/* Multiply-accumulates of the matrix products of one block, as it is really run. */
double ry_block_rows_macs(const ry_block_rows *r, const ry_vit_config *config);

#endif
