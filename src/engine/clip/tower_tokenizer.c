/* tower_tokenizer.c - reads the tokenizer of a text tower: which kind the file has, how texts are
 * cleaned, and which ids begin, end and fill a text.
 *
 * CLIP's is a byte-pair encoding whose words end with "</w>". SigLIP's is T5's unigram model
 * (spiece.model, or tokenizer.json of type Unigram), SigLIP 2's is Gemma's BPE. These two are told
 * from the tokenizers of language models by their kind, or by their pieces <pad> and <eos>.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/clip/tower_tokenizer.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/status.h"

#include <string.h>

/* ---- which kind of file -------------------------------------------------------------------- */

/* The first character that is not blank; NUL if there is none. */
static char first_char(const ry_file_text *f)
{
    size_t i = 0;
    while (i < f->size && f->text[i] && strchr(" \t\r\n", f->text[i])) i++;
    return i < f->size ? f->text[i] : '\0';
}

/* A model of SentencePiece begins with its first piece: field 1, a length, field 1 of the piece. */
static int is_model(const ry_file_text *f)
{
    return f->size > 3 && f->text[0] == '\n' && f->text[2] == '\n';
}

static int has_piece(const json_t *vocab, const char *piece)
{
    return json_is_object(vocab) && json_object_get(vocab, piece) != NULL;
}

/* 1 if tokenizer.json is T5's or Gemma's; else CLIP's reader takes it or says what it is. */
static int is_sentencepiece(const json_t *model)
{
    const json_t *vocab = json_object_get(model, "vocab");
    const char *type = json_string_value(json_object_get(model, "type"));
    if (type && !strcmp(type, "Unigram")) return 1;
    return has_piece(vocab, "<pad>") && has_piece(vocab, "<eos>");
}

/* ---- files --------------------------------------------------------------------------------- */

/* vocab.json with merges.txt beside it. */
static renyi_status read_vocab(renyi_tokenizer *t, const ry_file_reader *r, const json_t *root,
                               renyi_error *err)
{
    char *other = ry_file_beside(r, t->source, "merges.txt");
    ry_file_text merges = {0};
    if (!other) return ry_fail_nomem(err, strlen(t->source) + 16);
    renyi_status st = ry_file_load(r, other, &merges, err);
    if (!st)
        st = ry_bpe_read_vocab(&t->clip, root, t->source, merges.text, merges.size, other, r->al,
                               err);
    ry_free(r->al, merges.text);
    ry_free(r->al, other);
    return st;
}

/* The configs beside a tokenizer; NULL = not there. */
typedef struct configs {
    json_t *tokenizer, *open_clip; /* tokenizer_config.json, open_clip_config.json */
    const json_t *root;            /* tokenizer.json itself; borrowed */
} configs;

/* The name of a special token in tokenizer_config.json: a text, or { "content": text }. */
static const char *token_name(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

static int32_t id_of(const ry_spm *s, const char *name)
{
    const uint32_t id =
        name && *name ? ry_bpe_find(s->bpe, (ry_symbol){name, strlen(name)}) : RY_SPM_NONE;
    return id == RY_SPM_NONE ? -1 : (int32_t)id;
}

/* ---- the ids around a text ----------------------------------------------------------------- */

/* "single": [{ "SpecialToken": { "id": "<bos>" } }, { "Sequence": ... }, ...] of tokenizer.json. */
static void read_template(renyi_tokenizer *t, const json_t *root)
{
    const json_t *post = json_object_get(root, "post_processor");
    const json_t *single = json_object_get(post, "single");
    int is_behind = 0;
    if (!json_array_size(single)) return;
    t->sot = t->eot = -1;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *part = json_array_get(single, i);
        const json_t *token = json_object_get(part, "SpecialToken");
        if (json_object_get(part, "Sequence")) is_behind = 1;
        if (!token) continue;
        const int32_t id = id_of(t->spm, json_string_value(json_object_get(token, "id")));
        *(is_behind ? &t->eot : &t->sot) = id;
    }
}

static renyi_status read_ends(renyi_tokenizer *t, const configs *c, renyi_error *err)
{
    const ry_spm *s = t->spm;
    t->sot = -1;
    t->eot = s->eos;
    read_template(t, c->root);
    int has_sot = t->sot >= 0, has_eot = t->eot >= 0;
    const char *file = "tokenizer_config.json";
    RY_TRY(ry_json_bool(c->tokenizer, "add_bos_token", &has_sot, file, err));
    RY_TRY(ry_json_bool(c->tokenizer, "add_eos_token", &has_eot, file, err));
    t->sot = has_sot ? (t->sot >= 0 ? t->sot : s->bos) : -1;
    t->eot = has_eot ? (t->eot >= 0 ? t->eot : s->eos) : -1;
    t->pad = id_of(s, token_name(c->tokenizer, "pad_token"));
    if (t->pad < 0) t->pad = s->scores ? s->eos : s->pad; /* SigLIP fills with the end of text */
    if (t->pad < 0) t->pad = 0;
    if (t->eot < 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: no id ends a text; SigLIP's tokenizers have </s> or <eos>", t->source);
    return RENYI_OK;
}

/* ---- how texts are cleaned ----------------------------------------------------------------- */

/* As transformers' SiglipTokenizer: only the end of text and the unknown piece are special, and
 * take the spaces around them. */
static void clean_as_siglip(ry_spm *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->special.n; i++) {
        const uint32_t id = s->special.ids[i];
        if ((int32_t)id != s->eos && (int32_t)id != s->unk) continue;
        s->special.ids[n++] = id;
        s->strips[id] = RY_STRIP_LEFT | RY_STRIP_RIGHT;
    }
    s->special.n = n;
    s->clean = RY_CLEAN_SIGLIP;
    s->prefix = RY_PREFIX_FIRST;
}

static renyi_status choose_clean(renyi_tokenizer *t, const configs *c, renyi_error *err)
{
    const json_t *text = ry_json_object(ry_json_object(c->open_clip, "model_cfg"), "text_cfg");
    const char *how = "whitespace"; /* OpenCLIP's default */
    if (text) {
        RY_TRY(ry_json_string(ry_json_object(text, "tokenizer_kwargs"), "clean", &how,
                              "open_clip_config.json", err));
        if (strcmp(how, "canonicalize") != 0)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "open_clip_config.json: text_cfg.tokenizer_kwargs.clean '%.40s'; with "
                           "this tokenizer only canonicalize is supported",
                           how);
        t->spm->clean = RY_CLEAN_OPEN_CLIP;
        t->clean = "canonicalize";
    } else if (t->spm->scores) {
        clean_as_siglip(t->spm);
        t->clean = "siglip";
    } else {
        t->spm->clean = RY_CLEAN_LOWER;
        t->clean = "lower";
    }
    return RENYI_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

static renyi_status finish_spm(renyi_tokenizer *t, const ry_file_reader *r, const json_t *root,
                               renyi_error *err)
{
    configs c = {.root = root};
    renyi_status st = ry_json_beside(r, t->source, "tokenizer_config.json", 1, &c.tokenizer, err);
    if (!st) st = ry_json_beside(r, t->source, "open_clip_config.json", 0, &c.open_clip, err);
    if (!st) st = read_ends(t, &c, err);
    if (!st) st = choose_clean(t, &c, err);
    json_decref(c.tokenizer);
    json_decref(c.open_clip);
    t->kind = t->spm->scores ? "unigram" : "bpe";
    return st;
}

static renyi_status read_json(renyi_tokenizer *t, const ry_file_reader *r, const ry_file_text *f,
                              renyi_error *err)
{
    const ry_json_limits limits = {r->max_bytes, RY_TOKENIZER_VALUES, 0};
    json_t *root;
    RY_TRY(ry_json_parse(&root, f->text, f->size, t->source, &limits, err));
    const json_t *model = ry_json_object(root, "model");
    renyi_status st;
    if (!model) {
        st = read_vocab(t, r, root, err);
    } else if (is_sentencepiece(model)) {
        st = ry_spm_read_json(&t->spm, root, t->source, r->al, err);
        if (!st) st = finish_spm(t, r, root, err);
    } else {
        st = ry_bpe_read_tokenizer(&t->clip, root, t->source, r->al, err);
    }
    json_decref(root);
    return st;
}

static renyi_status read_model(renyi_tokenizer *t, const ry_file_reader *r, const ry_file_text *f,
                               renyi_error *err)
{
    RY_TRY(ry_spm_read_model(&t->spm, f->text, f->size, t->source, NULL, r->al, err));
    if (!t->spm->scores && (id_of(t->spm, "<pad>") < 0 || id_of(t->spm, "<eos>") < 0))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: a SentencePiece model of type BPE without <pad> and <eos>: the "
                       "tokenizer of a language model, not of CLIP or SigLIP",
                       t->source);
    return finish_spm(t, r, NULL, err);
}

renyi_status ry_tower_tokenizer_read(renyi_tokenizer *t, const ry_file_reader *r, renyi_error *err)
{
    ry_file_text f = {0};
    renyi_status st;
    RY_TRY(ry_file_load(r, t->source, &f, err));
    if (is_model(&f))
        st = read_model(t, r, &f, err);
    else if (first_char(&f) == '{')
        st = read_json(t, r, &f, err);
    else
        st = ry_bpe_read_merges(&t->clip, f.text, f.size, t->source, r->al, err);
    ry_free(r->al, f.text);
    if (st || t->spm) return st;
    t->sot = (int32_t)t->clip->sot;
    t->eot = (int32_t)t->clip->eot;
    t->pad = 0;
    t->kind = t->clean = "clip";
    return RENYI_OK;
}

/* ---- text of ids --------------------------------------------------------------------------- */

static renyi_status put_ids(const renyi_tokenizer *t, const int32_t *ids, size_t n, ry_buffer *out,
                            renyi_error *err)
{
    renyi_lm_stream stream = {0};
    char text[RENYI_LM_STREAM_ROOM];
    for (size_t i = 0; i < n && ids[i] != t->eot; i++) {
        int is_bad;
        const size_t m = ry_spm_put(t->spm, &stream, ids[i], text, &is_bad);
        if (is_bad)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "id %d, at place %zu, is not in the vocabulary of %u", ids[i], i,
                           t->spm->bpe->n_ids);
        ry_buffer_put(out, text, m);
    }
    ry_buffer_put(out, text, ry_spm_flush(&stream, text));
    return out->failed ? ry_fail_nomem(err, out->wanted) : RENYI_OK;
}

renyi_status ry_tower_tokenizer_decode(const renyi_tokenizer *t, const int32_t *ids, size_t n,
                                       char *text, size_t size, size_t *length, renyi_error *err)
{
    ry_buffer all = {.al = &t->al};
    const renyi_status st = put_ids(t, ids, n, &all, err);
    if (!st) {
        size_t fits = size && all.size >= size ? size - 1 : all.size;
        while (fits && fits < all.size && ((unsigned char)all.bytes[fits] & 0xc0) == 0x80) fits--;
        if (size && fits) memcpy(text, all.bytes, fits);
        if (size) text[fits] = '\0';
        if (length) *length = all.size;
    }
    ry_buffer_free(&all);
    return st;
}
