/* bench_report.c - see bench_report.h. The table is in bench_table.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench/bench_report.h"

#include "cli/kit/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double bench_row_gflops(const bench_row *r)
{
    return 2.0 * r->numbers.macs / (r->numbers.ms_median * 1e6);
}

double bench_row_images_per_second(const bench_row *r) { return 1e3 / r->numbers.ms_median; }

double bench_row_peak_share(const bench_row *r) { return bench_row_gflops(r) / r->peak_gflops; }

int bench_row_is_pruned(const bench_row *r) { return !isnan(r->mac_ratio); }

int bench_row_is_f32(const bench_row *r) { return strcmp(r->numbers.dtype, "f32") == 0; }

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

/* A CSV field and its comma: quoted when it must be. */
static void put_field(const char *text)
{
    const int is_quoted = strpbrk(text, ",\"\r\n") != NULL;

    if (is_quoted) putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    fputs(is_quoted ? "\"," : ",", stdout);
}

static void put_csv_row(const bench_row *r, const char *cpu)
{
    const bench_numbers *n = &r->numbers;
    char peak[32] = "", share[32] = "", ratios[64] = ",", speedup[32] = "";

    if (r->peak_gflops > 0.0) {
        snprintf(peak, sizeof peak, "%.3f", r->peak_gflops);
        snprintf(share, sizeof share, "%.4f", bench_row_peak_share(r));
    }
    if (bench_row_is_pruned(r))
        snprintf(ratios, sizeof ratios, "%.4f,%.4f", n->time_ratio, r->mac_ratio);
    if (r->faster_than) snprintf(speedup, sizeof speedup, "%.4f", n->speedup);
    put_field(cpu);
    put_field(peak);
    put_field(r->model);
    put_field(n->dtype);
    put_field(n->policy);
    printf("%u,%u,%.6f,%.6f,%.4f,%.4f,%.4f,%.3f,%.3f,%s,%.1f,%s,%s\n", r->batch, r->threads,
           n->macs * 1e-9, n->macs_plain * 1e-9, n->ms_median, n->ms_p10, n->ms_p90,
           bench_row_images_per_second(r), bench_row_gflops(r), share, n->peak_rss_mb, ratios,
           speedup);
}

static void put_csv(const bench_report *report)
{
    char *cpu = bench_cpu_name();

    fputs("cpu,peak_gflops,model,dtype,policy,batch,threads,gmacs,gmacs_plain,", stdout);
    fputs("ms_median,ms_p10,ms_p90,images_per_second,gflops,peak_share,peak_rss_mb,", stdout);
    puts("time_ratio,mac_ratio,speedup");
    for (size_t i = 0; i < report->count; i++) put_csv_row(&report->rows[i], cpu);
    free(cpu);
}

static json_t *row_json(const bench_row *r)
{
    const bench_numbers *n = &r->numbers;
    json_t *row = json_pack("{s:o, s:s, s:o, s:i, s:i}", "model", json_text(r->model), "dtype",
                            n->dtype, "policy", json_text(n->policy), "batch", (int)r->batch,
                            "threads", (int)r->threads);
    const struct {
        const char *key;
        double value;
    } figures[] = {
        {"gmacs", n->macs * 1e-9},
        {"gmacs_plain", n->macs_plain * 1e-9},
        {"ms_median", n->ms_median},
        {"ms_p10", n->ms_p10},
        {"ms_p90", n->ms_p90},
        {"images_per_second", bench_row_images_per_second(r)},
        {"gflops", bench_row_gflops(r)},
        {"peak_share", bench_row_peak_share(r)},
        {"peak_rss_mb", n->peak_rss_mb},
        {"time_ratio", bench_row_is_pruned(r) ? n->time_ratio : NAN},
        {"mac_ratio", r->mac_ratio},
        {"speedup", r->faster_than ? n->speedup : NAN},
    };

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        json_object_set_new(row, figures[i].key, json_number(figures[i].value));
    return row;
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
        bench_table_print(report);
}
