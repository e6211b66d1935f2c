/* open_clip_config.h - what open_clip_config.json says of an image tower.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_OPEN_CLIP_CONFIG_H
#define RY_OPEN_CLIP_CONFIG_H

#include "model/common/tensor_names.h"

#define RY_OPEN_CLIP_FILE "open_clip_config.json"

/* 1 if the tensors have open_clip's names and its config describes their image tower. */
int ry_open_clip_has_config(const ry_tensor_naming *n, const ry_checkpoint *ckpt);

/* The name of timm's model, if the tower is one; else *out stays. */
renyi_status ry_open_clip_architecture(const ry_checkpoint *ckpt, const char **out,
                                       renyi_error *err) RENYI_CHECK;

/* The value of image_size, of a list the first; NULL = none. Borrowed. */
const json_t *ry_open_clip_image_size(const ry_checkpoint *ckpt);

/* Checks the config against *c, whose sizes and pre_norm are set; `native` is the input size that
 * positions and configs name. Of a tower with open_clip's own names it also fills heads,
 * activation, pooling and the epsilon of LayerNorm. */
renyi_status ry_open_clip_configure(ry_vit_config *c, const ry_checkpoint *ckpt, uint32_t native,
                                    renyi_error *err) RENYI_CHECK;

#endif
