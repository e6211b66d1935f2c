/* llava.h - LLaVA-1.5: images and questions to answers, with pruned visual tokens.
 * SPDX-License-Identifier: Apache-2.0
 *
 * renyi_lvlm_open -> renyi_conversation_new -> renyi_conversation_show_file
 * -> renyi_conversation_ask, again for more questions -> free in reverse order
 *
 * The image tower alone: renyi_visual_open. The language model alone: lm.h. The rules of renyi.h
 * hold here too.
 */
#ifndef RENYI_LLAVA_H
#define RENYI_LLAVA_H

#include "renyi/lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- visual tokens --------------------------------------------------------------------------- */

typedef struct renyi_visual renyi_visual; /* image tower and projector; immutable after open */

typedef struct renyi_visual_info {
    const char *layout; /* whose names the file uses: "transformers", "llava-hf", "llava"; static */
    uint32_t image_size, patch_size, n_patches;
    uint32_t dim, n_heads, mlp_dim; /* of the tower */
    uint32_t n_blocks;              /* of the tower, run or not */
    uint32_t n_blocks_run;          /* LLaVA-1.5 reads what the last but one leaves: 23 of 24 */
    uint32_t lm_dim;                /* width of the projected rows */
    double norm_eps;
    renyi_preprocess preprocess;
    uint32_t
        pad_to_square; /* photos get a border of the mean colour first; else they are cropped */
    uint64_t n_params; /* of what was loaded */
    renyi_dtype dtype; /* of the matrix products in the blocks; the projector's are f32 */
    renyi_cpu cpu;
} renyi_visual_info; /* strings are borrowed until renyi_visual_free */

/* Open the visual side of a LLaVA-1.5: path and options as for renyi_model_open; the tensors of the
 * language model are not looked at. tower: where the image tower lies if not in the same
 * checkpoint, a CLIP by itself; NULL = in the checkpoint, or the folder that its config calls
 * mm_vision_tower, by its last part inside `path` or beside it. On success *out is owned by the
 * caller (renyi_visual_free). On failure *out is NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_open(renyi_visual **out, const char *path,
                                                     const char *tower, const renyi_options *opt,
                                                     renyi_error *err);
RENYI_API void renyi_visual_free(renyi_visual *v);
RENYI_API void renyi_visual_get_info(const renyi_visual *v, renyi_visual_info *info);

typedef struct renyi_visual_session renyi_visual_session; /* for one caller at a time */

typedef struct renyi_visual_session_options {
    uint32_t struct_size;
    uint32_t n_threads; /* 0 = as many as there are physical cores */
    const char *policy; /* docs/PRUNING.md; NULL = "none"; copied. prumerge and vispruner choose
                           when the tower is done, every other rule inside it */
    renyi_progress progress; /* during a run: blocks done of all blocks */
    void *progress_user;
} renyi_visual_session_options;

/* Borrows v: it must outlive the session. Everything a run on pixels needs is allocated here. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_session_new(renyi_visual_session **out,
                                                            const renyi_visual *v,
                                                            const renyi_visual_session_options *opt,
                                                            renyi_error *err);
RENYI_API void renyi_visual_session_free(renyi_visual_session *s);
RENYI_API size_t renyi_visual_session_bytes(const renyi_visual_session *s); /* that it holds */
/* The policy in full. Borrowed until renyi_visual_session_free. */
RENYI_API const char *renyi_visual_session_policy(const renyi_visual_session *s);
/* Most rows that a picture may give; exactly so many, unless the policy adapts to the picture. */
RENYI_API uint32_t renyi_visual_session_tokens(const renyi_visual_session *s);

/* What a picture became, in the order in which the language model reads it: prumerge by score,
 * vispruner in raster order, others as the tower's list has them. Borrowed until the next run. */
typedef struct renyi_visual_tokens {
    uint32_t n;
    uint32_t lm_dim, dim;
    const float *rows;     /* [n, lm_dim] after the projector */
    const float *features; /* [n, dim] before it */
    const uint32_t *kept;  /* [n] the patch of each row, in raster order of the picture; RENYI_NONE
                              for a row made of several, such as prumerge's last */
    const float *scores;   /* [n_patches] what prumerge or vispruner ranked the patches by; of
                              metric=correct the column norms. NULL with other rules */
} renyi_visual_tokens;

/* A picture of any size; an encoded one (JPEG, PNG, WebP, PPM); a file of one. Errors of a file
 * name it. */
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

/* A picture that is [image_size, image_size, 3] bytes already; allocates nothing. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_run_pixels(renyi_visual_session *s,
                                                           const uint8_t *pixels,
                                                           renyi_visual_tokens *out,
                                                           renyi_error *err);

/* ---- prompts --------------------------------------------------------------------------------- */

/* Where the visual tokens belong in a list of ids; LLaVA's number. */
#define RENYI_LVLM_IMAGE (-200)

/* A question and, when it has been given, its answer. */
typedef struct renyi_lvlm_turn {
    const char *question;
    const char *answer; /* NULL only in the last turn: what the model is to write */
} renyi_lvlm_turn;

typedef struct renyi_lvlm_prompt_options {
    uint32_t struct_size;
    uint32_t without_image; /* 1 = no picture before the first question */
    const char *system;     /* first sentences; NULL = vicuna_v1's, "" = none */
} renyi_lvlm_prompt_options;

/* The ids of a conversation in LLaVA-1.5's template vicuna_v1, the picture before the first
 * question as one RENYI_LVLM_IMAGE: system, " USER: ", the picture, "\n", question, " ASSISTANT:";
 * behind an answer eos. What stands before and what stands behind the picture are texts of their
 * own with a blank in front of each; only the first has bos. Special words in questions and answers
 * are plain text. turns: [n_turns], at least one; opt may be NULL; ids, max and *n as for
 * renyi_lm_tokenizer_encode. */
RENYI_API RENYI_CHECK renyi_status renyi_lvlm_prompt(const renyi_lm_tokenizer *t,
                                                     const renyi_lvlm_turn *turns, uint32_t n_turns,
                                                     const renyi_lvlm_prompt_options *opt,
                                                     int32_t *ids, size_t max, size_t *n,
                                                     renyi_error *err);

/* What follows when an answer has been written (its own eos not counted): eos and the next
 * question. For those who kept what the model made of all before it. */
RENYI_API RENYI_CHECK renyi_status renyi_lvlm_prompt_next(const renyi_lm_tokenizer *t,
                                                          const char *question, int32_t *ids,
                                                          size_t max, size_t *n, renyi_error *err);

/* ---- questions and answers ------------------------------------------------------------------- */

/* A LLaVA-1.5 whole: tower and projector, language model, tokenizer. Immutable after open, may be
 * shared by conversations. */
typedef struct renyi_lvlm renyi_lvlm;

typedef struct renyi_lvlm_options {
    uint32_t struct_size;
    renyi_cpu cpu;           /* 0 = best */
    renyi_dtype dtype;       /* of the language model: see renyi_lm_open */
    renyi_dtype tower_dtype; /* of the image tower: see renyi_visual_open */
    const char *tower;       /* a CLIP by itself; NULL: see renyi_visual_open */
    const char *tokenizer;   /* file or folder; NULL = what lies in the folder of the model */
    renyi_limits limits;
    renyi_allocator allocator;
    renyi_progress progress; /* while weights are loaded, the tower's first; starts over for the
                                language model */
    void *progress_user;
} renyi_lvlm_options;

/* Path as for renyi_lm_open and renyi_visual_open. Without a tokenizer beside the model all works
 * but questions in words. Parts that do not belong together are RENYI_ERR_FORMAT: rows of another
 * width than the language model's, a tokenizer of another vocabulary. On success *out is owned by
 * the caller (renyi_lvlm_free). On failure *out is NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_lvlm_open(renyi_lvlm **out, const char *path,
                                                   const renyi_lvlm_options *opt, renyi_error *err);
RENYI_API void renyi_lvlm_free(renyi_lvlm *m);

/* Its parts; borrowed until renyi_lvlm_free. */
RENYI_API const renyi_lm *renyi_lvlm_lm(const renyi_lvlm *m);
RENYI_API const renyi_visual *renyi_lvlm_visual(const renyi_lvlm *m);
RENYI_API const renyi_lm_tokenizer *renyi_lvlm_tokenizer(const renyi_lvlm *m); /* NULL = none */

/* A photo, questions about it and their answers. What the language model has computed of photo and
 * history is kept. For one caller at a time. */
typedef struct renyi_conversation renyi_conversation;

typedef struct renyi_conversation_options {
    uint32_t struct_size;
    uint32_t n_threads;   /* 0 = as many as there are physical cores */
    uint32_t max_context; /* as for renyi_lm_session_new, and so are the next two */
    uint32_t max_rows, cache_bits;
    const char *policy;      /* of the visual tokens; NULL = "none"; copied */
    const char *system;      /* first sentences; NULL = vicuna_v1's; copied */
    renyi_progress progress; /* during tower and prompt; non-zero stops */
    void *progress_user;
} renyi_conversation_options;

/* Borrows m: it must outlive the conversation. */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_new(renyi_conversation **out,
                                                          const renyi_lvlm *m,
                                                          const renyi_conversation_options *opt,
                                                          renyi_error *err);
RENYI_API void renyi_conversation_free(renyi_conversation *c);
/* The policy in full; borrowed until renyi_conversation_free. */
RENYI_API const char *renyi_conversation_policy(const renyi_conversation *c);
RENYI_API size_t renyi_conversation_bytes(const renyi_conversation *c); /* with a full cache */

/* The photo that the next questions are about, and a new conversation. Runs the tower. When it
 * fails there is no photo. Errors of a file name it. */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_show(renyi_conversation *c,
                                                           const renyi_image *image,
                                                           renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_conversation_show_bytes(renyi_conversation *c,
                                                                 const void *bytes, size_t size,
                                                                 renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_conversation_show_file(renyi_conversation *c,
                                                                const char *path, renyi_error *err);
/* The same photo, but what was said about it is forgotten. What the next prompt has in common with
 * the last one, such as the photo, is not computed again. */
RENYI_API void renyi_conversation_restart(renyi_conversation *c);

typedef struct renyi_answer_options {
    uint32_t struct_size;
    uint32_t max_new_tokens; /* 0 = 512 */
    double temperature;      /* 0 = greedy: the largest logit, of equals the lowest id */
    double top_p;            /* sample among the fewest tokens that are so probable together; 0 = 1,
                                all of them */
    uint64_t seed;           /* of the samples. Token k of a conversation is drawn with number k of
                                SplitMix64 from this seed, the same on every machine */
    uint32_t ignore_eos;     /* 1 = do not stop at the end of the answer; for measuring */
    float *logits;           /* [vocab] of what follows the prompt; may be NULL */
    int (*on_text)(void *user, const char *text, size_t size); /* the answer as it comes, in whole
                                characters, a NUL behind them; non-zero ends it. May be NULL */
    void *user;
} renyi_answer_options;

typedef enum renyi_answer_end {
    RENYI_ANSWER_EOS = 0,     /* the model says that it is complete */
    RENYI_ANSWER_LENGTH = 1,  /* cut: max_new_tokens */
    RENYI_ANSWER_CONTEXT = 2, /* cut: there is no more room for the conversation */
    RENYI_ANSWER_STOPPED = 3  /* cut: on_text wanted it */
} renyi_answer_end;

typedef struct renyi_answer {
    const char *text;   /* as it was streamed; "" without a tokenizer */
    const int32_t *ids; /* [n_ids] what the model wrote, without eos */
    uint32_t n_ids;
    renyi_answer_end end;
    uint32_t n_visual;     /* rows of the photo that the model sees; 0 = no photo in the prompt */
    const uint32_t *kept;  /* [n_visual] as in renyi_visual_tokens */
    uint32_t n_prompt;     /* rows of the conversation before the answer, visual ones included */
    uint32_t n_reused;     /* of them, computed before this call */
    double vision_ms;      /* from photo to visual tokens; 0 if an earlier answer had it */
    double prefill_ms;     /* of the n_prompt - n_reused others */
    double first_token_ms; /* from the photo to the first token: the two above and its choice */
    double tokens_per_second; /* after the first; 0 = there are none */
    uint64_t bytes;           /* of weights and conversation in memory */
} renyi_answer;               /* borrowed until the next call with the conversation */

/* Ask a question: the first behind the photo, if one was shown; another continues what was said.
 * RENYI_ERR_LIMIT: the prompt alone is longer than the context, and nothing has changed. An error
 * during the work restarts the conversation. Logits that are no numbers: RENYI_ERR_FORMAT. */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_ask(renyi_conversation *c,
                                                          const char *question,
                                                          const renyi_answer_options *opt,
                                                          renyi_answer *out, renyi_error *err);

/* The same with a whole prompt in ids [n], after a restart. The photo's place is RENYI_LVLM_IMAGE
 * or the model's own image token (32,000), once. */
RENYI_API RENYI_CHECK renyi_status renyi_conversation_ask_ids(renyi_conversation *c,
                                                              const int32_t *ids, size_t n,
                                                              const renyi_answer_options *opt,
                                                              renyi_answer *out, renyi_error *err);

/* ---- random models --------------------------------------------------------------------------- */

/* Write a LLaVA with random weights (truncated normal 0.02, F16, llava-hf's names) into a folder,
 * which is made if it is not there: config.json, preprocessor_config.json, model.safetensors or
 * shards with their index. For measuring speed and memory at full size: no tokenizer, and answers
 * mean nothing. `architecture`: "llava-1.5-7b" or "llava-1.5-13b". The same seed gives the same
 * bytes; little memory is needed. Files of an earlier model in the folder are overwritten. */
typedef struct renyi_lvlm_init_options {
    uint32_t struct_size;
    uint64_t seed;
    uint32_t dim, n_layers, n_heads, mlp_dim; /* of the language model; 0 = as the name says. The
                                                 tower, CLIP-L/14 at 336 pixels, becomes as narrow
                                                 and as shallow, but never wider or deeper */
    uint64_t shard_bytes;    /* of tensors in a file, at most, unless one alone has more; 0 = 5e9 */
    renyi_progress progress; /* bytes written of all; non-zero stops */
    void *progress_user;
} renyi_lvlm_init_options;
RENYI_API RENYI_CHECK renyi_status renyi_lvlm_init(const char *folder, const char *architecture,
                                                   const renyi_lvlm_init_options *opt,
                                                   renyi_error *err);

/* ---- visual tokens for other engines --------------------------------------------------------- */

/* Visual tokens of one picture in a file. Borrowed. */
typedef struct renyi_visual_rows {
    const char *name;     /* of the picture */
    uint32_t n;           /* rows */
    const float *rows;    /* [n, lm_dim] */
    const uint32_t *kept; /* [n] */
} renyi_visual_rows;

typedef struct renyi_visual_file {
    uint32_t struct_size;
    uint32_t lm_dim;
    const renyi_visual_rows *pictures; /* [n_pictures] */
    size_t n_pictures;
    const char *model, *policy;      /* for the metadata; NULL = not said */
    uint32_t image_size, patch_size; /* likewise; 0 */
} renyi_visual_file;

/* A safetensors file: of picture i "tokens.<i>" [n, lm_dim] F32 and "positions.<i>" [n] I32, the
 * patch of each row or -1 for one made of several; metadata format "renyi.visual_tokens", version,
 * files (a JSON list of names), model, policy, image_size, patch_size. Whole or not there. */
RENYI_API RENYI_CHECK renyi_status renyi_visual_write(const char *path,
                                                      const renyi_visual_file *file,
                                                      renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
