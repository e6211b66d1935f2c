/* sample_log.h - answers as lines of JSON: written while a run goes on, read when it is resumed or
 * merged with others.
 *
 * {"file": "006/a.jpg", "index": 3, "place": 1, "policy": "none", "label": 6, "prediction": 6,
 *  "top5": [6, 1, 2, 3, 4], "right": 1, "margin": 1.5, "loss": 0.25, "ms": 12.5, "ms_rest": 2.1,
 *  "gmacs": 1.25, "gmacs_executed": 1.2, "img_size": 224, "classes": 10, "photos": 12,
 *  "data": "...", "shard": "2/3", "model": "vit", "run": "..."}
 * {"file": "006/b.jpg", "index": 4, "place": 2, "error": "what was wrong", ...}
 *
 * `run` stands for all that an answer depends on but file and policy. A line of another run or
 * policy is not ours and is passed over. Beside FILE there may be FILE.rank1, FILE.rank2, ...: what
 * the other ranks of a run that shares its work have written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SAMPLE_LOG_H
#define RY_SAMPLE_LOG_H

#include "renyi/eval.h"

enum { RY_TOP = 5 };

typedef enum ry_answer_state {
    RY_ANSWER_NONE = 0,
    RY_ANSWER_GIVEN = 1,
    RY_ANSWER_NAN = 2 /* the logits were no numbers */
} ry_answer_state;

typedef struct ry_answer {
    double loss; /* NaN without a label */
    float margin, ms;
    float ms_rest; /* what the photo took beside the model, all policies together */
    uint32_t top[RY_TOP];
    uint8_t n_top, state;
    uint8_t right;     /* place of the first right class among the top, from 1; 0 = none is */
    uint8_t is_cold;   /* from the first batch of a run, which pays for fresh memory */
    uint8_t is_fresh;  /* of this run and rank */
    uint8_t is_logged; /* stands in the log of rank 0 */
} ry_answer;

/* What all lines of a run have in common. */
typedef struct ry_log_run {
    char id[17];       /* `run`: 16 hexadecimal digits */
    const char *model; /* name; borrowed */
    uint64_t photos;   /* of the whole, before it was cut into shards; 0 = not said */
    char data[17];     /* stands for their names and classes: 16 hexadecimal digits */
    uint32_t image_size, n_classes;
    uint32_t shard, n_shards; /* n_shards 0 = not cut */
} ry_log_run;

#define RY_NO_PLACE UINT64_MAX

/* What a line says. Strings are borrowed for the call. */
typedef struct ry_logged {
    const char *file;
    const char *policy;    /* NULL in a line of an unreadable photo */
    const char *error;     /* NULL in a line of an answer */
    uint64_t index, place; /* in the listing; in the order of the run before it was cut in shards */
    uint32_t label;
    double gmacs, gmacs_executed;
    ry_answer answer;
    ry_log_run run;
    const char *path; /* where it was read */
    uint64_t line;
} ry_logged;

/* Called for every line, in the order of the file. *is_ours = 0: passed over. */
typedef renyi_status ry_logged_take(void *user, const ry_logged *line, int *is_ours,
                                    renyi_error *err);

typedef struct ry_sample_log {
    const renyi_allocator *al;
    char *base;       /* FILE; NULL = no log */
    char *path;       /* what is written here: FILE, or FILE.rank<r> */
    int fd;           /* -1 = not open */
    int is_part;      /* path is not FILE */
    int is_kept;      /* path holds lines of others and is not removed */
    uint64_t torn_at; /* where a torn last line of path begins */
    char *suffix;     /* end of every line */
    char *buffer;     /* lines that are not written yet */
    size_t used, capacity;
    char **parts; /* [n_parts] files FILE.rank<r> with nothing in them that is not ours */
    size_t n_parts, parts_capacity;
} ry_sample_log;

typedef struct ry_log_options {
    const char *path; /* FILE; NULL = no log */
    uint32_t rank;    /* 0 writes FILE, others FILE.rank<r> */
    int resume;       /* 0: FILE and FILE.rank<r> must be empty or absent */
    ry_log_run run;
    ry_logged_take *take; /* gets what is there */
    void *user;
} ry_log_options;

/* ---- sample_log_files.c -------------------------------------------------------------------- */

/* Reads and checks; nothing is changed but that rank 0 makes an empty FILE. The log keeps `al`. A
 * zeroed log with fd -1 may be closed. */
renyi_status ry_sample_log_open(ry_sample_log *log, const ry_log_options *opt,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* Ready to write. A torn last line is cut off: nobody may be reading the file any more. */
renyi_status ry_sample_log_begin(ry_sample_log *log, renyi_error *err) RENYI_CHECK;
/* FILE holds everything: the parts that were read or written here are removed. */
void ry_sample_log_drop_parts(ry_sample_log *log);
void ry_sample_log_close(ry_sample_log *log); /* unflushed lines are dropped */

/* ---- sample_log.c -------------------------------------------------------------------------- */

/* The end of every line, for ry_sample_log.suffix. */
renyi_status ry_sample_log_suffix(ry_sample_log *log, const ry_log_run *run,
                                  renyi_error *err) RENYI_CHECK;
/* line->run, path and line are not used. Without a log nothing happens. */
renyi_status ry_sample_log_put(ry_sample_log *log, const ry_logged *line,
                               renyi_error *err) RENYI_CHECK;
/* Hand whole lines to the system: what is flushed survives the end of the process. */
renyi_status ry_sample_log_flush(ry_sample_log *log, renyi_error *err) RENYI_CHECK;
/* The same, and wait for the disk. */
renyi_status ry_sample_log_sync(ry_sample_log *log, renyi_error *err) RENYI_CHECK;

/* ---- sample_log_read.c --------------------------------------------------------------------- */

/* Lines in `bytes` up to the last newline, whose place is *whole. *n_foreign counts those that
 * `take` passed over. */
renyi_status ry_sample_log_read(const char *path, const char *bytes, size_t size, size_t *whole,
                                uint64_t *n_foreign, ry_logged_take *take, void *user,
                                renyi_error *err) RENYI_CHECK;

#endif
