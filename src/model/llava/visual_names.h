/* visual_names.h - which tensors of a LLaVA belong to its visual side; between visual_config.c and
 * visual_load.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_NAMES_H
#define RY_VISUAL_NAMES_H

#include "model/common/tensor_names.h"
#include "model/llava/visual.h"

/* The image tower as a checkpoint by itself: its tensors alone, and the part of the config that
 * speaks of it. Borrows from the source; only `tensors` is its own, if owned. */
typedef struct ry_visual_tower {
    ry_checkpoint ckpt;
    int owned;
} ry_visual_tower;

renyi_status ry_visual_tower_open(ry_visual_tower *out, const ry_visual_source *from,
                                  const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_visual_tower_close(ry_visual_tower *t);

/* The projector: roles RY_FC1_* and RY_FC2_*, extents DIM, MLP and EMBED. 1 when it is there;
 * *layout (may be NULL) is then the name of the whole file's layout. */
int ry_visual_projector_find(ry_vit_naming *out, const char **layout, const ry_tensors *set);

/* That of a LLaVA that is about to be written, as llava-hf names it. */
ry_vit_naming ry_visual_projector_naming(void);

/* Its tensors alone. */
renyi_status ry_visual_projector_tensors(ry_tensors **out, const ry_vit_naming *n,
                                         const ry_tensors *set, const renyi_allocator *al,
                                         renyi_error *err) RENYI_CHECK;

#endif
