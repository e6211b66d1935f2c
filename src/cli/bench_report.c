/* bench_report.c - see bench_report.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench_report.h"

#include "json_out.h"

#include <stdlib.h>
#include <string.h>

/* Figures that follow from the measured ones. */
double bench_row_gflops(const bench_row *r)
{
    return 2.0 * r->numbers.macs / (r->numbers.ms_median * 1e6);
}
static double images_per_second(const bench_row *r) { return 1e3 / r->numbers.ms_median; }
static double peak_share(const bench_row *r) { return bench_row_gflops(r) / r->peak_gflops; }

char *bench_cpu_name(void)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512], *name = NULL;

    while (file && !name && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        name = cli_copy(colon + 1 + strspn(colon + 1, " "));
    }
    if (file) fclose(file);
    return name ? name : cli_copy("unknown");
}

static void put_heading(const bench_report *report)
{
    char *cpu = bench_cpu_name();

    printf("CPU: %s, %s\n", cpu, report->count ? report->rows[0].numbers.cpu_level : "");
    if (report->n_threads) printf("Measured f32 matrix-product peak:");
    for (size_t i = 0; i < report->n_threads; i++)
        printf("%s %.1f GFLOP/s on %llu thread%s", i ? "," : "", report->peaks[i],
               (unsigned long long)report->threads[i], report->threads[i] == 1 ? "" : "s");
    if (report->n_threads) putchar('\n');
    printf("Median, 10th and 90th percentile of %u runs after a warm-up, ms per image.\n\n",
           report->repetitions);
    free(cpu);
}

static void put_md(const bench_report *report)
{
    put_heading(report);
    fputs("| model | dtype | policy | batch | threads | ms | p10 | p90 | images/s | GFLOP/s | ",
          stdout);
    fputs("of peak | RSS MB |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", stdout);
    for (size_t i = 0; i < report->count; i++) {
        const bench_row *r = &report->rows[i];
        const bench_numbers *n = &r->numbers;
        char share[32] = "-";
        if (r->peak_gflops > 0.0) snprintf(share, sizeof share, "%.1f %%", 100.0 * peak_share(r));
        printf("| %s | f32 | none | %u | %u | %.2f | %.2f | %.2f | %.1f | %.1f | %s | %.0f |\n",
               r->model, r->batch, r->threads, n->ms_median, n->ms_p10, n->ms_p90,
               images_per_second(r), bench_row_gflops(r), share, n->peak_rss_mb);
    }
}

/* A CSV field: quoted when it must be. */
static void put_field(const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void put_csv(const bench_report *report)
{
    char *cpu = bench_cpu_name();

    fputs("cpu,peak_gflops,model,dtype,policy,batch,threads,", stdout);
    puts("ms_median,ms_p10,ms_p90,images_per_second,gflops,peak_share,peak_rss_mb");
    for (size_t i = 0; i < report->count; i++) {
        const bench_row *r = &report->rows[i];
        const bench_numbers *n = &r->numbers;
        char peak[32] = "", share[32] = "";
        if (r->peak_gflops > 0.0) {
            snprintf(peak, sizeof peak, "%.3f", r->peak_gflops);
            snprintf(share, sizeof share, "%.4f", peak_share(r));
        }
        put_field(cpu);
        printf(",%s,", peak);
        put_field(r->model);
        printf(",f32,none,%u,%u,%.4f,%.4f,%.4f,%.3f,%.3f,%s,%.1f\n", r->batch, r->threads,
               n->ms_median, n->ms_p10, n->ms_p90, images_per_second(r), bench_row_gflops(r), share,
               n->peak_rss_mb);
    }
    free(cpu);
}

static json_t *row_json(const bench_row *r)
{
    return json_pack("{s:o, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "model",
                     json_text(r->model), "dtype", "f32", "policy", "none", "batch", (int)r->batch,
                     "threads", (int)r->threads, "ms_median", json_number(r->numbers.ms_median),
                     "ms_p10", json_number(r->numbers.ms_p10), "ms_p90",
                     json_number(r->numbers.ms_p90), "images_per_second",
                     json_number(images_per_second(r)), "gflops", json_number(bench_row_gflops(r)),
                     "peak_share", json_number(peak_share(r)), "peak_rss_mb",
                     json_number(r->numbers.peak_rss_mb));
}

static void put_json(const bench_report *report)
{
    json_t *results = json_array(), *by_threads = json_object();
    char *cpu = bench_cpu_name(), threads[24];
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

void bench_report_print(const bench_report *report, const char *format)
{
    if (strcmp(format, "csv") == 0)
        put_csv(report);
    else if (strcmp(format, "json") == 0)
        put_json(report);
    else
        put_md(report);
}
