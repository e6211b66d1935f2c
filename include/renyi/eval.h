/* eval.h - measures what pruning policies cost and gain on a dataset: accuracy, MACs and time.
 *
 * Call order: renyi_model_open -> renyi_dataset_open -> renyi_eval_new -> renyi_eval_run ->
 * renyi_eval_get_result, renyi_eval_get_pair, ... -> free in reverse order.
 *
 * Threads   An evaluation is used by one thread at a time. Callbacks are called from the thread
 *           that called renyi_eval_run. Images are also decoded on the evaluation's own threads.
 * Memory    Image decoders use the C heap; everything else uses the allocator of the options.
 * Results   Results depend only on the model, the data and the policies: not on threads, batch size
 *           or resuming. Times may differ.
 *
 * The rules of renyi.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_EVAL_H
#define RENYI_EVAL_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- datasets -------------------------------------------------------------------------------- */

/* A dataset is a list of image files with their classes. Call order: renyi_dataset_open ->
 * renyi_dataset_get_info, renyi_dataset_get_image -> renyi_dataset_free. Opening reads names and
 * labels; no image is read. A dataset is immutable and may be shared by threads. */

typedef struct renyi_dataset renyi_dataset; /* image files and their classes */

/* How the class of an image was found. */
typedef enum renyi_class_rule {
    RENYI_CLASS_UNKNOWN = 0,  /* no class known; ReaL labels may still give one */
    RENYI_CLASS_BY_INDEX = 1, /* "006" is class 6 */
    RENYI_CLASS_BY_WNID = 2,  /* WordNet id: "n01440764" is class 0 of ImageNet-1k */
    RENYI_CLASS_BY_NAME = 3,  /* label names of the model */
    RENYI_CLASS_BY_MAP = 4,   /* class map file */
    RENYI_CLASS_BY_ORDER = 5, /* the i-th folder in byte order is class i (ImageFolder) */
    RENYI_CLASS_BY_DATA = 6   /* the dataset's own list (own_classes) */
} renyi_class_rule;

/* How to read a dataset. Paths are borrowed for the call. */
typedef struct renyi_dataset_options {
    uint32_t struct_size;
    uint32_t n_classes;       /* 0 = that of the model, or 1000 without a model */
    const char *ground_truth; /* file with the classes of a flat folder: one per line in the order
                                 of the file names, or "name class" lines; NULL = folders are
                                 classes */
    const char *class_map;    /* file with one class name per line (line 0 = class 0), "name index"
                                 lines, or a JSON object {"name": index} or {"index": name}. NULL:
                                 none */
    const char *real_labels;  /* JSON file of ImageNet-ReaL: a list of classes per validation image.
                                 Any of them counts as correct; images with an empty list are left
                                 out */
    const char *valid_labels; /* file with one class per line: only these can be predicted
                                 (ImageNet-A, -R) */
    uint64_t limit;           /* at most this many images, after shuffling; 0 = all */
    uint32_t shuffle;         /* 1 = shuffle with `seed` */
    uint32_t shard, n_shards; /* images shard, shard + n_shards, ...; n_shards 0 = all */
    uint64_t seed;
    uint64_t max_images;     /* more images are an error; 0 = 16,777,216 */
    uint64_t max_list_bytes; /* size of a list, label or map file; 0 = 1 GiB */
    renyi_allocator allocator;
    uint32_t unlabelled; /* 1 = classes are ignored: takes every image in a folder and its
                            subfolders, or every line of a list; no label files allowed */
    /* Zero-shot: the dataset defines the classes. `m` may be NULL; otherwise it must have the same
     * number of classes. Not allowed together with label files or n_classes. */
    uint32_t own_classes; /* 1 = every folder is a class, in byte order, with the folder's name.
                             WordNet ids get ImageNet's names. See renyi_dataset_names */
    /* Name of a known dataset (see below). `path` is its folder, its image folder, its split file,
     * or the folder above. "auto" = recognize it by split file or folder name, else any folder.
     * Implies own_classes. */
    const char *collection;
    const char *class_names; /* file with the class names: one per line, or "n01440764 tench" lines.
                                Folders and lists may use these names. For ImageNet's classes also
                                "clip" (renyi_imagenet_clip_name) or "wordnet" (the first of
                                renyi_imagenet_name). Implies own_classes */
    uint32_t top_only;       /* 1 = with unlabelled: not the subfolders of a folder */
    void *user;              /* first argument of the callbacks; each may be NULL */
    /* Of folders: called for each subfolder that cannot be read, and for each image that is not a
     * regular file (a pipe, a broken link); they are left out. NULL = such a subfolder is an error,
     * and such an image is listed: it fails when it is read. */
    void (*on_failure)(void *user, const char *path, const char *reason);
    /* A message for the user, one line: how many GIF, BMP, TIFF, AVIF and HEIC files a folder has;
     * they are not read. */
    void (*on_note)(void *user, const char *text);
} renyi_dataset_options;

/* Where the class names come from if own_classes is set. */
typedef enum renyi_names_from {
    RENYI_NAMES_NONE = 0,       /* own_classes is not set: the model's classes */
    RENYI_NAMES_FOLDERS = 1,    /* folder names */
    RENYI_NAMES_LIST = 2,       /* class_names file */
    RENYI_NAMES_DATA = 3,       /* the dataset's own list: its split file or list of variants */
    RENYI_NAMES_CLASSNAMES = 4, /* classnames.txt beside the images ("n01440764 tench"); CoOp's file
                                   has the names that CLIP was tested with */
    RENYI_NAMES_IMAGENET = 5,   /* the first of ImageNet's names for the class */
    RENYI_NAMES_CLIP = 6 /* the names that CLIP was published with for ImageNet's classes; the
                            default without class_names and classnames.txt */
} renyi_names_from;

/* Opens a dataset. `path` is one of
 *   folder of folders  DIR/class/...jpg; if DIR has train and val folders, DIR/val is used
 *   folder             images, with ground_truth or real_labels
 *   list               .csv (file,label; a header names the columns), .jsonl ({"file", "label"})
 *                      or .txt ("name class" lines), names relative to the list's folder. With
 *                      own_classes also .json: a split file of CoOp, whose test part is used
 * In folders, images are files ending in .jpg .jpeg .png .webp .ppm .pgm .pnm in any case; a list
 * may name any file. m: gives the number of classes and their names; may be NULL. Errors name file
 * and line. On success the dataset has at least one image. On success *out is owned by the caller
 * (renyi_dataset_free). */
RENYI_API RENYI_CHECK renyi_status renyi_dataset_open(renyi_dataset **out, const char *path,
                                                      const renyi_model *m,
                                                      const renyi_dataset_options *opt,
                                                      renyi_error *err);
RENYI_API void renyi_dataset_free(renyi_dataset *d);

typedef struct renyi_dataset_info {
    uint64_t n_images;   /* images to run */
    uint64_t n_found;    /* images found, before limit and shard */
    uint64_t n_left_out; /* images found but without a class, or with one that is not in
                            valid_labels */
    uint32_t n_classes;  /* every label is below this */
    uint32_t n_folders;  /* classes that have a folder; 0 = not stored in folders */
    renyi_class_rule rule;
    const uint32_t *valid; /* [n_valid] classes that can be predicted, ascending; NULL = all */
    uint32_t n_valid;
    int has_real_labels;
    uint64_t n_chosen;        /* images after limit, before shard */
    uint32_t shard, n_shards; /* as in the options; n_shards 0 = all */
    uint64_t fingerprint;     /* hash of names and classes of the n_chosen images */
    const char *collection;   /* name of the known dataset it was read as; NULL = none */
    renyi_names_from names_from;
    uint32_t n_empty; /* with own_classes: classes without an image */
    uint32_t n_seen;  /* different classes of the n_images images */
} renyi_dataset_info; /* pointers are borrowed until renyi_dataset_free */
RENYI_API void renyi_dataset_get_info(const renyi_dataset *d, renyi_dataset_info *info);

#define RENYI_NO_CLASS UINT32_MAX

typedef struct renyi_dataset_image {
    const char *path; /* path to open */
    const char *file; /* its part below the dataset's folder */
    uint64_t index;   /* position before shuffle, limit and shard */
    uint32_t label;   /* RENYI_NO_CLASS = unknown; the loss uses this class */
    uint32_t n_right;
    const uint32_t *right; /* [n_right] classes that count as correct; without ReaL labels only
                              `label` */
} renyi_dataset_image;     /* pointers are borrowed until renyi_dataset_free */
RENYI_API void renyi_dataset_get_image(const renyi_dataset *d, size_t i, renyi_dataset_image *out);

/* Name of the folder with the images of a class (the first, if there are several), or NULL.
 * Borrowed until renyi_dataset_free. */
RENYI_API const char *renyi_dataset_class_name(const renyi_dataset *d, uint32_t label);

/* With own_classes: the class names [*count] as found, *count = n_classes; '_' is not replaced.
 * Otherwise NULL and 0. Borrowed until renyi_dataset_free. */
RENYI_API const char *const *renyi_dataset_names(const renyi_dataset *d, uint32_t *count);

/* Finds the classes of m that n class names mean. A name is an index, a WordNet id (models with
 * 1000 classes) or a label of the model. out: [n]; RENYI_NO_CLASS for a name that is NULL or
 * unknown. */
RENYI_API RENYI_CHECK renyi_status renyi_classes_find(const renyi_model *m,
                                                      const char *const *words, uint32_t n,
                                                      uint32_t *out, renyi_error *err);

/* Class index of a WordNet id ("n01440764") in ImageNet-1k, or RENYI_NO_CLASS. */
RENYI_API uint32_t renyi_imagenet_class(const char *wnid);

/* ---- evaluation ------------------------------------------------------------------------------ */

/* An evaluation runs several policies over the same images and adds up the results. Call order:
 * renyi_eval_new -> renyi_eval_run -> renyi_eval_get_* -> renyi_eval_free. A log makes it possible
 * to resume an interrupted run. */

typedef struct renyi_eval renyi_eval; /* one session per policy, and results */

/* Result of one policy for one image. */
typedef struct renyi_eval_sample {
    const char *file;    /* borrowed until the dataset or the evaluation is freed */
    uint64_t index;      /* renyi_dataset_image.index */
    uint32_t policy;     /* index into the list of policies */
    uint32_t label;      /* RENYI_NO_CLASS = unknown */
    uint32_t prediction; /* class with the largest logit; ties: the lower index */
    uint32_t n_top;
    uint32_t top[5];           /* [n_top] best first; top[0] = prediction */
    uint32_t is_top1, is_top5; /* a correct class is first; is in `top` */
    double margin;             /* largest logit minus the second; NaN with a single class */
    double loss;               /* cross entropy at `label`; NaN without a label */
    double ms;                 /* model time; the time of a batch is divided evenly */
} renyi_eval_sample;

typedef struct renyi_eval_options {
    uint32_t struct_size;
    uint32_t n_policies;         /* 0 = only the policy "none" */
    const char *const *policies; /* [n_policies] policy texts, all different for a model; copied */
    uint32_t batch;              /* images per run; 0 = 8 */
    uint32_t n_threads;          /* threads of the model; 0 = as in renyi_session_options */
    uint32_t n_workers;          /* threads that decode while the model runs; 0 = the cores that
                                    n_threads leaves free. While the model is idle, all cores
                                    decode */
    uint32_t apply_exif;         /* 1 = apply the EXIF orientation */
    const renyi_preprocess *preprocess; /* NULL = the model's; size must be the model's */
    const char *name;    /* model name for the log; copied; NULL = its architecture */
    const char *log;     /* JSONL file with a line per sample; NULL = none */
    uint32_t resume;     /* 1 = results in the log are not computed again. 0 = a log that is not
                            empty is an error, so that no work is overwritten */
    renyi_limits limits; /* limits for images */
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks; each may be NULL */
    /* Called in dataset order; not for samples from the log. */
    void (*on_sample)(void *user, const renyi_eval_sample *sample);
    /* Called for each image that is skipped. */
    void (*on_failure)(void *user, const char *file, const char *message);
    renyi_progress progress;  /* called after every batch with `user`: images done, all images.
                                 Non-zero stops: renyi_eval_run returns RENYI_ERR_ABORTED; the
                                 results so far remain */
    const renyi_ranks *ranks; /* several processes, see renyi_eval_run; NULL = one. Borrowed until
                                 renyi_eval_free */
    const char *condition; /* what else the results depend on, such as templates: a log with another
                              condition is not resumed. NULL: nothing */
    renyi_tca *const *adapt; /* [n_policies] TCA state per policy (clip.h), each entry different or
                                NULL; NULL = none. Results then depend on the image order, so ranks
                                and `resume` are errors. Borrowed until renyi_eval_free */
    const renyi_model *const *models; /* [n_policies] the model of each policy, such as the same one
                                         in another dtype, with the classes and image size of m;
                                         NULL = m for all. Borrowed until renyi_eval_free */
    renyi_decode_mode decode;         /* how image files are decoded */
    uint32_t n_streams; /* batches run at the same time (renyi_session_options); 0 = 1 */
} renyi_eval_options;

/* Creates one session per policy and reads the log. Borrows m and d until renyi_eval_free. On
 * success *out is owned by the caller (renyi_eval_free). */
RENYI_API RENYI_CHECK renyi_status renyi_eval_new(renyi_eval **out, const renyi_model *m,
                                                  const renyi_dataset *d,
                                                  const renyi_eval_options *opt, renyi_error *err);
RENYI_API void renyi_eval_free(renyi_eval *e);

/* Runs everything that is not done yet. An image that cannot be read is reported, counted and
 * skipped.
 *
 * With ranks, all ranks call it with the same model, data, policies and log name. Each rank runs a
 * share of the images that have no result yet; at the end every rank has all results, failures and
 * times, with the same totals as one process. on_sample and on_failure report the rank's own
 * images, progress reports all. If one rank fails or is stopped, the others stop after their
 * current batch and all return an error. Rank 0 writes the log FILE, rank r writes FILE.rank<r>; at
 * the end rank 0 merges everything into FILE and the other files are removed. `resume` reads FILE
 * and every FILE.rank<r>, with any number of ranks. */
RENYI_API RENYI_CHECK renyi_status renyi_eval_run(renyi_eval *e, renyi_error *err);

typedef struct renyi_interval {
    double low, high;
} renyi_interval;

/* Totals of one policy. May be read at any time, also from a callback. */
typedef struct renyi_eval_result {
    const char *policy; /* with all defaults; borrowed until renyi_eval_free */
    uint64_t images;    /* images with a result */
    uint64_t failed;    /* unreadable images, and results that are not finite */
    uint64_t n_top1, n_top5;
    double top1, top5;                     /* percent; NaN without images */
    renyi_interval top1_range, top5_range; /* 95 % intervals, percent */
    double loss;                           /* mean; NaN without labels */
    double gmacs;                          /* nominal cost per image, 1e9 multiply-accumulates */
    double gmacs_executed;                 /* cost that the session really had, same unit */
    double ms_model;                       /* per image, mean over all batches but the first */
    double ms_total;          /* per image: model time and everything else of the run */
    double images_per_second; /* ranks x 1000 / ms_total */
    renyi_dtype dtype;        /* of its model; RENYI_DTYPE_DEFAULT if logs do not tell */
    uint32_t is_cascade;      /* 1 = GMACs are means over the images */
    double second_share;      /* of the images that needed the second pass of a cascade, 0 to 1; NaN
                                 without images, 0 = not a cascade */
} renyi_eval_result;

RENYI_API uint32_t renyi_eval_policy_count(const renyi_eval *e);
RENYI_API void renyi_eval_get_result(const renyi_eval *e, uint32_t policy, renyi_eval_result *out);

/* Totals of one class under one policy. */
typedef struct renyi_eval_class {
    uint64_t images, n_top1, n_top5;
    double top1, top5;         /* percent; NaN without images */
    renyi_interval top1_range; /* 95 % interval, percent */
} renyi_eval_class;
/* classes: [n_classes]. Images without a class, or with a class >= n_classes, are left out. *mean
 * (may be NULL) is the mean of top1 over the classes that have images, in percent, each class with
 * the same weight; NaN if there are none. */
RENYI_API void renyi_eval_get_classes(const renyi_eval *e, uint32_t policy,
                                      renyi_eval_class *classes, uint32_t n_classes, double *mean);

/* Two policies compared on the images for which both have a result. */
typedef struct renyi_eval_pair {
    uint64_t both, only_a, only_b, none; /* images that both, only one or none of them classifies
                                            correctly (top 1) */
    uint64_t same;                       /* equal predictions */
    double difference;                   /* accuracy of b minus accuracy of a, percentage points */
    double p_value;                      /* McNemar's exact test, two-sided */
    int is_noise;                        /* p_value >= 0.05: these images cannot separate the two */
} renyi_eval_pair;
RENYI_API void renyi_eval_get_pair(const renyi_eval *e, uint32_t a, uint32_t b,
                                   renyi_eval_pair *out);

/* Sample of policy p for image i of the dataset. Returns 0 if there is none (yet). */
RENYI_API int renyi_eval_get_sample(const renyi_eval *e, uint32_t policy, size_t i,
                                    renyi_eval_sample *out);

/* Images that could not be used. */
typedef struct renyi_eval_failure {
    const char *file, *message; /* borrowed until renyi_eval_free */
} renyi_eval_failure;
RENYI_API size_t renyi_eval_failure_count(const renyi_eval *e);
RENYI_API void renyi_eval_get_failure(const renyi_eval *e, size_t i, renyi_eval_failure *out);

/* Time spent in renyi_eval_run. */
typedef struct renyi_eval_times {
    uint64_t images;           /* images run in this call, by all ranks */
    uint64_t resumed;          /* images whose results came from the log */
    double seconds;            /* wall clock, of the slowest rank */
    double seconds_model;      /* in the model, all policies, summed over the ranks */
    double seconds_decode;     /* in the decoding threads, summed */
    uint32_t n_ranks;          /* 1 = one process */
    uint32_t n_threads, batch; /* as used, defaults filled in; 0 if it was made from logs */
} renyi_eval_times;
RENYI_API void renyi_eval_get_times(const renyi_eval *e, renyi_eval_times *out);

/* ---- merging logs of shards ------------------------------------------------------------------ */

/* Images may be run in parts (renyi_dataset_options.shard), for example on several machines. Call
 * order: renyi_eval_merge -> renyi_eval_get_merge_info, all functions of a finished evaluation ->
 * renyi_eval_free. */

typedef struct renyi_merge_options {
    uint32_t struct_size;
    const char *run;      /* use only lines of this run; NULL = the logs have only one */
    uint64_t max_samples; /* samples in all logs; 0 = 67,108,864 */
    renyi_allocator allocator;
} renyi_merge_options;

/* Makes an evaluation from the logs of its parts. It cannot be run; otherwise it has the same
 * totals, pairs, samples and failures, in the same order, as one run over all images. Times per
 * image are means over the logs. Equal duplicates of a sample count once. Contradicting lines and
 * lines of another run, model, dataset or version are RENYI_ERR_FORMAT; the message names files and
 * lines. Images may be missing, see renyi_eval_next_missing. On success *out is owned by the caller
 * (renyi_eval_free). */
RENYI_API RENYI_CHECK renyi_status renyi_eval_merge(renyi_eval **out, const char *const *logs,
                                                    size_t n_logs, const renyi_merge_options *opt,
                                                    renyi_error *err);

typedef struct renyi_merge_info {
    const char *model, *run; /* from the logs; borrowed until renyi_eval_free */
    uint32_t image_size;
    uint32_t n_classes;  /* classes that can be predicted */
    uint32_t n_shards;   /* number of shards according to the logs; 0 = none or contradicting
                            numbers */
    uint64_t n_photos;   /* images of the whole run */
    uint64_t n_missing;  /* images for which some policy has neither result nor failure */
    uint64_t n_repeated; /* samples that occurred more than once */
} renyi_merge_info;
/* Zeros if `e` was not made by renyi_eval_merge. */
RENYI_API void renyi_eval_get_merge_info(const renyi_eval *e, renyi_merge_info *out);

/* Finds the first missing image at or after position `from` in the order of the whole run. Returns
 * 0 if there is none. Shard i of n has positions i, i + n, i + 2n, ... */
RENYI_API int renyi_eval_next_missing(const renyi_eval *e, uint64_t from, uint64_t *place);

/* Writes a merged evaluation as one log, which can be resumed and merged. The file must be absent
 * or empty. */
RENYI_API RENYI_CHECK renyi_status renyi_eval_write_log(const renyi_eval *e, const char *path,
                                                        renyi_error *err);

/* ---- statistics ------------------------------------------------------------------------------ */

/* Plain functions of counts; nothing needs to be opened. */

/* Wilson's 95 % interval of the ratio k / n, in [0, 1]. n = 0 gives [0, 1]. Requires k <= n. */
RENYI_API renyi_interval renyi_stats_interval(uint64_t k, uint64_t n);

/* McNemar's exact two-sided p-value: the probability of a split of b + c discordant pairs at least
 * this uneven if both sides are equally likely. Exact for all counts; 1 if b = c. */
RENYI_API double renyi_stats_mcnemar(uint64_t b, uint64_t c);

/* 95 % interval of the difference of two ratios on the same n images: (only_a - only_b) / n, where
 * only_a images are correct only under a. Method of Agresti and Min (2005): Wald's interval with
 * half an image added to each of the four cells. In [-1, 1], never empty; n = 0 gives [-1, 1].
 * Requires only_a + only_b <= n. */
RENYI_API renyi_interval renyi_stats_difference(uint64_t only_a, uint64_t only_b, uint64_t n);

/* ---- known datasets -------------------------------------------------------------------------- */

/* Fifteen datasets are known by name: where their images are, the names of their classes, the
 * templates that make sentences of class names, and the settings of TCA. They are those that CLIP
 * and TCA are tested on: ImageNet, -A, -R, -Sketch and -V2, Caltech101, Pets, Cars, Flowers,
 * Food101, Aircraft, SUN397, DTD, EuroSAT, UCF101. Call order for zero-shot classification, also of
 * any folder of folders:
 *   renyi_dataset_open with collection or own_classes -> renyi_dataset_names, renyi_templates_open
 *   -> renyi_classifier_new (clip.h) -> renyi_model_zeroshot -> renyi_eval_new */

/* How images and classes are stored. */
typedef enum renyi_layout {
    RENYI_LAYOUT_IMAGENET = 0, /* one folder per class, named by WordNet id or class index */
    RENYI_LAYOUT_SPLIT = 1,    /* JSON of CoOp: {"train", "val", "test": [[image, class,
                                  name]...]} */
    RENYI_LAYOUT_VARIANTS = 2  /* lists of variants of FGVC-Aircraft */
} renyi_layout;

#define RENYI_COLLECTION_TEXT 96 /* size of a text in renyi_collection, NUL included */

typedef struct renyi_collection {
    char name[RENYI_COLLECTION_TEXT];    /* "pets" */
    char title[RENYI_COLLECTION_TEXT];   /* "Oxford Pets" */
    char aliases[RENYI_COLLECTION_TEXT]; /* other names, separated by blanks */
    renyi_layout layout;
    uint32_t n_classes;                    /* of the whole dataset */
    uint32_t is_subset;                    /* 1 = part of ImageNet's 1000 classes: those with a
                                              folder */
    char folder[RENYI_COLLECTION_TEXT];    /* folder name in CoOp: "oxford_pets" */
    char photos[RENYI_COLLECTION_TEXT];    /* folders in it that may have the images, first choice
                                              first, separated by blanks; "." = the folder itself */
    char list[RENYI_COLLECTION_TEXT];      /* name of the split file; "" = none */
    char templates[RENYI_COLLECTION_TEXT]; /* argument for renyi_templates_open */
    /* Settings of TCA: items per class in the reservoir, scale of the layer weights, lambda and
     * beta of the logit correction. */
    uint32_t tca_size;
    double tca_scale, tca_lambda, tca_beta;
} renyi_collection;

RENYI_API size_t renyi_collection_count(void);
RENYI_API void renyi_collection_get(size_t i, renyi_collection *out);
/* Finds a dataset by name, title, alias or CoOp's folder name; case, '-', '_' and blanks are
 * ignored. RENYI_ERR_ARG: unknown; the message lists the most similar name or all names. */
RENYI_API RENYI_CHECK renyi_status renyi_collection_find(const char *word, renyi_collection *out,
                                                         renyi_error *err);

/* Names of ImageNet class i, synonyms separated by ", "; NULL for i >= 1000. Static string. */
RENYI_API const char *renyi_imagenet_name(uint32_t i);
/* The one name that OpenAI's CLIP was evaluated with; NULL for i >= 1000. Static string. */
RENYI_API const char *renyi_imagenet_clip_name(uint32_t i);

/* ---- templates ------------------------------------------------------------------------------- */

/* Templates are sentences with "{}" in place of a class name. Call order: renyi_templates_open ->
 * renyi_templates_texts -> renyi_templates_free. The texts go to renyi_classifier_options
 * (clip.h). */

/* A list of templates; immutable. */
typedef struct renyi_templates renyi_templates;

/* `word` is the name of a built-in list ("imagenet80", "simple", the name of a known dataset), a
 * sentence with "{}", or a file with one sentence per line; empty lines and lines that begin with
 * '#' are skipped. Each sentence has exactly one "{}". Limits of a file: 1 MiB, 1000 sentences,
 * 1024 bytes per line. Only the allocator of `opt` is used. On success *out is owned by the caller
 * (renyi_templates_free). */
RENYI_API RENYI_CHECK renyi_status renyi_templates_open(renyi_templates **out, const char *word,
                                                        const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_templates_free(renyi_templates *t);

/* The sentences [*count], at least one. Borrowed until renyi_templates_free. */
RENYI_API const char *const *renyi_templates_texts(const renyi_templates *t, uint32_t *count);
/* `word` as it was given. Borrowed until renyi_templates_free. */
RENYI_API const char *renyi_templates_name(const renyi_templates *t);

/* Names of the built-in lists. Static strings. */
RENYI_API size_t renyi_templates_builtin_count(void);
RENYI_API const char *renyi_templates_builtin_name(size_t i);

/* ---- object masks ---------------------------------------------------------------------------- */

/* Measures how well metrics rank the patches of an object above the background, and what policies
 * do to them. Call order: renyi_model_open -> renyi_dataset_open with unlabelled = 1 ->
 * renyi_masks_new -> renyi_masks_run -> renyi_masks_get_* -> free in reverse order.
 *
 * A mask is resized and cropped like its image, exactly and by area, without interpolation. For
 * each patch the areas of object, background and neither (border of a trimap, padding) are
 * measured. A patch is left out if object and background together cover less than half of it.
 * Otherwise it belongs to the object if at least half of that area is object, else to the
 * background. Images that lack one of the two kinds are counted separately and are in no mean; all
 * other images have the same weight. Threads, memory and results are as described at the top of
 * this file. */

typedef struct renyi_masks renyi_masks;

/* What the values of a mask mean. */
typedef enum renyi_mask_kind {
    RENYI_MASK_AUTO = 0,   /* decided per file: only 1, 2, 3 = trimap; 0 and at most one other value
                              = binary; else an error */
    RENYI_MASK_TRIMAP = 1, /* Oxford Pets: 1 object, 2 background, 3 border; others are an error */
    RENYI_MASK_BINARY = 2  /* 0 background, all other values object */
} renyi_mask_kind;

/* Strings and arrays are borrowed for the call. */
typedef struct renyi_masks_options {
    uint32_t struct_size;
    const char *folder; /* folder of the masks: for image a/b.jpg the PNG a/b.png, else b.png; gray
                           or with a palette, of the same size as the image */
    renyi_mask_kind kind;
    uint32_t border_is_object;   /* 1 = a trimap's border counts as object; 0 = as neither */
    double keep;                 /* keep rate for counting kept patches; 0 = 0.7 */
    uint32_t n_metrics;          /* 0 = renyi_masks_default_metrics */
    const char *const *metrics;  /* [n_metrics] as after metric= in a policy: "col n=4" */
    uint32_t n_policies;         /* 0 = none */
    const char *const *policies; /* [n_policies] policies to follow cut by cut */
    uint32_t batch;              /* images per run; 0 = 8 */
    uint32_t n_threads;          /* 0 = as in renyi_session_options */
    uint32_t apply_exif;         /* 1 = apply the EXIF orientation, to image and mask separately */
    const renyi_preprocess *preprocess; /* NULL = the model's; size must be the model's */
    renyi_limits limits;                /* limits for images and masks */
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks; each may be NULL */
    /* Called for each image that is skipped. */
    void (*on_failure)(void *user, const char *file, const char *message);
    renyi_progress progress; /* called after every batch with `user`: images done, all images.
                                Non-zero stops: renyi_masks_run returns RENYI_ERR_ABORTED; the
                                results so far remain */
} renyi_masks_options;

/* Default metrics [*count] for a model with or without a class token. Static strings. */
RENYI_API const char *const *renyi_masks_default_metrics(int has_class_token, uint32_t *count);

/* Borrows m and d until renyi_masks_free. On success *out is owned by the caller
 * (renyi_masks_free). */
RENYI_API RENYI_CHECK renyi_status renyi_masks_new(renyi_masks **out, const renyi_model *m,
                                                   const renyi_dataset *d,
                                                   const renyi_masks_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_masks_free(renyi_masks *s);

/* Runs all images; one pass without pruning gives all metrics. An image without a mask, or whose
 * mask cannot be read or has another size, is reported, counted and skipped. A second call starts
 * over. */
RENYI_API RENYI_CHECK renyi_status renyi_masks_run(renyi_masks *s, renyi_error *err);

typedef struct renyi_masks_info {
    uint64_t images;             /* images that the means are taken over */
    uint64_t one_sided;          /* images without an object patch or without a background patch */
    uint64_t failed;             /* images skipped, see renyi_masks_get_failure */
    uint64_t n_trimap, n_binary; /* masks read of each kind */
    uint32_t n_blocks, n_metrics, n_policies, n_patches;
    uint32_t n_kept; /* patches kept at rate `keep` */
    double keep;
    double object, background, left_out; /* patches per image, mean */
    double seconds;                      /* duration of renyi_masks_run */
} renyi_masks_info;
RENYI_API void renyi_masks_get_info(const renyi_masks *s, renyi_masks_info *out);

/* Name of a metric (parameters that are not defaults included), and a policy with all defaults.
 * Borrowed until renyi_masks_free. */
RENYI_API const char *renyi_masks_metric(const renyi_masks *s, uint32_t metric);
RENYI_API const char *renyi_masks_policy(const renyi_masks *s, uint32_t policy);

/* A mean over images with its 95 % interval (Student's t). NaN without images. */
typedef struct renyi_estimate {
    double mean;
    renyi_interval range;
} renyi_estimate;

/* A metric at one block of the model without pruning. */
typedef struct renyi_masks_ranking {
    renyi_estimate auc; /* area under the ROC curve: how often a patch of the object ranks above one
                           of the background; ties count half */
    renyi_estimate kept_object, kept_background; /* share of each that is kept at rate `keep` */
} renyi_masks_ranking;
RENYI_API void renyi_masks_get_ranking(const renyi_masks *s, uint32_t metric, uint32_t block,
                                       renyi_masks_ranking *out);

/* AUC of metric b minus AUC of metric a, paired by image. */
RENYI_API void renyi_masks_get_difference(const renyi_masks *s, uint32_t a, uint32_t b,
                                          uint32_t block, renyi_estimate *out);

/* What happened to patches. The four shares sum to 1. */
typedef struct renyi_masks_fates {
    renyi_estimate alone;  /* still a token of its own */
    renyi_estimate merged; /* in a token with other patches, including the one the others joined */
    renyi_estimate fused;  /* in a token that took all leftovers of a cut */
    renyi_estimate dropped;
} renyi_masks_fates;

/* State after a block under a policy, counted in patches of the image. */
typedef struct renyi_masks_survival {
    int is_cut; /* this block cuts; otherwise the state is that of the block before */
    renyi_masks_fates object, background;
} renyi_masks_survival;
RENYI_API void renyi_masks_get_survival(const renyi_masks *s, uint32_t policy, uint32_t block,
                                        renyi_masks_survival *out);

/* Images that could not be used. Strings are borrowed until renyi_masks_free. */
RENYI_API size_t renyi_masks_failure_count(const renyi_masks *s);
RENYI_API void renyi_masks_get_failure(const renyi_masks *s, size_t i, renyi_eval_failure *out);

#ifdef __cplusplus
}
#endif
#endif
