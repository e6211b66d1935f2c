/* ask_job.h - what renyi ask is told, and how its answers come out.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_ASK_JOB_H
#define RENYI_ASK_JOB_H

#include "cli/llava/llava_options.h"
#include "cli/shared/images.h"

typedef struct ask_arguments {
    lvlm_arguments lvlm;
    const char *question; /* NULL with prompt ids, or when it comes from stdin */
    const char *prompt_ids;
    int32_t *ids; /* [n_ids] of prompt_ids; owned */
    size_t n_ids;
    uint64_t max_new_tokens, max_context, seed;
    option_reals temperature, top_p;
    int chat, json, stats, ignore_eos;
} ask_arguments;

typedef struct ask_job {
    const ask_arguments *a;
    const renyi_lvlm *m;
    renyi_conversation *talk;
    renyi_visual_info visual;
    renyi_lm_info lm;
    size_t n_photos; /* more than one: answers have names */
} ask_job;

/* One answer: as it comes, and when it is complete. file may be NULL (no photo). */
typedef struct ask_output {
    const ask_job *job;
    const char *file, *question;
    int is_begun; /* something was printed */
} ask_output;

int ask_on_text(void *user, const char *text, size_t size); /* `user` is the ask_output */
void ask_put_answer(ask_output *o, const renyi_answer *answer);
void ask_put_failure(const ask_job *job, const char *file, const char *reason); /* with --json */

/* Photos one by one, or none at all; questions from stdin about one photo. An exit code. */
int ask_photos(ask_job *job, image_inputs *inputs);
int ask_chat(ask_job *job, image_inputs *inputs);

#endif
