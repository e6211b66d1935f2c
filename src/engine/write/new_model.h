/* new_model.h - the configuration of a model that does not exist yet, from the name of an
 * architecture.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NEW_MODEL_H
#define RY_NEW_MODEL_H

#include "model/clip_text/text_tower.h"

/* `architecture` as ry_arch_parse reads it, with the sizes that *opt (NULL = none) sets instead;
 * its seed is idle here, and its classes are for a CLIP. Layout, eps, pooling and pictures are
 * timm's, or CLIP's and its layout Hugging Face's. */
renyi_status ry_new_model_config(ry_vit_config *out, const char *architecture,
                                 const renyi_init_options *opt, renyi_error *err) RENYI_CHECK;

/* The text tower that belongs to a CLIP of this name; ry_new_model_config has accepted it. */
renyi_status ry_new_text_config(ry_text_config *out, const char *architecture,
                                const renyi_init_options *opt, renyi_error *err) RENYI_CHECK;

#endif
