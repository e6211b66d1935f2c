/* input_size.h - the side of the input of a ViT, from its positions and its configs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_INPUT_SIZE_H
#define RY_INPUT_SIZE_H

#include "model/common/tensor_names.h"

enum { RY_MAX_IMAGE = 4096 }; /* pixels */

/* Sets n_placed. Registers have no positions, except in timm without no_embed_class. timm may also
 * have none for the class token. config: of the image tower, or NULL. */
renyi_status ry_vit_count_placed(ry_vit_config *c, const json_t *config, uint64_t n_positions,
                                 renyi_error *err) RENYI_CHECK;

/* Sets image_size to `wanted`, or if that is 0 to *native, the size that the model was made for. */
renyi_status ry_vit_choose_image_size(ry_vit_config *c, const ry_checkpoint *ckpt,
                                      const json_t *config, uint64_t n_positions, uint32_t wanted,
                                      uint32_t *native, renyi_error *err) RENYI_CHECK;

#endif
