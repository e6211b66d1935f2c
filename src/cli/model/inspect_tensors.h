/* inspect_tensors.h - the tensors of a checkpoint as a list, a line and JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_INSPECT_TENSORS_H
#define RENYI_INSPECT_TENSORS_H

#include "renyi/renyi.h"
#include <jansson.h>

typedef struct tensor_list {
    renyi_tensor_info *items; /* [count], names owned */
    size_t count, room;
} tensor_list;

/* A renyi_tensor_visitor with a tensor_list as user: copies. Always 0. */
int tensor_list_add(void *list, const renyi_tensor_info *t);
void tensor_list_put(const tensor_list *list);
/* "tensors         100 x F16, 52 x F32": what the weights are stored as. */
void tensor_list_put_dtypes(const tensor_list *list);
json_t *tensor_list_json(const tensor_list *list);
void tensor_list_free(tensor_list *list);

#endif
