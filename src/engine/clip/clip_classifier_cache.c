/* clip_classifier_cache.c - the file that keeps a classifier's rows. What is read back is checked
 * like any file of a stranger.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "engine/clip/clip_classifier.h"
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
    const size_t room = strlen(cache) + 64;
    c->cache_path = ry_alloc(&c->al, room, 1);
    if (!c->cache_path) return ry_fail_nomem(err, room);
    if (stat(cache, &st) == 0 && S_ISDIR(st.st_mode))
        snprintf(c->cache_path, room, "%s/classifier-%016" PRIx64 ".safetensors", cache,
                 c->info.key);
    else
        snprintf(c->cache_path, room, "%s", cache);
    return RENYI_OK;
}

/* What stands in the metadata beside the rows. */
typedef struct labels {
    char key[24], scale[32];
    char *names, *templates; /* JSON */
} labels;

static renyi_status make_labels(labels *l, const renyi_classifier *c, const ry_prompts *p,
                                renyi_error *err)
{
    *l = (labels){0};
    snprintf(l->key, sizeof l->key, "%016" PRIx64, c->info.key);
    snprintf(l->scale, sizeof l->scale, "%.9g", c->info.scale);
    RY_TRY(ry_json_list_text(&l->names, p->names, p->n_classes, &c->al, err));
    return ry_json_list_text(&l->templates, p->templates, p->n_templates, &c->al, err);
}

static void free_labels(labels *l, const renyi_allocator *al)
{
    ry_free(al, l->names);
    ry_free(al, l->templates);
}

/* ---- read ---------------------------------------------------------------------------------- */

static renyi_status check_meta(const ry_tensors *set, const labels *l, renyi_error *err)
{
    const struct {
        const char *key, *want, *what;
    } facts[] = {{VERSION_KEY, VERSION, "is not a classifier of this version"},
                 {"key", l->key, "was made of another model, tokenizer or texts"},
                 {"names", l->names, "was made of other class names"},
                 {"templates", l->templates, "was made of other templates"}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        const char *is = ry_tensors_meta(set, facts[i].key);
        if (!is || strcmp(is, facts[i].want) != 0)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s", facts[i].what);
    }
    return RENYI_OK;
}

/* Rows of the right shape, each of length 1. */
static renyi_status take_rows(float *rows, const renyi_classifier_info *info, const ry_tensors *set,
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
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "holds a row %zu that is not of length 1", c);
    }
    return RENYI_OK;
}

renyi_status ry_classifier_cache_parse(renyi_classifier *c, const ry_prompts *p, const void *bytes,
                                       size_t size, renyi_error *err)
{
    labels l;
    ry_tensors *set = NULL;
    renyi_status st = make_labels(&l, c, p, err);
    if (!st) st = ry_safetensors_parse(&set, bytes, size, "it", NULL, &c->al, err);
    if (!st) st = check_meta(set, &l, err);
    if (!st) st = take_rows(c->rows, &c->info, set, err);
    ry_tensors_free(set);
    free_labels(&l, &c->al);
    return st;
}

/* Most bytes that a file of this classifier has: the rows, and a header that may write a character
 * of names and templates in six. */
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
        ry_file_read(&bytes, &size, c->cache_path, most_bytes(c, p), &is_missing, &err);
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
    labels l;
    renyi_status st = make_labels(&l, c, p, err);
    const char *const meta[] = {VERSION_KEY, VERSION,     "key",   l.key,   "names", l.names,
                                "templates", l.templates, "scale", l.scale, NULL};
    const ry_tensor rows = {.name = "rows",
                            .dtype = RY_F32,
                            .n_dims = 2,
                            .shape = {c->info.n_classes, c->info.embed_dim},
                            .data = c->rows,
                            .bytes = (uint64_t)c->info.n_classes * c->info.embed_dim * 4};
    const ry_safetensors_content content = {&rows, 1, meta, NULL, NULL};
    if (!st) st = ry_safetensors_write(c->cache_path, &content, &c->al, err);
    free_labels(&l, &c->al);
    return st;
}
