/* text_tower_names.h - what Hugging Face and OpenAI call the tensors of CLIP's text tower: tables
 * for the machinery of tensor_names.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEXT_TOWER_NAMES_H
#define RY_TEXT_TOWER_NAMES_H

#include "model/clip_text/text_tower.h"
#include "model/common/tensor_names.h"

/* 1 when the token embedding of a known layout is among the tensors, 0 otherwise. */
int ry_text_naming_find(ry_vit_naming *out, const ry_tensors *set);

/* The text tower of a CLIP that is about to be written, as Hugging Face names it. */
ry_vit_naming ry_text_naming_hf(uint32_t n_blocks);

/* What the extents are in a tower of this configuration. */
void ry_text_extents(uint64_t out[RY_X_COUNT], const ry_text_config *c);

#endif
