/* merge.c - renyi_eval_merge: an evaluation made of the logs of its parts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/merge.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "eval/run/evaluation.h"

#include <math.h>
#include <string.h>

enum { MAX_LOGS = 1 << 20 };
#define DEFAULT_SAMPLES ((uint64_t)1 << 26)
#define MAX_ANSWERS ((size_t)1 << 28)

/* ---- reading ------------------------------------------------------------------------------- */

static renyi_status read_logs(ry_merged *m, size_t n_logs, renyi_error *err)
{
    for (size_t i = 0; i < n_logs; i++) {
        ry_mapped_file f;
        m->log = (uint32_t)i;
        RY_TRY(ry_mapped_file_open(&f, m->logs[i], 0, err));
        const renyi_status st = ry_merged_read(m, (const char *)f.data, f.size, err);
        ry_mapped_file_close(&f);
        RY_TRY(st);
    }
    if (m->n_samples) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%.300s%s: no sample%s%.20s", m->logs[0],
                   n_logs > 1 ? " and the others" : "", m->o.run ? " of run " : "",
                   m->o.run ? m->o.run : "");
}

/* ---- samples become answers ---------------------------------------------------------------- */

/* A nominal cost that two lines disagree about was not one policy's. */
static renyi_status take_cost(renyi_eval *e, const ry_merge_sample *s, renyi_error *err)
{
    ry_eval_policy *p = &e->policies[s->policy];
    if (isnan(p->gmacs)) p->gmacs = s->gmacs;
    if (!isnan(s->gmacs) && s->gmacs != p->gmacs)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.300s:%llu: %.9g GMACs for a policy that had %.9g before",
                       e->merged->logs[s->log], (unsigned long long)s->line, s->gmacs, p->gmacs);
    if (isnan(s->gmacs_executed)) return RENYI_OK;
    p->own.macs += 1e9 * s->gmacs_executed;
    p->own.n_run++;
    return RENYI_OK;
}

static renyi_status take_failure(renyi_eval *e, size_t photo, const ry_merge_sample *s,
                                 renyi_error *err)
{
    if (!ry_grow(&e->al, (void **)&e->failures, &e->failure_capacity, e->n_failures,
                 sizeof *e->failures))
        return ry_fail_nomem(err, e->n_failures * sizeof *e->failures);
    e->failures[e->n_failures++] = (ry_failure){{s->file, s->error}, photo, s->policy};
    if (s->policy != RY_ALL_POLICIES) ry_eval_answer(e, s->policy, photo)->state = RY_ANSWER_NAN;
    return RENYI_OK;
}

static renyi_status take_samples(renyi_eval *e, renyi_error *err)
{
    const ry_merged *m = e->merged;
    for (size_t i = 0; i < m->n_photos; i++) {
        const size_t end = i + 1 < m->n_photos ? m->photos[i + 1].first : m->n_samples;
        for (size_t k = m->photos[i].first; k < end; k++) {
            const ry_merge_sample *s = &m->samples[k];
            if (s->is_dropped) continue;
            if (s->error) {
                RY_TRY(take_failure(e, i, s, err));
                continue;
            }
            *ry_eval_answer(e, s->policy, i) = s->answer;
            RY_TRY(take_cost(e, s, err));
            e->times.images += s->policy == 0;
        }
    }
    return RENYI_OK;
}

static renyi_status make_policies(renyi_eval *e, renyi_error *err)
{
    const ry_merged *m = e->merged;
    size_t n_answers;
    e->n_images = m->n_photos;
    if (!ry_mul_size(m->n_photos, m->n_policies, &n_answers) || n_answers > MAX_ANSWERS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%zu photos x %zu policies; at most %zu answers",
                       m->n_photos, m->n_policies, MAX_ANSWERS);
    e->policies = ry_calloc(&e->al, m->n_policies, sizeof *e->policies);
    e->answers = ry_calloc(&e->al, n_answers, sizeof *e->answers);
    if (!e->policies || !e->answers) return ry_fail_nomem(err, n_answers * sizeof *e->answers);
    e->o.n_policies = (uint32_t)m->n_policies;
    for (size_t i = 0; i < m->n_policies; i++)
        e->policies[i] = (ry_eval_policy){.text = m->policies[i], .gmacs = NAN};
    return RENYI_OK;
}

static renyi_status merge(renyi_eval *e, const char *const *logs, size_t n_logs,
                          const renyi_merge_options *o, renyi_error *err)
{
    ry_merged *m = ry_calloc(&e->al, 1, sizeof *m);
    if (!m) return ry_fail_nomem(err, sizeof *m);
    e->merged = m;
    m->o = *o;
    m->pool.al = &e->al;
    m->logs = logs;
    if (!m->o.max_samples) m->o.max_samples = DEFAULT_SAMPLES;
    RY_TRY(read_logs(m, n_logs, err));
    RY_TRY(ry_merged_sort(m, &e->al, err));
    RY_TRY(make_policies(e, err));
    RY_TRY(take_samples(e, err));
    m->logs = NULL; /* borrowed for the call */
    m->o.run = NULL;
    return RENYI_OK;
}

renyi_status renyi_eval_merge(renyi_eval **out, const char *const *logs, size_t n_logs,
                              const renyi_merge_options *opt, renyi_error *err)
{
    renyi_merge_options o = {0};
    if (!out || !logs || !n_logs || n_logs > MAX_LOGS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_merge: NULL argument, or no logs");
    *out = NULL;
    if (opt) {
        if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_merge_options: struct_size %u, this library knows %zu",
                           opt->struct_size, sizeof o);
        memcpy(&o, opt, opt->struct_size);
    }
    renyi_eval *e = ry_calloc(&o.allocator, 1, sizeof *e);
    if (!e) return ry_fail_nomem(err, sizeof *e);
    e->al = o.allocator;
    e->pool.al = &e->al;
    e->log = (ry_sample_log){.al = &e->al, .fd = -1};
    e->times.n_ranks = 1;
    const renyi_status st = merge(e, logs, n_logs, &o, err);
    if (st)
        renyi_eval_free(e);
    else
        *out = e;
    return st;
}

/* ---- what is there and what is not --------------------------------------------------------- */

void renyi_eval_get_merge_info(const renyi_eval *e, renyi_merge_info *out)
{
    const ry_merged *m = e->merged;
    *out = (renyi_merge_info){0};
    if (!m) return;
    *out = (renyi_merge_info){.model = m->run.model,
                              .run = m->run.id,
                              .image_size = m->run.image_size,
                              .n_classes = m->run.n_classes,
                              .n_shards = m->run.n_shards,
                              .n_photos = m->run.photos,
                              .n_missing = m->n_missing,
                              .n_repeated = m->n_repeated};
}

int renyi_eval_next_missing(const renyi_eval *e, uint64_t from, uint64_t *place)
{
    const ry_merged *m = e->merged;
    if (!m) return 0;
    size_t low = 0, high = m->n_photos; /* the first photo at or after `from` */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->photos[middle].place < from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < m->n_photos && m->photos[low].place == from && m->photos[low].is_complete; from++)
        low++;
    *place = from;
    return from < m->run.photos;
}

/* ---- one log ------------------------------------------------------------------------------- */

static renyi_status put_samples(ry_sample_log *log, const ry_merged *m, renyi_error *err)
{
    enum { OFTEN = 1 << 20 };
    for (size_t i = 0; i < m->n_samples; i++) {
        const ry_merge_sample *s = &m->samples[i];
        if (s->is_dropped) continue;
        const ry_logged line = {.file = s->file,
                                .policy =
                                    s->policy == RY_ALL_POLICIES ? NULL : m->policies[s->policy],
                                .error = s->error,
                                .index = s->index,
                                .place = s->place,
                                .label = s->label,
                                .gmacs = s->gmacs,
                                .gmacs_executed = s->gmacs_executed,
                                .answer = s->answer};
        RY_TRY(ry_sample_log_put(log, &line, err));
        if (log->used > OFTEN) RY_TRY(ry_sample_log_flush(log, err));
    }
    return ry_sample_log_sync(log, err);
}

renyi_status renyi_eval_write_log(const renyi_eval *e, const char *path, renyi_error *err)
{
    ry_sample_log log = {.fd = -1};
    if (!e || !path || !e->merged)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_write_log: not a merged evaluation");
    ry_log_options o = {.path = path, .run = e->merged->run};
    o.run.shard = o.run.n_shards = 0; /* the whole again */
    renyi_status st = ry_sample_log_open(&log, &o, &e->al, err);
    if (st == RENYI_ERR_ARG)
        st = ry_fail(err, st, -1, "%s: there are results already; give a new name, or remove it",
                     path);
    if (!st) st = put_samples(&log, e->merged, err);
    ry_sample_log_close(&log);
    return st;
}
