/* lm_tokenizer.c - the tokenizer of language models: finds and reads its files, then texts and ids.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/lm_tokenizer.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/status.h"
#include "engine/clip/tokenizer.h"
#include "engine/core/engine_options.h"

#include <string.h>

#define LOOKED_FOR "tokenizer.json, tokenizer.model and pieces.json"
static const char *const names[] = {"tokenizer.json", "tokenizer.model", "pieces.json", NULL};

/* ---- files --------------------------------------------------------------------------------- */

/* A JSON file beside the tokenizer; *out is NULL when there is none. */
static renyi_status load_beside(const ry_file_reader *r, const char *path, const char *name,
                                json_t **out, renyi_error *err)
{
    const renyi_limits limits = {.max_header_bytes = r->max_bytes};
    char *other = ry_file_beside(r, path, name);
    *out = NULL;
    if (!other) return ry_fail_nomem(err, strlen(path) + strlen(name));
    const renyi_status st =
        ry_file_exists(other) ? ry_json_load_file(out, other, &limits, err) : RENYI_OK;
    ry_free(r->al, other);
    return st;
}

static renyi_status read_model(const ry_file_reader *r, const ry_file_text *f, const char *path,
                               ry_spm **out, renyi_error *err)
{
    json_t *added = NULL, *config = NULL;
    renyi_status st = load_beside(r, path, "added_tokens.json", &added, err);
    if (!st) st = load_beside(r, path, "tokenizer_config.json", &config, err);
    const ry_spm_beside beside = {added, config, "added_tokens.json", "tokenizer_config.json"};
    if (!st) st = ry_spm_read_model(out, f->text, f->size, path, &beside, r->al, err);
    json_decref(added);
    json_decref(config);
    return st;
}

static renyi_status read_json(const ry_file_reader *r, const ry_file_text *f, const char *path,
                              ry_spm **out, renyi_error *err)
{
    const ry_json_limits limits = {r->max_bytes, 0, 0};
    json_t *root;
    RY_TRY(ry_json_parse(&root, f->text, f->size, path, &limits, err));
    const renyi_status st = json_is_array(root) ? ry_spm_read_pieces(out, root, path, r->al, err)
                                                : ry_spm_read_json(out, root, path, r->al, err);
    json_decref(root);
    return st;
}

/* No Protocol Buffer begins with either of these: they would be groups. */
static int is_json(const ry_file_text *f, const char *path)
{
    const size_t n = strlen(path);
    return (n > 5 && !strcmp(path + n - 5, ".json")) ||
           (f->size && (f->text[0] == '{' || f->text[0] == '['));
}

static renyi_status read_file(const ry_file_reader *r, const char *path, ry_spm **out,
                              renyi_error *err)
{
    ry_file_text f = {0};
    RY_TRY(ry_file_load(r, path, &f, err));
    const renyi_status st =
        is_json(&f, path) ? read_json(r, &f, path, out, err) : read_model(r, &f, path, out, err);
    ry_free(r->al, f.text);
    return st;
}

/* ---- doors --------------------------------------------------------------------------------- */

renyi_status renyi_lm_tokenizer_open(renyi_lm_tokenizer **out, const char *path,
                                     const renyi_options *opt, renyi_error *err)
{
    renyi_options o;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_tokenizer_open: out is NULL");
    *out = NULL;
    if (!path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_tokenizer_open: path is NULL");
    RY_TRY(ry_options_read(&o, opt, err));
    renyi_lm_tokenizer *t = ry_calloc(&o.allocator, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    t->al = o.allocator;
    const ry_file_reader r = {&t->al, ry_limits(&o.limits).max_header_bytes};
    renyi_status st = ry_file_find(&r, path, names, LOOKED_FOR, &t->source, err);
    if (!st) st = read_file(&r, t->source, &t->spm, err);
    if (st) {
        renyi_lm_tokenizer_free(t);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

void renyi_lm_tokenizer_free(renyi_lm_tokenizer *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_spm_free(t->spm);
    ry_free(&al, t->source);
    ry_free(&al, t);
}

void renyi_lm_tokenizer_get_info(const renyi_lm_tokenizer *t, renyi_lm_tokenizer_info *info)
{
    const ry_spm *s = t->spm;
    const uint32_t image = ry_bpe_find(s->bpe, (ry_symbol){"<image>", 7});
    *info = (renyi_lm_tokenizer_info){.source = t->source,
                                      .kind = s->kind,
                                      .n_ids = s->bpe->n_ids,
                                      .bos = s->bos,
                                      .eos = s->eos,
                                      .unk = s->unk,
                                      .image = image == RY_SPM_NONE ? -1 : (int32_t)image};
}

/* ---- texts to ids -------------------------------------------------------------------------- */

renyi_status ry_lm_ids_end(const ry_id_sink *sink, size_t *n, renyi_error *err)
{
    if (n) *n = sink->n;
    if (sink->n > sink->room && sink->ids)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "the text needs %zu tokens, there is room for %zu: shorten it", sink->n,
                       sink->room);
    return RENYI_OK;
}

renyi_status renyi_lm_tokenizer_encode(const renyi_lm_tokenizer *t, const char *text, size_t size,
                                       uint32_t flags, int32_t *ids, size_t max, size_t *n,
                                       renyi_error *err)
{
    ry_id_sink sink = {ids, max, 0};
    if (!t || (!text && size) || (!ids && max))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_tokenizer_encode: an argument is NULL");
    if (flags & RENYI_LM_BOS && t->spm->bos < 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "%s: no piece for the begin of a text",
                       t->source);
    if (flags & RENYI_LM_BOS) ry_id_put(&sink, (uint32_t)t->spm->bos);
    RY_TRY(ry_spm_encode(t->spm, text ? text : "", size, flags, 0, &sink, err));
    return ry_lm_ids_end(&sink, n, err);
}

/* ---- ids to text --------------------------------------------------------------------------- */

static renyi_status no_such_id(const renyi_lm_tokenizer *t, int32_t id, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_ARG, -1, "id %d is not in the vocabulary of %u (%s)", id,
                   t->spm->bpe->n_ids, t->source);
}

renyi_status renyi_lm_stream_put(const renyi_lm_tokenizer *t, renyi_lm_stream *s, int32_t id,
                                 char text[RENYI_LM_STREAM_ROOM], size_t *length, renyi_error *err)
{
    int is_bad;
    if (!t || !s || !text || s->n_waiting >= sizeof s->waiting)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_lm_stream_put: an argument is NULL, or a stream that was not zeroed");
    const size_t n = ry_spm_put(t->spm, s, id, text, &is_bad);
    if (is_bad) return no_such_id(t, id, err);
    text[n] = '\0';
    if (length) *length = n;
    return RENYI_OK;
}

void renyi_lm_stream_end(renyi_lm_stream *s, char text[RENYI_LM_STREAM_ROOM], size_t *length)
{
    const size_t n = ry_spm_flush(s, text);
    text[n] = '\0';
    if (length) *length = n;
    *s = (renyi_lm_stream){.flags = s->flags};
}

/* As many whole characters of `from` as fit with a NUL; none behind one that did not fit. */
static void append(char *text, size_t size, size_t *written, size_t length, const char *from,
                   size_t n)
{
    if (*written != length) return;
    if (length + n >= size) {
        n = size > length ? size - length - 1 : 0;
        while (n && ((unsigned char)from[n] & 0xc0u) == 0x80) n--;
    }
    if (n) memcpy(text + *written, from, n);
    *written += n;
}

renyi_status renyi_lm_tokenizer_decode(const renyi_lm_tokenizer *t, const int32_t *ids, size_t n,
                                       uint32_t flags, char *text, size_t size, size_t *length,
                                       renyi_error *err)
{
    renyi_lm_stream stream = {.flags = flags};
    char part[RENYI_LM_STREAM_ROOM];
    size_t all = 0, written = 0;
    if (!t || (!ids && n) || (!text && size))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_tokenizer_decode: an argument is NULL");
    for (size_t i = 0; i <= n; i++) {
        int is_bad = 0;
        const size_t got = i < n ? ry_spm_put(t->spm, &stream, ids[i], part, &is_bad)
                                 : ry_spm_flush(&stream, part);
        if (is_bad) return no_such_id(t, ids[i], err);
        append(text, size, &written, all, part, got);
        all += got;
    }
    if (size) text[written] = '\0';
    if (length) *length = all;
    return RENYI_OK;
}
