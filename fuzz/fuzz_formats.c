/* fuzz_formats.c - tensor files and JSON: what a reader accepts must be consistent and readable to
 * the last byte.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors.h"
#include "formats/tensor.h"
#include "formats/torch/torch_zip.h"
#include "fuzz_targets.h"

#include <math.h>
#include <stdlib.h>

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
