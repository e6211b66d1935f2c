/* pool_head.h - the attention-pooling head (ry_pool_head in vit.h): loading it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POOL_HEAD_H
#define RY_POOL_HEAD_H

#include "model/common/weight_loader.h"

/* Loads the head of a model with RY_POOL_ATTENTION; the loader's scratch must fit the matrices of a
 * block. After a failure *out holds what was loaded; the caller frees it. */
renyi_status ry_pool_head_load(ry_pool_head *out, ry_loader *ld,
                               const ry_vit_config *config) RENYI_CHECK;
void ry_pool_head_free(ry_pool_head *p, const renyi_allocator *al); /* partly built too */

#endif
