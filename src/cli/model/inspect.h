/* inspect.h - the parts of renyi inspect: the list of tensors, and language models.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_INSPECT_H
#define RENYI_INSPECT_H

#include "renyi/renyi.h"
#include <jansson.h>

typedef struct tensor_list {
    renyi_tensor_info *items; /* [count], names owned */
    size_t count, capacity;
} tensor_list;

/* A renyi_tensor_visitor with a tensor_list as user; copies. Always 0. */
int tensor_list_add(void *list, const renyi_tensor_info *t);
void tensor_list_put(const tensor_list *list);
/* "tensors         100 x F16, 52 x F32": the dtypes in the file. */
void tensor_list_put_dtypes(const tensor_list *list);
json_t *tensor_list_json(const tensor_list *list);
void tensor_list_free(tensor_list *list);

/* Describes a LLaVA or Llama model. 0: the file has no language model; nothing was printed. 1:
 * done, *code is the exit code. opt: image size and dtype of the image tower. tensors: list them.
 */
int inspect_llava(const char *name, const renyi_options *opt, int json, int tensors, int *code);

#endif
