/* builtin.h - the built-in model: the checkpoint that the path "builtin" opens.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BUILTIN_H
#define RY_BUILTIN_H

#include <stddef.h>

/* A safetensors file, 64-byte aligned; NULL in a build without one. */
const void *ry_builtin_file(size_t *size);

#endif
