/* vqa_arguments.h - what renyi vqa was asked to do.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_VQA_ARGUMENTS_H
#define RENYI_VQA_ARGUMENTS_H

#include "cli/llava/llava_options.h"

#include "renyi/vqa.h"

#define VQA_NO_CHUNK UINT64_MAX

typedef struct vqa_arguments {
    lvlm_arguments lvlm; /* its policy is not used: there may be several */
    const char *task_word, *questions, *annotations, *images;
    const char *answers, *submission, *shard;
    cli_strings scored;   /* --score: files of answers; nothing is asked then */
    cli_strings policies; /* what the words about pruning mean, as typed */
    uint64_t limit, num_chunks, chunk_idx, max_new_tokens, seed, log_freq;
    option_reals temperature, top_p, reported;
    int json, resume;
    /* what the words mean */
    renyi_vqa_task task;
    renyi_vqa_task_info info;
    uint32_t shard_index, n_shards;
} vqa_arguments;

/* Ask or read, score, report. Returns an exit code. */
int vqa_execute(const vqa_arguments *a);

#endif
