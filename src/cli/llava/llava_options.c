/* llava_options.c - see llava_options.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/llava/llava_options.h"

#include "cli/kit/files.h"
#include "cli/kit/progress.h"

#include <stdlib.h>

int lvlm_arguments_check(const char *verb, lvlm_arguments *a)
{
    if (!a->model) return options_usage_error(verb, "-m LLAVA is missing");
    return prune_policy(verb, &a->prune, &a->policy);
}

void lvlm_arguments_free(lvlm_arguments *a)
{
    prune_options_free(&a->prune);
    free(a->policy);
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Weights come in parts, each counted from nothing. */
typedef struct loading {
    progress_bar bar;
    uint64_t last;
    int is_on;
} loading;

static int on_loading(void *user, uint64_t done, uint64_t total)
{
    loading *l = user;

    if (l->is_on && done < l->last) progress_end(&l->bar);
    if (!l->is_on || done < l->last) progress_start(&l->bar, "loading", total, 1);
    l->is_on = 1;
    l->last = done;
    progress_update(&l->bar, done);
    return 0;
}

static void report(const renyi_error *err)
{
    cli_error("%s", err->message[0] ? err->message : renyi_status_name(err->code));
}

renyi_lvlm *lvlm_open_reported(const lvlm_arguments *a)
{
    loading l = {0};
    const renyi_lvlm_options opt = {.struct_size = sizeof opt,
                                    .cpu = cpu_from_name(a->cpu),
                                    .dtype = dtype_from_name(a->dtype),
                                    .tower_dtype = dtype_from_name(a->tower_dtype),
                                    .tower = a->tower,
                                    .tokenizer = a->tokenizer,
                                    .progress = on_loading,
                                    .progress_user = &l};
    char *path = model_path_resolve(a->model);
    renyi_lvlm *m = NULL;
    renyi_error err = {0};

    if (!path) return NULL;
    const renyi_status st = renyi_lvlm_open(&m, path, &opt, &err);
    if (l.is_on) progress_end(&l.bar);
    if (st != RENYI_OK) report(&err);
    free(path);
    return st == RENYI_OK ? m : NULL;
}

renyi_visual *visual_open_reported(const lvlm_arguments *a)
{
    loading l = {0};
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = cpu_from_name(a->cpu),
                               .dtype = dtype_from_name(a->tower_dtype),
                               .progress = on_loading,
                               .progress_user = &l};
    char *path = model_path_resolve(a->model);
    renyi_visual *v = NULL;
    renyi_error err = {0};

    if (!path) return NULL;
    const renyi_status st = renyi_visual_open(&v, path, a->tower, &opt, &err);
    if (l.is_on) progress_end(&l.bar);
    if (st != RENYI_OK) report(&err);
    free(path);
    return st == RENYI_OK ? v : NULL;
}

/* ---- photos -------------------------------------------------------------------------------- */

int lvlm_read_photo(const char *path, unsigned char **bytes, size_t *size, char **why)
{
    static const size_t max_bytes = 256u << 20; /* the library's own default limit */
    file_bytes file;

    if (read_file(path, max_bytes, &file, why)) return -1;
    *bytes = file.data;
    *size = file.size;
    return 0;
}

int lvlm_is_photo_error(renyi_status status)
{
    return status == RENYI_ERR_IO || status == RENYI_ERR_FORMAT || status == RENYI_ERR_LIMIT ||
           status == RENYI_ERR_UNSUPPORTED;
}
