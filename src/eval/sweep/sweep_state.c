/* sweep_state.c - makes a sweep and returns its results. Every model is opened at every size and
 * every policy checked before the long run begins.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/sweep/sweep_state.h"

#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "eval/run/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BLOCKS = 1024 };

/* ---- models -------------------------------------------------------------------------------- */

renyi_status ry_sweep_open(const renyi_sweep *s, const char *model, uint32_t image_size,
                           renyi_dtype dtype, renyi_model **out, renyi_preprocess *preprocess,
                           renyi_error *err)
{
    char what[160];
    renyi_model_info info;
    *preprocess = (renyi_preprocess){0};
    *out = NULL;
    const renyi_status st =
        s->o.open_model(s->o.user, model, image_size, dtype, out, preprocess, err);
    if (st) {
        if (!image_size) return st; /* its message names the file */
        snprintf(what, sizeof what, "at %u pixels", image_size);
        return ry_fail_in(err, st, what);
    }
    renyi_model_get_info(*out, &info);
    if (!preprocess->size) *preprocess = info.preprocess;
    return RENYI_OK;
}

/* ---- images -------------------------------------------------------------------------------- */

/* `data` must have the images and classes of the first dataset. */
static renyi_status check_same_images(const renyi_sweep *s, const renyi_dataset *data,
                                      const char *model, renyi_error *err)
{
    renyi_dataset_info first, other;
    renyi_dataset_get_info(s->datasets[0], &first);
    renyi_dataset_get_info(data, &other);
    if (first.n_images != other.n_images)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s: %llu images with a class of this model, but %llu with one of the first "
                       "model; a sweep compares models on the same images",
                       model, (unsigned long long)other.n_images,
                       (unsigned long long)first.n_images);
    for (size_t i = 0; i < first.n_images; i++) {
        renyi_dataset_image a, b;
        renyi_dataset_get_image(s->datasets[0], i, &a);
        renyi_dataset_get_image(data, i, &b);
        if (a.label != b.label || strcmp(a.file, b.file) != 0)
            return ry_fail(
                err, RENYI_ERR_ARG, -1,
                "%s: image %s has class %u, but for the first model %s has class %u; a sweep "
                "compares models with the same classes",
                model, b.file, b.label, a.file, a.label);
    }
    return RENYI_OK;
}

/* The dataset for this model: one that is open already, if it has as many classes. */
static renyi_status open_data(renyi_sweep *s, const renyi_model *m, const char *model,
                              const renyi_dataset **out, renyi_error *err)
{
    renyi_dataset *data;
    renyi_dataset_info info, known;
    RY_TRY(renyi_dataset_open(&data, s->o.data, m, s->o.dataset, err));
    renyi_status st = s->n_datasets ? check_same_images(s, data, model, err) : RENYI_OK;
    renyi_dataset_get_info(data, &info);
    for (size_t i = 0; !st && i < s->n_datasets; i++) {
        renyi_dataset_get_info(s->datasets[i], &known);
        if (known.n_classes != info.n_classes) continue;
        renyi_dataset_free(data);
        *out = s->datasets[i];
        return RENYI_OK;
    }
    if (!st && !ry_grow(&s->al, (void **)&s->datasets, &s->dataset_capacity, s->n_datasets,
                        sizeof(renyi_dataset *)))
        st = ry_fail_nomem(err, sizeof(renyi_dataset *));
    if (st) {
        renyi_dataset_free(data);
        return st;
    }
    *out = s->datasets[s->n_datasets++] = data;
    return RENYI_OK;
}

/* ---- points -------------------------------------------------------------------------------- */

static renyi_status skip_point(renyi_sweep *s, const ry_sweep_group *g, const char *policy,
                               const char *message, renyi_error *err)
{
    for (size_t i = 0; i < s->n_skips; i++) /* once for all dtypes */
        if (s->skips[i].model == g->model && s->skips[i].policy == policy &&
            s->skips[i].image_size == g->image_size)
            return RENYI_OK;
    const char *copy = ry_pool_copy(&s->pool, ry_text_of(message));
    if (!copy ||
        !ry_grow(&s->al, (void **)&s->skips, &s->skip_capacity, s->n_skips, sizeof *s->skips))
        return ry_fail_nomem(err, strlen(message));
    s->skips[s->n_skips++] = (renyi_sweep_skip){g->model, policy, copy, g->image_size};
    return RENYI_OK;
}

/* Sets the costs and makes space for the answers. */
static renyi_status fill_point(renyi_sweep *s, const ry_sweep_group *g, const renyi_model *m,
                               ry_sweep_point *p, renyi_error *err)
{
    renyi_layer_cost *layers = ry_alloc(&s->al, g->n_blocks, sizeof *layers);
    uint32_t *tokens = ry_pool_take(&s->pool, g->n_blocks, sizeof *tokens);
    renyi_dataset_info data;
    renyi_cost cost = {0};
    renyi_dataset_get_info(s->datasets[0], &data);
    const size_t n = (size_t)data.n_images;
    p->answers = ry_pool_take(&s->pool, n, sizeof *p->answers); /* at most 2^24 images */
    renyi_status st = RENYI_OK;
    if (!layers || !tokens || !p->answers) st = ry_fail_nomem(err, n * sizeof *p->answers);
    if (!st) st = renyi_policy_cost(m, NULL, p->policy, &cost, layers, g->n_blocks, err);
    for (uint32_t b = 0; !st && b < g->n_blocks; b++) tokens[b] = layers[b].tokens_out;
    for (size_t i = 0; !st && i < n; i++) p->answers[i] = RY_NO_ANSWER;
    ry_free(&s->al, layers);
    p->tokens = tokens;
    p->is_bound = strncmp(p->policy, "ats", 3) == 0 || strstr(p->policy, " likeness=");
    p->result = (renyi_eval_result){.policy = p->policy,
                                    .top1 = NAN,
                                    .top5 = NAN,
                                    .top1_range = {0, 100},
                                    .top5_range = {0, 100},
                                    .loss = NAN,
                                    .gmacs = cost.total.macs * 1e-9,
                                    .gmacs_executed = cost.total.macs_executed * 1e-9,
                                    .ms_model = NAN,
                                    .ms_total = NAN,
                                    .images_per_second = NAN,
                                    .is_cascade = cost.second.macs > 0,
                                    .second_share = cost.second.macs > 0 ? NAN : 0};
    s->gmacs += p->result.gmacs;
    return st;
}

static renyi_status add_point(renyi_sweep *s, ry_sweep_group *g, const renyi_model *m,
                              const char *policy, renyi_error *err)
{
    char full[RENYI_POLICY_MAX];
    renyi_error fault = {0};
    if (renyi_policy_check(policy, m, full, sizeof full, &fault))
        return skip_point(s, g, policy, fault.message, err);
    for (size_t i = g->first; i < s->n_points; i++) /* layers=all equals layers=0-11 */
        if (strcmp(full, s->points[i].policy) == 0) return RENYI_OK;
    const char *copy = ry_pool_copy(&s->pool, ry_text_of(full));
    if (!copy ||
        !ry_grow(&s->al, (void **)&s->points, &s->point_capacity, s->n_points, sizeof *s->points))
        return ry_fail_nomem(err, sizeof full);
    ry_sweep_point *p = &s->points[s->n_points];
    *p = (ry_sweep_point){.group = s->n_groups, .policy = copy};
    RY_TRY(fill_point(s, g, m, p, err));
    s->n_points++;
    g->count++;
    return RENYI_OK;
}

/* ---- groups -------------------------------------------------------------------------------- */

static renyi_status add_points(renyi_sweep *s, ry_sweep_group *g, const renyi_model *m,
                               renyi_error *err)
{
    renyi_grid_info grid;
    renyi_model_info info;
    renyi_grid_get_info(s->grid, &grid);
    renyi_model_get_info(m, &info);
    g->architecture = ry_pool_copy(&s->pool, ry_text_of(info.architecture));
    if (!g->architecture) return ry_fail_nomem(err, strlen(info.architecture));
    g->n_params = info.n_params;
    g->n_blocks = info.n_blocks;
    g->first = s->n_points;
    if (g->n_blocks > MAX_BLOCKS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s has %u blocks; at most %d", g->model,
                       g->n_blocks, MAX_BLOCKS);
    for (uint32_t i = 0; i < grid.n_policies; i++)
        RY_TRY(add_point(s, g, m, grid.policies[i], err));
    if (!ry_grow(&s->al, (void **)&s->groups, &s->group_capacity, s->n_groups, sizeof *s->groups))
        return ry_fail_nomem(err, sizeof *g);
    if (g->count) s->groups[s->n_groups++] = *g;
    return RENYI_OK;
}

/* 224 may be the model's own size, and auto one of the other dtypes. */
static int is_known(const renyi_sweep *s, const ry_sweep_group *g)
{
    for (size_t i = 0; i < s->n_groups; i++)
        if (s->groups[i].image_size == g->image_size && s->groups[i].dtype == g->dtype &&
            s->groups[i].model == g->model)
            return 1;
    return 0;
}

/* `g`: without what the model says. */
static renyi_status add_group(renyi_sweep *s, ry_sweep_group *g, renyi_error *err)
{
    renyi_model_info info;
    renyi_model *m;
    RY_TRY(ry_sweep_open(s, g->model, g->asked_size, g->asked_dtype, &m, &g->preprocess, err));
    renyi_model_get_info(m, &info);
    g->dtype = info.dtype;
    const renyi_status st = is_known(s, g) ? RENYI_OK : add_points(s, g, m, err);
    renyi_model_free(m);
    return st;
}

static renyi_status add_model(renyi_sweep *s, const char *model, renyi_error *err)
{
    renyi_preprocess preprocess;
    renyi_model_info info;
    renyi_grid_info grid;
    renyi_model *m;
    const renyi_dataset *data = NULL;
    renyi_grid_get_info(s->grid, &grid);
    RY_TRY(ry_sweep_open(s, model, 0, grid.dtypes[0], &m, &preprocess, err));
    renyi_model_get_info(m, &info);
    const uint32_t native = info.image_size;
    const renyi_status st = open_data(s, m, model, &data, err);
    renyi_model_free(m);
    RY_TRY(st);
    for (uint32_t i = 0; i < grid.n_sizes * grid.n_dtypes; i++) {
        const uint32_t size = grid.sizes[i / grid.n_dtypes];
        ry_sweep_group g = {.model = model,
                            .asked_size = size,
                            .asked_dtype = grid.dtypes[i % grid.n_dtypes],
                            .image_size = size ? size : native,
                            .native_size = native,
                            .data = data};
        RY_TRY(add_group(s, &g, err));
    }
    return RENYI_OK;
}

static renyi_status fill_sweep(renyi_sweep *s, renyi_error *err)
{
    renyi_grid_info grid;
    const int is_conditional = s->o.condition != NULL;
    renyi_grid_get_info(s->grid, &grid);
    s->o.data = ry_pool_copy(&s->pool, ry_text_of(s->o.data));
    if (s->o.log) s->o.log = ry_pool_copy(&s->pool, ry_text_of(s->o.log));
    if (s->o.condition) s->o.condition = ry_pool_copy(&s->pool, ry_text_of(s->o.condition));
    if (!s->o.data || (!s->o.condition && is_conditional)) return ry_fail_nomem(err, 1);
    for (uint32_t i = 0; i < grid.n_models; i++) RY_TRY(add_model(s, grid.models[i], err));
    if (s->n_points) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "nothing to run: %s at %u pixels, %s: %s",
                   s->skips[0].model, s->skips[0].image_size, s->skips[0].policy,
                   s->skips[0].message);
}

renyi_status renyi_sweep_new(renyi_sweep **out, const renyi_grid *g, const renyi_sweep_options *opt,
                             renyi_error *err)
{
    renyi_sweep_options o;
    if (!out || !g || !opt)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_sweep_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_sweep_options", err));
    if (!o.data || !o.open_model)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_sweep_options: data or open_model is NULL");
    renyi_sweep *s = ry_calloc(&o.allocator, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    s->al = o.allocator;
    s->pool.al = &s->al;
    s->o = o;
    s->grid = g;
    const renyi_status st = fill_sweep(s, err);
    s->o.dataset = NULL; /* borrowed for the call */
    if (st)
        renyi_sweep_free(s);
    else
        *out = s;
    return st;
}

void renyi_sweep_free(renyi_sweep *s)
{
    if (!s) return;
    const renyi_allocator al = s->al;
    for (size_t i = 0; i < s->n_datasets; i++) renyi_dataset_free(s->datasets[i]);
    ry_free(&al, s->datasets);
    ry_free(&al, s->groups);
    ry_free(&al, s->points);
    ry_free(&al, s->skips);
    ry_free(&al, s->failures);
    ry_pool_free(&s->pool);
    ry_free(&al, s);
}

/* ---- results ------------------------------------------------------------------------------- */

size_t renyi_sweep_count(const renyi_sweep *s) { return s->n_points; }

void renyi_sweep_get(const renyi_sweep *s, size_t i, renyi_sweep_point *out)
{
    const ry_sweep_point *p = &s->points[i];
    const ry_sweep_group *g = &s->groups[p->group];
    *out = (renyi_sweep_point){.model = g->model,
                               .architecture = g->architecture,
                               .image_size = g->image_size,
                               .native_size = g->native_size,
                               .n_params = g->n_params,
                               .preprocess = g->preprocess,
                               .n_blocks = g->n_blocks,
                               .tokens = p->tokens,
                               .is_bound = p->is_bound,
                               .result = p->result,
                               .dtype = g->dtype};
}

void renyi_sweep_get_pair(const renyi_sweep *s, size_t a, size_t b, renyi_eval_pair *out)
{
    const uint32_t *x = s->points[a].answers, *y = s->points[b].answers;
    renyi_dataset_info data;
    renyi_dataset_get_info(s->datasets[0], &data);
    *out = (renyi_eval_pair){0};
    for (size_t i = 0; i < data.n_images; i++)
        if (x[i] != RY_NO_ANSWER && y[i] != RY_NO_ANSWER)
            ry_pair_add(out, x[i] & 1, y[i] & 1, x[i] >> 1 == y[i] >> 1);
    ry_pair_finish(out);
}

size_t renyi_sweep_skip_count(const renyi_sweep *s) { return s->n_skips; }

void renyi_sweep_get_skip(const renyi_sweep *s, size_t i, renyi_sweep_skip *out)
{
    *out = s->skips[i];
}

size_t renyi_sweep_failure_count(const renyi_sweep *s) { return s->n_failures; }

void renyi_sweep_get_failure(const renyi_sweep *s, size_t i, renyi_eval_failure *out)
{
    *out = s->failures[i];
}

void renyi_sweep_get_times(const renyi_sweep *s, renyi_eval_times *out) { *out = s->times; }

void renyi_sweep_get_data(const renyi_sweep *s, renyi_dataset_info *out)
{
    renyi_dataset_get_info(s->datasets[0], out);
}
