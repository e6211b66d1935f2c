/* ask_job.h - renyi ask: its options, the model in use, and the output of answers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_ASK_JOB_H
#define RENYI_ASK_JOB_H

#include "cli/llava/llava_options.h"

typedef struct ask_arguments {
    llava_arguments llava;
    sampling_arguments sampling;
    const char *question; /* NULL with prompt ids, or when it comes from stdin */
    const char *prompt_ids;
    int32_t *ids; /* [n_ids] of prompt_ids; owned */
    size_t n_ids;
    uint64_t max_context;
    int chat, json, stats, ignore_eos;
    int is_plain; /* the model is a plain Llama: no images, and the text is continued */
} ask_arguments;

typedef struct ask_job {
    const ask_arguments *a;
    const renyi_lvlm *m;
    renyi_conversation *conversation;
    renyi_visual_info visual; /* zeros for a plain Llama */
    renyi_lm_info lm;
    size_t n_images; /* if more than one, answers begin with the file's name */
} ask_job;

/* One answer, while it is generated and when it is complete. file may be NULL (no image). */
typedef struct ask_output {
    const ask_job *job;
    const char *file, *question;
    int is_begun; /* something was printed */
} ask_output;

int ask_on_text(void *user, const char *text, size_t size); /* `user` is the ask_output */
void ask_put_answer(ask_output *o, const renyi_answer *answer);
void ask_put_failure(const ask_job *job, const char *file, const char *reason); /* with --json */

#endif
