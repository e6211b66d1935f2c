/* merge.c - renyi_eval_merge: makes one evaluation of the logs of several.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/merge.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "eval/run/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LOGS = 1 << 20, MAX_POLICIES = 1024 };
#define MAX_IMAGES ((uint64_t)1 << 24)
#define DEFAULT_SAMPLES ((uint64_t)1 << 26)
#define MAX_ANSWERS ((size_t)1 << 28)

/* ---- one line ------------------------------------------------------------------------------ */

/* All other lines must be of the run of the first line. */
static renyi_status copy_run(ry_merged *m, const ry_logged *line, renyi_error *err)
{
    m->run = line->run;
    m->run.model = ry_pool_copy(&m->pool, ry_text_of(line->run.model));
    return m->run.model ? RENYI_OK : ry_fail_nomem(err, strlen(line->run.model));
}

static renyi_status fail_line(const ry_merged *m, const ry_logged *line, const char *what,
                              renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%.200s:%llu: %s than the first line of %.200s",
                   line->path, (unsigned long long)line->line, what, m->logs[0]);
}

static renyi_status check_run(const ry_merged *m, const ry_logged *line, renyi_error *err)
{
    const ry_log_run *a = &m->run, *b = &line->run;
    if (strcmp(a->id, b->id) != 0 || strcmp(a->model, b->model) != 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.160s:%llu: run %s of %.60s, but the lines before are of run %s of %.60s; "
                       "merge one run at a time",
                       line->path, (unsigned long long)line->line, b->id, b->model, a->id,
                       a->model);
    if (a->images != b->images || strcmp(a->data, b->data) != 0)
        return fail_line(m, line, "from a run over other images or classes", err);
    if (a->image_size != b->image_size || a->n_classes != b->n_classes)
        return fail_line(m, line, "with another image size or number of classes", err);
    if (line->place >= a->images || a->images > MAX_IMAGES)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.300s:%llu: this line has no place in the order of all images; logs of an "
                       "older version cannot be merged",
                       line->path, (unsigned long long)line->line);
    return RENYI_OK;
}

static renyi_status find_policy(ry_merged *m, const ry_logged *line, uint32_t *out,
                                renyi_error *err)
{
    *out = RY_ALL_POLICIES;
    if (!line->policy) return RENYI_OK;
    for (uint32_t i = 0; i < m->n_policies; i++)
        if (strcmp(m->policies[i], line->policy) == 0) return *out = i, RENYI_OK;
    if (m->n_policies == MAX_POLICIES || strlen(line->policy) >= RENYI_POLICY_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%.300s:%llu: more than %d policies, or one of more than %d bytes",
                       line->path, (unsigned long long)line->line, MAX_POLICIES, RENYI_POLICY_MAX);
    const char *copy = ry_pool_copy(&m->pool, ry_text_of(line->policy));
    if (!copy || !ry_grow(m->pool.al, (void **)&m->policies, &m->policy_capacity, m->n_policies,
                          sizeof *m->policies))
        return ry_fail_nomem(err, strlen(line->policy));
    *out = (uint32_t)m->n_policies;
    m->policies[m->n_policies++] = copy;
    return RENYI_OK;
}

static renyi_status add_sample(ry_merged *m, const ry_logged *line, renyi_error *err)
{
    const ry_merge_sample *last = m->n_samples ? &m->samples[m->n_samples - 1] : NULL;
    ry_merge_sample s = {.index = line->index,
                         .place = line->place,
                         .line = line->line,
                         .log = m->log,
                         .label = line->label,
                         .gmacs = line->gmacs,
                         .gmacs_executed = line->gmacs_executed,
                         .gmacs_second = line->gmacs_second,
                         .answer = line->answer};
    RY_TRY(find_policy(m, line, &s.policy, err));
    /* Lines of one image usually follow each other: its name is stored once. */
    s.file = last && strcmp(last->file, line->file) == 0
                 ? last->file
                 : ry_pool_copy(&m->pool, ry_text_of(line->file));
    if (line->error) s.error = ry_pool_copy(&m->pool, ry_text_of(line->error));
    if (!s.file || (line->error && !s.error) ||
        !ry_grow(m->pool.al, (void **)&m->samples, &m->sample_capacity, m->n_samples,
                 sizeof *m->samples))
        return ry_fail_nomem(err, m->sample_capacity * sizeof *m->samples);
    m->samples[m->n_samples++] = s;
    return RENYI_OK;
}

static renyi_status take_line(void *user, const ry_logged *line, int *is_ours, renyi_error *err)
{
    ry_merged *m = user;
    *is_ours = !m->o.run || strcmp(m->o.run, line->run.id) == 0;
    if (!*is_ours) return RENYI_OK;
    if (!m->run.model) RY_TRY(copy_run(m, line, err));
    RY_TRY(check_run(m, line, err));
    if (m->n_samples >= m->o.max_samples)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%.300s:%llu: more than %llu samples", line->path,
                       (unsigned long long)line->line, (unsigned long long)m->o.max_samples);
    if (m->run.n_shards != line->run.n_shards) m->run.n_shards = 0; /* shards of different sizes */
    return add_sample(m, line, err);
}

renyi_status ry_merged_read(ry_merged *m, const char *bytes, size_t size, renyi_error *err)
{
    size_t whole = 0;
    uint64_t n_foreign = 0;
    return ry_sample_log_read(m->logs[m->log], bytes, size, &whole, &n_foreign, take_line, m, err);
}

/* ---- all lines ----------------------------------------------------------------------------- */

/* An answer comes before a failure of the same policy; the rest is in the order of the logs. */
static int compare_samples(const void *a, const void *b)
{
    const ry_merge_sample *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->policy != y->policy) return x->policy < y->policy ? -1 : 1;
    if (!x->error != !y->error) return x->error ? 1 : -1;
    if (x->log != y->log) return x->log < y->log ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static int is_same_real(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* Only times may differ. */
static int is_same_answer(const ry_answer *a, const ry_answer *b)
{
    return a->n_top == b->n_top && a->right == b->right && is_same_real(a->loss, b->loss) &&
           is_same_real((double)a->margin, (double)b->margin) &&
           memcmp(a->top, b->top, a->n_top * sizeof *a->top) == 0;
}

static renyi_status fail_contradiction(const ry_merged *m, const ry_merge_sample *a,
                                       const ry_merge_sample *b, const char *what, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.150s:%llu and %.150s:%llu contradict each other about the %s of %.60s",
                   m->logs[a->log], (unsigned long long)a->line, m->logs[b->log],
                   (unsigned long long)b->line, what, b->file);
}

/* Compares sample i with the first of its image and, because samples are sorted, with the one
 * before it. A failure has no class. */
static renyi_status check_sample(const ry_merged *m, const ry_merge_image *image, size_t i,
                                 renyi_error *err)
{
    const ry_merge_sample *s = &m->samples[i], *first = &m->samples[image->first];
    const ry_merge_sample *answer = &m->samples[image->answered], *last = i ? s - 1 : s;
    if (s->index != first->index || strcmp(s->file, first->file) != 0)
        return fail_contradiction(m, first, s, "name", err);
    if (!s->error && !answer->error && s->label != answer->label)
        return fail_contradiction(m, answer, s, "class", err);
    if (i > image->first && last->policy == s->policy && !last->error && !s->error &&
        !is_same_answer(&last->answer, &s->answer))
        return fail_contradiction(m, last, s, "answer", err);
    return RENYI_OK;
}

/* Samples [first, end) are of one image. If a policy answered, the image is readable, and failures
 * to read it in another log are dropped. */
static renyi_status add_image(ry_merged *m, size_t first, size_t end, renyi_error *err)
{
    ry_merge_image image = {.first = first, .answered = first, .place = m->samples[first].place};
    size_t n_policies = 0;
    int is_unreadable = 0;
    for (size_t i = first; i < end && m->samples[image.answered].error; i++) image.answered = i;
    const int is_readable = m->samples[image.answered].error == NULL;
    for (size_t i = first; i < end; i++) {
        ry_merge_sample *s = &m->samples[i];
        RY_TRY(check_sample(m, &image, i, err));
        s->is_dropped = (i > first && s[-1].policy == s->policy) ||
                        (s->policy == RY_ALL_POLICIES && is_readable);
        m->n_repeated += s->is_dropped && !s->error;
        n_policies += !s->is_dropped && s->policy != RY_ALL_POLICIES;
        is_unreadable |= !s->is_dropped && s->policy == RY_ALL_POLICIES;
    }
    image.is_complete = is_unreadable || n_policies == m->n_policies;
    m->images[m->n_images++] = image;
    return RENYI_OK;
}

renyi_status ry_merged_sort(ry_merged *m, const renyi_allocator *al, renyi_error *err)
{
    size_t n_images = 0, n_complete = 0;
    if (m->n_samples) qsort(m->samples, m->n_samples, sizeof *m->samples, compare_samples);
    for (size_t i = 0; i < m->n_samples; i++)
        n_images += i == 0 || m->samples[i].place != m->samples[i - 1].place;
    m->images = ry_calloc(al, n_images, sizeof *m->images);
    if (!m->images) return ry_fail_nomem(err, n_images * sizeof *m->images);
    for (size_t i = 0, end; i < m->n_samples; i = end) {
        for (end = i + 1; end < m->n_samples && m->samples[end].place == m->samples[i].place;)
            end++;
        RY_TRY(add_image(m, i, end, err));
        n_complete += m->images[m->n_images - 1].is_complete;
    }
    m->n_missing = m->run.images - n_complete;
    return RENYI_OK;
}

void ry_merged_get_image(const ry_merged *m, size_t i, renyi_dataset_image *out)
{
    const ry_merge_sample *s = &m->samples[m->images[i].answered];
    out->file = s->file;
    out->index = s->index;
    out->label = s->label;
}

void ry_merged_free(ry_merged *m, const renyi_allocator *al)
{
    if (!m) return;
    ry_pool_free(&m->pool);
    ry_free(al, m->samples);
    ry_free(al, m->policies);
    ry_free(al, m->images);
    ry_free(al, m);
}

/* ---- reading all logs ---------------------------------------------------------------------- */

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

/* The nominal cost of a policy is the same in all lines. */
static renyi_status take_cost(renyi_eval *e, const ry_merge_sample *s, renyi_error *err)
{
    ry_eval_policy *p = &e->policies[s->policy];
    if (isnan(p->gmacs)) p->gmacs = s->gmacs;
    if (s->gmacs_second > 0) p->gmacs_second = s->gmacs_second;
    if (!isnan(s->gmacs) && s->gmacs != p->gmacs)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.300s:%llu: %.9g GMACs for a policy that had %.9g before",
                       e->merged->logs[s->log], (unsigned long long)s->line, s->gmacs, p->gmacs);
    if (isnan(s->gmacs_executed)) return RENYI_OK;
    p->own.macs += 1e9 * s->gmacs_executed;
    p->own.n_run++;
    return RENYI_OK;
}

static renyi_status take_failure(renyi_eval *e, size_t image, const ry_merge_sample *s,
                                 renyi_error *err)
{
    if (!ry_grow(&e->al, (void **)&e->failures, &e->failure_capacity, e->n_failures,
                 sizeof *e->failures))
        return ry_fail_nomem(err, e->n_failures * sizeof *e->failures);
    e->failures[e->n_failures++] = (ry_failure){{s->file, s->error}, image, s->policy};
    if (s->policy != RY_ALL_POLICIES) ry_eval_answer(e, s->policy, image)->state = RY_ANSWER_NAN;
    return RENYI_OK;
}

static renyi_status take_samples(renyi_eval *e, renyi_error *err)
{
    const ry_merged *m = e->merged;
    for (size_t i = 0; i < m->n_images; i++) {
        const size_t end = i + 1 < m->n_images ? m->images[i + 1].first : m->n_samples;
        for (size_t k = m->images[i].first; k < end; k++) {
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
    e->n_images = m->n_images;
    if (!ry_mul_size(m->n_images, m->n_policies, &n_answers) || n_answers > MAX_ANSWERS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%zu images x %zu policies; at most %zu answers",
                       m->n_images, m->n_policies, MAX_ANSWERS);
    e->policies = ry_calloc(&e->al, m->n_policies, sizeof *e->policies);
    e->answers = ry_calloc(&e->al, n_answers, sizeof *e->answers);
    if (!e->policies || !e->answers) return ry_fail_nomem(err, n_answers * sizeof *e->answers);
    e->o.n_policies = (uint32_t)m->n_policies;
    for (size_t i = 0; i < m->n_policies; i++)
        e->policies[i] =
            (ry_eval_policy){.text = m->policies[i], .dtype = m->run.dtype, .gmacs = NAN};
    return RENYI_OK;
}

static renyi_status merge_logs(renyi_eval *e, const char *const *logs, size_t n_logs,
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
    renyi_merge_options o;
    if (!out || !logs || !n_logs || n_logs > MAX_LOGS)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_eval_merge: NULL argument, no logs or too many");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_merge_options", err));
    renyi_eval *e = ry_calloc(&o.allocator, 1, sizeof *e);
    if (!e) return ry_fail_nomem(err, sizeof *e);
    e->al = o.allocator;
    e->pool.al = &e->al;
    e->log = (ry_sample_log){.file = {.fd = -1}};
    e->times.n_ranks = 1;
    const renyi_status st = merge_logs(e, logs, n_logs, &o, err);
    if (st)
        renyi_eval_free(e);
    else
        *out = e;
    return st;
}

/* ---- what is missing ----------------------------------------------------------------------- */

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
                              .n_photos = m->run.images,
                              .n_missing = m->n_missing,
                              .n_repeated = m->n_repeated};
}

int renyi_eval_next_missing(const renyi_eval *e, uint64_t from, uint64_t *place)
{
    const ry_merged *m = e->merged;
    if (!m) return 0;
    size_t low = 0, high = m->n_images; /* the first image at or after `from` */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->images[middle].place < from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < m->n_images && m->images[low].place == from && m->images[low].is_complete; from++)
        low++;
    *place = from;
    return from < m->run.images;
}

/* ---- writing one log ----------------------------------------------------------------------- */

static renyi_status put_samples(ry_sample_log *log, const ry_merged *m, renyi_error *err)
{
    enum { FLUSH_BYTES = 1 << 20 };
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
                                .gmacs_second = s->gmacs_second,
                                .answer = s->answer,
                                .run = m->run};
        RY_TRY(ry_sample_log_put(log, &line, err));
        if (log->lines.size > FLUSH_BYTES) RY_TRY(ry_sample_log_flush(log, err));
    }
    return ry_sample_log_sync(log, err);
}

renyi_status renyi_eval_write_log(const renyi_eval *e, const char *path, renyi_error *err)
{
    ry_sample_log log = {.file = {.fd = -1}};
    if (!e || !path || !e->merged)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_write_log: not a merged evaluation");
    ry_log_options o = {.path = path, .run = e->merged->run};
    o.run.shard = o.run.n_shards = 0; /* all shards */
    renyi_status st = ry_sample_log_open(&log, &o, &e->al, err);
    if (st == RENYI_ERR_ARG)
        st = ry_fail(err, st, -1,
                     "%s: this file already has results; give another name, or remove it", path);
    if (!st) st = put_samples(&log, e->merged, err);
    ry_sample_log_close(&log);
    return st;
}
