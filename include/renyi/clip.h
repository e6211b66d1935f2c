/* clip.h - images and texts in one space: CLIP's two towers, and classifiers made of words.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Images:     renyi_model_open -> renyi_session_new -> renyi_run -> renyi_normalise_rows
 * Texts:      renyi_tokenizer_open -> renyi_tokenizer_encode: the ids that the text tower reads
 * Zero-shot:  rows of class names -> renyi_model_zeroshot -> sessions, evaluations, sweeps of it,
 *             as of any other classifier
 *
 * The rules of renyi.h hold here too.
 */
#ifndef RENYI_CLIP_H
#define RENYI_CLIP_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer ----------------------------------------------------------------------------- */

#define RENYI_CLIP_CONTEXT 77 /* ids of a text in every published CLIP */

/* CLIP's byte-pair encoding; immutable, may be shared by threads. */
typedef struct renyi_tokenizer renyi_tokenizer;

typedef struct renyi_tokenizer_info {
    const char *source; /* the file, or the first of the two; borrowed until renyi_tokenizer_free */
    uint32_t n_ids;     /* all ids are below; CLIP: 49,408 */
    uint32_t n_merges;
    int32_t sot, eot; /* what stands before and behind a text; CLIP: 49,406 and 49,407 */
} renyi_tokenizer_info;

/* Open a merges file (bpe_simple_vocab_16e6.txt, plain or .gz; without other files its first 48,894
 * merges count), a tokenizer.json, a vocab.json with merges.txt beside it, or a folder or model
 * file with one of these in it or beside it, looked for in this order: tokenizer.json, vocab.json,
 * bpe_simple_vocab_16e6.txt.gz, bpe_simple_vocab_16e6.txt. Of `opt` the allocator and
 * limits.max_header_bytes count (bytes of a file, before and after unpacking); it may be NULL.
 * On success *out is owned by the caller (renyi_tokenizer_free). On failure *out is NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_open(renyi_tokenizer **out, const char *path,
                                                        const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_tokenizer_free(renyi_tokenizer *t);
RENYI_API void renyi_tokenizer_get_info(const renyi_tokenizer *t, renyi_tokenizer_info *info);

/* Ids of a text of `size` bytes of UTF-8: sot, the text's, eot; then zeros up to `context`. *n (may
 * be NULL) is how many are not padding. As in CLIP, HTML entities are replaced (twice), the text is
 * composed (NFC) and lower-cased, blanks are collapsed, and the words <|startoftext|> and
 * <|endoftext|> inside it become the special ids. The repair of wrongly decoded text that the
 * Python package does first (ftfy) is left out. A text that needs more than `context` ids: with
 * truncate = 1 the first context - 1 and eot, else RENYI_ERR_LIMIT with the count in the message.
 * Bytes that are not UTF-8: RENYI_ERR_FORMAT, err->offset is their place. Texts have at most
 * RENYI_TEXT_MAX bytes. */
#define RENYI_TEXT_MAX 1048576
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_encode(const renyi_tokenizer *t,
                                                          const char *text, size_t size,
                                                          uint32_t context, int truncate,
                                                          int32_t *ids /* [context] */, uint32_t *n,
                                                          renyi_error *err);

/* Ids that a text needs, sot and eot counted in. */
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_count(const renyi_tokenizer *t, const char *text,
                                                         size_t size, uint32_t *n,
                                                         renyi_error *err);

/* The text of n ids in UTF-8: words apart by one space, special ids left out, U+FFFD for bytes that
 * make no character. *length: bytes of it without the NUL. `text` [size] gets as much as fits and a
 * NUL; NULL with size 0 asks for the length alone. */
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_decode(const renyi_tokenizer *t,
                                                          const int32_t *ids, size_t n, char *text,
                                                          size_t size, size_t *length,
                                                          renyi_error *err);

/* ---- rows ---------------------------------------------------------------------------------- */

/* Every row of [n, dim] to length 1. A row of zeros stays one. */
RENYI_API void renyi_normalise_rows(float *rows, size_t n, size_t dim);

/* ---- zero-shot models ---------------------------------------------------------------------- */

/* A classifier made of an image tower and one row a class: logit c of a picture with the embedding
 * f is scale * <f/|f|, rows[c]>. rows: [n_classes, embed_dim], each of length 1; copied, and so are
 * the names [n_classes], which become the labels. scale: exp(logit_scale) of the model, 100 for
 * OpenAI's. Borrows clip, which must outlive it; any model with a class token and no second head
 * will do. On success *out is owned by the caller (renyi_model_free). */
RENYI_API RENYI_CHECK renyi_status renyi_model_zeroshot(renyi_model **out, const renyi_model *clip,
                                                        const float *rows, const char *const *names,
                                                        uint32_t n_classes, double scale,
                                                        renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
