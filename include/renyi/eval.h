/* eval.h - what a pruning policy costs and what it buys, on a user's own photos.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Life of a program:
 *   renyi_model_open -> renyi_dataset_open -> renyi_eval_new -> renyi_eval_run -> results -> free.
 *
 * Threads   an evaluation belongs to one thread at a time; callbacks come from the thread that is
 *           in renyi_eval_run. Photos are decoded on threads of the evaluation's own as well.
 * Memory    photos are decoded in the C heap; all else comes from the allocator of the options.
 * Results   depend on the model, the data and the policies alone: not on threads, not on the batch
 *           size, not on whether a run was interrupted and resumed. Times do, of course.
 * The rest is as in renyi.h.
 */
#ifndef RENYI_EVAL_H
#define RENYI_EVAL_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- datasets ------------------------------------------------------------------------------ */

typedef struct renyi_dataset renyi_dataset; /* names of photos and their classes; immutable */

/* How a photo's class was found. */
typedef enum renyi_class_rule {
    RENYI_CLASS_UNKNOWN = 0,  /* no class; ReaL labels may tell */
    RENYI_CLASS_BY_INDEX = 1, /* "006" is class 6 */
    RENYI_CLASS_BY_WNID = 2,  /* "n01440764" is class 0 of ImageNet's 1000 */
    RENYI_CLASS_BY_NAME = 3,  /* the model's own label names */
    RENYI_CLASS_BY_MAP = 4,   /* the class map file */
    RENYI_CLASS_BY_ORDER = 5, /* the i-th folder in byte order is class i (ImageFolder) */
    RENYI_CLASS_BY_DATA = 6   /* the data set's own list tells (own_classes) */
} renyi_class_rule;

/* Paths are borrowed for the call. */
typedef struct renyi_dataset_options {
    uint32_t struct_size;
    uint32_t n_classes;       /* of the model; 0 = the model's, or 1000 without one */
    const char *ground_truth; /* classes of a flat folder: one a line in the order of the file
                                 names, or "name class" lines; NULL = folders are classes */
    const char *class_map;    /* one class name a line (line 0 = class 0), "name index" lines, or a
                                 JSON object {"name": index} or {"index": name}; NULL = none */
    const char *real_labels;  /* ImageNet-ReaL's JSON: a list of classes for each validation photo;
                                 any of them is right, photos without one are left out */
    const char *valid_labels; /* one class a line: only these can be predicted (ImageNet-A, -R) */
    uint64_t limit;           /* at most so many photos, after shuffling; 0 = all */
    uint32_t shuffle;         /* 1 = in an order that `seed` decides */
    uint32_t shard,
        n_shards; /* photos shard, shard + n_shards, ... of the rest; n_shards 0 = all */
    uint64_t seed;
    uint64_t max_images;     /* more is an error; 0 = 16,777,216 */
    uint64_t max_list_bytes; /* of a list, label or map file; 0 = 1 GiB */
    renyi_allocator allocator;
    uint32_t unlabelled; /* 1 = classes do not matter (masks.h): every photo at and below a folder,
                            every line of a list whatever its class; no label files */
    /* Zero-shot: which classes there are is not the model's to say. m may be NULL; if not, it must
     * have as many classes. Without label files and n_classes. */
    uint32_t own_classes;    /* 1 = a class for every folder, in byte order, called like it; WordNet
                                ids are called as ImageNet calls them. See renyi_dataset_names */
    const char *collection;  /* a data set by name (collections.h), whose folder, photos or split
                                `path` is, or the folder above; or "auto": the one that the split
                                file or the folder's name tells, else any folder. own_classes is 1 */
    const char *class_names; /* names of the classes: one a line, or "n01440764 tench" lines;
                                own_classes is 1. Folders and lists may name classes by them */
} renyi_dataset_options;

/* Where the names of own_classes come from. */
typedef enum renyi_names_from {
    RENYI_NAMES_NONE = 0,       /* classes are the model's */
    RENYI_NAMES_FOLDERS = 1,    /* names of the folders */
    RENYI_NAMES_LIST = 2,       /* class_names */
    RENYI_NAMES_DATA = 3,       /* the data set's own: its split, its list of variants */
    RENYI_NAMES_CLASSNAMES = 4, /* classnames.txt beside the photos ("n01440764 tench"; CoOp's has
                                  the names that CLIP was tested with) */
    RENYI_NAMES_IMAGENET = 5    /* the first of ImageNet's own names */
} renyi_names_from;

/* What `path` may be:
 *   a folder of folders  DIR/class/...jpg; with DIR/val beside DIR/train, DIR/val is taken
 *   a folder             of photos, with ground_truth or real_labels
 *   a list               .csv (file,label; a header names the columns), .jsonl ({"file", "label"})
 *                        or .txt ("name class" lines); names are relative to the list's folder.
 *                        With own_classes also .json, CoOp's split, of which the test part is taken
 * Photos are files that end in .jpg .jpeg .png .webp .ppm .pgm .pnm, any case; a list may name any.
 * m (may be NULL) tells the number of classes and their names. On success *out is owned by the
 * caller (renyi_dataset_free) and has at least one photo. Errors name file and line. */
RENYI_API RENYI_CHECK renyi_status renyi_dataset_open(renyi_dataset **out, const char *path,
                                                      const renyi_model *m,
                                                      const renyi_dataset_options *opt,
                                                      renyi_error *err);
RENYI_API void renyi_dataset_free(renyi_dataset *d);

typedef struct renyi_dataset_info {
    uint64_t n_images;   /* that will be run */
    uint64_t n_found;    /* before limit and shard */
    uint64_t n_left_out; /* found, but without a class or with one outside valid_labels */
    uint32_t n_classes;  /* labels are below this */
    uint32_t n_folders;  /* classes that have a folder; 0 = not in folders */
    renyi_class_rule rule;
    const uint32_t *valid; /* [n_valid] classes that can be predicted, ascending; NULL = all */
    uint32_t n_valid;
    int has_real_labels;
    uint64_t n_chosen;        /* after limit, before shard */
    uint32_t shard, n_shards; /* as asked for; n_shards 0 = all */
    uint64_t fingerprint;     /* of names and classes of the n_chosen photos */
    const char *collection;   /* name of the data set that it was read as; NULL = none */
    renyi_names_from names_from;
    uint32_t n_empty; /* with own_classes: classes of which no photo was found */
} renyi_dataset_info; /* pointers are borrowed until renyi_dataset_free */
RENYI_API void renyi_dataset_get_info(const renyi_dataset *d, renyi_dataset_info *info);

#define RENYI_NO_CLASS UINT32_MAX

typedef struct renyi_dataset_image {
    const char *path; /* to open */
    const char *file; /* the part of it below the dataset's folder */
    uint64_t index;   /* its place before shuffle, limit and shard */
    uint32_t label;   /* RENYI_NO_CLASS = unknown; the loss is over this one */
    uint32_t n_right;
    const uint32_t *right; /* [n_right] classes that count as right; without ReaL just label */
} renyi_dataset_image;     /* pointers are borrowed until renyi_dataset_free */
RENYI_API void renyi_dataset_get_image(const renyi_dataset *d, size_t i, renyi_dataset_image *out);

/* Name of the folder that holds the photos of a class (the first, if several do); NULL if none
 * does. Borrowed until renyi_dataset_free. */
RENYI_API const char *renyi_dataset_class_name(const renyi_dataset *d, uint32_t label);

/* With own_classes: [*count] names of the classes, as found ('_' is for who makes sentences of them
 * to replace); *count = n_classes. Else NULL and 0. Borrowed until renyi_dataset_free. */
RENYI_API const char *const *renyi_dataset_names(const renyi_dataset *d, uint32_t *count);

/* Which class of m each of n words means: an index, a WordNet id (of 1000 classes), one of the
 * model's label names. out: [n]; RENYI_NO_CLASS for a word that means none, or NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_classes_find(const renyi_model *m,
                                                      const char *const *words, uint32_t n,
                                                      uint32_t *out, renyi_error *err);

/* Place of a WordNet id ("n01440764") among the 1000 classes of ImageNet-1k, or RENYI_NO_CLASS. */
RENYI_API uint32_t renyi_imagenet_class(const char *wnid);

/* ---- evaluation ---------------------------------------------------------------------------- */

typedef struct renyi_eval renyi_eval; /* sessions, one per policy, and what they answered */

/* Several processes ("ranks") that share one evaluation or training, on one machine or many. The
 * library knows no MPI: the caller says how bytes get from everyone to everyone. */
typedef struct renyi_ranks {
    uint32_t struct_size;
    uint32_t rank, n_ranks; /* rank < n_ranks */
    uint32_t n_sharing; /* ranks that run on this one's cores, itself included; 0 = 1. What threads
                           default to is divided by it */
    void *user;         /* first argument of the functions */
    /* Begin to gather: the `size` bytes at `mine` of every rank come to `all` [n_ranks, size], rank
     * 0 first. All ranks call it equally often and with the same size; the buffers are in use until
     * `finish` says that it is done, and only then it is called again. It may do all the work at
     * once, but then the ranks run in step. */
    renyi_status (*start)(void *user, const void *mine, size_t size, void *all, renyi_error *err);
    /* *is_done = 1: what was started is complete. With wait = 1 it returns only then. */
    renyi_status (*finish)(void *user, int wait, int *is_done, renyi_error *err);
    /* `values` [n] of every rank become the sum over all ranks, for training. All ranks must get
     * the same bits, in every run: say, added in the order of the ranks. NULL = the library gathers
     * and adds, which sends n_ranks times as much. Not called between start and finish. */
    renyi_status (*sum)(void *user, float *values, size_t n, renyi_error *err);
} renyi_ranks;

/* What a policy answered for one photo. */
typedef struct renyi_eval_sample {
    const char *file;    /* borrowed from the dataset */
    uint64_t index;      /* renyi_dataset_image.index */
    uint32_t policy;     /* place in the list of policies */
    uint32_t label;      /* RENYI_NO_CLASS = unknown */
    uint32_t prediction; /* best class; equal logits: the lower index */
    uint32_t n_top;
    uint32_t top[5];           /* [n_top] best first; top[0] = prediction */
    uint32_t is_top1, is_top5; /* a right class is first, or among the top */
    double margin;             /* best logit minus second; NaN with a single class */
    double loss;               /* cross entropy at label; NaN without one */
    double ms;                 /* model time, a batch's shared evenly */
} renyi_eval_sample;

typedef struct renyi_eval_options {
    uint32_t struct_size;
    uint32_t n_policies;         /* 0 = the one policy "none" */
    const char *const *policies; /* [n_policies] policy texts; copied. No two may mean the same */
    uint32_t batch;              /* photos run together; 0 = 8 */
    uint32_t n_threads;          /* of the model; 0 = physical cores */
    uint32_t n_workers;          /* threads that decode beside the running model; 0 = the cores that
                                    n_threads leaves free. While the model has nothing to do, all
                                    cores decode */
    uint32_t apply_exif;         /* 1 = turn photos as their EXIF orientation says */
    const renyi_preprocess *preprocess; /* NULL = the model's; size must be the model's */
    const char *name;    /* of the model, for the log; copied; NULL = its architecture */
    const char *log;     /* JSONL file for every sample; NULL = none */
    uint32_t resume;     /* 1 = what the log holds already is not run again. 0: a log that is not
                            empty is an error, so that no work is lost by a forgotten option */
    renyi_limits limits; /* of photos */
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks; each may be NULL */
    void (*on_sample)(void *user, const renyi_eval_sample *sample); /* in dataset order; not for
                                                                       those from the log */
    void (*on_failure)(void *user, const char *file, const char *message); /* photo skipped */
    renyi_progress progress;  /* after every batch: photos done of all; with `user`. Non-zero stops:
                                 renyi_eval_run returns RENYI_ERR_ABORTED, results so far hold */
    const renyi_ranks *ranks; /* borrowed until renyi_eval_free; NULL = alone. See renyi_eval_run */
    const char *condition; /* what else answers depend on (the sentences of a zero-shot model): logs
                              of other conditions are not resumed from. NULL = nothing */
    renyi_tca *const *adapt; /* [n_policies] what a policy's session learns as it goes (tca.h);
                                NULL, or NULL entries: nothing. Each policy needs its own. The order
                                of photos matters then, so ranks and `resume` are refused. Must
                                outlive the evaluation */
} renyi_eval_options;

/* Borrows m and d: both must outlive the evaluation. Makes one session per policy and reads the
 * log. On success *out is owned by the caller (renyi_eval_free). */
RENYI_API RENYI_CHECK renyi_status renyi_eval_new(renyi_eval **out, const renyi_model *m,
                                                  const renyi_dataset *d,
                                                  const renyi_eval_options *opt, renyi_error *err);
RENYI_API void renyi_eval_free(renyi_eval *e);

/* Run what is not done yet. A photo that cannot be read is reported, counted and skipped.
 *
 * With ranks, all of them call it with the same model, data, policies and log name. Each runs its
 * share of the photos that no rank has an answer for, and in the end every rank has all answers,
 * failures and times: the same totals as one process. on_sample and on_failure tell of a rank's own
 * photos, progress of everyone's. When one rank fails or is stopped, the others stop after their
 * batch and all return an error. The log: rank 0 writes FILE, rank r FILE.rank<r> as it goes; in
 * the end rank 0 brings everything into FILE and the others are removed. `resume` reads FILE and
 * every FILE.rank<r>, with any number of ranks and alone. */
RENYI_API RENYI_CHECK renyi_status renyi_eval_run(renyi_eval *e, renyi_error *err);

typedef struct renyi_interval {
    double low, high;
} renyi_interval;

/* Totals of one policy; any time, also from a callback. */
typedef struct renyi_eval_result {
    const char *policy; /* in full; borrowed until renyi_eval_free */
    uint64_t images;    /* answered */
    uint64_t failed;    /* unreadable photos, and answers that are not numbers */
    uint64_t n_top1, n_top5;
    double top1, top5;                     /* per cent; NaN without images */
    renyi_interval top1_range, top5_range; /* 95 % intervals, per cent */
    double loss;                           /* mean; NaN without labels */
    double gmacs;                          /* nominal, per photo, 1e9 multiply-accumulates */
    double gmacs_executed;                 /* what the session really did */
    double ms_model;                       /* per photo, mean over all batches but the first */
    double ms_total; /* the same and all that is not the model: what the run took, per photo */
    double images_per_second; /* ranks x 1000 / ms_total */
} renyi_eval_result;

RENYI_API uint32_t renyi_eval_policy_count(const renyi_eval *e);
RENYI_API void renyi_eval_get_result(const renyi_eval *e, uint32_t policy, renyi_eval_result *out);

/* The photos of one class under one policy. */
typedef struct renyi_eval_class {
    uint64_t images, n_top1, n_top5;
    double top1, top5;         /* per cent; NaN without images */
    renyi_interval top1_range; /* 95 % interval, per cent */
} renyi_eval_class;
/* classes: [n_classes]; photos without a class, or with one beyond, are left out. *mean (may be
 * NULL): of top1 over the classes that have images, per cent: every class counts the same, however
 * many photos it has; NaN without any. */
RENYI_API void renyi_eval_get_classes(const renyi_eval *e, uint32_t policy,
                                      renyi_eval_class *classes, uint32_t n_classes, double *mean);

/* Two policies on the photos that both answered. */
typedef struct renyi_eval_pair {
    uint64_t both, only_a, only_b, none; /* right at top 1 */
    uint64_t same;                       /* predictions that are equal */
    double difference;                   /* accuracy of b minus that of a, in points */
    double p_value;                      /* McNemar's exact test, two-sided */
    int is_noise;                        /* p_value >= 0.05: not told apart by these photos */
} renyi_eval_pair;
RENYI_API void renyi_eval_get_pair(const renyi_eval *e, uint32_t a, uint32_t b,
                                   renyi_eval_pair *out);

/* Sample of policy p for photo i of the dataset; returns 0 if there is none (yet). */
RENYI_API int renyi_eval_get_sample(const renyi_eval *e, uint32_t policy, size_t i,
                                    renyi_eval_sample *out);

/* Photos that could not be used. */
typedef struct renyi_eval_failure {
    const char *file, *message; /* borrowed until renyi_eval_free */
} renyi_eval_failure;
RENYI_API size_t renyi_eval_failure_count(const renyi_eval *e);
RENYI_API void renyi_eval_get_failure(const renyi_eval *e, size_t i, renyi_eval_failure *out);

/* How the time of renyi_eval_run went. */
typedef struct renyi_eval_times {
    uint64_t images;       /* read and run now, by all ranks */
    uint64_t resumed;      /* taken from the log */
    double seconds;        /* wall clock; of the slowest rank */
    double seconds_model;  /* of it in the model, all policies; sum of all ranks */
    double seconds_decode; /* work of the decoding threads, in sum */
    uint32_t n_ranks;      /* 1 = alone */
} renyi_eval_times;
RENYI_API void renyi_eval_get_times(const renyi_eval *e, renyi_eval_times *out);

/* ---- merging ------------------------------------------------------------------------------- */

typedef struct renyi_merge_options {
    uint32_t struct_size;
    const char *run;      /* take only lines of this run; NULL = there may be only one */
    uint64_t max_samples; /* of all logs; 0 = 67,108,864 */
    renyi_allocator allocator;
} renyi_merge_options;

/* Results of one evaluation whose photos were run in parts (renyi_dataset_options.shard), from the
 * logs of the parts alone. The evaluation cannot be run; it answers everything else as one that ran
 * over all photos: the same totals, pairs, samples and failures in the same order. Times per photo
 * are means over the logs. A sample that is there twice and says the same counts once; lines that
 * contradict each other, or belong to another run, model, dataset or version, are RENYI_ERR_FORMAT
 * and the message names files and lines. Photos may be missing: see below. */
RENYI_API RENYI_CHECK renyi_status renyi_eval_merge(renyi_eval **out, const char *const *logs,
                                                    size_t n_logs, const renyi_merge_options *opt,
                                                    renyi_error *err);

typedef struct renyi_merge_info {
    const char *model, *run; /* of the logs; borrowed until renyi_eval_free */
    uint32_t image_size;
    uint32_t n_classes;  /* that can be predicted */
    uint32_t n_shards;   /* that the logs speak of; 0 = of none, or of different numbers */
    uint64_t n_photos;   /* of the whole run */
    uint64_t n_missing;  /* of them: some policy neither answered nor failed */
    uint64_t n_repeated; /* samples that were there more than once */
} renyi_merge_info;
/* Of an evaluation that renyi_eval_merge made; others give zeros. */
RENYI_API void renyi_eval_get_merge_info(const renyi_eval *e, renyi_merge_info *out);

/* The first missing photo at or after place `from` in the order of the whole run; returns 0 if
 * there is none. Shard i of n holds places i, i + n, i + 2n, ... */
RENYI_API int renyi_eval_next_missing(const renyi_eval *e, uint64_t from, uint64_t *place);

/* Write a merged evaluation as a log of its own, which can be resumed and merged. The file must be
 * absent or empty. */
RENYI_API RENYI_CHECK renyi_status renyi_eval_write_log(const renyi_eval *e, const char *path,
                                                        renyi_error *err);

/* ---- statistics ---------------------------------------------------------------------------- */

/* Wilson's 95 % interval of a share: k of n. Shares in [0, 1]; n = 0 gives [0, 1]. k <= n. */
RENYI_API renyi_interval renyi_stats_interval(uint64_t k, uint64_t n);

/* McNemar's exact two-sided p-value: how likely a split of b + c discordant pairs at least as
 * uneven is when both sides are equally likely. Exact for any counts; 1 when b = c. */
RENYI_API double renyi_stats_mcnemar(uint64_t b, uint64_t c);

/* 95 % interval of the difference of two shares of the same n photos: those of which only a is
 * right minus those of which only b is. Agresti and Min's (2005): Wald's, half a photo added to
 * each of the four cells. In [-1, 1] and never empty; n = 0 gives [-1, 1]. only_a + only_b <= n. */
RENYI_API renyi_interval renyi_stats_difference(uint64_t only_a, uint64_t only_b, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
