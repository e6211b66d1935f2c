/* other_families.h - models that are refused by name.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_OTHER_FAMILIES_H
#define RY_OTHER_FAMILIES_H

#include "formats/checkpoint.h"

/* RENYI_ERR_UNSUPPORTED with the name of another family of models, if the config or the tensors
 * are those of one. */
renyi_status ry_vit_refuse_others(const ry_checkpoint *ckpt, renyi_error *err) RENYI_CHECK;
/* "model_type" (Hugging Face) or "architecture" (timm) of the config; NULL = none. Borrowed. */
const char *ry_config_family(const ry_checkpoint *ckpt);

#endif
