/* embed_job.h - what the verbs that embed images share: their options, and from paths to rows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_EMBED_JOB_H
#define RENYI_EMBED_JOB_H

#include "cli/kit/progress.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/shared/prune_options.h"

#include "renyi/gallery.h"

typedef struct embed_arguments {
    const char *model, *cpu, *dtype;
    const char *features; /* NULL = the embedding */
    uint64_t batch, threads, workers, streams, image_size;
    int exif;
    image_overrides over;
    prune_options prune;
    char *policy; /* the policy that `prune` means, as typed; owned */
} embed_arguments;

/* Rows of an option table that fill `a`, an embed_arguments *. */
/* clang-format off */
#define EMBED_OPTION_ROWS(a) \
    {"batch-size", 'b', OPTION_COUNT, &(a)->batch, "N", "images run together (8)", 1, 1024}, \
    {"threads", 't', OPTION_COUNT, &(a)->threads, "N", "threads of the model (physical cores)", 1, 1024}, \
    STREAMS_OPTION_ROW(a), \
    {"workers", 'j', OPTION_COUNT, &(a)->workers, "N", "threads that decode beside the model (cores that -t leaves free)", 1, 1024}, \
    {"features", 0, OPTION_CHOICE, &(a)->features, "class|mean|patches", \
     "rows of the class token, of the mean of the patches or of every patch (what the head reads)", 0, 0}, \
    ENGINE_OPTION_ROWS(a), \
    PRUNE_OPTION_ROWS(&(a)->prune), \
    IMAGE_OPTION_ROWS(a)
/* clang-format on */

void embed_arguments_free(embed_arguments *a);

/* A model that embeds as the command line says. */
typedef struct embed_job {
    const embed_arguments *a;
    const renyi_model *model;
    image_spec spec;
    char policy[RENYI_POLICY_MAX]; /* in full */
    renyi_output output;
    uint32_t dim; /* numbers of an image, in so many rows of length 1 */
    uint32_t n_rows;
} embed_job;

/* Checks the policy and the preprocessing against the model. Returns an exit code. */
int embed_job_open(embed_job *job, const char *verb, const embed_arguments *a,
                   const renyi_model *model, const renyi_model_info *info);
/* Options for the library, with callbacks to `progress`. */
renyi_embed_options embed_job_options(const embed_job *job, work_progress *progress);

/* All images: *rows [files->count, dim], owned, and the names that belong to them; failures are
 * added to `inputs`. Returns an exit code: CLI_OK even if some failed. */
int embed_job_images(const embed_job *job, image_inputs *inputs, float **rows, cli_strings *files);

/* One image, which may be "-", into row [dim] of length 1. -1 and *why (owned) if that fails. */
int embed_job_image(const embed_job *job, const char *path, float *row, char **why);

#endif
