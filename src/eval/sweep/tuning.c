/* tuning.c - makes a tuning: options, the split of the images, candidates; and returns its results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/sweep/tuning.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/policy_api.h"

#include <math.h>
#include <string.h>

enum { MIN_PART = 8, MAX_BATCH = 1024, MAX_CANDIDATES = 4096 };

/* ---- models of other sizes and dtypes
 * ----------------------------------------------------------------- */

renyi_status ry_tune_open(const renyi_tune *t, uint32_t image_size, renyi_dtype dtype,
                          const renyi_model **out, renyi_preprocess *preprocess, renyi_error *err)
{
    renyi_model *opened = NULL;
    renyi_preprocess own = {0};
    *out = NULL;
    *preprocess = t->preprocess;
    preprocess->size = image_size;
    if (image_size == t->info.image_size && dtype == t->info.dtype) {
        *out = t->model;
        return RENYI_OK;
    }
    if (!t->o.open_model)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the model cannot be opened for %u pixels in %s: open_model is NULL",
                       image_size, renyi_dtype_name(dtype));
    RY_TRY(t->o.open_model(t->o.user, t->o.name, image_size, dtype, &opened, &own, err));
    if (own.size) *preprocess = own;
    *out = opened;
    return RENYI_OK;
}

void ry_tune_close(const renyi_tune *t, const renyi_model *m)
{
    if (m != t->model) renyi_model_free((renyi_model *)(uintptr_t)m); /* from open_model */
}

/* ---- candidates ---------------------------------------------------------------------------- */

/* What the candidates of one size and dtype have in common. */
typedef struct group {
    uint32_t image_size;
    renyi_dtype dtype;
    const renyi_model *model; /* NULL: it cannot be opened; the reason is `why` */
    renyi_error why;
} group;

static int is_listed(const renyi_tune *t, const group *g, const char *policy)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->candidates[i].image_size == g->image_size && t->candidates[i].dtype == g->dtype &&
            strcmp(t->candidates[i].policy, policy) == 0)
            return 1;
    return 0;
}

static renyi_status add_candidate(renyi_tune *t, const group *g, const char *policy,
                                  const char *why, const renyi_layer_cost *least, renyi_error *err)
{
    if (is_listed(t, g, policy)) return RENYI_OK;
    if (t->count >= MAX_CANDIDATES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %d candidates; use a smaller space",
                       MAX_CANDIDATES);
    char *copy = ry_pool_copy(&t->pool, ry_text_of(policy));
    char *reason = why ? ry_pool_copy(&t->pool, ry_text_of(why)) : NULL;
    if (!copy || (why && !reason) ||
        !ry_grow(&t->al, (void **)&t->candidates, &t->capacity, t->count, sizeof *t->candidates))
        return ry_fail_nomem(err, strlen(policy));
    t->candidates[t->count] =
        (ry_candidate){.image_size = g->image_size,
                       .dtype = g->dtype,
                       .policy = copy,
                       .why = reason,
                       .fate = why ? RENYI_TUNE_MISFIT : RENYI_TUNE_OPEN,
                       .gmacs = least ? least->macs * 1e-9 : (double)NAN,
                       .executed = least ? least->macs_executed * 1e-9 : (double)NAN,
                       .pace = (double)NAN,
                       .ratio = (double)NAN,
                       .estimate = (double)NAN,
                       .chance = (double)NAN,
                       .place = (uint32_t)t->count};
    t->count++;
    return RENYI_OK;
}

/* Is the error a property of the candidate? If not, memory is short or the caller stopped. */
static int is_misfit(renyi_status st)
{
    return st == RENYI_ERR_ARG || st == RENYI_ERR_FORMAT || st == RENYI_ERR_UNSUPPORTED ||
           st == RENYI_ERR_LIMIT;
}

/* What the policy costs at least. How often a cascade runs again, and how much is alike in an
 * image, is known only when it is judged. */
static renyi_status least_cost(const group *g, const char *full, const renyi_cost *most,
                               renyi_layer_cost *out, renyi_error *err)
{
    char text[RY_MAX_POLICY_TEXT];
    ry_policy policy;
    renyi_cost least = *most;
    if (strstr(full, " likeness=") && !ry_is_cascade(full)) {
        RY_TRY(ry_policy_for_model(&policy, full, g->model, err));
        policy.likeness = 0; /* as many as may go */
        ry_policy_print(text, &policy);
        RY_TRY(renyi_policy_cost(g->model, NULL, text, &least, NULL, 0, err));
    }
    *out = least.total;
    out->macs -= least.second.macs;
    out->macs_executed -= least.second.macs_executed;
    return RENYI_OK;
}

static renyi_status add_policy(renyi_tune *t, const group *g, const char *text, renyi_error *err)
{
    char full[RENYI_POLICY_MAX];
    renyi_error why = {0};
    renyi_cost cost;
    renyi_layer_cost least;
    if (!g->model) return add_candidate(t, g, text, g->why.message, NULL, err);
    renyi_status st = renyi_policy_check(text, g->model, full, sizeof full, &why);
    if (!st) st = renyi_policy_cost(g->model, NULL, full, &cost, NULL, 0, &why);
    if (!st) st = least_cost(g, full, &cost, &least, &why);
    if (!st) return add_candidate(t, g, full, NULL, &least, err);
    if (is_misfit(st)) return add_candidate(t, g, text, why.message, NULL, err);
    if (err) *err = why;
    return st;
}

/* Size 0 and dtype DEFAULT are those of the dense model. */
static renyi_status add_group(renyi_tune *t, const renyi_grid_info *grid, uint32_t size,
                              renyi_dtype dtype, renyi_error *err)
{
    group g = {.image_size = size ? size : t->info.image_size,
               .dtype = dtype == RENYI_DTYPE_DEFAULT ? t->info.dtype : dtype};
    renyi_preprocess preprocess;
    renyi_model_info info;
    renyi_status st = ry_tune_open(t, g.image_size, g.dtype, &g.model, &preprocess, &g.why);
    if (st && !is_misfit(st)) {
        if (err) *err = g.why;
        return st;
    }
    if (g.model) {
        renyi_model_get_info(g.model, &info);
        g.dtype = info.dtype; /* AUTO became one of the others */
    }
    st = RENYI_OK;
    for (uint32_t i = 0; !st && i < grid->n_policies; i++)
        st = add_policy(t, &g, grid->policies[i], err);
    ry_tune_close(t, g.model);
    return st;
}

/* ---- the default grid ---------------------------------------------------------------------- */

uint32_t renyi_tune_usual_sizes(const renyi_model *m, uint32_t sizes[RENYI_TUNE_SIZES])
{
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    const uint32_t patches = info.image_size / info.patch_size;
    uint32_t n = 0, last = patches;
    sizes[n++] = 0;
    for (uint32_t k = 6; k >= 4; k--) {
        const uint32_t side = (patches * k + 3) / 7; /* to the nearest */
        if (side > 1 && side < last) sizes[n++] = side * info.patch_size;
        last = side;
    }
    return n;
}

static renyi_status make_usual_grid(const renyi_tune *t, renyi_grid **out, renyi_error *err)
{
    static const char *const models[] = {"model"}; /* a grid must have one */
    uint32_t sizes[RENYI_TUNE_SIZES];
    const renyi_grid_options o = {.struct_size = sizeof o,
                                  .n_models = 1,
                                  .models = models,
                                  .n_sizes =
                                      t->o.open_model ? renyi_tune_usual_sizes(t->model, sizes) : 0,
                                  .sizes = sizes,
                                  .allocator = t->al};
    return renyi_grid_new(out, &o, err);
}

static renyi_status list_candidates(renyi_tune *t, const renyi_grid *grid, renyi_error *err)
{
    renyi_grid *usual = NULL;
    renyi_grid_info info;
    const group own = {.image_size = t->info.image_size, .dtype = t->info.dtype, .model = t->model};
    RY_TRY(add_policy(t, &own, "none", err));
    t->candidates[0].ratio = 1.0;
    t->candidates[0].estimate = 0.0;
    if (!grid) RY_TRY(make_usual_grid(t, &usual, err));
    renyi_grid_get_info(grid ? grid : usual, &info);
    renyi_status st = RENYI_OK;
    for (uint32_t i = 0; !st && i < info.n_sizes * info.n_dtypes; i++)
        st =
            add_group(t, &info, info.sizes[i / info.n_dtypes], info.dtypes[i % info.n_dtypes], err);
    renyi_grid_free(usual);
    return st;
}

/* ---- by size and dtype
 * ------------------------------------------------------------------------------- */

/* Negative: x comes first. Large images first. */
static int compare_groups(const ry_candidate *x, const ry_candidate *y)
{
    if (x->image_size != y->image_size) return x->image_size > y->image_size ? -1 : 1;
    return (int)x->dtype - (int)y->dtype;
}

renyi_status ry_tune_by_size(const renyi_tune *t, const uint32_t *list, size_t n, ry_size_list *out,
                             renyi_error *err)
{
    *out = (ry_size_list){ry_alloc(&t->al, n, sizeof *out->items), 0};
    if (!out->items) return ry_fail_nomem(err, n * sizeof *out->items);
    for (size_t i = 0; i < n; i++) {
        size_t at = out->n;
        if (list[i] == 0) continue;
        for (;
             at && compare_groups(&t->candidates[out->items[at - 1]], &t->candidates[list[i]]) > 0;
             at--)
            out->items[at] = out->items[at - 1];
        out->items[at] = list[i];
        out->n++;
    }
    return RENYI_OK;
}

size_t ry_tune_same_size(const renyi_tune *t, const ry_size_list *list, size_t from, size_t most)
{
    size_t n = 0;
    while (n < most && from + n < list->n &&
           compare_groups(&t->candidates[list->items[from + n]],
                          &t->candidates[list->items[from]]) == 0)
        n++;
    return n;
}

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
                       "search with %g of the images; allowed: above 0, below 1", o->search);
    if (!o->batch) o->batch = 1;
    if (!o->n_threads) o->n_threads = ry_cpu_threads(1);
    if (o->batch > MAX_BATCH)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "batch %u; at most %d", o->batch, MAX_BATCH);
    return RENYI_OK;
}

/* The strings of the options are borrowed for the call only. */
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

static renyi_status split_images(renyi_tune *t, renyi_error *err)
{
    t->n_images = t->data->count;
    if (t->n_images < 2 * MIN_PART)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%zu images are too few: at least %d are needed, and hundreds for a result",
                       t->n_images, 2 * MIN_PART);
    t->n_search = (size_t)((double)t->n_images * t->o.search + 0.5);
    if (t->n_search < MIN_PART) t->n_search = MIN_PART;
    if (t->n_search > t->n_images - MIN_PART) t->n_search = t->n_images - MIN_PART;
    t->images = ry_alloc(&t->al, t->n_images, sizeof *t->images);
    t->dense = ry_calloc(&t->al, t->n_images, sizeof *t->dense);
    if (!t->images || !t->dense) return ry_fail_nomem(err, t->n_images * sizeof *t->images);
    memcpy(t->images, t->data->images, t->n_images * sizeof *t->images);
    ry_dataset_shuffle(t->images, t->n_images, t->o.seed);
    t->result.n_search = t->n_search;
    t->result.n_confirm = t->n_images - t->n_search;
    return RENYI_OK;
}

static renyi_status fill_tuning(renyi_tune *t, renyi_error *err)
{
    renyi_dataset_info data;
    renyi_model_get_info(t->model, &t->info);
    renyi_dataset_get_info(t->data, &data);
    RY_TRY(check_options(&t->o, err));
    t->result.n_threads = t->o.n_threads;
    t->result.batch = t->o.batch;
    if (data.n_classes != t->info.n_classes)
        return ry_fail(err, RENYI_ERR_ARG, -1, "the dataset has %u classes, the model %u",
                       data.n_classes, t->info.n_classes);
    RY_TRY(copy_texts(t, err));
    RY_TRY(split_images(t, err));
    const renyi_grid *grid = t->o.grid;
    t->o.grid = NULL;
    return list_candidates(t, grid, err);
}

renyi_status renyi_tune_new(renyi_tune **out, const renyi_model *m, const renyi_dataset *d,
                            const renyi_tune_options *opt, renyi_error *err)
{
    renyi_tune_options o;
    if (!out || !m || !d || !opt)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tune_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_tune_options", err));
    renyi_tune *t = ry_calloc(&o.allocator, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    t->al = o.allocator;
    t->o = o;
    t->model = m;
    t->data = d;
    t->pool.al = &t->al;
    t->dense_ms = (double)NAN;
    const renyi_status st = fill_tuning(t, err);
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
    ry_free(&al, t->images);
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
                                  .confirmed = loss_of(&c->confirmed),
                                  .dtype = c->dtype};
}

void renyi_tune_get_result(const renyi_tune *t, renyi_tune_result *out) { *out = t->result; }
