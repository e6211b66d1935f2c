/* save_point.c - writes model files and checkpoints of a run, and reads checkpoints back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/files/save_point.h"

#include "base/alloc.h"
#include "base/half.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/write/new_model.h"
#include "formats/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- metadata -------------------------------------------------------------------------------- */

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
    _Static_assert(sizeof pairs <= sizeof out->pairs, "pairs is too short");
    memcpy(out->pairs, pairs, sizeof pairs);
    return RENYI_OK;
}

void ry_model_meta_free(ry_model_meta *m, const renyi_allocator *al)
{
    ry_free(al, m->config);
    *m = (ry_model_meta){0};
}

/* ---- tensors --------------------------------------------------------------------------------- */

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
    ry_tensor *tensors = ry_alloc(al, m->params->n_files, sizeof *tensors);
    size_t n = 0;
    ry_model_meta meta = {0};
    if (!tensors) return ry_fail_nomem(err, m->params->n_files * sizeof *tensors);
    for (uint32_t i = 0; i < m->params->n_files; i++) {
        const ry_param *p = &m->params->files[i];
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

/* ---- checkpoint ------------------------------------------------------------------------------ */

enum { NAME_SIZE = RY_NAME_MAX + 32 };
typedef char tensor_name[NAME_SIZE];

/* One of the arrays of a run, each with one value per weight. */
typedef struct block {
    const char *prefix;
    float *values; /* NULL = not kept */
    int is_weights;
} block;

enum { N_BLOCKS = 4 };

static void list_blocks(block out[N_BLOCKS], const ry_optim *o)
{
    out[0] = (block){"", o->params->value, 1};
    out[1] = (block){RY_TRAINING_PREFIX "m.", o->m, 0};
    out[2] = (block){RY_TRAINING_PREFIX "v.", o->v, 0};
    out[3] = (block){RY_TRAINING_PREFIX "ema.", o->ema, 0};
}

static void name_of(tensor_name out, const block *b, const ry_param *p)
{
    const char *prefix = b->is_weights && !p->is_model ? RY_TRAINING_PREFIX "param." : b->prefix;
    snprintf(out, NAME_SIZE, "%s%s", prefix, p->name);
}

/* ---- writing --------------------------------------------------------------------------------- */

static renyi_status write_tensors(const char *path, const ry_save_point *s, const char *state,
                                  ry_tensor *tensors, tensor_name *names, const renyi_allocator *al,
                                  renyi_error *err)
{
    const ry_params *params = s->optim->params;
    block blocks[N_BLOCKS];
    ry_model_meta meta;
    size_t n = 0;
    list_blocks(blocks, s->optim);
    for (size_t k = 0; k < N_BLOCKS; k++)
        for (uint32_t i = 0; blocks[k].values && i < params->n_files; i++, n++) {
            name_of(names[n], &blocks[k], &params->files[i]);
            tensors[n] = ry_param_tensor(&params->files[i], names[n], blocks[k].values);
        }
    renyi_status st =
        ry_model_meta_make(&meta, s->config, s->labels, RY_RUN_STATE_KEY, state, al, err);
    const ry_safetensors_content content = {tensors, n, meta.pairs, NULL, NULL};
    if (!st) st = ry_safetensors_write(path, &content, al, err);
    ry_model_meta_free(&meta, al);
    return st;
}

renyi_status ry_save_point_write(const char *path, const ry_save_point *s,
                                 const renyi_allocator *al, renyi_error *err)
{
    const size_t most = (size_t)N_BLOCKS * s->optim->params->n_files;
    char *state = NULL;
    json_t *json = ry_run_state_json(s->state, s->settings);
    if (!json) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the metadata");
    RY_TRY(ry_json_text(&state, json, al, err));
    ry_tensor *tensors = ry_alloc(al, most, sizeof *tensors);
    tensor_name *names = ry_alloc(al, most, sizeof *names);
    const renyi_status st = tensors && names
                                ? write_tensors(path, s, state, tensors, names, al, err)
                                : ry_fail_nomem(err, most * (sizeof *names + sizeof *tensors));
    ry_free(al, names);
    ry_free(al, tensors);
    ry_free(al, state);
    return st;
}

/* ---- reading --------------------------------------------------------------------------------- */

renyi_status ry_save_point_state(ry_run_state *state, ry_settings_owned *settings,
                                 const ry_checkpoint *ckpt, const renyi_allocator *al,
                                 renyi_error *err)
{
    const char *text = ry_tensors_meta(ckpt->tensors, RY_RUN_STATE_KEY);
    if (!text)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: not a checkpoint of a training run: '" RY_RUN_STATE_KEY
                       "' is missing in the metadata",
                       ckpt->tensors_path);
    return ry_run_state_parse(state, settings, text, strlen(text), ckpt->tensors_path, al, err);
}

static renyi_status load_param(const block *b, const ry_param *p, const ry_checkpoint *ckpt,
                               renyi_error *err)
{
    tensor_name name;
    name_of(name, b, p);
    const ry_tensor *t = ry_tensors_find(ckpt->tensors, name);
    const char *path = ckpt->tensors_path;
    float *to = b->values + p->offset;
    if (!t) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: tensor '%s' is missing", path, name);
    if (t->dtype != RY_F32 || t->n_dims != p->n_dims ||
        memcmp(t->shape, p->shape, p->n_dims * sizeof *p->shape) != 0 ||
        t->bytes != p->size * sizeof(float))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: tensor '%s' is not F32 of the model's shape",
                       path, name);
    memcpy(to, t->data, p->size * sizeof(float));
    for (size_t i = 0; i < p->size; i++)
        if (!isfinite(to[i]) || (strncmp(b->prefix, RY_TRAINING_PREFIX "v.", 11) == 0 && to[i] < 0))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: tensor '%s' holds %g at %zu", path, name,
                           (double)to[i], i);
    ry_tensors_drop_pages(ckpt->tensors, t);
    return RENYI_OK;
}

renyi_status ry_save_point_load(ry_optim *optim, uint64_t step, const ry_checkpoint *ckpt,
                                renyi_error *err)
{
    block blocks[N_BLOCKS];
    size_t n = 0;
    list_blocks(blocks, optim);
    for (size_t k = 0; k < N_BLOCKS; k++)
        for (uint32_t i = 0; blocks[k].values && i < optim->params->n_files; i++, n++)
            RY_TRY(load_param(&blocks[k], &optim->params->files[i], ckpt, err));
    if (n != ry_tensors_count(ckpt->tensors))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %zu tensors; %zu expected",
                       ckpt->tensors_path, ry_tensors_count(ckpt->tensors), n);
    optim->step = step;
    return RENYI_OK;
}
