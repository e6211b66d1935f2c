/* sweep_view.c - from a finished sweep to what is reported: baselines, fronts, order, pairs, notes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/models.h"
#include "cli/sweep/sweep_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With more points, pairs are left out if neither point is dense or on a front: 512 points have
 * 130,816 pairs. */
enum { ALL_PAIRS_UP_TO = 512 };

/* Ratio of ms per GMAC between sizes from which the machine counts as busy; small inputs are up to
 * a fifth slower per GMAC anyway. */
#define UNEVEN 1.5
enum { ENOUGH = 32 }; /* images; with fewer, times are too noisy to compare */

/* The last part of the path, or all of it if another model has the same. Owned. */
static char *title_of(const sweep_view *v, size_t i)
{
    char *title = model_path_title(v->points[i].model);

    for (size_t k = 0; k < v->n; k++) {
        if (strcmp(v->points[k].model, v->points[i].model) == 0) continue;
        char *other = model_path_title(v->points[k].model);
        const int is_same = strcmp(other, title) == 0;
        free(other);
        if (!is_same) continue;
        free(title);
        return cli_copy(v->points[i].model);
    }
    return title;
}

static int is_dense(const renyi_sweep_point *p) { return strcmp(p->result.policy, "none") == 0; }

/* Is a better baseline than b? The model's own size is best, else the largest. */
static int is_better_baseline(const renyi_sweep_point *a, const renyi_sweep_point *b)
{
    if (b->image_size == b->native_size) return 0;
    return a->image_size == a->native_size || a->image_size > b->image_size;
}

static void find_baselines(sweep_view *v)
{
    for (size_t i = 0; i < v->n; i++) {
        size_t *best = &v->baseline[i];
        *best = SWEEP_NO_POINT;
        for (size_t k = 0; k < v->n; k++)
            if (is_dense(&v->points[k]) && strcmp(v->points[k].model, v->points[i].model) == 0 &&
                (*best == SWEEP_NO_POINT || is_better_baseline(&v->points[k], &v->points[*best])))
                *best = k;
    }
}

static void draw_point(renyi_report_point *to, const renyi_sweep_point *p, const char *title)
{
    const renyi_eval_result *r = &p->result;

    *to = (renyi_report_point){.model = title,
                               .policy = r->policy,
                               .image_size = p->image_size,
                               .native_size = p->native_size,
                               .images = r->images,
                               .failed = r->failed,
                               .n_top1 = r->n_top1,
                               .top1 = r->top1,
                               .top1_low = r->top1_range.low,
                               .top1_high = r->top1_range.high,
                               .top5 = r->top5,
                               .loss = r->loss,
                               .gmacs = r->gmacs,
                               .ms_model = r->ms_model,
                               .ms_total = r->ms_total,
                               .images_per_second = r->images_per_second,
                               .tokens = p->tokens,
                               .n_blocks = p->n_blocks};
}

/* ---- pairs --------------------------------------------------------------------------------- */

static int is_central(const sweep_view *v, size_t i)
{
    return v->n <= ALL_PAIRS_UP_TO || v->on_gmacs[i] || v->on_ms[i] || is_dense(&v->points[i]);
}

static void add_pair(sweep_view *v, size_t a, size_t b)
{
    renyi_eval_pair p;

    renyi_sweep_get_pair(v->sweep, a, b, &p);
    v->pairs[v->n_pairs++] = (renyi_report_pair){.a = (uint32_t)a,
                                                 .b = (uint32_t)b,
                                                 .both = p.both,
                                                 .only_a = p.only_a,
                                                 .only_b = p.only_b,
                                                 .neither = p.none,
                                                 .same = p.same,
                                                 .difference = p.difference,
                                                 .p_value = p.p_value,
                                                 .is_noise = p.is_noise};
}

static void find_pairs(sweep_view *v)
{
    size_t n_central = 0;

    for (size_t i = 0; i < v->n; i++) n_central += (size_t)is_central(v, i);
    v->pairs = cli_alloc(n_central * v->n + 1, sizeof *v->pairs);
    for (size_t a = 0; a < v->n; a++)
        for (size_t b = a + 1; b < v->n; b++)
            if (is_central(v, a) || is_central(v, b)) add_pair(v, a, b);
}

/* ---- order --------------------------------------------------------------------------------- */

/* Expensive points first, then accurate ones, then as in the sweep. */
static int comes_before(const sweep_view *v, size_t a, size_t b)
{
    const renyi_eval_result *x = &v->points[a].result, *y = &v->points[b].result;

    if (x->gmacs != y->gmacs) return x->gmacs > y->gmacs;
    if (x->n_top1 != y->n_top1) return x->n_top1 > y->n_top1;
    return a < b;
}

static void sort_points(sweep_view *v)
{
    for (size_t i = 0; i < v->n; i++) {
        size_t at = i;
        for (; at && comes_before(v, i, v->order[at - 1]); at--) v->order[at] = v->order[at - 1];
        v->order[at] = i;
    }
}

/* ---- was the machine busy? ----------------------------------------------------------------- */

/* The same model in the same dtype. */
static int is_series(const sweep_view *v, size_t a, size_t b)
{
    return v->points[a].dtype == v->points[b].dtype &&
           strcmp(v->points[a].model, v->points[b].model) == 0;
}

/* Milliseconds per GMAC over the points of one model, size and dtype, from `first` to *end; NaN
 * with few images. */
static double ms_per_gmac(const sweep_view *v, size_t first, size_t *end)
{
    double ms = 0, gmacs = 0;
    size_t i = first;

    for (; i < v->n && v->points[i].image_size == v->points[first].image_size &&
           is_series(v, i, first);
         i++)
        ms += v->points[i].result.ms_model, gmacs += v->points[i].result.gmacs_executed;
    *end = i;
    return v->points[first].result.images < ENOUGH ? NAN : ms / gmacs;
}

/* Sizes run one after another. If a model needs far more ms per GMAC at one size than at another,
 * something else used the machine. Returns the largest such ratio. */
static double unevenness(const sweep_view *v)
{
    double worst = 1.0;

    for (size_t i = 0, end; i < v->n; i = end) {
        const double here = ms_per_gmac(v, i, &end);
        for (size_t k = 0, next; k < i; k = next) {
            const double there = ms_per_gmac(v, k, &next);
            if (is_series(v, i, k) && isfinite(here) && isfinite(there))
                worst = fmax(worst, fmax(here / there, there / here));
        }
    }
    return worst;
}

static void find_note(sweep_view *v)
{
    const double ratio = unevenness(v);

    if (v->is_interrupted) {
        v->note = cli_copy("Interrupted: not all was run.");
    } else if (ratio >= UNEVEN) {
        v->note =
            cli_format("The machine was not quiet, or runs with other threads were resumed: the "
                       "same arithmetic took %.1f times as long at one size as at another. "
                       "Milliseconds compare within a model and size only.",
                       ratio);
        cli_note("%s", v->note);
    }
}

/* ---- all ----------------------------------------------------------------------------------- */

static char *data_text(const sweep_view *v)
{
    renyi_dataset_info d;

    renyi_sweep_get_data(v->sweep, &d);
    char *shuffled = v->a->e.shuffle
                         ? cli_format(", shuffled with seed %llu", (unsigned long long)v->a->e.seed)
                         : cli_copy("");
    char *text = cli_format("%llu of %llu photos of %s%s", (unsigned long long)d.n_images,
                            (unsigned long long)d.n_found, v->a->e.data, shuffled);
    free(shuffled);
    return text;
}

static char *machine_text(const sweep_view *v)
{
    char *cpu = cli_cpu_name();
    renyi_eval_times t;

    renyi_sweep_get_times(v->sweep, &t); /* zeros after a dry run */
    char *how = t.n_threads ? cli_format("%u thread%s, batches of %u; ", t.n_threads,
                                         t.n_threads > 1 ? "s" : "", t.batch)
                            : cli_copy("");
    char *text =
        cli_format("%s; %s%s%s%srenyi %s", cpu, how, v->a->e.dtype ? "dtype " : "",
                   v->a->e.dtype ? v->a->e.dtype : "", v->a->e.dtype ? "; " : "", renyi_version());
    free(cpu);
    free(how);
    return text;
}

static void get_points(sweep_view *v)
{
    size_t dtypes = 1; /* more than one? */

    v->points = cli_alloc(v->n, sizeof *v->points);
    v->drawn = cli_alloc(v->n, sizeof *v->drawn);
    v->titles = cli_alloc(v->n, sizeof *v->titles);
    v->labels = cli_alloc(v->n, sizeof *v->labels);
    v->baseline = cli_alloc(v->n, sizeof *v->baseline);
    v->order = cli_alloc(v->n, sizeof *v->order);
    v->on_gmacs = cli_alloc(v->n, 1);
    v->on_ms = cli_alloc(v->n, 1);
    for (size_t i = 0; i < v->n; i++) {
        renyi_sweep_get(v->sweep, i, &v->points[i]);
        dtypes += v->points[i].dtype != v->points[0].dtype;
    }
    for (size_t i = 0; i < v->n; i++) {
        v->titles[i] = i && strcmp(v->points[i].model, v->points[i - 1].model) == 0
                           ? cli_copy(v->titles[i - 1])
                           : title_of(v, i);
        v->labels[i] = dtypes > 1
                           ? cli_format("%s %s", v->titles[i], renyi_dtype_name(v->points[i].dtype))
                           : cli_copy(v->titles[i]);
        draw_point(&v->drawn[i], &v->points[i], v->labels[i]);
    }
}

int sweep_view_make(sweep_view *v, const sweep_arguments *a, const renyi_sweep *s,
                    int is_interrupted)
{
    renyi_error err = {0};

    *v = (sweep_view){.a = a,
                      .sweep = s,
                      .n = renyi_sweep_count(s),
                      .peak_rss_mb = cli_peak_rss_bytes() * 1e-6,
                      .is_interrupted = is_interrupted};
    get_points(v);
    find_baselines(v);
    sort_points(v);
    v->title = cli_format("Sweep of %zu points", v->n);
    find_note(v);
    v->machine = machine_text(v);
    v->data_text = data_text(v);
    v->report = (renyi_report){.struct_size = sizeof v->report,
                               .n_points = (uint32_t)v->n,
                               .points = v->drawn,
                               .baseline = (uint32_t)(v->baseline[0] + 1), /* none: 0 */
                               .title = v->title,
                               .command = a->command,
                               .machine = v->machine,
                               .data = v->data_text,
                               .note = v->note};
    if (renyi_report_front(&v->report, RENYI_CHART_GMACS, v->on_gmacs, &err) ||
        renyi_report_front(&v->report, RENYI_CHART_MS, v->on_ms, &err)) {
        cli_error("%s", err.message);
        return -1;
    }
    find_pairs(v);
    v->report.pairs = v->pairs;
    v->report.n_pairs = v->n_pairs;
    return 0;
}

void sweep_view_free(sweep_view *v)
{
    for (size_t i = 0; v->titles && i < v->n; i++) free(v->titles[i]), free(v->labels[i]);
    free(v->titles);
    free(v->labels);
    free(v->points);
    free(v->drawn);
    free(v->baseline);
    free(v->order);
    free(v->on_gmacs);
    free(v->on_ms);
    free(v->pairs);
    free(v->title);
    free(v->note);
    free(v->machine);
    free(v->data_text);
}
