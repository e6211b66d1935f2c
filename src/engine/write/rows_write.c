/* rows_write.c - rows to files that other programs read: embeddings of images and texts as
 * safetensors, .npy or lines of JSON, and visual tokens of a LLaVA as safetensors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "renyi/gallery.h"
#include "renyi/llava.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 32, VERSION = 1 }; /* of visual tokens */

/* ---- embeddings as safetensors ------------------------------------------------------------- */

static ry_tensor tensor_of(const char *name, const float *rows, size_t n, size_t dim)
{
    return (ry_tensor){.name = name,
                       .dtype = RY_F32,
                       .n_dims = 2,
                       .shape = {n, dim},
                       .data = rows,
                       .bytes = (uint64_t)n * dim * sizeof *rows};
}

static renyi_status write_tensors(const char *path, const renyi_embeddings *e,
                                  const char *const lists[4], renyi_error *err)
{
    static const char *const keys[] = {"files", "texts", "model", "policy"};
    const char *meta[2 * 4 + 1] = {NULL};
    ry_tensor tensors[2];
    size_t n_meta = 0, n_tensors = 0;
    for (size_t i = 0; i < 4; i++)
        if (lists[i]) {
            meta[n_meta++] = keys[i];
            meta[n_meta++] = lists[i];
        }
    if (e->n_images) tensors[n_tensors++] = tensor_of("image", e->images, e->n_images, e->dim);
    if (e->n_texts) tensors[n_tensors++] = tensor_of("text", e->texts, e->n_texts, e->dim);
    const ry_safetensors_content content = {tensors, n_tensors, meta, NULL, NULL};
    return ry_safetensors_write(path, &content, NULL, err);
}

static renyi_status write_safetensors(const char *path, const renyi_embeddings *e, renyi_error *err)
{
    char *texts[4] = {NULL};
    renyi_status st = RENYI_OK;
    if (e->n_images) st = ry_json_list_text(&texts[0], e->files, e->n_images, NULL, err);
    if (!st && e->n_texts) st = ry_json_list_text(&texts[1], e->words, e->n_texts, NULL, err);
    if (!st) st = ry_json_clean_text(&texts[2], e->model, NULL, err);
    if (!st) st = ry_json_clean_text(&texts[3], e->policy, NULL, err);
    if (!st) st = write_tensors(path, e, (const char *const *)texts, err);
    for (size_t i = 0; i < 4; i++) ry_free(NULL, texts[i]);
    return st;
}

/* ---- embeddings as lines of JSON ----------------------------------------------------------- */

/* A decimal point in every locale; nine digits identify every float. */
static size_t print_number(char *out, size_t size, float x)
{
    const size_t n = (size_t)snprintf(out, size, "%.9g", (double)x);
    char *comma = memchr(out, ',', n);
    if (comma) *comma = '.';
    return n;
}

/* line: buffer for dim numbers and the text around them, without the name */
static renyi_status write_line(ry_output_file *f, const char *key, const char *name,
                               const float *row, size_t dim, char *line, renyi_error *err)
{
    enum { NUMBER = 20 };
    char *text = NULL;
    size_t n = 0;
    json_t *object = json_pack("{s:o}", key, ry_json_clean(name));
    if (!object) return ry_fail_nomem(err, strlen(name));
    RY_TRY(ry_json_text(&text, object, NULL, err));
    /* {"file":"a.jpg"} without its last brace, which comes after the numbers */
    renyi_status st = ry_output_file_write(f, text, strlen(text) - 1, err);
    n += (size_t)snprintf(line, NUMBER, ",\"embedding\":[");
    for (size_t i = 0; i < dim; i++) {
        if (i) line[n++] = ',';
        n += print_number(line + n, NUMBER, row[i]);
    }
    memcpy(line + n, "]}\n", 3);
    if (!st) st = ry_output_file_write(f, line, n + 3, err);
    ry_free(NULL, text);
    return st;
}

static renyi_status write_jsonl(const char *path, const renyi_embeddings *e, renyi_error *err)
{
    const size_t size = (size_t)e->dim * 21 + 64, dim = e->dim;
    ry_output_file f;
    char *line = ry_alloc(NULL, size, 1);
    renyi_status st = line ? RENYI_OK : ry_fail_nomem(err, size);
    if (!st) st = ry_output_file_open(&f, path, NULL, err);
    if (!st) {
        for (size_t i = 0; !st && i < e->n_images; i++)
            st = write_line(&f, "file", e->files[i], e->images + i * dim, dim, line, err);
        for (size_t i = 0; !st && i < e->n_texts; i++)
            st = write_line(&f, "text", e->words[i], e->texts + i * dim, dim, line, err);
        st = ry_output_file_close(&f, st, NULL, err);
    }
    ry_free(NULL, line);
    return st;
}

/* ---- embeddings ---------------------------------------------------------------------------- */

renyi_status renyi_embeddings_write(const char *path, renyi_rows_format format,
                                    const renyi_embeddings *given, renyi_error *err)
{
    renyi_embeddings e;
    if (!path || !given) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_embeddings_write: NULL");
    RY_TRY(ry_struct_read(&e, sizeof e, given, "renyi_embeddings", err));
    if (!e.dim || !(e.n_images + e.n_texts) || (e.n_images && (!e.images || !e.files)) ||
        (e.n_texts && (!e.texts || !e.words)))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_embeddings: needs rows, their width, and a name for each");
    const ry_npy_part parts[] = {{e.images, e.n_images}, {e.texts, e.n_texts}};
    switch (format) {
    case RENYI_ROWS_SAFETENSORS: return write_safetensors(path, &e, err);
    case RENYI_ROWS_NPY: return ry_npy_write(path, parts, 2, e.dim, NULL, err);
    case RENYI_ROWS_JSONL: return write_jsonl(path, &e, err);
    }
    return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_embeddings_write: unknown format %d",
                   (int)format);
}

/* ---- visual tokens ------------------------------------------------------------------------- */

/* What the file consists of, besides the rows of the caller. */
typedef struct visual_parts {
    ry_tensor *tensors; /* [2 n] tokens and positions of each image */
    char *names;        /* [2 n, NAME] */
    int32_t *positions; /* [all rows] */
    char *files, *model, *policy;
} visual_parts;

static void free_parts(visual_parts *p)
{
    ry_free(NULL, p->tensors);
    ry_free(NULL, p->names);
    ry_free(NULL, p->positions);
    ry_free(NULL, p->files);
    ry_free(NULL, p->model);
    ry_free(NULL, p->policy);
}

static renyi_status check_image(const renyi_visual_rows *r, size_t i, renyi_error *err)
{
    if (r->name && r->n && r->rows && r->kept) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "renyi_visual_file: image %zu needs a name, and rows with their patches", i);
}

static renyi_status count_rows(const renyi_visual_file *f, size_t *n, renyi_error *err)
{
    *n = 0;
    for (size_t i = 0; i < f->n_pictures; i++) {
        RY_TRY(check_image(&f->pictures[i], i, err));
        *n += f->pictures[i].n;
    }
    return RENYI_OK;
}

/* Tensors 2i and 2i + 1, of image i; its positions begin at `at`. */
static void describe_image(visual_parts *p, const renyi_visual_file *f, size_t i, size_t at)
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

static renyi_status make_tensors(visual_parts *p, const renyi_visual_file *f, renyi_error *err)
{
    size_t n_rows, at = 0;
    RY_TRY(count_rows(f, &n_rows, err));
    p->tensors = ry_alloc(NULL, f->n_pictures, 2 * sizeof *p->tensors);
    p->names = ry_alloc(NULL, f->n_pictures, 2 * NAME);
    p->positions = ry_alloc(NULL, n_rows, sizeof *p->positions);
    if (!p->tensors || !p->names || !p->positions)
        return ry_fail_nomem(err, n_rows * sizeof *p->positions);
    for (size_t i = 0; i < f->n_pictures; i++) {
        describe_image(p, f, i, at);
        at += f->pictures[i].n;
    }
    return RENYI_OK;
}

/* The metadata that is JSON. */
static renyi_status make_texts(visual_parts *p, const renyi_visual_file *f, renyi_error *err)
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

static renyi_status write_parts(const char *path, const visual_parts *p, const renyi_visual_file *f,
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

renyi_status renyi_visual_write(const char *path, const renyi_visual_file *given, renyi_error *err)
{
    renyi_visual_file f;
    visual_parts p = {0};
    if (!path || !given) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_write: NULL");
    RY_TRY(ry_struct_read(&f, sizeof f, given, "renyi_visual_file", err));
    if (!f.lm_dim || !f.n_pictures || !f.pictures)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_file: needs images and a width");
    renyi_status st = make_tensors(&p, &f, err);
    if (!st) st = make_texts(&p, &f, err);
    if (!st) st = write_parts(path, &p, &f, err);
    free_parts(&p);
    return st;
}
