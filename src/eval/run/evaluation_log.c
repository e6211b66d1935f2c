/* evaluation_log.c - an evaluation and its log: what an answer depends on, resuming, lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/run/evaluation.h"
#include "eval/run/fnv.h"

#include <stdio.h>
#include <string.h>

/* ---- what an answer depends on ------------------------------------------------------------- */

/* Field by field: padding has no defined value. */
static uint64_t run_number(const renyi_eval *e, const char *name)
{
    const renyi_preprocess *p = &e->spec.preprocess;
    const uint32_t numbers[] = {p->size, (uint32_t)p->crop_mode, (uint32_t)p->interpolation,
                                e->spec.apply_exif, e->choice.n};
    renyi_model_info info;
    renyi_model_get_info(e->model, &info);
    uint64_t hash = ry_fnv_text(ry_fnv_text(RY_FNV_START, name), info.architecture);
    hash = ry_fnv(hash, &info.n_params, sizeof info.n_params);
    hash = ry_fnv(hash, numbers, sizeof numbers);
    hash = ry_fnv(hash, &p->crop_pct, sizeof p->crop_pct);
    hash = ry_fnv(hash, p->mean, sizeof p->mean);
    hash = ry_fnv(hash, p->std, sizeof p->std);
    if (info.dtype != RENYI_DTYPE_F32) /* f32 as ever: older logs can be resumed */
        hash = ry_fnv_text(hash, renyi_dtype_name(info.dtype));
    if (e->o.condition) hash = ry_fnv_text(hash, e->o.condition);
    return ry_fnv(hash, e->choice.valid, e->choice.n_valid * sizeof *e->choice.valid);
}

/* ---- resuming ------------------------------------------------------------------------------ */

typedef struct resumer {
    renyi_eval *e;
    const ry_log_run *run;
    uint32_t *place; /* [n_found] by index in the listing: photo + 1 */
    uint64_t n_found;
} resumer;

static int find_policy(const renyi_eval *e, const char *text)
{
    for (uint32_t i = 0; i < e->o.n_policies; i++)
        if (strcmp(text, e->policies[i].text) == 0) return (int)i;
    return -1;
}

static int fits(const renyi_eval *e, const ry_logged *line, const renyi_dataset_image *photo)
{
    if (line->label != photo->label) return 0;
    for (uint32_t i = 0; i < line->answer.n_top; i++)
        if (line->answer.top[i] >= e->choice.n) return 0;
    /* A name that is not UTF-8 is not the same in the log; index and label must do then. */
    return strcmp(line->file, photo->file) == 0 || strstr(line->file, "\xef\xbf\xbd") != NULL;
}

static renyi_status take(void *user, const ry_logged *line, int *is_ours, renyi_error *err)
{
    const resumer *r = user;
    renyi_eval *e = r->e;
    renyi_dataset_image photo;
    (void)err;
    *is_ours = 0;
    if (strcmp(line->run.id, r->run->id) != 0) return RENYI_OK;
    *is_ours = line->error != NULL; /* the photo is tried again */
    const int policy = line->error ? -1 : find_policy(e, line->policy);
    if (policy < 0 || line->index >= r->n_found || !r->place[line->index]) return RENYI_OK;
    const size_t i = r->place[line->index] - 1u;
    renyi_dataset_get_image(e->data, i, &photo);
    if (!fits(e, line, &photo)) return RENYI_OK;
    *is_ours = 1;
    ry_answer *a = ry_eval_answer(e, (uint32_t)policy, i);
    const int is_main = strcmp(line->path, e->log.base) == 0;
    if (a->is_logged && !is_main) return RENYI_OK;
    *a = line->answer;
    a->is_logged = (uint8_t)is_main;
    ry_answer_judge(a, &photo);
    return RENYI_OK;
}

static renyi_status index_photos(resumer *r, renyi_error *err)
{
    const renyi_eval *e = r->e;
    if (!e->o.log || !e->o.resume) return RENYI_OK;
    r->place = ry_calloc(&e->al, (size_t)r->n_found, sizeof *r->place);
    if (!r->place) return ry_fail_nomem(err, (size_t)r->n_found * sizeof *r->place);
    for (size_t i = 0; i < e->n_images; i++) {
        renyi_dataset_image photo;
        renyi_dataset_get_image(e->data, i, &photo);
        r->place[photo.index] = (uint32_t)i + 1;
    }
    return RENYI_OK;
}

renyi_status ry_eval_open_log(renyi_eval *e, const char *name, renyi_error *err)
{
    renyi_dataset_info data;
    renyi_dataset_get_info(e->data, &data);
    resumer r = {.e = e, .n_found = data.n_found};
    ry_log_options o = {.path = e->o.log,
                        .rank = e->ranks.r.rank,
                        .resume = e->o.resume != 0,
                        .run = {.model = name,
                                .photos = data.n_chosen,
                                .image_size = e->spec.preprocess.size,
                                .n_classes = data.n_valid ? data.n_valid : data.n_classes,
                                .shard = data.shard,
                                .n_shards = data.n_shards},
                        .take = take,
                        .user = &r};
    e->run = run_number(e, name);
    snprintf(o.run.id, sizeof o.run.id, "%016llx", (unsigned long long)e->run);
    snprintf(o.run.data, sizeof o.run.data, "%016llx", (unsigned long long)data.fingerprint);
    r.run = &o.run;
    RY_TRY(index_photos(&r, err));
    const renyi_status st = ry_sample_log_open(&e->log, &o, &e->al, err);
    ry_free(&e->al, r.place);
    return st;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* What a line says of photo i, whatever the policy. */
static ry_logged line_of(const renyi_eval *e, size_t i)
{
    renyi_dataset_image photo;
    renyi_dataset_info data;
    renyi_dataset_get_image(e->data, i, &photo);
    renyi_dataset_get_info(e->data, &data);
    return (ry_logged){.file = photo.file,
                       .index = photo.index,
                       .place = data.n_shards ? data.shard + (uint64_t)i * data.n_shards : i,
                       .label = photo.label};
}

/* Of an answer that was run here just now, or the mean of what the other ranks did. */
static double executed_macs(const ry_eval_policy *p, const ry_answer *a)
{
    if (a->is_fresh) return renyi_session_last_macs(p->session);
    if (p->others.n_run) return p->others.macs / (double)p->others.n_run;
    return renyi_session_macs(p->session);
}

renyi_status ry_eval_put_answer(renyi_eval *e, uint32_t policy, size_t photo, renyi_error *err)
{
    const ry_eval_policy *p = &e->policies[policy];
    ry_answer *a = ry_eval_answer(e, policy, photo);
    ry_logged line = line_of(e, photo);
    line.policy = p->text;
    line.gmacs = p->gmacs;
    line.gmacs_executed = 1e-9 * executed_macs(p, a);
    line.answer = *a;
    RY_TRY(ry_sample_log_put(&e->log, &line, err));
    a->is_logged = !e->log.is_part;
    return RENYI_OK;
}

renyi_status ry_eval_put_failure(renyi_eval *e, const ry_failure *f, renyi_error *err)
{
    ry_logged line = line_of(e, f->photo);
    line.error = f->shown.message;
    if (f->policy != RY_ALL_POLICIES) line.policy = e->policies[f->policy].text;
    return ry_sample_log_put(&e->log, &line, err);
}

/* In dataset order, flushed now and then: the buffer stays small. */
renyi_status ry_eval_complete_log(renyi_eval *e, renyi_error *err)
{
    enum { OFTEN = 1 << 20 };
    if (e->log.fd < 0 || e->log.is_part) return RENYI_OK;
    for (size_t i = 0; i < e->n_images; i++)
        for (uint32_t p = 0; p < e->o.n_policies; p++) {
            const ry_answer *a = ry_eval_answer(e, p, i);
            if (a->state != RY_ANSWER_GIVEN || a->is_logged) continue;
            RY_TRY(ry_eval_put_answer(e, p, i, err));
            if (e->log.used > OFTEN) RY_TRY(ry_sample_log_flush(&e->log, err));
        }
    return ry_sample_log_sync(&e->log, err);
}
