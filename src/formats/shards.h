/* shards.h - several safetensors files (or PyTorch zips) that are one model, tied by
 * model.safetensors.index.json (pytorch_model.bin.index.json):
 *   { "metadata": {...}, "weight_map": { "tensor name": "shard file name", ... } }
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SHARDS_H
#define RY_SHARDS_H

#include "formats/tensor.h"

/* Shards lie beside the index. On success *out (owned by the caller) holds the tensors of all of
 * them; every tensor of the map must be in the shard that the map names. */
renyi_status ry_shards_open(ry_tensors **out, const char *index_path, const renyi_limits *limits,
                            const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* `name` beside the file `path` (in the same folder), as a new string; NULL when memory is short.
 */
char *ry_path_beside(const renyi_allocator *al, const char *path, const char *name);

#endif
