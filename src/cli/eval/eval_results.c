/* eval_results.c - an evaluation for programs: the JSON document and the --results-file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_report.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"
#include "cli/kit/output.h"
#include "cli/shared/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *result_json(const renyi_eval_result *p)
{
    json_t *result = json_pack(
        "{s:s, s:I, s:I, s:o, s:[f,f], s:o, s:[f,f], s:o, s:o, s:o, s:o, s:o, s:o}", "policy",
        p->policy, "images", (json_int_t)p->images, "failed", (json_int_t)p->failed, "top1",
        json_number(p->top1), "top1_range", p->top1_range.low, p->top1_range.high, "top5",
        json_number(p->top5), "top5_range", p->top5_range.low, p->top5_range.high, "loss",
        json_number(p->loss), "gmacs", json_number(p->gmacs), "gmacs_executed",
        json_number(p->gmacs_executed), "ms_model", json_number(p->ms_model), "ms_total",
        json_number(p->ms_total), "images_per_second", json_number(p->images_per_second));
    if (result && p->dtype != RENYI_DTYPE_DEFAULT) /* logs do not have it */
        json_object_set_new(result, "dtype", json_text(renyi_dtype_name(p->dtype)));
    if (result && p->is_cascade)
        json_object_set_new(result, "second_share", json_number(p->second_share));
    return result;
}

json_t *eval_results_json(const renyi_eval *e)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < renyi_eval_policy_count(e); i++) {
        renyi_eval_result p;
        renyi_eval_get_result(e, i, &p);
        json_array_append_new(list, result_json(&p));
    }
    return list;
}

json_t *eval_pair_json(json_t *a, json_t *b, const renyi_eval_pair *p)
{
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:b}", "a", a, "b", b, "both",
                     (json_int_t)p->both, "only_a", (json_int_t)p->only_a, "only_b",
                     (json_int_t)p->only_b, "neither", (json_int_t)p->none, "same",
                     (json_int_t)p->same, "difference", json_number(p->difference), "p_value",
                     p->p_value, "noise", p->is_noise);
}

json_t *eval_pairs_json(const renyi_eval *e)
{
    json_t *list = json_array();
    const uint32_t n = renyi_eval_policy_count(e);

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++) {
            renyi_eval_pair p;
            renyi_eval_get_pair(e, a, b, &p);
            json_array_append_new(list, eval_pair_json(json_integer(a), json_integer(b), &p));
        }
    return list;
}

json_t *eval_failure_json(const renyi_eval_failure *f)
{
    return json_pack("{s:o, s:o}", "file", json_text(f->file), "error", json_text(f->message));
}

json_t *eval_failed_json(const renyi_eval *e)
{
    json_t *list = json_array();

    for (size_t i = 0; i < renyi_eval_failure_count(e); i++) {
        renyi_eval_failure f;
        renyi_eval_get_failure(e, i, &f);
        json_array_append_new(list, eval_failure_json(&f));
    }
    return list;
}

static const char *names_from(renyi_names_from from)
{
    static const char *const names[] = {"model",          "folders",  "list", "data",
                                        "classnames.txt", "imagenet", "clip"};
    return names[from];
}

/* What the classifier of a zero-shot run was made of. */
static void add_classes(json_t *document, const eval_report *r)
{
    const zeroshot_classes *c = r->classes;
    json_t *sentences = json_array();

    for (size_t i = 0; i < c->sentences.count; i++)
        json_array_append_new(sentences, json_text(c->sentences.items[i]));
    json_object_set_new(document, "collection", json_text(c->data.collection));
    json_object_set_new(document, "templates", sentences);
    json_object_set_new(document, "templates_name", json_text(c->title));
    json_object_set_new(document, "probabilities",
                        json_string(c->is_sigmoid ? "sigmoid" : "softmax"));
    json_object_set_new(document, "names_from", json_text(names_from(c->data.names_from)));
    json_object_set_new(document, "empty_classes", json_integer(c->data.n_empty));
}

void eval_run_json(json_t *document, const eval_arguments *a, const renyi_dataset_info *data,
                   const renyi_eval_times *t)
{
    json_object_set_new(document, "classes_seen", json_integer(data->n_seen));
    json_object_set_new(document, "seed",
                        a->shuffle ? json_integer((json_int_t)a->seed) : json_null());
    json_object_set_new(document, "threads",
                        t->n_threads ? json_integer(t->n_threads) : json_null());
    json_object_set_new(document, "batch_size", t->batch ? json_integer(t->batch) : json_null());
}

json_t *eval_report_json(const eval_report *r)
{
    renyi_eval_times t;
    json_t *results = eval_results_json(r->eval);
    const int has_classes = r->classes || r->a->per_class;

    renyi_eval_get_times(r->eval, &t);
    if (has_classes) eval_classes_means(r, results);
    if (r->adapt) adapt_results(r->adapt, results);
    json_t *document = json_pack(
        "{s:o, s:o, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:b, s:I, s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:o}",
        "model", json_text(r->a->model), "architecture", json_text(r->model->architecture),
        "cpu_level", renyi_cpu_name(r->model->cpu), "dtype", renyi_dtype_name(r->model->dtype),
        "preprocessing", image_spec_json(r->spec), "data", json_text(r->a->data), "photos",
        (json_int_t)r->data->n_images, "found", (json_int_t)r->data->n_found, "left_out",
        (json_int_t)r->data->n_left_out, "interrupted", r->is_interrupted, "resumed",
        (json_int_t)t.resumed, "ranks", (json_int_t)t.n_ranks, "seconds", t.seconds,
        "seconds_model", t.seconds_model, "seconds_decode", t.seconds_decode, "peak_rss_mb",
        r->peak_rss_mb, "results", results, "pairs", eval_pairs_json(r->eval), "failed",
        eval_failed_json(r->eval));
    if (document) eval_run_json(document, r->a, r->data, &t);
    if (document && r->classes) add_classes(document, r);
    if (document && has_classes) json_object_set_new(document, "classes", eval_classes_json(r));
    return document;
}

/* ---- CSV ----------------------------------------------------------------------------------- */

void eval_csv_result(FILE *f, const eval_csv_frame *frame, const renyi_eval_result *p)
{
    csv_cell(f, frame->title);
    fprintf(f, ",%u", frame->image_size);
    csv_real(f, 3, p->top1);
    csv_real(f, 3, 100.0 - p->top1);
    csv_real(f, 3, p->top5);
    csv_real(f, 3, 100.0 - p->top5);
    csv_real(f, 2, frame->params * 1e-6);
    putc(',', f);
    if (isfinite(frame->crop_pct)) fprintf(f, "%g", frame->crop_pct);
    fprintf(f, ",%s,", frame->interpolation ? frame->interpolation : "");
    csv_cell(f, p->policy);
    fprintf(f, ",%llu,%llu", (unsigned long long)p->images, (unsigned long long)p->failed);
    csv_real(f, 3, p->top1_range.low);
    csv_real(f, 3, p->top1_range.high);
    csv_real(f, 6, p->loss);
    csv_real(f, 6, p->gmacs);
    csv_real(f, 6, p->gmacs_executed);
    csv_real(f, 4, p->ms_model);
    csv_real(f, 4, p->ms_total);
    csv_real(f, 3, p->images_per_second);
}

void eval_csv(FILE *f, const renyi_eval *e, const eval_csv_frame *frame)
{
    fputs(EVAL_CSV_COLUMNS ",peak_rss_mb,threads,batch_size,dtype\n", f);
    for (uint32_t i = 0; i < renyi_eval_policy_count(e); i++) {
        renyi_eval_result p;
        renyi_eval_get_result(e, i, &p);
        eval_csv_result(f, frame, &p);
        csv_real(f, 1, frame->peak_rss_mb);
        csv_real(f, 0, frame->threads);
        csv_real(f, 0, frame->batch);
        fprintf(f, ",%s\n", p.dtype == RENYI_DTYPE_DEFAULT ? "" : renyi_dtype_name(p.dtype));
    }
}

/* ---- the file ------------------------------------------------------------------------------ */

int eval_results_check(const eval_arguments *a)
{
    return a->results_file && !ranks_number() ? check_writable(a->results_file) : 0;
}

static void put_json(FILE *f, const void *user)
{
    json_dumpf(user, f, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putc('\n', f);
}

int eval_results_write(const char *path, const char *format, json_t *document,
                       void (*put_csv)(FILE *f, const void *user), const void *user)
{
    const int is_json = strcmp(format, "json") == 0;
    int code = 0;

    if (is_json && !document) {
        cli_error("%s: out of memory", path);
        code = -1;
    } else if (!ranks_number()) {
        code = write_stream_file(path, is_json ? put_json : put_csv, is_json ? document : user);
    }
    json_decref(document);
    return code;
}
