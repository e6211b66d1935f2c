/* llama_names.h - what files call the tensors of a Llama, alone or inside a LLaVA: tables for the
 * machinery of tensor_names.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAMA_NAMES_H
#define RY_LLAMA_NAMES_H

#include "model/common/tensor_names.h"
#include "model/llama/llama.h"

/* How names begin in a file with packed matrices (llama_stored.h), and its layout. */
#define RY_STORED "renyi_lm."
#define RY_STORED_LAYOUT "renyi"

/* 1 when the table of tokens of a known layout is among the tensors, 0 otherwise. Its group
 * RY_GROUP_HEAD is the output matrix. */
int ry_llama_naming_find(ry_vit_naming *out, const ry_tensors *set);

/* The naming of a layout that is about to be written: "llama", "llava-hf", "llava-hf-5" or
 * RY_STORED_LAYOUT. */
ry_vit_naming ry_llama_naming(const char *layout, uint32_t n_layers);

/* What the extents are in a model of this configuration. */
void ry_llama_extents(uint64_t out[RY_X_COUNT], const ry_llama_config *c);

#endif
