/* vqa_asking.h - one run: the questions of a benchmark asked to a LLaVA with one policy.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_VQA_ASKING_H
#define RENYI_VQA_ASKING_H

#include "cli/kit/progress.h"
#include "cli/llava/vqa_model.h"

/* What several runs share. Set the first four fields, and `progress.title`. */
typedef struct vqa_asking {
    const char *verb, *images; /* images NULL = they are in the questions */
    int resume, allow_outside;
    uint64_t log_freq;      /* questions from one note to the next, without a bar; 0 = no notes */
    const uint8_t *wanted;  /* of renyi_vqa_run_options */
    const char *resume_how; /* option that a run without `path` could have been resumed with;
                               NULL = it cannot be resumed */
    /* results */
    int is_interrupted;
    work_progress progress; /* also lists what failed; work_progress_free */
    uint64_t next_line;
} vqa_asking;

/* Asks with the policy of m. path: file of the answers; NULL = none. *answers may be set even after
 * a failure, with what was answered; the caller frees them. Returns an exit code. */
int vqa_ask_questions(vqa_asking *x, vqa_model *m, const renyi_vqa *questions, const char *path,
                      renyi_vqa_answers **answers);

/* Is there the folder of the images? Without it every question would be reported. 0 after
 * reporting; NULL is fine. */
int vqa_has_images(const char *folder);

/* FOLDER/policy.SUFFIX; owned. */
char *vqa_policy_path(const char *folder, const char *policy, const char *suffix);

#endif
