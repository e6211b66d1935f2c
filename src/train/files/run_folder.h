/* run_folder.h - the folder of a training run: the names in it, and the log.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RUN_FOLDER_H
#define RY_RUN_FOLDER_H

#include "base/folder.h"

#include <jansson.h>

typedef struct ry_run_folder {
    char *log;        /* log.jsonl */
    char *checkpoint; /* checkpoint.safetensors */
    char *model;      /* model.safetensors */
    char *model_ema;  /* model-ema.safetensors */
    char *best;       /* best.safetensors */
} ry_run_folder;

/* Only builds the names. A zeroed one may be freed. */
renyi_status ry_run_folder_name(ry_run_folder *f, const char *path, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;
void ry_run_folder_free(ry_run_folder *f, const renyi_allocator *al);

/* Whether it is what a run leaves that was killed before its first checkpoint: nothing, or a log
 * without updates, perhaps models, and no file of others. Such a run can begin again. */
int ry_run_folder_is_unbegun(const ry_run_folder *f, const char *path);

/* Creates it (*made = 1), or accepts an unbegun one: a folder with other files is an error that
 * names
 * --resume. */
renyi_status ry_run_folder_make(const ry_run_folder *f, const char *path, int *made,
                                renyi_error *err) RENYI_CHECK;

/* Removes what an unbegun run left, except the log. */
void ry_run_folder_clear(const ry_run_folder *f, const char *path, const renyi_allocator *al);

/* Removes the files of a run that could not begin, if they are ours (we have the lock on the log),
 * and the folder if it was created for it. */
void ry_run_folder_undo(const ry_run_folder *f, const char *path, int is_ours, int made);

/* Removes half-written files of a killed process: NAME.safetensors.*.tmp of our names. */
void ry_run_folder_sweep(const char *path, const renyi_allocator *al);

/* ---- log ------------------------------------------------------------------------------------- */

typedef struct ry_log_file {
    const char *path; /* borrowed */
    int fd;           /* -1 = none: lines are dropped */
    uint64_t bytes;   /* written so far */
} ry_log_file;

/* log.jsonl has a line of JSON for the settings, every update and every epoch. Lines after byte
 * `keep` are removed: they are later than the checkpoint that the run resumes from. A shorter file
 * is kept up to its last whole line. It is an error if another process has the log open. */
renyi_status ry_log_file_open(ry_log_file *log, const char *path, uint64_t keep,
                              renyi_error *err) RENYI_CHECK;
void ry_log_file_close(ry_log_file *log);

/* Takes over `line` (NULL = out of memory). The line is in the file when this returns. */
renyi_status ry_log_file_write(ry_log_file *log, json_t *line, const renyi_allocator *al,
                               renyi_error *err) RENYI_CHECK;
renyi_status ry_log_file_sync(ry_log_file *log, renyi_error *err) RENYI_CHECK; /* to the disk */

/* A number, or null where JSON has none. */
json_t *ry_log_number(double x);

#endif
