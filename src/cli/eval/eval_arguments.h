/* eval_arguments.h - what renyi eval was asked to do.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_EVAL_ARGUMENTS_H
#define RENYI_EVAL_ARGUMENTS_H

#include "cli/eval/zeroshot_adapt.h"
#include "cli/eval/zeroshot_head.h"
#include "cli/shared/images.h"
#include "cli/shared/prune_options.h"

#include "renyi/eval.h"

/* The words of --masks (eval_masks.h). */
typedef struct masks_arguments {
    const char *folder, *metrics, *kind, *border; /* folder NULL: no masks */
    option_reals keep;
} masks_arguments;

typedef struct eval_arguments {
    const char *model, *data, *cpu, *dtype;
    const char *ground_truth, *class_map, *real_labels, *valid_labels, *shard;
    const char *results_file, *results_format, *log_samples;
    uint64_t batch, threads, workers, image_size, limit, seed, log_freq;
    uint32_t shard_index, n_shards; /* from `shard`; 0 shards = all */
    int json, exif, shuffle, resume, per_class;
    masks_arguments masks;
    image_overrides over;
    prune_options prune;
    cli_strings policies;               /* what they mean, as typed */
    const zeroshot_arguments *zeroshot; /* NULL: classes are the model's */
} eval_arguments;

/* Open model and data, run, report. Returns an exit code. */
int eval_execute(const eval_arguments *a);

/* What is run and reported. */
typedef struct eval_subject {
    const char *verb;
    const eval_arguments *a;
    const renyi_model *model;
    const renyi_dataset *data;
    const zeroshot_words *words; /* NULL: not zero-shot */
    const adaptation *adapt;     /* likewise */
} eval_subject;

/* The part of it behind the opening. */
int eval_evaluate(const eval_subject *s);

#endif
