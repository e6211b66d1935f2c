/* embed_job.c - embeds images with one model: many by the library's threads, or one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/search/embed_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void embed_arguments_free(embed_arguments *a)
{
    prune_options_free(&a->prune);
    free(a->policy);
}

static renyi_output output_of(const char *features)
{
    if (!features) return RENYI_OUTPUT_EMBEDDING;
    return strcmp(features, "class") == 0  ? RENYI_OUTPUT_CLASS
           : strcmp(features, "mean") == 0 ? RENYI_OUTPUT_MEAN
                                           : RENYI_OUTPUT_PATCHES;
}

int embed_job_open(embed_job *job, const char *verb, const embed_arguments *a,
                   const renyi_model *model, const renyi_model_info *info)
{
    *job = (embed_job){.a = a, .model = model, .output = output_of(a->features)};
    job->dim = renyi_model_outputs(model, job->output);
    if (!job->dim)
        return options_usage_error(verb,
                                   "--features class: this model has no class token; use mean or "
                                   "patches");
    job->n_rows = job->output == RENYI_OUTPUT_PATCHES ? info->n_patches : 1;
    const int code = prune_check(verb, a->policy, model, job->policy);
    if (code != CLI_OK) return code;
    if (image_spec_make(&job->spec, verb, info, &a->over)) return CLI_USAGE;
    job->spec.apply_exif = a->exif;
    image_spec_note(&job->spec);
    if (strcmp(job->policy, "none") != 0) cli_note("policy: %s", job->policy);
    return CLI_OK;
}

renyi_embed_options embed_job_options(const embed_job *job, work_progress *progress)
{
    const embed_arguments *a = job->a;

    return (renyi_embed_options){.struct_size = sizeof(renyi_embed_options),
                                 .batch = (uint32_t)a->batch,
                                 .n_threads = (uint32_t)a->threads,
                                 .n_workers = (uint32_t)a->workers,
                                 .n_streams = (uint32_t)a->streams,
                                 .apply_exif = a->exif != 0,
                                 .decode = job->spec.decode,
                                 .policy = job->policy,
                                 .preprocess = &job->spec.preprocess,
                                 .user = progress,
                                 .on_failure = work_on_failure,
                                 .progress = work_on_progress,
                                 .on_note = image_note,
                                 .output = job->output};
}

/* ---- one image ----------------------------------------------------------------------------- */

static renyi_status run_image(const embed_job *job, const uint8_t *pixels, float *row,
                              renyi_error *err)
{
    const renyi_session_options o = {.struct_size = sizeof o,
                                     .n_threads = (uint32_t)job->a->threads,
                                     .policy = job->policy,
                                     .output = job->output};
    const size_t side = job->spec.preprocess.size;
    renyi_session *session = NULL;
    float *chw = job->spec.own_normalization ? cli_alloc(3 * side * side, sizeof *chw) : NULL;
    renyi_status st = renyi_session_new(&session, job->model, &o, err);

    if (chw) renyi_image_normalize(chw, pixels, 1, &job->spec.preprocess);
    if (st == RENYI_OK)
        st = chw ? renyi_run_tensor(session, chw, 1, row, err)
                 : renyi_run_pixels(session, pixels, 1, row, err);
    renyi_session_free(session);
    free(chw);
    return st;
}

int embed_job_image(const embed_job *job, const char *path, float *row, char **why)
{
    const size_t side = job->spec.preprocess.size;
    uint8_t *pixels = cli_alloc(3 * side, side);
    renyi_error err = {0};
    int code = image_load(pixels, path, &job->spec, why);

    if (!code && run_image(job, pixels, row, &err) != RENYI_OK) {
        *why = cli_copy(cli_reason(&err));
        code = -1;
    }
    free(pixels);
    if (code) return -1;
    renyi_normalise_rows(row, job->n_rows, job->dim / job->n_rows);
    double square = 0.0;
    for (uint32_t k = 0; k < job->dim; k++) square += (double)row[k] * (double)row[k];
    if (isfinite(square) && square > 0.5) return 0;
    *why = cli_copy("the model answered with values that are not numbers");
    return -1;
}

/* ---- many ---------------------------------------------------------------------------------- */

/* Closes the gaps that failed images left between the rows; lists the files in the same order. */
static void close_gaps(const image_inputs *inputs, const uint8_t *is_done, uint32_t dim,
                       float *rows, cli_strings *files)
{
    for (size_t i = 0; i < inputs->paths.count; i++) {
        if (!is_done[i]) continue;
        memmove(rows + files->count * dim, rows + i * dim, dim * sizeof *rows);
        cli_strings_add(files, cli_copy(inputs->paths.items[i]));
    }
}

/* The library reads files, so stdin is read here. */
static void embed_stdin(const embed_job *job, image_inputs *inputs, size_t i, float *rows,
                        uint8_t *is_done)
{
    char *why = NULL;

    is_done[i] = embed_job_image(job, "-", rows + i * job->dim, &why) == 0;
    if (!is_done[i]) image_inputs_fail(inputs, "-", why);
    free(why);
}

/* How many paths there are from index `from` to the next "-" or the end. */
static size_t files_from(const image_inputs *inputs, size_t from)
{
    size_t n = 0;

    while (from + n < inputs->paths.count && strcmp(inputs->paths.items[from + n], "-") != 0) n++;
    return n;
}

static void take_failures(image_inputs *inputs, work_progress *p)
{
    for (size_t i = 0; i < p->failed.count; i++) {
        cli_strings_add(&inputs->failed, cli_copy(p->failed.items[i]));
        cli_strings_add(&inputs->reasons, cli_copy(p->reasons.items[i]));
        inputs->n_failed++;
    }
    work_progress_free(p);
}

int embed_job_images(const embed_job *job, image_inputs *inputs, float **rows, cli_strings *files)
{
    const size_t n = inputs->paths.count;
    work_progress progress = {.title = "embed"};
    const renyi_embed_options o = embed_job_options(job, &progress);
    uint8_t *is_done = cli_alloc(n + 1, 1);
    renyi_status st = RENYI_OK;
    renyi_error err = {0};

    *rows = cli_alloc(n + 1, job->dim * sizeof **rows);
    catch_interrupt();
    for (size_t i = 0; st == RENYI_OK && i < n;) {
        const size_t count = files_from(inputs, i);
        if (count)
            st = renyi_embed_photos(job->model, (const char *const *)inputs->paths.items + i, count,
                                    &o, *rows + i * job->dim, is_done + i, &err);
        else
            embed_stdin(job, inputs, i, *rows, is_done);
        work_progress_end(&progress);
        i += count ? count : 1;
    }
    take_failures(inputs, &progress);
    close_gaps(inputs, is_done, job->dim, *rows, files);
    free(is_done);
    if (st == RENYI_OK) return CLI_OK;
    if (st != RENYI_ERR_ABORTED) return cli_fail(&err);
    cli_error("interrupted; nothing was written");
    return CLI_FAILED;
}
