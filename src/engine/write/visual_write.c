/* visual_write.c - visual tokens to a file that other engines read: renyi_visual_write of llava.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "formats/safetensors.h"
#include "renyi/llava.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 32, VERSION = 1 };

/* What the file is made of, beside the rows: those stay where the caller has them. */
typedef struct parts {
    ry_tensor *tensors; /* [2 n] tokens and positions of each picture */
    char *names;        /* [2 n, NAME] */
    int32_t *positions; /* [all rows] */
    char *files, *model, *policy;
} parts;

static void free_parts(parts *p)
{
    ry_free(NULL, p->tensors);
    ry_free(NULL, p->names);
    ry_free(NULL, p->positions);
    ry_free(NULL, p->files);
    ry_free(NULL, p->model);
    ry_free(NULL, p->policy);
}

/* ---- tensors ------------------------------------------------------------------------------- */

static renyi_status check_picture(const renyi_visual_rows *r, size_t i, renyi_error *err)
{
    if (r->name && r->n && r->rows && r->kept) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "renyi_visual_file: picture %zu; a name, and rows with their patches wanted", i);
}

static renyi_status count_rows(const renyi_visual_file *f, size_t *n, renyi_error *err)
{
    *n = 0;
    for (size_t i = 0; i < f->n_pictures; i++) {
        RY_TRY(check_picture(&f->pictures[i], i, err));
        *n += f->pictures[i].n;
    }
    return RENYI_OK;
}

/* Of picture i: tensors 2 i and 2 i + 1; its positions begin at `at`. */
static void describe(parts *p, const renyi_visual_file *f, size_t i, size_t at)
{
    const renyi_visual_rows *r = &f->pictures[i];
    char *name = p->names + 2 * i * NAME, *other = name + NAME;
    int32_t *positions = p->positions + at;
    snprintf(name, NAME, "tokens.%zu", i);
    snprintf(other, NAME, "positions.%zu", i);
    for (uint32_t k = 0; k < r->n; k++)
        positions[k] = r->kept[k] == RENYI_NONE ? -1 : (int32_t)r->kept[k];
    p->tensors[2 * i] = (ry_tensor){.name = name,
                                    .dtype = RY_F32,
                                    .n_dims = 2,
                                    .shape = {r->n, f->lm_dim},
                                    .data = r->rows,
                                    .bytes = (uint64_t)r->n * f->lm_dim * sizeof *r->rows};
    p->tensors[2 * i + 1] = (ry_tensor){.name = other,
                                        .dtype = RY_I32,
                                        .n_dims = 1,
                                        .shape = {r->n},
                                        .data = positions,
                                        .bytes = (uint64_t)r->n * sizeof *positions};
}

static renyi_status make_tensors(parts *p, const renyi_visual_file *f, renyi_error *err)
{
    size_t n_rows, at = 0;
    RY_TRY(count_rows(f, &n_rows, err));
    p->tensors = ry_alloc(NULL, f->n_pictures, 2 * sizeof *p->tensors);
    p->names = ry_alloc(NULL, f->n_pictures, 2 * NAME);
    p->positions = ry_alloc(NULL, n_rows, sizeof *p->positions);
    if (!p->tensors || !p->names || !p->positions)
        return ry_fail_nomem(err, n_rows * sizeof *p->positions);
    for (size_t i = 0; i < f->n_pictures; i++) {
        describe(p, f, i, at);
        at += f->pictures[i].n;
    }
    return RENYI_OK;
}

/* ---- metadata ------------------------------------------------------------------------------ */

static renyi_status make_texts(parts *p, const renyi_visual_file *f, renyi_error *err)
{
    const char **names = ry_alloc(NULL, f->n_pictures, sizeof *names);
    if (!names) return ry_fail_nomem(err, f->n_pictures * sizeof *names);
    for (size_t i = 0; i < f->n_pictures; i++) names[i] = f->pictures[i].name;
    renyi_status st = ry_json_list_text(&p->files, names, f->n_pictures, NULL, err);
    ry_free(NULL, names);
    if (!st) st = ry_json_clean_text(&p->model, f->model, NULL, err);
    if (!st) st = ry_json_clean_text(&p->policy, f->policy, NULL, err);
    return st;
}

static renyi_status write_parts(const char *path, const parts *p, const renyi_visual_file *f,
                                renyi_error *err)
{
    enum { KEYS = 7 };
    char version[16], image_size[16], patch_size[16];
    const char *values[KEYS][2] = {{"format", "renyi.visual_tokens"},
                                   {"version", version},
                                   {"files", p->files},
                                   {"model", p->model},
                                   {"policy", p->policy},
                                   {"image_size", f->image_size ? image_size : NULL},
                                   {"patch_size", f->patch_size ? patch_size : NULL}};
    const char *meta[2 * KEYS + 1] = {NULL};
    size_t n = 0;
    snprintf(version, sizeof version, "%d", VERSION);
    snprintf(image_size, sizeof image_size, "%u", f->image_size);
    snprintf(patch_size, sizeof patch_size, "%u", f->patch_size);
    for (size_t i = 0; i < KEYS; i++) {
        if (!values[i][1]) continue;
        meta[n++] = values[i][0];
        meta[n++] = values[i][1];
    }
    const ry_safetensors_content content = {p->tensors, 2 * f->n_pictures, meta, NULL, NULL};
    return ry_safetensors_write(path, &content, NULL, err);
}

/* ---- door ---------------------------------------------------------------------------------- */

renyi_status renyi_visual_write(const char *path, const renyi_visual_file *given, renyi_error *err)
{
    renyi_visual_file f;
    parts p = {0};
    if (!path || !given) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_write: NULL");
    RY_TRY(ry_struct_read(&f, sizeof f, given, "renyi_visual_file", err));
    if (!f.lm_dim || !f.n_pictures || !f.pictures)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_file: pictures and a width wanted");
    renyi_status st = make_tensors(&p, &f, err);
    if (!st) st = make_texts(&p, &f, err);
    if (!st) st = write_parts(path, &p, &f, err);
    free_parts(&p);
    return st;
}
