/* fuzz_formats.c - tensor files and JSON: what a reader accepts must be consistent and readable to
 * the last byte.
 * SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "base/json.h"
#include "formats/checkpoint.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors.h"
#include "formats/tensor.h"
#include "formats/torch/torch_zip.h"
#include "fuzz_targets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a reader accepts must be consistent and is read to the last byte. */
typedef renyi_status (*tensor_reader)(ry_tensors **out, const void *bytes, size_t size,
                                      const char *what, const renyi_limits *limits,
                                      const renyi_allocator *al, renyi_error *err);

static void read_bytes(const ry_tensors *set)
{
    volatile uint8_t sink = 0;
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        if (ry_tensors_find(set, t->name) != t) abort();
        if (t->bytes != ry_dtype_bytes(t->dtype, (size_t)ry_tensor_elements(t))) abort();
        for (uint64_t k = 0; k < t->bytes; k++) sink ^= ((const uint8_t *)t->data)[k];
    }
    (void)sink;
}

static int read_tensors(tensor_reader parse, const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    ry_tensors *set;
    renyi_error err;

    if (parse(&set, data, size, "fuzz", &limits, NULL, &err)) {
        if (set || !err.message[0]) abort();
        return 0;
    }
    read_bytes(set);
    ry_tensors_free(set);
    return 0;
}

/* ---- safetensors ----------------------------------------------------------------------------- */

/* Any bytes as a safetensors file. */
int fuzz_safetensors(const uint8_t *data, size_t size)
{
    return read_tensors(ry_safetensors_parse, data, size);
}

/* ---- torch ----------------------------------------------------------------------------------- */

/* Any bytes as a PyTorch zip checkpoint. */
int fuzz_torch(const uint8_t *data, size_t size)
{
    return read_tensors(ry_torch_parse, data, size);
}

/* ---- gguf ------------------------------------------------------------------------------------ */

/* Every value, in every form that it has. */
static void read_values(const ry_gguf *g)
{
    json_t *config;
    for (size_t i = 0; i < g->n_values; i++) {
        const ry_gguf_value *v = &g->values[i];
        ry_gguf_texts texts = ry_gguf_texts_of(v);
        ry_gguf_text text;
        volatile double sum = 0;
        double x;
        while (ry_gguf_next_text(&texts, &text))
            for (size_t k = 0; k < text.n; k++) sum += text.at[k];
        for (uint64_t k = 0; k < v->count && ry_gguf_number(v, k, &x); k++) sum += x;
        (void)sum;
    }
    if (ry_gguf_config(&config, g, "fuzz", NULL)) abort();
    json_decref(config);
}

/* Any bytes as a GGUF: values, tensors, and the first numbers of each. */
int fuzz_gguf(const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    enum { MOST = 1 << 16 };
    static float numbers[MOST];
    renyi_error err;
    ry_gguf g;
    if (ry_gguf_parse(&g, data, size, "fuzz", &limits, NULL, &err)) {
        if (g.tensors || g.values || !err.message[0]) abort();
        return 0;
    }
    read_values(&g);
    read_bytes(g.tensors);
    for (size_t i = 0; i < ry_tensors_count(g.tensors); i++) {
        const ry_tensor *t = ry_tensors_at(g.tensors, i);
        const int is_small = ry_tensor_elements(t) <= MOST;
        if (is_small && ry_tensor_to_f32(t, numbers, &err) && !err.message[0]) abort();
    }
    ry_gguf_free(&g, NULL);
    return 0;
}

/* ---- json ------------------------------------------------------------------------------------ */

/* Any bytes as config.json, read as models read it. */
int fuzz_json(const uint8_t *data, size_t size)
{
    const ry_json_limits limits = {1 << 20, 100000, 0};
    renyi_error err;
    json_t *j;

    if (ry_json_parse(&j, (const char *)data, size, "fuzz", &limits, &err)) {
        if (j || !err.message[0]) abort();
        return 0;
    }
    uint32_t n = 0;
    double x = 0, mean[3] = {0, 0, 0};
    const char *text = "";
    int flag = 0, bad = 0;
    const json_t *cfg = ry_json_object(j, "pretrained_cfg");
    bad += ry_json_uint(j, "patch_size", &n, "fuzz", &err) != RENYI_OK;
    bad += ry_json_uint(cfg, "num_classes", &n, "fuzz", &err) != RENYI_OK;
    bad += ry_json_double(cfg, "crop_pct", &x, "fuzz", &err) != RENYI_OK;
    bad += ry_json_double3(cfg, "mean", mean, "fuzz", &err) != RENYI_OK;
    bad += ry_json_string(cfg, "interpolation", &text, "fuzz", &err) != RENYI_OK;
    bad += ry_json_bool(j, "do_resize", &flag, "fuzz", &err) != RENYI_OK;
    if (!text || !isfinite(x) || !isfinite(mean[2]) || (bad && !err.message[0])) abort();
    json_decref(j);
    return 0;
}

/* ---- checkpoint ------------------------------------------------------------------------------ */

/* Two folders with small weights: one for a shard index, one for configs beside the weights. */
static char folder[] = "/tmp/fuzz_checkpoint_XXXXXX";

static char *path_in(char out[128], const char *name)
{
    snprintf(out, 128, "%s%s", folder, name);
    return out;
}

static void put_file(const char *name, const void *bytes, size_t size)
{
    char path[128];
    FILE *f = fopen(path_in(path, name), "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f)) abort();
}

static void remove_folders(void)
{
    static const char *const names[] = {"/shards/a.safetensors", "/shards",
                                        "/one/model.safetensors", "/one", ""};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) remove(path_in(path, names[i]));
}

static void make_folders(void)
{
    static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    char file[8 + sizeof header - 1 + 4] = {sizeof header - 1}, path[128];
    memcpy(file + 8, header, sizeof header - 1);
    if (!mkdtemp(folder) || mkdir(path_in(path, "/shards"), 0700) ||
        mkdir(path_in(path, "/one"), 0700))
        abort();
    put_file("/shards/a.safetensors", file, sizeof file);
    put_file("/one/model.safetensors", file, sizeof file);
    atexit(remove_folders);
}

/* The first byte selects a file, the others are its bytes: a shard index, or a config. Opened, or
 * refused with a message that names the folder. */
int fuzz_checkpoint(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"/shards/model.safetensors.index.json", "/one/config.json",
                                        "/one/preprocessor_config.json",
                                        "/one/processor_config.json", "/one/open_clip_config.json"};
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    renyi_error err = {0};
    ry_checkpoint c;
    char path[128];
    static int is_made;
    if (!size) return 0;
    if (!is_made++) make_folders();
    const size_t which = data[0] % (sizeof names / sizeof *names);
    put_file(names[which], data + 1, size - 1);
    if (ry_checkpoint_open(&c, path_in(path, which ? "/one" : "/shards"), &limits, NULL, &err)) {
        if (!strstr(err.message, folder) || c.tensors) abort();
    } else {
        if (ry_tensors_count(c.tensors) != 1 || (c.config && !json_is_object(c.config))) abort();
        ry_checkpoint_close(&c, NULL);
    }
    if (unlink(path_in(path, names[which]))) abort();
    return 0;
}
