/* sweep_json.c - a sweep for machines: the JSON document and the CSV.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/output.h"
#include "cli/sweep/sweep_report.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *tokens_json(const renyi_sweep_point *p)
{
    json_t *list = json_array();

    for (uint32_t b = 0; b < p->n_blocks; b++)
        json_array_append_new(list, json_integer(p->tokens[b]));
    return list;
}

static json_t *point_json(const sweep_view *v, size_t i)
{
    const renyi_sweep_point *p = &v->points[i];
    const renyi_eval_result *r = &p->result;
    json_t *object =
        json_pack("{s:o, s:o, s:s, s:i, s:i, s:s, s:I, s:I, s:o, s:[f,f], s:o, s:[f,f], s:o}",
                  "model", json_text(p->model), "architecture", json_text(p->architecture), "dtype",
                  renyi_dtype_name(p->dtype), "img_size", (int)p->image_size, "native_size",
                  (int)p->native_size, "policy", r->policy, "images", (json_int_t)r->images,
                  "failed", (json_int_t)r->failed, "top1", json_number(r->top1), "top1_range",
                  r->top1_range.low, r->top1_range.high, "top5", json_number(r->top5), "top5_range",
                  r->top5_range.low, r->top5_range.high, "loss", json_number(r->loss));
    json_t *rest =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:b, s:b, s:b}", "gmacs",
                  json_number(r->gmacs), "gmacs_executed", json_number(r->gmacs_executed),
                  "ms_model", json_number(r->ms_model), "ms_total", json_number(r->ms_total),
                  "images_per_second", json_number(r->images_per_second), "params",
                  (json_int_t)p->n_params, "tokens", tokens_json(p), "tokens_are_upper_bound",
                  p->is_bound, "front_gmacs", v->on_gmacs[i], "front_ms", v->on_ms[i]);

    if (object && rest) json_object_update(object, rest);
    json_decref(rest);
    return object;
}

static json_t *pairs_json(const sweep_view *v)
{
    json_t *list = json_array();

    for (size_t i = 0; i < v->n_pairs; i++) {
        const renyi_report_pair *p = &v->pairs[i];
        json_array_append_new(list, json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:b}",
                                              "a", (int)p->a, "b", (int)p->b, "both",
                                              (json_int_t)p->both, "only_a", (json_int_t)p->only_a,
                                              "only_b", (json_int_t)p->only_b, "neither",
                                              (json_int_t)p->neither, "same", (json_int_t)p->same,
                                              "difference", json_number(p->difference), "p_value",
                                              p->p_value, "noise", p->is_noise));
    }
    return list;
}

static json_t *skipped_json(const renyi_sweep *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < renyi_sweep_skip_count(s); i++) {
        renyi_sweep_skip k;
        renyi_sweep_get_skip(s, i, &k);
        json_array_append_new(list, json_pack("{s:o, s:i, s:s, s:o}", "model", json_text(k.model),
                                              "img_size", (int)k.image_size, "policy", k.policy,
                                              "reason", json_text(k.message)));
    }
    return list;
}

static json_t *failed_json(const renyi_sweep *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < renyi_sweep_failure_count(s); i++) {
        renyi_eval_failure f;
        renyi_sweep_get_failure(s, i, &f);
        json_array_append_new(list, json_pack("{s:o, s:o}", "file", json_text(f.file), "error",
                                              json_text(f.message)));
    }
    return list;
}

json_t *sweep_json(const sweep_view *v)
{
    json_t *results = json_array();
    renyi_dataset_info d;
    renyi_eval_times t;

    renyi_sweep_get_data(v->sweep, &d);
    renyi_sweep_get_times(v->sweep, &t);
    for (size_t i = 0; i < v->n; i++) json_array_append_new(results, point_json(v, i));
    return json_pack(
        "{s:o, s:o, s:o, s:I, s:I, s:I, s:b, s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o}",
        "command", json_text(v->a->command), "machine", json_text(v->machine), "data",
        json_text(v->a->e.data), "photos", (json_int_t)d.n_images, "found", (json_int_t)d.n_found,
        "left_out", (json_int_t)d.n_left_out, "interrupted", v->is_interrupted, "resumed",
        (json_int_t)t.resumed, "seconds", t.seconds, "seconds_model", t.seconds_model,
        "seconds_decode", t.seconds_decode, "peak_rss_mb", v->peak_rss_mb, "results", results,
        "pairs", pairs_json(v), "skipped", skipped_json(v->sweep), "failed", failed_json(v->sweep));
}

/* ---- CSV ----------------------------------------------------------------------------------- */

static void put_row(FILE *f, const sweep_view *v, size_t i)
{
    const renyi_sweep_point *p = &v->points[i];
    const renyi_eval_result *r = &p->result;

    csv_cell(f, v->titles[i]);
    fprintf(f, ",%u", p->image_size);
    csv_real(f, 3, r->top1);
    csv_real(f, 3, 100.0 - r->top1);
    csv_real(f, 3, r->top5);
    csv_real(f, 3, 100.0 - r->top5);
    fprintf(f, ",%.2f,%g,%s,", (double)p->n_params * 1e-6, p->preprocess.crop_pct,
            interpolation_name(p->preprocess.interpolation));
    csv_cell(f, r->policy);
    fprintf(f, ",%llu,%llu", (unsigned long long)r->images, (unsigned long long)r->failed);
    csv_real(f, 3, r->top1_range.low);
    csv_real(f, 3, r->top1_range.high);
    csv_real(f, 6, r->loss);
    csv_real(f, 6, r->gmacs);
    csv_real(f, 6, r->gmacs_executed);
    csv_real(f, 4, r->ms_model);
    csv_real(f, 4, r->ms_total);
    csv_real(f, 3, r->images_per_second);
    fprintf(f, ",%d,%d,", v->on_gmacs[i], v->on_ms[i]);
    for (uint32_t b = 0; b < p->n_blocks; b++) fprintf(f, "%s%u", b ? " " : "", p->tokens[b]);
    fprintf(f, ",%s\n", renyi_dtype_name(p->dtype));
}

/* The columns of renyi eval (timm's first), then the fronts and the tokens after each block. */
char *sweep_csv(const sweep_view *v)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f) return cli_copy("");
    fputs("model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation,policy,"
          "images,failed,top1_low,top1_high,loss,gmacs,gmacs_executed,ms_model,ms_total,img_per_s,"
          "front_gmacs,front_ms,tokens,dtype\n",
          f);
    for (size_t i = 0; i < v->n; i++) put_row(f, v, i);
    fclose(f);
    return text;
}
