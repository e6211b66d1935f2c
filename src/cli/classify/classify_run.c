/* classify_run.c - runs images through a session, batch by batch, and finds their best classes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/classify/classify.h"
#include "cli/kit/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the best classes ---------------------------------------------------------------------- */

/* Inserts into the sorted list; of equal logits the lower index comes first. */
static uint32_t insert_score(class_score *top, uint32_t count, uint32_t k, class_score score)
{
    uint32_t at = count;

    while (at > 0 && score.logit > top[at - 1].logit) at--;
    if (at == k) return count;
    const uint32_t kept = count < k ? count : k - 1;
    memmove(top + at + 1, top + at, (kept - at) * sizeof *top);
    top[at] = score;
    return kept + 1;
}

uint32_t classify_top(class_score *top, uint32_t k, const float *logits, uint32_t n_classes,
                      int is_sigmoid)
{
    uint32_t count = 0;
    double sum = 0.0;

    for (uint32_t i = 0; i < n_classes; i++) {
        if (isnan(logits[i])) return 0;
        count = insert_score(top, count, k, (class_score){i, (double)logits[i], 0.0});
    }
    if (!count || !isfinite(top[0].logit)) return 0;
    if (is_sigmoid) { /* each class by itself */
        for (uint32_t i = 0; i < count; i++) top[i].probability = 1.0 / (1.0 + exp(-top[i].logit));
        return count;
    }
    const double largest = top[0].logit;
    for (uint32_t i = 0; i < n_classes; i++) sum += exp((double)logits[i] - largest);
    for (uint32_t i = 0; i < count; i++) top[i].probability = exp(top[i].logit - largest) / sum;
    return count;
}

/* ---- batches ------------------------------------------------------------------------------- */

/* The batch that is being filled, and the results so far. */
typedef struct batch {
    uint8_t *pixels;    /* [max_batch, size, size, 3] */
    float *chw;         /* [max_batch, 3, size, size], only with --mean or --std */
    float *logits;      /* [max_batch, n_classes] */
    class_score *top;   /* [top_k] */
    const char **files; /* [max_batch] */
    double *ms_decode;  /* [max_batch] */
    uint32_t count;
} batch;

static void batch_alloc(batch *b, const classify_job *job)
{
    const size_t size = job->spec->preprocess.size, values = 3 * size * size;
    const size_t n = job->max_batch;

    b->pixels = cli_alloc(n, values);
    b->chw = job->spec->own_normalization ? cli_alloc(n, values * sizeof *b->chw) : NULL;
    b->logits = cli_alloc(n, job->info->n_classes * sizeof *b->logits);
    b->top = cli_alloc(job->top_k, sizeof *b->top);
    b->files = cli_alloc(n, sizeof *b->files);
    b->ms_decode = cli_alloc(n, sizeof *b->ms_decode);
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

static renyi_status batch_run(batch *b, const classify_job *job, renyi_error *err)
{
    if (!b->chw) return renyi_run_pixels(job->session, b->pixels, b->count, b->logits, err);
    renyi_image_normalize(b->chw, b->pixels, (uint32_t)b->count, &job->spec->preprocess);
    return renyi_run_tensor(job->session, b->chw, b->count, b->logits, err);
}

/* Runs the batch and prints its results. Returns how many were classified, -1 if the run failed. */
static int64_t batch_flush(batch *b, const classify_job *job, image_inputs *inputs,
                           classify_output *out)
{
    const uint32_t n_classes = job->info->n_classes;
    renyi_error err = {0};
    const double start = cli_now_ms();
    int64_t done = 0;

    if (!b->count) return 0;
    if (batch_run(b, job, &err) != RENYI_OK) {
        cli_fail(&err);
        return -1;
    }
    const double ms = (cli_now_ms() - start) / b->count;
    for (uint32_t i = 0; i < b->count; i++) {
        const uint32_t n_top = classify_top(b->top, job->top_k, b->logits + (size_t)i * n_classes,
                                            n_classes, job->info->is_sigmoid != 0);
        const image_result r = {b->files[i], b->top, n_top, ms, b->ms_decode[i]};
        if (!n_top) {
            image_inputs_fail(inputs, r.file,
                              "the model answered with values that are not numbers");
            continue;
        }
        if (job->trace && trace_image(job->trace, r.file, job->session, i)) return -1;
        classify_put(out, job, &r);
        done++;
    }
    b->count = 0;
    return done;
}

static void batch_add(batch *b, const classify_job *job, image_inputs *inputs, const char *path)
{
    const size_t size = job->spec->preprocess.size;
    const double start = cli_now_ms();
    char *why = NULL;

    if (image_load(b->pixels + b->count * 3 * size * size, path, job->spec, &why)) {
        image_inputs_fail(inputs, path, why);
        free(why);
        return;
    }
    b->files[b->count] = path;
    b->ms_decode[b->count++] = cli_now_ms() - start;
}

int64_t classify_images(const classify_job *job, image_inputs *inputs)
{
    const size_t n_paths = inputs->paths.count;
    classify_output out;
    progress_bar bar;
    int64_t total = 0;
    batch b;

    if (classify_output_open(&out, job)) return -1;
    batch_alloc(&b, job);
    progress_start(&bar, "classify", n_paths, job->form == CLASSIFY_JSON); /* others show it too */
    catch_interrupt();
    for (size_t i = 0; i < n_paths && total >= 0 && !was_interrupted(); i++) {
        batch_add(&b, job, inputs, inputs->paths.items[i]);
        if (b.count < job->max_batch && i + 1 < n_paths) continue;
        const int64_t done = batch_flush(&b, job, inputs, &out);
        classify_put_failures(&out, job, inputs);
        total = done < 0 || fflush(stdout) || ferror(stdout) ? -1 : total + done;
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    batch_free(&b);
    if (was_interrupted())
        cli_error("interrupted; %lld of %zu images were classified",
                  (long long)(total < 0 ? 0 : total), n_paths);
    if (classify_output_close(&out, job, inputs, total >= 0) || was_interrupted()) return -1;
    return total;
}
