/* shard_index.h - the shards that model.safetensors.index.json of a repository names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_SHARD_INDEX_H
#define RENYI_SHARD_INDEX_H

#include <jansson.h>
#include <stddef.h>

/* A JSON object whose keys are the shards, each once, in order of first use; json_decref. NULL
 * after reporting: more than `max_shards`, or a name that is no plain file name, because names
 * become paths. */
json_t *shard_index_read(const char *path, size_t max_shards);

#endif
