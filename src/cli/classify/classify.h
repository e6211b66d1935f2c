/* classify.h - the parts of renyi classify: running batches, printing results, writing the trace.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_CLASSIFY_H
#define RENYI_CLASSIFY_H

#include "cli/eval/zeroshot.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"

#include <jansson.h>

/* ---- the trace: what each cut did to each image, one JSON line per image (docs/CLI.md) ------ */

typedef struct trace_file {
    renyi_output_file *out;       /* owned */
    const renyi_model_info *info; /* borrowed */
} trace_file;

/* The file appears when the trace is closed. 0, or -1 after reporting. */
int trace_open(trace_file *t, const char *path, const renyi_model_info *info);

/* What each cut did to image number `image` of the session's last run; the session was made with
 * trace = 1. Owned; NULL with *err. */
json_t *trace_json(const renyi_model_info *info, const renyi_session *session, uint32_t image,
                   renyi_error *err);

/* Writes the whole line of image number `image` of the session's last run; the session was made
 * with trace = 1. 0, or -1 after reporting. */
int trace_image(trace_file *t, const char *file, const renyi_session *session, uint32_t image);

/* is_complete = 0: an older trace of that name stays. 0, or -1 after reporting that not everything
 * could be written. */
int trace_close(trace_file *t, int is_complete);

/* ---- batches and results ------------------------------------------------------------------- */

/* What stdout gets. All but CLASSIFY_JSON are printed batch by batch. */
typedef enum classify_form {
    CLASSIFY_TEXT, /* for people */
    CLASSIFY_JSON, /* one document at the end */
    CLASSIFY_JSONL,
    CLASSIFY_CSV
} classify_form;

typedef struct classify_job {
    renyi_session *session;
    const char *model; /* the name given with -m */
    const renyi_model_info *info;
    const image_spec *spec;
    class_names *names;
    uint32_t top_k;
    trace_file *trace; /* NULL = none */
    classify_form form;
    const char *csv; /* file that gets CSV when all images are done; NULL = none */
} classify_job;

/* Runs all images, batch by batch, and prints the results. Images that cannot be read are reported,
 * added to inputs->failed and skipped. Returns the number classified, or -1 if the model or the
 * output failed or the run was interrupted (reported). */
int64_t classify_images(const classify_job *job, image_inputs *inputs);

/* The image tower with the class names of z->class_names (a file) as its head; it owns `tower`.
 * NULL after reporting: then the tower is the caller's. */
renyi_model *classify_by_names(const char *model, renyi_model *tower, const zeroshot_arguments *z,
                               const renyi_options *opt, uint64_t threads);

/* ---- output -------------------------------------------------------------------------------- */

typedef struct class_score {
    uint32_t index;
    double logit, probability;
} class_score;

/* The `k` best of n_classes logits, largest first, equal ones by index, with their probabilities:
 * a softmax, or a sigmoid of each. Returns how many, or 0 if a logit is not a number. */
uint32_t classify_top(class_score *top, uint32_t k, const float *logits, uint32_t n_classes,
                      int is_sigmoid);

typedef struct image_result {
    const char *file;
    const class_score *top; /* [n_top] */
    uint32_t n_top;
    double ms;        /* forward pass; the time of a batch divided by its images */
    double ms_decode; /* read, decode, resize, crop */
} image_result;

typedef struct classify_output {
    json_t *results;        /* CLASSIFY_JSON: so far */
    FILE *csv;              /* where CSV goes: stdout, or a buffer for the file; NULL = none */
    char *bytes;            /* of that buffer */
    size_t n_bytes, n_told; /* n_told: failures that are in the output */
} classify_output;

/* 0, or -1 after reporting. */
int classify_output_open(classify_output *out, const classify_job *job);
void classify_put(classify_output *out, const classify_job *job, const image_result *r);
/* The failures since the last call. */
void classify_put_failures(classify_output *out, const classify_job *job,
                           const image_inputs *inputs);
/* Ends the output. With is_good = 0 no document and no file is written. 0, or -1 after reporting.
 */
int classify_output_close(classify_output *out, const classify_job *job, const image_inputs *inputs,
                          int is_good);

#endif
