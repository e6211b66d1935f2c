/* sweep_table.c - a sweep for people: one row a point, dear ones first, the fronts marked.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/sweep/sweep_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Words that always stay: they are what one looks for. */
static int is_telling(const char *word)
{
    static const char *const kept[] = {
        "keep=", "p=", "tokens=", "r=", "layers=", "metric=", "n=", "c="};

    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strncmp(word, kept[i], strlen(kept[i])) == 0) return 1;
    return 0;
}

/* Does a text mean `full`? The weights of a fused token are "auto" until a model says which. */
static int means(const char *text, const char *full)
{
    char got[RENYI_POLICY_MAX];
    const char *automatic;

    if (renyi_policy_check(text, NULL, got, sizeof got, NULL) != RENYI_OK) return 0;
    if (strcmp(got, full) == 0) return 1;
    if (!(automatic = strstr(got, " weights=auto"))) return 0;
    char *resolved = cli_format("%.*s weights=cls%s", (int)(automatic - got), got,
                                automatic + strlen(" weights=auto"));
    const int is_same = strcmp(resolved, full) == 0;
    free(resolved);
    return is_same;
}

char *sweep_short_policy(const char *full)
{
    char *text = cli_copy(full);

    for (const char *blank = strchr(text, ' '); blank;) {
        const char *end = blank + 1 + strcspn(blank + 1, " ");
        char *without = cli_format("%.*s%s", (int)(blank - text), text, end);
        if (!is_telling(blank + 1) && means(without, full)) {
            const ptrdiff_t at = blank - text;
            free(text);
            text = without;
            blank = text[at] ? text + at : NULL;
        } else {
            free(without);
            blank = *end ? end : NULL;
        }
    }
    return text;
}

/* A number, or "-" where there is none, right-aligned. */
static void put_real(int width, int digits, double value)
{
    if (isfinite(value))
        printf("%*.*f", width, digits, value);
    else
        printf("%*s", width, "-");
}

/* Points more or less than the dense model at its own size; "~": these photos do not tell. */
static void put_difference(const sweep_view *v, size_t i)
{
    renyi_eval_pair p;

    if (v->baseline[i] == SWEEP_NO_POINT || v->baseline[i] == i || !v->points[i].result.images) {
        printf("%9s", "");
        return;
    }
    renyi_sweep_get_pair(v->sweep, v->baseline[i], i, &p);
    printf("%+8.2f%s", p.difference, p.is_noise ? "~" : " ");
}

static void put_row(const sweep_view *v, size_t i, int width)
{
    const renyi_sweep_point *p = &v->points[i];
    const renyi_eval_result *r = &p->result;
    char *policy = sweep_short_policy(r->policy);
    const int front = v->on_gmacs[i] || v->on_ms[i];

    printf("%s%s%s  ", front ? cli_green(stdout) : "", v->on_gmacs[i] ? "M" : " ",
           v->on_ms[i] ? "T" : " ");
    printf("%4zu  %-*.*s %5u", i + 1, width, width, v->titles[i], p->image_size);
    put_real(9, 2, r->top1);
    if (r->images)
        printf("  %5.1f to %5.1f", r->top1_range.low, r->top1_range.high);
    else
        printf("  %14s", "");
    put_difference(v, i);
    put_real(9, 2, r->top5);
    put_real(8, 2, r->gmacs);
    put_real(9, 2, r->ms_model);
    printf("  %s%s\n", policy, front ? cli_plain(stdout) : "");
    free(policy);
}

static void put_summary(const sweep_view *v)
{
    renyi_dataset_info d;
    renyi_eval_times t;

    renyi_sweep_get_data(v->sweep, &d);
    renyi_sweep_get_times(v->sweep, &t);
    if (!v->a->dry_run)
        printf(
            "\nM T   on the Pareto front of accuracy against GMACs, against milliseconds of the model\n"
            "diff  points against the same model, dense, at its own size (or the largest); ~ within the "
            "noise of these photos\n");
    printf("\n%zu points on %llu photos", v->n, (unsigned long long)d.n_images);
    if (renyi_sweep_failure_count(v->sweep))
        printf(", %zu of them unreadable", renyi_sweep_failure_count(v->sweep));
    if (renyi_sweep_skip_count(v->sweep))
        printf("; %zu points cannot be run", renyi_sweep_skip_count(v->sweep));
    if (!v->a->dry_run)
        printf("; %.1f s, %.1f of them in the model; peak memory %.0f MB", t.seconds,
               t.seconds_model, v->peak_rss_mb);
    putchar('\n');
}

void sweep_table(const sweep_view *v)
{
    int width = 5;

    for (size_t i = 0; i < v->n; i++)
        if ((int)strlen(v->titles[i]) > width) width = (int)strlen(v->titles[i]);
    if (width > 44) width = 44;
    printf(
        "%s       #  %-*s  size  top-1 %%      95 %% range     diff  top-5 %%   GMACs ms model  policy%s\n",
        cli_bold(stdout), width, "model", cli_plain(stdout));
    for (size_t i = 0; i < v->n; i++) put_row(v, v->order[i], width);
    put_summary(v);
}
