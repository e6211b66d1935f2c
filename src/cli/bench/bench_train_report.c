/* bench_train_report.c - bench --train as a table, CSV or JSON; see bench_train.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench/bench_report.h"
#include "cli/bench/bench_train.h"
#include "cli/kit/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Figures of a row, in the order of the columns. */
typedef struct figure {
    const char *key, *title;
    int digits;
    double value;
} figure;

enum { FIGURES = 11 };

static void figures_of(const bench_train_row *r, figure out[FIGURES])
{
    const bench_train_numbers *n = &r->numbers;
    const int is_dense = isnan(r->mac_ratio);
    const figure list[FIGURES] = {
        {"gmacs_forward", "GMACs forward", 3, n->macs * 1e-9},
        {"forward_ms", "forward ms", 2, n->forward_ms},
        {"pass_ms", "pass ms", 2, n->pass_ms},
        {"step_ms", "step ms", 2, n->step_ms},
        {"step_forward", "step/forward", 2, n->step_forward},
        {"images_per_second", "images/s", 2, 1e3 / n->step_ms},
        {"activations_mb", "activations MB", 0, n->activations_mb},
        {"peak_rss_mb", "RSS MB", 0, n->peak_rss_mb},
        {"time_ratio", "step/dense", 3, is_dense ? (double)NAN : n->time_ratio},
        {"mac_ratio", "MACs/dense", 3, r->mac_ratio},
        {"quotient", "x", 3, is_dense ? (double)NAN : n->time_ratio / r->mac_ratio},
    };
    memcpy(out, list, sizeof list);
}

static void put_table(const bench_train_row *rows, size_t count, uint32_t repetitions)
{
    static const char *const words[] = {"model", "dtype", "policy"};
    text_table table = {0};
    figure f[FIGURES];
    char *cpu = bench_cpu_name();

    printf("CPU: %s, %s\n", cpu, rows[0].numbers.cpu_level);
    printf(
        "ms per image, median of %u rounds in turn. forward: an answer; pass: the trainer's own, "
        "which saves its activations;\nstep: forward, backward and AdamW; x = (step / dense) / "
        "(MACs / dense).\n\n",
        repetitions);
    free(cpu);
    figures_of(&rows[0], f);
    for (size_t i = 0; i < 3; i++) text_table_column(&table, TEXT_LEFT, "%s", words[i]);
    text_table_column(&table, TEXT_RIGHT, "batch");
    text_table_column(&table, TEXT_RIGHT, "threads");
    for (size_t i = 0; i < FIGURES; i++) text_table_column(&table, TEXT_RIGHT, "%s", f[i].title);
    for (size_t r = 0; r < count; r++) {
        const char *const texts[] = {rows[r].model, rows[r].numbers.dtype, rows[r].policy};
        figures_of(&rows[r], f);
        for (size_t i = 0; i < 3; i++) text_table_cell(&table, "%s", texts[i]);
        text_table_cell(&table, "%u", rows[r].batch);
        text_table_cell(&table, "%u", rows[r].threads);
        for (size_t i = 0; i < FIGURES; i++)
            if (isnan(f[i].value))
                text_table_cell(&table, "-");
            else
                text_table_cell(&table, "%.*f", f[i].digits, f[i].value);
    }
    text_table_put(&table, 1, 0);
}

static void put_csv(const bench_train_row *rows, size_t count)
{
    figure f[FIGURES];

    figures_of(&rows[0], f);
    fputs("model,dtype,policy,batch,threads,micro_batch", stdout);
    for (size_t i = 0; i < FIGURES; i++) printf(",%s", f[i].key);
    for (size_t r = 0; r < count; r++) {
        putchar('\n');
        csv_cell(stdout, rows[r].model);
        printf(",%s,", rows[r].numbers.dtype);
        csv_cell(stdout, rows[r].numbers.policy);
        printf(",%u,%u,%u", rows[r].batch, rows[r].threads, rows[r].numbers.micro_batch);
        figures_of(&rows[r], f);
        for (size_t i = 0; i < FIGURES; i++) csv_real(stdout, 4, f[i].value);
    }
    putchar('\n');
}

static void put_json(const bench_train_row *rows, size_t count, uint32_t repetitions)
{
    json_t *results = json_array();
    char *cpu = bench_cpu_name();

    for (size_t r = 0; r < count; r++) {
        const bench_train_numbers *n = &rows[r].numbers;
        json_t *row =
            json_pack("{s:o, s:s, s:o, s:i, s:i, s:i}", "model", json_text(rows[r].model), "dtype",
                      n->dtype, "policy", json_text(n->policy), "batch", (int)rows[r].batch,
                      "threads", (int)rows[r].threads, "micro_batch", (int)n->micro_batch);
        figure f[FIGURES];
        figures_of(&rows[r], f);
        for (size_t i = 0; i < FIGURES; i++)
            json_object_set_new(row, f[i].key, json_number(f[i].value));
        json_array_append_new(results, row);
    }
    json_print(json_pack("{s:o, s:s, s:s, s:i, s:o}", "cpu", json_text(cpu), "cpu_level",
                         rows[0].numbers.cpu_level, "version", renyi_version(), "repetitions",
                         (int)repetitions, "train", results));
    free(cpu);
}

void bench_train_print(const bench_train_row *rows, size_t count, uint32_t repetitions,
                       const char *format)
{
    if (strcmp(format, "csv") == 0)
        put_csv(rows, count);
    else if (strcmp(format, "json") == 0)
        put_json(rows, count, repetitions);
    else
        put_table(rows, count, repetitions);
}
