/* evaluation.c - makes an evaluation, resumes it from its log, and writes log lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/evaluation.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "eval/data/classes.h"
#include "eval/run/merge.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_BATCH = 8, MAX_POLICIES = 1024, MAX_WORKERS = 1024 };

uint32_t ry_eval_cores(const renyi_eval *e)
{
    const uint32_t cores = ry_cpu_cores() / e->shared.ranks.r.n_sharing;
    return cores ? cores : 1;
}

renyi_eval_times ry_eval_no_times(const renyi_eval *e)
{
    return (renyi_eval_times){.n_ranks = 1, .n_threads = e->o.n_threads, .batch = e->o.batch};
}

/* ---- sessions ------------------------------------------------------------------------------ */

/* All policies have the same classes and decoded images; dtypes tell their models apart. */
static renyi_status check_model(const renyi_eval *e, ry_eval_policy *p, renyi_error *err)
{
    renyi_model_info first, own;
    if (!p->model) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_options: a model is NULL");
    renyi_model_get_info(e->model, &first);
    renyi_model_get_info(p->model, &own);
    p->dtype = own.dtype;
    if (own.n_classes == first.n_classes && own.image_size == first.image_size) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "a model with %u classes and images of %u pixels beside one with %u and %u",
                   own.n_classes, own.image_size, first.n_classes, first.image_size);
}

static renyi_status open_policy(renyi_eval *e, uint32_t i, renyi_error *err)
{
    const renyi_session_options o = {.struct_size = sizeof o,
                                     .max_batch = e->images_per_run,
                                     .n_threads = e->o.n_threads,
                                     .policy = e->o.policies ? e->o.policies[i] : "none",
                                     .adapt = e->o.adapt ? e->o.adapt[i] : NULL,
                                     .n_streams = e->o.n_streams};
    ry_eval_policy *p = &e->policies[i];
    renyi_cost cost;
    p->model = e->o.models ? e->o.models[i] : e->model;
    RY_TRY(check_model(e, p, err));
    RY_TRY(renyi_session_new(&p->session, p->model, &o, err));
    const char *full = renyi_session_policy(p->session);
    p->text = full;
    for (uint32_t j = 0; j < i; j++)
        if (p->dtype == e->policies[j].dtype && strcmp(full, e->policies[j].text) == 0)
            return ry_fail(err, RENYI_ERR_ARG, -1, "policy \"%s\" is given twice", full);
    RY_TRY(renyi_policy_cost(p->model, NULL, full, &cost, NULL, 0, err));
    p->gmacs = cost.total.macs * 1e-9;
    p->gmacs_second = cost.second.macs * 1e-9;
    p->macs_second = cost.second.macs_executed;
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
                       "images of %u pixels for a model that takes %u; open the model with that "
                       "image_size",
                       p->size, info.image_size);
    e->spec = ry_image_spec_of(p, &e->o.limits, e->o.apply_exif, e->o.decode);
    e->normalize = memcmp(p->mean, info.preprocess.mean, sizeof p->mean) != 0 ||
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
                           "an evaluation that adapts needs all images in order, so it cannot be "
                           "resumed or shared by ranks");
    if (o->n_workers > MAX_WORKERS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%u workers; at most %d", o->n_workers,
                       MAX_WORKERS);
    return RENYI_OK;
}

/* ---- the hash of a run --------------------------------------------------------------------- */

/* Field by field, because padding has no defined value. */
static uint64_t hash_run(const renyi_eval *e, const renyi_model *m, const char *name)
{
    const renyi_preprocess *p = &e->spec.preprocess;
    const uint32_t numbers[] = {p->size, (uint32_t)p->crop_mode, (uint32_t)p->interpolation,
                                e->spec.load.apply_exif, e->choice.n};
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    uint64_t hash = ry_hash_add_text(ry_hash_add_text(RY_HASH_START, name), info.architecture);
    hash = ry_hash_add(hash, &info.n_params, sizeof info.n_params);
    hash = ry_hash_add(hash, numbers, sizeof numbers);
    hash = ry_hash_add(hash, &p->crop_pct, sizeof p->crop_pct);
    hash = ry_hash_add(hash, p->mean, sizeof p->mean);
    hash = ry_hash_add(hash, p->std, sizeof p->std);
    if (info.dtype != RENYI_DTYPE_F32) /* logs from before there were dtypes can be resumed */
        hash = ry_hash_add_text(hash, renyi_dtype_name(info.dtype));
    if (e->o.decode != RENYI_DECODE_EXACT) hash = ry_hash_add_text(hash, "decode=scaled");
    if (e->o.condition) hash = ry_hash_add_text(hash, e->o.condition);
    return ry_hash_add(hash, e->choice.valid, e->choice.n_valid * sizeof *e->choice.valid);
}

static void hash_runs(renyi_eval *e, const char *name)
{
    e->run = RY_HASH_START;
    for (uint32_t i = 0; i < e->o.n_policies; i++) {
        ry_eval_policy *p = &e->policies[i];
        snprintf(p->run, sizeof p->run, "%016llx", (unsigned long long)hash_run(e, p->model, name));
        e->run = ry_hash_add_text(e->run, p->run);
    }
}

/* Is this the first policy of its run? */
static int begins_run(const renyi_eval *e, uint32_t policy)
{
    for (uint32_t i = 0; i < policy; i++)
        if (strcmp(e->policies[i].run, e->policies[policy].run) == 0) return 0;
    return 1;
}

/* ---- resuming ------------------------------------------------------------------------------ */

typedef struct resumer {
    renyi_eval *e;
    uint32_t *place; /* [n_found] by index in the listing: image + 1; 0 = not in this run */
    uint64_t n_found;
} resumer;

/* `text` NULL: any policy of the run. -1 = none. */
static int find_policy(const renyi_eval *e, const char *run, const char *text)
{
    for (uint32_t i = 0; i < e->o.n_policies; i++)
        if (strcmp(run, e->policies[i].run) == 0 &&
            (!text || strcmp(text, e->policies[i].text) == 0))
            return (int)i;
    return -1;
}

static int fits_image(const renyi_eval *e, const ry_logged *line, const renyi_dataset_image *image)
{
    if (line->label != image->label) return 0;
    for (uint32_t i = 0; i < line->answer.n_top; i++)
        if (line->answer.top[i] >= e->choice.n) return 0;
    /* The log cannot hold a name that is not UTF-8: index and label have to be enough then. */
    return strcmp(line->file, image->file) == 0 || strstr(line->file, "\xef\xbf\xbd") != NULL;
}

static renyi_status take_logged(void *user, const ry_logged *line, int *is_ours, renyi_error *err)
{
    const resumer *r = user;
    renyi_eval *e = r->e;
    renyi_dataset_image image;
    (void)err;
    *is_ours = 0;
    const int policy = find_policy(e, line->run.id, line->error ? NULL : line->policy);
    if (policy < 0) return RENYI_OK;
    *is_ours = line->error != NULL; /* the image is tried again */
    if (line->error || line->index >= r->n_found || !r->place[line->index]) return RENYI_OK;
    const size_t i = r->place[line->index] - 1u;
    renyi_dataset_get_image(e->data, i, &image);
    if (!fits_image(e, line, &image)) return RENYI_OK;
    *is_ours = 1;
    ry_answer *a = ry_eval_answer(e, (uint32_t)policy, i);
    const int is_main = strcmp(line->path, e->log.file.base) == 0;
    if (a->is_logged && !is_main) return RENYI_OK;
    *a = line->answer;
    a->is_logged = (uint8_t)is_main;
    ry_answer_judge(a, &image);
    return RENYI_OK;
}

static renyi_status index_images(resumer *r, renyi_error *err)
{
    const renyi_eval *e = r->e;
    if (!e->o.log || !e->o.resume) return RENYI_OK;
    r->place = ry_calloc(&e->al, (size_t)r->n_found, sizeof *r->place);
    if (!r->place) return ry_fail_nomem(err, (size_t)r->n_found * sizeof *r->place);
    for (size_t i = 0; i < e->n_images; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(e->data, i, &image);
        r->place[image.index] = (uint32_t)i + 1;
    }
    return RENYI_OK;
}

static renyi_status open_log(renyi_eval *e, const char *name, renyi_error *err)
{
    renyi_dataset_info data;
    renyi_dataset_get_info(e->data, &data);
    resumer r = {.e = e, .n_found = data.n_found};
    ry_log_options o = {.path = e->o.log,
                        .rank = e->shared.ranks.r.rank,
                        .resume = e->o.resume != 0,
                        .run = {.model = name,
                                .images = data.n_chosen,
                                .image_size = e->spec.preprocess.size,
                                .n_classes = data.n_valid ? data.n_valid : data.n_classes,
                                .shard = data.shard,
                                .n_shards = data.n_shards},
                        .take = take_logged,
                        .user = &r};
    hash_runs(e, name);
    snprintf(o.run.data, sizeof o.run.data, "%016llx", (unsigned long long)data.fingerprint);
    RY_TRY(index_images(&r, err));
    const renyi_status st = ry_sample_log_open(&e->log, &o, &e->al, err);
    ry_free(&e->al, r.place);
    return st;
}

/* ---- new and free -------------------------------------------------------------------------- */

static renyi_status open_evaluation(renyi_eval *e, renyi_error *err)
{
    RY_TRY(check_options(&e->o, err));
    RY_TRY(ry_ranks_open(&e->shared.ranks, e->o.ranks, &e->al, err));
    if (!e->o.n_threads) e->o.n_threads = ry_cpu_threads(e->shared.ranks.r.n_sharing);
    e->times = ry_eval_no_times(e);
    RY_TRY(ry_streams_batch(&e->images_per_run, e->o.batch, e->o.n_streams, err));
    RY_TRY(check_classes(e, err));
    RY_TRY(check_preprocess(e, err));
    const size_t n_answers = e->n_images * e->o.n_policies; /* 2^24 images x 2^10 policies fit */
    e->policies = ry_calloc(&e->al, e->o.n_policies, sizeof *e->policies);
    e->answers = ry_calloc(&e->al, n_answers, sizeof *e->answers);
    if (!e->policies || !e->answers) return ry_fail_nomem(err, n_answers * sizeof *e->answers);
    for (uint32_t i = 0; i < e->o.n_policies; i++) RY_TRY(open_policy(e, i, err));
    const size_t n_logits =
        (size_t)e->images_per_run * e->choice.n; /* the session checked the batch */
    e->logits = ry_alloc(&e->al, n_logits, sizeof *e->logits);
    if (!e->logits) return ry_fail_nomem(err, n_logits * sizeof *e->logits);
    renyi_model_info info;
    renyi_model_get_info(e->model, &info);
    return open_log(e, e->o.name ? e->o.name : info.architecture, err);
}

renyi_status renyi_eval_new(renyi_eval **out, const renyi_model *m, const renyi_dataset *d,
                            const renyi_eval_options *opt, renyi_error *err)
{
    renyi_eval_options o;
    if (!out || !m || !d) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_eval_options", err));
    renyi_eval *e = ry_calloc(&o.allocator, 1, sizeof *e);
    if (!e) return ry_fail_nomem(err, sizeof *e);
    e->al = o.allocator;
    e->o = o;
    e->model = m;
    e->data = d;
    e->shared.progress = o.progress;
    e->shared.user = o.user;
    e->pool.al = &e->al;
    e->log = (ry_sample_log){.file = {.fd = -1}};
    const renyi_status st = open_evaluation(e, err);
    /* borrowed for the call only */
    e->o.policies = NULL;
    e->o.models = NULL;
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
    ry_ranks_close(&e->shared.ranks, &al);
    ry_merged_free(e->merged, &al);
    ry_free(&al, e->policies);
    ry_free(&al, e->answers);
    ry_free(&al, e->logits);
    ry_free(&al, e->failures);
    ry_pool_free(&e->pool);
    ry_free(&al, e);
}

/* ---- log lines ----------------------------------------------------------------------------- */

/* The part of a line that depends on image i only. */
static ry_logged line_of(const renyi_eval *e, size_t i)
{
    renyi_dataset_image image;
    renyi_dataset_info data;
    renyi_dataset_get_image(e->data, i, &image);
    renyi_dataset_get_info(e->data, &data);
    return (ry_logged){.file = image.file,
                       .index = image.index,
                       .place = data.n_shards ? data.shard + (uint64_t)i * data.n_shards : i,
                       .label = image.label};
}

static void set_run(ry_logged *line, const ry_eval_policy *p)
{
    memcpy(line->run.id, p->run, sizeof line->run.id);
    line->run.dtype = p->dtype;
}

/* Of the batch that this rank has just run, or the mean of the other ranks; of a cascade what the
 * passes of this image have. */
static double executed_macs(const ry_eval_policy *p, const ry_answer *a)
{
    if (a->passes) return renyi_session_macs(p->session) - (2 - a->passes) * p->macs_second;
    if (a->is_fresh) return renyi_session_last_macs(p->session);
    if (p->others.n_run) return p->others.macs / (double)p->others.n_run;
    return renyi_session_macs(p->session);
}

renyi_status ry_eval_put_answer(renyi_eval *e, uint32_t policy, size_t image, renyi_error *err)
{
    const ry_eval_policy *p = &e->policies[policy];
    ry_answer *a = ry_eval_answer(e, policy, image);
    ry_logged line = line_of(e, image);
    line.policy = p->text;
    set_run(&line, p);
    line.gmacs = p->gmacs;
    line.gmacs_second = p->gmacs_second;
    line.gmacs_executed = 1e-9 * executed_macs(p, a);
    line.answer = *a;
    RY_TRY(ry_sample_log_put(&e->log, &line, err));
    a->is_logged = !e->log.file.is_part;
    return RENYI_OK;
}

/* An unreadable image is a line in every run, so that each can be merged by itself. */
renyi_status ry_eval_put_failure(renyi_eval *e, const ry_failure *f, renyi_error *err)
{
    ry_logged line = line_of(e, f->image);
    line.error = f->shown.message;
    for (uint32_t i = 0; i < e->o.n_policies; i++) {
        const ry_eval_policy *p = &e->policies[i];
        if (f->policy == RY_ALL_POLICIES ? !begins_run(e, i) : i != f->policy) continue;
        if (f->policy == i) line.policy = p->text;
        set_run(&line, p);
        RY_TRY(ry_sample_log_put(&e->log, &line, err));
    }
    return RENYI_OK;
}

/* In dataset order. Flushed after every megabyte, so that the buffer stays small. */
renyi_status ry_eval_complete_log(renyi_eval *e, renyi_error *err)
{
    enum { FLUSH_BYTES = 1 << 20 };
    if (e->log.file.fd < 0 || e->log.file.is_part) return RENYI_OK;
    for (size_t i = 0; i < e->n_images; i++)
        for (uint32_t p = 0; p < e->o.n_policies; p++) {
            const ry_answer *a = ry_eval_answer(e, p, i);
            if (a->state != RY_ANSWER_GIVEN || a->is_logged) continue;
            RY_TRY(ry_eval_put_answer(e, p, i, err));
            if (e->log.lines.size > FLUSH_BYTES) RY_TRY(ry_sample_log_flush(&e->log, err));
        }
    return ry_sample_log_sync(&e->log, err);
}
