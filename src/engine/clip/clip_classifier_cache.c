/* clip_classifier_cache.c - the file that caches a classifier's rows. It is checked like any file
 * of unknown origin when it is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/clip/clip_handles.h"
#include "formats/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define VERSION_KEY "renyi.classifier"
#define VERSION "1"

renyi_status ry_classifier_cache_path(renyi_classifier *c, const char *cache, renyi_error *err)
{
    struct stat st;
    const size_t size = strlen(cache) + 64;
    c->cache_path = ry_alloc(&c->al, size, 1);
    if (!c->cache_path) return ry_fail_nomem(err, size);
    if (stat(cache, &st) == 0 && S_ISDIR(st.st_mode))
        snprintf(c->cache_path, size, "%s/classifier-%016" PRIx64 ".safetensors", cache,
                 c->info.key);
    else
        snprintf(c->cache_path, size, "%s", cache);
    return RENYI_OK;
}

/* The metadata of the file. */
typedef struct cache_meta {
    char key[24], scale[32], bias[32];
    char *names, *templates; /* JSON */
} cache_meta;

static renyi_status make_meta(cache_meta *m, const renyi_classifier *c, const ry_prompts *p,
                              renyi_error *err)
{
    *m = (cache_meta){0};
    snprintf(m->key, sizeof m->key, "%016" PRIx64, c->info.key);
    snprintf(m->scale, sizeof m->scale, "%.9g", c->info.scale);
    snprintf(m->bias, sizeof m->bias, "%.9g", c->info.bias);
    RY_TRY(ry_json_list_text(&m->names, p->names, p->n_classes, &c->al, err));
    return ry_json_list_text(&m->templates, p->templates, p->n_templates, &c->al, err);
}

static void free_meta(cache_meta *m, const renyi_allocator *al)
{
    ry_free(al, m->names);
    ry_free(al, m->templates);
}

/* ---- read ---------------------------------------------------------------------------------- */

static renyi_status check_meta(const ry_tensors *set, const cache_meta *m, renyi_error *err)
{
    const struct {
        const char *key, *want, *what;
    } facts[] = {{VERSION_KEY, VERSION, "is not a classifier of this version"},
                 {"key", m->key, "was made of another model, tokenizer or texts"},
                 {"names", m->names, "was made of other class names"},
                 {"templates", m->templates, "was made of other templates"}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        const char *is = ry_tensors_meta(set, facts[i].key);
        if (!is || strcmp(is, facts[i].want) != 0)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s", facts[i].what);
    }
    return RENYI_OK;
}

/* Rows of the right shape, each of length 1. */
static renyi_status copy_rows(float *rows, const renyi_classifier_info *info, const ry_tensors *set,
                              renyi_error *err)
{
    const size_t C = info->n_classes, E = info->embed_dim;
    const ry_tensor *t = ry_tensors_find(set, "rows");
    if (!t || t->dtype != RY_F32 || t->n_dims != 2 || t->shape[0] != C || t->shape[1] != E)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "has no tensor 'rows' F32 [%zu, %zu]", C, E);
    memcpy(rows, t->data, C * E * sizeof *rows);
    for (size_t c = 0; c < C; c++) {
        double square = 0.0;
        for (size_t k = 0; k < E; k++) square += (double)rows[c * E + k] * (double)rows[c * E + k];
        if (!(fabs(square - 1.0) < 1e-3))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "row %zu is not of length 1", c);
    }
    return RENYI_OK;
}

renyi_status ry_classifier_cache_parse(renyi_classifier *c, const ry_prompts *p, const void *bytes,
                                       size_t size, renyi_error *err)
{
    cache_meta m;
    ry_tensors *set = NULL;
    renyi_status st = make_meta(&m, c, p, err);
    if (!st) st = ry_safetensors_parse(&set, bytes, size, "it", NULL, &c->al, err);
    if (!st) st = check_meta(set, &m, err);
    if (!st) st = copy_rows(c->rows, &c->info, set, err);
    ry_tensors_free(set);
    free_meta(&m, &c->al);
    return st;
}

/* The largest possible size of this classifier's file: the rows, and a header in which JSON may
 * write each byte of names and templates with six. */
static uint64_t most_bytes(const renyi_classifier *c, const ry_prompts *p)
{
    uint64_t text = 0;
    for (uint32_t i = 0; i < p->n_classes; i++) text += strlen(p->names[i]) + 3;
    for (uint32_t i = 0; i < p->n_templates; i++) text += strlen(p->templates[i]) + 3;
    return (uint64_t)c->info.n_classes * c->info.embed_dim * sizeof(float) + 6 * text + 65536;
}

int ry_classifier_cache_read(renyi_classifier *c, const ry_prompts *p)
{
    renyi_error err = {0};
    int is_missing = 0;
    uint8_t *bytes = NULL;
    size_t size = 0;
    renyi_status st =
        ry_file_read(&bytes, &size, c->cache_path, most_bytes(c, p), NULL, &is_missing, &err);
    if (!st) st = ry_classifier_cache_parse(c, p, bytes, size, &err);
    ry_free(NULL, bytes);
    if (!st) return 1;
    if (!is_missing)
        snprintf(c->cache_message, sizeof c->cache_message, "%.200s: %.280s", c->cache_path,
                 err.message);
    return 0;
}

/* ---- write --------------------------------------------------------------------------------- */

renyi_status ry_classifier_cache_write(const renyi_classifier *c, const ry_prompts *p,
                                       renyi_error *err)
{
    cache_meta m;
    renyi_status st = make_meta(&m, c, p, err);
    const char *const meta[] = {VERSION_KEY,
                                VERSION,
                                "key",
                                m.key,
                                "names",
                                m.names,
                                "templates",
                                m.templates,
                                "scale",
                                m.scale,
                                "bias",
                                m.bias,
                                "probabilities",
                                c->info.is_sigmoid ? "sigmoid" : "softmax",
                                NULL};
    const ry_tensor rows = {.name = "rows",
                            .dtype = RY_F32,
                            .n_dims = 2,
                            .shape = {c->info.n_classes, c->info.embed_dim},
                            .data = c->rows,
                            .bytes = (uint64_t)c->info.n_classes * c->info.embed_dim * 4};
    const ry_safetensors_content content = {&rows, 1, meta, NULL, NULL};
    if (!st) st = ry_safetensors_write(c->cache_path, &content, &c->al, err);
    free_meta(&m, &c->al);
    return st;
}
