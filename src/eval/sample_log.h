/* sample_log.h - answers as lines of JSON: written while a run goes on, read when it is resumed.
 *
 * {"file": "006/a.jpg", "index": 3, "policy": "none", "label": 6, "prediction": 6,
 *  "top5": [6, 1, 2, 3, 4], "margin": 1.5, "loss": 0.25, "ms": 12.5, "model": "vit", "run": "..."}
 * {"file": "006/b.jpg", "index": 4, "error": "what was wrong", "model": "vit", "run": "..."}
 *
 * `run` stands for all that an answer depends on but file and policy. A line of another run or
 * policy is not ours and is passed over. SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_EVAL_SAMPLE_LOG_H
#define RY_EVAL_SAMPLE_LOG_H

#include "eval/answer.h"

typedef struct ry_sample_log {
    const renyi_allocator *al;
    char *path;
    int fd;       /* -1 = no log */
    char run[17]; /* 16 hexadecimal digits */
    char *model;  /* name, as JSON text with quotes */
    char *buffer; /* lines that are not written yet */
    size_t used, capacity;
} ry_sample_log;

/* What a line says. */
typedef struct ry_logged {
    const char *file, *policy; /* borrowed for the call */
    uint64_t index;
    uint32_t label;
    ry_answer answer;
} ry_logged;

/* Called for every line of this run, in the order of the file. */
typedef void ry_logged_take(void *user, const ry_logged *line);

/* Open for appending. `run` is a number that stands for model, preprocessing and classes. With
 * resume, `take` gets what is there, and a torn last line is cut off; without, the file must be
 * empty or absent. A zeroed log with fd -1 may be closed. */
renyi_status ry_sample_log_open(ry_sample_log *log, const char *path, uint64_t run,
                                const char *model, int resume, ry_logged_take *take, void *user,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
renyi_status ry_sample_log_put(ry_sample_log *log, const renyi_eval_sample *sample,
                               const char *policy, renyi_error *err) RENYI_CHECK;
renyi_status ry_sample_log_fault(ry_sample_log *log, const renyi_dataset_image *photo,
                                 const char *message, renyi_error *err) RENYI_CHECK;
/* Hand whole lines to the system: what is flushed survives the end of the process. */
renyi_status ry_sample_log_flush(ry_sample_log *log, renyi_error *err) RENYI_CHECK;
void ry_sample_log_close(ry_sample_log *log); /* unflushed lines are dropped */

/* sample_log_read.c: lines in `bytes` up to the last newline, whose place is *whole. */
renyi_status ry_sample_log_read(const ry_sample_log *log, const char *bytes, size_t size,
                                size_t *whole, ry_logged_take *take, void *user,
                                renyi_error *err) RENYI_CHECK;

#endif
