/* classify_run.c - runs images through a session and finds their best classes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/classify/classify.h"
#include "cli/kit/progress.h"

#include "renyi/gallery.h"

#include <math.h>
#include <pthread.h>
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

/* ---- images -------------------------------------------------------------------------------- */

/* The results so far. */
typedef struct classifying {
    const classify_job *job;
    image_inputs *inputs;
    classify_output out;
    progress_bar bar;
    class_score *top; /* [top_k] */
    int64_t n_done;
    int is_failed;          /* the output or the trace; reported */
    pthread_mutex_t stream; /* one thread at a time reads stdin or a pipe */
} classifying;

static renyi_status load_photo(void *user, uint8_t *pixels, size_t index, renyi_error *err)
{
    classifying *c = user;
    const char *path = c->inputs->paths.items[index];
    const int is_stream = !image_is_regular(path);
    char *why = NULL;

    if (is_stream) pthread_mutex_lock(&c->stream);
    const int code = image_load(pixels, path, c->job->spec, &why);
    if (is_stream) pthread_mutex_unlock(&c->stream);
    if (!code) return RENYI_OK;
    err->code = RENYI_ERR_IO;
    snprintf(err->message, sizeof err->message, "%s", why);
    free(why);
    return err->code;
}

/* Non-zero: stop. */
static int put_photo(void *user, const renyi_photo *photo)
{
    classifying *c = user;
    const classify_job *job = c->job;
    const char *file = c->inputs->paths.items[photo->index];
    const uint32_t n_classes = job->info->n_classes;

    if (photo->failure) {
        image_inputs_fail(c->inputs, file, photo->failure);
        return 0;
    }
    const uint32_t n_top =
        classify_top(c->top, job->top_k, photo->outputs, n_classes, job->info->is_sigmoid != 0);
    const image_result r = {file, c->top, n_top, photo->ms, photo->ms_decode};
    if (!n_top) {
        image_inputs_fail(c->inputs, file, "the model answered with values that are not numbers");
        return 0;
    }
    if (job->trace && trace_image(job->trace, file, job->session, photo->place)) {
        c->is_failed = 1;
        return 1;
    }
    classify_put(&c->out, job, &r);
    c->n_done++;
    return 0;
}

/* After every batch. */
static int end_batch(void *user, uint64_t done, uint64_t total)
{
    classifying *c = user;

    (void)total;
    classify_put_failures(&c->out, c->job, c->inputs);
    if (fflush(stdout) || ferror(stdout)) c->is_failed = 1;
    progress_update(&c->bar, done);
    return c->is_failed || was_interrupted();
}

static void run_photos(classifying *c)
{
    const image_spec *spec = c->job->spec;
    const renyi_photos_options o = {.struct_size = sizeof o,
                                    .preprocess = &spec->preprocess,
                                    .user = c,
                                    .load = load_photo,
                                    .on_photo = put_photo,
                                    .progress = end_batch};
    renyi_error err = {0};

    const renyi_status st =
        renyi_run_photos(c->job->session, (const char *const *)c->inputs->paths.items,
                         c->inputs->paths.count, &o, &err);
    if (st == RENYI_OK || st == RENYI_ERR_ABORTED) return;
    cli_fail(&err);
    c->is_failed = 1;
}

int64_t classify_images(const classify_job *job, image_inputs *inputs)
{
    const size_t n_paths = inputs->paths.count;
    classifying c = {.job = job, .inputs = inputs};

    if (classify_output_open(&c.out, job)) return -1;
    c.top = cli_alloc(job->top_k, sizeof *c.top);
    pthread_mutex_init(&c.stream, NULL);
    progress_start(&c.bar, "classify", n_paths,
                   job->form == CLASSIFY_JSON); /* others show it too */
    catch_interrupt();
    run_photos(&c);
    progress_end(&c.bar);
    pthread_mutex_destroy(&c.stream);
    free(c.top);
    if (was_interrupted())
        cli_error("interrupted; %lld of %zu images were classified",
                  (long long)(c.is_failed ? 0 : c.n_done), n_paths);
    if (classify_output_close(&c.out, job, inputs, !c.is_failed) || was_interrupted()) return -1;
    return c.is_failed ? -1 : c.n_done;
}
