/* eval_masks_report.c - the results of renyi eval --masks as tables, JSON and CSV.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_masks.h"
#include "cli/eval/eval_report.h"
#include "cli/kit/output.h"
#include "cli/shared/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables
 * -------------------------------------------------------------------------------------- */

enum { LEAST_WIDTH = 9 };

static int width_of(const masks_report *r, uint32_t metric)
{
    const int n = (int)strlen(renyi_masks_metric(r->study, metric)) + 2;
    return n > LEAST_WIDTH ? n : LEAST_WIDTH;
}

/* The metrics from index `first` on. */
static void put_heading(const masks_report *r, uint32_t first)
{
    printf("%sblock", cli_bold(stdout));
    for (uint32_t m = first; m < r->info.n_metrics; m++)
        printf("%*s", width_of(r, m), renyi_masks_metric(r->study, m));
    printf("%s\n", cli_plain(stdout));
}

static void put_areas(const masks_report *r)
{
    double widest = 0.0;

    puts("Area under the ranking curve: how often a patch of the object outranks one of the\n"
         "background. 1 = always, 0.5 = chance.");
    put_heading(r, 0);
    for (uint32_t b = 0; b < r->info.n_blocks; b++) {
        printf("%5u", b);
        for (uint32_t m = 0; m < r->info.n_metrics; m++) {
            renyi_masks_ranking rank;
            renyi_masks_get_ranking(r->study, m, b, &rank);
            printf("%*.3f", width_of(r, m), rank.auc.mean);
            widest = fmax(widest, rank.auc.range.high - rank.auc.mean);
        }
        putchar('\n');
    }
    printf("95 %% intervals: at most +-%.3f\n", widest);
}

static void put_differences(const masks_report *r)
{
    printf("\nThe same minus that of %s, photo by photo; * = the 95 %% interval of the difference "
           "does not hold 0.\n",
           renyi_masks_metric(r->study, 0));
    put_heading(r, 1);
    for (uint32_t b = 0; b < r->info.n_blocks; b++) {
        printf("%5u", b);
        for (uint32_t m = 1; m < r->info.n_metrics; m++) {
            renyi_estimate d;
            renyi_masks_get_difference(r->study, 0, m, b, &d);
            printf("%+*.3f%c", width_of(r, m) - 1, d.mean,
                   d.range.low > 0.0 || d.range.high < 0.0 ? '*' : ' ');
        }
        putchar('\n');
    }
}

static void put_kept(const masks_report *r)
{
    printf("\nPatches that stay at keep=%g (%u of %u): %% of the object's / %% of the "
           "background's.\n",
           r->info.keep, r->info.n_kept, r->info.n_patches);
    put_heading(r, 0);
    for (uint32_t b = 0; b < r->info.n_blocks; b++) {
        printf("%5u", b);
        for (uint32_t m = 0; m < r->info.n_metrics; m++) {
            renyi_masks_ranking rank;
            char cell[32];
            renyi_masks_get_ranking(r->study, m, b, &rank);
            snprintf(cell, sizeof cell, "%.0f/%.0f", 100.0 * rank.kept_object.mean,
                     100.0 * rank.kept_background.mean);
            printf("%*s", width_of(r, m), cell);
        }
        putchar('\n');
    }
}

static void put_fates(const renyi_masks_fates *f)
{
    printf("  %7.1f %7.1f %7.1f %7.1f", 100.0 * f->alone.mean, 100.0 * f->merged.mean,
           100.0 * f->fused.mean, 100.0 * f->dropped.mean);
}

static void put_policy(const masks_report *r, uint32_t policy)
{
    int n_cuts = 0;

    printf("\n%s\n%s            object's patches, %%             background's, %%\n"
           "after block   alone  merged   fused dropped    alone  merged   fused dropped%s\n",
           renyi_masks_policy(r->study, policy), cli_bold(stdout), cli_plain(stdout));
    for (uint32_t b = 0; b < r->info.n_blocks; b++) {
        renyi_masks_survival s;
        renyi_masks_get_survival(r->study, policy, b, &s);
        n_cuts += s.is_cut;
        if (!s.is_cut && (n_cuts || b + 1 < r->info.n_blocks)) continue; /* no change */
        printf("%9u", b);
        put_fates(&s.object);
        put_fates(&s.background);
        putchar('\n');
    }
}

void masks_report_table(const masks_report *r)
{
    const renyi_masks_info *i = &r->info;

    if (i->images) {
        put_areas(r);
        if (i->n_metrics > 1) put_differences(r);
        put_kept(r);
        for (uint32_t p = 0; p < i->n_policies; p++) put_policy(r, p);
        putchar('\n');
    }
    printf("%llu photos", (unsigned long long)i->images);
    if (i->one_sided)
        printf(", %llu more without a patch of both object and background",
               (unsigned long long)i->one_sided);
    if (i->failed) printf(", %llu failed", (unsigned long long)i->failed);
    if (i->images)
        printf("; of %u patches %.1f object, %.1f background, %.1f left out", i->n_patches,
               i->object, i->background, i->left_out);
    printf("; masks: %llu trimap, %llu binary; %.1f s\n", (unsigned long long)i->n_trimap,
           (unsigned long long)i->n_binary, i->seconds);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *range_json(const renyi_estimate *e)
{
    return json_pack("[o, o]", json_number(e->range.low), json_number(e->range.high));
}

static void add_estimate(json_t *to, const char *name, const renyi_estimate *e)
{
    char range[64];

    snprintf(range, sizeof range, "%s_range", name);
    json_object_set_new(to, name, json_number(e->mean));
    json_object_set_new(to, range, range_json(e));
}

static json_t *rankings_json(const masks_report *r)
{
    json_t *list = json_array();

    for (uint32_t m = 0; m < r->info.n_metrics; m++)
        for (uint32_t b = 0; b < r->info.n_blocks; b++) {
            renyi_masks_ranking rank;
            renyi_estimate difference;
            renyi_masks_get_ranking(r->study, m, b, &rank);
            renyi_masks_get_difference(r->study, 0, m, b, &difference);
            json_t *row = json_pack("{s:o, s:i}", "metric",
                                    json_text(renyi_masks_metric(r->study, m)), "block", (int)b);
            add_estimate(row, "auc", &rank.auc);
            add_estimate(row, "difference", &difference);
            add_estimate(row, "kept_object", &rank.kept_object);
            add_estimate(row, "kept_background", &rank.kept_background);
            json_array_append_new(list, row);
        }
    return list;
}

static json_t *fates_json(const renyi_masks_fates *f)
{
    json_t *row = json_object();

    add_estimate(row, "alone", &f->alone);
    add_estimate(row, "merged", &f->merged);
    add_estimate(row, "fused", &f->fused);
    add_estimate(row, "dropped", &f->dropped);
    return row;
}

static json_t *policies_json(const masks_report *r)
{
    json_t *list = json_array();

    for (uint32_t p = 0; p < r->info.n_policies; p++) {
        json_t *blocks = json_array();
        for (uint32_t b = 0; b < r->info.n_blocks; b++) {
            renyi_masks_survival s;
            renyi_masks_get_survival(r->study, p, b, &s);
            json_array_append_new(blocks, json_pack("{s:i, s:b, s:o, s:o}", "block", (int)b, "cut",
                                                    s.is_cut, "object", fates_json(&s.object),
                                                    "background", fates_json(&s.background)));
        }
        json_array_append_new(list, json_pack("{s:s, s:o}", "policy",
                                              renyi_masks_policy(r->study, p), "blocks", blocks));
    }
    return list;
}

static json_t *failed_json(const renyi_masks *study)
{
    json_t *list = json_array();

    for (size_t i = 0; i < renyi_masks_failure_count(study); i++) {
        renyi_eval_failure f;
        renyi_masks_get_failure(study, i, &f);
        json_array_append_new(list, eval_failure_json(&f));
    }
    return list;
}

json_t *masks_report_json(const masks_report *r)
{
    const renyi_masks_info *i = &r->info;

    return json_pack(
        "{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:{s:I, s:I}, s:f, s:i, s:{s:i, s:o, s:o, "
        "s:o}, s:b, s:f, s:o, s:o, s:o}",
        "model", json_text(r->a->model), "architecture", json_text(r->model->architecture),
        "cpu_level", renyi_cpu_name(r->model->cpu), "dtype", renyi_dtype_name(r->model->dtype),
        "preprocessing", image_spec_json(r->spec), "data", json_text(r->a->data), "masks",
        json_text(r->a->masks.folder), "images", (json_int_t)i->images, "one_sided",
        (json_int_t)i->one_sided, "n_failed", (json_int_t)i->failed, "kinds", "trimap",
        (json_int_t)i->n_trimap, "binary", (json_int_t)i->n_binary, "keep", i->keep, "n_kept",
        (int)i->n_kept, "patches", "all", (int)i->n_patches, "object", json_number(i->object),
        "background", json_number(i->background), "left_out", json_number(i->left_out),
        "interrupted", r->is_interrupted, "seconds", i->seconds, "rankings", rankings_json(r),
        "policies", policies_json(r), "failed", failed_json(r->study));
}

/* ---- CSV: a row for every metric or policy and block ---------------------------------------- */

static void csv_estimate(FILE *f, const renyi_estimate *e)
{
    csv_real(f, 6, e->mean);
    csv_real(f, 6, e->range.low);
    csv_real(f, 6, e->range.high);
}

static void csv_rankings(FILE *f, const masks_report *r, const char *title)
{
    for (uint32_t m = 0; m < r->info.n_metrics; m++)
        for (uint32_t b = 0; b < r->info.n_blocks; b++) {
            renyi_masks_ranking rank;
            renyi_estimate difference;
            renyi_masks_get_ranking(r->study, m, b, &rank);
            renyi_masks_get_difference(r->study, 0, m, b, &difference);
            csv_cell(f, title);
            fputs(",metric,", f);
            csv_cell(f, renyi_masks_metric(r->study, m));
            fprintf(f, ",%u", b);
            csv_estimate(f, &rank.auc);
            csv_estimate(f, &difference);
            csv_real(f, 6, rank.kept_object.mean);
            fputs(",,", f);
            csv_real(f, 6, 1.0 - rank.kept_object.mean);
            csv_real(f, 6, rank.kept_background.mean);
            fputs(",,", f);
            csv_real(f, 6, 1.0 - rank.kept_background.mean);
            putc('\n', f);
        }
}

static void csv_fates(FILE *f, const renyi_masks_fates *fates)
{
    csv_real(f, 6, fates->alone.mean);
    csv_real(f, 6, fates->merged.mean);
    csv_real(f, 6, fates->fused.mean);
    csv_real(f, 6, fates->dropped.mean);
}

static void csv_policies(FILE *f, const masks_report *r, const char *title)
{
    for (uint32_t p = 0; p < r->info.n_policies; p++)
        for (uint32_t b = 0; b < r->info.n_blocks; b++) {
            renyi_masks_survival s;
            renyi_masks_get_survival(r->study, p, b, &s);
            csv_cell(f, title);
            fputs(",policy,", f);
            csv_cell(f, renyi_masks_policy(r->study, p));
            fprintf(f, ",%u,,,,,,", b);
            csv_fates(f, &s.object);
            csv_fates(f, &s.background);
            putc('\n', f);
        }
}

static void put_csv(FILE *f, const void *user)
{
    const masks_report *r = user;
    char *title = model_path_title(r->a->model);

    fputs("model,kind,name,block,auc,auc_low,auc_high,difference,difference_low,difference_high,"
          "object_alone,object_merged,object_fused,object_dropped,background_alone,"
          "background_merged,background_fused,background_dropped\n",
          f);
    csv_rankings(f, r, title);
    csv_policies(f, r, title);
    free(title);
}

int masks_results_write(const masks_report *r)
{
    if (!r->a->results_file) return 0;
    return eval_results_write(r->a->results_file, r->a->results_format, masks_report_json(r),
                              put_csv, r);
}
