/* pickle_global.h - the names a pickle of tensors may mention.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PICKLE_GLOBAL_H
#define RY_PICKLE_GLOBAL_H

#include "formats/tensor.h"

typedef enum ry_pickle_role {
    RY_ROLE_TENSOR,    /* torch._utils._rebuild_tensor_v2 */
    RY_ROLE_PARAMETER, /* torch._utils._rebuild_parameter */
    RY_ROLE_DICT,      /* collections.OrderedDict */
    RY_ROLE_STORAGE,   /* torch.FloatStorage and the like */
    RY_ROLE_MODULE,    /* any class of module __torch__ or below: TorchScript's own */
    RY_ROLE_INERT      /* plain data of training scripts: becomes an opaque node */
} ry_pickle_role;

typedef struct ry_pickle_global {
    const char *module, *name;
    ry_pickle_role role;
    ry_dtype dtype; /* RY_ROLE_STORAGE only */
} ry_pickle_global;

/* Index into the list, or -1: refuse. Texts are not NUL-terminated. */
int ry_pickle_global_find(const unsigned char *module, size_t module_length,
                          const unsigned char *name, size_t name_length);
const ry_pickle_global *ry_pickle_global_at(int index);

#endif
