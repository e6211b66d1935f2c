/* llava.h - LLaVA-1.5 and LLaVA-NeXT (1.6): answers questions about images, with pruned visual
 * tokens.
 *
 * Call order: renyi_lvlm_open -> renyi_conversation_new -> renyi_conversation_show_file ->
 * renyi_conversation_ask (any number) -> free in reverse order.
 *
 * The image tower alone is renyi_visual_open; the language model alone is lm.h. The rules of
 * renyi.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_LLAVA_H
#define RENYI_LLAVA_H

#include "renyi/lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- visual tokens --------------------------------------------------------------------------- */

/* The image tower and projector of a LLaVA turn an image into rows for the language model. Call
 * order: renyi_visual_open -> renyi_visual_session_new -> renyi_visual_run_file, _run, _run_bytes
 * or _run_pixels (any number) -> free in reverse order. */

typedef struct renyi_visual renyi_visual; /* image tower and projector; immutable */

typedef struct renyi_visual_info {
    const char *layout; /* naming scheme of the file: "transformers", "llava-hf", "llava"; static */
    uint32_t image_size, patch_size, n_patches;
    uint32_t dim, n_heads, mlp_dim; /* of the tower */
    uint32_t n_blocks;              /* blocks of the tower in the file */
    uint32_t n_blocks_run;          /* blocks that are run; LLaVA-1.5 uses the output of the second
                                       to last: 23 of 24 */
    uint32_t lm_dim;                /* width of the projected rows */
    double norm_eps;
    renyi_preprocess preprocess;
    uint32_t pad_to_square; /* 1 = pad to a square with the mean color; 0 = crop, or tiles */
    /* LLaVA-NeXT reads an image as squares: the base, which is the whole image squashed, and tiles
     * of the grid that suits its shape. */
    uint32_t most_squares;      /* base and tiles of an image at most; else 1 */
    uint32_t n_grids;           /* LLaVA-NeXT; else 0 */
    const uint32_t (*grids)[2]; /* [n_grids] tiles across, tiles down */
    uint32_t most_rows;         /* visual tokens of an image at most */
    uint64_t n_params;          /* parameters that were loaded */
    renyi_dtype dtype; /* format of the matrix products in the blocks; the projector is f32 */
    renyi_cpu cpu;
} renyi_visual_info; /* strings are borrowed until renyi_visual_free */

/* Opens the visual part of a LLaVA, also from a GGUF with tower and projector (mmproj). Path and
 * options are as for renyi_model_open; tensors of the language model are ignored. tower: a CLIP
 * with the image tower, if it is not in the checkpoint. NULL = it is in the checkpoint, or in the
 * folder that the config names as mm_vision_tower; the last part of that name is looked up inside
 * `path` and beside it. On success *out is owned by the caller (renyi_visual_free). */
RENYI_API RENYI_CHECK renyi_status renyi_visual_open(renyi_visual **out, const char *path,
                                                     const char *tower, const renyi_options *opt,
                                                     renyi_error *err);
RENYI_API void renyi_visual_free(renyi_visual *v);
RENYI_API void renyi_visual_get_info(const renyi_visual *v, renyi_visual_info *info);

/* Compares the patches of an image with a question, for the policy cdpruner: text tower, tokenizer
 * and projections of a CLIP. Immutable; may be shared by sessions. */
typedef struct renyi_relevance renyi_relevance;

/* Opens the CLIP that the model's image tower is from. Path and options are as for renyi_text_open.
 * tokenizer: file or folder; NULL = in the folder of the CLIP. On success *out is owned by the
 * caller (renyi_relevance_free). */
RENYI_API RENYI_CHECK renyi_status renyi_relevance_open(renyi_relevance **out, const char *path,
                                                        const char *tokenizer,
                                                        const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_relevance_free(renyi_relevance *r);

/* Activations of a tower. Used by one thread at a time. */
typedef struct renyi_visual_session renyi_visual_session;

typedef struct renyi_visual_session_options {
    uint32_t struct_size;
    uint32_t n_threads; /* 0 = as in renyi_session_options */
    const char *policy; /* docs/PRUNING.md, docs/VISUAL_RULES.md; NULL = "none"; copied. Some rules
                           choose behind the tower, others cut inside it; those of
                           docs/LM_PRUNING.md need the language model */
    renyi_progress progress; /* called during a run: blocks done, all blocks */
    void *progress_user;
    const renyi_relevance *relevance; /* for the policy cdpruner metric=text; borrowed until
                                         renyi_visual_session_free */
} renyi_visual_session_options;

/* Borrows v until renyi_visual_session_free. All memory for runs on pixels is allocated here. On
 * success *out is owned by the caller (renyi_visual_session_free). */
RENYI_API RENYI_CHECK renyi_status renyi_visual_session_new(renyi_visual_session **out,
                                                            const renyi_visual *v,
                                                            const renyi_visual_session_options *opt,
                                                            renyi_error *err);
RENYI_API void renyi_visual_session_free(renyi_visual_session *s);
RENYI_API size_t renyi_visual_session_bytes(const renyi_visual_session *s); /* memory it holds */
/* The policy with all defaults. Borrowed until renyi_visual_session_free. */
RENYI_API const char *renyi_visual_session_policy(const renyi_visual_session *s);
/* Number of rows per image. For a policy that adapts to the image this is the maximum. */
RENYI_API uint32_t renyi_visual_session_tokens(const renyi_visual_session *s);

/* In `kept`: the row that ends a line of patches (LLaVA-NeXT). */
#define RENYI_NEWLINE (RENYI_NONE - 1)

/* LLaVA-NeXT: the tiles of an image, and its part of their patches. The rest is border, which the
 * language model does not read. Columns and lines count patches of the whole grid of tiles. */
typedef struct renyi_visual_tiles {
    uint32_t across, down; /* tiles */
    uint32_t first_column, first_line, n_columns, n_lines;
} renyi_visual_tiles;

/* The question of the next images, for the policy cdpruner metric=text; other policies ignore it. A
 * question longer than the context of CLIP's text tower is cut off. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_session_question(renyi_visual_session *s,
                                                                 const char *question,
                                                                 renyi_error *err);

/* Rows of one image in the order in which the language model reads them: prumerge by score, rules
 * behind the tower in raster order (visionzip: merged rows last), rules inside it in the order of
 * the tower. LLaVA-NeXT: the rows of the base in that order, those of the tiles line by line of the
 * whole grid, a newline row after each line that has a row, and at last the rows of tiles that are
 * of no one patch. Borrowed until the next run. */
typedef struct renyi_visual_tokens {
    uint32_t n;
    uint32_t lm_dim, dim;
    const float *rows;        /* [n, lm_dim] after the projector */
    const float *features;    /* [n, dim] before the projector */
    const uint32_t *kept;     /* [n] patch that each row is or continues; RENYI_NONE for a row that
                                 is of no one patch, such as the last row of prumerge. With the
                                 policy downsample a patch of the smaller image. LLaVA-NeXT: square *
                                 n_patches + patch, square 0 is the base, 1 the first tile;
                                 RENYI_NEWLINE for a newline row, whose features are 0 */
    const float *scores;      /* [n_squares, n_patches] scores used by a rule behind the tower
                                 (column norms with metric=correct), NaN for a square that did not
                                 run; NULL for other rules and those without scores */
    uint32_t n_full;          /* rows of this image without pruning */
    uint32_t n_squares;       /* LLaVA-NeXT: base and tiles; else 1 */
    renyi_visual_tiles tiles; /* LLaVA-NeXT; else 0 */
} renyi_visual_tokens;

/* Run an image of any size; an encoded image in memory (JPEG, PNG, WebP, PPM); an image file.
 * Errors name the file. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_run(renyi_visual_session *s,
                                                    const renyi_image *image,
                                                    renyi_visual_tokens *out, renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_visual_run_bytes(renyi_visual_session *s,
                                                          const void *bytes, size_t size,
                                                          renyi_visual_tokens *out,
                                                          renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_visual_run_file(renyi_visual_session *s, const char *path,
                                                         renyi_visual_tokens *out,
                                                         renyi_error *err);

/* Runs an image of exactly [image_size, image_size, 3] bytes. Allocates nothing, except with the
 * policy downsample, which resizes it first, and with tiles. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_run_pixels(renyi_visual_session *s,
                                                           const uint8_t *pixels,
                                                           renyi_visual_tokens *out,
                                                           renyi_error *err);

/* The image of the last run as the tower saw it: [image_size, image_size, 3] bytes; NULL = it was
 * seen in tiles, see renyi_visual_session_get_square. Borrowed until the next run. */
RENYI_API const uint8_t *renyi_visual_session_pixels(const renyi_visual_session *s);

/* A square of the image of the last run. */
typedef struct renyi_visual_square {
    const uint8_t *pixels; /* [size, size, 3] as the tower saw it; borrowed until the next run */
    uint32_t size;         /* side in pixels: image_size, or less with the policy downsample */
    uint32_t first_column, first_line, n_columns, n_lines; /* its patches that are no border; a tile
                                                              may have none */
    uint32_t n_rows; /* visual tokens that it gave; newline rows belong to no square */
} renyi_visual_square;

/* square: 0 is the base, 1 the first tile; without tiles only 0. RENYI_ERR_ARG: the image has no
 * such square, or there was no successful run. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_session_get_square(const renyi_visual_session *s,
                                                                   uint32_t square,
                                                                   renyi_visual_square *out,
                                                                   renyi_error *err);

/* What a session has computed since it was made; the difference of two calls is the work of the
 * runs between them. */
typedef struct renyi_visual_work {
    double tower_macs; /* multiply-accumulates of the tower, with those that a rule behind it adds;
                          cuts inside the tower make it less */
    double projector_macs; /* of the projector */
    double choice_ms;      /* time of a rule behind the tower: its scores and its choice; 0 without
                              one. The time of rules inside the tower is part of the tower's */
} renyi_visual_work;
RENYI_API void renyi_visual_session_get_work(const renyi_visual_session *s, renyi_visual_work *out);

/* ---- prompts --------------------------------------------------------------------------------- */

/* A prompt is a list of ids in which one RENYI_LVLM_IMAGE marks the visual tokens.
 * renyi_conversation_ask makes prompts itself; these functions are for callers that feed a language
 * model directly. */

/* Marks the position of the visual tokens in a list of ids. LLaVA's number. */
#define RENYI_LVLM_IMAGE (-200)

/* A question and its answer. */
typedef struct renyi_lvlm_turn {
    const char *question;
    const char *answer; /* NULL only in the last turn: the model answers it */
} renyi_lvlm_turn;

typedef struct renyi_lvlm_prompt_options {
    uint32_t struct_size;
    uint32_t without_image; /* 1 = no image */
    const char *system;     /* system prompt; NULL = that of vicuna_v1, "" = none */
    uint32_t image_turn;    /* the turn whose question has the image before it; 0 = the first */
} renyi_lvlm_prompt_options;

/* Encodes a conversation in the template vicuna_v1 of LLaVA-1.5 and 1.6: system prompt, " USER: ",
 * one RENYI_LVLM_IMAGE, "\n", question, " ASSISTANT:", and eos after each answer. The image stands
 * before the question of turn image_turn. The parts before and after the image are encoded as
 * separate texts, each with a blank in front; only the first has bos. Special tokens in questions
 * and answers are plain text. turns: [n_turns], at least one. opt may be NULL. ids, max and *n are
 * as for renyi_lm_tokenizer_encode. */
RENYI_API RENYI_CHECK renyi_status renyi_lvlm_prompt(const renyi_lm_tokenizer *t,
                                                     const renyi_lvlm_turn *turns, uint32_t n_turns,
                                                     const renyi_lvlm_prompt_options *opt,
                                                     int32_t *ids, size_t max, size_t *n,
                                                     renyi_error *err);

/* Encodes what follows a generated answer (without its eos): eos and the next question. For callers
 * that keep the key-value cache. */
RENYI_API RENYI_CHECK renyi_status renyi_lvlm_prompt_next(const renyi_lm_tokenizer *t,
                                                          const char *question, int32_t *ids,
                                                          size_t max, size_t *n, renyi_error *err);

/* ---- questions and answers ------------------------------------------------------------------- */

/* Call order: renyi_lvlm_open -> renyi_conversation_new -> renyi_conversation_show, _show_bytes or
 * _show_file -> renyi_conversation_ask (any number) -> free in reverse order. A conversation keeps
 * the key-value cache of image and history, so a further question computes only what is new. */

/* A whole LLaVA: image tower, projector, language model and tokenizer; or a plain Llama, which
 * has no image tower and continues texts. Immutable after open; may be shared by conversations. */
typedef struct renyi_lvlm renyi_lvlm;

typedef struct renyi_lvlm_options {
    uint32_t struct_size;
    renyi_cpu cpu;           /* 0 = best level */
    renyi_dtype dtype;       /* format of the language model, see renyi_lm_open */
    renyi_dtype tower_dtype; /* format of the image tower, see renyi_model_open */
    const char *tower;       /* CLIP with the image tower, see renyi_visual_open; NULL = default */
    const char *tokenizer;   /* file or folder; NULL = look in the folder of the model */
    renyi_limits limits;
    renyi_allocator allocator;
    renyi_progress progress; /* called while weights are loaded, first for the tower, then from 0
                                for the language model */
    void *progress_user;
    const char *mmproj; /* the file with tower and projector, see renyi_visual_open; path is then
                           read for the language model alone. NULL = both are at path */
    const char *text_tower; /* CLIP for the policy cdpruner, see renyi_relevance_open; NULL = none
                             */
} renyi_lvlm_options;

/* Opens a LLaVA or a plain Llama. Path is as for renyi_lm_open and renyi_visual_open. Without a
 * tokenizer everything works except questions as text. Parts that do not match are
 * RENYI_ERR_FORMAT: another width than the language model's, a tokenizer with another vocabulary.
 * On success *out is owned by the caller (renyi_lvlm_free). */
RENYI_API RENYI_CHECK renyi_status renyi_lvlm_open(renyi_lvlm **out, const char *path,
                                                   const renyi_lvlm_options *opt, renyi_error *err);
RENYI_API void renyi_lvlm_free(renyi_lvlm *m);

/* Parts of the model. Borrowed until renyi_lvlm_free. */
RENYI_API const renyi_lm *renyi_lvlm_lm(const renyi_lvlm *m);
RENYI_API const renyi_visual *renyi_lvlm_visual(const renyi_lvlm *m); /* NULL = a plain Llama */
RENYI_API const renyi_lm_tokenizer *renyi_lvlm_tokenizer(const renyi_lvlm *m); /* NULL = none */
RENYI_API const renyi_relevance *renyi_lvlm_relevance(const renyi_lvlm *m);    /* NULL = none */

/* One image and the questions about it. Used by one thread at a time. */
typedef struct renyi_conversation renyi_conversation;

typedef struct renyi_conversation_options {
    uint32_t struct_size;
    uint32_t n_threads;   /* 0 = as in renyi_session_options */
    uint32_t max_context; /* this and the next two: as in renyi_lm_session_options */
    uint32_t max_rows, cache_bits;
    const char *policy;      /* policy for the visual tokens, in the tower, behind it or in the
                                language model; NULL = "none"; copied */
    const char *system;      /* system prompt; NULL = that of vicuna_v1; copied. Not for a plain
                                Llama */
    renyi_progress progress; /* called during tower and prompt; non-zero stops */
    void *progress_user;
} renyi_conversation_options;

/* Borrows m until renyi_conversation_free. On success *out is owned by the caller
 * (renyi_conversation_free). */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_new(renyi_conversation **out,
                                                          const renyi_lvlm *m,
                                                          const renyi_conversation_options *opt,
                                                          renyi_error *err);
RENYI_API void renyi_conversation_free(renyi_conversation *c);
/* The policy with all defaults. Borrowed until renyi_conversation_free. */
RENYI_API const char *renyi_conversation_policy(const renyi_conversation *c);
/* Memory with a full cache. */
RENYI_API size_t renyi_conversation_bytes(const renyi_conversation *c);

/* Sets the image for the next questions, runs the tower and starts a new conversation. After a
 * failure there is no image. Errors name the file. A plain Llama: RENYI_ERR_UNSUPPORTED. */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_show(renyi_conversation *c,
                                                           const renyi_image *image,
                                                           renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_conversation_show_bytes(renyi_conversation *c,
                                                                 const void *bytes, size_t size,
                                                                 renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_conversation_show_file(renyi_conversation *c,
                                                                const char *path, renyi_error *err);
/* Starts a new conversation about the same image. The part that the next prompt shares with the
 * last one, such as the image, is not computed again. */
RENYI_API void renyi_conversation_restart(renyi_conversation *c);

typedef struct renyi_answer_options {
    uint32_t struct_size;
    uint32_t max_new_tokens; /* 0 = 512 */
    double temperature;      /* 0 = greedy: the largest logit; ties: the lowest id */
    double top_p;            /* sample from the smallest set of tokens with at least this total
                                probability; 0 = 1, all tokens */
    uint64_t seed;           /* seed of sampling. Token k of a conversation uses number k of
                                SplitMix64 from this seed, the same on every machine */
    uint32_t ignore_eos;     /* 1 = do not stop at eos; for measurements */
    float *logits;           /* [vocab] logits after the prompt, written by the call; may be NULL */
    /* The answer while it is generated: complete characters, NUL-terminated; non-zero stops. May be
     * NULL. */
    int (*on_text)(void *user, const char *text, size_t size);
    void *user;
    const char *question; /* by which the policy cdpruner chooses visual tokens for a prompt of ids;
                             renyi_conversation_ask uses its own question */
} renyi_answer_options;

typedef enum renyi_answer_end {
    RENYI_ANSWER_EOS = 0,     /* complete: the model wrote eos */
    RENYI_ANSWER_LENGTH = 1,  /* cut: max_new_tokens */
    RENYI_ANSWER_CONTEXT = 2, /* cut: the context is full */
    RENYI_ANSWER_STOPPED = 3  /* cut: on_text returned non-zero */
} renyi_answer_end;

typedef struct renyi_answer {
    const char *text;   /* the whole answer; "" without a tokenizer */
    const int32_t *ids; /* [n_ids] generated ids, without eos */
    uint32_t n_ids;
    renyi_answer_end end;
    uint32_t n_visual;        /* visual tokens in the prompt; 0 = no image */
    uint32_t n_visual_full;   /* the same without pruning */
    const uint32_t *kept;     /* [n_visual] as in renyi_visual_tokens */
    uint32_t n_prompt;        /* rows before the answer, visual tokens included */
    uint32_t n_reused;        /* rows of n_prompt that were in the cache */
    double vision_ms;         /* from image to visual tokens; 0 if done for an earlier answer */
    double prefill_ms;        /* for the n_prompt - n_reused new rows */
    double first_token_ms;    /* from image to first token: the two above plus sampling */
    double tokens_per_second; /* after the first token; 0 = no more tokens */
    uint64_t bytes;           /* memory of weights and conversation */
    const renyi_lm_cut *cuts; /* [n_cuts] of a policy inside the language model; their `kept` are
                                 indices into `kept`, or RENYI_NONE */
    uint32_t n_cuts;
} renyi_answer; /* borrowed until the next call with the conversation */

/* Asks a question. The first question follows the image, if there is one; later ones continue the
 * conversation. A plain Llama reads bos and the text as it is, without a template, and the answer
 * is its continuation; later texts follow the answer. RENYI_ERR_LIMIT: the prompt is longer than
 * the context; nothing has changed. Any other error during the run restarts the conversation.
 * Logits that are NaN: RENYI_ERR_FORMAT. */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_ask(renyi_conversation *c,
                                                          const char *question,
                                                          const renyi_answer_options *opt,
                                                          renyi_answer *out, renyi_error *err);

/* Restarts the conversation and runs a whole prompt given as ids [n]. The image is marked once, by
 * RENYI_LVLM_IMAGE or by the model's image token (32,000). */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_ask_ids(renyi_conversation *c,
                                                              const int32_t *ids, size_t n,
                                                              const renyi_answer_options *opt,
                                                              renyi_answer *out, renyi_error *err);

/* ---- costs ----------------------------------------------------------------------------------- */

/* What the image and the prompt of the last answer cost, as if no row had been read before. Counts
 * of the language model follow from the rows that each layer holds: products only, and of attention
 * only what a causal mask leaves (docs/LVLM.md). A multiply-accumulate is two FLOPs. */
typedef struct renyi_prompt_cost {
    uint32_t n_layers;    /* of the language model */
    uint32_t n_rows;      /* of the prompt, as its first layer reads them */
    double visual_tokens; /* rows of the image, mean over the layers of the language model */
    double tower_macs, projector_macs; /* of the image shown last; see renyi_visual_work */
    double lm_macs;                    /* of reading the prompt, with the logits of its last row and
                                          what a policy inside the language model adds to choose */
    uint64_t cache_bytes;              /* keys and values of the prompt in all layers */
    double choice_ms;                  /* see renyi_visual_work */
} renyi_prompt_cost;

/* RENYI_ERR_ARG: there is no answer yet. */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_get_cost(const renyi_conversation *c,
                                                               renyi_prompt_cost *out,
                                                               renyi_error *err);

/* ---- random models --------------------------------------------------------------------------- */

/* For measuring speed and memory at full size: no download is needed, and answers are
 * meaningless. */

/* Writes a LLaVA with random weights (truncated normal, deviation 0.02, F16, llava-hf's names) to a
 * folder, which is created if needed: config.json, preprocessor_config.json, model.safetensors or
 * shards with an index; no tokenizer. `architecture`: "llava-1.5-7b", "llava-1.5-13b",
 * "llava-1.6-7b" or "llava-1.6-13b". The same seed gives the same bytes. Needs little memory.
 * Existing model files in the folder are overwritten. */
typedef struct renyi_lvlm_init_options {
    uint32_t struct_size;
    uint64_t seed;
    /* Of the language model; 0 = as the architecture's name says. The tower (CLIP-L/14, 336 pixels)
     * is reduced to the same width and depth if they are smaller. */
    uint32_t dim, n_layers, n_heads, mlp_dim;
    uint64_t shard_bytes;    /* bytes of tensors per file, exceeded only by a single larger tensor;
                                0 = 5e9 */
    renyi_progress progress; /* bytes written, all bytes; non-zero stops */
    void *progress_user;
} renyi_lvlm_init_options;
RENYI_API RENYI_CHECK renyi_status renyi_lvlm_init(const char *folder, const char *architecture,
                                                   const renyi_lvlm_init_options *opt,
                                                   renyi_error *err);

/* ---- visual tokens for other engines --------------------------------------------------------- */

/* Writes visual tokens to a file. Call order: renyi_visual_run_file for each image, copy its rows
 * -> renyi_visual_write. */

/* Visual tokens of one image. Borrowed for the call. */
typedef struct renyi_visual_rows {
    const char *name;     /* name of the image */
    uint32_t n;           /* number of rows */
    const float *rows;    /* [n, lm_dim] */
    const uint32_t *kept; /* [n] as in renyi_visual_tokens */
} renyi_visual_rows;

typedef struct renyi_visual_file {
    uint32_t struct_size;
    uint32_t lm_dim;
    const renyi_visual_rows *pictures; /* [n_pictures] */
    size_t n_pictures;
    const char *model, *policy;      /* for the metadata; NULL = unknown */
    uint32_t image_size, patch_size; /* for the metadata; 0 = unknown */
} renyi_visual_file;

/* Writes a safetensors file. For image i: "tokens.<i>" [n, lm_dim] F32 and "positions.<i>" [n] I32,
 * the patch of each row, -1 for a row made of several, -2 for a newline row. Metadata: format
 * "renyi.visual_tokens", version, files (a JSON list of names), model, policy, image_size,
 * patch_size. The file appears only when complete. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_write(const char *path,
                                                      const renyi_visual_file *file,
                                                      renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
