/* run_log_read.c - parses a log: lines of JSON become steps and epochs, each with its time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/status.h"
#include "train/files/run_log.h"

#include <math.h>
#include <string.h>

/* ---- one line -------------------------------------------------------------------------------- */

/* NaN: absent, null (written for NaN and infinity), not a number, or too large to sum. */
static double real_of(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    const double v = json_is_number(value) ? json_number_value(value) : NAN;
    return fabs(v) < 1e100 ? v : NAN;
}

/* A whole number from `least` on that a double can hold. */
static int count_of(const json_t *o, const char *key, int64_t least, int64_t *out)
{
    const json_t *value = json_object_get(o, key);
    const json_int_t v = json_is_integer(value) ? json_integer_value(value) : least - 1;
    *out = (int64_t)v;
    return v >= least && v < (json_int_t)1 << 52;
}

static renyi_status keep_text(renyi_run_log *r, char **to, const json_t *value, renyi_error *err)
{
    const char *text = json_string_value(value);
    if (!text || !*text) return RENYI_OK;
    char *copy = ry_strdup(&r->al, text);
    if (!copy) return ry_fail_nomem(err, strlen(text) + 1);
    ry_free(&r->al, *to);
    *to = copy;
    return RENYI_OK;
}

/* Settings may be members of the line or of its "settings". */
static const json_t *setting(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return value ? value : json_object_get(ry_json_object(o, "settings"), key);
}

static renyi_status take_config(renyi_run_log *r, const json_t *o, renyi_error *err)
{
    const double per_epoch = real_of(o, "steps_per_epoch");
    const json_t *policy = setting(o, "policy"), *model = setting(o, "model");
    int64_t n_val;
    if (per_epoch >= 1) r->per_epoch = per_epoch;
    if (count_of(o, "val_photos", 1, &n_val)) r->n_val = (uint64_t)n_val;
    RY_TRY(keep_text(r, &r->architecture, json_object_get(o, "architecture"), err));
    if (!json_string_length(model)) model = setting(o, "arch");
    RY_TRY(keep_text(r, &r->model, model, err));
    return keep_text(r, &r->policy, policy ? policy : setting(o, "prune"), err);
}

/* Space for one more line; the array doubles. */
static renyi_status reserve_line(renyi_run_log *r, void **items, size_t n, size_t *capacity,
                                 size_t size, renyi_error *err)
{
    if (r->n_steps + r->n_epochs >= r->max_lines)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %llu steps and epochs",
                       (unsigned long long)r->max_lines);
    return ry_grow(&r->al, items, capacity, n, size) ? RENYI_OK : ry_fail_nomem(err, 2 * n * size);
}

/* A resumed run repeats some updates: their older lines are dropped. */
static renyi_status take_step(renyi_run_log *r, const json_t *o, int *is_good, renyi_error *err)
{
    ry_run_step s = {.loss = real_of(o, "loss"),
                     .lr = real_of(o, "lr"),
                     .keep = real_of(o, "keep"),
                     .speed = real_of(o, "images_per_second"),
                     .when = {NAN, NAN, real_of(o, "seconds")}};
    *is_good = count_of(o, "epoch", 0, &s.epoch) && count_of(o, "step", 0, &s.step);
    if (!*is_good) return RENYI_OK;
    while (r->n_steps > r->first_step && r->steps[r->n_steps - 1].step >= s.step) r->n_steps--;
    while (r->n_epochs > r->first_epoch && r->epochs[r->n_epochs - 1].epoch >= s.epoch)
        r->n_epochs--;
    RY_TRY(reserve_line(r, (void **)&r->steps, r->n_steps, &r->step_capacity, sizeof s, err));
    r->steps[r->n_steps++] = s;
    return RENYI_OK;
}

/* Epoch -1: measured before the first update. With is_stop it was measured inside that epoch. */
static renyi_status take_epoch(renyi_run_log *r, const json_t *o, int is_stop, int *is_good,
                               renyi_error *err)
{
    ry_run_epoch e = {.train_loss = real_of(o, "train_loss"),
                      .val_loss = real_of(o, "val_loss"),
                      .top1 = real_of(o, "val_top1"),
                      .top5 = real_of(o, "val_top5"),
                      .ema_top1 = real_of(o, "ema_top1"),
                      .is_stop = is_stop,
                      .when = {NAN, real_of(o, "step"), real_of(o, "seconds")}};
    *is_good = count_of(o, "epoch", -1, &e.epoch);
    if (!*is_good) return RENYI_OK;
    while (r->n_epochs > r->first_epoch && r->epochs[r->n_epochs - 1].epoch >= e.epoch)
        r->n_epochs--;
    if (!isfinite(e.when.step) && r->n_steps > r->first_step)
        e.when.step = (double)r->steps[r->n_steps - 1].step;
    RY_TRY(reserve_line(r, (void **)&r->epochs, r->n_epochs, &r->epoch_capacity, sizeof e, err));
    r->epochs[r->n_epochs++] = e;
    return RENYI_OK;
}

static renyi_status take_line(renyi_run_log *r, const char *name, uint64_t number, const char *line,
                              size_t size, renyi_error *err)
{
    const ry_json_limits limits = {1 << 20, 20000, 8};
    json_t *o;
    int is_good = 1;
    renyi_status st = ry_json_parse(&o, line, size, name, &limits, err);
    if (st == RENYI_ERR_NOMEM) return st;
    const char *kind = st ? NULL : json_string_value(json_object_get(o, "kind"));
    if (st)
        is_good = 0, st = RENYI_OK;
    else if (kind && strcmp(kind, "step") == 0)
        st = take_step(r, o, &is_good, err);
    else if (kind && (strcmp(kind, "epoch") == 0 || strcmp(kind, "stop") == 0))
        st = take_epoch(r, o, *kind == 's', &is_good, err);
    else if (kind && strcmp(kind, "config") == 0)
        st = take_config(r, o, err);
    else
        r->n_other++;
    json_decref(o);
    if (!is_good && !r->n_bad++) r->first_bad = number;
    return st;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Updates per epoch if the log does not give it: from the lines of epochs, or from the steps of
 * whole epochs. */
static double find_per_epoch(const renyi_run_log *r)
{
    double most = 0;
    for (size_t i = r->n_epochs; i-- > r->first_epoch;)
        if (r->epochs[i].when.step >= 1 && r->epochs[i].epoch >= 0 && !r->epochs[i].is_stop)
            return r->epochs[i].when.step / (double)(r->epochs[i].epoch + 1);
    for (size_t i = r->first_step; i < r->n_steps; i++) {
        const int is_last = i + 1 == r->n_steps;
        if (is_last ? most > 0 : r->steps[i + 1].epoch == r->steps[i].epoch) continue;
        most = fmax(most, (double)r->steps[i].step / (double)(r->steps[i].epoch + 1));
    }
    return most > 0 ? most : 1;
}

/* from + v, but not below *least, which becomes the result; a NaN v gives *least. */
static double later(double *least, double from, double v)
{
    if (from + v > *least) *least = from + v; /* not for NaN */
    return *least;
}

static void set_times(renyi_run_log *r)
{
    const double per_epoch = isfinite(r->per_epoch) ? r->per_epoch : find_per_epoch(r);
    const ry_run_when from = r->before;
    ry_run_when s = from, e = from;
    for (size_t i = r->first_step; i < r->n_steps; i++) {
        ry_run_step *to = &r->steps[i];
        to->when.epoch = later(&s.epoch, from.epoch, (double)to->step / per_epoch);
        to->when.step = later(&s.step, from.step, (double)to->step);
        to->when.seconds = later(&s.seconds, from.seconds, to->when.seconds);
    }
    for (size_t i = r->first_epoch; i < r->n_epochs; i++) {
        ry_run_epoch *to = &r->epochs[i];
        const double whole = (double)(to->epoch + 1), part = to->when.step / per_epoch;
        to->when.epoch = later(&e.epoch, from.epoch, to->is_stop ? fmin(whole, part) : whole);
        to->when.step = later(&e.step, from.step, to->when.step);
        to->when.seconds = later(&e.seconds, from.seconds, to->when.seconds);
    }
    r->before.epoch = fmax(s.epoch, e.epoch);
    r->before.step = fmax(s.step, e.step);
    r->before.seconds = fmax(s.seconds, e.seconds);
}

/* ---- the log --------------------------------------------------------------------------------- */

renyi_status ry_run_log_read(renyi_run_log *r, const char *name, const char *bytes, size_t size,
                             renyi_error *err)
{
    uint64_t number = 0;
    r->first_step = r->n_steps;
    r->first_epoch = r->n_epochs;
    r->per_epoch = NAN;
    r->is_cut = 0;
    for (size_t at = 0, next; at < size; at = next) {
        const char *end = memchr(bytes + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - bytes) - at : size - at;
        next = at + n + 1;
        number++;
        if (!n || (n == 1 && bytes[at] == '\r')) continue;
        const uint64_t bad_before = r->n_bad, first_before = r->first_bad;
        const renyi_status st = take_line(r, name, number, bytes + at, n, err);
        if (st) return st == RENYI_ERR_LIMIT ? ry_fail_in(err, st, name) : st;
        if (!end && r->n_bad > bad_before) { /* a line being written: no error */
            r->n_bad = bad_before, r->first_bad = first_before;
            r->is_cut = 1;
        }
    }
    if (r->n_steps == r->first_step && r->n_epochs == r->first_epoch)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: no step and no epoch of a training run in it; is this a log of renyi "
                       "train?",
                       name);
    set_times(r);
    r->n_stages++;
    return RENYI_OK;
}
