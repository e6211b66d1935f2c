/* new_llava.h - a LLaVA that does not exist yet: its sizes from a name, its tensors and configs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NEW_LLAVA_H
#define RY_NEW_LLAVA_H

#include "model/llama/llama.h"
#include "model/vit/vit.h"
#include "renyi/llava.h"

#include <jansson.h>

typedef struct ry_new_llava {
    ry_llama_config lm;
    ry_vit_config tower;
    uint32_t mid_dim; /* inside the projector */
} ry_new_llava;

renyi_status ry_new_llava_config(ry_new_llava *out, const char *architecture,
                                 const renyi_lvlm_init_options *opt, renyi_error *err) RENYI_CHECK;

/* config.json and preprocessor_config.json as llava-hf has them; NULL when there is no memory. */
json_t *ry_new_llava_json(const ry_new_llava *m);
json_t *ry_new_llava_preprocessor_json(const ry_new_llava *m);

#endif
