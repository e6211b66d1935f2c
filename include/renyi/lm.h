/* lm.h - Llama language models: tokenizer, weights, and sessions that read and write tokens.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   renyi_lm_tokenizer_open -> renyi_lm_tokenizer_encode: text to ids
 *   renyi_lm_open -> renyi_lm_session_new -> renyi_lm_feed: ids to logits
 *   renyi_lm_stream_put: ids to text, as they come
 *
 * The rules of renyi.h hold here too.
 */
#ifndef RENYI_LM_H
#define RENYI_LM_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer ------------------------------------------------------------------------------- */

/* Llama's tokenizer; immutable, may be shared by threads. */
typedef struct renyi_lm_tokenizer renyi_lm_tokenizer;

typedef struct renyi_lm_tokenizer_info {
    const char *source;    /* the file; borrowed until renyi_lm_tokenizer_free */
    const char *kind;      /* "sentencepiece", "tokenizer.json", "pieces.json"; static */
    uint32_t n_ids;        /* all ids are below; Llama: 32,000, with LLaVA's added tokens 32,002 */
    int32_t bos, eos, unk; /* -1 = has none; Llama: 1, 2, 0 */
    int32_t image;         /* of "<image>", if the vocabulary has it (32,000), else -1 */
} renyi_lm_tokenizer_info;

/* Open a SentencePiece model of type BPE (tokenizer.model; an added_tokens.json beside it and
 * "legacy" in tokenizer_config.json count), a tokenizer.json of Llama's kind, a pieces.json ([{
 * "piece", "score" }]), or a folder or model file with one of these in it or beside it, looked for
 * in this order: tokenizer.json, tokenizer.model, pieces.json. Of `opt` the allocator and
 * limits.max_header_bytes count (bytes of a file); it may be NULL. On success *out is owned by the
 * caller (renyi_lm_tokenizer_free). On failure *out is NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_tokenizer_open(renyi_lm_tokenizer **out,
                                                           const char *path,
                                                           const renyi_options *opt,
                                                           renyi_error *err);
RENYI_API void renyi_lm_tokenizer_free(renyi_lm_tokenizer *t);
RENYI_API void renyi_lm_tokenizer_get_info(const renyi_lm_tokenizer *t,
                                           renyi_lm_tokenizer_info *info);

enum {
    RENYI_LM_BOS = 1,    /* encode: bos stands before the text */
    RENYI_LM_PLAIN = 2,  /* encode: "</s>" or "<image>" in the text are text, not the special ids */
    RENYI_LM_SPECIAL = 4 /* decode: special ids are written by name, not left out */
};
#define RENYI_LM_TEXT_MAX 262144 /* bytes of a text */

/* Ids of a text of `size` bytes of UTF-8. Nothing is trimmed or composed; a text begins with a
 * blank of its own (Llama's dummy prefix); characters that are no pieces become bytes. *n (may be
 * NULL): ids that the text needs. ids: [max]; when they are more, RENYI_ERR_LIMIT, and the first
 * max are there. NULL with max 0 only counts. Bytes that are not UTF-8: RENYI_ERR_FORMAT,
 * err->offset is their place. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_tokenizer_encode(const renyi_lm_tokenizer *t,
                                                             const char *text, size_t size,
                                                             uint32_t flags, int32_t *ids,
                                                             size_t max, size_t *n,
                                                             renyi_error *err);

/* The text of n ids in UTF-8: the blank that encode put in front taken off, special ids left out,
 * U+2047 between blanks for the unknown one, U+FFFD for every byte that makes no character.
 * *length: bytes of it without the NUL. `text` [size] gets as many whole characters as fit and a
 * NUL; NULL with size 0 asks for the length alone. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_tokenizer_decode(const renyi_lm_tokenizer *t,
                                                             const int32_t *ids, size_t n,
                                                             uint32_t flags, char *text,
                                                             size_t size, size_t *length,
                                                             renyi_error *err);

/* The same one id at a time, as a model writes them. Zeroed it is at the beginning of a text; set
 * the flags, leave the rest alone. */
typedef struct renyi_lm_stream {
    uint32_t flags;
    uint8_t waiting[4]; /* bytes of a character that is not complete */
    uint8_t n_waiting, has_begun;
} renyi_lm_stream;

/* What the next id adds: whole characters and a NUL, perhaps none yet. Bytes of the text without
 * the NUL go to *length (may be NULL). */
enum { RENYI_LM_STREAM_ROOM = 1088 };
RENYI_API RENYI_CHECK renyi_status renyi_lm_stream_put(const renyi_lm_tokenizer *t,
                                                       renyi_lm_stream *s, int32_t id,
                                                       char text[RENYI_LM_STREAM_ROOM],
                                                       size_t *length, renyi_error *err);
/* The text is over: U+FFFD for bytes that still wait. The stream is at a beginning again. */
RENYI_API void renyi_lm_stream_end(renyi_lm_stream *s, char text[RENYI_LM_STREAM_ROOM],
                                   size_t *length);

/* ---- language model -------------------------------------------------------------------------- */

/* A Llama decoder: weights and shape; immutable after open, may be shared by sessions. */
typedef struct renyi_lm renyi_lm;

typedef struct renyi_lm_info {
    const char *layout; /* whose names the file uses: "llama" (also the first LLaVA's), "llava-hf",
                           "llava-hf-5" (of transformers 5), "renyi" (of renyi_lm_quantize);
                           static */
    uint32_t dim, n_layers, n_heads, mlp_dim;
    uint32_t n_kv_heads; /* of keys and values: n_heads, or a divisor of it */
    uint32_t head_dim;
    uint32_t vocab;   /* tokens are below this */
    uint32_t context; /* positions that it was made for */
    int32_t bos, eos; /* that the config names, 1 and 2 if it is silent; -1 = none */
    int32_t image;    /* token that stands for the picture in a prompt; -1 = none is named */
    double rope_theta, norm_eps;
    int tied; /* 1: the table of tokens is also the output matrix */
    uint64_t n_params;
    uint64_t bytes;    /* of the weights in memory */
    renyi_dtype dtype; /* of the weights in memory: F32; BF16, multiplied in f32; INT8 per channel,
                          rows to 8 bits; INT4 in groups of 32, rows to 8 bits a group */
    renyi_cpu cpu;     /* level the weights were packed for */
} renyi_lm_info;

/* Open a Llama, or the language model of a LLaVA (tower and projector are not looked at): a
 * directory with config.json and one or several safetensors files, or what else renyi_model_open
 * takes. Without a config the number of heads is not known: RENYI_ERR_FORMAT. Of `opt` cpu, limits,
 * allocator, progress and dtype count: 0 = f32, but bf16 for halves (F16, BF16) of more than 1e9
 * parameters; AUTO = int8; a file of renyi_lm_quantize stays what it is. Fewer bits are faster,
 * since every token reads all weights. On success *out is owned by the caller (renyi_lm_free). On
 * failure *out is NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_open(renyi_lm **out, const char *path,
                                                 const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_lm_free(renyi_lm *lm);
RENYI_API void renyi_lm_get_info(const renyi_lm *lm, renyi_lm_info *info);

/* What renyi_lm_open would make of it, from names, shapes and config: no weights are read, and
 * `bytes` is right to a few per cent. layout is NULL after a failure if there is no Llama in it. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_describe(const char *path, const renyi_options *opt,
                                                     renyi_lm_info *info, renyi_error *err);

/* One sequence that grows: its keys and values, and room for a pass. For one caller at a time. */
typedef struct renyi_lm_session renyi_lm_session;

typedef struct renyi_lm_session_options {
    uint32_t struct_size;
    uint32_t max_context; /* most rows of the sequence; 0 = the model's context, which is also the
                             most. Memory of rows that never come is not touched */
    uint32_t max_rows;    /* rows computed at a time: sets the memory; 0 = 512 */
    uint32_t n_threads;   /* 0 = as many as there are physical cores */
    uint32_t cache_bits;  /* of keys and values: 32 or 16; 0 = 32 with f32 products, else 16 */
    renyi_progress progress; /* during a feed: rows done of all; non-zero stops */
    void *progress_user;
} renyi_lm_session_options;

/* Borrows lm: it must outlive the session. Everything a feed needs is allocated here. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_session_new(renyi_lm_session **out, const renyi_lm *lm,
                                                        const renyi_lm_session_options *opt,
                                                        renyi_error *err);
RENYI_API void renyi_lm_session_free(renyi_lm_session *s);
RENYI_API size_t renyi_lm_session_bytes(const renyi_lm_session *s); /* with a full cache */

/* A row of the sequence: a token, or an embedding that stands in its place. */
typedef struct renyi_lm_input {
    const float *embedding; /* [dim], borrowed for the call; NULL = the row of `token` */
    int32_t token;
} renyi_lm_input;

/* Append n >= 1 rows to the sequence. logits: [vocab] of what follows the last of them, or NULL:
 * then they are not computed. More rows than the session has room for: RENYI_ERR_LIMIT, and nothing
 * was appended. Allocates nothing. A row has the same bits however many are fed with it and on any
 * number of threads. If the progress callback stops it (RENYI_ERR_ABORTED), the rows done so far
 * have been appended. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_feed(renyi_lm_session *s, const renyi_lm_input *in,
                                                 uint32_t n, float *logits, renyi_error *err);
RENYI_API uint32_t renyi_lm_position(const renyi_lm_session *s); /* rows of the sequence so far */
RENYI_API uint32_t renyi_lm_max_context(const renyi_lm_session *s);

/* Forget all rows but the first `position`, which is at most renyi_lm_position: RENYI_ERR_ARG. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_rewind(renyi_lm_session *s, uint32_t position,
                                                   renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
