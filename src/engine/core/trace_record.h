/* trace_record.h - remembers what every cut of a run decided, with patches named by their place in
 * the picture. A trace stands between a plan and a pruner's hook.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TRACE_RECORD_H
#define RY_TRACE_RECORD_H

#include "model/vit/vit_rows.h"

typedef struct ry_trace ry_trace;

/* For cuts of `inner` on an encoder; borrows nothing but inner's self. */
renyi_status ry_trace_new(ry_trace **out, const ry_token_hook *inner, const ry_vit_config *config,
                          uint32_t n_patches, uint32_t max_batch, const renyi_allocator *al,
                          renyi_error *err) RENYI_CHECK;
void ry_trace_free(ry_trace *t, const renyi_allocator *al);

/* inner, watched; valid as long as the trace. */
const ry_token_hook *ry_trace_hook(const ry_trace *t);

size_t ry_trace_bytes(const ry_trace *t);
size_t ry_trace_cuts(const ry_trace *t);
void ry_trace_get(const ry_trace *t, uint32_t image, size_t cut, renyi_cut *out);

#endif
