/* cmd_merge.c - renyi merge: one result from the logs of an evaluation that ran in parts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_job.h"
#include "cli/eval/eval_report.h"
#include "cli/kit/output.h"
#include "cli/verbs.h"

#include <math.h>
#include <stdlib.h>

typedef struct merge_arguments {
    const char *results_file, *results_format, *run;
    int json;
} merge_arguments;

/* ---- what is missing ----------------------------------------------------------------------- */

enum { MAX_SHOWN = 8 };

/* Images of shard i of n that are missing; the first ones go into `places`. */
static uint64_t missing_of(const renyi_eval *e, uint64_t i, uint64_t n, uint64_t places[MAX_SHOWN])
{
    uint64_t count = 0, place;

    for (uint64_t from = 0; renyi_eval_next_missing(e, from, &place); from = place + 1) {
        if (place % n != i) continue;
        if (count < MAX_SHOWN) places[count] = place;
        count++;
    }
    return count;
}

static void warn_shard(const renyi_eval *e, uint64_t i, uint64_t n, uint64_t n_images)
{
    uint64_t places[MAX_SHOWN] = {0};
    const uint64_t count = missing_of(e, i, n, places), of = (n_images - i + n - 1) / n;
    char list[MAX_SHOWN * 24] = "", *to = list;

    if (!count) return;
    for (uint64_t k = 0; k < count && k < MAX_SHOWN; k++)
        to += sprintf(to, "%s%llu", k ? ", " : "", (unsigned long long)places[k] + 1);
    if (n > 1 && count == of)
        cli_warn("shard %llu/%llu is missing: %llu images", (unsigned long long)i + 1,
                 (unsigned long long)n, (unsigned long long)count);
    else if (n > 1)
        cli_warn("shard %llu/%llu: %llu of %llu images are missing: number %s%s of all %llu; "
                 "complete it with --resume",
                 (unsigned long long)i + 1, (unsigned long long)n, (unsigned long long)count,
                 (unsigned long long)of, list, count > MAX_SHOWN ? ", ..." : "",
                 (unsigned long long)n_images);
    else
        cli_warn("%llu of %llu images are missing: number %s%s", (unsigned long long)count,
                 (unsigned long long)of, list, count > MAX_SHOWN ? ", ..." : "");
}

static void warn_missing(const renyi_eval *e, const renyi_merge_info *info)
{
    enum { MANY = 1000 }; /* shards; with more, they are not listed one by one */
    const int is_cut = info->n_shards && info->n_shards <= info->n_photos && info->n_shards <= MANY;
    const uint64_t n = is_cut ? info->n_shards : 1;

    if (info->n_missing)
        for (uint64_t i = 0; i < n; i++) warn_shard(e, i, n, info->n_photos);
    if (info->n_repeated)
        cli_note("%llu samples are in the logs more than once; they are equal and count once",
                 (unsigned long long)info->n_repeated);
}

/* ---- report -------------------------------------------------------------------------------- */

static json_t *merged_json(const renyi_eval *e, const renyi_merge_info *info)
{
    return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "model",
                     json_text(info->model), "run", info->run, "img_size",
                     (json_int_t)info->image_size, "classes", (json_int_t)info->n_classes, "photos",
                     (json_int_t)info->n_photos, "missing", (json_int_t)info->n_missing, "repeated",
                     (json_int_t)info->n_repeated, "results", eval_results_json(e), "pairs",
                     eval_pairs_json(e), "failed", eval_failed_json(e));
}

static void put_tables(const renyi_eval *e, const renyi_merge_info *info)
{
    renyi_eval_result first;

    renyi_eval_get_result(e, 0, &first);
    eval_table_policies(e);
    eval_table_pairs(e);
    printf("\n%llu photos", (unsigned long long)first.images);
    if (first.failed) printf(", %llu failed", (unsigned long long)first.failed);
    if (info->n_missing) printf(", %llu missing", (unsigned long long)info->n_missing);
    cli_print(", %u classes; %s at %u pixels, run %s\n", info->n_classes, info->model,
              info->image_size, info->run);
}

static int exit_code(const renyi_eval *e, const renyi_merge_info *info)
{
    uint64_t images = 0;

    for (uint32_t i = 0; i < renyi_eval_policy_count(e); i++) {
        renyi_eval_result p;
        renyi_eval_get_result(e, i, &p);
        images += p.images;
    }
    if (!images) return CLI_FAILED;
    return renyi_eval_failure_count(e) || info->n_missing ? CLI_PARTIAL : CLI_OK;
}

static void put_csv(FILE *f, const void *user)
{
    renyi_merge_info info;

    renyi_eval_get_merge_info(user, &info);
    const eval_csv_frame frame = {.title = info.model,
                                  .image_size = info.image_size,
                                  .params = NAN,
                                  .crop_pct = NAN,
                                  .peak_rss_mb = NAN,
                                  .threads = NAN,
                                  .batch = NAN};
    eval_csv(f, user, &frame);
}

static int report_merged(const merge_arguments *a, const renyi_eval *e)
{
    renyi_merge_info info;

    renyi_eval_get_merge_info(e, &info);
    warn_missing(e, &info);
    if (a->json)
        json_print(merged_json(e, &info));
    else
        put_tables(e, &info);
    if (a->results_file &&
        eval_results_write(a->results_file, a->results_format, merged_json(e, &info), put_csv, e))
        return CLI_FAILED;
    return exit_code(e, &info);
}

/* ---- the command line ---------------------------------------------------------------------- */

/* paths: the new log, then those of the parts. */
static int merge_logs(const merge_arguments *a, const cli_strings *paths)
{
    const renyi_merge_options o = {.struct_size = sizeof o, .run = a->run};
    renyi_error err = {0};
    renyi_eval *e = NULL;

    renyi_status st =
        renyi_eval_merge(&e, (const char *const *)paths->items + 1, paths->count - 1, &o, &err);
    if (st == RENYI_OK) st = renyi_eval_write_log(e, paths->items[0], &err);
    const int code = st == RENYI_OK ? report_merged(a, e) : eval_error("merge", &err);
    renyi_eval_free(e);
    return code;
}

static option_outcome parse_options(merge_arguments *a, int argc, char **argv, cli_strings *paths)
{
    const option table[] = {
        JSON_OPTION_ROW(a),
        RESULTS_FILE_OPTION_ROWS(a),
        {"run", 0, OPTION_STRING, &a->run, "ID", "use only lines with this \"run\"", 0, 0},
    };
    const verb_syntax syntax = {
        "merge", "OUT.jsonl LOG.jsonl... [options]",
        "Merges logs of 'renyi eval --shard I/N --log-samples LOG': prints the totals, intervals and paired\n"
        "tests of one run over all images, computed from the logs alone, and writes one log OUT. Logs of\n"
        "another run, model or dataset and lines that contradict each other are errors with file and line.\n"
        "Images that are in no log are counted by shard, and the exit code is 3.",
        "  renyi merge all.jsonl part1.jsonl part2.jsonl part3.jsonl\n"
        "  renyi merge all.jsonl part*.jsonl --json --csv results.csv\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, paths);
}

int cmd_merge(int argc, char **argv)
{
    merge_arguments a = {.results_format = "csv"};
    cli_strings paths = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &paths);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && paths.count < 2)
        code = options_usage_error("merge",
                                   "give at least two names: the new log, then the logs to merge");
    else if (outcome == OPTIONS_GO)
        code = merge_logs(&a, &paths);
    cli_strings_free(&paths);
    return code;
}
