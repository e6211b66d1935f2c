/* run_folder.c - see run_folder.h.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "train/files/run_folder.h"

#include "base/alloc.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *ry_path_in(const renyi_allocator *al, const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *out = ry_alloc(al, size, 1);
    if (out) snprintf(out, size, "%s/%s", folder, name);
    return out;
}

int ry_is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

renyi_status ry_run_folder_name(ry_run_folder *f, const char *path, const renyi_allocator *al,
                                renyi_error *err)
{
    *f = (ry_run_folder){.log = ry_path_in(al, path, "log.jsonl"),
                         .checkpoint = ry_path_in(al, path, "checkpoint.safetensors"),
                         .model = ry_path_in(al, path, "model.safetensors"),
                         .model_ema = ry_path_in(al, path, "model-ema.safetensors"),
                         .best = ry_path_in(al, path, "best.safetensors")};
    if (f->log && f->checkpoint && f->model && f->model_ema && f->best) return RENYI_OK;
    return ry_fail_nomem(err, 5 * (strlen(path) + 32));
}

void ry_run_folder_free(ry_run_folder *f, const renyi_allocator *al)
{
    ry_free(al, f->log);
    ry_free(al, f->checkpoint);
    ry_free(al, f->model);
    ry_free(al, f->model_ema);
    ry_free(al, f->best);
    *f = (ry_run_folder){0};
}

static int is_dots(const char *name) { return !strcmp(name, ".") || !strcmp(name, ".."); }

renyi_status ry_run_folder_make(const char *path, int *made, renyi_error *err)
{
    *made = !mkdir(path, 0777);
    if (*made) return RENYI_OK;
    if (errno != EEXIST) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    DIR *dir = opendir(path);
    if (!dir) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    int is_used = 0;
    for (const struct dirent *e; !is_used && (e = readdir(dir));) is_used = !is_dots(e->d_name);
    closedir(dir);
    if (!is_used) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s is not empty: --resume goes on with the run in it; a new run needs a folder "
                   "of its own",
                   path);
}

void ry_run_folder_undo(const ry_run_folder *f, const char *path, int made)
{
    const char *const files[] = {f->log, f->checkpoint, f->model, f->model_ema, f->best};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) (void)unlink(files[i]);
    if (made) (void)rmdir(path);
}

static int is_leftover(const char *name)
{
    static const char *const ours[] = {"checkpoint.safetensors.", "model.safetensors.",
                                       "model-ema.safetensors.", "best.safetensors."};
    const size_t n = strlen(name);
    if (n < 5 || strcmp(name + n - 4, ".tmp") != 0) return 0;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strncmp(name, ours[i], strlen(ours[i])) == 0) return 1;
    return 0;
}

void ry_run_folder_sweep(const char *path, const renyi_allocator *al)
{
    DIR *dir = opendir(path);
    if (!dir) return;
    for (const struct dirent *e; (e = readdir(dir));) {
        char *file = is_leftover(e->d_name) ? ry_path_in(al, path, e->d_name) : NULL;
        if (file) (void)unlink(file);
        ry_free(al, file);
    }
    closedir(dir);
}
