/* merge.h - samples of several logs put together: what stands behind renyi_eval_merge.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MERGE_H
#define RY_MERGE_H

#include "eval/data/text_lines.h"
#include "eval/run/sample_log.h"

/* A line of a log. */
typedef struct ry_merge_sample {
    const char *file, *error; /* in the pool; error NULL = an answer */
    uint64_t index, place, line;
    uint32_t log;    /* which one */
    uint32_t policy; /* RY_ALL_POLICIES in a line of an unreadable photo */
    uint32_t label;
    int is_dropped; /* said before */
    double gmacs, gmacs_executed;
    ry_answer answer;
} ry_merge_sample;

/* A photo of which something is known. */
typedef struct ry_merge_photo {
    size_t first, answered; /* its first sample, and the first that is an answer, if any is */
    uint64_t place;         /* ascending */
    int is_complete;        /* all policies answered or failed */
} ry_merge_photo;

typedef struct ry_merged {
    renyi_merge_options o;
    ry_pool pool;
    const char *const *logs;  /* borrowed while reading */
    uint32_t log;             /* that is being read */
    ry_log_run run;           /* model in the pool; shard and n_shards as in the first line */
    ry_merge_sample *samples; /* in the end by place, policy, log, line */
    size_t n_samples, sample_capacity;
    const char **policies; /* in the pool, in the order of their first lines */
    size_t n_policies, policy_capacity;
    ry_merge_photo *photos;
    size_t n_photos;
    uint64_t n_missing, n_repeated;
} ry_merged;

/* Reading: one log after the other, then the order and what contradicts. */
renyi_status ry_merged_read(ry_merged *m, const char *bytes, size_t size,
                            renyi_error *err) RENYI_CHECK;
renyi_status ry_merged_sort(ry_merged *m, const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* File, index and label of photo i; the rest is left alone. */
void ry_merged_get_photo(const ry_merged *m, size_t i, renyi_dataset_image *out);

void ry_merged_free(ry_merged *m, const renyi_allocator *al); /* NULL is fine */

#endif
