/* eval_report.c - the tables of renyi eval for people.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_report.h"

#include <math.h>

/* A number, or "-" where there is none, right-aligned. */
static void put_real(int width, int digits, double value)
{
    if (isfinite(value))
        printf("%*.*f", width, digits, value);
    else
        printf("%*s", width, "-");
}

void eval_table_policies(const renyi_eval *e)
{
    printf("%s  #   top-1 %%      95 %% range    top-5 %%    loss   GMACs   ms model   ms total   "
           "images/s  policy%s\n",
           cli_bold(stdout), cli_plain(stdout));
    for (uint32_t i = 0; i < renyi_eval_policy_count(e); i++) {
        renyi_eval_result p;
        renyi_eval_get_result(e, i, &p);
        printf("%3u", i + 1);
        put_real(10, 2, p.top1);
        printf("   %5.2f to %6.2f", p.top1_range.low, p.top1_range.high);
        put_real(10, 2, p.top5);
        put_real(8, 3, p.loss);
        put_real(8, 2, p.gmacs);
        put_real(11, 2, p.ms_model);
        put_real(11, 2, p.ms_total);
        put_real(11, 1, p.images_per_second);
        printf("  %s\n", p.policy);
    }
}

void eval_table_pairs(const renyi_eval *e)
{
    const uint32_t n = renyi_eval_policy_count(e);

    if (n < 2) return;
    printf("\n%sphoto by photo   points   both right   only first   only second   neither   same "
           "answer        p%s\n",
           cli_bold(stdout), cli_plain(stdout));
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++) {
            renyi_eval_pair p;
            char names[32], p_value[24];
            renyi_eval_get_pair(e, a, b, &p);
            snprintf(names, sizeof names, "%u -> %u", a + 1, b + 1);
            snprintf(p_value, sizeof p_value, p.p_value < 1e-4 ? "%.1e" : "%.4f", p.p_value);
            printf("%14s   %+6.2f   %10llu   %10llu   %11llu   %7llu   %11llu  %7s%s\n", names,
                   p.difference, (unsigned long long)p.both, (unsigned long long)p.only_a,
                   (unsigned long long)p.only_b, (unsigned long long)p.none,
                   (unsigned long long)p.same, p_value, p.is_noise ? "  within the noise" : "");
        }
}

void eval_report_table(const eval_report *r)
{
    renyi_eval_result first;
    renyi_eval_times t;

    renyi_eval_get_result(r->eval, 0, &first);
    renyi_eval_get_times(r->eval, &t);
    eval_table_policies(r->eval);
    eval_table_pairs(r->eval);
    if (r->words || r->a->per_class) eval_classes_table(r);
    if (r->adapt && r->adapt->items) adapt_table(r->adapt);
    printf("\n%llu photos", (unsigned long long)first.images);
    if (t.resumed) printf(", %llu of them from the log", (unsigned long long)t.resumed);
    if (first.failed) printf(", %llu failed", (unsigned long long)first.failed);
    printf(", %u classes", r->data->n_valid ? r->data->n_valid : r->data->n_classes);
    printf("; %.1f s, %.1f of them in the model; ", t.seconds, t.seconds_model / t.n_ranks);
    if (t.n_ranks > 1) printf("%u ranks, ", t.n_ranks);
    printf("peak memory %.0f MB%s\n", r->peak_rss_mb, t.n_ranks > 1 ? " of the first" : "");
}
