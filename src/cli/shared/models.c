/* models.c - opens what -m names: a model, its text tower, its class names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/models.h"

#include "cli/kit/files.h"
#include "cli/kit/progress.h"
#include "cli/pull/hub_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the model ----------------------------------------------------------------------------- */

static char *find_in_cache(const char *repo)
{
    char *root = hub_cache_root();
    char *snapshot = root ? hub_find_snapshot(root, repo, "main") : NULL;
    free(root);
    return snapshot;
}

static int is_repo(const char *name)
{
    return hub_is_repo_name(name) && strchr(name, '/') && !strstr(name, ".safetensors");
}

/* The repositories in the cache that a name without an owner may mean. */
static void find_short(const char *name, cli_strings *out)
{
    char *root = hub_cache_root();

    if (root && hub_is_repo_name(name) && !strchr(name, '/')) hub_find_names(root, name, out);
    free(root);
}

/* Says what a short name stands for. Image and text tower open the same model: once is enough. */
static void note_repo(const char *repo)
{
    static cli_strings noted;

    for (size_t i = 0; i < noted.count; i++)
        if (strcmp(noted.items[i], repo) == 0) return;
    cli_strings_add(&noted, cli_copy(repo));
    cli_note("model: %s", repo);
}

/* Of a name without an owner: its only repository. */
static char *find_only(const char *name, int is_noted)
{
    cli_strings names = {0};
    char *path = NULL;

    find_short(name, &names);
    if (names.count == 1) path = find_in_cache(names.items[0]);
    if (path && is_noted) note_repo(names.items[0]);
    cli_strings_free(&names);
    return path;
}

static char *find_path(const char *name, int is_noted)
{
    struct stat st;

    if (strcmp(name, RENYI_MODEL_BUILTIN) == 0 || stat(name, &st) == 0) return cli_copy(name);
    const char *repo = hub_without_scheme(name);
    return is_repo(repo) ? find_in_cache(repo) : find_only(repo, is_noted);
}

char *model_path_find(const char *name) { return find_path(name, 0); }

/* Several repositories have this name. 1 after reporting. */
static int is_ambiguous(const char *name)
{
    cli_strings names = {0};
    char *all = cli_copy("");

    find_short(name, &names);
    for (size_t i = 0; i < names.count; i++) {
        char *longer = cli_format("%s%s%s", all, i ? ", " : "", names.items[i]);
        free(all);
        all = longer;
    }
    const int several = names.count > 1;
    if (several)
        cli_error("%s: several models in the Hugging Face cache: %s; give a whole name", name, all);
    free(all);
    cli_strings_free(&names);
    return several;
}

char *model_path_resolve(const char *name)
{
    char *path = find_path(name, 1);
    const char *repo = hub_without_scheme(name);
    struct stat st;

    if (path) return path;
    if (!*repo) {
        cli_error("'%s' names no model: give a file, a folder, or a repository such as "
                  "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k",
                  name);
    } else if (is_repo(repo)) {
        cli_error(
            "%s: no such file, and not in the Hugging Face cache; to download it:  renyi pull %s",
            name, repo);
    } else if (!is_ambiguous(repo)) {
        const char *why = strerror(stat(name, &st) ? errno : ENOENT);
        if (hub_is_repo_name(repo) && !strchr(repo, '/') && !strstr(repo, ".safetensors"))
            cli_error(
                "%s: %s, and no such model in the Hugging Face cache; to download one:  renyi "
                "pull owner/%s",
                name, why, repo);
        else
            cli_error("%s: %s", name, why);
    }
    return NULL;
}

int model_part_resolve(char **out, const char *name)
{
    *out = name ? model_path_resolve(name) : NULL;
    return name && !*out ? -1 : 0;
}

const char *model_or_builtin(const char *name)
{
    if (name) return name;
    cli_note(
        "model: the small built-in one, which knows the ten classes of Imagenette; -m MODEL for "
        "others");
    return RENYI_MODEL_BUILTIN;
}

static char *last_part(const char *path, size_t length)
{
    while (length > 1 && path[length - 1] == '/') length--;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/') start--;
    return cli_format("%.*s", (int)(length - start), path + start);
}

/* The name of a repository in the Hugging Face cache, ".../models--org--NAME/snapshots/..."; NULL =
 * another path. */
static char *repository_name(const char *path)
{
    const char *from = strstr(path, "models--");
    const char *end = from ? strstr(from, "/snapshots/") : NULL;

    if (!end || memchr(from, '/', (size_t)(end - from))) return NULL;
    for (const char *next; (next = strstr(from, "--")) && next < end;) from = next + 2;
    return cli_format("%.*s", (int)(end - from), from);
}

char *model_path_title(const char *name)
{
    char *repository = repository_name(name);
    if (repository) return repository;
    char *title = last_part(name, strlen(name));
    const char *slash = strrchr(name, '/');

    /* Every checkpoint directory has a "model.safetensors"; the directory identifies it. */
    if (slash && slash > name &&
        (strcmp(title, "model.safetensors") == 0 || strcmp(title, "pytorch_model.bin") == 0)) {
        free(title);
        title = last_part(name, (size_t)(slash - name));
    }
    return title;
}

void model_note_assumed(const renyi_model *model, const char *name)
{
    renyi_model_info i;

    if (!renyi_model_is_assumed(model)) return;
    renyi_model_get_info(model, &i);
    const renyi_preprocess *p = &i.preprocess;
    cli_note(
        "%s: no config.json, and no architecture in its metadata. Assumed: %s, %u x %u pixels, "
        "%u head%s, mean %g %g %g, std %g %g %g. Other architectures have the same tensors; a "
        "config.json beside the file would tell",
        name, i.architecture, i.image_size, i.image_size, i.n_heads, i.n_heads == 1 ? "" : "s",
        p->mean[0], p->mean[1], p->mean[2], p->std[0], p->std[1], p->std[2]);
}

renyi_model *model_open_reported(const char *name, const renyi_options *opt, renyi_model_info *info)
{
    char *path = model_path_resolve(name);
    renyi_model *model = NULL;
    renyi_model_info found;
    renyi_error err = {0};

    if (!path) return NULL;
    const renyi_status status = renyi_model_open(&model, path, opt, &err);
    free(path);
    if (status != RENYI_OK) {
        cli_fail(&err);
        return NULL;
    }
    renyi_model_get_info(model, &found);
    if (found.dtype != RENYI_DTYPE_F32)
        cli_note("dtype: the blocks multiply in %s", renyi_dtype_name(found.dtype));
    model_note_assumed(model, name);
    if (info) *info = found;
    return model;
}

int model_no_classifier(const renyi_model_info *info)
{
    if (info->n_classes) return 0;
    if (strcmp(info->family, "clip") == 0 || strcmp(info->family, "siglip") == 0)
        cli_error("%s has no classifier: 'renyi classify --class-names FILE' and 'renyi zeroshot' "
                  "classify by class names, 'renyi embed' writes embeddings",
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

int dtype_list_parse(dtype_list *out, const char *verb, const char *text)
{
    *out = (dtype_list){.items = {RENYI_DTYPE_DEFAULT}, .n = text == NULL};
    for (const char *at = text; at;) {
        const size_t length = strcspn(at, ",");
        char *name = cli_format("%.*s", (int)length, at);
        const renyi_dtype dtype = dtype_from_name(name);
        const int is_known = dtype != RENYI_DTYPE_DEFAULT && dtype != RENYI_DTYPE_INT4;
        if (!is_known)
            options_usage_error(verb, "option '--dtype': '%s' is not one of %s", name,
                                DTYPE_CHOICES);
        free(name);
        if (!is_known) return CLI_USAGE;
        if (out->n == MAX_DTYPES)
            return options_usage_error(verb, "option '--dtype': more than %d", MAX_DTYPES);
        out->items[out->n++] = dtype;
        at = at[length] ? at + length + 1 : NULL;
    }
    return CLI_OK;
}

renyi_options model_options(const char *cpu, const char *dtype, uint64_t image_size)
{
    return (renyi_options){.struct_size = sizeof(renyi_options),
                           .cpu = cpu_from_name(cpu),
                           .image_size = (uint32_t)image_size,
                           .dtype = dtype_from_name(dtype)};
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

/* ---- the text tower ------------------------------------------------------------------------ */

int text_tower_open(text_tower *out, const char *model, const text_arguments *t,
                    const renyi_options *opt, uint32_t image_dim)
{
    char *path = model_path_resolve(model);
    renyi_error err = {0};
    int code = path ? 0 : -1;

    *out = (text_tower){0};
    if (!code && renyi_text_open(&out->text, path, opt, &err) != RENYI_OK) {
        cli_fail(&err);
        code = -1;
    }
    if (!code && renyi_tokenizer_open(&out->tokenizer, t->tokenizer ? t->tokenizer : path, opt,
                                      &err) != RENYI_OK) {
        cli_error("%s%s", cli_reason(&err), t->tokenizer ? "" : " with --tokenizer FILE");
        code = -1;
    }
    if (!code) renyi_text_get_info(out->text, &out->info);
    if (!code && image_dim && out->info.embed_dim != image_dim) {
        cli_error("the image tower's embeddings have %u numbers, the text tower's %u", image_dim,
                  out->info.embed_dim);
        code = -1;
    }
    free(path);
    return code;
}

void text_tower_free(text_tower *t)
{
    renyi_tokenizer_free(t->tokenizer);
    renyi_text_free(t->text);
}

int text_tower_embed(const text_tower *t, const cli_strings *texts, int truncate,
                     uint32_t n_threads, float *rows)
{
    work_progress progress = {.title = "texts"};
    const renyi_text_session_options o = {.struct_size = sizeof o,
                                          .n_threads = n_threads,
                                          .progress = work_on_progress,
                                          .progress_user = &progress};
    renyi_text_session *session = NULL;
    renyi_error err = {0};
    renyi_status st = renyi_text_session_new(&session, t->text, &o, &err);

    if (st == RENYI_OK)
        st = renyi_embed_texts(session, t->tokenizer, (const char *const *)texts->items,
                               (uint32_t)texts->count, truncate, rows, &err);
    work_progress_free(&progress);
    renyi_text_session_free(session);
    if (st == RENYI_OK) return 0;
    cli_fail(&err);
    return -1;
}

/* ---- class names --------------------------------------------------------------------------- */

static const size_t max_labels_bytes = 16u << 20;

static int read_labels(class_names *out, const char *path)
{
    char *why;

    if (read_lines(path, max_labels_bytes, &out->lines, &why)) {
        cli_error("%s: %s; a file with one class name per line is needed", path, why);
        free(why);
        return -1;
    }
    if (out->lines.count == out->n_classes) return 0;
    cli_error("%s: %zu labels for a model with %u classes; one label per line is needed", path,
              out->lines.count, out->n_classes);
    return -1;
}

int class_names_open(class_names *out, const renyi_model *model, const renyi_model_info *info,
                     const char *path)
{
    *out = (class_names){.model = model, .n_classes = info->n_classes};
    return path ? read_labels(out, path) : 0;
}

const char *class_name(class_names *l, uint32_t index)
{
    if (l->lines.count) return l->lines.items[index];
    const char *name = renyi_model_label(l->model, index);
    if (name) return name;
    snprintf(l->fallback, sizeof l->fallback, "class %u", index);
    return l->fallback;
}

void class_names_free(class_names *l) { cli_strings_free(&l->lines); }
