/* batch_loader.c - the ring of micro-batches and the threads that fill it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "train/data/batch_loader.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/limits.h"
#include "base/status.h"
#include "image/patches.h"
#include "train/data/batch_sample.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

/* ---- options --------------------------------------------------------------------------------- */

static void fill_defaults(ry_loader_options *o)
{
    o->limits = ry_limits(&o->limits);
    if (!o->micro_batch) o->micro_batch = 8;
    if (o->micro_batch > o->batch) o->micro_batch = o->batch;
    o->micro_batch += o->micro_batch % 2;
    if (!o->repeats) o->repeats = 1;
    if (!o->n_threads) o->n_threads = 1;
    if (!o->n_ranks) o->n_ranks = 1;
}

static renyi_status check_numbers(const ry_loader_options *o, renyi_error *err)
{
    if (!o->image_size || o->image_size > 16384)
        return ry_fail(err, RENYI_ERR_ARG, -1, "image size %" PRIu32 "; 1 to 16384 is allowed",
                       o->image_size);
    if (!o->batch || o->batch > 1u << 24)
        return ry_fail(err, RENYI_ERR_ARG, -1, "batch size %" PRIu32 "; 1 to 16777216 is allowed",
                       o->batch);
    if (!o->n_classes) return ry_fail(err, RENYI_ERR_ARG, -1, "0 classes; at least 1 is needed");
    if (!(o->smoothing >= 0.0 && o->smoothing <= 1.0))
        return ry_fail(err, RENYI_ERR_ARG, -1, "label smoothing %g; 0 to 1 is allowed",
                       o->smoothing);
    for (int c = 0; c < 3; c++)
        if (!(o->std[c] > 0.0))
            return ry_fail(err, RENYI_ERR_ARG, -1, "deviation %g of channel %d; it must be above 0",
                           o->std[c], c);
    if (o->rank >= o->n_ranks)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rank %" PRIu32 " of %" PRIu32, o->rank, o->n_ranks);
    if (o->n_workers > 1024 || o->n_threads > 1024)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%" PRIu32 " threads for images; up to 1024",
                       o->n_workers > o->n_threads ? o->n_workers : o->n_threads);
    return RENYI_OK;
}

static renyi_status check_labels(const ry_loader_options *o, const renyi_dataset *d, uint64_t n,
                                 renyi_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(d, (size_t)i, &image);
        if (image.label == RENYI_NO_CLASS)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "%s has no class; training needs one for every image", image.file);
        if (image.label >= o->n_classes)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "%s is of class %" PRIu32 ", the model has %" PRIu32 " (0 to %" PRIu32
                           ")",
                           image.file, image.label, o->n_classes, o->n_classes - 1);
    }
    return RENYI_OK;
}

/* Fills in the defaults, then checks the options and the labels. */
static renyi_status check_options(ry_loader_options *o, const renyi_dataset *d, renyi_error *err)
{
    renyi_dataset_info info;
    fill_defaults(o);
    RY_TRY(check_numbers(o, err));
    RY_TRY(ry_augment_check(&o->augment, err));
    renyi_dataset_get_info(d, &info);
    if (!info.n_images) return ry_fail(err, RENYI_ERR_ARG, -1, "no training images");
    if (info.n_images < o->batch && !o->keep_last)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a batch of %" PRIu32 " from %" PRIu64
                       " images, and incomplete batches are left out: use a smaller batch",
                       o->batch, info.n_images);
    return check_labels(o, d, info.n_images, err);
}

/* A slot of the ring. */
typedef struct slot {
    ry_sample_rows rows;
    ry_plan_item item;
    uint64_t number; /* of the item that is in here */
    uint32_t left;   /* pairs that are still to be done */
    uint32_t error_pair;
    renyi_error error; /* of the first pair that failed; code RENYI_OK = none */
} slot;

struct ry_loader {
    ry_sampler s;
    renyi_allocator al;
    slot *slots;
    size_t n_slots;
    uint32_t n_steps;
    pthread_t *threads;
    uint32_t n_started;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;  /* there may be something to prepare */
    pthread_cond_t ready; /* an item is complete, or a thread has become idle */
    uint64_t next;        /* item to prepare */
    uint32_t next_pair;   /* ... of it */
    uint64_t given;       /* item to return */
    int is_held;          /* the caller has item given - 1 */
    int model_runs, is_paused, stop;
    uint32_t active; /* threads that prepare now */
    uint64_t decoded;
    double seconds;
};

enum { MIN_AHEAD = 16 };             /* samples: enough to keep all threads busy */
#define MAX_RING ((size_t)256 << 20) /* bytes, unless two micro-batches need more */
#define NO_ITEM UINT64_MAX

static slot *slot_of(const ry_loader *l, uint64_t item) { return &l->slots[item % l->n_slots]; }

static int is_ready(const ry_loader *l, uint64_t item)
{
    const slot *s = slot_of(l, item);
    return s->number == item && !s->left;
}

/* ---- preparing ------------------------------------------------------------------------------- */

/* Is a slot of the ring free for the next item? */
static int has_free_slot(const ry_loader *l)
{
    const uint64_t oldest = l->given - (l->is_held ? 1 : 0);
    return !l->is_paused && l->next < oldest + l->n_slots;
}

/* Takes the next pair; 0 = the item is empty, so nothing is to do. */
static int take_pair(ry_loader *l, slot **s, uint32_t *pair)
{
    *s = slot_of(l, l->next);
    if (!l->next_pair) {
        (*s)->item = ry_plan_at(&l->s.plan, l->next);
        (*s)->number = l->next;
        (*s)->left = (*s)->item.n_pairs;
        (*s)->error.code = RENYI_OK;
    }
    *pair = l->next_pair++;
    if (l->next_pair >= (*s)->item.n_pairs) {
        l->next++;
        l->next_pair = 0;
    }
    return (*s)->item.n_pairs > 0;
}

/* Keeps the error of the lowest failed pair, whichever thread was faster. */
static void note_error(slot *s, uint32_t pair, const renyi_error *err)
{
    if (s->error.code != RENYI_OK && s->error_pair < pair) return;
    s->error = *err;
    s->error_pair = pair;
}

/* Called with the lock held; releases it while it works. */
static void work_once(ry_loader *l)
{
    slot *s;
    uint32_t pair, decoded = 0;
    renyi_error err = {0};
    if (!take_pair(l, &s, &pair)) {
        pthread_cond_signal(&l->ready);
        return;
    }
    l->active++;
    pthread_mutex_unlock(&l->lock);
    const double start = ry_clock();
    const ry_plan_item later = ry_plan_at(&l->s.plan, s->number + l->n_slots);
    ry_sampler_prefetch(&l->s, &later, pair);
    const renyi_status st = ry_sampler_pair(&l->s, &s->item, pair, &s->rows, &decoded, &err);
    const double seconds = ry_clock() - start;
    pthread_mutex_lock(&l->lock);
    err.code = st;
    if (st) note_error(s, pair, &err);
    l->active--;
    l->decoded += decoded;
    l->seconds += seconds;
    if (--s->left == 0 || (l->is_paused && !l->active)) pthread_cond_signal(&l->ready);
}

static void *worker(void *argument)
{
    ry_loader *l = argument;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        if (has_free_slot(l) && (!l->model_runs || l->active < l->s.o.n_workers))
            work_once(l);
        else
            pthread_cond_wait(&l->work, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- returning ------------------------------------------------------------------------------- */

static void describe_batch(const ry_loader *l, const slot *s, ry_train_batch *out)
{
    const ry_plan_item *i = &s->item;
    *out = (ry_train_batch){.n = i->n,
                            .chw = s->rows.chw,
                            .target = s->rows.target,
                            .label = s->rows.label,
                            .image = s->rows.image,
                            .sample = s->rows.sample,
                            .lambda = ry_sampler_lambda(&l->s, i),
                            .batch = i->batch,
                            .epoch = i->epoch,
                            .step = i->step,
                            .micro = i->micro,
                            .last_of_step = i->last_of_step,
                            .last_of_epoch = i->last_of_epoch};
}

renyi_status ry_loader_next(ry_loader *l, ry_train_batch *out, renyi_error *err)
{
    pthread_mutex_lock(&l->lock);
    l->model_runs = l->is_held = 0; /* the caller's old micro-batch is free */
    const uint64_t wanted = l->given;
    slot *s = slot_of(l, wanted);
    if (!is_ready(l, wanted) || l->s.o.n_workers) pthread_cond_broadcast(&l->work);
    /* Without workers nothing is prepared while the model runs: fill the ring now. */
    const int fills_ring = !is_ready(l, wanted) && !l->s.o.n_workers;
    while (has_free_slot(l) && (!is_ready(l, wanted) || fills_ring)) work_once(l);
    while (!is_ready(l, wanted)) pthread_cond_wait(&l->ready, &l->lock);
    const renyi_status st = s->error.code;
    if (st) {
        if (err) *err = s->error;
    } else {
        l->given++;
        l->is_held = 1;
        describe_batch(l, s, out);
    }
    l->model_runs = 1;
    pthread_mutex_unlock(&l->lock);
    return st;
}

renyi_status ry_loader_seek(ry_loader *l, uint32_t epoch, uint32_t step, renyi_error *err)
{
    if (step >= l->n_steps)
        return ry_fail(err, RENYI_ERR_ARG, -1, "step %" PRIu32 " of an epoch of %" PRIu32, step,
                       l->n_steps);
    pthread_mutex_lock(&l->lock);
    l->is_paused = 1;
    while (l->active) pthread_cond_wait(&l->ready, &l->lock);
    for (size_t i = 0; i < l->n_slots; i++) l->slots[i].number = NO_ITEM;
    l->next = l->given = ry_plan_find(&l->s.plan, epoch, step);
    l->next_pair = 0;
    l->is_held = l->is_paused = 0;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return RENYI_OK;
}

uint32_t ry_loader_steps(const ry_loader *l) { return l->n_steps; }

void ry_loader_to_rgb(const ry_loader *l, const ry_train_batch *b, uint32_t k, uint8_t *rgb)
{
    const size_t floats = 3 * (size_t)l->s.target.size * l->s.target.size;
    ry_augment_to_rgb(rgb, b->chw + k * floats, &l->s.target);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static size_t slot_bytes(const ry_loader *l)
{
    const size_t floats = 3 * (size_t)l->s.target.size * l->s.target.size + l->s.o.n_classes;
    return l->s.o.micro_batch * (floats * sizeof(float) + 2 * sizeof(uint64_t) + sizeof(uint32_t));
}

void ry_loader_get_info(ry_loader *l, ry_loader_info *out)
{
    pthread_mutex_lock(&l->lock);
    *out = (ry_loader_info){
        .bytes = l->n_slots * slot_bytes(l), .decoded = l->decoded, .seconds = l->seconds};
    pthread_mutex_unlock(&l->lock);
    out->cache_bytes = ry_cache_bytes(l->s.cache);
}

static int slot_alloc(const ry_loader *l, slot *s)
{
    const size_t n = l->s.o.micro_batch, side = l->s.target.size;
    s->number = NO_ITEM;
    s->rows.chw = ry_alloc(&l->al, n * 3 * side * side, sizeof(float));
    s->rows.target = ry_alloc(&l->al, n * l->s.o.n_classes, sizeof(float));
    s->rows.label = ry_alloc(&l->al, n, sizeof(uint32_t));
    s->rows.image = ry_alloc(&l->al, n, sizeof(uint64_t));
    s->rows.sample = ry_alloc(&l->al, n, sizeof(uint64_t));
    return s->rows.chw && s->rows.target && s->rows.label && s->rows.image && s->rows.sample;
}

static renyi_status make_ring(ry_loader *l, renyi_error *err)
{
    const size_t n = l->s.o.micro_batch, threads = l->s.o.n_threads + l->s.o.n_workers;
    const size_t ahead = threads * 4 > MIN_AHEAD ? threads * 4 : MIN_AHEAD;
    size_t count = 1 + (ahead + n - 1) / n; /* the caller holds one */
    while (count > 2 && count * slot_bytes(l) > MAX_RING) count--;
    l->slots = ry_calloc(&l->al, count, sizeof *l->slots);
    if (!l->slots) return ry_fail_nomem(err, count * sizeof *l->slots);
    for (l->n_slots = 0; l->n_slots < count;)
        if (!slot_alloc(l, &l->slots[l->n_slots++]))
            return ry_fail_nomem(err, count * slot_bytes(l));
    return RENYI_OK;
}

/* Fewer threads than wanted, even none, do the same work: the caller prepares as well. Signals are
 * left to the caller's threads. */
static void start_threads(ry_loader *l)
{
    const uint32_t helpers = l->s.o.n_threads - 1, beside = l->s.o.n_workers;
    const uint32_t wanted = helpers > beside ? helpers : beside;
    sigset_t all, before;
    l->threads = ry_alloc(&l->al, wanted, sizeof *l->threads);
    if (!l->threads) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (l->n_started < wanted && pthread_create(&l->threads[l->n_started], NULL, worker, l) == 0)
        l->n_started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static renyi_status make_parts(ry_loader *l, const renyi_dataset *d, renyi_error *err)
{
    const ry_loader_options *o = &l->s.o;
    renyi_dataset_info info;
    renyi_dataset_get_info(d, &info);
    l->s.data = d;
    l->s.plan = (ry_plan){.n_images = info.n_images,
                          .seed = o->seed,
                          .batch = o->batch,
                          .micro = o->micro_batch,
                          .repeats = o->repeats,
                          .rank = o->rank,
                          .n_ranks = o->n_ranks,
                          .keep_order = o->keep_order};
    l->n_steps = ry_plan_make(&l->s.plan, o->keep_last);
    l->s.target.size = o->image_size;
    memcpy(l->s.target.mean, o->mean, sizeof o->mean);
    memcpy(l->s.target.std, o->std, sizeof o->std);
    ry_normalize_lut(l->s.target.lut, o->mean, o->std);
    if (o->cache_bytes)
        RY_TRY(ry_cache_new(&l->s.cache, info.n_images, o->cache_bytes, &l->al, err));
    return make_ring(l, err);
}

renyi_status ry_loader_new(ry_loader **out, const renyi_dataset *d, const ry_loader_options *opt,
                           const renyi_allocator *al, renyi_error *err)
{
    ry_loader_options o = *opt;
    *out = NULL;
    RY_TRY(check_options(&o, d, err));
    ry_loader *l = ry_calloc(al, 1, sizeof *l);
    if (!l) return ry_fail_nomem(err, sizeof *l);
    if (al) l->al = *al;
    l->s.o = o;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    const renyi_status st = make_parts(l, d, err);
    if (st) {
        ry_loader_free(l);
        return st;
    }
    l->model_runs = 1; /* the caller is busy until the first ry_loader_next */
    start_threads(l);
    *out = l;
    return RENYI_OK;
}

static void stop_threads(ry_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->stop = 1;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (uint32_t i = 0; i < l->n_started; i++) pthread_join(l->threads[i], NULL);
}

void ry_loader_free(ry_loader *l)
{
    if (!l) return;
    const renyi_allocator al = l->al;
    stop_threads(l);
    for (size_t i = 0; i < l->n_slots; i++) {
        const ry_sample_rows *r = &l->slots[i].rows;
        ry_free(&al, r->chw);
        ry_free(&al, r->target);
        ry_free(&al, r->label);
        ry_free(&al, r->image);
        ry_free(&al, r->sample);
    }
    ry_free(&al, l->slots);
    ry_free(&al, l->threads);
    ry_cache_free(l->s.cache);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
    ry_free(&al, l);
}
