/* eval_masks_results.c - renyi eval --masks for machines: the JSON document and the --results-file.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_masks.h"
#include "cli/kit/output.h"
#include "cli/shared/models.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
        json_array_append_new(list, json_pack("{s:o, s:o}", "file", json_text(f.file), "error",
                                              json_text(f.message)));
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
        "preprocessing", json_preprocess(&r->spec->preprocess, r->spec->source), "data",
        json_text(r->a->data), "masks", json_text(r->a->masks.folder), "images",
        (json_int_t)i->images, "one_sided", (json_int_t)i->one_sided, "n_failed",
        (json_int_t)i->failed, "kinds", "trimap", (json_int_t)i->n_trimap, "binary",
        (json_int_t)i->n_binary, "keep", i->keep, "n_kept", (int)i->n_kept, "patches", "all",
        (int)i->n_patches, "object", json_number(i->object), "background",
        json_number(i->background), "left_out", json_number(i->left_out), "interrupted",
        r->is_interrupted, "seconds", i->seconds, "rankings", rankings_json(r), "policies",
        policies_json(r), "failed", failed_json(r->study));
}

/* ---- CSV: a row for every metric or policy and block ---------------------------------------- */

static void put_estimate(FILE *f, const renyi_estimate *e)
{
    csv_real(f, 6, e->mean);
    csv_real(f, 6, e->range.low);
    csv_real(f, 6, e->range.high);
}

static void put_rankings(FILE *f, const masks_report *r, const char *title)
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
            put_estimate(f, &rank.auc);
            put_estimate(f, &difference);
            csv_real(f, 6, rank.kept_object.mean);
            fputs(",,", f);
            csv_real(f, 6, 1.0 - rank.kept_object.mean);
            csv_real(f, 6, rank.kept_background.mean);
            fputs(",,", f);
            csv_real(f, 6, 1.0 - rank.kept_background.mean);
            putc('\n', f);
        }
}

static void put_fates(FILE *f, const renyi_masks_fates *fates)
{
    csv_real(f, 6, fates->alone.mean);
    csv_real(f, 6, fates->merged.mean);
    csv_real(f, 6, fates->fused.mean);
    csv_real(f, 6, fates->dropped.mean);
}

static void put_policies(FILE *f, const masks_report *r, const char *title)
{
    for (uint32_t p = 0; p < r->info.n_policies; p++)
        for (uint32_t b = 0; b < r->info.n_blocks; b++) {
            renyi_masks_survival s;
            renyi_masks_get_survival(r->study, p, b, &s);
            csv_cell(f, title);
            fputs(",policy,", f);
            csv_cell(f, renyi_masks_policy(r->study, p));
            fprintf(f, ",%u,,,,,,", b);
            put_fates(f, &s.object);
            put_fates(f, &s.background);
            putc('\n', f);
        }
}

static void put_csv(FILE *f, const masks_report *r)
{
    char *title = model_path_title(r->a->model);

    fputs("model,kind,name,block,auc,auc_low,auc_high,difference,difference_low,difference_high,"
          "object_alone,object_merged,object_fused,object_dropped,background_alone,"
          "background_merged,background_fused,background_dropped\n",
          f);
    put_rankings(f, r, title);
    put_policies(f, r, title);
    free(title);
}

static int fail_file(const eval_arguments *a)
{
    cli_error("%s: %s", a->results_file, strerror(errno));
    return -1;
}

int masks_results_write(const masks_report *r)
{
    if (!r->a->results_file) return 0;
    FILE *f = fopen(r->a->results_file, "w");
    if (!f) return fail_file(r->a);
    if (strcmp(r->a->results_format, "json") == 0) {
        json_t *document = masks_report_json(r);
        if (!document || json_dumpf(document, f, JSON_INDENT(2) | JSON_REAL_PRECISION(9)))
            errno = ENOMEM;
        putc('\n', f);
        json_decref(document);
    } else {
        put_csv(f, r);
    }
    const int is_bad = ferror(f);
    return fclose(f) || is_bad ? fail_file(r->a) : 0;
}
