/* flops_report.h - the cost of policies as tables or JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_FLOPS_REPORT_H
#define RENYI_FLOPS_REPORT_H

#include "renyi/renyi.h"

typedef struct flops_result {
    char policy[RENYI_POLICY_MAX]; /* in full */
    renyi_cost cost;
    renyi_layer_cost *layers; /* [cost.n_blocks], owned */
} flops_result;

typedef struct flops_report {
    const char *architecture;
    flops_result dense;
    flops_result *results; /* [count] */
    size_t count;
} flops_report;

/* One policy layer by layer; several compared. */
void flops_put_text(const flops_report *report);
void flops_put_json(const flops_report *report);

#endif
