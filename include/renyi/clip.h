/* clip.h - images and texts in one space: CLIP's two towers, and classifiers made of words.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Images:     renyi_model_open -> renyi_session_new -> renyi_run -> renyi_normalise_rows
 * Texts:      renyi_tokenizer_open -> renyi_tokenizer_encode: the ids that the text tower reads
 *             renyi_text_open -> renyi_text_session_new -> renyi_text_run -> renyi_normalise_rows
 *             (renyi_embed_texts does both)
 * Zero-shot:  class names and templates -> renyi_classifier_new -> renyi_model_zeroshot
 *             -> sessions, evaluations, sweeps of it, as of any other classifier
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

/* The text of n ids in UTF-8, up to the first eot: words apart by one space, sot left out, U+FFFD
 * for bytes that make no character. *length: bytes of it without the NUL. `text` [size] gets as
 * much as fits and a NUL; NULL with size 0 asks for the length alone. */
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_decode(const renyi_tokenizer *t,
                                                          const int32_t *ids, size_t n, char *text,
                                                          size_t size, size_t *length,
                                                          renyi_error *err);

/* ---- rows ---------------------------------------------------------------------------------- */

/* Every row of [n, dim] to length 1. A row of zeros stays one. */
RENYI_API void renyi_normalise_rows(float *rows, size_t n, size_t dim);

/* ---- text tower ---------------------------------------------------------------------------- */

typedef struct renyi_text renyi_text; /* weights and shape of a text tower; immutable after open */

typedef struct renyi_text_info {
    const char *layout;     /* whose names the file uses: "huggingface", "openai"; static */
    const char *activation; /* of the MLPs: "gelu", "quick_gelu"; static */
    uint32_t dim, n_blocks, n_heads, mlp_dim;
    uint32_t vocab;     /* ids are below this */
    uint32_t context;   /* most ids of a text, start and end among them: 77 */
    uint32_t embed_dim; /* width of an embedding */
    double norm_eps;
    double logit_scale; /* what cosines are multiplied with: exp() of the number in the file */
    uint64_t n_params;
    uint64_t
        fingerprint; /* hash of the tower's tensors and configuration, whatever file they are in */
    renyi_dtype dtype; /* of the matrix products in the blocks */
    renyi_cpu cpu;     /* level the weights were packed for */
} renyi_text_info;

/* Open the text tower of a CLIP; path and options as for renyi_model_open. The tensors of the image
 * tower are not looked at. A checkpoint without a text tower is RENYI_ERR_UNSUPPORTED. On success
 * *out is owned by the caller (renyi_text_free). On failure *out is NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_text_open(renyi_text **out, const char *path,
                                                   const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_text_free(renyi_text *t);
RENYI_API void renyi_text_get_info(const renyi_text *t, renyi_text_info *info);

typedef struct renyi_text_session renyi_text_session; /* for one caller at a time */

typedef struct renyi_text_session_options {
    uint32_t struct_size;
    uint32_t
        max_tokens;     /* computed at the same time: sets the memory; 0 = 1024; at least context */
    uint32_t n_threads; /* 0 = as many as there are physical cores */
    renyi_progress progress; /* during a run: texts done of all; non-zero stops */
    void *progress_user;
} renyi_text_session_options;

/* Borrows t: it must outlive the session. Everything a run needs is allocated here. */
RENYI_API RENYI_CHECK renyi_status renyi_text_session_new(renyi_text_session **out,
                                                          const renyi_text *t,
                                                          const renyi_text_session_options *opt,
                                                          renyi_error *err);
RENYI_API void renyi_text_session_free(renyi_text_session *s);
RENYI_API size_t renyi_text_session_bytes(const renyi_text_session *s); /* that it holds */

/* Embed any number of texts. ids: [n, context], as renyi_tokenizer_encode writes them; lengths: [n]
 * ids of each row that count, NULL = all. A text ends with the first of its largest ids (the end of
 * text); what follows is not looked at. out: [n, embed_dim], not normalised.
 * Nothing is padded, and what texts of a call have in common at their beginning is computed once;
 * the bits of a row do not depend on its neighbours or on threads. */
RENYI_API RENYI_CHECK renyi_status renyi_text_run(renyi_text_session *s, const int32_t *ids,
                                                  const uint32_t *lengths, uint32_t n, float *out,
                                                  renyi_error *err);
/* Tokens that the last run went through; less than there were ids, as common beginnings count
 * once. */
RENYI_API uint64_t renyi_text_last_tokens(const renyi_text_session *s);

/* Texts to rows, all steps: tokenised, run, normalised. texts: [n], NUL-terminated; out: [n,
 * embed_dim], each of length 1. truncate as for renyi_tokenizer_encode. An error names the text. */
RENYI_API RENYI_CHECK renyi_status renyi_embed_texts(renyi_text_session *s,
                                                     const renyi_tokenizer *tokenizer,
                                                     const char *const *texts, uint32_t n,
                                                     int truncate, float *out, renyi_error *err);

/* ---- classifiers made of words ------------------------------------------------------------- */

typedef struct renyi_classifier renyi_classifier; /* one row a class; immutable */

typedef struct renyi_classifier_options {
    uint32_t struct_size;
    const char *const
        *templates;       /* [n_templates], each with "{}" once, for the name of the class */
    uint32_t n_templates; /* 0 = one, "a photo of a {}." */
    uint32_t truncate;    /* 1 = cut texts that are too long; 0 = they are an error */
    uint32_t max_tokens, n_threads; /* of the text session */
    const char *cache; /* file that keeps the rows, or a folder where it has a name of its own; NULL
                          = none. A file that was made of something else, or that is damaged, is
                          made anew */
    renyi_progress progress; /* texts done of all; not called when the rows come from the cache */
    void *progress_user;
} renyi_classifier_options;

typedef enum renyi_cache_use {
    RENYI_CACHE_NONE = 0,    /* no cache was asked for */
    RENYI_CACHE_READ = 1,    /* the rows come from the file */
    RENYI_CACHE_WRITTEN = 2, /* they were computed and are in the file now */
    RENYI_CACHE_FAILED = 3   /* they were computed, but the file could not be written */
} renyi_cache_use;

typedef struct renyi_classifier_info {
    uint32_t n_classes, n_templates, embed_dim;
    double scale; /* logit_scale of the tower */
    uint64_t
        key; /* hash of tower, tokens, templates and names: what a cache must have been made of */
    renyi_cache_use cache;
    const char *cache_path; /* of the file; "" without one */
    const char
        *cache_message;  /* why it was not read or could not be written; "" if nothing to say */
} renyi_classifier_info; /* strings are borrowed until renyi_classifier_free */

/* For every class: underscores of its name become spaces, every template is filled in, tokenised,
 * embedded and normalised; the row is their mean, normalised. names: [n_classes]. Text, tokenizer
 * and names are borrowed for the call. On success *out is owned by the caller
 * (renyi_classifier_free). */
RENYI_API RENYI_CHECK renyi_status
renyi_classifier_new(renyi_classifier **out, const renyi_text *text,
                     const renyi_tokenizer *tokenizer, const char *const *names, uint32_t n_classes,
                     const renyi_classifier_options *opt, renyi_error *err);
RENYI_API void renyi_classifier_free(renyi_classifier *c);
RENYI_API void renyi_classifier_get_info(const renyi_classifier *c, renyi_classifier_info *info);
/* [n_classes, embed_dim], each of length 1; borrowed until renyi_classifier_free. */
RENYI_API const float *renyi_classifier_rows(const renyi_classifier *c);

/* ---- zero-shot models ---------------------------------------------------------------------- */

/* A classifier made of an image tower and one row a class: logit c of a picture with the embedding
 * f is scale * <f/|f|, rows[c]>. rows: [n_classes, embed_dim], each of length 1; copied, and so are
 * the names [n_classes], which become the labels. scale: exp(logit_scale) of the model, 100 for
 * OpenAI's. Borrows clip, which must outlive it; any model will do that has such
 * embeddings. On success *out is owned by the caller (renyi_model_free). */
RENYI_API RENYI_CHECK renyi_status renyi_model_zeroshot(renyi_model **out, const renyi_model *clip,
                                                        const float *rows, const char *const *names,
                                                        uint32_t n_classes, double scale,
                                                        renyi_error *err);

/* Hand clip, which zeroshot borrows, over to it: renyi_model_free(zeroshot) frees both. For who
 * must give away one model that looks after itself. */
RENYI_API void renyi_model_keep_tower(renyi_model *zeroshot, renyi_model *clip);

/* ---- TCA: adapting while pruning ------------------------------------------------------------- */

/* classification that adapts while it prunes: Token Condensation as Adaptation (TCA).
 * *
 *   renyi_model_zeroshot (clip.h) -> renyi_tca_new -> a session with the policy "tca" and
 *   renyi_session_options.adapt -> renyi_run*: logits come corrected -> renyi_tca_get_info
 *
 * The policy "tca" alone condenses tokens: some are kept, some merged around four centres, the rest
 * fused (docs/PRUNING.md). What is here remembers pictures that were seen before. Per class it
 * keeps the few whose answers were surest and unlike each other (the reservoir). As soon as every
 * class has two of them, their mean class tokens take part in the attention of later cuts (the
 * anchors). And a logit grows with the likeness of a picture to the items of its class (the
 * correction). No labels are seen and nothing is trained.
 *
 * Pictures of a run go one after the other, and each leaves its trace: the order matters, threads
 * and batches do not. One renyi_tca belongs to one session at a time. The rest is as in renyi.h. */

typedef struct renyi_tca_options {
    uint32_t struct_size;
    uint32_t size;       /* items of a class in the reservoir, 2 to 1024; 0 = 3 */
    double scale;        /* of the layer weights exp(l / (L - 1) / scale): small = the last layers
                            alone; 0 = 0.1 */
    double lambda;       /* weight of the correction; 0 = 3 */
    double beta;         /* its sharpness; 0 = 5. Those of each data set: eval.h */
    uint32_t no_anchors; /* 1 = none, ever */
    uint32_t no_correction; /* 1 = logits stay as they are */
} renyi_tca_options;

/* For a model with a classifier and a class token: for its classes and its tower, so that sessions
 * of others refuse it. The memory of a full reservoir is taken here; m is not needed after the
 * call, its allocator is. On success *out is owned by the caller (renyi_tca_free). */
RENYI_API RENYI_CHECK renyi_status renyi_tca_new(renyi_tca **out, const renyi_model *m,
                                                 const renyi_tca_options *opt, renyi_error *err);
RENYI_API void renyi_tca_free(renyi_tca *t);
RENYI_API void renyi_tca_reset(renyi_tca *t); /* as if nothing had been seen */

typedef struct renyi_tca_info {
    uint32_t n_classes, size;
    double scale, lambda, beta;
    uint64_t n_images;        /* seen so far */
    uint64_t n_anchored;      /* that ran with anchors */
    uint64_t n_changed;       /* whose answer the correction changed */
    uint64_t first_anchored;  /* place of the first that ran with anchors, from 0; UINT64_MAX =
                                 none did */
    uint32_t n_items;         /* in the reservoir */
    uint32_t n_seen_classes;  /* with an item */
    uint32_t n_ready_classes; /* with two: when it is all, there are anchors */
    uint32_t has_anchors;     /* 1 = the next picture runs with them */
    size_t bytes;             /* that it holds */
} renyi_tca_info;
RENYI_API void renyi_tca_get_info(const renyi_tca *t, renyi_tca_info *info);

/* What became of picture `image` of the last run. */
typedef struct renyi_tca_answer {
    const float *logits;       /* [n_classes] before the correction; borrowed until the next run */
    uint32_t label, corrected; /* the likeliest class before and after it */
    double entropy;            /* of the softmax of the logits before it, in nats */
    uint32_t anchored;         /* 1 = it ran with anchors */
} renyi_tca_answer;
RENYI_API RENYI_CHECK renyi_status renyi_tca_last(const renyi_tca *t, uint32_t image,
                                                  renyi_tca_answer *out, renyi_error *err);

/* The state as a safetensors file, which appears only when complete; and such a file in place of
 * the state that is there. A run then goes on with the same bits. Options are not part of it. A
 * file of other classes or another tower is RENYI_ERR_FORMAT, and *t stays as it was. */
RENYI_API RENYI_CHECK renyi_status renyi_tca_save(const renyi_tca *t, const char *path,
                                                  renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_tca_load(renyi_tca *t, const char *path, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
