/* clip.h - images and texts in one space: CLIP's two towers, and classifiers made of words.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Images:     renyi_model_open -> renyi_session_new -> renyi_run -> renyi_normalise_rows
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
