/* bench_report.c - prints measurements as a Markdown table, CSV or JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/bench.h"
#include "cli/kit/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a cascade the mean: its median may be that of one pass, and its MACs are means. */
static double typical_ms(const bench_row *r)
{
    return isnan(r->numbers.second_share) ? r->numbers.ms_median : r->numbers.ms_mean;
}

double bench_row_gflops(const bench_row *r)
{
    return 2.0 * r->numbers.macs / (typical_ms(r) * 1e6);
}

static double images_per_second(const bench_row *r) { return 1e3 / typical_ms(r); }

static double peak_share(const bench_row *r) { return bench_row_gflops(r) / r->peak_gflops; }

static int is_pruned(const bench_row *r) { return !isnan(r->mac_ratio); }

int bench_row_is_f32(const bench_row *r) { return strcmp(r->numbers.dtype, "f32") == 0; }

/* ---- CSV ----------------------------------------------------------------------------------- */

static void put_csv_row(const bench_row *r, const char *cpu)
{
    const bench_numbers *n = &r->numbers;
    char peak[32] = "", share[32] = "", ratios[64] = ",", speedup[32] = "";

    if (r->peak_gflops > 0.0) {
        snprintf(peak, sizeof peak, "%.3f", r->peak_gflops);
        snprintf(share, sizeof share, "%.4f", peak_share(r));
    }
    if (is_pruned(r)) snprintf(ratios, sizeof ratios, "%.4f,%.4f", n->time_ratio, r->mac_ratio);
    if (r->faster_than) snprintf(speedup, sizeof speedup, "%.4f", n->speedup);
    csv_cell(stdout, cpu);
    printf(",%s,", peak);
    csv_cell(stdout, r->model);
    printf(",%s,", n->dtype);
    csv_cell(stdout, n->policy);
    printf(",%u,%u,%u,%.6f,%.6f,%.4f,%.4f,%.4f,%.3f,%.3f,%s,%.1f,%s,%s\n", r->batch, r->threads,
           r->streams, n->macs * 1e-9, n->macs_plain * 1e-9, n->ms_median, n->ms_p10, n->ms_p90,
           images_per_second(r), bench_row_gflops(r), share, n->peak_rss_mb, ratios, speedup);
}

static void put_csv(const bench_report *report)
{
    char *cpu = cli_cpu_name();

    fputs("cpu,peak_gflops,model,dtype,policy,batch,threads,streams,gmacs,gmacs_plain,", stdout);
    fputs("ms_median,ms_p10,ms_p90,images_per_second,gflops,peak_share,peak_rss_mb,", stdout);
    puts("time_ratio,mac_ratio,speedup");
    for (size_t i = 0; i < report->count; i++) put_csv_row(&report->rows[i], cpu);
    free(cpu);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *row_json(const bench_row *r)
{
    const bench_numbers *n = &r->numbers;
    json_t *row = json_pack("{s:o, s:s, s:o, s:i, s:i, s:i}", "model", json_text(r->model), "dtype",
                            n->dtype, "policy", json_text(n->policy), "batch", (int)r->batch,
                            "threads", (int)r->threads, "streams", (int)r->streams);
    const struct {
        const char *key;
        double value;
    } figures[] = {
        {"gmacs", n->macs * 1e-9},       {"gmacs_plain", n->macs_plain * 1e-9},
        {"ms_median", n->ms_median},     {"ms_p10", n->ms_p10},
        {"ms_p90", n->ms_p90},           {"images_per_second", images_per_second(r)},
        {"gflops", bench_row_gflops(r)}, {"peak_share", peak_share(r)},
        {"peak_rss_mb", n->peak_rss_mb}, {"time_ratio", is_pruned(r) ? n->time_ratio : NAN},
        {"mac_ratio", r->mac_ratio},     {"speedup", r->faster_than ? n->speedup : NAN},
        {"ms_mean", n->ms_mean},         {"ms_p95", n->ms_p95},
    };

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        json_object_set_new(row, figures[i].key, json_number(figures[i].value));
    if (!isnan(n->second_share))
        json_object_set_new(row, "second_share", json_number(n->second_share));
    return row;
}

static void put_json(const bench_report *report)
{
    json_t *results = json_array(), *by_threads = json_object();
    char *cpu = cli_cpu_name(), threads[24];
    double best = 0.0;

    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(results, row_json(&report->rows[i]));
    for (size_t i = 0; i < report->n_threads; i++) {
        snprintf(threads, sizeof threads, "%llu", (unsigned long long)report->threads[i]);
        json_object_set_new(by_threads, threads, json_number(report->peaks[i]));
        if (report->peaks[i] > best) best = report->peaks[i];
    }
    json_print(json_pack("{s:o, s:s, s:s, s:o, s:o, s:i, s:o}", "cpu", json_text(cpu), "cpu_level",
                         report->count ? report->rows[0].numbers.cpu_level : "", "version",
                         renyi_version(), "peak_gflops", best > 0.0 ? json_real(best) : json_null(),
                         "peak_gflops_by_threads", by_threads, "repetitions",
                         (int)report->repetitions, "results", results));
    free(cpu);
}

/* ---- the Markdown table -------------------------------------------------------------------- */

static void put_heading(const bench_report *report)
{
    char *cpu = cli_cpu_name();

    printf("CPU: %s, %s\n", cpu, report->count ? report->rows[0].numbers.cpu_level : "");
    if (report->n_threads) printf("Measured f32 matrix-product peak:");
    for (size_t i = 0; i < report->n_threads; i++)
        printf("%s %.1f GFLOP/s on %llu thread%s", i ? "," : "", report->peaks[i],
               (unsigned long long)report->threads[i], report->threads[i] == 1 ? "" : "s");
    if (report->n_threads) putchar('\n');
    if (report->n_photos)
        printf("%zu photos; median, percentiles and mean over runs of different photos, ms per "
               "image.\n",
               report->n_photos);
    else
        printf("Median, 10th and 90th percentile of %u run%s after a warm-up, ms per image.\n",
               report->repetitions, report->repetitions == 1 ? "" : "s");
    if (report->count && report->rows[0].streams > 1)
        printf("%u batches in flight, each on its share of the threads: ms is the time of all of "
               "them divided by their images.\n",
               report->rows[0].streams);
    free(cpu);
}

/* Text from the command line: '|' would end the cell. */
static void put_cell(const char *text)
{
    char *clean = cli_clean(text);

    for (const char *c = clean; *c; c++) {
        if (*c == '|') putchar('\\');
        putchar(*c);
    }
    fputs(" | ", stdout);
    free(clean);
}

/* The additional columns. */
typedef struct extras {
    int has_ratios;          /* there is a policy besides the dense model */
    const char *faster_than; /* there is a dtype besides this one; or NULL */
    int has_photos;
} extras;

static void put_row(const bench_row *r, const extras *x)
{
    const bench_numbers *n = &r->numbers;
    char share[32] = "-";

    if (r->peak_gflops > 0.0) snprintf(share, sizeof share, "%.1f %%", 100.0 * peak_share(r));
    fputs("| ", stdout);
    put_cell(r->model);
    put_cell(n->dtype);
    put_cell(r->policy);
    printf("%u | %u | %.3f | %.2f | %.2f | %.2f | %.1f | %.1f | %s | %.0f |", r->batch, r->threads,
           n->macs * 1e-9, n->ms_median, n->ms_p10, n->ms_p90, images_per_second(r),
           bench_row_gflops(r), share, n->peak_rss_mb);
    if (x->has_ratios && is_pruned(r))
        printf(" %.3f | %.3f | %.3f |", n->time_ratio, r->mac_ratio, n->time_ratio / r->mac_ratio);
    else if (x->has_ratios)
        fputs(" - | - | - |", stdout);
    if (x->faster_than && r->faster_than)
        printf(" %.2f |", n->speedup);
    else if (x->faster_than)
        fputs(" - |", stdout);
    if (x->has_photos) printf(" %.2f | %.2f |", n->ms_mean, n->ms_p95);
    if (x->has_photos && isnan(n->second_share))
        fputs(" - |", stdout);
    else if (x->has_photos)
        printf(" %.1f %% |", 100 * n->second_share);
    putchar('\n');
}

/* Each policy in full, once. */
static void put_policies(const bench_report *report)
{
    puts("");
    for (size_t i = 0; i < report->count; i++) {
        const bench_row *r = &report->rows[i];
        int is_new = strcmp(r->policy, r->numbers.policy) != 0;
        for (size_t j = 0; is_new && j < i; j++)
            if (strcmp(report->rows[j].policy, r->policy) == 0) is_new = 0;
        if (is_new) cli_print("%s: %s\n", r->policy, r->numbers.policy);
    }
}

static extras find_extras(const bench_report *report)
{
    extras x = {.has_photos = report->n_photos != 0};

    for (size_t i = 0; i < report->count; i++) {
        x.has_ratios |= is_pruned(&report->rows[i]);
        if (report->rows[i].faster_than) x.faster_than = report->rows[i].faster_than;
    }
    return x;
}

static void put_table(const bench_report *report)
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
    if (x.has_photos) fputs(" mean | p95 | second pass |", stdout);
    fputs("\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|", stdout);
    fputs(x.has_ratios ? "--:|--:|--:|" : "", stdout);
    fputs(x.faster_than ? "--:|" : "", stdout);
    puts(x.has_photos ? "--:|--:|--:|" : "");
    for (size_t i = 0; i < report->count; i++) put_row(&report->rows[i], &x);
    if (x.has_ratios) put_policies(report);
}

void bench_report_print(const bench_report *report, const char *format)
{
    if (strcmp(format, "csv") == 0)
        put_csv(report);
    else if (strcmp(format, "json") == 0)
        put_json(report);
    else
        put_table(report);
}
