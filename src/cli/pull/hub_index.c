/* hub_index.c - see hub_index.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pull/hub_index.h"

#include "cli/kit/files.h"
#include "cli/pull/hub_cache.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const size_t max_index_bytes = 100u << 20;

static int add_once(cli_strings *shards, const char *name)
{
    const size_t length = strlen(name);

    for (size_t i = 0; i < shards->count; i++)
        if (strcmp(shards->items[i], name) == 0) return 0;
    if (!hub_is_plain_name(name) || length < 12 ||
        strcmp(name + length - 12, ".safetensors") != 0) {
        cli_error("model.safetensors.index.json: '%s' is not the name of a shard", name);
        return -1;
    }
    cli_strings_add(shards, cli_copy(name));
    return 0;
}

static int read_weight_map(const json_t *root, cli_strings *shards)
{
    json_t *map = json_object_get(root, "weight_map"), *value;
    const char *tensor;

    json_object_foreach(map, tensor, value)
    {
        if (!json_is_string(value)) {
            cli_error("model.safetensors.index.json: no file name for tensor %s", tensor);
            return -1;
        }
        if (add_once(shards, json_string_value(value))) return -1;
    }
    if (shards->count) return 0;
    cli_error("model.safetensors.index.json: no weight_map with shards in it");
    return -1;
}

int hub_index_shards(const char *path, cli_strings *shards)
{
    json_error_t where;
    file_bytes bytes;
    char *why;

    if (read_file(path, max_index_bytes, &bytes, &why)) {
        cli_error("%s: %s", path, why);
        free(why);
        return -1;
    }
    json_t *root = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &where);
    free(bytes.data);
    if (!root) {
        cli_error("model.safetensors.index.json: line %d: %s", where.line, where.text);
        return -1;
    }
    const int rc = read_weight_map(root, shards);
    json_decref(root);
    return rc;
}
