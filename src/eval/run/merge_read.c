/* merge_read.c - see merge.h: lines of logs, whether they belong together, and their order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/run/evaluation.h"
#include "eval/run/merge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POLICIES = 1024 };
#define MAX_PHOTOS ((uint64_t)1 << 24)

/* ---- one line ------------------------------------------------------------------------------ */

/* The first line says what the others must be. */
static renyi_status start_run(ry_merged *m, const ry_logged *line, renyi_error *err)
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
                       "%.160s:%llu: run %s of %.60s, before it was run %s of %.60s; one run at a "
                       "time",
                       line->path, (unsigned long long)line->line, b->id, b->model, a->id,
                       a->model);
    if (a->photos != b->photos || strcmp(a->data, b->data) != 0)
        return fail_line(m, line, "from a run over other photos or classes", err);
    if (a->image_size != b->image_size || a->n_classes != b->n_classes)
        return fail_line(m, line, "with another image size or number of classes", err);
    if (line->place >= a->photos || a->photos > MAX_PHOTOS)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.300s:%llu: no place in the order of all photos; logs of an older version "
                       "cannot be merged",
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

static renyi_status keep(ry_merged *m, const ry_logged *line, renyi_error *err)
{
    const ry_merge_sample *last = m->n_samples ? &m->samples[m->n_samples - 1] : NULL;
    ry_merge_sample s = {.index = line->index,
                         .place = line->place,
                         .line = line->line,
                         .log = m->log,
                         .label = line->label,
                         .gmacs = line->gmacs,
                         .gmacs_executed = line->gmacs_executed,
                         .answer = line->answer};
    RY_TRY(find_policy(m, line, &s.policy, err));
    /* Policies of a photo stand together: their name is kept once. */
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

static renyi_status take(void *user, const ry_logged *line, int *is_ours, renyi_error *err)
{
    ry_merged *m = user;
    *is_ours = !m->o.run || strcmp(m->o.run, line->run.id) == 0;
    if (!*is_ours) return RENYI_OK;
    if (!m->run.model) RY_TRY(start_run(m, line, err));
    RY_TRY(check_run(m, line, err));
    if (m->n_samples >= m->o.max_samples)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%.300s:%llu: more than %llu samples", line->path,
                       (unsigned long long)line->line, (unsigned long long)m->o.max_samples);
    if (m->run.n_shards != line->run.n_shards) m->run.n_shards = 0; /* not the same cut */
    return keep(m, line, err);
}

renyi_status ry_merged_read(ry_merged *m, const char *bytes, size_t size, renyi_error *err)
{
    size_t whole = 0;
    uint64_t n_foreign = 0;
    return ry_sample_log_read(m->logs[m->log], bytes, size, &whole, &n_foreign, take, m, err);
}

/* ---- all lines ----------------------------------------------------------------------------- */

/* An answer before a failure of the same policy; else the order of the logs. */
static int by_place(const void *a, const void *b)
{
    const ry_merge_sample *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->policy != y->policy) return x->policy < y->policy ? -1 : 1;
    if (!x->error != !y->error) return x->error ? 1 : -1;
    if (x->log != y->log) return x->log < y->log ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static int is_same_real(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* Times may differ; nothing else. */
static int is_same_answer(const ry_answer *a, const ry_answer *b)
{
    return a->n_top == b->n_top && a->right == b->right && is_same_real(a->loss, b->loss) &&
           is_same_real((double)a->margin, (double)b->margin) &&
           memcmp(a->top, b->top, a->n_top * sizeof *a->top) == 0;
}

static renyi_status contradict(const ry_merged *m, const ry_merge_sample *a,
                               const ry_merge_sample *b, const char *what, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.150s:%llu and %.150s:%llu contradict each other about the %s of %.60s",
                   m->logs[a->log], (unsigned long long)a->line, m->logs[b->log],
                   (unsigned long long)b->line, what, b->file);
}

/* Sample i against the first of its photo, and the one before it: equals stand side by side. A line
 * of a failure does not say the class. */
static renyi_status check_sample(const ry_merged *m, const ry_merge_photo *photo, size_t i,
                                 renyi_error *err)
{
    const ry_merge_sample *s = &m->samples[i], *first = &m->samples[photo->first];
    const ry_merge_sample *said = &m->samples[photo->answered], *last = i ? s - 1 : s;
    if (s->index != first->index || strcmp(s->file, first->file) != 0)
        return contradict(m, first, s, "name", err);
    if (!s->error && !said->error && s->label != said->label)
        return contradict(m, said, s, "class", err);
    if (i > photo->first && last->policy == s->policy && !last->error && !s->error &&
        !is_same_answer(&last->answer, &s->answer))
        return contradict(m, last, s, "answer", err);
    return RENYI_OK;
}

/* Samples [first, end) of one photo. One that some policy answered can be read after all. */
static renyi_status settle_photo(ry_merged *m, size_t first, size_t end, renyi_error *err)
{
    ry_merge_photo photo = {.first = first, .answered = first, .place = m->samples[first].place};
    size_t n_policies = 0;
    int is_unreadable = 0;
    for (size_t i = first; i < end && m->samples[photo.answered].error; i++) photo.answered = i;
    const int is_readable = m->samples[photo.answered].error == NULL;
    for (size_t i = first; i < end; i++) {
        ry_merge_sample *s = &m->samples[i];
        RY_TRY(check_sample(m, &photo, i, err));
        s->is_dropped = (i > first && s[-1].policy == s->policy) ||
                        (s->policy == RY_ALL_POLICIES && is_readable);
        m->n_repeated += s->is_dropped && !s->error;
        n_policies += !s->is_dropped && s->policy != RY_ALL_POLICIES;
        is_unreadable |= !s->is_dropped && s->policy == RY_ALL_POLICIES;
    }
    photo.is_complete = is_unreadable || n_policies == m->n_policies;
    m->photos[m->n_photos++] = photo;
    return RENYI_OK;
}

renyi_status ry_merged_sort(ry_merged *m, const renyi_allocator *al, renyi_error *err)
{
    size_t n_photos = 0, n_complete = 0;
    if (m->n_samples) qsort(m->samples, m->n_samples, sizeof *m->samples, by_place);
    for (size_t i = 0; i < m->n_samples; i++)
        n_photos += i == 0 || m->samples[i].place != m->samples[i - 1].place;
    m->photos = ry_calloc(al, n_photos, sizeof *m->photos);
    if (!m->photos) return ry_fail_nomem(err, n_photos * sizeof *m->photos);
    for (size_t i = 0, end; i < m->n_samples; i = end) {
        for (end = i + 1; end < m->n_samples && m->samples[end].place == m->samples[i].place;)
            end++;
        RY_TRY(settle_photo(m, i, end, err));
        n_complete += m->photos[m->n_photos - 1].is_complete;
    }
    m->n_missing = m->run.photos - n_complete;
    return RENYI_OK;
}

void ry_merged_get_photo(const ry_merged *m, size_t i, renyi_dataset_image *out)
{
    const ry_merge_sample *s = &m->samples[m->photos[i].answered];
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
    ry_free(al, m->photos);
    ry_free(al, m);
}
