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
    uint32_t unlabelled; /* 1 = classes do not matter (eval.h): every photo at and below a folder,
                            every line of a list whatever its class; no label files */
    /* Zero-shot: which classes there are is not the model's to say. m may be NULL; if not, it must
     * have as many classes. Without label files and n_classes. */
    uint32_t own_classes;    /* 1 = a class for every folder, in byte order, called like it; WordNet
                                ids are called as ImageNet calls them. See renyi_dataset_names */
    const char *collection;  /* a data set by name (eval.h), whose folder, photos or split
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
    renyi_tca *const *adapt; /* [n_policies] what a policy's session learns as it goes (clip.h);
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

/* ---- known data sets ------------------------------------------------------------------------- */

/* data sets that are known by name: where people have their photos, what their
 * classes are called, how a class name becomes a sentence, and what TCA uses for them.
 * *
 * The fifteen that CLIP and TCA are tested on: ImageNet, -A, -R, -Sketch and -V2, Caltech101,
 * Pets, Cars, Flowers, Food101, Aircraft, SUN397, DTD, EuroSAT, UCF101. Zero-shot classification of
 * one of them, or of any folder of folders:
 *
 *   renyi_dataset_open with collection or own_classes -> renyi_dataset_names, renyi_templates_open
 *   -> a text classifier (clip.h) -> renyi_eval_new
 *
 * The rest is as in renyi.h. */

/* ---- data sets ----------------------------------------------------------------------------- */

/* How photos and classes are stored. */
typedef enum renyi_layout {
    RENYI_LAYOUT_IMAGENET = 0, /* a folder a class, named by WordNet id or by index of the 1000 */
    RENYI_LAYOUT_SPLIT = 1,   /* CoOp's JSON: {"train", "val", "test": [[photo, class, name]...]} */
    RENYI_LAYOUT_VARIANTS = 2 /* FGVC-Aircraft's lists of variants */
} renyi_layout;

#define RENYI_COLLECTION_TEXT 96 /* bytes of a text in renyi_collection, with its NUL */

typedef struct renyi_collection {
    char name[RENYI_COLLECTION_TEXT];    /* "pets" */
    char title[RENYI_COLLECTION_TEXT];   /* "Oxford Pets" */
    char aliases[RENYI_COLLECTION_TEXT]; /* other words for it, blanks between */
    renyi_layout layout;
    uint32_t n_classes;                    /* of the whole data set */
    uint32_t is_subset;                    /* 1 = some of ImageNet's 1000: those with a folder */
    char folder[RENYI_COLLECTION_TEXT];    /* what CoOp calls its folder: "oxford_pets" */
    char photos[RENYI_COLLECTION_TEXT];    /* where photos may be in it, first choice first, blanks
                                              between; "." = the folder itself */
    char list[RENYI_COLLECTION_TEXT];      /* name of the split file; "" = none */
    char templates[RENYI_COLLECTION_TEXT]; /* for renyi_templates_open */
    /* TCA: items of the reservoir a class, scale of the layer weights, lambda and beta of the
     * correction of the logits */
    uint32_t tca_size;
    double tca_scale, tca_lambda, tca_beta;
} renyi_collection;

RENYI_API size_t renyi_collection_count(void);
RENYI_API void renyi_collection_get(size_t i, renyi_collection *out);
/* By name, title, alias or CoOp's folder; case, '-', '_' and blanks do not matter. RENYI_ERR_ARG:
 * none of them, and the nearest or all names. */
RENYI_API RENYI_CHECK renyi_status renyi_collection_find(const char *word, renyi_collection *out,
                                                         renyi_error *err);

/* ImageNet's names of class i of its 1000, synonyms divided by ", "; NULL from 1000 on. Static. */
RENYI_API const char *renyi_imagenet_name(uint32_t i);

/* ---- templates ----------------------------------------------------------------------------- */

/* Sentences with "{}" where the name of the class goes; immutable. */
typedef struct renyi_templates renyi_templates;

/* `word`: the name of a list inside the library ("imagenet80", "simple", a collection's), a
 * sentence with "{}", or a file with one sentence a line (empty lines and lines that begin with '#'
 * are passed over). Each has exactly one "{}". A file has at most 1 MiB, 1000 sentences, 1024 bytes
 * a line. Of opt only the allocator is used. On success *out is owned by the caller
 * (renyi_templates_free). */
RENYI_API RENYI_CHECK renyi_status renyi_templates_open(renyi_templates **out, const char *word,
                                                        const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_templates_free(renyi_templates *t);

/* [*count] sentences, at least one. Borrowed until renyi_templates_free. */
RENYI_API const char *const *renyi_templates_texts(const renyi_templates *t, uint32_t *count);
/* As it was asked for. Borrowed. */
RENYI_API const char *renyi_templates_name(const renyi_templates *t);

/* Names of the lists inside the library. Static strings. */
RENYI_API size_t renyi_templates_builtin_count(void);
RENYI_API const char *renyi_templates_builtin_name(size_t i);

/* ---- object masks ---------------------------------------------------------------------------- */

/* does a metric keep the object? Photos with masks tell which patches show it; this
 * header says how well a metric ranks them above the background, and what a policy does to them.
 * *
 * Life of a program:
 *   renyi_model_open -> renyi_dataset_open (unlabelled = 1) -> renyi_masks_new -> renyi_masks_run
 * -> results -> free.
 *
 * A mask goes through the geometry of its photo (resize, centre crop) exactly, as areas: nothing is
 * interpolated. Of each patch the areas of object, background and what is neither (a trimap's
 * border, padding) are measured. A patch is left out if less than half of its area is object or
 * background; otherwise it is an object's if at least half of that is object, else background's.
 * Photos without a patch of either kind are counted apart and in no mean; all other photos weigh
 * the same. Threads, memory and results are as in eval.h. */

typedef struct renyi_masks renyi_masks;

/* What the numbers of a mask mean. */
typedef enum renyi_mask_kind {
    RENYI_MASK_AUTO = 0,   /* by the numbers of each file: 1, 2, 3 alone are a trimap, 0 and at most
                              one other a binary mask, anything else an error */
    RENYI_MASK_TRIMAP = 1, /* Oxford Pets: 1 object, 2 background, 3 border; others are an error */
    RENYI_MASK_BINARY = 2  /* 0 background, all others object */
} renyi_mask_kind;

/* Strings and arrays are borrowed for the call. */
typedef struct renyi_masks_options {
    uint32_t struct_size;
    const char *folder; /* of the masks: for photo a/b.jpg the PNG a/b.png or else b.png, grey or
                           with a palette, of the photo's size */
    renyi_mask_kind kind;
    uint32_t border_is_object;   /* 1 = a trimap's border counts as object; 0 = as neither */
    double keep;                 /* rate at which kept patches are counted; 0 = 0.7 */
    uint32_t n_metrics;          /* 0 = renyi_masks_default_metrics */
    const char *const *metrics;  /* [n_metrics] what a policy says behind metric=: "col n=4" */
    uint32_t n_policies;         /* 0 = none */
    const char *const *policies; /* [n_policies] policy texts to follow cut by cut */
    uint32_t batch;              /* photos run together; 0 = 8 */
    uint32_t n_threads;          /* 0 = physical cores */
    uint32_t apply_exif;         /* 1 = turn each photo and each mask as its own EXIF says */
    const renyi_preprocess *preprocess; /* NULL = the model's; size must be the model's */
    renyi_limits limits;                /* of photos and masks */
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks; each may be NULL */
    void (*on_failure)(void *user, const char *file, const char *message); /* photo skipped */
    renyi_progress progress; /* after every batch: photos done of all; with `user`. Non-zero stops:
                                renyi_masks_run returns RENYI_ERR_ABORTED, results so far hold */
} renyi_masks_options;

/* The metrics that are taken when none are named, for a model with or without a class token. */
RENYI_API const char *const *renyi_masks_default_metrics(int has_class_token, uint32_t *count);

/* Borrows m and d: both must outlive the study. On success *out is owned by the caller. */
RENYI_API RENYI_CHECK renyi_status renyi_masks_new(renyi_masks **out, const renyi_model *m,
                                                   const renyi_dataset *d,
                                                   const renyi_masks_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_masks_free(renyi_masks *s);

/* Run all photos; one dense pass serves all metrics. A photo that has no mask, or whose mask cannot
 * be read or does not fit it, is reported, counted and skipped. A second call starts again. */
RENYI_API RENYI_CHECK renyi_status renyi_masks_run(renyi_masks *s, renyi_error *err);

typedef struct renyi_masks_info {
    uint64_t images;             /* that all means are over */
    uint64_t one_sided;          /* masks that show no object, or no background, in any patch */
    uint64_t failed;             /* see renyi_masks_get_failure */
    uint64_t n_trimap, n_binary; /* kinds of the masks that were read */
    uint32_t n_blocks, n_metrics, n_policies, n_patches;
    uint32_t n_kept; /* patches that stay at `keep` */
    double keep;
    double object, background, left_out; /* patches of a photo, mean */
    double seconds;                      /* of renyi_masks_run */
} renyi_masks_info;
RENYI_API void renyi_masks_get_info(const renyi_masks *s, renyi_masks_info *out);

/* Borrowed until renyi_masks_free. A metric with every word that is not a default, a policy in
 * full.
 */
RENYI_API const char *renyi_masks_metric(const renyi_masks *s, uint32_t metric);
RENYI_API const char *renyi_masks_policy(const renyi_masks *s, uint32_t policy);

/* A mean over photos and its 95 % interval (Student's t). NaN without photos. */
typedef struct renyi_estimate {
    double mean;
    renyi_interval range;
} renyi_estimate;

/* A metric at a block of the unpruned model. */
typedef struct renyi_masks_ranking {
    renyi_estimate auc; /* how often a patch of the object outranks one of the background, ties
                           half: the area under the ROC curve */
    renyi_estimate kept_object, kept_background; /* share of each that stays at `keep` */
} renyi_masks_ranking;
RENYI_API void renyi_masks_get_ranking(const renyi_masks *s, uint32_t metric, uint32_t block,
                                       renyi_masks_ranking *out);

/* The area of metric b minus that of a, photo by photo. */
RENYI_API void renyi_masks_get_difference(const renyi_masks *s, uint32_t a, uint32_t b,
                                          uint32_t block, renyi_estimate *out);

/* What has become of patches: shares that sum to 1. */
typedef struct renyi_masks_fates {
    renyi_estimate alone;  /* still a token of its own */
    renyi_estimate merged; /* in a token with others, the one they joined too */
    renyi_estimate fused;  /* in a token that all leftovers of a cut went into */
    renyi_estimate dropped;
} renyi_masks_fates;

/* A policy after a block, counted in patches of the picture. */
typedef struct renyi_masks_survival {
    int is_cut; /* this block cuts; else all is as after the one before */
    renyi_masks_fates object, background;
} renyi_masks_survival;
RENYI_API void renyi_masks_get_survival(const renyi_masks *s, uint32_t policy, uint32_t block,
                                        renyi_masks_survival *out);

/* Photos that could not be used; strings are borrowed until renyi_masks_free. */
RENYI_API size_t renyi_masks_failure_count(const renyi_masks *s);
RENYI_API void renyi_masks_get_failure(const renyi_masks *s, size_t i, renyi_eval_failure *out);

#ifdef __cplusplus
}
#endif
#endif
