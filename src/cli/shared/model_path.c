/* model_path.c - see model_path.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/model_path.h"

#include "cli/pull/hub_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *find_in_cache(const char *repo)
{
    char *root = hub_cache_root();
    char *snapshot = root ? hub_find_snapshot(root, repo, "main") : NULL;
    free(root);
    return snapshot;
}

char *model_path_resolve(const char *word)
{
    struct stat st;

    if (strcmp(word, RENYI_MODEL_BUILTIN) == 0 || stat(word, &st) == 0) return cli_copy(word);
    const int why = errno;
    if (!hub_is_repo_name(word) || !strchr(word, '/') || strstr(word, ".safetensors")) {
        cli_error("%s: %s", word, strerror(why));
        return NULL;
    }
    char *snapshot = find_in_cache(word);
    if (!snapshot)
        cli_error(
            "%s: no such file, and not in the Hugging Face cache; to fetch it:  renyi pull %s",
            word, word);
    return snapshot;
}

const char *model_or_builtin(const char *word)
{
    if (word) return word;
    cli_note("model: the small one inside the program, which knows the ten classes of Imagenette; "
             "-m MODEL for others");
    return RENYI_MODEL_BUILTIN;
}

static char *last_part(const char *path, size_t length)
{
    while (length > 1 && path[length - 1] == '/') length--;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/') start--;
    return cli_format("%.*s", (int)(length - start), path + start);
}

char *model_path_title(const char *word)
{
    char *name = last_part(word, strlen(word));
    const char *slash = strrchr(word, '/');

    /* Every checkpoint directory holds a "model.safetensors": its directory says which. */
    if (slash && slash > word &&
        (strcmp(name, "model.safetensors") == 0 || strcmp(name, "pytorch_model.bin") == 0)) {
        free(name);
        name = last_part(word, (size_t)(slash - word));
    }
    return name;
}

static void note_dtype(const renyi_model *model)
{
    renyi_model_info info;

    renyi_model_get_info(model, &info);
    if (info.dtype != RENYI_DTYPE_F32)
        cli_note("dtype: the blocks multiply in %s", renyi_dtype_name(info.dtype));
}

renyi_model *model_open_reported(const char *word, const renyi_options *opt)
{
    char *path = model_path_resolve(word);
    renyi_model *model = NULL;
    renyi_error err = {0};

    if (!path) return NULL;
    if (renyi_model_open(&model, path, opt, &err) != RENYI_OK) {
        cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
        model = NULL;
    }
    if (model) note_dtype(model);
    free(path);
    return model;
}

int model_no_classifier(const renyi_model_info *info)
{
    if (info->n_classes) return 0;
    if (strcmp(info->family, "clip") == 0)
        cli_error("%s has no classifier: 'renyi zeroshot' classifies by class names, 'renyi embed' "
                  "writes embeddings",
                  info->architecture);
    else
        cli_error("%s has no classifier: 'renyi embed' writes embeddings", info->architecture);
    return 1;
}

renyi_cpu cpu_from_name(const char *name)
{
    static const renyi_cpu levels[] = {RENYI_CPU_SCALAR, RENYI_CPU_AVX2, RENYI_CPU_AVX512};

    for (size_t i = 0; name && i < sizeof levels / sizeof *levels; i++)
        if (strcmp(name, renyi_cpu_name(levels[i])) == 0) return levels[i];
    return RENYI_CPU_AUTO;
}

static const renyi_dtype dtypes[] = {RENYI_DTYPE_F32, RENYI_DTYPE_BF16, RENYI_DTYPE_INT8,
                                     RENYI_DTYPE_INT4, RENYI_DTYPE_AUTO};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

renyi_dtype dtype_from_name(const char *name)
{
    for (int i = 0; name && i < N_DTYPES; i++)
        if (strcmp(name, renyi_dtype_name(dtypes[i])) == 0) return dtypes[i];
    return RENYI_DTYPE_DEFAULT;
}

void dtypes_here(char out[32])
{
    size_t at = 0;

    for (int i = 0; i < N_DTYPES; i++)
        if (dtypes[i] != RENYI_DTYPE_AUTO &&
            renyi_dtype_check(dtypes[i], RENYI_CPU_AUTO, NULL) == RENYI_OK)
            at += (size_t)snprintf(out + at, 32 - at, "%s%s", at ? ", " : "",
                                   renyi_dtype_name(dtypes[i]));
}
