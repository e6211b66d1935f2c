/* config_json.h - a model's configuration as the config.json that timm and this library read, so
 * that one file is the whole model.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CONFIG_JSON_H
#define RY_CONFIG_JSON_H

#include "model/clip_text/text_tower.h"

#include <jansson.h>

/* labels: [n_classes] names of the classes, or NULL; where one is missing or no UTF-8 the class has
 * none. NULL when there is no memory. */
json_t *ry_config_json(const ry_vit_config *c, const char *const *labels);

/* Of both towers, as Hugging Face has it. NULL when there is no memory. */
json_t *ry_clip_config_json(const ry_vit_config *c, const ry_text_config *text);

#endif
