/* run_folder.h - the folder of a training run: the names in it, and the log.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RUN_FOLDER_H
#define RY_RUN_FOLDER_H

#include "renyi/renyi.h"

#include <jansson.h>

typedef struct ry_run_folder {
    char *log;        /* log.jsonl */
    char *checkpoint; /* checkpoint.safetensors */
    char *model;      /* model.safetensors */
    char *model_ema;  /* model-ema.safetensors */
    char *best;       /* best.safetensors */
} ry_run_folder;

/* Only the names; nothing is touched. A zeroed one may be freed. */
renyi_status ry_run_folder_name(ry_run_folder *f, const char *path, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;
void ry_run_folder_free(ry_run_folder *f, const renyi_allocator *al);

/* Make it (*made = 1), or take it if it is empty: a folder with anything in it is an error that
 * names --resume. */
renyi_status ry_run_folder_make(const char *path, int *made, renyi_error *err) RENYI_CHECK;

/* A run that could not begin leaves no files, and no folder if it was made for it. */
void ry_run_folder_undo(const ry_run_folder *f, const char *path, int made);

/* Remove what a killed process left half-written: NAME.safetensors.*.tmp of our names. */
void ry_run_folder_sweep(const char *path, const renyi_allocator *al);

/* folder + "/" + name, or NULL. */
char *ry_path_in(const renyi_allocator *al, const char *folder, const char *name);
int ry_is_folder(const char *path);

/* ---- log ------------------------------------------------------------------------------------- */

typedef struct ry_log_file {
    const char *path; /* borrowed */
    int fd;           /* -1 = none: lines are dropped */
    uint64_t bytes;   /* written so far */
} ry_log_file;

/* Lines behind byte `keep` are cut off: they were written after the checkpoint that the run goes on
 * from. A shorter file is kept up to its last whole line. Another process that has the log open is
 * an error. */
renyi_status ry_log_file_open(ry_log_file *log, const char *path, uint64_t keep,
                              renyi_error *err) RENYI_CHECK;
void ry_log_file_close(ry_log_file *log);

/* Takes over `line` (NULL = there was no memory for it); it is in the file when this returns. */
renyi_status ry_log_file_put(ry_log_file *log, json_t *line, const renyi_allocator *al,
                             renyi_error *err) RENYI_CHECK;
renyi_status ry_log_file_sync(ry_log_file *log, renyi_error *err) RENYI_CHECK; /* to the disk */

/* A number, or null where JSON has none. */
json_t *ry_log_number(double x);

#endif
