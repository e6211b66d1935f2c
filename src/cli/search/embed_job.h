/* embed_job.h - what the verbs that embed photos share: words about model and photos, and the way
 * from paths to rows.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_EMBED_JOB_H
#define RENYI_EMBED_JOB_H

#include "cli/eval/eval_job.h"
#include "cli/kit/progress.h"
#include "cli/shared/image_inputs.h"
#include "cli/shared/model_input.h"
#include "cli/shared/model_path.h"
#include "cli/shared/prune_options.h"

#include "renyi/gallery.h"

typedef struct embed_arguments {
    const char *model, *cpu, *dtype;
    uint64_t batch, threads, workers, image_size;
    int exif;
    photo_overrides over;
    prune_options prune;
    char *policy; /* what they mean, as typed; owned */
} embed_arguments;

/* Rows of an option table that fill `a`, an embed_arguments *. */
/* clang-format off */
#define EMBED_OPTION_ROWS(a) \
    {"batch-size", 'b', OPTION_COUNT, &(a)->batch, "N", "photos run together (8)", 1, 1024}, \
    {"threads", 't', OPTION_COUNT, &(a)->threads, "N", "threads of the model (physical cores)", 1, 1024}, \
    {"workers", 'j', OPTION_COUNT, &(a)->workers, "N", "threads that decode beside the model (cores that -t leaves free)", 1, 1024}, \
    ENGINE_OPTION_ROWS(a), \
    PRUNE_OPTION_ROWS(&(a)->prune), \
    {"image-size", 0, OPTION_COUNT, &(a)->image_size, "N", "input side in pixels (the model's); --img-size too", 1, 16384}, \
    {"img-size", 0, OPTION_COUNT, &(a)->image_size, "N", "the same", 1, 16384}, \
    FIT_OPTION_ROWS(a)
/* clang-format on */

/* The one policy of the command line, judged before anything is opened; an exit code. */
int embed_arguments_check(const char *verb, embed_arguments *a);
void embed_arguments_free(embed_arguments *a);
renyi_options embed_model_options(const embed_arguments *a);

/* A model that embeds as the command line says. */
typedef struct embed_job {
    const embed_arguments *a;
    const renyi_model *model;
    photo_spec spec;
    char policy[RENYI_POLICY_MAX]; /* in full */
    uint32_t dim;
} embed_job;

/* An exit code. */
int embed_job_open(embed_job *job, const char *verb, const embed_arguments *a,
                   const renyi_model *model);
/* For the library, with callbacks to `progress`. */
renyi_embed_options embed_job_options(const embed_job *job, work_progress *progress);

/* All photos: rows [*files, dim], owned, and the names that belong to them; what failed is added to
 * `inputs`. An exit code: CLI_OK even if some failed. */
int embed_job_photos(const embed_job *job, image_inputs *inputs, float **rows, cli_strings *files);

/* One photo, "-" too, into row [dim] of length 1. -1 and *why (owned) if that fails. */
int embed_job_photo(const embed_job *job, const char *path, float *row, char **why);

#endif
