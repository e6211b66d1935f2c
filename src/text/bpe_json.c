/* bpe_json.c - vocabularies in JSON, as Hugging Face writes them: vocab.json with merges.txt, and
 * tokenizer.json with both inside.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "text/bpe.h"

#include <stdio.h>
#include <string.h>

static ry_symbol symbol_of(const json_t *string)
{
    return (ry_symbol){json_string_value(string), json_string_length(string)};
}

/* ---- symbols ------------------------------------------------------------------------------- */

renyi_status ry_bpe_count_ids(const json_t *vocab, const char *what, uint32_t *n_ids,
                              renyi_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)vocab, key, value)
    {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= RY_BPE_MAX_IDS)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: the id of '%.64s' is not a whole number from 0 to %d", what, key,
                           RY_BPE_MAX_IDS - 1);
        if ((uint32_t)id >= *n_ids) *n_ids = (uint32_t)id + 1;
    }
    return RENYI_OK;
}

static renyi_status add_symbols(ry_bpe *b, const json_t *vocab, const char *what, renyi_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)vocab, key, value)
    {
        const uint32_t id = (uint32_t)json_integer_value(value);
        const renyi_status st = ry_bpe_add(b, (ry_symbol){key, strlen(key)}, id, err);
        if (st) return ry_fail_in(err, st, what);
    }
    return RENYI_OK;
}

/* On failure of what follows, `st`, there is no vocabulary. */
static renyi_status end(ry_bpe **out, renyi_status st, const char *what, renyi_error *err)
{
    if (!st) {
        st = ry_bpe_finish(*out, err);
        if (st) (void)ry_fail_in(err, st, what);
    }
    if (st) {
        ry_bpe_free(*out);
        *out = NULL;
    }
    return st;
}

static renyi_status make(ry_bpe **out, uint32_t n_ids, size_t n_merges, const char *what,
                         const renyi_allocator *al, renyi_error *err)
{
    const uint32_t n = n_merges > RY_BPE_MAX_IDS ? RY_BPE_MAX_IDS + 1 : (uint32_t)n_merges;
    const renyi_status st = ry_bpe_new(out, n_ids, n, al, err);
    return st ? ry_fail_in(err, st, what) : RENYI_OK;
}

/* ---- vocab.json ---------------------------------------------------------------------------- */

renyi_status ry_bpe_read_vocab(ry_bpe **out, const json_t *vocab, const char *what,
                               const char *merges, size_t size, const char *what_merges,
                               const renyi_allocator *al, renyi_error *err)
{
    uint32_t n_ids = 0;
    *out = NULL;
    if (!json_object_size(vocab))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: an object of symbols and ids expected",
                       what);
    RY_TRY(ry_bpe_count_ids(vocab, what, &n_ids, err));
    RY_TRY(make(out, n_ids, ry_bpe_count_lines(merges, size), what_merges, al, err));
    renyi_status st = add_symbols(*out, vocab, what, err);
    if (!st) st = ry_bpe_join_lines(*out, merges, size, what_merges, RY_BPE_KNOWN, err);
    return end(out, st, what, err);
}

/* ---- tokenizer.json ------------------------------------------------------------------------ */

/* Special tokens may stand apart from the vocabulary, in it, or both. */
static renyi_status add_tokens(ry_bpe *b, const json_t *added, const char *what, uint32_t *n_ids,
                               renyi_error *err)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i), *content;
        uint32_t id = UINT32_MAX;
        RY_TRY(ry_json_uint(token, "id", &id, what, err));
        content = json_object_get(token, "content");
        if (!json_is_string(content) || id >= RY_BPE_MAX_IDS)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: \"added_tokens\", entry %zu: a content and an id from 0 to %d "
                           "expected",
                           what, i, RY_BPE_MAX_IDS - 1);
        if (id >= *n_ids) *n_ids = id + 1;
        if (!b || ry_bpe_find(b, symbol_of(content)) == id) continue;
        const renyi_status st = ry_bpe_add(b, symbol_of(content), id, err);
        if (st) return ry_fail_in(err, st, what);
    }
    return RENYI_OK;
}

/* "left right", or ["left", "right"] in newer files. */
static int parts_of(const json_t *merge, ry_symbol *left, ry_symbol *right)
{
    if (json_is_array(merge)) {
        *left = symbol_of(json_array_get(merge, 0));
        *right = symbol_of(json_array_get(merge, 1));
        return json_array_size(merge) == 2 && left->at && right->at;
    }
    const char *text = json_string_value(merge);
    const char *space = text ? strchr(text, ' ') : NULL;
    if (!space) return 0;
    *left = (ry_symbol){text, (size_t)(space - text)};
    *right = (ry_symbol){space + 1, json_string_length(merge) - left->n - 1};
    return 1;
}

static renyi_status join_all(ry_bpe *b, const json_t *merges, const char *what, renyi_error *err)
{
    for (size_t i = 0; i < json_array_size(merges); i++) {
        ry_symbol left, right;
        char where[300];
        renyi_status st = RENYI_ERR_FORMAT;
        if (parts_of(json_array_get(merges, i), &left, &right))
            st = ry_bpe_join(b, left, right, RY_BPE_KNOWN, err);
        else
            (void)ry_fail(err, st, -1, "two symbols expected");
        if (!st) continue;
        snprintf(where, sizeof where, "%.240s: \"merges\", entry %zu", what, i);
        return ry_fail_in(err, st, where);
    }
    return RENYI_OK;
}

/* Other tokenizers have the same file: those of language models, of BERT. */
static renyi_status check_kind(const json_t *model, const char *what, renyi_error *err)
{
    const char *type = "BPE", *tail = "";
    RY_TRY(ry_json_string(model, "type", &type, what, err));
    RY_TRY(ry_json_string(model, "end_of_word_suffix", &tail, what, err));
    if (strcmp(type, "BPE") != 0 || strcmp(tail, RY_BPE_END) != 0)
        return ry_fail(
            err, RENYI_ERR_UNSUPPORTED, -1,
            "%s: a tokenizer of type %.32s with \"end_of_word_suffix\" \"%.32s\"; CLIP's "
            "is BPE with \"%s\"",
            what, type, tail, RY_BPE_END);
    return RENYI_OK;
}

renyi_status ry_bpe_read_tables(ry_bpe **out, const json_t *root, const char *what,
                                const renyi_allocator *al, renyi_error *err)
{
    const json_t *model = ry_json_object(root, "model"), *vocab = ry_json_object(model, "vocab");
    const json_t *merges = json_object_get(model, "merges");
    const json_t *added = json_object_get(root, "added_tokens");
    uint32_t n_ids = 0;
    *out = NULL;
    if (!vocab || !json_is_array(merges))
        return ry_fail(
            err, RENYI_ERR_FORMAT, -1,
            "%s: \"model\" with \"vocab\" (an object) and \"merges\" (an array) expected", what);
    RY_TRY(ry_bpe_count_ids(vocab, what, &n_ids, err));
    RY_TRY(add_tokens(NULL, added, what, &n_ids, err));
    RY_TRY(make(out, n_ids, json_array_size(merges), what, al, err));
    renyi_status st = add_symbols(*out, vocab, what, err);
    if (!st) st = add_tokens(*out, added, what, &n_ids, err);
    if (!st) st = join_all(*out, merges, what, err);
    if (!st) return RENYI_OK;
    ry_bpe_free(*out);
    *out = NULL;
    return st;
}

renyi_status ry_bpe_read_tokenizer(ry_bpe **out, const json_t *root, const char *what,
                                   const renyi_allocator *al, renyi_error *err)
{
    *out = NULL;
    RY_TRY(check_kind(ry_json_object(root, "model"), what, err));
    RY_TRY(ry_bpe_read_tables(out, root, what, al, err));
    return end(out, RENYI_OK, what, err);
}
