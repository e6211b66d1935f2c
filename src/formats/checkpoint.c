/* checkpoint.c - opens a checkpoint: finds weights and configs of a path, also in several shards.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "formats/checkpoint.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/status.h"
#include "formats/builtin.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors.h"
#include "formats/sniff.h"
#include "formats/tensor_set.h"
#include "formats/torch/torch_zip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- shards ---------------------------------------------------------------------------------- */

/* Several safetensors files (or PyTorch zips) form one model. An index lists them:
 * model.safetensors.index.json or pytorch_model.bin.index.json,
 *   { "metadata": {...}, "weight_map": { "tensor name": "shard file name", ... } } */

enum { MAX_SHARDS = 1024 };

static char *path_beside(const renyi_allocator *al, const char *path, const char *name)
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

/* Every value of the map must be a plain file name: shards are in the folder of the index. */
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
    char *path = path_beside(o->al, o->index_path, shard);
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

static renyi_status open_shards(ry_tensors **out, const char *index_path,
                                const renyi_limits *limits, const renyi_allocator *al,
                                renyi_error *err)
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

/* ---- which file ---------------------------------------------------------------------------- */

/* In this order; the first that exists is the model. */
static const char *const usual_names[] = {
    "model.safetensors",           "model.safetensors.index.json",
    "pytorch_model.bin",           "pytorch_model.bin.index.json",
    "open_clip_model.safetensors", "open_clip_pytorch_model.bin"};

/* Otherwise the only file with one of these endings, the first row first. */
static const char *const usual_tails[][3] = {{".safetensors", NULL, NULL}, {".pth", ".pt", ".bin"}};

static int exists(const char *path)
{
    struct stat st;
    return !stat(path, &st);
}

static int has_tail(const char *name, const char *const tails[3])
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < 3 && tails[i]; i++) {
        const size_t m = strlen(tails[i]);
        if (n > m && !strcmp(name + n - m, tails[i])) return 1;
    }
    return 0;
}

/* Counts the names that have one of the endings; *found is the last. */
static size_t count_tails(const ry_folder *list, const char *const tails[3], const char **found)
{
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!has_tail(list->items[i].name, tails)) continue;
        *found = list->items[i].name;
        n++;
    }
    return n;
}

static renyi_status fail_no_model(const char *folder, size_t candidates, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1,
                   "%s: no model in this folder: looked for model.safetensors, "
                   "model.safetensors.index.json, pytorch_model.bin, "
                   "open_clip_model.safetensors, open_clip_pytorch_model.bin, then for exactly one "
                   "*.safetensors, or one *.pth, *.pt or *.bin (%zu such files); "
                   "name the file",
                   folder, candidates);
}

static renyi_status find_single(char **out, const char *folder, const renyi_allocator *al,
                                renyi_error *err)
{
    ry_folder list;
    const char *name = NULL;
    size_t n = 0;
    RY_TRY(ry_folder_read(&list, folder, al, err));
    for (size_t i = 0; !n && i < sizeof usual_tails / sizeof *usual_tails; i++)
        n = count_tails(&list, usual_tails[i], &name);
    if (n == 1) *out = ry_path_in(al, folder, name);
    ry_folder_free(&list);
    if (n == 1) return *out ? RENYI_OK : ry_fail_nomem(err, strlen(folder) + 256);
    return fail_no_model(folder, n, err);
}

/* The file to read for a folder; owned by the caller. */
static renyi_status find_weights(char **out, const char *folder, const renyi_allocator *al,
                                 renyi_error *err)
{
    for (size_t i = 0; i < sizeof usual_names / sizeof *usual_names; i++) {
        *out = ry_path_in(al, folder, usual_names[i]);
        if (!*out) return ry_fail_nomem(err, strlen(folder) + 64);
        if (exists(*out)) return RENYI_OK;
        ry_free(al, *out);
        *out = NULL;
    }
    return find_single(out, folder, al, err);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Tensors and config of a GGUF: everything is in the file. */
static renyi_status parse_gguf(ry_checkpoint *c, const ry_mapped_file *file,
                               const renyi_limits *limits, const renyi_allocator *al,
                               renyi_error *err)
{
    const char *path = c->tensors_path;
    ry_gguf g;
    RY_TRY(ry_gguf_parse(&g, file->data, file->size, path, limits, al, err));
    const renyi_status st = ry_gguf_config(&c->config, &g, path, err);
    c->is_gguf = 1;
    c->tensors = g.tensors;
    g.tensors = NULL;
    ry_gguf_free(&g, al);
    return st;
}

static renyi_status parse_mapped(ry_checkpoint *c, ry_mapped_file *file, ry_file_kind kind,
                                 const renyi_limits *limits, const renyi_allocator *al,
                                 renyi_error *err)
{
    const char *path = c->tensors_path;
    if (kind == RY_FILE_SHARD_INDEX) return open_shards(&c->tensors, path, limits, al, err);
    if (kind == RY_FILE_GGUF)
        RY_TRY(parse_gguf(c, file, limits, al, err));
    else if (kind == RY_FILE_SAFETENSORS)
        RY_TRY(ry_safetensors_parse(&c->tensors, file->data, file->size, path, limits, al, err));
    else
        RY_TRY(ry_torch_parse(&c->tensors, file->data, file->size, path, limits, al, err));
    return ry_tensors_adopt(c->tensors, file, err);
}

/* Maps the file once: its bytes decide the format, and the tensors keep it mapped. */
static renyi_status read_tensors(ry_checkpoint *c, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err)
{
    ry_mapped_file file;
    ry_file_kind kind;
    RY_TRY(ry_mapped_file_open(&file, c->tensors_path, ry_limits(limits).max_file_bytes, err));
    renyi_status st = ry_sniff(&kind, c->tensors_path, file.data, file.size, err);
    if (!st) st = parse_mapped(c, &file, kind, limits, al, err);
    ry_mapped_file_close(&file);
    return st;
}

/* A config in the metadata of the weights: a model in one file. */
static renyi_status parse_meta(json_t **out, const ry_checkpoint *c, const char *name,
                               const renyi_limits *limits, renyi_error *err)
{
    const char *text = ry_tensors_meta(c->tensors, name);
    const ry_json_limits json = {ry_limits(limits).max_header_bytes, 0, 0};
    char what[64];
    if (!text) return RENYI_OK;
    snprintf(what, sizeof what, "__metadata__ (%s)", name);
    renyi_status st = ry_json_parse(out, text, strlen(text), what, &json, err);
    if (!st && !json_is_object(*out))
        st = ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: a JSON object expected", what);
    return st ? ry_fail_in(err, st, c->tensors_path) : RENYI_OK;
}

/* A JSON object beside the weights, or else in their metadata; *out stays NULL if there is none. */
static renyi_status read_config(json_t **out, const ry_checkpoint *c, const char *name,
                                const renyi_limits *limits, const renyi_allocator *al,
                                renyi_error *err)
{
    char *path = path_beside(al, c->tensors_path, name);
    if (!path) return ry_fail_nomem(err, strlen(c->tensors_path) + strlen(name) + 1);
    const int is_file = exists(path);
    renyi_status st =
        is_file ? ry_json_load_file(out, path, limits, err) : parse_meta(out, c, name, limits, err);
    if (!st && is_file && !json_is_object(*out))
        st = ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: a JSON object expected", path);
    ry_free(al, path);
    return st;
}

/* The image processor of Hugging Face: a file of its own, or since version 5 of transformers a part
 * of processor_config.json. */
static renyi_status read_processor(ry_checkpoint *c, const renyi_limits *limits,
                                   const renyi_allocator *al, renyi_error *err)
{
    json_t *whole = NULL;
    RY_TRY(read_config(&c->preprocessor_config, c, "preprocessor_config.json", limits, al, err));
    if (c->preprocessor_config) return RENYI_OK;
    const renyi_status st = read_config(&whole, c, "processor_config.json", limits, al, err);
    json_t *part = json_object_get(whole, "image_processor");
    if (!st && json_is_object(part)) c->preprocessor_config = json_incref(part);
    json_decref(whole); /* an array, for example, is a failure and is there all the same */
    return st;
}

static renyi_status open_parts(ry_checkpoint *c, const char *path, const renyi_limits *limits,
                               const renyi_allocator *al, renyi_error *err)
{
    if (ry_is_folder(path)) {
        RY_TRY(find_weights(&c->tensors_path, path, al, err));
    } else {
        c->tensors_path = ry_strdup(al, path);
        if (!c->tensors_path) return ry_fail_nomem(err, strlen(path) + 1);
    }
    RY_TRY(read_tensors(c, limits, al, err));
    if (c->is_gguf) return RENYI_OK;
    RY_TRY(read_config(&c->config, c, "config.json", limits, al, err));
    RY_TRY(read_config(&c->open_clip_config, c, "open_clip_config.json", limits, al, err));
    return read_processor(c, limits, al, err);
}

static renyi_status parse_parts(ry_checkpoint *c, const void *bytes, size_t size, const char *what,
                                const renyi_limits *limits, const renyi_allocator *al,
                                renyi_error *err)
{
    const uint64_t most = ry_limits(limits).max_file_bytes;
    if (most && size > most)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: %zu bytes; at most %llu accepted", what, size,
                       (unsigned long long)most);
    c->tensors_path = ry_strdup(al, what);
    if (!c->tensors_path) return ry_fail_nomem(err, strlen(what) + 1);
    RY_TRY(ry_safetensors_parse(&c->tensors, bytes, size, what, limits, al, err));
    RY_TRY(parse_meta(&c->config, c, "config.json", limits, err));
    RY_TRY(parse_meta(&c->open_clip_config, c, "open_clip_config.json", limits, err));
    return parse_meta(&c->preprocessor_config, c, "preprocessor_config.json", limits, err);
}

renyi_status ry_checkpoint_parse(ry_checkpoint *out, const void *bytes, size_t size,
                                 const char *what, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err)
{
    memset(out, 0, sizeof *out);
    const renyi_status st = parse_parts(out, bytes, size, what, limits, al, err);
    if (st) ry_checkpoint_close(out, al);
    return st;
}

static renyi_status open_builtin(ry_checkpoint *out, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err)
{
    size_t size;
    const void *bytes = ry_builtin_file(&size);
    if (!bytes)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       RENYI_MODEL_BUILTIN
                       ": this build has no built-in model (RENYI_BUILTIN=OFF): name one, e.g. "
                       "with -m MODEL");
    return ry_checkpoint_parse(out, bytes, size, RENYI_MODEL_BUILTIN, limits, al, err);
}

renyi_status ry_checkpoint_open(ry_checkpoint *out, const char *path, const renyi_limits *limits,
                                const renyi_allocator *al, renyi_error *err)
{
    memset(out, 0, sizeof *out);
    if (!strcmp(path, RENYI_MODEL_BUILTIN)) return open_builtin(out, limits, al, err);
    const renyi_status st = open_parts(out, path, limits, al, err);
    if (st) ry_checkpoint_close(out, al);
    return st;
}

void ry_checkpoint_close(ry_checkpoint *c, const renyi_allocator *al)
{
    ry_tensors_free(c->tensors);
    json_decref(c->config);
    json_decref(c->open_clip_config);
    json_decref(c->preprocessor_config);
    ry_free(al, c->tensors_path);
    memset(c, 0, sizeof *c);
}
