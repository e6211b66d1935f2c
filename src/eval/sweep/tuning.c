/* tuning.c - bodies of sweep.h but the run: options, the split of the photos, results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/sweep/tuning.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum { MIN_PART = 8, MAX_BATCH = 1024 };

/* ---- options ------------------------------------------------------------------------------- */

static renyi_status check_options(renyi_tune_options *o, renyi_error *err)
{
    if ((unsigned)o->goal > RENYI_TUNE_TARGET_GMACS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "goal %d; allowed: 0 to %d", (int)o->goal,
                       (int)RENYI_TUNE_TARGET_GMACS);
    const int is_drop = o->goal == RENYI_TUNE_MAX_DROP;
    if (!isfinite(o->bound) || o->bound < 0 || (is_drop ? o->bound > 100 : o->bound == 0))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       is_drop ? "a loss of %g points; allowed: 0 to 100"
                               : "a target of %g; it must be above 0",
                       o->bound);
    if (o->search == 0) o->search = 0.5;
    if (!(o->search > 0 && o->search < 1))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%g of the photos to search with; allowed: above 0, below 1", o->search);
    if (!o->batch) o->batch = 1;
    if (!o->n_threads) o->n_threads = ry_cpu_cores();
    if (o->batch > MAX_BATCH)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "batch %u; at most %d", o->batch, MAX_BATCH);
    return RENYI_OK;
}

/* Texts of the options are borrowed for the call only. */
static renyi_status copy_texts(renyi_tune *t, renyi_error *err)
{
    if (t->o.name && !(t->o.name = ry_pool_copy(&t->pool, ry_text_of(t->o.name))))
        return ry_fail_nomem(err, 0);
    if (t->o.log && !(t->o.log = ry_pool_copy(&t->pool, ry_text_of(t->o.log))))
        return ry_fail_nomem(err, 0);
    t->preprocess = t->o.preprocess ? *t->o.preprocess : t->info.preprocess;
    t->preprocess.size = t->info.image_size;
    t->o.preprocess = NULL;
    return RENYI_OK;
}

static renyi_status split(renyi_tune *t, renyi_error *err)
{
    t->n_photos = t->data->count;
    if (t->n_photos < 2 * MIN_PART)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%zu photos are too few: at least %d, and hundreds to learn something",
                       t->n_photos, 2 * MIN_PART);
    t->n_search = (size_t)((double)t->n_photos * t->o.search + 0.5);
    if (t->n_search < MIN_PART) t->n_search = MIN_PART;
    if (t->n_search > t->n_photos - MIN_PART) t->n_search = t->n_photos - MIN_PART;
    t->photos = ry_alloc(&t->al, t->n_photos, sizeof *t->photos);
    t->dense = ry_calloc(&t->al, t->n_photos, sizeof *t->dense);
    if (!t->photos || !t->dense) return ry_fail_nomem(err, t->n_photos * sizeof *t->photos);
    memcpy(t->photos, t->data->photos, t->n_photos * sizeof *t->photos);
    ry_photos_shuffle(t->photos, t->n_photos, t->o.seed);
    t->result.n_search = t->n_search;
    t->result.n_confirm = t->n_photos - t->n_search;
    return RENYI_OK;
}

static renyi_status fill(renyi_tune *t, renyi_error *err)
{
    renyi_dataset_info data;
    renyi_model_get_info(t->model, &t->info);
    renyi_dataset_get_info(t->data, &data);
    RY_TRY(check_options(&t->o, err));
    if (data.n_classes != t->info.n_classes)
        return ry_fail(err, RENYI_ERR_ARG, -1, "the dataset has %u classes, the model %u",
                       data.n_classes, t->info.n_classes);
    RY_TRY(copy_texts(t, err));
    RY_TRY(split(t, err));
    const renyi_grid *grid = t->o.grid;
    t->o.grid = NULL;
    return ry_tune_list(t, grid, err);
}

renyi_status renyi_tune_new(renyi_tune **out, const renyi_model *m, const renyi_dataset *d,
                            const renyi_tune_options *opt, renyi_error *err)
{
    renyi_tune_options o = {0};
    if (!out || !m || !d || !opt)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tune_new: NULL argument");
    *out = NULL;
    if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_tune_options: struct_size %u, this library knows %zu",
                       opt->struct_size, sizeof o);
    memcpy(&o, opt, opt->struct_size);
    renyi_tune *t = ry_calloc(&o.allocator, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    t->al = o.allocator;
    t->o = o;
    t->model = m;
    t->data = d;
    t->pool.al = &t->al;
    t->dense_ms = (double)NAN;
    const renyi_status st = fill(t, err);
    if (st) {
        renyi_tune_free(t);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

void renyi_tune_free(renyi_tune *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_free(&al, t->photos);
    ry_free(&al, t->dense);
    ry_free(&al, t->candidates);
    ry_free(&al, t->alive);
    ry_free(&al, t->dense_times);
    ry_pool_free(&t->pool);
    ry_free(&al, t);
}

/* ---- results ------------------------------------------------------------------------------- */

static renyi_tune_loss loss_of(const ry_tally *t)
{
    const renyi_interval r = renyi_stats_difference(t->only_dense, t->only_it, t->n);
    const double n = t->n ? (double)t->n : (double)NAN;
    return (renyi_tune_loss){
        .images = t->n,
        .only_dense = t->only_dense,
        .only_it = t->only_it,
        .other = t->other,
        .top1 = 100 * (double)t->n_right / n,
        .drop = ry_tune_drop(t),
        .range = {t->n ? 100 * r.low : (double)NAN, t->n ? 100 * r.high : (double)NAN},
        .p_value = t->n ? renyi_stats_mcnemar(t->only_dense, t->only_it) : (double)NAN,
        .agreement = 100 * (1 - (double)t->other / n)};
}

size_t renyi_tune_count(const renyi_tune *t) { return t->count; }

void renyi_tune_get(const renyi_tune *t, size_t i, renyi_tune_candidate *out)
{
    const ry_candidate *c = &t->candidates[i];
    *out = (renyi_tune_candidate){.image_size = c->image_size,
                                  .policy = c->policy,
                                  .why = c->why,
                                  .fate = c->fate,
                                  .rungs = c->rungs,
                                  .gmacs = c->gmacs,
                                  .ms = ry_tune_ms(t, c),
                                  .speedup = 1.0 / c->ratio,
                                  .estimate = c->estimate,
                                  .chance = c->chance,
                                  .search = loss_of(&c->search),
                                  .confirmed = loss_of(&c->confirmed)};
}

void renyi_tune_get_result(const renyi_tune *t, renyi_tune_result *out) { *out = t->result; }
