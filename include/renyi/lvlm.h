/* lvlm.h - photos and questions to answers: LLaVA's tower, projector and language model.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rules of renyi.h hold here too.
 */
#ifndef RENYI_LVLM_H
#define RENYI_LVLM_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer and prompts ----------------------------------------------------------------- */

/* ---- language model ------------------------------------------------------------------------ */

/* ---- visual tokens ------------------------------------------------------------------------- */

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

/* ---- questions and answers ----------------------------------------------------------------- */

#ifdef __cplusplus
}
#endif
#endif
