/* model_file.c - see model_file.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/files/model_file.h"

#include "base/alloc.h"
#include "base/half.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/write/new_model.h"
#include "formats/safetensors.h"

#include <stdio.h>
#include <string.h>

/* ---- metadata ------------------------------------------------------------------------------ */

renyi_status ry_model_meta_make(ry_model_meta *out, const ry_vit_config *config,
                                const char *const *labels, const char *extra_key,
                                const char *extra_value, const renyi_allocator *al,
                                renyi_error *err)
{
    *out = (ry_model_meta){0};
    json_t *json = ry_config_json(config, labels);
    if (!json) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the metadata");
    RY_TRY(ry_json_text(&out->config, json, al, err));
    snprintf(out->heads, sizeof out->heads, "%u", config->n_heads);
    const char *const pairs[] = {"format",
                                 "pt",
                                 "architecture",
                                 config->architecture,
                                 "num_heads",
                                 out->heads,
                                 "generator",
                                 "renyi train",
                                 "renyi",
                                 renyi_version(),
                                 "config.json",
                                 out->config,
                                 extra_key,
                                 extra_value,
                                 NULL};
    _Static_assert(sizeof pairs <= sizeof out->pairs, "room for all pairs");
    memcpy(out->pairs, pairs, sizeof pairs);
    return RENYI_OK;
}

void ry_model_meta_free(ry_model_meta *m, const renyi_allocator *al)
{
    ry_free(al, m->config);
    *m = (ry_model_meta){0};
}

/* ---- tensors ------------------------------------------------------------------------------- */

ry_tensor ry_param_tensor(const ry_param *p, const char *name, const float *block)
{
    ry_tensor t = {.name = name,
                   .dtype = RY_F32,
                   .n_dims = p->n_dims,
                   .data = block + p->offset,
                   .bytes = p->size * sizeof(float)};
    memcpy(t.shape, p->shape, p->n_dims * sizeof *t.shape);
    return t;
}

/* Bytes [at, at + n) of a tensor of halves, whose data are floats. */
static renyi_status fill_half(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                              renyi_error *err)
{
    const float *from = (const float *)t->data + at / sizeof(uint16_t);
    (void)user;
    for (size_t i = 0; i < n / sizeof(uint16_t); i++) {
        if (!(fabsf(from[i]) < 65520.0f))
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "tensor '%.120s' holds %g, which F16 cannot; save F32 (save-dtype)",
                           t->name, (double)from[i]);
        const uint16_t half = ry_half_of(from[i]);
        memcpy((char *)out + i * sizeof half, &half, sizeof half);
    }
    return RENYI_OK;
}

renyi_status ry_model_file_write(const char *path, const ry_model_file *m,
                                 const renyi_allocator *al, renyi_error *err)
{
    const int is_half = m->dtype == RENYI_SAVE_F16;
    ry_tensor *tensors = ry_alloc(al, m->params->n, sizeof *tensors);
    size_t n = 0;
    ry_model_meta meta = {0};
    if (!tensors) return ry_fail_nomem(err, m->params->n * sizeof *tensors);
    for (uint32_t i = 0; i < m->params->n; i++) {
        const ry_param *p = &m->params->list[i];
        if (!p->is_model) continue;
        tensors[n] = ry_param_tensor(p, p->name, m->values);
        if (is_half) tensors[n].dtype = RY_F16;
        n++;
    }
    renyi_status st = ry_model_meta_make(&meta, m->config, m->labels, NULL, NULL, al, err);
    const ry_safetensors_content content = {tensors, n, meta.pairs, is_half ? fill_half : NULL,
                                            NULL};
    if (!st) st = ry_safetensors_write(path, &content, al, err);
    ry_model_meta_free(&meta, al);
    ry_free(al, tensors);
    return st;
}
