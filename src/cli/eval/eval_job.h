/* eval_job.h - what the verbs that evaluate share: the words about photos and the run, opening the
 * data, running some policies over it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_EVAL_JOB_H
#define RENYI_EVAL_JOB_H

#include "cli/eval/eval_arguments.h"

/* Rows of an option table that fill `a`, an eval_arguments *. */
/* clang-format off */
#define LABEL_OPTION_ROWS(a) \
    {"data-dir", 0, OPTION_STRING, &(a)->data, "DIR", "folder DIR/class/*.jpg, or a list (.csv .jsonl .txt)", 0, 0}, \
    {"ground-truth", 0, OPTION_STRING, &(a)->ground_truth, "FILE", "classes of a flat folder, one a line or 'name class'", 0, 0}, \
    {"class-map", 0, OPTION_STRING, &(a)->class_map, "FILE", "class names: one a line, 'name index', or JSON", 0, 0}, \
    {"real-labels", 0, OPTION_STRING, &(a)->real_labels, "FILE", "ImageNet-ReaL's JSON: any label of a photo's set is right", 0, 0}, \
    {"valid-labels", 0, OPTION_STRING, &(a)->valid_labels, "FILE", "classes that can be predicted, one a line (ImageNet-A, -R)", 0, 0}

#define CHOICE_OPTION_ROWS(a) \
    {"limit", 0, OPTION_COUNT, &(a)->limit, "N", "at most N photos", 1, 0}, \
    {"shuffle", 0, OPTION_FLAG, &(a)->shuffle, "", "in random order, before --limit", 0, 0}, \
    {"seed", 0, OPTION_COUNT, &(a)->seed, "N", "of --shuffle (0)", 0, 0}, \
    {"shard", 0, OPTION_STRING, &(a)->shard, "I/N", "part I of N of the photos: 1/4, 2/4, ...", 0, 0}

#define DATA_OPTION_ROWS(a) LABEL_OPTION_ROWS(a), CHOICE_OPTION_ROWS(a)

#define RESULT_OPTION_ROWS(a) \
    {"json", 0, OPTION_FLAG, &(a)->json, "", "one JSON document on stdout", 0, 0}, \
    {"per-class", 0, OPTION_FLAG, &(a)->per_class, "", "also the accuracy of every class", 0, 0}, \
    {"results-file", 0, OPTION_STRING, &(a)->results_file, "FILE", "also write the results to FILE; --csv FILE is the same", 0, 0}, \
    {"csv", 0, OPTION_STRING, &(a)->results_file, "FILE", "the same", 0, 0}, \
    {"results-format", 0, OPTION_CHOICE, &(a)->results_format, "csv|json", "form of that file (csv)", 0, 0}

#define SPEED_OPTION_ROWS(a) \
    {"batch-size", 'b', OPTION_COUNT, &(a)->batch, "N", "photos run together (8)", 1, 1024}, \
    {"threads", 't', OPTION_COUNT, &(a)->threads, "N", "threads of the model (physical cores)", 1, 1024}, \
    {"workers", 'j', OPTION_COUNT, &(a)->workers, "N", "threads that decode beside the model (cores that -t leaves free)", 1, 1024}, \
    ENGINE_OPTION_ROWS(a), \
    {"log-freq", 0, OPTION_COUNT, &(a)->log_freq, "N", "without a terminal, a line every N photos (100)", 1, 0}

#define LOG_OPTION_ROWS(a) \
    {"log-samples", 0, OPTION_STRING, &(a)->log_samples, "FILE", "write a line of JSON for every photo and policy", 0, 0}, \
    {"resume", 0, OPTION_FLAG, &(a)->resume, "", "go on from what --log-samples FILE holds", 0, 0}

#define RUN_OPTION_ROWS(a) SPEED_OPTION_ROWS(a), LOG_OPTION_ROWS(a)
/* clang-format on */

/* Faults among these words alone, and --shard taken apart. 0, or -1 after reporting. */
int eval_arguments_check(const char *verb, eval_arguments *a);

/* "2/3" -> the second of three, counted from 0; NULL changes nothing. 0, or -1 after reporting. */
int eval_take_shard(const char *verb, const char *text, uint32_t *index, uint32_t *count);

/* The policies of the command line into a->policies, judged before anything is opened; an exit
 * code.
 */
int eval_take_policies(const char *verb, eval_arguments *a);

/* A fault of what was asked for is wrong usage, anything else a failure: reported, exit code. */
int eval_error(const char *verb, const renyi_error *err);

/* What the words about photos mean; borrows their texts. */
renyi_dataset_options eval_data_options(const eval_arguments *a);

/* One line on stderr: how many photos there are and how their classes were found. */
void eval_note_data(const eval_arguments *a, const renyi_dataset_info *found);

/* The photos of a->data for this model; an exit code. The caller frees *out. */
int eval_open_data(const char *verb, const eval_arguments *a, const renyi_model *model,
                   renyi_dataset **out);

/* Policies of one model on one dataset. */
typedef struct eval_job {
    const char *verb;
    const eval_arguments *a;   /* how to run; its model, data and policies are not looked at */
    const char *model_word;    /* as the user named it: its title goes into the log */
    const renyi_model *model;  /* borrowed */
    const renyi_dataset *data; /* borrowed */
    const char *const *policies;
    uint32_t n_policies;
    int resume;
    const char *condition; /* of renyi_eval_options, as the next */
    renyi_tca *const *adapt;
} eval_job;

/* Run with progress on stderr; Ctrl-C stops it after a batch. CLI_OK: *out (the caller frees it)
 * has results, of all photos or, *is_interrupted, of some; *spec says how photos were prepared. */
int eval_job_run(const eval_job *job, renyi_eval **out, image_spec *spec, int *is_interrupted);

#endif
