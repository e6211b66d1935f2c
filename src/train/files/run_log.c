/* run_log.c - opens the logs of a run and computes its summary and curves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/files/run_log.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "train/files/run_folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_BYTES ((uint64_t)1 << 30)
#define MAX_LINES ((uint64_t)1 << 22)

static int is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Reads one log; a folder means the log in it. */
static renyi_status read_stage(renyi_run_log *r, const char *path, uint64_t max_bytes,
                               renyi_error *err)
{
    const size_t size = strlen(path) + sizeof "/log.jsonl";
    char *name = ry_alloc(&r->al, size, 1);
    ry_mapped_file file = {0};
    if (!name) return ry_fail_nomem(err, size);
    snprintf(name, size, "%s%s", path, ry_is_folder(path) ? "/log.jsonl" : "");
    renyi_status st = ry_mapped_file_open(&file, name, max_bytes, err);
    if (!st) st = ry_run_log_read(r, name, (const char *)file.data, file.size, err);
    ry_mapped_file_close(&file);
    ry_free(&r->al, name);
    return st;
}

static renyi_status read_stages(renyi_run_log *r, uint64_t max_bytes, renyi_error *err)
{
    if (!strchr(r->path, '+') || is_there(r->path)) return read_stage(r, r->path, max_bytes, err);
    char *part = ry_alloc(&r->al, strlen(r->path) + 1, 1);
    renyi_status st = part ? RENYI_OK : ry_fail_nomem(err, strlen(r->path) + 1);
    for (const char *at = r->path; !st && at;) {
        const char *plus = strchr(at, '+');
        const size_t n = plus ? (size_t)(plus - at) : strlen(at);
        memcpy(part, at, n);
        part[n] = 0;
        st = n ? read_stage(r, part, max_bytes, err)
               : ry_fail(err, RENYI_ERR_ARG, -1, "'%s': an empty name beside '+'", r->path);
        at = plus ? plus + 1 : NULL;
    }
    ry_free(&r->al, part);
    return st;
}

renyi_status renyi_run_log_open(renyi_run_log **out, const char *path, const renyi_run_options *opt,
                                renyi_error *err)
{
    const renyi_run_options o = opt ? *opt : (renyi_run_options){.struct_size = sizeof o};
    if (!out || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_run_log_open: NULL argument");
    *out = NULL;
    if (o.struct_size != sizeof o)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_run_options: struct_size %u, this library knows %zu", o.struct_size,
                       sizeof o);
    renyi_run_log *r = ry_calloc(&o.allocator, 1, sizeof *r);
    if (!r) return ry_fail_nomem(err, sizeof *r);
    r->al = o.allocator;
    r->max_lines = o.max_lines ? o.max_lines : MAX_LINES;
    r->path = ry_strdup(&r->al, path);
    const renyi_status st = r->path ? read_stages(r, o.max_bytes ? o.max_bytes : MAX_BYTES, err)
                                    : ry_fail_nomem(err, strlen(path) + 1);
    if (st) {
        renyi_run_log_free(r);
        return st;
    }
    *out = r;
    return RENYI_OK;
}

void renyi_run_log_free(renyi_run_log *r)
{
    if (!r) return;
    const renyi_allocator al = r->al;
    ry_free(&al, r->path);
    ry_free(&al, r->steps);
    ry_free(&al, r->epochs);
    ry_free(&al, r->policy);
    ry_free(&al, r->model);
    ry_free(&al, r->architecture);
    ry_free(&al, r);
}

/* The mean loss of the last epoch; without epochs, of the last tenth of the steps. */
static double last_loss(const renyi_run_log *r)
{
    const size_t from = r->n_steps - (r->n_steps + 9) / 10;
    double sum = 0, n = 0;
    for (size_t i = r->n_epochs; i-- > 0;)
        if (isfinite(r->epochs[i].train_loss)) return r->epochs[i].train_loss;
    for (size_t i = from; i < r->n_steps; i++)
        if (isfinite(r->steps[i].loss)) sum += r->steps[i].loss, n++;
    return n > 0 ? sum / n : NAN;
}

static void take_scores(const renyi_run_log *r, renyi_run_info *out)
{
    for (size_t i = 0; i < r->n_epochs; i++) {
        const ry_run_epoch *e = &r->epochs[i];
        if (isfinite(e->val_loss)) out->val_loss = e->val_loss;
        if (isfinite(e->top1)) out->top1 = e->top1, out->top1_epoch = e->when.epoch;
        if (isfinite(e->top5)) out->top5 = e->top5;
        if (isfinite(e->top1) && !(e->top1 <= out->best_top1)) {
            out->best_top1 = e->top1;
            out->best_epoch = e->when.epoch;
        }
    }
}

void renyi_run_log_get_info(const renyi_run_log *r, renyi_run_info *out)
{
    double speed = 0, n = 0;
    *out = (renyi_run_info){.path = r->path,
                            .policy = r->policy,
                            .model = r->model,
                            .architecture = r->architecture,
                            .n_val = r->n_val,
                            .n_stages = r->n_stages,
                            .n_steps = r->n_steps,
                            .n_epochs = r->n_epochs,
                            .n_other = r->n_other,
                            .n_bad = r->n_bad,
                            .first_bad = r->first_bad,
                            .is_cut = r->is_cut,
                            .epochs = r->before.epoch,
                            .steps = r->before.step,
                            .seconds = r->before.seconds > 0 ? r->before.seconds : NAN,
                            .loss = last_loss(r),
                            .val_loss = NAN,
                            .top1 = NAN,
                            .top5 = NAN,
                            .top1_epoch = NAN,
                            .best_top1 = NAN,
                            .best_epoch = NAN};
    take_scores(r, out);
    for (size_t i = 0; i < r->n_steps; i++)
        if (isfinite(r->steps[i].speed)) speed += r->steps[i].speed, n++;
    out->images_per_second = n > 0 ? speed / n : NAN;
}

/* ---- curves ---------------------------------------------------------------------------------- */

enum { MOST_POINTS = 1000 };

static int is_of_steps(renyi_run_quantity what)
{
    return what == RENYI_RUN_LOSS || what == RENYI_RUN_LR || what == RENYI_RUN_KEEP ||
           what == RENYI_RUN_SPEED;
}

static double value_of(const renyi_run_log *r, renyi_run_quantity what, size_t i)
{
    switch (what) {
    case RENYI_RUN_LOSS: return r->steps[i].loss;
    case RENYI_RUN_LR: return r->steps[i].lr;
    case RENYI_RUN_KEEP: return r->steps[i].keep;
    case RENYI_RUN_SPEED: return r->steps[i].speed;
    case RENYI_RUN_EPOCH_LOSS: return r->epochs[i].train_loss;
    case RENYI_RUN_VAL_LOSS: return r->epochs[i].val_loss;
    case RENYI_RUN_TOP1: return r->epochs[i].top1;
    case RENYI_RUN_TOP5: return r->epochs[i].top5;
    case RENYI_RUN_EMA_TOP1: return r->epochs[i].ema_top1;
    }
    return NAN;
}

static double axis_value(const ry_run_when *when, renyi_run_axis axis)
{
    if (axis == RENYI_RUN_BY_STEP) return when->step;
    return axis == RENYI_RUN_BY_SECONDS ? when->seconds : when->epoch;
}

/* y[i] becomes the mean of the values around it: a running sum over the window,
 * computed again every 4096 points so that rounding errors do not add up. */
static void smooth_into(double *to, const double *y, size_t n, size_t window)
{
    const size_t left = (window - 1) / 2, right = window / 2;
    size_t from = 0, end = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t low = i > left ? i - left : 0, high = right < n - 1 - i ? i + right + 1 : n;
        if (i % 4096 == 0) from = end = low, sum = 0;
        for (; end < high; end++) sum += y[end];
        for (; from < low; from++) sum -= y[from];
        to[i] = sum / (double)(high - low);
    }
}

/* Averages neighbors so that at most `most` values remain. */
static size_t average_to(double *v, size_t n, size_t most)
{
    if (n <= most) return n;
    for (size_t k = 0; k < most; k++) {
        const size_t from = k * n / most, end = (k + 1) * n / most; /* n is below 2^22 */
        double sum = 0;
        for (size_t i = from; i < end; i++) sum += v[i];
        v[k] = sum / (double)(end - from);
    }
    return most;
}

static size_t collect_points(const renyi_run_log *r, renyi_run_quantity what, renyi_run_axis axis,
                             double *x, double *y)
{
    const size_t n = is_of_steps(what) ? r->n_steps : r->n_epochs;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = value_of(r, what, i);
        if (!isfinite(v)) continue;
        x[used] = axis_value(is_of_steps(what) ? &r->steps[i].when : &r->epochs[i].when, axis);
        y[used++] = v;
    }
    return used;
}

renyi_status renyi_run_log_get_curve(renyi_run_curve *out, const renyi_run_log *r,
                                     renyi_run_quantity what, renyi_run_axis axis, uint64_t smooth,
                                     size_t most, renyi_error *err)
{
    if (!out || !r)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_run_log_get_curve: NULL argument");
    *out = (renyi_run_curve){.allocator = r->al};
    if ((unsigned)what > RENYI_RUN_EMA_TOP1 || (unsigned)axis > RENYI_RUN_BY_SECONDS)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_run_log_get_curve: there is no quantity %d by %d", (int)what,
                       (int)axis);
    const size_t n = is_of_steps(what) ? r->n_steps : r->n_epochs;
    double *x = ry_alloc(&r->al, n, sizeof *x), *y = ry_alloc(&r->al, n, sizeof *y);
    double *raw = ry_alloc(&r->al, n, sizeof *raw);
    if (!x || !y || !raw) {
        ry_free(&r->al, x);
        ry_free(&r->al, y);
        ry_free(&r->al, raw);
        return ry_fail_nomem(err, n * sizeof *x);
    }
    const size_t used = collect_points(r, what, axis, x, raw);
    const size_t window = is_of_steps(what) && smooth > 1 ? (size_t)smooth : 1;
    if (used) smooth_into(y, raw, used, window < used ? window : used);
    ry_free(&r->al, raw);
    average_to(x, used, most ? most : MOST_POINTS);
    out->n = average_to(y, used, most ? most : MOST_POINTS);
    out->x = x;
    out->y = y;
    return RENYI_OK;
}

void renyi_run_curve_free(renyi_run_curve *c)
{
    if (!c) return;
    const renyi_allocator al = c->allocator;
    ry_free(&al, c->x);
    ry_free(&al, c->y);
    *c = (renyi_run_curve){0};
}
