/* visual_session.h - the struct behind a renyi_visual_session, and what its two files share: a run
 * of one square of pixels (visual_session.c), and base and tiles of a LLaVA-NeXT (tile_session.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_SESSION_H
#define RY_VISUAL_SESSION_H

#include "engine/core/trace_record.h"
#include "engine/llava/llava_handles.h"
#include "engine/llava/visual_choice.h"
#include "prune/rules/pruner.h"

typedef struct ry_tile_session ry_tile_session;

struct renyi_visual_session {
    const renyi_visual *visual; /* borrowed */
    const ry_visual *side;      /* that of visual, or `smaller` */
    ry_visual smaller;          /* of the policy downsample */
    float *positions;           /* of `smaller`; else NULL */
    ry_policy policy;
    char policy_text[RY_MAX_POLICY_TEXT]; /* in full */
    /* For a policy that cuts inside the tower; else NULL. */
    ry_pruner *pruner;
    ry_trace *trace;
    ry_token_hook hook;       /* the pruner's */
    ry_visual_choice *choice; /* of a rule behind the tower; else NULL */
    ry_visual_plan *plan;
    ry_tile_session *tiles; /* of a LLaVA-NeXT; else NULL */
    renyi_progress progress;
    void *progress_user;
    float lut[3][256];
    uint8_t *pixels; /* [S, S, 3] the fitted image; NULL with tiles */
    uint32_t *kept;  /* [patches + 1] of the last square: the patch of each row */
    uint32_t n_most; /* rows that an image gives at most */
    uint32_t n_rows; /* rows of the last image without tiles; 0 = there is none */
};

typedef struct ry_visual_square {
    const uint8_t *pixels; /* [S, S, 3] */
    renyi_progress progress;
    void *progress_user;
} ry_visual_square;

/* Tower and pruning of one square: *n rows in s->plan->features, their patches in s->kept. */
renyi_status ry_visual_run_square(renyi_visual_session *s, const ry_visual_square *square,
                                  uint32_t *n, renyi_error *err) RENYI_CHECK;

/* Scores of the rule for the patches of the last square; NULL = it has none. */
static inline const float *ry_visual_scores(const renyi_visual_session *s)
{
    return s->choice ? ry_visual_rule_scores(ry_visual_choice_rule(s->choice)) : NULL;
}

/* ---- base and tiles ------------------------------------------------------------------------ */

/* Rows of an image at most, if a square gives `each`. */
uint32_t ry_tile_session_most(const renyi_visual_session *s, uint32_t each);

/* With s->plan and s->n_most. On failure the caller frees the session. */
renyi_status ry_tile_session_new(renyi_visual_session *s, renyi_error *err) RENYI_CHECK;
void ry_tile_session_free(ry_tile_session *t, const renyi_allocator *al);
size_t ry_tile_session_bytes(const ry_tile_session *t);

/* A square of the last image; 0 = there is no such square. */
int ry_tile_session_square(const renyi_visual_session *s, uint32_t square,
                           renyi_visual_square *out) RENYI_CHECK;

/* renyi_visual_run of a LLaVA-NeXT. */
renyi_status ry_tile_session_run(renyi_visual_session *s, const renyi_image *image,
                                 renyi_visual_tokens *out, renyi_error *err) RENYI_CHECK;

#endif
