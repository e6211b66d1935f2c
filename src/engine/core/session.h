/* session.h - the struct behind a renyi_session.
 *
 * With several streams a run is divided into parts that run at the same time. The session itself is
 * the first stream; `others` are plain sessions with their own plans and memory. A cascade has two
 * passes in every stream: the stream itself and `second`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SESSION_H
#define RY_SESSION_H

#include "engine/core/cascade_run.h"
#include "engine/core/model_handle.h"
#include "engine/core/policy_api.h"
#include "engine/core/streams.h"
#include "engine/core/trace_record.h"
#include "engine/tca/tca_adapt.h"
#include "model/vit/vit_plan.h"

#include <stdatomic.h>

struct renyi_session {
    const renyi_model *model;        /* borrowed */
    char policy[RY_MAX_POLICY_TEXT]; /* in full */
    renyi_session *second;           /* the second pass of a cascade; NULL: not a cascade */
    ry_cascade_run *cascade;         /* what passes between the two */
    ry_pruner *pruner;               /* NULL: dense */
    ry_trace *trace;                 /* NULL: not asked for */
    ry_token_hook hook;              /* the pruner's */
    ry_tca_run adapt;                /* its tca is NULL if the session does not adapt */
    int has_own_rule;                /* the policy's rule is the caller's own */
    uint64_t *image_keys; /* [max_batch] if this or the second pass draws random numbers; else
                             NULL */
    ry_vit_plan *plan;
    uint32_t max_batch, n_last; /* images per run at most, and in the last one */
    uint32_t n_threads;         /* of all streams; 0 in `others` and `second` */
    uint32_t n_streams;         /* the same */
    renyi_session **others;     /* [n_streams - 1] */
    uint32_t part;              /* images of each stream in the last run; the last may have fewer */
    atomic_int stops;           /* the first stream ended early: so do the others */
    renyi_progress progress;
    void *progress_user;
    float lut[3][256]; /* normalized value of each byte, per channel */
    uint8_t *pixels;   /* [max_batch, S, S, 3] fitted images of renyi_run; NULL in `others` and
                          `second` */
};

/* The progress callback of `others`. user: the session. */
int ry_session_is_stopped(void *user, uint64_t done, uint64_t total);

#endif
