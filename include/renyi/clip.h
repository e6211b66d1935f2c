/* clip.h - CLIP: embeddings of images and texts, zero-shot classifiers, and TCA.
 *
 * Call orders:
 *   images     renyi_model_open -> renyi_session_new -> renyi_run -> renyi_normalise_rows
 *   texts      renyi_tokenizer_open, renyi_text_open -> renyi_text_session_new
 *              -> renyi_embed_texts
 *   zero-shot  renyi_classifier_new -> renyi_model_zeroshot -> renyi_session_new or renyi_eval_new
 *
 * A zero-shot model is used like any other classifier. The rules of renyi.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_CLIP_H
#define RENYI_CLIP_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer ------------------------------------------------------------------------------- */

/* The tokenizers of text towers: CLIP's byte-pair encoding, SigLIP's (T5's SentencePiece model) and
 * SigLIP 2's (Gemma's). Call order: renyi_tokenizer_open -> renyi_tokenizer_encode or
 * renyi_tokenizer_decode -> renyi_tokenizer_free. */

#define RENYI_CLIP_CONTEXT 77   /* ids per text in every published CLIP */
#define RENYI_SIGLIP_CONTEXT 64 /* and in every SigLIP */

/* Immutable; may be shared by threads. */
typedef struct renyi_tokenizer renyi_tokenizer;

typedef struct renyi_tokenizer_info {
    const char *source; /* the file, or the first of two; borrowed until renyi_tokenizer_free */
    uint32_t n_ids;     /* every id is below this; CLIP: 49,408 */
    uint32_t n_merges;
    int32_t sot,
        eot;     /* ids for start and end of text; CLIP: 49,406 and 49,407; -1 = none is added */
    int32_t pad; /* id that fills a text up; CLIP: 0, SigLIP: eot */
    const char *kind;  /* "clip", "unigram" (SigLIP), "bpe" (SigLIP 2); static */
    const char *clean; /* how texts are cleaned: "clip", "siglip" (lower case, no punctuation),
                          "lower" (SigLIP 2), "canonicalize" (OpenCLIP's SigLIP); static */
} renyi_tokenizer_info;

/* Opens a tokenizer. `path` is
 * - a merges file (bpe_simple_vocab_16e6.txt, plain or .gz); without other files its first 48,894
 *   merges are used;
 * - a tokenizer.json, or a vocab.json with merges.txt beside it;
 * - a spiece.model or tokenizer.model of SentencePiece;
 * - a folder with one of these, or a model file with one of these beside it. The order of search is
 *   spiece.model, tokenizer.json, vocab.json, bpe_simple_vocab_16e6.txt.gz,
 *   bpe_simple_vocab_16e6.txt, tokenizer.model.
 * Of SigLIP's, tokenizer_config.json and open_clip_config.json beside the file are read too.
 * Only allocator and limits.max_header_bytes of `opt` are used (the limit of a file's size, before
 * and after decompression). On success *out is owned by the caller (renyi_tokenizer_free). */
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_open(renyi_tokenizer **out, const char *path,
                                                        const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_tokenizer_free(renyi_tokenizer *t);
RENYI_API void renyi_tokenizer_get_info(const renyi_tokenizer *t, renyi_tokenizer_info *info);

/* Encodes a UTF-8 text of `size` bytes: sot (if any), the ids of the text, eot, then pad up to
 * `context`. *n (may be NULL) is the number of ids before the padding.
 *
 * As in CLIP, HTML entities are replaced (twice), the text is composed (NFC) and lower-cased,
 * blanks are collapsed, and <|startoftext|> and <|endoftext|> in the text become the special ids.
 * The repair of wrongly decoded text that the Python package does first (ftfy) is left out. Texts
 * for SigLIP are cleaned as renyi_tokenizer_info.clean says (docs/CLIP.md).
 *
 * Text with more than `context` ids: truncate = 1 keeps the first context - 1 ids and eot, 0
 * returns RENYI_ERR_LIMIT with the count in the message. Invalid UTF-8 is RENYI_ERR_FORMAT with its
 * position in err->offset. A text has at most RENYI_TEXT_MAX bytes. */
#define RENYI_TEXT_MAX 1048576
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_encode(const renyi_tokenizer *t,
                                                          const char *text, size_t size,
                                                          uint32_t context, int truncate,
                                                          int32_t *ids /* [context] */, uint32_t *n,
                                                          renyi_error *err);

/* Number of ids of a text, sot and eot included. */
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_count(const renyi_tokenizer *t, const char *text,
                                                         size_t size, uint32_t *n,
                                                         renyi_error *err);

/* Decodes n ids to UTF-8, up to the first eot: words separated by one blank, sot left out, U+FFFD
 * for bytes that are no character. *length is the number of bytes without the NUL. `text` [size]
 * gets as much as fits and a NUL; NULL with size 0 only computes the length. */
RENYI_API RENYI_CHECK renyi_status renyi_tokenizer_decode(const renyi_tokenizer *t,
                                                          const int32_t *ids, size_t n, char *text,
                                                          size_t size, size_t *length,
                                                          renyi_error *err);

/* The symbol of an id as files write it ("cat</w>"): *size bytes, without a NUL behind them. NULL:
 * no such id. Borrowed until renyi_tokenizer_free. */
RENYI_API const char *renyi_tokenizer_piece(const renyi_tokenizer *t, int32_t id, size_t *size);

/* ---- rows ------------------------------------------------------------------------------------ */

/* Scales every row of rows [n, dim] to length 1. A row of zeros stays zero. */
RENYI_API void renyi_normalise_rows(float *rows, size_t n, size_t dim);

/* ---- text tower ------------------------------------------------------------------------------ */

/* Call order: renyi_text_open -> renyi_text_session_new -> renyi_embed_texts, or
 * renyi_tokenizer_encode and renyi_text_run -> free in reverse order. */

typedef struct renyi_text renyi_text; /* packed weights; immutable */

typedef struct renyi_text_info {
    const char *layout;     /* naming scheme of the file: "huggingface", "openai"; static */
    const char *activation; /* of the MLPs: "gelu", "quick_gelu", "gelu_pytorch_tanh"; static */
    uint32_t dim, n_blocks, n_heads, mlp_dim;
    uint32_t vocab;     /* every id is below this */
    uint32_t context;   /* ids per text at most, sot and eot included: 77 */
    uint32_t embed_dim; /* width of an embedding */
    double norm_eps;
    double logit_scale; /* factor of the cosines: exp() of the number in the file */
    uint64_t n_params;
    uint64_t fingerprint; /* hash of the tower's tensors and config, independent of the file */
    renyi_dtype dtype;    /* format of the matrix products in the blocks */
    renyi_cpu cpu;        /* CPU level the weights are packed for */
    double logit_bias;    /* SigLIP: added to every logit; else 0 */
    uint32_t is_sigmoid; /* 1 = each logit is a sigmoid of its own (SigLIP), 0 = a softmax (CLIP) */
    uint32_t reads_padding; /* 1 = the padding is part of every text (SigLIP) */
} renyi_text_info;

/* Opens the text tower of a CLIP or SigLIP: Hugging Face's, OpenAI's or OpenCLIP's names. Path and
 * options are as for renyi_model_open; tensors of the image tower are ignored. A checkpoint without
 * a text tower is RENYI_ERR_UNSUPPORTED. On success *out is owned by the caller (renyi_text_free).
 */
RENYI_API RENYI_CHECK renyi_status renyi_text_open(renyi_text **out, const char *path,
                                                   const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_text_free(renyi_text *t);
RENYI_API void renyi_text_get_info(const renyi_text *t, renyi_text_info *info);

/* Activations of a text tower. Used by one thread at a time. */
typedef struct renyi_text_session renyi_text_session;

typedef struct renyi_text_session_options {
    uint32_t struct_size;
    uint32_t max_tokens;     /* tokens per pass (sets the memory), at least context; 0 = 1024 */
    uint32_t n_threads;      /* 0 = as in renyi_session_options */
    renyi_progress progress; /* called during a run: texts done, all texts; non-zero stops */
    void *progress_user;
} renyi_text_session_options;

/* Borrows t until renyi_text_session_free. All memory of a run is allocated here. On success *out
 * is owned by the caller (renyi_text_session_free). */
RENYI_API RENYI_CHECK renyi_status renyi_text_session_new(renyi_text_session **out,
                                                          const renyi_text *t,
                                                          const renyi_text_session_options *opt,
                                                          renyi_error *err);
RENYI_API void renyi_text_session_free(renyi_text_session *s);
RENYI_API size_t renyi_text_session_bytes(const renyi_text_session *s); /* memory it holds */

/* Embeds n texts, any number. ids: [n, context] as renyi_tokenizer_encode writes them. lengths: [n]
 * ids to use of each row; NULL = all. A tower that reads padding (reads_padding) always uses all
 * `context` ids. Other texts end at the first occurrence of their largest id, or of the config's
 * end-of-text id; the rest is ignored, and common beginnings of the texts of a call are computed
 * once. out: [n, embed_dim], not normalized. The bits of a row do not depend on other rows or on
 * threads. */
RENYI_API RENYI_CHECK renyi_status renyi_text_run(renyi_text_session *s, const int32_t *ids,
                                                  const uint32_t *lengths, uint32_t n, float *out,
                                                  renyi_error *err);
/* Tokens that the last run computed. Less than the number of ids, because common beginnings count
 * once. */
RENYI_API uint64_t renyi_text_last_tokens(const renyi_text_session *s);

/* Encodes, runs and normalizes n NUL-terminated texts. out: [n, embed_dim], rows of length 1.
 * truncate is as for renyi_tokenizer_encode. An error names the text. */
RENYI_API RENYI_CHECK renyi_status renyi_embed_texts(renyi_text_session *s,
                                                     const renyi_tokenizer *tokenizer,
                                                     const char *const *texts, uint32_t n,
                                                     int truncate, float *out, renyi_error *err);

/* ---- classifiers from class names ------------------------------------------------------------ */

/* A classifier is one row per class: the mean embedding of its templates. Call order:
 * renyi_text_open, renyi_tokenizer_open -> renyi_classifier_new -> renyi_classifier_rows ->
 * renyi_classifier_free. With a cache file the rows are computed once. */

typedef struct renyi_classifier renyi_classifier; /* one row per class; immutable */

typedef struct renyi_classifier_options {
    uint32_t struct_size;
    /* [n_templates] Each has one "{}" in place of the class name. */
    const char *const *templates;
    uint32_t n_templates; /* 0 = one, "a photo of a {}." */
    uint32_t truncate;    /* 1 = truncate texts that are too long; 0 = they are an error */
    uint32_t max_tokens, n_threads; /* as in renyi_text_session_options */
    const char *cache; /* file that stores the rows, or a folder in which the file name is chosen;
                          NULL = none. A damaged file, or one made from other inputs, is replaced */
    renyi_progress progress; /* texts done, all texts; not called if the rows come from the cache */
    void *progress_user;
} renyi_classifier_options;

typedef enum renyi_cache_use {
    RENYI_CACHE_NONE = 0,    /* no cache requested */
    RENYI_CACHE_READ = 1,    /* rows were read from the file */
    RENYI_CACHE_WRITTEN = 2, /* rows were computed and written to the file */
    RENYI_CACHE_FAILED = 3   /* rows were computed; the file could not be written */
} renyi_cache_use;

typedef struct renyi_classifier_info {
    uint32_t n_classes, n_templates, embed_dim;
    double scale;        /* logit_scale of the tower */
    double bias;         /* its logit_bias; 0 for CLIP */
    uint32_t is_sigmoid; /* 1 = use renyi_model_zeroshot_sigmoid (SigLIP) */
    uint64_t key; /* hash of tower, tokens, templates and class names; identifies the cache */
    renyi_cache_use cache;
    const char *cache_path;    /* "" = no cache */
    const char *cache_message; /* why the cache was not read or written; "" = no problem */
} renyi_classifier_info;       /* strings are borrowed until renyi_classifier_free */

/* For every class name (with '_' replaced by blanks) all templates are filled in, encoded, embedded
 * and normalized; the row is their normalized mean. names: [n_classes]. On success *out is owned by
 * the caller (renyi_classifier_free). */
RENYI_API RENYI_CHECK renyi_status
renyi_classifier_new(renyi_classifier **out, const renyi_text *text,
                     const renyi_tokenizer *tokenizer, const char *const *names, uint32_t n_classes,
                     const renyi_classifier_options *opt, renyi_error *err);
RENYI_API void renyi_classifier_free(renyi_classifier *c);
RENYI_API void renyi_classifier_get_info(const renyi_classifier *c, renyi_classifier_info *info);
/* Rows [n_classes, embed_dim] of length 1. Borrowed until renyi_classifier_free. */
RENYI_API const float *renyi_classifier_rows(const renyi_classifier *c);

/* ---- zero-shot models ------------------------------------------------------------------------ */

/* A zero-shot model is an image tower with the rows of a classifier as its head. Call order:
 * renyi_model_open, renyi_classifier_new -> renyi_model_zeroshot -> sessions, evaluations, sweeps
 * -> renyi_model_free. */

/* Logit c of an image with embedding f is scale * <f/|f|, rows[c]>. rows: [n_classes, embed_dim] of
 * length 1; names: [n_classes], the labels; both are copied. scale: logit_scale of the text tower,
 * 100 for OpenAI's models. clip: any model whose embeddings match; borrowed until the new model is
 * freed, unless renyi_model_keep_tower is called. On success *out is owned by the caller
 * (renyi_model_free). */
RENYI_API RENYI_CHECK renyi_status renyi_model_zeroshot(renyi_model **out, const renyi_model *clip,
                                                        const float *rows, const char *const *names,
                                                        uint32_t n_classes, double scale,
                                                        renyi_error *err);

/* The same for SigLIP: logit c is scale * <f/|f|, rows[c]> + bias, and the probability of a class
 * is the sigmoid of its logit, whatever the other classes are (renyi_model_info.is_sigmoid). */
RENYI_API RENYI_CHECK renyi_status renyi_model_zeroshot_sigmoid(
    renyi_model **out, const renyi_model *clip, const float *rows, const char *const *names,
    uint32_t n_classes, double scale, double bias, renyi_error *err);

/* Gives ownership of clip to zeroshot, which borrows it: renyi_model_free(zeroshot) then frees
 * both. */
RENYI_API void renyi_model_keep_tower(renyi_model *zeroshot, renyi_model *clip);

/* ---- TCA: adapting while pruning ------------------------------------------------------------- */

/* Token Condensation as Adaptation. The policy "tca" alone condenses tokens: some are kept, some
 * are merged around four centers, the rest is fused (docs/PRUNING.md). A renyi_tca adds a memory of
 * earlier images; no labels are used and nothing is trained. Call order: renyi_model_zeroshot ->
 * renyi_tca_new -> renyi_session_new with policy "tca" and renyi_session_options.adapt -> renyi_run
 * -> renyi_tca_get_info -> free in reverse order.
 *
 * Reservoir   Per class, the few images with the surest predictions that differ from each other.
 * Anchors     Once every class has two items, their mean class tokens take part in the attention
 *             of later cuts.
 * Correction  A logit grows with the similarity of the image to the items of its class.
 *
 * The images of a run are processed one after the other. Results depend on image order, not on
 * threads or batch size. A renyi_tca is used by one session at a time. */

typedef struct renyi_tca_options {
    uint32_t struct_size;
    uint32_t size;       /* items per class in the reservoir, 2 to 1024; 0 = 3 */
    double scale;        /* of the layer weights exp(l / (L - 1) / scale): a small scale uses only
                            the last layers; 0 = 0.1 */
    double lambda;       /* weight of the correction; 0 = 3 */
    double beta;         /* sharpness of the correction; 0 = 5. Settings per dataset:
                            renyi_collection in eval.h */
    uint32_t no_anchors; /* 1 = never use anchors */
    uint32_t no_correction; /* 1 = do not correct logits */
} renyi_tca_options;

/* m needs a classifier and a class token. The state works only with this tower and these classes;
 * sessions of other models refuse it. Memory of a full reservoir is allocated here. m itself may be
 * freed after the call, but its allocator stays in use. On success *out is owned by the caller
 * (renyi_tca_free). */
RENYI_API RENYI_CHECK renyi_status renyi_tca_new(renyi_tca **out, const renyi_model *m,
                                                 const renyi_tca_options *opt, renyi_error *err);
RENYI_API void renyi_tca_free(renyi_tca *t);
RENYI_API void renyi_tca_reset(renyi_tca *t); /* forgets all images */

typedef struct renyi_tca_info {
    uint32_t n_classes, size;
    double scale, lambda, beta;
    uint64_t n_images;        /* images seen */
    uint64_t n_anchored;      /* images that ran with anchors */
    uint64_t n_changed;       /* images whose class was changed by the correction */
    uint64_t first_anchored;  /* first image that ran with anchors, from 0; UINT64_MAX = none */
    uint32_t n_items;         /* items in the reservoir */
    uint32_t n_seen_classes;  /* classes with at least one item */
    uint32_t n_ready_classes; /* classes with at least two items; anchors need all classes */
    uint32_t has_anchors;     /* 1 = the next image runs with anchors */
    size_t bytes;             /* memory it holds */
} renyi_tca_info;
RENYI_API void renyi_tca_get_info(const renyi_tca *t, renyi_tca_info *info);

/* What happened to image `image` of the last run. */
typedef struct renyi_tca_answer {
    const float *logits;       /* [n_classes] before the correction; borrowed until the next run */
    uint32_t label, corrected; /* most probable class before and after the correction */
    double entropy;            /* of the softmax before the correction, nats */
    uint32_t anchored;         /* 1 = the image ran with anchors */
} renyi_tca_answer;
RENYI_API RENYI_CHECK renyi_status renyi_tca_last(const renyi_tca *t, uint32_t image,
                                                  renyi_tca_answer *out, renyi_error *err);

/* Saves the state as a safetensors file, which appears only when complete; loads such a file and
 * replaces the state. After loading, a run continues bit for bit. Options are not saved. A file of
 * other classes or of another tower is RENYI_ERR_FORMAT and leaves *t unchanged. */
RENYI_API RENYI_CHECK renyi_status renyi_tca_save(const renyi_tca *t, const char *path,
                                                  renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_tca_load(renyi_tca *t, const char *path, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
