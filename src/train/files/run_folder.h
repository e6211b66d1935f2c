/* run_folder.h - the folder of a training run and the names in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RUN_FOLDER_H
#define RY_RUN_FOLDER_H

#include "renyi/renyi.h"

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

#endif
