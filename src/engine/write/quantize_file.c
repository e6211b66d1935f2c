/* quantize_file.c - writes a quantized copy of a checkpoint piece by piece, with the metadata that
 * makes one file the whole model.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "engine/write/quantize_file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "formats/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- tensors ------------------------------------------------------------------------------- */

renyi_status ry_quantize_reserve(ry_quantize_file *f, size_t most, renyi_error *err)
{
    f->tensors = ry_alloc(&f->al, most, sizeof *f->tensors);
    f->from = ry_alloc(&f->al, most, sizeof *f->from);
    f->names = ry_alloc(&f->al, most, sizeof *f->names);
    if (f->tensors && f->from && f->names) return RENYI_OK;
    return ry_fail_nomem(err, most * sizeof *f->names);
}

size_t ry_quantize_add(ry_quantize_file *f, ry_tensor t, const ry_tensor *from)
{
    t.bytes = ry_tensor_elements(&t) * ry_dtype_size(t.dtype);
    f->result.bytes_out += t.bytes;
    f->tensors[f->n] = t;
    f->from[f->n] = from;
    return f->n++;
}

/* ry_safetensors_fill */
static renyi_status fill_piece(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                               renyi_error *err)
{
    ry_quantize_file *f = user;
    const size_t i = (size_t)(t - f->tensors);
    if (f->from[i]) {
        memcpy(out, (const char *)f->from[i]->data + at, n);
        if (at + n == t->bytes) ry_tensors_drop_pages(f->ckpt.tensors, f->from[i]);
    } else {
        RY_TRY(f->make(f->make_user, i, at, out, n, err));
    }
    f->done += n;
    if (f->progress && f->progress(f->progress_user, f->done, f->result.bytes_out))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

/* ---- metadata ------------------------------------------------------------------------------ */

enum { SCHEME, CONFIG, PREPROCESSOR, OPEN_CLIP, HEADS, ARCHITECTURE, LM_SCHEME, KEYS };
static const char *const own_keys[KEYS] = {RY_QUANT_KEY,
                                           "config.json",
                                           "preprocessor_config.json",
                                           "open_clip_config.json",
                                           "num_heads",
                                           "architecture",
                                           RY_QUANT_LM_KEY};

/* Memory of the metadata. */
typedef struct meta_texts {
    const char **pairs; /* key, value, ..., NULL */
    char *scheme, *config, *preprocessor, *open_clip;
    char heads[16];
} meta_texts;

static int is_own(const char *key)
{
    for (size_t i = 0; i < KEYS; i++)
        if (strcmp(key, own_keys[i]) == 0) return 1;
    return 0;
}

/* Our own pairs first, then what else the original has. */
static renyi_status list_pairs(const char ***out, const ry_tensors *set,
                               const char *const values[KEYS], const renyi_allocator *al,
                               renyi_error *err)
{
    size_t n_metas = 0, n = 0;
    while (ry_tensors_meta_key(set, n_metas)) n_metas++;
    const size_t most = 2 * (n_metas + KEYS) + 1;
    const char **pairs = *out = ry_alloc(al, most, sizeof *pairs);
    if (!pairs) return ry_fail_nomem(err, most * sizeof *pairs);
    for (size_t i = 0; i < KEYS; i++) {
        if (!values[i]) continue;
        pairs[n++] = own_keys[i];
        pairs[n++] = values[i];
    }
    for (size_t i = 0; i < n_metas; i++) {
        const char *key = ry_tensors_meta_key(set, i);
        if (is_own(key)) continue;
        pairs[n++] = key;
        pairs[n++] = ry_tensors_meta(set, key);
    }
    pairs[n] = NULL;
    return RENYI_OK;
}

static renyi_status make_meta(meta_texts *m, const ry_quantize_file *f,
                              const ry_quantize_meta *meta, renyi_error *err)
{
    const int is_lm = strcmp(meta->scheme_key, RY_QUANT_LM_KEY) == 0;
    if (!meta->scheme) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the metadata");
    RY_TRY(ry_json_text(&m->scheme, meta->scheme, &f->al, err));
    RY_TRY(ry_json_text(&m->config, json_incref(f->ckpt.config), &f->al, err));
    RY_TRY(ry_json_text(&m->preprocessor, json_incref(f->ckpt.preprocessor_config), &f->al, err));
    RY_TRY(ry_json_text(&m->open_clip, json_incref(f->ckpt.open_clip_config), &f->al, err));
    snprintf(m->heads, sizeof m->heads, "%u", meta->n_heads);
    const char *const values[KEYS] = {
        [SCHEME] = is_lm ? NULL : m->scheme,       [CONFIG] = m->config,
        [PREPROCESSOR] = m->preprocessor,          [OPEN_CLIP] = m->open_clip,
        [HEADS] = meta->n_heads ? m->heads : NULL, [ARCHITECTURE] = meta->architecture,
        [LM_SCHEME] = is_lm ? m->scheme : NULL};
    return list_pairs(&m->pairs, f->ckpt.tensors, values, &f->al, err);
}

/* ---- the file ------------------------------------------------------------------------------ */

static int is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A file that is being read must not be overwritten; nor an index of shards, which is not among the
 * files that tensors are read from. */
static renyi_status check_target(const ry_checkpoint *ckpt, const char *out, renyi_error *err)
{
    if (!strcmp(ckpt->tensors_path, RENYI_MODEL_BUILTIN)) return RENYI_OK; /* not a file */
    if (!is_same_file(ckpt->tensors_path, out) && !ry_tensors_reads(ckpt->tensors, out))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "%s is a file of the model itself; name another", out);
}

renyi_status ry_quantize_write(ry_quantize_file *f, const char *out, const ry_quantize_meta *meta,
                               renyi_error *err)
{
    const ry_tensors *set = f->ckpt.tensors;
    meta_texts texts = {0};
    for (size_t i = 0; i < ry_tensors_count(set); i++)
        f->result.bytes_in += ry_tensors_at(set, i)->bytes;
    renyi_status st = make_meta(&texts, f, meta, err); /* first: it takes over the scheme */
    if (!st) st = check_target(&f->ckpt, out, err);
    const ry_safetensors_content content = {f->tensors, f->n, texts.pairs, fill_piece, f};
    if (!st) st = ry_safetensors_write(out, &content, &f->al, err);
    ry_free(&f->al, texts.scheme);
    ry_free(&f->al, texts.config);
    ry_free(&f->al, texts.preprocessor);
    ry_free(&f->al, texts.open_clip);
    ry_free(&f->al, texts.pairs);
    return st;
}

void ry_quantize_close(ry_quantize_file *f)
{
    ry_free(&f->al, f->tensors);
    ry_free(&f->al, f->from);
    ry_free(&f->al, f->names);
    ry_checkpoint_close(&f->ckpt, &f->al);
}
