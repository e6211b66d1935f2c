/* sample_log.h - the JSON lines of an evaluation: one per image and policy, written while it runs,
 * read when it is resumed or merged with others.
 *
 * {"file": "006/a.jpg", "index": 3, "place": 1, "policy": "none", "label": 6, "prediction": 6,
 *  "top5": [6, 1, 2, 3, 4], "right": 1, "margin": 1.5, "loss": 0.25, "ms": 12.5, "ms_rest": 2.1,
 *  "gmacs": 1.25, "gmacs_executed": 1.2, "img_size": 224, "classes": 10, "photos": 12,
 *  "data": "...", "shard": "2/3", "model": "vit", "run": "...", "dtype": "f32"}
 * {"file": "006/b.jpg", "index": 4, "place": 2, "error": "what was wrong", ...}
 *
 * `run` is a hash of everything that an answer depends on except image and policy. One log may hold
 * several runs and policies; a reader skips the lines that are not its own. With ranks the log has
 * parts (shared_run.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SAMPLE_LOG_H
#define RY_SAMPLE_LOG_H

#include "base/buffer.h"
#include "eval/run/shared_run.h"
#include "renyi/eval.h"

enum { RY_TOP = 5 };

typedef enum ry_answer_state {
    RY_ANSWER_NONE = 0,
    RY_ANSWER_GIVEN = 1,
    RY_ANSWER_NAN = 2 /* the logits had a NaN, or the largest was infinite */
} ry_answer_state;

/* What one policy answered for one image. */
typedef struct ry_answer {
    double loss;      /* NaN without a label */
    float margin, ms; /* ms: of the model */
    float ms_rest;    /* everything but the model, for all policies together */
    uint32_t top[RY_TOP];
    uint8_t n_top, state;
    uint8_t passes;    /* of a cascade: 1 or 2; 0 = not a cascade */
    uint8_t right;     /* place of the first right class among the top, from 1; 0 = none is right */
    uint8_t is_cold;   /* from the first batch of a run, which also pays for fresh memory */
    uint8_t is_fresh;  /* of this run and this rank */
    uint8_t is_logged; /* is in the log of rank 0 */
} ry_answer;

/* What all lines of a run have in common. */
typedef struct ry_log_run {
    char id[17];       /* `run`: 16 hexadecimal digits */
    renyi_dtype dtype; /* RENYI_DTYPE_DEFAULT = unknown (older logs) */
    const char *model; /* name; borrowed */
    uint64_t images;   /* of the whole dataset, before it was cut into shards; 0 = unknown */
    char data[17];     /* hash of their names and classes: 16 hexadecimal digits */
    uint32_t image_size, n_classes;
    uint32_t shard, n_shards; /* n_shards 0 = no shards */
} ry_log_run;

#define RY_NO_PLACE UINT64_MAX

/* The content of a line. Strings are borrowed for the call. */
typedef struct ry_logged {
    const char *file;
    const char *policy; /* NULL for an unreadable image */
    const char *error;  /* NULL for an answer */
    uint64_t index;     /* in the listing */
    uint64_t place;     /* in the order of the run, before it was cut into shards */
    uint32_t label;
    double gmacs, gmacs_executed; /* of a cascade: gmacs is the most */
    double gmacs_second;          /* part of gmacs: the second pass of a cascade; 0 = not one */
    ry_answer answer;
    ry_log_run run;
    const char *path; /* where the line was read */
    uint64_t line;
} ry_logged;

/* Called for every line, in the order of the file. *is_ours = 0: the line is not used. */
typedef renyi_status ry_logged_take(void *user, const ry_logged *line, int *is_ours,
                                    renyi_error *err);

typedef struct ry_sample_log {
    ry_run_file file;
    ry_buffer suffix; /* the end of every line, without the run */
    ry_buffer lines;  /* that are not written yet */
} ry_sample_log;

typedef struct ry_log_options {
    const char *path; /* FILE; NULL = no log */
    uint32_t rank;    /* 0 writes FILE, others FILE.rank<r> */
    int resume;       /* 0: FILE and FILE.rank<r> must be empty or absent */
    ry_log_run run;
    ry_logged_take *take; /* gets the lines that exist */
    void *user;
} ry_log_options;

/* Reads what exists. Changes nothing, except that rank 0 makes FILE if it is absent. Keeps `al`. A
 * zeroed log with file.fd -1 may be closed. */
renyi_status ry_sample_log_open(ry_sample_log *log, const ry_log_options *opt,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_sample_log_close(ry_sample_log *log); /* lines that were not flushed are lost */

/* Of line->run only id and dtype are used; path and line are not. Does nothing without a log. */
renyi_status ry_sample_log_put(ry_sample_log *log, const ry_logged *line,
                               renyi_error *err) RENYI_CHECK;
/* Writes whole lines: what is flushed survives the end of the process. */
renyi_status ry_sample_log_flush(ry_sample_log *log, renyi_error *err) RENYI_CHECK;
/* The same, and waits until the disk has them. */
renyi_status ry_sample_log_sync(ry_sample_log *log, renyi_error *err) RENYI_CHECK;

/* Lines in `bytes` up to the last newline, which ends at *whole. *n_foreign counts those that
 * `take` did not use. */
renyi_status ry_sample_log_read(const char *path, const char *bytes, size_t size, size_t *whole,
                                uint64_t *n_foreign, ry_logged_take *take, void *user,
                                renyi_error *err) RENYI_CHECK;

#endif
