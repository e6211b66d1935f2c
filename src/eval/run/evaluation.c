/* evaluation.c - bodies of eval.h: making an evaluation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/evaluation.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/limits.h"
#include "base/status.h"
#include "eval/data/classes.h"
#include "eval/run/merge.h"

#include <string.h>

enum { DEFAULT_BATCH = 8, MAX_POLICIES = 1024, MAX_WORKERS = 1024 };

uint32_t ry_eval_cores(const renyi_eval *e)
{
    const uint32_t cores = ry_cpu_cores() / e->ranks.r.n_sharing;
    return cores ? cores : 1;
}

/* ---- sessions ------------------------------------------------------------------------------ */

static renyi_status open_policy(renyi_eval *e, uint32_t i, renyi_error *err)
{
    const renyi_session_options o = {.struct_size = sizeof o,
                                     .max_batch = e->o.batch,
                                     .n_threads = e->o.n_threads,
                                     .policy = e->o.policies ? e->o.policies[i] : "none",
                                     .adapt = e->o.adapt ? e->o.adapt[i] : NULL};
    ry_eval_policy *p = &e->policies[i];
    renyi_cost cost;
    RY_TRY(renyi_session_new(&p->session, e->model, &o, err));
    const char *full = renyi_session_policy(p->session);
    p->text = full;
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(full, e->policies[j].text) == 0)
            return ry_fail(err, RENYI_ERR_ARG, -1, "policy \"%s\" is given twice", full);
    RY_TRY(renyi_policy_cost(e->model, NULL, full, &cost, NULL, 0, err));
    p->gmacs = cost.total.macs * 1e-9;
    return RENYI_OK;
}

/* ---- options ------------------------------------------------------------------------------- */

static renyi_status check_preprocess(renyi_eval *e, renyi_error *err)
{
    renyi_model_info info;
    renyi_model_get_info(e->model, &info);
    const renyi_preprocess *p = e->o.preprocess ? e->o.preprocess : &info.preprocess;
    if (p->size != info.image_size)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "photos of %u pixels for a model that takes %u; open the model with that "
                       "image_size",
                       p->size, info.image_size);
    e->spec = (ry_photo_spec){*p, ry_limits(&e->o.limits), e->o.apply_exif};
    e->normalise = memcmp(p->mean, info.preprocess.mean, sizeof p->mean) != 0 ||
                   memcmp(p->std, info.preprocess.std, sizeof p->std) != 0;
    return RENYI_OK;
}

static renyi_status check_classes(renyi_eval *e, renyi_error *err)
{
    renyi_dataset_info data;
    renyi_model_info model;
    renyi_dataset_get_info(e->data, &data);
    renyi_model_get_info(e->model, &model);
    e->n_images = (size_t)data.n_images;
    e->choice = (ry_choice){model.n_classes, data.n_valid, data.valid};
    if (data.n_classes == model.n_classes) return RENYI_OK;
    if (!model.n_classes) return ry_no_classifier(&model, err);
    return ry_fail(err, RENYI_ERR_ARG, -1, "the dataset has %u classes, the model %u",
                   data.n_classes, model.n_classes);
}

static renyi_status check_options(renyi_eval_options *o, renyi_error *err)
{
    if (o->n_policies && !o->policies)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_options: policies is NULL");
    if (!o->n_policies) o->policies = NULL, o->n_policies = 1;
    if (!o->batch) o->batch = DEFAULT_BATCH;
    if (o->n_policies > MAX_POLICIES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%u policies; at most %d", o->n_policies,
                       MAX_POLICIES);
    for (uint32_t i = 0; o->adapt && i < o->n_policies; i++)
        if (o->adapt[i] && (o->resume || (o->ranks && o->ranks->n_ranks > 1)))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "an evaluation that adapts goes through all photos in order: it can "
                           "neither be resumed nor be shared by ranks");
    if (o->n_workers > MAX_WORKERS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%u workers; at most %d", o->n_workers,
                       MAX_WORKERS);
    return RENYI_OK;
}

static renyi_status fill(renyi_eval *e, renyi_error *err)
{
    RY_TRY(check_options(&e->o, err));
    RY_TRY(ry_ranks_open(&e->ranks, e->o.ranks, &e->al, err));
    if (!e->o.n_threads) e->o.n_threads = ry_eval_cores(e);
    RY_TRY(check_classes(e, err));
    RY_TRY(check_preprocess(e, err));
    const size_t n_answers = e->n_images * e->o.n_policies; /* 2^24 photos x 2^10 policies fit */
    e->policies = ry_calloc(&e->al, e->o.n_policies, sizeof *e->policies);
    e->answers = ry_calloc(&e->al, n_answers, sizeof *e->answers);
    if (!e->policies || !e->answers) return ry_fail_nomem(err, n_answers * sizeof *e->answers);
    for (uint32_t i = 0; i < e->o.n_policies; i++) RY_TRY(open_policy(e, i, err));
    const size_t n_logits = (size_t)e->o.batch * e->choice.n; /* the session checked the batch */
    e->logits = ry_alloc(&e->al, n_logits, sizeof *e->logits);
    if (!e->logits) return ry_fail_nomem(err, n_logits * sizeof *e->logits);
    renyi_model_info info;
    renyi_model_get_info(e->model, &info);
    return ry_eval_open_log(e, e->o.name ? e->o.name : info.architecture, err);
}

renyi_status renyi_eval_new(renyi_eval **out, const renyi_model *m, const renyi_dataset *d,
                            const renyi_eval_options *opt, renyi_error *err)
{
    renyi_eval_options o = {0};
    if (!out || !m || !d) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_new: NULL argument");
    *out = NULL;
    if (opt) {
        if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_eval_options: struct_size %u, this library knows %zu",
                           opt->struct_size, sizeof o);
        memcpy(&o, opt, opt->struct_size);
    }
    renyi_eval *e = ry_calloc(&o.allocator, 1, sizeof *e);
    if (!e) return ry_fail_nomem(err, sizeof *e);
    e->al = o.allocator;
    e->o = o;
    e->model = m;
    e->data = d;
    e->pool.al = &e->al;
    e->log = (ry_sample_log){.al = &e->al, .fd = -1};
    const renyi_status st = fill(e, err);
    /* Borrowed for the call only. */
    e->o.policies = NULL;
    e->o.adapt = NULL;
    e->o.preprocess = NULL;
    e->o.name = e->o.log = e->o.condition = NULL;
    e->o.ranks = NULL; /* copied */
    if (st) {
        renyi_eval_free(e);
        return st;
    }
    *out = e;
    return RENYI_OK;
}

void renyi_eval_free(renyi_eval *e)
{
    if (!e) return;
    const renyi_allocator al = e->al;
    for (uint32_t i = 0; e->policies && i < e->o.n_policies; i++)
        renyi_session_free(e->policies[i].session);
    ry_sample_log_close(&e->log);
    ry_ranks_close(&e->ranks, &al);
    ry_merged_free(e->merged, &al);
    ry_free(&al, e->policies);
    ry_free(&al, e->answers);
    ry_free(&al, e->logits);
    ry_free(&al, e->failures);
    ry_pool_free(&e->pool);
    ry_free(&al, e);
}
