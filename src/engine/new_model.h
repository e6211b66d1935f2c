/* new_model.h - the configuration of a model that does not exist yet, from the name of an
 * architecture. SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ENGINE_NEW_MODEL_H
#define RY_ENGINE_NEW_MODEL_H

#include "model/vit.h"

/* `architecture` as ry_arch_parse reads it, with the sizes that *opt (NULL = none) sets instead;
 * its seed is idle here. Layout, eps, pooling and pictures are timm's. */
renyi_status ry_new_model_config(ry_vit_config *out, const char *architecture,
                                 const renyi_init_options *opt, renyi_error *err) RENYI_CHECK;

#endif
