/* eval_job.h - what the verbs that evaluate share: options, data, and running policies over it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_EVAL_JOB_H
#define RENYI_EVAL_JOB_H

#include "cli/eval/zeroshot.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/shared/prune_options.h"

#include "renyi/eval.h"

/* ---- options ------------------------------------------------------------------------------- */

/* Of --masks (eval_masks.h). */
typedef struct masks_arguments {
    const char *folder, *metrics, *kind, *border; /* folder NULL: no masks */
    option_reals keep;
} masks_arguments;

typedef struct eval_arguments {
    const char *model, *data, *cpu, *dtype;
    const char *ground_truth, *class_map, *real_labels, *valid_labels, *shard;
    const char *results_file, *results_format, *log_samples;
    uint64_t batch, threads, workers, streams, image_size, limit, seed, log_freq;
    uint32_t shard_index, n_shards; /* from `shard`; 0 shards = all */
    dtype_list dtypes;              /* from `dtype` */
    int json, exif, shuffle, no_shuffle, resume, per_class;
    masks_arguments masks;
    image_overrides over;
    prune_options prune;
    cli_strings policies;               /* that the pruning options mean, as typed */
    const zeroshot_arguments *zeroshot; /* NULL: the classes are the model's */
} eval_arguments;

/* Rows of an option table that fill `a`, an eval_arguments *. */
/* clang-format off */
#define LABEL_OPTION_ROWS(a) \
    {"data-dir", 0, OPTION_STRING, &(a)->data, "DIR", "folder DIR/class/*.jpg, or a list (.csv .jsonl .txt)", 0, 0}, \
    {"ground-truth", 0, OPTION_STRING, &(a)->ground_truth, "FILE", "classes of a flat folder, one per line or 'name class'", 0, 0}, \
    {"class-map", 0, OPTION_STRING, &(a)->class_map, "FILE", "class names: one per line, 'name index', or JSON", 0, 0}, \
    {"real-labels", 0, OPTION_STRING, &(a)->real_labels, "FILE", "ImageNet-ReaL's JSON: any label of an image's set is right", 0, 0}, \
    {"valid-labels", 0, OPTION_STRING, &(a)->valid_labels, "FILE", "classes that can be predicted, one per line (ImageNet-A, -R)", 0, 0}

#define CHOICE_OPTION_ROWS(a) \
    {"limit", 0, OPTION_COUNT, &(a)->limit, "N", "at most N images, drawn at random from all", 1, 0}, \
    {"seed", 0, OPTION_COUNT, &(a)->seed, "N", "seed of the draw and of --shuffle (0)", 0, 0}, \
    {"shuffle", 0, OPTION_FLAG, &(a)->shuffle, "", "random order, also without --limit", 0, 0}, \
    {"no-shuffle", 0, OPTION_FLAG, &(a)->no_shuffle, "", "the order of the list: --limit takes the first N, class by class", 0, 0}, \
    {"shard", 0, OPTION_STRING, &(a)->shard, "I/N", "part I of N of the images: 1/4, 2/4, ...", 0, 0}

#define DATA_OPTION_ROWS(a) LABEL_OPTION_ROWS(a), CHOICE_OPTION_ROWS(a)

#define JSON_OPTION_ROW(a) \
    {"json", 0, OPTION_FLAG, &(a)->json, "", "one JSON document on stdout", 0, 0}

#define RESULTS_FILE_OPTION_ROWS(a) \
    {"results-file", 0, OPTION_STRING, &(a)->results_file, "FILE", "also write the results to FILE; --csv FILE is the same", 0, 0}, \
    {"csv", 0, OPTION_STRING, &(a)->results_file, "FILE", "the same", 0, 0}, \
    {"results-format", 0, OPTION_CHOICE, &(a)->results_format, "csv|json", "format of that file (csv)", 0, 0}

#define RESULT_OPTION_ROWS(a) \
    JSON_OPTION_ROW(a), \
    {"per-class", 0, OPTION_FLAG, &(a)->per_class, "", "also the accuracy of every class", 0, 0}, \
    RESULTS_FILE_OPTION_ROWS(a)

#define THREAD_OPTION_ROWS(a) \
    {"threads", 't', OPTION_COUNT, &(a)->threads, "N", "threads of the model (physical cores)", 1, 1024}, \
    {"workers", 'j', OPTION_COUNT, &(a)->workers, "N", "threads that decode beside the model (cores that -t leaves free)", 1, 1024}, \
    CPU_OPTION_ROW(a)

#define SPEED_OPTION_ROWS(a) \
    {"batch-size", 'b', OPTION_COUNT, &(a)->batch, "N", "images run together (8)", 1, 1024}, \
    THREAD_OPTION_ROWS(a), \
    {"log-freq", 0, OPTION_COUNT, &(a)->log_freq, "N", "without a terminal, a line every N images (100)", 1, 0}

#define LOG_OPTION_ROWS(a) \
    {"log-samples", 0, OPTION_STRING, &(a)->log_samples, "FILE", "write a line of JSON for every image and policy", 0, 0}, \
    {"resume", 0, OPTION_FLAG, &(a)->resume, "", "continue from the results in --log-samples FILE", 0, 0}

#define RUN_OPTION_ROWS(a) SPEED_OPTION_ROWS(a), LOG_OPTION_ROWS(a)
/* clang-format on */

/* Checks these options by themselves, parses --shard and --dtype, and lets --limit draw at random
 * unless
 * --no-shuffle is given. 0, or -1 after reporting. */
int eval_check_arguments(const char *verb, eval_arguments *a);

/* The data of a verb that takes one folder or list: --data-dir or the only argument. CLI_OK, or
 * CLI_USAGE after reporting. */
int eval_take_data(const char *verb, eval_arguments *a, const cli_strings *arguments);

/* "2/3" -> the second of three, counted from 0; NULL changes nothing. 0, or -1 after reporting. */
int eval_parse_shard(const char *verb, const char *text, uint32_t *index, uint32_t *count);

/* Reports an error of the library: wrong usage if an argument caused it, else a failure. Returns
 * the exit code. */
int eval_error(const char *verb, const renyi_error *err);

/* Reports that Ctrl-C ended the run: how to resume it, or `with` which option it could have been
 * resumed (NULL = never). Only the first rank reports. */
void eval_report_interrupt(int can_resume, const char *with);

/* ---- data ---------------------------------------------------------------------------------- */

/* What the options mean for the library; borrows their texts. */
renyi_dataset_options eval_data_options(const eval_arguments *a);

/* One line on stderr: how many images and classes there are, and how the classes were found. A
 * warning if all images are of one class. */
void eval_note_data(const eval_arguments *a, const renyi_dataset_info *found);

/* Opens a->data for this model (NULL = the data's own classes). Returns an exit code. The caller
 * frees *out. */
int eval_open_data(const char *verb, const eval_arguments *a, const renyi_model *model,
                   renyi_dataset **out);

/* ---- running ------------------------------------------------------------------------------- */

/* Policies of one model on one dataset. All pointers are borrowed. */
typedef struct eval_job {
    const char *verb;
    const eval_arguments *a; /* how to run; its model, data and policies are not used */
    const char *model_name;  /* as typed: its title goes into the log */
    const renyi_model *model;
    const renyi_dataset *data;
    const char *const *policies;
    uint32_t n_policies;
    const renyi_model *const *models; /* of renyi_eval_options */
    int resume;
    const char *condition; /* of renyi_eval_options, like the next */
    renyi_tca *const *adapt;
} eval_job;

/* Runs with progress on stderr; Ctrl-C stops it after a batch. CLI_OK: *out (the caller frees it)
 * has the results of all images or, if *is_interrupted, of some; *spec is the preprocessing. */
int eval_job_run(const eval_job *job, renyi_eval **out, image_spec *spec, int *is_interrupted);

/* What renyi eval and renyi zeroshot run and report. */
typedef struct eval_subject {
    const char *verb;
    const eval_arguments *a;
    const renyi_model *const *models; /* [n_models] the model in every dtype */
    size_t n_models;
    const renyi_dataset *data;
    const zeroshot_classes *classes; /* NULL: not zero-shot */
    const adaptation *adapt;         /* the same */
} eval_subject;

/* Runs every policy in every dtype and reports it; models and data are open. Returns an exit code.
 */
int eval_evaluate(const eval_subject *s);

#endif
