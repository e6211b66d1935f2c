/* tensor_set.h - builds a ry_tensors; for the readers in src/formats. Order of calls: new -> add*,
 * adopt -> finish; on any failure ry_tensors_free.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TENSOR_SET_H
#define RY_TENSOR_SET_H

#include "base/file.h"
#include "formats/tensor.h"

#define RY_MAX_TENSORS 100000
#define RY_MAX_TENSOR_NAME 1024 /* bytes, without the NUL */

/* `al` is copied. */
renyi_status ry_tensors_new(ry_tensors **out, const renyi_allocator *al,
                            renyi_error *err) RENYI_CHECK;

/* Copies *t and its name; t->data must stay alive as long as the set (see adopt). `where` names the
 * file in messages. */
renyi_status ry_tensors_add(ry_tensors *set, const ry_tensor *t, const char *where,
                            renyi_error *err) RENYI_CHECK;
renyi_status ry_tensors_add_meta(ry_tensors *set, const char *key, const char *value,
                                 renyi_error *err) RENYI_CHECK; /* both copied */

/* A block owned by the set, for tensors that are not contiguous in the file. NULL = no memory. */
void *ry_tensors_own(ry_tensors *set, size_t bytes);

/* Moves the mapping into the set, which unmaps it in ry_tensors_free. On failure the caller keeps
 * it. */
renyi_status ry_tensors_adopt(ry_tensors *set, ry_mapped_file *file, renyi_error *err) RENYI_CHECK;

/* Move all tensors, blocks and mappings of *from to `set` and free *from; on failure both stay
 * valid. Of two equal metadata keys the first counts. */
renyi_status ry_tensors_absorb(ry_tensors *set, ry_tensors **from, const char *where,
                               renyi_error *err) RENYI_CHECK;

/* Builds the index for ry_tensors_find; two tensors with the same name are an error. */
renyi_status ry_tensors_finish(ry_tensors *set, const char *where, renyi_error *err) RENYI_CHECK;

/* Bytes that `t` must have, if its rows are whole blocks; 0 if that overflows. */
int ry_tensor_wanted_bytes(const ry_tensor *t, uint64_t *bytes);

/* "[2, 3]" into buf; cut short with "..." if it does not fit. Returns buf. */
const char *ry_tensor_shape_text(const ry_tensor *t, char *buf, size_t size);

#endif
