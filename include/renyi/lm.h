/* lm.h - Llama language models: tokenizer, weights, and sessions that compute logits.
 *
 * Call orders:
 *   text to ids    renyi_lm_tokenizer_open -> renyi_lm_tokenizer_encode
 *   ids to logits  renyi_lm_open -> renyi_lm_session_new -> renyi_lm_feed (any number)
 *   ids to text    renyi_lm_stream_put for each id -> renyi_lm_stream_end
 *
 * The rules of renyi.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_LM_H
#define RENYI_LM_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer ------------------------------------------------------------------------------- */

/* Llama's tokenizer. Call order: renyi_lm_tokenizer_open -> renyi_lm_tokenizer_encode, _decode or
 * renyi_lm_stream_put -> renyi_lm_tokenizer_free. */

/* Immutable; may be shared by threads. */
typedef struct renyi_lm_tokenizer renyi_lm_tokenizer;

typedef struct renyi_lm_tokenizer_info {
    const char *source;    /* the file; borrowed until renyi_lm_tokenizer_free */
    const char *kind;      /* "sentencepiece", "tokenizer.json", "pieces.json",
                              "gguf llama", "gguf gpt2"; static */
    uint32_t n_ids;        /* every id is below this; Llama: 32,000, with LLaVA's added tokens
                              32,002 */
    int32_t bos, eos, unk; /* -1 = none; Llama: 1, 2, 0. A GGUF whose texts do not begin with bos
                              has none */
    int32_t image;         /* id of "<image>" (32,000), or -1 */
} renyi_lm_tokenizer_info;

/* Opens a tokenizer. `path` is
 * - a SentencePiece model of type BPE (tokenizer.model); added_tokens.json beside it and "legacy"
 *   in tokenizer_config.json are used too;
 * - a tokenizer.json of Llama's kind;
 * - a pieces.json ([{ "piece", "score" }]);
 * - a GGUF, which has its tokenizer inside (SentencePiece's or byte-level BPE);
 * - a folder with one of these, or a model file with one of these beside it. The order of search is
 *   tokenizer.json, tokenizer.model, pieces.json.
 * Only allocator and limits.max_header_bytes of `opt` are used (the limit of a file's size). On
 * success *out is owned by the caller (renyi_lm_tokenizer_free). */
RENYI_API RENYI_CHECK renyi_status renyi_lm_tokenizer_open(renyi_lm_tokenizer **out,
                                                           const char *path,
                                                           const renyi_options *opt,
                                                           renyi_error *err);
RENYI_API void renyi_lm_tokenizer_free(renyi_lm_tokenizer *t);
RENYI_API void renyi_lm_tokenizer_get_info(const renyi_lm_tokenizer *t,
                                           renyi_lm_tokenizer_info *info);

enum {
    RENYI_LM_BOS = 1,    /* encode: put bos before the text */
    RENYI_LM_PLAIN = 2,  /* encode: "</s>" or "<image>" in the text are plain text, not special
                            ids */
    RENYI_LM_SPECIAL = 4 /* decode: write the names of special ids instead of leaving them out */
};
#define RENYI_LM_TEXT_MAX 262144 /* bytes per text */

/* Encodes a UTF-8 text of `size` bytes. Nothing is trimmed or composed. A blank is put in front of
 * the text (Llama's dummy prefix). Characters that are no pieces become byte ids. ids: [max]. *n
 * (may be NULL) is the number of ids that the text needs; if it exceeds max, the first max are
 * written and the result is RENYI_ERR_LIMIT. NULL with max 0 only counts. Invalid UTF-8 is
 * RENYI_ERR_FORMAT with its position in err->offset. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_tokenizer_encode(const renyi_lm_tokenizer *t,
                                                             const char *text, size_t size,
                                                             uint32_t flags, int32_t *ids,
                                                             size_t max, size_t *n,
                                                             renyi_error *err);

/* Decodes n ids to UTF-8. The blank that encode puts in front is removed, special ids are left out,
 * the unknown id becomes U+2047 between blanks, and each byte that is no character becomes U+FFFD.
 * *length is the number of bytes without the NUL. `text` [size] gets as many complete characters as
 * fit and a NUL; NULL with size 0 only computes the length. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_tokenizer_decode(const renyi_lm_tokenizer *t,
                                                             const int32_t *ids, size_t n,
                                                             uint32_t flags, char *text,
                                                             size_t size, size_t *length,
                                                             renyi_error *err);

/* The piece of an id as files write it (a blank is U+2581, a byte "<0x0A>"): *size bytes, without a
 * NUL behind them. NULL: no such id. Borrowed until renyi_lm_tokenizer_free. */
RENYI_API const char *renyi_lm_tokenizer_piece(const renyi_lm_tokenizer *t, int32_t id,
                                               size_t *size);

/* State for decoding one id at a time. Start with zeros and set only `flags`. */
typedef struct renyi_lm_stream {
    uint32_t flags;
    uint8_t waiting[4]; /* bytes of an incomplete character */
    uint8_t n_waiting, has_begun;
} renyi_lm_stream;

/* Decodes the next id: complete characters (possibly none) and a NUL. *length (may be NULL) is the
 * number of bytes without the NUL. */
enum { RENYI_LM_STREAM_ROOM = 1088 };
RENYI_API RENYI_CHECK renyi_status renyi_lm_stream_put(const renyi_lm_tokenizer *t,
                                                       renyi_lm_stream *s, int32_t id,
                                                       char text[RENYI_LM_STREAM_ROOM],
                                                       size_t *length, renyi_error *err);
/* Ends the text: writes U+FFFD for bytes of an incomplete character and resets the stream. */
RENYI_API void renyi_lm_stream_end(renyi_lm_stream *s, char text[RENYI_LM_STREAM_ROOM],
                                   size_t *length);

/* ---- language model -------------------------------------------------------------------------- */

/* Call order: renyi_lm_open -> renyi_lm_session_new -> renyi_lm_feed with the prompt -> choose a
 * token from the logits -> renyi_lm_feed with that token, and so on -> free in reverse order. */

/* A Llama decoder: packed weights. Immutable after open; may be shared by sessions. */
typedef struct renyi_lm renyi_lm;

typedef struct renyi_lm_info {
    const char
        *layout; /* naming scheme of the file: "llama" (also the original LLaVA), "llava-hf",
                    "llava-hf-5" (transformers 5), "renyi" (renyi_lm_quantize), "gguf"; static */
    uint32_t dim, n_layers, n_heads, mlp_dim;
    uint32_t n_kv_heads; /* heads of keys and values: n_heads or a divisor of it */
    uint32_t head_dim;
    uint32_t vocab;   /* every token is below this */
    uint32_t context; /* positions the model was made for */
    int32_t bos, eos; /* from the config, default 1 and 2; -1 = none */
    int32_t image;    /* token that marks the image in a prompt; -1 = none */
    double rope_theta, norm_eps;
    int tied; /* 1 = the token table is also the output matrix */
    uint64_t n_params;
    uint64_t bytes;      /* memory of the weights */
    renyi_dtype dtype;   /* weights in memory: F32; BF16, multiplied in f32; INT8 per channel,
                            activations in 8 bits per row; INT4 in groups of 32, activations in 8 bits
                            per group. Matrices of a GGUF in Q4_0, and in INT8 those in Q8_0, stay as
                            they are, with activations as of INT4 */
    renyi_cpu cpu;       /* CPU level the weights are packed for */
    int is_llava;        /* 1 = the file has a projector for visual tokens too; 0 = a plain Llama */
    double weight_error; /* relative rms error of the weights in `dtype`, measured on a sample of
                            rows; 0 = as the file means them, or packed by renyi_lm_quantize */
} renyi_lm_info;

/* Opens a Llama, or the language model of a LLaVA (tower and projector are ignored). `path` is a
 * folder with config.json and one or more safetensors files, a GGUF, or anything else that
 * renyi_model_open takes. A config is needed for the number of heads; without one the result is
 * RENYI_ERR_FORMAT (a GGUF has its own).
 *
 * Only cpu, limits, allocator, progress and dtype of `opt` are used. dtype: 0 = f32, or bf16 for
 * F16 and BF16 files with more than 1e9 parameters, for blocks of GGUF int4 if all matrices are
 * Q4_0, else int8; AUTO = int8. A file from renyi_lm_quantize keeps its format. Fewer bits are
 * faster, because every token reads all weights. On success *out is owned by the caller
 * (renyi_lm_free). */
RENYI_API RENYI_CHECK renyi_status renyi_lm_open(renyi_lm **out, const char *path,
                                                 const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_lm_free(renyi_lm *lm);
RENYI_API void renyi_lm_get_info(const renyi_lm *lm, renyi_lm_info *info);

/* Describes what renyi_lm_open would return, from names, shapes and config. Of the weights only a
 * few rows are read, for info->weight_error. info->bytes is accurate to a few percent. After a
 * failure info->layout is NULL if the file has no Llama. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_describe(const char *path, const renyi_options *opt,
                                                     renyi_lm_info *info, renyi_error *err);

/* One growing sequence: its key-value cache and the memory of a pass. Used by one thread at a
 * time. */
typedef struct renyi_lm_session renyi_lm_session;

typedef struct renyi_lm_session_options {
    uint32_t struct_size;
    uint32_t max_context; /* rows of the sequence at most; 0 = the model's context, which is also
                             the maximum. Memory is touched only as rows are added */
    uint32_t max_rows;    /* rows per pass (sets the memory); 0 = 512 */
    uint32_t n_threads;   /* 0 = as in renyi_session_options */
    uint32_t cache_bits;  /* bits of keys and values: 32 or 16; 0 = 32 with f32 products, else 16 */
    renyi_progress progress; /* called during a feed: rows done, all rows; non-zero stops */
    void *progress_user;
    const char *policy; /* which visual rows leave the layers (docs/LM_PRUNING.md): fastv,
                           pyramiddrop, dart or sparsevlm; NULL = "none"; copied */
    uint32_t n_visual;  /* visual rows of an image, to check the policy with; 0 = unknown */
} renyi_lm_session_options;

/* Borrows lm until renyi_lm_session_free. All memory of a feed is allocated here. On success *out
 * is owned by the caller (renyi_lm_session_free). */
RENYI_API RENYI_CHECK renyi_status renyi_lm_session_new(renyi_lm_session **out, const renyi_lm *lm,
                                                        const renyi_lm_session_options *opt,
                                                        renyi_error *err);
RENYI_API void renyi_lm_session_free(renyi_lm_session *s);
RENYI_API size_t renyi_lm_session_bytes(const renyi_lm_session *s); /* memory with a full cache */

/* A row of the sequence: a token, or an embedding in its place. */
typedef struct renyi_lm_input {
    const float *embedding; /* [dim], borrowed for the call; NULL = use `token` */
    int32_t token;
} renyi_lm_input;

/* Appends n >= 1 rows to the sequence. logits: [vocab] after the last row; NULL = not computed.
 * Allocates nothing. More rows than max_context: RENYI_ERR_LIMIT, and nothing is appended. The bits
 * of a row do not depend on how rows are grouped into calls or on the number of threads. After
 * RENYI_ERR_ABORTED the rows done so far remain appended.
 *
 * With a policy, the visual rows of a feed are those from the first to the last embedding. The
 * layers before a cut have all of them, those after it only what the cut keeps, and so have their
 * caches. The last row of the feed, or all, decide, so a prompt must be fed at once; later feeds
 * continue with the rows that were kept. Such a feed appends nothing if it is stopped. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_feed(renyi_lm_session *s, const renyi_lm_input *in,
                                                 uint32_t n, float *logits, renyi_error *err);
RENYI_API uint32_t renyi_lm_position(const renyi_lm_session *s); /* rows so far */
RENYI_API uint32_t renyi_lm_max_context(const renyi_lm_session *s);
/* Rows whose keys and values a layer holds: all rows so far, or fewer after a cut. */
RENYI_API uint32_t renyi_lm_cache_rows(const renyi_lm_session *s, uint32_t layer);
RENYI_API uint32_t renyi_lm_cache_bits(const renyi_lm_session *s); /* of a key or value: 32 or 16 */

/* Forgets all rows from `position` on. position > renyi_lm_position is RENYI_ERR_ARG. Rows that a
 * policy dropped do not come back: to choose again, rewind to the first visual row or before. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_rewind(renyi_lm_session *s, uint32_t position,
                                                   renyi_error *err);

/* The policy with all defaults. Borrowed until renyi_lm_session_free. */
RENYI_API const char *renyi_lm_session_policy(const renyi_lm_session *s);

/* A cut of the last feed that had visual rows. */
typedef struct renyi_lm_cut {
    uint32_t layer;        /* the first that the dropped rows did not enter */
    uint32_t n_in, n_kept; /* visual rows before and after it */
    const uint32_t *kept;  /* [n_kept] which of the visual rows that were fed, ascending; RENYI_NONE
                              for rows that others were merged into, which are the last */
    const float *scores;   /* [n_in] of the rows before it; NULL = the rule has none */
} renyi_lm_cut;

/* Cut i of the policy, from 0. Returns 0 if there is none or if no visual rows are in the sequence.
 * Borrowed until the next feed or rewind. */
RENYI_API int renyi_lm_session_get_cut(const renyi_lm_session *s, uint32_t i, renyi_lm_cut *out);

/* Multiply-accumulates that the cuts of the last such feed added to choose; 0 = there is none. */
RENYI_API double renyi_lm_choice_macs(const renyi_lm_session *s);

#ifdef __cplusplus
}
#endif
#endif
