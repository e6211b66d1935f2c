/* preprocess_config.h - how the model wants its pictures, from the configs beside the weights or
 * from the habits of its family.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PREPROCESS_CONFIG_H
#define RY_PREPROCESS_CONFIG_H

#include "model/vit/vit.h"

/* Fills preprocess and preprocess_source of *c; layout and image_size must be set. `is_deit`
 * chooses among timm's defaults. */
renyi_status ry_preprocess_configure(ry_vit_config *c, const ry_checkpoint *ckpt, int is_deit,
                                     renyi_error *err) RENYI_CHECK;

#endif
