/* tokenizer.c - CLIP's tokenizer: finds its files, reads them, and turns texts into ids and back.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "engine/clip/tokenizer.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "formats/gunzip.h"
#include "renyi/clip.h"
#include "text/bpe.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct renyi_tokenizer {
    renyi_allocator al;
    ry_bpe *bpe;
    char *source;
};

#define LOOKED_FOR                                                                  \
    "tokenizer.json, vocab.json with merges.txt, bpe_simple_vocab_16e6.txt.gz and " \
    "bpe_simple_vocab_16e6.txt"
static const char *const file_names[] = {"tokenizer.json", "vocab.json",
                                         "bpe_simple_vocab_16e6.txt.gz",
                                         "bpe_simple_vocab_16e6.txt", NULL};

/* ---- finding and loading files ------------------------------------------------------------- */

renyi_status ry_file_load(const ry_file_reader *r, const char *path, ry_file_text *out,
                          renyi_error *err)
{
    uint8_t *bytes = NULL, *text = NULL;
    size_t size = 0;
    renyi_status st = ry_file_read(&bytes, &size, path, r->max_bytes, NULL, NULL, err);
    if (st) return ry_fail_in(err, st, path);
    if (ry_is_gzip(bytes, size)) {
        st = ry_gunzip(&text, &out->size, bytes, size, path, r->max_bytes, r->al, err);
    } else if ((text = ry_alloc(r->al, size, 1))) {
        memcpy(text, bytes, size);
        out->size = size;
    } else {
        st = ry_fail_nomem(err, size);
    }
    ry_free(NULL, bytes);
    out->text = (char *)text;
    return st;
}

/* folder + "/" + name; the folder is the first n characters of path, n = 0 the working folder. */
static char *in_folder(const ry_file_reader *r, const char *path, size_t n, const char *name)
{
    const size_t size = n + strlen(name) + 2;
    char *out = ry_alloc(r->al, size, 1);
    if (out) snprintf(out, size, "%.*s%s%s", (int)n, path, n ? "/" : "", name);
    return out;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

char *ry_file_beside(const ry_file_reader *r, const char *path, const char *name)
{
    return in_folder(r, path, folder_length(path), name);
}

int ry_file_exists(const char *path)
{
    struct stat st;
    return !stat(path, &st);
}

static int is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Is this a file of weights? Its tokenizer is in the same folder. */
static int is_weights(const char *path)
{
    static const char *const tails[] = {".safetensors", ".safetensors.index.json", ".pt", ".pth",
                                        ".bin"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const size_t m = strlen(tails[i]);
        if (n > m && !strcmp(path + n - m, tails[i])) return 1;
    }
    return 0;
}

renyi_status ry_file_find(const ry_file_reader *r, const char *path, const char *const *names,
                          const char *looked_for, char **out, renyi_error *err)
{
    const int is_in = is_folder(path);
    const size_t length = strlen(path);
    if (!is_in && !is_weights(path)) {
        *out = ry_strdup(r->al, path);
        return *out ? RENYI_OK : ry_fail_nomem(err, length + 1);
    }
    const size_t n = is_in ? length : folder_length(path);
    for (; *names; names++) {
        *out = in_folder(r, path, n, *names);
        if (!*out) return ry_fail_nomem(err, n + strlen(*names) + 2);
        if (ry_file_exists(*out)) return RENYI_OK;
        ry_free(r->al, *out);
        *out = NULL;
    }
    return ry_fail(err, RENYI_ERR_IO, -1,
                   "%.200s: no tokenizer %s: looked for %s; put one there or give the file", path,
                   is_in ? "in this folder" : "beside it", looked_for);
}

/* ---- CLIP's file formats ------------------------------------------------------------------- */

/* The first character that is not blank; NUL if there is none. */
static char first_char(const ry_file_text *f)
{
    size_t i = 0;
    while (i < f->size && f->text[i] && strchr(" \t\r\n", f->text[i])) i++;
    return i < f->size ? f->text[i] : '\0';
}

/* vocab.json with merges.txt beside it. */
static renyi_status read_vocab(const ry_file_reader *r, const json_t *root, const char *path,
                               ry_bpe **out, renyi_error *err)
{
    char *other = ry_file_beside(r, path, "merges.txt");
    ry_file_text merges = {0};
    if (!other) return ry_fail_nomem(err, strlen(path) + 16);
    renyi_status st = ry_file_load(r, other, &merges, err);
    if (!st) st = ry_bpe_read_vocab(out, root, path, merges.text, merges.size, other, r->al, err);
    ry_free(r->al, merges.text);
    ry_free(r->al, other);
    return st;
}

static renyi_status read_json(const ry_file_reader *r, const ry_file_text *c, const char *path,
                              ry_bpe **out, renyi_error *err)
{
    const ry_json_limits limits = {r->max_bytes, 0, 0};
    json_t *root;
    RY_TRY(ry_json_parse(&root, c->text, c->size, path, &limits, err));
    const renyi_status st = ry_json_object(root, "model")
                                ? ry_bpe_read_tokenizer(out, root, path, r->al, err)
                                : read_vocab(r, root, path, out, err);
    json_decref(root);
    return st;
}

static renyi_status read_file(const ry_file_reader *r, const char *path, ry_bpe **out,
                              renyi_error *err)
{
    ry_file_text c = {0};
    RY_TRY(ry_file_load(r, path, &c, err));
    const renyi_status st = first_char(&c) == '{'
                                ? read_json(r, &c, path, out, err)
                                : ry_bpe_read_merges(out, c.text, c.size, path, r->al, err);
    ry_free(r->al, c.text);
    return st;
}

/* ---- the public functions ------------------------------------------------------------------ */

renyi_status renyi_tokenizer_open(renyi_tokenizer **out, const char *path, const renyi_options *opt,
                                  renyi_error *err)
{
    renyi_options o;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tokenizer_open: out is NULL");
    *out = NULL;
    if (!path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tokenizer_open: path is NULL");
    RY_TRY(ry_options_read(&o, opt, err));
    renyi_tokenizer *t = ry_calloc(&o.allocator, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    t->al = o.allocator;
    const ry_file_reader r = {&t->al, ry_limits(&o.limits).max_header_bytes};
    renyi_status st = ry_file_find(&r, path, file_names, LOOKED_FOR, &t->source, err);
    if (!st) st = read_file(&r, t->source, &t->bpe, err);
    if (st) {
        renyi_tokenizer_free(t);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

void renyi_tokenizer_free(renyi_tokenizer *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_bpe_free(t->bpe);
    ry_free(&al, t->source);
    ry_free(&al, t);
}

void renyi_tokenizer_get_info(const renyi_tokenizer *t, renyi_tokenizer_info *info)
{
    const ry_bpe *b = t->bpe;
    *info =
        (renyi_tokenizer_info){t->source, b->n_ids, b->n_merges, (int32_t)b->sot, (int32_t)b->eot};
}

renyi_status renyi_tokenizer_encode(const renyi_tokenizer *t, const char *text, size_t size,
                                    uint32_t context, int truncate, int32_t *ids, uint32_t *n,
                                    renyi_error *err)
{
    if (!t || !ids || (!text && size) || context < 2)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "renyi_tokenizer_encode: needs a tokenizer, text and ids, and a context of at least 2");
    ry_id_sink sink = {ids + 1, context - 2, 0};
    RY_TRY(ry_bpe_encode(t->bpe, text, size, &sink, err));
    if (sink.n > sink.capacity && !truncate)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "the text needs %zu tokens, the model reads %u: shorten it, or cut it off "
                       "with --truncate",
                       sink.n + 2, context);
    const size_t used = sink.n < sink.capacity ? sink.n : sink.capacity;
    ids[0] = (int32_t)t->bpe->sot;
    ids[used + 1] = (int32_t)t->bpe->eot;
    memset(ids + used + 2, 0, (context - 2 - used) * sizeof *ids);
    if (n) *n = (uint32_t)used + 2;
    return RENYI_OK;
}

renyi_status renyi_tokenizer_count(const renyi_tokenizer *t, const char *text, size_t size,
                                   uint32_t *n, renyi_error *err)
{
    ry_id_sink sink = {NULL, 0, 0};
    if (!t || !n || (!text && size))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tokenizer_count: an argument is NULL");
    RY_TRY(ry_bpe_encode(t->bpe, text, size, &sink, err));
    *n = (uint32_t)sink.n + 2; /* at most one id per byte, so it fits */
    return RENYI_OK;
}

renyi_status renyi_tokenizer_decode(const renyi_tokenizer *t, const int32_t *ids, size_t n,
                                    char *text, size_t size, size_t *length, renyi_error *err)
{
    if (!t || (!ids && n) || (!text && size))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tokenizer_decode: an argument is NULL");
    return ry_bpe_decode(t->bpe, ids, n, text, size, length, err);
}

const char *renyi_tokenizer_piece(const renyi_tokenizer *t, int32_t id, size_t *size)
{
    const ry_symbol piece = ry_bpe_symbol(t->bpe, id);
    *size = piece.n;
    return piece.at;
}
