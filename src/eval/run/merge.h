/* merge.h - the samples of several logs as one evaluation (renyi_eval_merge).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MERGE_H
#define RY_MERGE_H

#include "eval/data/text_lines.h"
#include "eval/run/sample_log.h"

/* A line of a log. */
typedef struct ry_merge_sample {
    const char *file, *error; /* in the pool; error NULL = an answer */
    uint64_t index, place, line;
    uint32_t log;    /* which log it is from */
    uint32_t policy; /* RY_ALL_POLICIES for an unreadable image */
    uint32_t label;
    int is_dropped; /* a repetition, or a failure of an image that was read after all */
    double gmacs, gmacs_executed, gmacs_second;
    ry_answer answer;
} ry_merge_sample;

/* An image that has at least one sample. */
typedef struct ry_merge_image {
    size_t first;    /* its first sample */
    size_t answered; /* its first sample that is an answer; else the last one */
    uint64_t place;  /* ascending */
    int is_complete; /* every policy answered or failed */
} ry_merge_image;

typedef struct ry_merged {
    renyi_merge_options o;
    ry_pool pool;
    const char *const *logs;  /* borrowed while reading */
    uint32_t log;             /* the one that is being read */
    ry_log_run run;           /* model in the pool; shard and n_shards as in the first line */
    ry_merge_sample *samples; /* after sorting by place, policy, log and line */
    size_t n_samples, sample_capacity;
    const char **policies; /* in the pool, in the order of their first lines */
    size_t n_policies, policy_capacity;
    ry_merge_image *images;
    size_t n_images;
    uint64_t n_missing, n_repeated;
} ry_merged;

/* Adds the lines of log m->log. */
renyi_status ry_merged_read(ry_merged *m, const char *bytes, size_t size,
                            renyi_error *err) RENYI_CHECK;
/* After the last log: sorts the samples, drops repetitions, and fails if two contradict. */
renyi_status ry_merged_sort(ry_merged *m, const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Sets file, index and label of image i, nothing else. */
void ry_merged_get_image(const ry_merged *m, size_t i, renyi_dataset_image *out);

void ry_merged_free(ry_merged *m, const renyi_allocator *al); /* NULL is fine */

#endif
