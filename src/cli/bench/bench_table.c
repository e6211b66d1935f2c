/* bench_table.c - bench results as a Markdown table; see bench_report.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench/bench_report.h"

#include <stdlib.h>
#include <string.h>

static void put_heading(const bench_report *report)
{
    char *cpu = bench_cpu_name();

    printf("CPU: %s, %s\n", cpu, report->count ? report->rows[0].numbers.cpu_level : "");
    if (report->n_threads) printf("Measured f32 matrix-product peak:");
    for (size_t i = 0; i < report->n_threads; i++)
        printf("%s %.1f GFLOP/s on %llu thread%s", i ? "," : "", report->peaks[i],
               (unsigned long long)report->threads[i], report->threads[i] == 1 ? "" : "s");
    if (report->n_threads) putchar('\n');
    printf("Median, 10th and 90th percentile of %u runs after a warm-up, ms per image.\n",
           report->repetitions);
    free(cpu);
}

/* A cell of text from the command line: '|' would end it. */
static void put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
    fputs(" | ", stdout);
}

/* What the columns beyond the usual ones are about. */
typedef struct extras {
    int has_ratios;          /* a policy beside the dense model */
    const char *faster_than; /* a format beside this one, or NULL */
} extras;

static void put_row(const bench_row *r, const extras *x)
{
    const bench_numbers *n = &r->numbers;
    char share[32] = "-";

    if (r->peak_gflops > 0.0)
        snprintf(share, sizeof share, "%.1f %%", 100.0 * bench_row_peak_share(r));
    fputs("| ", stdout);
    put_cell(r->model);
    put_cell(n->dtype);
    put_cell(r->policy);
    printf("%u | %u | %.3f | %.2f | %.2f | %.2f | %.1f | %.1f | %s | %.0f |", r->batch, r->threads,
           n->macs * 1e-9, n->ms_median, n->ms_p10, n->ms_p90, bench_row_images_per_second(r),
           bench_row_gflops(r), share, n->peak_rss_mb);
    if (x->has_ratios && bench_row_is_pruned(r))
        printf(" %.3f | %.3f | %.3f |", n->time_ratio, r->mac_ratio, n->time_ratio / r->mac_ratio);
    else if (x->has_ratios)
        fputs(" - | - | - |", stdout);
    if (x->faster_than && r->faster_than)
        printf(" %.2f |", n->speedup);
    else if (x->faster_than)
        fputs(" - |", stdout);
    putchar('\n');
}

/* What each policy means in full, once. */
static void put_policies(const bench_report *report)
{
    puts("");
    for (size_t i = 0; i < report->count; i++) {
        const bench_row *r = &report->rows[i];
        int is_new = strcmp(r->policy, r->numbers.policy) != 0;
        for (size_t j = 0; is_new && j < i; j++)
            if (strcmp(report->rows[j].policy, r->policy) == 0) is_new = 0;
        if (is_new) printf("%s: %s\n", r->policy, r->numbers.policy);
    }
}

static extras find_extras(const bench_report *report)
{
    extras x = {0};

    for (size_t i = 0; i < report->count; i++) {
        x.has_ratios |= bench_row_is_pruned(&report->rows[i]);
        if (report->rows[i].faster_than) x.faster_than = report->rows[i].faster_than;
    }
    return x;
}

void bench_table_print(const bench_report *report)
{
    const extras x = find_extras(report);

    put_heading(report);
    if (x.has_ratios)
        puts(
            "Policies of one batch size and thread count take turns; x = (time / dense) / (MACs / dense).");
    if (x.faster_than)
        printf("Number formats take turns; 'x %s' is how many times as fast as that.\n",
               x.faster_than);
    fputs("\n| model | dtype | policy | batch | threads | GMACs | ms | p10 | p90 | images/s | ",
          stdout);
    fputs("GFLOP/s | of peak | RSS MB |", stdout);
    if (x.has_ratios) fputs(" time/dense | MACs/dense | x |", stdout);
    if (x.faster_than) printf(" x %s |", x.faster_than);
    fputs("\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|", stdout);
    fputs(x.has_ratios ? "--:|--:|--:|" : "", stdout);
    puts(x.faster_than ? "--:|" : "");
    for (size_t i = 0; i < report->count; i++) put_row(&report->rows[i], &x);
    if (x.has_ratios) put_policies(report);
}
