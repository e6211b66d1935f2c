/* shards.c -
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/shards.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "formats/safetensors.h"
#include "formats/tensor_set.h"
#include "formats/torch/torch_zip.h"

#include <string.h>

enum { MAX_SHARDS = 1024 };

char *ry_path_beside(const renyi_allocator *al, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0, n = strlen(name) + 1;
    char *out = ry_alloc(al, folder + n, 1);
    if (!out) return NULL;
    memcpy(out, path, folder);
    memcpy(out + folder, name, n);
    return out;
}

typedef struct opener {
    const char *index_path;
    const renyi_limits *limits;
    const renyi_allocator *al;
    renyi_error *err;
    json_t *map; /* tensor name -> shard name, borrowed */
} opener;

/* Every value of the map is a plain file name in the index's own folder. */
static renyi_status check_map(const opener *o)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(o->map, tensor, value)
    {
        const char *shard = json_string_value(value);
        if (!shard)
            return ry_fail(o->err, RENYI_ERR_FORMAT, -1,
                           "%s: weight_map: '%.120s' does not name a file", o->index_path, tensor);
        if (!*shard || strlen(shard) > 255 || strpbrk(shard, "/\\") || strstr(shard, ".."))
            return ry_fail(o->err, RENYI_ERR_FORMAT, -1,
                           "%s: weight_map: '%.120s' is in '%.120s'; a plain file name expected",
                           o->index_path, tensor, shard);
    }
    return RENYI_OK;
}

static renyi_status check_listed(const opener *o, const ry_tensors *set, const char *shard)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(o->map, tensor, value)
    {
        if (!strcmp(json_string_value(value), shard) && !ry_tensors_find(set, tensor))
            return ry_fail(o->err, RENYI_ERR_FORMAT, -1,
                           "%s: tensor '%.120s' should be in '%.120s', but is not", o->index_path,
                           tensor, shard);
    }
    return RENYI_OK;
}

static int is_safetensors(const char *name)
{
    static const char tail[] = ".safetensors";
    const size_t n = strlen(name), m = sizeof tail - 1;
    return n > m && !strcmp(name + n - m, tail);
}

static renyi_status add_shard(const opener *o, ry_tensors *all, const char *shard)
{
    ry_tensors *set = NULL;
    char *path = ry_path_beside(o->al, o->index_path, shard);
    if (!path) return ry_fail_nomem(o->err, strlen(o->index_path) + strlen(shard) + 2);
    renyi_status st = is_safetensors(shard)
                          ? ry_safetensors_open(&set, path, o->limits, o->al, o->err)
                          : ry_torch_open(&set, path, o->limits, o->al, o->err);
    ry_free(o->al, path);
    if (!st) st = check_listed(o, set, shard);
    if (!st) st = ry_tensors_absorb(all, &set, o->index_path, o->err);
    ry_tensors_free(set);
    return st;
}

/* `seen` is a set of the shard names already opened. */
static renyi_status add_all(const opener *o, ry_tensors *all, json_t *seen)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(o->map, tensor, value)
    {
        const char *shard = json_string_value(value);
        if (json_object_get(seen, shard)) continue;
        if (json_object_size(seen) >= MAX_SHARDS)
            return ry_fail(o->err, RENYI_ERR_LIMIT, -1, "%s: more than %d shards", o->index_path,
                           MAX_SHARDS);
        if (json_object_set_new(seen, shard, json_true()))
            return ry_fail_nomem(o->err, strlen(shard));
        RY_TRY(add_shard(o, all, shard));
    }
    return ry_tensors_finish(all, o->index_path, o->err);
}

static renyi_status open_all(opener *o, ry_tensors **out, json_t *index)
{
    o->map = json_object_get(index, "weight_map");
    if (!json_object_size(o->map))
        return ry_fail(o->err, RENYI_ERR_FORMAT, -1,
                       "%s: no \"weight_map\" with tensors; a shard index or a .safetensors file "
                       "expected",
                       o->index_path);
    RY_TRY(check_map(o));
    json_t *seen = json_object();
    if (!seen) return ry_fail_nomem(o->err, 0);
    renyi_status st = ry_tensors_new(out, o->al, o->err);
    if (!st) st = add_all(o, *out, seen);
    json_decref(seen);
    return st;
}

renyi_status ry_shards_open(ry_tensors **out, const char *index_path, const renyi_limits *limits,
                            const renyi_allocator *al, renyi_error *err)
{
    opener o = {index_path, limits, al, err, NULL};
    json_t *index;

    *out = NULL;
    RY_TRY(ry_json_load_file(&index, index_path, limits, err));
    const renyi_status st = open_all(&o, out, index);
    json_decref(index);
    if (st) {
        ry_tensors_free(*out);
        *out = NULL;
    }
    return st;
}
