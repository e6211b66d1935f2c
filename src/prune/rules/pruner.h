/* pruner.h - a policy bound to one encoder: provides the token hook for a plan.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PRUNER_H
#define RY_PRUNER_H

#include "model/common/hook.h"
#include "prune/policy/policy_spec.h"

typedef struct ry_pruner ry_pruner;

typedef struct ry_pruner_spec {
    const ry_policy *policy; /* checked against shape; copied */
    ry_policy_shape shape;
    uint32_t dim, n_heads;
    uint32_t max_batch; /* 0 = only needs() is called (to count tokens) */
    renyi_cpu level;
} ry_pruner_spec;

/* Everything the rule needs in a run is allocated here. */
renyi_status ry_pruner_new(ry_pruner **out, const ry_pruner_spec *spec, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;
void ry_pruner_free(ry_pruner *p, const renyi_allocator *al);

/* Bytes of scratch memory. */
size_t ry_pruner_bytes(const ry_pruner *p);

/* The hook, valid as long as the pruner; its watch() is free for the caller to set. */
ry_token_hook ry_pruner_hook(ry_pruner *p);

/* Forgets the faults of the run before. */
void ry_pruner_begin(ry_pruner *p);

/* RENYI_OK, or what a rule of the caller's own did wrong in this run and in which image, the lowest
 * if there are several. May be called between blocks: the run has to stop then. */
renyi_status ry_pruner_fault(const ry_pruner *p, renyi_error *err) RENYI_CHECK;

/* Identifies the images of the next run for `random`: keys [n], such as hashes of the pixels. An
 * image then draws the same numbers in any batch, order and process. Without it all keys are 0.
 */
void ry_pruner_name_images(ry_pruner *p, const uint64_t *keys, uint32_t n);

#endif
