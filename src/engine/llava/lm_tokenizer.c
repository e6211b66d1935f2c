/* lm_tokenizer.c - the tokenizer of language models: finds and reads its files, turns texts into
 * ids and back, and writes conversations as LLaVA-1.5 was trained with them (template vicuna_v1).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/status.h"
#include "engine/clip/tokenizer.h"
#include "engine/core/engine_options.h"
#include "renyi/llava.h"
#include "text/spm.h"

#include <string.h>

struct renyi_lm_tokenizer {
    renyi_allocator al;
    ry_spm *spm;
    char *source;
};

#define LOOKED_FOR "tokenizer.json, tokenizer.model and pieces.json"
static const char *const file_names[] = {"tokenizer.json", "tokenizer.model", "pieces.json", NULL};

#define SYSTEM                                                                 \
    "A chat between a curious user and an artificial intelligence assistant. " \
    "The assistant gives helpful, detailed, and polite answers to the user's questions."

/* ---- files --------------------------------------------------------------------------------- */

static renyi_status read_model(const ry_file_reader *r, const ry_file_text *f, const char *path,
                               ry_spm **out, renyi_error *err)
{
    json_t *added = NULL, *config = NULL;
    renyi_status st = ry_json_beside(r, path, "added_tokens.json", 0, &added, err);
    if (!st) st = ry_json_beside(r, path, "tokenizer_config.json", 1, &config, err);
    const ry_spm_beside beside = {added, config, "added_tokens.json", "tokenizer_config.json"};
    if (!st) st = ry_spm_read_model(out, f->text, f->size, path, &beside, r->al, err);
    json_decref(added);
    json_decref(config);
    return st;
}

static renyi_status read_json(const ry_file_reader *r, const ry_file_text *f, const char *path,
                              ry_spm **out, renyi_error *err)
{
    const ry_json_limits limits = {r->max_bytes, RY_TOKENIZER_VALUES, 0};
    json_t *root;
    RY_TRY(ry_json_parse(&root, f->text, f->size, path, &limits, err));
    const renyi_status st = json_is_array(root) ? ry_spm_read_pieces(out, root, path, r->al, err)
                                                : ry_spm_read_json(out, root, path, r->al, err);
    json_decref(root);
    return st;
}

/* A SentencePiece model is a Protocol Buffer and never begins with { or [. */
static int is_json(const ry_file_text *f, const char *path)
{
    const size_t n = strlen(path);
    return (n > 5 && !strcmp(path + n - 5, ".json")) ||
           (f->size && (f->text[0] == '{' || f->text[0] == '['));
}

/* A GGUF has its tokenizer among its values. */
static int is_gguf(const char *path)
{
    ry_mapped_file file; /* opening it never waits, and reads nothing from a pipe */
    if (ry_mapped_file_open(&file, path, 0, NULL)) return 0;
    const int is = file.size >= 4 && !memcmp(file.data, "GGUF", 4);
    ry_mapped_file_close(&file);
    return is;
}

static renyi_status read_gguf(const char *path, const renyi_options *o, ry_spm **out,
                              renyi_error *err)
{
    ry_mapped_file file;
    ry_gguf g;
    RY_TRY(ry_mapped_file_open(&file, path, ry_limits(&o->limits).max_file_bytes, err));
    renyi_status st = ry_gguf_parse(&g, file.data, file.size, path, &o->limits, &o->allocator, err);
    if (!st) st = ry_spm_read_gguf(out, &g, path, &o->allocator, err);
    ry_gguf_free(&g, &o->allocator);
    ry_mapped_file_close(&file);
    return st;
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

/* ---- opening ------------------------------------------------------------------------------- */

static renyi_status read_any(renyi_lm_tokenizer *t, const char *path, const renyi_options *o,
                             renyi_error *err)
{
    const ry_file_reader r = {&t->al, ry_limits(&o->limits).max_header_bytes};
    if (is_gguf(path)) {
        t->source = ry_strdup(&t->al, path);
        return t->source ? read_gguf(path, o, &t->spm, err) : ry_fail_nomem(err, strlen(path) + 1);
    }
    RY_TRY(ry_file_find(&r, path, file_names, LOOKED_FOR, &t->source, err));
    return read_file(&r, t->source, &t->spm, err);
}

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
    renyi_status st = read_any(t, path, &o, err);
    if (!st && t->spm->scores)
        st = ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                     "%s: a SentencePiece model of type unigram; language models here have BPE, as "
                     "Llama's",
                     t->source);
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

/* Every call that writes ids ends with this: their number, and an error if they did not fit. */
static renyi_status end_ids(const ry_id_sink *sink, size_t *n, renyi_error *err)
{
    if (n) *n = sink->n;
    if (sink->n > sink->capacity && sink->ids)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "the text needs %zu tokens, and at most %zu fit: shorten it", sink->n,
                       sink->capacity);
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
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "%s: no piece for the beginning of a text",
                       t->source);
    if (flags & RENYI_LM_BOS) ry_id_put(&sink, (uint32_t)t->spm->bos);
    RY_TRY(ry_spm_encode(t->spm, text ? text : "", size, flags, 0, &sink, err));
    return end_ids(&sink, n, err);
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
                       "renyi_lm_stream_put: an argument is NULL, or the stream was not zeroed");
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

/* Appends as many whole characters of `from` as fit with a NUL, and nothing after one that did not
 * fit. */
static void append_text(char *text, size_t size, size_t *written, size_t length, const char *from,
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
        append_text(text, size, &written, all, part, got);
        all += got;
    }
    if (size) text[written] = '\0';
    if (length) *length = all;
    return RENYI_OK;
}

const char *renyi_lm_tokenizer_piece(const renyi_lm_tokenizer *t, int32_t id, size_t *size)
{
    const ry_symbol piece = ry_bpe_symbol(t->spm->bpe, id);
    *size = piece.n;
    return piece.at;
}

/* ---- conversations to ids ------------------------------------------------------------------ */

/* Text between special ids is joined before it is encoded: a piece may span two parts. */
typedef struct prompt_text {
    const renyi_lm_tokenizer *t;
    ry_id_sink out;
    char *at; /* [capacity] */
    size_t n, capacity;
} prompt_text;

static void append_part(prompt_text *x, const char *part)
{
    const size_t n = strlen(part);
    memcpy(x->at + x->n, part, n);
    x->n += n;
}

/* Encodes the text so far. is_inner: it follows eos. */
static renyi_status end_section(prompt_text *x, int is_inner, renyi_error *err)
{
    const size_t n = x->n;
    x->n = 0;
    return ry_spm_encode(x->t->spm, x->at, n, RENYI_LM_PLAIN, is_inner, &x->out, err);
}

/* A buffer for the whole conversation, so for any section of it. */
static renyi_status take_buffer(prompt_text *x, const renyi_lvlm_turn *turns, uint32_t n_turns,
                                const char *system, renyi_error *err)
{
    int fits = ry_add_size(strlen(system), 64, &x->capacity);
    for (uint32_t i = 0; i < n_turns; i++) {
        fits = fits && ry_add_size(x->capacity, strlen(turns[i].question) + 32, &x->capacity);
        if (turns[i].answer)
            fits = fits && ry_add_size(x->capacity, strlen(turns[i].answer), &x->capacity);
    }
    x->at = fits ? ry_alloc(&x->t->al, x->capacity, 1) : NULL;
    return x->at ? RENYI_OK : ry_fail_nomem(err, x->capacity);
}

/* " USER: " and, if it has the image, "<image>\n". The image cuts the text in two; the second part
 * is encoded as a new text. */
static renyi_status open_turn(prompt_text *x, int is_inner, int has_image, renyi_error *err)
{
    append_part(x, "USER: ");
    if (!has_image) return RENYI_OK;
    RY_TRY(end_section(x, is_inner, err));
    ry_id_put(&x->out, (uint32_t)RENYI_LVLM_IMAGE);
    append_part(x, "\n");
    return RENYI_OK;
}

/* image_turn: RENYI_NONE = no image. */
static renyi_status append_turns(prompt_text *x, const renyi_lvlm_turn *turns, uint32_t n_turns,
                                 uint32_t image_turn, renyi_error *err)
{
    for (uint32_t i = 0; i < n_turns; i++) {
        const int has_image = i == image_turn;
        RY_TRY(open_turn(x, i > 0, has_image, err));
        append_part(x, turns[i].question);
        append_part(x, " ASSISTANT:");
        if (turns[i].answer) {
            append_part(x, " ");
            append_part(x, turns[i].answer);
        }
        RY_TRY(end_section(x, i > 0 && !has_image, err));
        if (turns[i].answer) ry_id_put(&x->out, (uint32_t)x->t->spm->eos);
    }
    return RENYI_OK;
}

static renyi_status check_turns(const renyi_lm_tokenizer *t, const renyi_lvlm_turn *turns,
                                uint32_t n_turns, renyi_error *err)
{
    for (uint32_t i = 0; i < n_turns; i++)
        if (!turns[i].question || (!turns[i].answer && i + 1 < n_turns))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "turn %u of %u: every turn has a question, and all but the last an "
                           "answer",
                           i, n_turns);
    if (t->spm->bos < 0 || t->spm->eos < 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: no pieces for the beginning and end of a text, which vicuna_v1 needs",
                       t->source);
    return RENYI_OK;
}

renyi_status renyi_lvlm_prompt(const renyi_lm_tokenizer *t, const renyi_lvlm_turn *turns,
                               uint32_t n_turns, const renyi_lvlm_prompt_options *opt, int32_t *ids,
                               size_t max, size_t *n, renyi_error *err)
{
    renyi_lvlm_prompt_options o = {0};
    if (!t || !turns || !n_turns || (!ids && max))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_lvlm_prompt: an argument is NULL, or there are no turns");
    if (opt) RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_lvlm_prompt_options", err));
    RY_TRY(check_turns(t, turns, n_turns, err));
    if (o.image_turn >= n_turns)
        return ry_fail(err, RENYI_ERR_ARG, -1, "the image belongs to turn %u, and there are %u",
                       o.image_turn, n_turns);
    const char *system = o.system ? o.system : SYSTEM;
    prompt_text x = {.t = t, .out = {ids, max, 0}};
    renyi_status st = take_buffer(&x, turns, n_turns, system, err);
    if (st) return st;
    ry_id_put(&x.out, (uint32_t)t->spm->bos);
    append_part(&x, system);
    if (*system) append_part(&x, " ");
    st = append_turns(&x, turns, n_turns, o.without_image ? RENYI_NONE : o.image_turn, err);
    ry_free(&t->al, x.at);
    return st ? st : end_ids(&x.out, n, err);
}

renyi_status renyi_lvlm_prompt_next(const renyi_lm_tokenizer *t, const char *question, int32_t *ids,
                                    size_t max, size_t *n, renyi_error *err)
{
    const renyi_lvlm_turn turn = {question, NULL};
    if (!t || !question || (!ids && max))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lvlm_prompt_next: an argument is NULL");
    RY_TRY(check_turns(t, &turn, 1, err));
    prompt_text x = {.t = t, .out = {ids, max, 0}};
    RY_TRY(take_buffer(&x, &turn, 1, "", err));
    ry_id_put(&x.out, (uint32_t)t->spm->eos);
    append_part(&x, "USER: ");
    append_part(&x, question);
    append_part(&x, " ASSISTANT:");
    const renyi_status st = end_section(&x, 1, err);
    ry_free(&t->al, x.at);
    return st ? st : end_ids(&x.out, n, err);
}
