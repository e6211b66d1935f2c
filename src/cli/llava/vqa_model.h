/* vqa_model.h - the LLaVA that answers the questions of renyi vqa.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_VQA_MODEL_H
#define RENYI_VQA_MODEL_H

#include "cli/llava/vqa_arguments.h"

/* Weights, and conversations with one policy. */
typedef struct vqa_model {
    const vqa_arguments *a;
    renyi_lvlm *weights;
    renyi_conversation *talk;  /* about photos */
    renyi_conversation *blind; /* of questions without one; NULL until there is any */
    int is_shown;              /* talk has the photo of the question before */
    char *name;                /* model_id; owned */
    char *condition;           /* what answers depend on beside model and policy; owned */
    const char *policy;        /* in full; talk's */
} vqa_model;

/* CLI_OK, or the exit code after an error was reported. The caller closes in any case. */
int vqa_model_open(vqa_model *m, const vqa_arguments *a);
/* From now on with this policy. Returns an exit code likewise. */
int vqa_model_choose(vqa_model *m, const char *policy);
/* For renyi_vqa_run_options; `user` is the vqa_model. */
renyi_status vqa_model_ask(void *user, const renyi_vqa_request *request, renyi_vqa_reply *reply,
                           renyi_error *err);
void vqa_model_close(vqa_model *m);

#endif
