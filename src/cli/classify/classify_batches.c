/* classify_batches.c - see classify_batches.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/classify/classify_batches.h"

#include "cli/kit/progress.h"

#include <stdlib.h>

/* The batch that is being filled. */
typedef struct batch {
    uint8_t *pixels;    /* [max_batch, size, size, 3] */
    float *chw;         /* [max_batch, 3, size, size], only for a normalisation of our own */
    float *logits;      /* [max_batch, n_classes] */
    class_score *top;   /* [top_k] */
    const char **files; /* [max_batch] */
    double *ms_decode;  /* [max_batch] */
    uint32_t count;
} batch;

static void batch_alloc(batch *b, const batch_job *job)
{
    const size_t size = job->spec->preprocess.size, values = 3 * size * size;

    b->pixels = cli_alloc(job->max_batch, values);
    b->chw = job->spec->own_normalising ? cli_alloc(job->max_batch, values * sizeof(float)) : NULL;
    b->logits = cli_alloc(job->max_batch, job->n_classes * sizeof(float));
    b->top = cli_alloc(job->top_k, sizeof *b->top);
    b->files = cli_alloc(job->max_batch, sizeof *b->files);
    b->ms_decode = cli_alloc(job->max_batch, sizeof *b->ms_decode);
    b->count = 0;
}

static void batch_free(batch *b)
{
    free(b->pixels);
    free(b->chw);
    free(b->logits);
    free(b->top);
    free(b->files);
    free(b->ms_decode);
}

static renyi_status batch_run(batch *b, const batch_job *job, renyi_error *err)
{
    if (!b->chw) return renyi_run_pixels(job->session, b->pixels, b->count, b->logits, err);
    photo_normalise(b->chw, b->pixels, b->count, &job->spec->preprocess);
    return renyi_run_tensor(job->session, b->chw, b->count, b->logits, err);
}

/* Run what was collected and report it. Returns how many were classified, -1 if the run failed. */
static int64_t batch_flush(batch *b, const batch_job *job, image_inputs *inputs,
                           classify_report *report)
{
    renyi_error err = {0};
    const double start = cli_now_ms();
    int64_t done = 0;

    if (!b->count) return 0;
    if (batch_run(b, job, &err) != RENYI_OK) {
        cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
        return -1;
    }
    const double ms = (cli_now_ms() - start) / b->count;
    for (uint32_t i = 0; i < b->count; i++) {
        const float *logits = b->logits + (size_t)i * job->n_classes;
        const uint32_t n_top = classify_top(b->top, job->top_k, logits, job->n_classes);
        if (!n_top) {
            image_inputs_fail(inputs, b->files[i],
                              "the model answered with values that are not numbers");
            continue;
        }
        if (job->trace && trace_photo(job->trace, b->files[i], job->session, i)) return -1;
        report_photo(report, &(photo_result){b->files[i], b->top, n_top, ms, b->ms_decode[i]});
        done++;
    }
    b->count = 0;
    return done;
}

static void batch_add(batch *b, const batch_job *job, image_inputs *inputs, const char *path)
{
    const size_t size = job->spec->preprocess.size;
    const double start = cli_now_ms();
    char *why = NULL;

    if (photo_load(b->pixels + b->count * 3 * size * size, path, job->spec, &why)) {
        image_inputs_fail(inputs, path, why);
        free(why);
        return;
    }
    b->files[b->count] = path;
    b->ms_decode[b->count++] = cli_now_ms() - start;
}

int64_t classify_batches(const batch_job *job, image_inputs *inputs, classify_report *report)
{
    const size_t n_paths = inputs->paths.count;
    progress_bar bar;
    int64_t total = 0;
    batch b;

    batch_alloc(&b, job);
    /* Lines for people on a terminal are progress enough. */
    progress_start(&bar, "classify", n_paths, report->results != NULL);
    for (size_t i = 0; i < n_paths && total >= 0; i++) {
        batch_add(&b, job, inputs, inputs->paths.items[i]);
        if (b.count < job->max_batch && i + 1 < n_paths) continue;
        const int64_t done = batch_flush(&b, job, inputs, report);
        total = done < 0 || ferror(stdout) ? -1 : total + done;
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    batch_free(&b);
    return total;
}
