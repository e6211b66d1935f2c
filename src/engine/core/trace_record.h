/* trace_record.h - records what every cut of a run decided; patches are named by their place in the
 * image. A trace is a hook between a plan and a pruner's hook.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TRACE_RECORD_H
#define RY_TRACE_RECORD_H

#include "model/vit/token_cut.h"

typedef struct ry_trace ry_trace;

/* Records the cuts of `inner`, whose self is borrowed. */
renyi_status ry_trace_new(ry_trace **out, const ry_token_hook *inner, const ry_vit_config *config,
                          uint32_t n_patches, uint32_t max_batch, const renyi_allocator *al,
                          renyi_error *err) RENYI_CHECK;
void ry_trace_free(ry_trace *t, const renyi_allocator *al);

/* inner, recorded; valid as long as the trace. */
const ry_token_hook *ry_trace_hook(const ry_trace *t);

size_t ry_trace_bytes(const ry_trace *t);
size_t ry_trace_cuts(const ry_trace *t);
/* Cut number `cut` of an image of the last run; the arrays are borrowed. */
void ry_trace_get(const ry_trace *t, uint32_t image, size_t cut, renyi_cut *out);

#endif
