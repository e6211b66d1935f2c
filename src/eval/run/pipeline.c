/* pipeline.c - decodes images on several threads into a ring of batches, out of the model's way.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/run/pipeline.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/status.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

ry_image_spec ry_image_spec_of(const renyi_preprocess *preprocess, const renyi_limits *limits,
                               uint32_t apply_exif, renyi_decode_mode decode)
{
    return (ry_image_spec){*preprocess,
                           {.struct_size = sizeof(renyi_image_options),
                            .apply_exif = apply_exif,
                            .limits = *limits,
                            .decode = decode}};
}

/* ---- the ring ------------------------------------------------------------------------------ */

/* One batch of the ring. */
typedef struct slot {
    ry_batch batch;
    uint8_t *is_bad; /* [batch] */
    uint32_t left;   /* images that are not decoded yet */
} slot;

struct ry_pipeline {
    ry_pipeline_options o;
    const renyi_allocator *al;
    slot *slots;
    size_t n_slots, n_batches;
    size_t pixel_bytes; /* of one image */
    pthread_t *threads;
    uint32_t n_started;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;  /* there may be something to decode */
    pthread_cond_t ready; /* a batch is complete */
    size_t next;          /* place in todo of the next image to decode */
    size_t fetched;       /* and of the next to prefetch */
    size_t given;         /* batches returned so far; the caller still reads the last */
    uint32_t active;      /* threads that decode now */
    int model_runs, stop;
    double seconds;
};

enum { MIN_AHEAD = 16 };             /* images: more of them balance the threads */
#define MAX_RING ((size_t)256 << 20) /* bytes; two batches are allowed in any case */

static slot *slot_of(const ry_pipeline *p, size_t batch) { return &p->slots[batch % p->n_slots]; }

/* ---- decoding ------------------------------------------------------------------------------ */

/* Is there space in the ring for the next image? The caller still reads the batch before `given`.
 */
static int has_space(const ry_pipeline *p)
{
    const size_t oldest = p->given ? p->given - 1 : 0;
    return p->next < p->o.n_todo && p->next / p->o.batch < oldest + p->n_slots;
}

static size_t image_at(const ry_pipeline *p, size_t place)
{
    return p->o.todo ? p->o.todo[place] : place;
}

static const char *path_of(const ry_pipeline *p, size_t image)
{
    renyi_dataset_image entry;
    if (!p->o.source.data) return p->o.source.paths[image];
    renyi_dataset_get_image(p->o.source.data, image, &entry);
    return entry.path;
}

static renyi_status load_pixels(const ry_pipeline *p, uint8_t *pixels, size_t image,
                                renyi_error *err)
{
    const ry_image_spec *spec = &p->o.spec;
    const ry_image_source *from = &p->o.source;
    if (from->load) return from->load(from->user, pixels, image, err);
    return renyi_image_load_pixels(pixels, path_of(p, image), &spec->preprocess, &spec->load, err);
}

static void decode_image(ry_pipeline *p, size_t place)
{
    const ry_image_spec *spec = &p->o.spec;
    slot *s = slot_of(p, place / p->o.batch);
    const size_t i = place % p->o.batch, image = image_at(p, place);
    const size_t floats = 3 * (size_t)spec->preprocess.size * spec->preprocess.size;
    uint8_t *pixels = s->batch.pixels + i * p->pixel_bytes;
    const double start = ry_clock();
    renyi_error err = {0};
    s->batch.images[i] = image;
    s->is_bad[i] = load_pixels(p, pixels, image, &err) != RENYI_OK;
    s->batch.seconds[i] = ry_clock() - start;
    if (s->is_bad[i]) {
        s->batch.faults[i].image = image;
        memcpy(s->batch.faults[i].message, err.message, sizeof err.message);
    } else if (p->o.normalize) {
        renyi_image_normalize(s->batch.chw + i * floats, pixels, 1, &spec->preprocess);
    }
}

/* Decodes the next image. Called with the lock held; releases it while it decodes. */
static void decode_next(ry_pipeline *p)
{
    const size_t place = p->next++;
    p->active++;
    pthread_mutex_unlock(&p->lock);
    const double start = ry_clock();
    decode_image(p, place);
    const double seconds = ry_clock() - start;
    pthread_mutex_lock(&p->lock);
    p->active--;
    p->seconds += seconds;
    if (--slot_of(p, place / p->o.batch)->left == 0) pthread_cond_signal(&p->ready);
}

/* Asks the system for the next file. Takes hardly any time, so it is allowed while the model runs.
 */
static void prefetch_next(ry_pipeline *p)
{
    const size_t place = p->fetched++;
    pthread_mutex_unlock(&p->lock);
    ry_file_prefetch(path_of(p, image_at(p, place)));
    pthread_mutex_lock(&p->lock);
}

static void *run_worker(void *argument)
{
    ry_pipeline *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        const size_t ahead = p->next + p->n_slots * p->o.batch;
        if (p->fetched < p->next) p->fetched = p->next;
        if (has_space(p) && (!p->model_runs || p->active < p->o.n_beside))
            decode_next(p);
        else if (p->fetched < ahead && p->fetched < p->o.n_todo)
            prefetch_next(p);
        else
            pthread_cond_wait(&p->work, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- batches in order ---------------------------------------------------------------------- */

/* Moves images forward to where unreadable ones leave a gap. */
static void close_gaps(const ry_pipeline *p, slot *s, uint32_t count)
{
    const size_t bytes = p->pixel_bytes;
    ry_batch *b = &s->batch;
    b->n = b->n_faults = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (s->is_bad[i]) {
            if (b->n_faults != i) b->faults[b->n_faults] = b->faults[i];
            b->n_faults++;
            continue;
        }
        if (b->n != i) {
            memcpy(b->pixels + b->n * bytes, b->pixels + i * bytes, bytes);
            if (b->chw) /* as many floats as there are bytes */
                memcpy(b->chw + b->n * bytes, b->chw + i * bytes, bytes * sizeof(float));
            b->images[b->n] = b->images[i];
            b->seconds[b->n] = b->seconds[i];
        }
        b->n++;
    }
}

static uint32_t batch_count(const ry_pipeline *p, size_t batch)
{
    const size_t left = p->o.n_todo - batch * p->o.batch;
    return left < p->o.batch ? (uint32_t)left : p->o.batch;
}

const ry_batch *ry_pipeline_next(ry_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    const size_t wanted = p->given;
    p->model_runs = 0;
    /* the caller has finished with its last batch */
    if (wanted > 0 && wanted - 1 + p->n_slots < p->n_batches)
        slot_of(p, wanted - 1)->left = batch_count(p, wanted - 1 + p->n_slots);
    if (wanted < p->n_batches) {
        slot *s = slot_of(p, wanted);
        p->given++;
        if (s->left || p->o.n_beside) pthread_cond_broadcast(&p->work);
        const int fill = s->left && !p->o.n_beside; /* no thread will while the model runs */
        while (has_space(p) && (s->left || fill)) decode_next(p);
        while (s->left) pthread_cond_wait(&p->ready, &p->lock);
        close_gaps(p, s, batch_count(p, wanted));
        p->model_runs = 1;
    }
    pthread_mutex_unlock(&p->lock);
    return wanted < p->n_batches ? &slot_of(p, wanted)->batch : NULL;
}

double ry_pipeline_decode_seconds(ry_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    const double seconds = p->seconds;
    pthread_mutex_unlock(&p->lock);
    return seconds;
}

/* ---- new and free -------------------------------------------------------------------------- */

static void choose_slots(ry_pipeline *p)
{
    const size_t batch = p->o.batch, each = p->pixel_bytes * (p->o.normalize ? 5 : 1);
    const size_t ahead = p->o.n_threads * 4 > MIN_AHEAD ? p->o.n_threads * 4 : MIN_AHEAD;
    p->n_batches = (p->o.n_todo + batch - 1) / batch;
    p->n_slots = 1 + (ahead + batch - 1) / batch; /* the caller reads one */
    while (p->n_slots > 2 && p->n_slots * batch * each > MAX_RING) p->n_slots--;
    if (p->n_slots > p->n_batches) p->n_slots = p->n_batches ? p->n_batches : 1;
}

static int allocate_slot(const ry_pipeline *p, slot *s)
{
    const size_t n = p->o.batch;
    s->batch.pixels = ry_alloc(p->al, n, p->pixel_bytes);
    if (p->o.normalize) s->batch.chw = ry_alloc(p->al, n * p->pixel_bytes, sizeof(float));
    s->batch.images = ry_alloc(p->al, n, sizeof *s->batch.images);
    s->batch.seconds = ry_alloc(p->al, n, sizeof *s->batch.seconds);
    s->batch.faults = ry_alloc(p->al, n, sizeof *s->batch.faults);
    s->is_bad = ry_alloc(p->al, n, 1);
    return s->batch.pixels && (!p->o.normalize || s->batch.chw) && s->batch.images &&
           s->batch.seconds && s->batch.faults && s->is_bad;
}

/* Fewer threads than wanted, even none, are enough: the caller decodes as well. Signals stay with
 * the caller's threads. */
static void start_threads(ry_pipeline *p)
{
    const uint32_t helpers = p->o.n_threads > 1 ? p->o.n_threads - 1 : 0;
    const uint32_t wanted = helpers > p->o.n_beside ? helpers : p->o.n_beside;
    sigset_t all, before;
    p->threads = ry_alloc(p->al, wanted, sizeof *p->threads);
    if (!p->threads) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (p->n_started < wanted &&
           pthread_create(&p->threads[p->n_started], NULL, run_worker, p) == 0)
        p->n_started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

renyi_status ry_pipeline_new(ry_pipeline **out, const ry_pipeline_options *opt,
                             const renyi_allocator *al, renyi_error *err)
{
    *out = NULL;
    ry_pipeline *p = ry_calloc(al, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->o = *opt;
    p->al = al;
    p->pixel_bytes = 3 * (size_t)opt->spec.preprocess.size * opt->spec.preprocess.size;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->ready, NULL);
    choose_slots(p);
    p->slots = ry_calloc(al, p->n_slots, sizeof *p->slots);
    int ok = p->slots != NULL;
    for (size_t i = 0; ok && i < p->n_slots; i++) {
        ok = allocate_slot(p, &p->slots[i]);
        if (i < p->n_batches) p->slots[i].left = batch_count(p, i);
    }
    if (!ok) {
        const size_t bytes = p->n_slots * opt->batch * p->pixel_bytes;
        ry_pipeline_free(p);
        return ry_fail_nomem(err, bytes);
    }
    start_threads(p);
    *out = p;
    return RENYI_OK;
}

void ry_pipeline_free(ry_pipeline *p)
{
    if (!p) return;
    const renyi_allocator *al = p->al;
    pthread_mutex_lock(&p->lock);
    p->stop = 1;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < p->n_started; i++) pthread_join(p->threads[i], NULL);
    for (size_t i = 0; p->slots && i < p->n_slots; i++) {
        slot *s = &p->slots[i];
        ry_free(al, s->batch.pixels);
        ry_free(al, s->batch.chw);
        ry_free(al, s->batch.images);
        ry_free(al, s->batch.seconds);
        ry_free(al, s->batch.faults);
        ry_free(al, s->is_bad);
    }
    ry_free(al, p->slots);
    ry_free(al, p->threads);
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    ry_free(al, p);
}
