/* new_model.h - the configuration of a model that does not exist yet, and config.json of any model.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NEW_MODEL_H
#define RY_NEW_MODEL_H

#include "model/vit/vit.h"

#include <jansson.h>

/* The configuration of an architecture named as ry_arch_parse reads it. Sizes that *opt sets (NULL
 * = none) replace those of the name; opt->seed is not used, and a CLIP has no classes. Layout, eps,
 * pooling and preprocessing are timm's, or Hugging Face's for a CLIP. */
renyi_status ry_new_model_config(ry_vit_config *out, const char *architecture,
                                 const renyi_init_options *opt, renyi_error *err) RENYI_CHECK;

/* The configuration as the config.json that timm and this library read, so that one file is the
 * whole model. labels: [n_classes] class names, or NULL; a name that is missing or not UTF-8 is
 * left out. NULL if there is no memory. */
json_t *ry_config_json(const ry_vit_config *c, const char *const *labels);

#endif
