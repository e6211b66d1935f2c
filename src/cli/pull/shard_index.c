/* shard_index.c - the shards that model.safetensors.index.json of a repository names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/shard_index.h"

#include "cli/kit/files.h"
#include "cli/pull/hub_cache.h"

#include <stdlib.h>
#include <string.h>

static const char index_name[] = "model.safetensors.index.json";
static const size_t max_index_bytes = 100000000;
enum { MAX_VALUES = 1000000 }; /* as the library; a value takes some 100 bytes of memory */

/* Adds it to the set unless it is there. */
static int add_shard(json_t *shards, const char *name, size_t max_shards)
{
    const size_t length = strlen(name);

    if (json_object_get(shards, name)) return 0;
    if (json_object_size(shards) == max_shards) {
        cli_error("%s: more than %zu shards", index_name, max_shards);
        return -1;
    }
    if (!hub_is_plain_name(name) || length < 12 ||
        strcmp(name + length - 12, ".safetensors") != 0) {
        cli_error("%s: '%.200s' is not the name of a shard", index_name, name);
        return -1;
    }
    if (json_object_set_new(shards, name, json_true()) == 0) return 0;
    cli_error("%s: no memory for the name of a shard", index_name);
    return -1;
}

static int read_weight_map(const json_t *root, json_t *shards, size_t max_shards)
{
    json_t *map = json_object_get(root, "weight_map"), *value;
    const char *tensor;

    json_object_foreach(map, tensor, value)
    {
        if (!json_is_string(value)) {
            cli_error("%s: no file name for tensor %.200s", index_name, tensor);
            return -1;
        }
        if (add_shard(shards, json_string_value(value), max_shards)) return -1;
    }
    if (json_object_size(shards)) return 0;
    cli_error("%s: no weight_map with shards in it", index_name);
    return -1;
}

/* At most this many values follow from the bytes, so that the size in memory is bounded before it
 * is allocated. */
static size_t count_values(const file_bytes *bytes)
{
    size_t n = 1;

    for (size_t i = 0; i < bytes->size; i++)
        n += bytes->data[i] == ',' || bytes->data[i] == '[' || bytes->data[i] == '{';
    return n;
}

static json_t *parse_index(const file_bytes *bytes)
{
    json_error_t where;

    if (count_values(bytes) > MAX_VALUES) {
        cli_error("%s: more than %d values", index_name, MAX_VALUES);
        return NULL;
    }
    json_t *root =
        json_loadb((const char *)bytes->data, bytes->size, JSON_REJECT_DUPLICATES, &where);
    if (!root) cli_error("%s: line %d: %s", index_name, where.line, where.text);
    return root;
}

json_t *shard_index_read(const char *path, size_t max_shards)
{
    file_bytes bytes;
    char *why;

    if (read_file(path, max_index_bytes, &bytes, &why)) {
        cli_error("%s: %s", path, why);
        free(why);
        return NULL;
    }
    json_t *root = parse_index(&bytes), *shards = root ? json_object() : NULL;
    free(bytes.data);
    if (shards && read_weight_map(root, shards, max_shards)) {
        json_decref(shards);
        shards = NULL;
    }
    json_decref(root);
    return shards;
}
