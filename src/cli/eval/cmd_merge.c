/* cmd_merge.c - renyi merge: the logs of an evaluation that ran in parts become one result.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_job.h"
#include "cli/eval/eval_report.h"
#include "cli/kit/output.h"
#include "cli/verbs.h"

#include <math.h>
#include <stdlib.h>

typedef struct arguments {
    const char *results_file, *results_format, *run;
    int json;
} arguments;

/* ---- what is missing ----------------------------------------------------------------------- */

enum { SHOWN = 8 };

/* Photos of shard i of n that are missing; the first of them go into `places`. */
static uint64_t missing_of(const renyi_eval *e, uint64_t i, uint64_t n, uint64_t places[SHOWN])
{
    uint64_t count = 0, place;

    for (uint64_t from = 0; renyi_eval_next_missing(e, from, &place); from = place + 1) {
        if (place % n != i) continue;
        if (count < SHOWN) places[count] = place;
        count++;
    }
    return count;
}

static void warn_shard(const renyi_eval *e, uint64_t i, uint64_t n, uint64_t photos)
{
    uint64_t places[SHOWN] = {0};
    const uint64_t count = missing_of(e, i, n, places), of = (photos - i + n - 1) / n;
    char list[SHOWN * 24] = "", *to = list;

    if (!count) return;
    for (uint64_t k = 0; k < count && k < SHOWN; k++)
        to += sprintf(to, "%s%llu", k ? ", " : "", (unsigned long long)places[k] + 1);
    if (n > 1 && count == of)
        cli_warn("shard %llu/%llu is missing: %llu photos", (unsigned long long)i + 1,
                 (unsigned long long)n, (unsigned long long)count);
    else if (n > 1)
        cli_warn("shard %llu/%llu: %llu of %llu photos are missing: number %s%s of all %llu; "
                 "--resume completes it",
                 (unsigned long long)i + 1, (unsigned long long)n, (unsigned long long)count,
                 (unsigned long long)of, list, count > SHOWN ? ", ..." : "",
                 (unsigned long long)photos);
    else
        cli_warn("%llu of %llu photos are missing: number %s%s", (unsigned long long)count,
                 (unsigned long long)of, list, count > SHOWN ? ", ..." : "");
}

static void warn_missing(const renyi_eval *e, const renyi_merge_info *info)
{
    enum { MANY = 1000 }; /* shards, to be told one by one */
    const int is_cut = info->n_shards && info->n_shards <= info->n_photos && info->n_shards <= MANY;
    const uint64_t n = is_cut ? info->n_shards : 1;

    if (info->n_missing)
        for (uint64_t i = 0; i < n; i++) warn_shard(e, i, n, info->n_photos);
    if (info->n_repeated)
        cli_note("%llu samples are in the logs more than once; they agree and count once",
                 (unsigned long long)info->n_repeated);
}

/* ---- report -------------------------------------------------------------------------------- */

static json_t *document(const renyi_eval *e, const renyi_merge_info *info)
{
    return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "model",
                     json_text(info->model), "run", info->run, "img_size",
                     (json_int_t)info->image_size, "classes", (json_int_t)info->n_classes, "photos",
                     (json_int_t)info->n_photos, "missing", (json_int_t)info->n_missing, "repeated",
                     (json_int_t)info->n_repeated, "results", eval_results_json(e), "pairs",
                     eval_pairs_json(e), "failed", eval_failed_json(e));
}

static void table(const renyi_eval *e, const renyi_merge_info *info)
{
    renyi_eval_result first;

    renyi_eval_get_result(e, 0, &first);
    eval_table_policies(e);
    eval_table_pairs(e);
    printf("\n%llu photos", (unsigned long long)first.images);
    if (first.failed) printf(", %llu failed", (unsigned long long)first.failed);
    if (info->n_missing) printf(", %llu missing", (unsigned long long)info->n_missing);
    printf(", %u classes; ", info->n_classes);
    cli_put_clean(stdout, info->model);
    printf(" at %u pixels, run %s\n", info->image_size, info->run);
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

static int report(const arguments *a, const renyi_eval *e)
{
    renyi_merge_info info;

    renyi_eval_get_merge_info(e, &info);
    warn_missing(e, &info);
    if (a->json)
        json_print(document(e, &info));
    else
        table(e, &info);
    const eval_csv_frame frame = {.title = info.model,
                                  .image_size = info.image_size,
                                  .params = NAN,
                                  .crop_pct = NAN,
                                  .peak_rss_mb = NAN,
                                  .threads = NAN,
                                  .batch = NAN};
    if (a->results_file &&
        eval_results_put(a->results_file, a->results_format, document(e, &info), e, &frame))
        return CLI_FAILED;
    return exit_code(e, &info);
}

/* ---- the command line ---------------------------------------------------------------------- */

/* words: the new log, then those of the parts. */
static int merge(const arguments *a, const cli_strings *words)
{
    const renyi_merge_options o = {.struct_size = sizeof o, .run = a->run};
    renyi_error err = {0};
    renyi_eval *e = NULL;

    renyi_status st =
        renyi_eval_merge(&e, (const char *const *)words->items + 1, words->count - 1, &o, &err);
    if (st == RENYI_OK) st = renyi_eval_write_log(e, words->items[0], &err);
    const int code = st == RENYI_OK ? report(a, e) : eval_error("merge", &err);
    renyi_eval_free(e);
    return code;
}

static option_outcome parse(arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document on stdout", 0, 0},
        {"results-file", 0, OPTION_STRING, &a->results_file, "FILE",
         "also write the results to FILE; --csv FILE is the same", 0, 0},
        {"csv", 0, OPTION_STRING, &a->results_file, "FILE", "the same", 0, 0},
        {"results-format", 0, OPTION_CHOICE, &a->results_format, "csv|json",
         "form of that file (csv)", 0, 0},
        {"run", 0, OPTION_STRING, &a->run, "ID",
         "only lines with this \"run\"; the others are "
         "passed over",
         0, 0},
    };
    const verb_syntax syntax = {
        "merge", "OUT.jsonl LOG.jsonl... [options]",
        "Puts logs of 'renyi eval --shard I/N --log-samples LOG' together: the totals, intervals and paired\n"
        "tests of one run over all photos, from the logs alone, and one log OUT of everything. Logs of\n"
        "another run, model or dataset and lines that contradict each other are refused by file and line.\n"
        "Photos that no log has are counted and named by shard, and the exit code is 3.",
        "  renyi merge all.jsonl part1.jsonl part2.jsonl part3.jsonl\n"
        "  renyi merge all.jsonl part*.jsonl --json --csv results.csv\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_merge(int argc, char **argv)
{
    arguments a = {.results_format = "csv"};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && words.count < 2)
        code = options_usage_error("merge", "two names at least: the new log, then those to merge");
    else if (outcome == OPTIONS_GO)
        code = merge(&a, &words);
    cli_strings_free(&words);
    return code;
}
