/* vqa_model.h - a LLaVA that answers the questions of benchmarks, under one policy after another.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_VQA_MODEL_H
#define RENYI_VQA_MODEL_H

#include "cli/llava/llava_options.h"

#include "renyi/vqa.h"

/* Weights, and conversations with one policy. */
typedef struct vqa_model {
    const llava_arguments *llava;
    const sampling_arguments *sampling;
    uint64_t max_new_tokens; /* of an answer; set by the caller for each benchmark */
    renyi_lvlm *weights;
    renyi_conversation *conversation; /* about images */
    renyi_conversation *blind;        /* for questions without one; NULL until there is one */
    int is_shown;                     /* conversation has the image of the question before */
    int is_new;                       /* nothing was answered about that image yet */
    char *name;                       /* model_id; owned */
    const char *policy;               /* in full; the conversation's */
    renyi_vqa_cost cost;              /* of the last answer */
} vqa_model;

/* `verb` is for messages. Returns an exit code; vqa_model_close either way. */
int vqa_model_open(vqa_model *m, const char *verb, const llava_arguments *llava,
                   const sampling_arguments *sampling);
void vqa_model_close(vqa_model *m);

/* The policy of the questions from now on. Returns an exit code. */
int vqa_model_choose_policy(vqa_model *m, const char *verb, const char *policy);

/* What answers depend on besides model and policy; owned by the caller. */
char *vqa_model_condition(const vqa_model *m);

/* For renyi_vqa_run_options; `user` is the vqa_model. */
renyi_status vqa_model_ask(void *user, const renyi_vqa_request *request, renyi_vqa_reply *reply,
                           renyi_error *err);

#endif
