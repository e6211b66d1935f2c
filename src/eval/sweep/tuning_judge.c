/* tuning_judge.c - runs candidates and the dense model on the same images. Dense runs on every
 * image once, a candidate only on those that are new to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/sweep/tuning.h"

#include <math.h>
#include <string.h>

enum { GROUP = 16 }; /* sessions that hold memory at the same time */

/* Some images of the split as a dataset. */
typedef struct lot {
    renyi_tune *t;
    size_t from, to;
    renyi_dataset data; /* borrows everything except images */
    size_t *places;     /* [data.count] places of its images in the split */
    const renyi_model *model;
    renyi_preprocess preprocess;
    uint64_t done;   /* images x policies before the running evaluation */
    uint32_t weight; /* policies of the running evaluation */
    int is_dense;
} lot;

/* ---- an evaluation ------------------------------------------------------------------------- */

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    const lot *l = user;
    (void)total;
    return ry_tune_report(l->t, l->done + done * l->weight, NULL) != RENYI_OK;
}

/* Once for each image: dense runs first, and alone. */
static void on_failure(void *user, const char *file, const char *message)
{
    const lot *l = user;
    if (!l->is_dense) return;
    l->t->result.n_failed++;
    if (l->t->o.on_failure) l->t->o.on_failure(l->t->o.user, file, message);
}

/* The images of [from, to) whose dense answer has this state. */
static renyi_status choose_images(lot *l, ry_dense_state state, renyi_error *err)
{
    const renyi_tune *t = l->t;
    l->data = *t->data;
    l->data.images = ry_alloc(&t->al, l->to - l->from, sizeof *l->data.images);
    l->places = ry_alloc(&t->al, l->to - l->from, sizeof *l->places);
    if (!l->data.images || !l->places)
        return ry_fail_nomem(err, (l->to - l->from) * sizeof *l->data.images);
    l->data.count = 0;
    for (size_t i = l->from; i < l->to; i++) {
        if (t->dense[i].state != (uint8_t)state) continue;
        l->places[l->data.count] = i;
        l->data.images[l->data.count++] = t->images[i];
    }
    l->data.info.n_images = l->data.count;
    return RENYI_OK;
}

static void free_images(lot *l)
{
    ry_free(&l->t->al, l->data.images);
    ry_free(&l->t->al, l->places);
    l->data.images = NULL;
    l->places = NULL;
}

static renyi_status evaluate(lot *l, const char *const *policies, size_t n, renyi_eval **out,
                             renyi_error *err)
{
    renyi_tune *t = l->t;
    const renyi_eval_options o = {.struct_size = sizeof o,
                                  .n_policies = (uint32_t)n,
                                  .policies = policies,
                                  .n_threads = t->o.n_threads,
                                  .n_workers = t->o.n_workers,
                                  .apply_exif = t->o.apply_exif,
                                  .decode = t->o.decode,
                                  .preprocess = &l->preprocess,
                                  .name = t->o.name,
                                  .log = t->o.log,
                                  .resume = t->o.resume || t->is_log_begun,
                                  .limits = t->o.limits,
                                  .allocator = t->al,
                                  .user = l,
                                  .on_failure = on_failure,
                                  .progress = on_progress};
    l->weight = (uint32_t)n;
    RY_TRY(renyi_eval_new(out, l->model, &l->data, &o, err));
    t->is_log_begun = 1;
    const renyi_status st = renyi_eval_run(*out, err);
    l->done += (uint64_t)l->data.count * n;
    return st;
}

/* ---- dense --------------------------------------------------------------------------------- */

static void take_dense(lot *l, const renyi_eval *e)
{
    for (size_t i = 0; i < l->data.count; i++) {
        ry_dense_answer *d = &l->t->dense[l->places[i]];
        renyi_eval_sample s;
        d->state = RY_DENSE_NONE;
        if (!renyi_eval_get_sample(e, 0, i, &s)) continue;
        *d = (ry_dense_answer){.prediction = s.prediction,
                               .state = RY_DENSE_GIVEN,
                               .is_right = l->t->o.unlabelled || s.is_top1};
    }
}

static renyi_status judge_dense(lot *l, renyi_error *err)
{
    static const char *const policy[] = {"none"};
    renyi_eval *e = NULL;
    renyi_status st = choose_images(l, RY_DENSE_UNKNOWN, err);
    l->is_dense = 1;
    l->model = l->t->model;
    l->preprocess = l->t->preprocess;
    if (!st && l->data.count) st = evaluate(l, policy, 1, &e, err);
    if (!st && e) take_dense(l, e);
    renyi_eval_free(e);
    free_images(l);
    l->is_dense = 0;
    return st;
}

/* ---- candidates ---------------------------------------------------------------------------- */

static void count_answer(ry_tally *tally, const ry_dense_answer *d, int is_same, int is_right)
{
    tally->n++;
    tally->n_right += (uint64_t)is_right;
    tally->only_dense += d->is_right && !is_right;
    tally->only_it += !d->is_right && is_right;
    tally->other += !is_same;
}

/* Logits that are not numbers count as a different and wrong answer. */
static void take_answers(const lot *l, const renyi_eval *e, uint32_t policy, ry_tally *tally)
{
    for (size_t i = 0; i < l->data.count; i++) {
        const ry_dense_answer *d = &l->t->dense[l->places[i]];
        renyi_eval_sample s;
        const int is_given = renyi_eval_get_sample(e, policy, i, &s);
        const int is_same = is_given && s.prediction == d->prediction;
        count_answer(tally, d, is_same, l->t->o.unlabelled ? is_same : is_given && s.is_top1);
    }
}

static double mean_with(double mean, uint64_t n, double of_more, uint64_t more)
{
    return ((n ? mean * (double)n : 0) + of_more * (double)more) / (double)(n + more);
}

/* The mean MACs over all images that it was judged on, and the time that they take. */
static void take_cost(const lot *l, ry_candidate *c, const renyi_eval *e, uint32_t policy)
{
    renyi_eval_result r;
    renyi_cost most;
    renyi_eval_get_result(e, policy, &r);
    const int adapts = strstr(c->policy, " likeness=") != NULL;
    if (!r.images) return;
    if (adapts && !r.is_cascade) {
        if (renyi_policy_cost(l->model, NULL, c->policy, &most, NULL, 0, NULL)) return;
        r.gmacs *= r.gmacs_executed / (most.total.macs_executed * 1e-9);
    }
    if (adapts || r.is_cascade) c->gmacs = mean_with(c->gmacs, c->n_costed, r.gmacs, r.images);
    c->executed = mean_with(c->executed, c->n_costed, r.gmacs_executed, r.images);
    c->n_costed += r.images;
    if (!isnan(c->pace)) c->ratio = c->pace * c->executed;
}

static ry_tally *tally_of(const lot *l, uint32_t candidate)
{
    ry_candidate *c = &l->t->candidates[candidate];
    return l->from < l->t->n_search ? &c->search : &c->confirmed;
}

static renyi_status judge_group(lot *l, const uint32_t *list, size_t n, renyi_error *err)
{
    const char *policies[GROUP];
    renyi_eval *e = NULL;
    for (size_t i = 0; i < n; i++) policies[i] = l->t->candidates[list[i]].policy;
    const renyi_status st = evaluate(l, policies, n, &e, err);
    for (size_t i = 0; !st && i < n; i++) {
        take_answers(l, e, (uint32_t)i, tally_of(l, list[i]));
        take_cost(l, &l->t->candidates[list[i]], e, (uint32_t)i);
    }
    renyi_eval_free(e);
    return st;
}

static renyi_status judge_size(lot *l, const ry_size_list *list, size_t *at, renyi_error *err)
{
    renyi_tune *t = l->t;
    const size_t end = *at + ry_tune_same_size(t, list, *at, list->n);
    const ry_candidate *first = &t->candidates[list->items[*at]];
    RY_TRY(ry_tune_open(t, first->image_size, first->dtype, &l->model, &l->preprocess, err));
    renyi_status st = RENYI_OK;
    while (!st && *at < end) {
        const size_t n = end - *at < GROUP ? end - *at : GROUP;
        st = judge_group(l, list->items + *at, n, err);
        *at += n;
    }
    ry_tune_close(t, l->model);
    return st;
}

/* Dense as a candidate agrees with itself. Every try uses the images that confirm again. */
static void judge_self(const lot *l)
{
    if (l->from >= l->t->n_search) *tally_of(l, 0) = (ry_tally){0};
    for (size_t i = 0; i < l->data.count; i++) {
        const ry_dense_answer *d = &l->t->dense[l->places[i]];
        count_answer(tally_of(l, 0), d, 1, d->is_right);
    }
}

static renyi_status judge_candidates(lot *l, const ry_size_list *list, renyi_error *err)
{
    renyi_status st = choose_images(l, RY_DENSE_GIVEN, err);
    if (!st && !l->data.count)
        st =
            ry_fail(err, RENYI_ERR_FORMAT, -1, "none of %zu images could be used", l->to - l->from);
    if (!st) judge_self(l);
    for (size_t at = 0; !st && at < list->n;) st = judge_size(l, list, &at, err);
    free_images(l);
    return st;
}

renyi_status ry_tune_judge(renyi_tune *t, const uint32_t *list, size_t n, size_t from, size_t to,
                           renyi_error *err)
{
    lot l = {.t = t, .from = from, .to = to};
    ry_size_list sorted;
    uint64_t unknown = 0;
    RY_TRY(ry_tune_by_size(t, list, n, &sorted, err));
    for (size_t i = from; i < to; i++) unknown += t->dense[i].state == RY_DENSE_UNKNOWN;
    t->now.total = unknown + (uint64_t)(to - from) * sorted.n;
    renyi_status st = ry_tune_report(t, 0, err);
    if (!st) st = judge_dense(&l, err);
    if (!st) st = judge_candidates(&l, &sorted, err);
    if (!st) st = ry_tune_report(t, t->now.total, err);
    ry_free(&t->al, sorted.items);
    return st;
}
