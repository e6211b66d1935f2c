/* tuning_time.c - measures the time of candidates in turn with the dense model.
 *
 * The speed of a machine drifts with its clock and other load. Hence every round runs dense and a
 * few candidates one after the other. The result of a candidate is the median over rounds of its
 * ratio to dense; its time is that ratio times dense's median over all rounds since the start.
 * The time of a cascade depends on the image, and the median would be that of images without a
 * second pass. So the median is that of the ratio by the GMACs that ran in the round, and the
 * result is this times the candidate's GMACs: the least until it is judged, then the mean.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "eval/run/pipeline.h"
#include "eval/sweep/tuning.h"

#include <math.h>
#include <stdlib.h>

enum { GROUP = 8, MIN_IMAGES = 8 };

/* A session and images of its size. */
typedef struct runner {
    renyi_session *session;
    const uint8_t *pixels; /* [n_images, size, size, 3] */
    size_t image_bytes;
} runner;

typedef struct stopwatch {
    renyi_tune *t;
    uint32_t batch, n_images, rounds;
    runner dense, group[GROUP];
    uint8_t *dense_pixels, *pixels;
    float *logits;          /* [batch, n_classes] */
    double *ratios, *paces; /* [GROUP, rounds] */
    uint64_t done;          /* rounds */
} stopwatch;

double ry_tune_ms(const renyi_tune *t, const ry_candidate *c) { return c->ratio * t->dense_ms; }

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- images -------------------------------------------------------------------------------- */

/* The first readable images of the search, repeated if there are too few. */
static renyi_status load_images(const stopwatch *w, const renyi_preprocess *preprocess,
                                uint8_t **out, renyi_error *err)
{
    const renyi_tune *t = w->t;
    const size_t bytes = 3 * (size_t)preprocess->size * preprocess->size;
    const ry_image_spec spec =
        ry_image_spec_of(preprocess, &t->o.limits, t->o.apply_exif, t->o.decode);
    size_t n = 0;
    renyi_error why = {0};
    *out = ry_alloc(&t->al, w->n_images, bytes);
    if (!*out) return ry_fail_nomem(err, w->n_images * bytes);
    for (size_t i = 0; n < w->n_images && i < t->n_search; i++)
        n += renyi_image_load_pixels(*out + n * bytes, t->images[i].path, &spec.preprocess,
                                     &spec.load, &why) == RENYI_OK;
    if (!n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "no image could be read; the last error: %.200s: %.200s",
                       t->images[t->n_search - 1].path, why.message);
    for (size_t i = n * bytes; i < w->n_images * bytes; i++) (*out)[i] = (*out)[i - n * bytes];
    return RENYI_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

static renyi_status start_runner(const stopwatch *w, runner *r, const renyi_model *m,
                                 const char *policy, const uint8_t *pixels, renyi_error *err)
{
    const renyi_session_options o = {.struct_size = sizeof o,
                                     .max_batch = w->batch,
                                     .n_threads = w->t->o.n_threads,
                                     .policy = policy};
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    r->pixels = pixels;
    r->image_bytes = 3 * (size_t)info.image_size * info.image_size;
    return renyi_session_new(&r->session, m, &o, err);
}

/* Round r takes the r-th batch of images, so that a rule that adapts runs on different ones. */
static renyi_status run_once(const stopwatch *w, const runner *r, uint32_t round, double *seconds,
                             renyi_error *err)
{
    const size_t first = (size_t)round * w->batch % w->n_images;
    const double started = ry_clock();
    RY_TRY(
        renyi_run_pixels(r->session, r->pixels + first * r->image_bytes, w->batch, w->logits, err));
    *seconds = ry_clock() - started;
    if (w->t->fake_seconds) *seconds = w->t->fake_seconds(renyi_session_last_macs(r->session));
    return RENYI_OK;
}

/* counts = 0: a warm-up round, which is not reported. */
static renyi_status run_round(stopwatch *w, size_t n, uint32_t round, int counts, renyi_error *err)
{
    double dense, seconds;
    RY_TRY(run_once(w, &w->dense, round, &dense, err));
    for (size_t i = 0; i < n; i++) {
        RY_TRY(run_once(w, &w->group[i], round, &seconds, err));
        w->ratios[i * w->rounds + round] = seconds / dense;
        w->paces[i * w->rounds + round] =
            seconds / dense / (renyi_session_last_macs(w->group[i].session) * 1e-9);
    }
    if (!counts) return RENYI_OK;
    renyi_tune *t = w->t;
    if (!ry_grow(&t->al, (void **)&t->dense_times, &t->times_capacity, t->n_times,
                 sizeof *t->dense_times))
        return ry_fail_nomem(err, t->n_times * sizeof *t->dense_times);
    t->dense_times[t->n_times++] = 1e3 * dense / w->batch;
    return ry_tune_report(t, ++w->done, err);
}

static void take_times(const stopwatch *w, size_t i, ry_candidate *c)
{
    c->pace = median(w->paces + i * w->rounds, w->rounds);
    c->ratio = c->pace * c->executed;
    /* The number of tokens of `ats` is not known yet, only the most. */
    if (!c->n_costed) c->ratio = fmin(c->ratio, median(w->ratios + i * w->rounds, w->rounds));
}

static renyi_status time_group(stopwatch *w, const renyi_model *m, const uint32_t *list, size_t n,
                               renyi_error *err)
{
    renyi_status st = RENYI_OK;
    for (size_t i = 0; !st && i < n; i++)
        st = start_runner(w, &w->group[i], m, w->t->candidates[list[i]].policy, w->pixels, err);
    if (!st) st = run_round(w, n, 0, 0, err);
    for (uint32_t r = 0; !st && r < w->rounds; r++) st = run_round(w, n, r, 1, err);
    for (size_t i = 0; i < n; i++) {
        if (!st) take_times(w, i, &w->t->candidates[list[i]]);
        renyi_session_free(w->group[i].session);
        w->group[i].session = NULL;
    }
    return st;
}

/* All groups of one size; moves *at to the next size. */
static renyi_status time_size(stopwatch *w, const ry_size_list *list, size_t *at, renyi_error *err)
{
    renyi_tune *t = w->t;
    const size_t end = *at + ry_tune_same_size(t, list, *at, list->n);
    const renyi_model *m;
    renyi_preprocess preprocess;
    const ry_candidate *first = &t->candidates[list->items[*at]];
    RY_TRY(ry_tune_open(t, first->image_size, first->dtype, &m, &preprocess, err));
    renyi_status st = load_images(w, &preprocess, &w->pixels, err);
    while (!st && *at < end) {
        const size_t n = end - *at < GROUP ? end - *at : GROUP;
        st = time_group(w, m, list->items + *at, n, err);
        *at += n;
    }
    ry_free(&t->al, w->pixels);
    w->pixels = NULL;
    ry_tune_close(t, m);
    return st;
}

static uint64_t count_groups(const renyi_tune *t, const ry_size_list *list)
{
    uint64_t groups = 0;
    for (size_t at = 0; at < list->n; groups++) at += ry_tune_same_size(t, list, at, GROUP);
    return groups ? groups : 1; /* dense alone */
}

static renyi_status time_all(stopwatch *w, const ry_size_list *list, renyi_error *err)
{
    renyi_tune *t = w->t;
    const size_t n_logits = (size_t)w->batch * t->info.n_classes;
    w->logits = ry_alloc(&t->al, n_logits, sizeof *w->logits);
    w->ratios = ry_alloc(&t->al, (size_t)GROUP * w->rounds, sizeof *w->ratios);
    w->paces = ry_alloc(&t->al, (size_t)GROUP * w->rounds, sizeof *w->paces);
    if (!w->logits || !w->ratios || !w->paces)
        return ry_fail_nomem(err, n_logits * sizeof *w->logits);
    RY_TRY(load_images(w, &t->preprocess, &w->dense_pixels, err));
    RY_TRY(start_runner(w, &w->dense, t->model, "none", w->dense_pixels, err));
    t->now.total = count_groups(t, list) * w->rounds;
    RY_TRY(ry_tune_report(t, 0, err));
    if (!list->n) RY_TRY(time_group(w, t->model, NULL, 0, err));
    for (size_t at = 0; at < list->n;) RY_TRY(time_size(w, list, &at, err));
    t->dense_ms = median(t->dense_times, t->n_times);
    return RENYI_OK;
}

static void use_fake_times(renyi_tune *t, const ry_size_list *list)
{
    const ry_candidate *dense = &t->candidates[0];
    t->dense_ms = t->fake_ms(dense->image_size, dense->dtype, dense->policy, dense->gmacs);
    for (size_t i = 0; i < list->n; i++) {
        ry_candidate *c = &t->candidates[list->items[i]];
        c->ratio = t->fake_ms(c->image_size, c->dtype, c->policy, c->gmacs) / t->dense_ms;
    }
}

renyi_status ry_tune_time(renyi_tune *t, const uint32_t *list, size_t n, uint32_t rounds,
                          renyi_error *err)
{
    stopwatch w = {.t = t, .batch = t->o.batch, .rounds = rounds};
    ry_size_list sorted;
    RY_TRY(ry_tune_by_size(t, list, n, &sorted, err));
    renyi_status st = RENYI_OK;
    w.n_images = (MIN_IMAGES + w.batch - 1) / w.batch * w.batch;
    if (t->fake_ms)
        use_fake_times(t, &sorted);
    else
        st = time_all(&w, &sorted, err);
    renyi_session_free(w.dense.session);
    ry_free(&t->al, w.dense_pixels);
    ry_free(&t->al, w.logits);
    ry_free(&t->al, w.ratios);
    ry_free(&t->al, w.paces);
    ry_free(&t->al, sorted.items);
    return st;
}
