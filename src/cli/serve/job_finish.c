/* job_finish.c - the last step of a request, on a worker: the answer as JSON, from the rows that
 * the model computed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/classify/classify.h"
#include "cli/kit/output.h"
#include "cli/serve/data_url.h"
#include "cli/serve/serve_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes -----------------------------------------------------------------------------------
 */

static const char *label(const serve_job *job, uint32_t i)
{
    if (job->kind == REQUEST_CLASSIFY) return job->model->labels[i];
    return json_string_value(json_array_get(job->request.classes, i));
}

static json_t *top_json(const serve_job *job, const class_score *top, uint32_t n)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list,
                              json_pack("{s:i, s:o, s:f, s:f}", "index", (int)top[i].index, "label",
                                        json_text(label(job, top[i].index)), "probability",
                                        top[i].probability, "logit", top[i].logit));
    return list;
}

/* One image; NULL with the job's error. */
static json_t *image_json(serve_job *job, size_t i, class_score *top, uint32_t k)
{
    const double none_below =
        job->kind == REQUEST_CLASSIFY ? job->model->info.none_below : (double)NAN;
    job_input *in = &job->inputs[i];
    const int is_sigmoid = job->kind != REQUEST_CLASSIFY && job->model->text.info.is_sigmoid;
    const uint32_t n = classify_top(top, k, in->row, job->n_row, is_sigmoid);

    if (!n) {
        job_fail(job, 500, "not_a_number", NULL,
                 "image %zu: the model answered with values that are not numbers", i + 1);
        return NULL;
    }
    json_t *none = isnan(none_below) ? json_null() : json_boolean(top[0].logit < none_below);
    json_t *out = json_pack("{s:i, s:o, s:o, s:o, s:f, s:f, s:f, s:i}", "index", (int)i, "name",
                            json_text(job->request.inputs[i].name), "top", top_json(job, top, n),
                            "none_of_these", none, "ms", in->ms, "ms_decode", in->ms_decode, "macs",
                            in->macs, "batch", (int)in->batch);
    if (out && in->trace) json_object_set(out, "trace", in->trace);
    return out;
}

static json_t *classes_json(serve_job *job)
{
    const size_t n = job->request.n_inputs;
    const uint32_t k = job->request.top_k < job->n_row ? job->request.top_k : job->n_row;
    class_score *top = calloc(k, sizeof *top);
    json_t *data = top ? json_array() : NULL;

    for (size_t i = 0; data && i < n && !job->error.status; i++)
        json_array_append_new(data, image_json(job, i, top, k));
    free(top);
    return json_pack("{s:s, s:o, s:s, s:f, s:o, s:{s:i}}", "object", "list", "model",
                     json_text(job->model->name), "policy", job->policy, "macs_dense",
                     job->inputs[0].macs_dense, "data", data, "usage", "images", (int)n);
}

/* ---- embeddings --------------------------------------------------------------------------------
 */

static json_t *numbers_json(const float *row, uint32_t n)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++) json_array_append_new(list, json_real((double)row[i]));
    return list;
}

/* Rows of length 1, as `renyi embed` writes them. */
static int normalise(serve_job *job, size_t i)
{
    float *row = job->inputs[i].row;
    double square = 0.0;

    renyi_normalise_rows(row, 1, job->n_row);
    for (uint32_t k = 0; k < job->n_row; k++) square += (double)row[k] * (double)row[k];
    if (isfinite(square) && square > 0.5) return 0;
    job_fail(job, 500, "not_a_number", NULL,
             "input %zu: the model answered with values that are not numbers", i + 1);
    return -1;
}

/* Little endian, as the machines that this runs on. */
static json_t *row_json(const serve_job *job, const float *row)
{
    if (!job->request.is_base64) return numbers_json(row, job->n_row);
    char *text = base64_text(row, job->n_row * sizeof *row);
    json_t *out = text ? json_string(text) : NULL;
    free(text);
    return out;
}

static json_t *embeddings_json(serve_job *job)
{
    const renyi_model_info *info = &job->model->info;
    const size_t n = job->request.n_inputs;
    json_t *data = json_array();
    uint64_t tokens = 0;

    for (size_t i = 0; i < n && !job->error.status; i++) {
        const job_input *in = &job->inputs[i];
        if (normalise(job, i)) break;
        tokens += in->ids ? in->n_ids : info->n_prefix + info->n_patches;
        json_array_append_new(data, json_pack("{s:s, s:i, s:o}", "object", "embedding", "index",
                                              (int)i, "embedding", row_json(job, in->row)));
    }
    return json_pack("{s:s, s:o, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", data, "model",
                     json_text(job->model->name), "policy", job->policy, "usage", "prompt_tokens",
                     (json_int_t)tokens, "total_tokens", (json_int_t)tokens);
}

/* Immich's: the embedding is a JSON list inside a string. */
static json_t *predict_json(serve_job *job)
{
    const job_input *in = &job->inputs[0];

    if (normalise(job, 0)) return NULL;
    json_t *list = numbers_json(in->row, job->n_row);
    char *text = list ? json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_t *out = text ? json_pack("{s:s}", "clip", text) : NULL;
    json_decref(list);
    free(text);
    if (out && !in->ids)
        json_object_update_new(out, json_pack("{s:i, s:i}", "imageHeight", (int)in->height,
                                              "imageWidth", (int)in->width));
    return out;
}

void job_finish(serve_job *job)
{
    json_t *document = NULL;

    if (!job->error.status)
        document = job->kind == REQUEST_EMBEDDINGS ? embeddings_json(job)
                   : job->kind == REQUEST_PREDICT  ? predict_json(job)
                                                   : classes_json(job);
    if (job->error.status) {
        json_decref(document);
        job_answer_error(job);
    } else {
        job_answer_json(job, 200, document);
    }
    job_hand_back(job);
}
