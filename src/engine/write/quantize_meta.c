/* quantize_meta.c - see quantize_meta.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/write/quantize_meta.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/status.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const own_keys[] = {RY_QUANT_KEY, "config.json",  "preprocessor_config.json",
                                       "num_heads",  "architecture", "renyi.lm_quantization"};
enum { N_OWN = sizeof own_keys / sizeof *own_keys };

static renyi_status scheme_text(char **out, const ry_quantize_scheme *s, const renyi_allocator *al,
                                renyi_error *err)
{
    char activations[64] = "per token";
    if (s->n_photos && s->rule == RENYI_RANGE_MAX)
        snprintf(activations, sizeof activations, "static max");
    else if (s->n_photos)
        snprintf(activations, sizeof activations, "static percentile %g",
                 s->percentile == 0.0 ? 99.9 : s->percentile);
    json_t *json = json_pack(
        "{s:i, s:s, s:s, s:I, s:[s, s, s, s], s:s}", "version", RY_QUANT_VERSION, "weights",
        "int8, symmetric, per output channel", "activations", activations, "calibration_photos",
        (json_int_t)s->n_photos, "products", "qkv", "proj", "fc1", "fc2", "renyi", renyi_version());
    if (!json) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the metadata");
    return ry_json_text(out, json, al, err);
}

static int is_own(const char *key)
{
    for (size_t i = 0; i < N_OWN; i++)
        if (strcmp(key, own_keys[i]) == 0) return 1;
    return 0;
}

/* Ours first, then what the source has besides. */
static renyi_status list_pairs(ry_quantize_meta *out, const ry_tensors *set,
                               const char *const values[N_OWN], const renyi_allocator *al,
                               renyi_error *err)
{
    size_t n_metas = 0, n = 0;
    while (ry_tensors_meta_key(set, n_metas)) n_metas++;
    const size_t most = 2 * (n_metas + N_OWN) + 1;
    out->pairs = ry_alloc(al, most, sizeof *out->pairs);
    if (!out->pairs) return ry_fail_nomem(err, most * sizeof *out->pairs);
    for (size_t i = 0; i < N_OWN; i++) {
        if (!values[i]) continue;
        out->pairs[n++] = own_keys[i];
        out->pairs[n++] = values[i];
    }
    for (size_t i = 0; i < n_metas; i++) {
        const char *key = ry_tensors_meta_key(set, i);
        if (is_own(key)) continue;
        out->pairs[n++] = key;
        out->pairs[n++] = ry_tensors_meta(set, key);
    }
    out->pairs[n] = NULL;
    return RENYI_OK;
}

renyi_status ry_quantize_meta_make(ry_quantize_meta *out, const ry_checkpoint *ckpt,
                                   const ry_vit_config *config, const ry_quantize_scheme *scheme,
                                   const renyi_allocator *al, renyi_error *err)
{
    *out = (ry_quantize_meta){0};
    RY_TRY(scheme_text(&out->texts[0], scheme, al, err));
    RY_TRY(ry_json_text(&out->texts[1], json_incref(ckpt->config), al, err));
    RY_TRY(ry_json_text(&out->texts[2], json_incref(ckpt->preprocessor_config), al, err));
    snprintf(out->heads, sizeof out->heads, "%u", config->n_heads);
    const char *const values[N_OWN] = {out->texts[0], out->texts[1],        out->texts[2],
                                       out->heads,    config->architecture, NULL};
    return list_pairs(out, ckpt->tensors, values, al, err);
}

renyi_status ry_quantize_lm_meta(ry_quantize_meta *out, const ry_checkpoint *ckpt,
                                 renyi_dtype dtype, const renyi_allocator *al, renyi_error *err)
{
    const int is_int4 = dtype == RENYI_DTYPE_INT4;
    *out = (ry_quantize_meta){0};
    json_t *scheme = json_pack("{s:i, s:s, s:s, s:s}", "version", 1, "weights",
                               is_int4 ? "int4, symmetric, groups of 32 inputs"
                                       : "int8, symmetric, per output channel",
                               "activations", is_int4 ? "int8 per token and group" : "per token",
                               "renyi", renyi_version());
    if (!scheme) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the metadata");
    RY_TRY(ry_json_text(&out->texts[0], scheme, al, err));
    RY_TRY(ry_json_text(&out->texts[1], json_incref(ckpt->config), al, err));
    RY_TRY(ry_json_text(&out->texts[2], json_incref(ckpt->preprocessor_config), al, err));
    const char *const values[N_OWN] = {NULL, out->texts[1], out->texts[2],
                                       NULL, NULL,          out->texts[0]};
    return list_pairs(out, ckpt->tensors, values, al, err);
}

renyi_status ry_quantize_target(const ry_checkpoint *ckpt, const char *out, renyi_error *err)
{
    ry_mapped_file file; /* an index of shards is not among the files that tensors come from */
    if (!strcmp(ckpt->tensors_path, RENYI_MODEL_BUILTIN)) return RENYI_OK; /* not a file */
    RY_TRY(ry_mapped_file_open(&file, ckpt->tensors_path, 0, err));
    const int same = ry_mapped_file_is(&file, out) || ry_tensors_reads(ckpt->tensors, out);
    ry_mapped_file_close(&file);
    if (!same) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "%s is a file of the model itself; name another", out);
}

void ry_quantize_meta_free(ry_quantize_meta *m, const renyi_allocator *al)
{
    for (size_t i = 0; i < sizeof m->texts / sizeof *m->texts; i++) ry_free(al, m->texts[i]);
    ry_free(al, m->pairs);
    *m = (ry_quantize_meta){0};
}
