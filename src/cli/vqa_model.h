/* vqa_model.h - the model that answers the questions of renyi vqa.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLI_VQA_MODEL_H
#define RENYI_CLI_VQA_MODEL_H

#include "vqa_arguments.h"

/* Weights, and what answers with one policy. */
typedef struct vqa_model {
    renyi_vqa_ask ask;
    void *user;      /* its first argument */
    char *name;      /* model_id; owned */
    char *policy;    /* in full; owned */
    char *condition; /* what else answers depend on; owned */
} vqa_model;

/* Returns CLI_OK, or the exit code after an error was reported. The caller closes in any case. */
int vqa_model_open(vqa_model *m, const vqa_arguments *a);
/* The same model with the policy of this number among a->policies. */
int vqa_model_choose(vqa_model *m, const vqa_arguments *a, size_t policy);
void vqa_model_close(vqa_model *m);

#endif
