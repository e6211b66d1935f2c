/* model_open.c - opens a model from a file or from bytes and answers questions about it: sizes,
 * tensors, class names. Also lists the tensors of any checkpoint without making a model of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/model_handle.h"

#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/imagenet.h"
#include "engine/core/policy_api.h"
#include "model/common/other_families.h"
#include "model/llama/llama_tensors.h"
#include "model/llava/visual.h"
#include "renyi/eval.h"

#include <stdio.h>
#include <string.h>

/* ---- class names --------------------------------------------------------------------------- */

/* Name of class i in the config, or NULL. */
static const char *name_in_config(const json_t *config, uint32_t i)
{
    char key[16], placeholder[24];
    const json_t *list = json_object_get(config, "label_names");
    snprintf(key, sizeof key, "%u", i);
    snprintf(placeholder, sizeof placeholder, "LABEL_%u", i);
    const char *name = json_string_value(json_object_get(json_object_get(config, "id2label"), key));
    if (!name) name = json_string_value(json_array_get(list, i));
    return name && *name && strcmp(name, placeholder) != 0 ? name : NULL;
}

/* Names come from a list, or from a config. */
static const char *name_at(const char *const *list, const json_t *config, uint32_t i)
{
    return list ? list[i] : name_in_config(config, i);
}

static renyi_status copy_names(ry_labels *out, const char *const *list, const json_t *config,
                               uint32_t n, const renyi_allocator *al, renyi_error *err)
{
    size_t bytes = 0;
    *out = (ry_labels){0};
    for (uint32_t i = 0; i < n; i++) {
        const char *name = name_at(list, config, i);
        if (name) bytes += strlen(name) + 1;
    }
    if (!bytes) return RENYI_OK;
    out->names = ry_calloc(al, n, sizeof *out->names);
    out->text = ry_alloc(al, bytes, 1);
    if (!out->names || !out->text) {
        ry_labels_free(out, al);
        return ry_fail_nomem(err, bytes + n * sizeof *out->names);
    }
    char *at = out->text;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = name_at(list, config, i);
        if (!name) continue;
        const size_t length = strlen(name) + 1;
        out->names[i] = memcpy(at, name, length);
        at += length;
    }
    return RENYI_OK;
}

renyi_status ry_labels_read(ry_labels *out, const json_t *config, uint32_t n,
                            const renyi_allocator *al, renyi_error *err)
{
    return copy_names(out, NULL, config, n, al, err);
}

renyi_status ry_labels_copy(ry_labels *out, const char *const *names, uint32_t n,
                            const renyi_allocator *al, renyi_error *err)
{
    return copy_names(out, names, NULL, n, al, err);
}

void ry_labels_free(ry_labels *l, const renyi_allocator *al)
{
    ry_free(al, l->names);
    ry_free(al, l->text);
    *l = (ry_labels){0};
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* A tensor as callers see it; the name is borrowed from t. */
static renyi_tensor_info tensor_info(const ry_tensor *t)
{
    renyi_tensor_info info = {t->name, ry_dtype_name(t->dtype), t->n_dims, {0}, t->bytes};
    memcpy(info.shape, t->shape, t->n_dims * sizeof t->shape[0]);
    return info;
}

/* Names and shapes are needed after the file is closed. */
static renyi_status copy_tensor_list(renyi_model *m, const ry_tensors *set, renyi_error *err)
{
    const size_t n = ry_tensors_count(set);
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += strlen(ry_tensors_at(set, i)->name) + 1;
    m->tensors = ry_alloc(&m->al, n, sizeof *m->tensors);
    m->tensor_names = ry_alloc(&m->al, bytes, 1);
    if (!m->tensors || !m->tensor_names) return ry_fail_nomem(err, bytes + n * sizeof *m->tensors);
    char *at = m->tensor_names;
    for (size_t i = 0; i < n; i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        const size_t length = strlen(t->name) + 1;
        m->tensors[i] = tensor_info(t);
        m->tensors[i].name = memcpy(at, t->name, length);
        at += length;
    }
    m->n_tensors = n;
    return RENYI_OK;
}

renyi_status renyi_visit_tensors(const char *path, const renyi_options *options,
                                 renyi_tensor_visitor each, void *user, renyi_error *err)
{
    renyi_options opt;
    ry_checkpoint ckpt = {0};
    if (!path || !each)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visit_tensors: %s is NULL",
                       path ? "each" : "path");
    RY_TRY(ry_options_read(&opt, options, err));
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt.limits, &opt.allocator, err);
    const size_t n = st == RENYI_OK ? ry_tensors_count(ckpt.tensors) : 0;
    for (size_t i = 0; st == RENYI_OK && i < n; i++) {
        const renyi_tensor_info info = tensor_info(ry_tensors_at(ckpt.tensors, i));
        if (each(user, &info)) st = ry_fail(err, RENYI_ERR_ABORTED, -1, "%s: stopped", path);
    }
    ry_checkpoint_close(&ckpt, &opt.allocator);
    return st;
}

/* ---- open ---------------------------------------------------------------------------------- */

/* If the file belongs to another loader, say so instead of listing unknown tensors. */
static renyi_status refuse_language(const ry_checkpoint *ckpt, renyi_error *err)
{
    ry_tensor_naming n;
    if (!ry_llama_naming_find(&n, ckpt->tensors)) return RENYI_OK;
    RY_TRY(ry_vit_refuse_others(ckpt, err));
    if (ry_visual_is_llava(ckpt))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "this is a LLaVA, which answers questions: 'renyi ask', 'renyi vqa', "
                       "'renyi encode-image' (renyi_lvlm_open)");
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "this is a language model without an image tower (renyi_lm_open); a Vision "
                   "Transformer is needed");
}

static renyi_status fill_model(renyi_model *m, const ry_checkpoint *ckpt, const renyi_options *opt,
                               renyi_error *err)
{
    ry_vit_config config;
    RY_TRY(refuse_language(ckpt, err));
    RY_TRY(ry_vit_configure(&config, ckpt, opt->image_size, err));
    if (opt->dtype == RENYI_DTYPE_DEFAULT && config.n_quantized)
        m->dtype = ry_dtype_of_quantized(m->level);
    RY_TRY(ry_vit_load(&m->vit, &config, ckpt, opt, m->level, m->dtype, err));
    RY_TRY(copy_tensor_list(m, ckpt->tensors, err));
    RY_TRY(ry_labels_read(&m->labels, ckpt->config, config.n_classes, &m->al, err));
    m->macs = ry_dense_macs(&m->vit.config, m->vit.n_patches);
    return RENYI_OK;
}

/* A checkpoint is read from a path, or from bytes. */
typedef struct source {
    const char *name; /* the path, or the text that errors show instead */
    const void *bytes;
    size_t size;
} source;

static renyi_status open_checkpoint(ry_checkpoint *out, const source *from, const renyi_limits *lim,
                                    const renyi_allocator *al, renyi_error *err)
{
    if (!from->bytes) return ry_checkpoint_open(out, from->name, lim, al, err);
    return ry_checkpoint_parse(out, from->bytes, from->size, from->name, lim, al, err);
}

static renyi_status open_model(renyi_model **out, const source *from, const renyi_options *options,
                               renyi_error *err)
{
    renyi_options opt;
    ry_compute compute;
    ry_checkpoint ckpt = {0};
    *out = NULL;
    RY_TRY(ry_compute_choose(&compute, &opt, options, err));

    renyi_model *m = ry_calloc(&opt.allocator, 1, sizeof *m);
    if (!m) return ry_fail_in(err, ry_fail_nomem(err, sizeof *m), from->name);
    m->al = opt.allocator;
    m->level = compute.level;
    m->dtype = compute.dtype;
    renyi_status st = open_checkpoint(&ckpt, from, &opt.limits, &m->al, err);
    if (st == RENYI_OK) {
        st = fill_model(m, &ckpt, &opt, err);
        if (st != RENYI_OK) st = ry_fail_in(err, st, from->name);
    }
    ry_checkpoint_close(&ckpt, &m->al);
    if (st != RENYI_OK) {
        renyi_model_free(m);
        return st;
    }
    *out = m;
    return RENYI_OK;
}

renyi_status renyi_model_open(renyi_model **out, const char *path, const renyi_options *options,
                              renyi_error *err)
{
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_open: %s is NULL",
                       out ? "path" : "out");
    const source from = {.name = path};
    return open_model(out, &from, options, err);
}

renyi_status renyi_model_open_bytes(renyi_model **out, const void *bytes, size_t size,
                                    const renyi_options *options, renyi_error *err)
{
    if (!out || !bytes)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_open_bytes: %s is NULL",
                       out ? "bytes" : "out");
    const source from = {"bytes in memory", bytes, size};
    return open_model(out, &from, options, err);
}

void renyi_model_free(renyi_model *m)
{
    if (!m) return;
    const renyi_allocator al = m->al;
    ry_linear_free(m->vit.text_head, &al);
    ry_labels_free(&m->labels, &al);
    ry_own_rules_free(&m->rules, &al);
    if (!m->tower) {
        ry_vit_free(&m->vit, &al);
        ry_free(&al, m->tensors);
        ry_free(&al, m->tensor_names);
    }
    renyi_model_free(m->owned);
    ry_free(&al, m);
}

/* ---- questions ----------------------------------------------------------------------------- */

void renyi_model_get_info(const renyi_model *m, renyi_model_info *info)
{
    static const char *const layouts[] = {"timm", "huggingface", "openai", "meta"};
    const ry_vit *v = &m->vit;
    const ry_vit_config *c = &v->config;
    *info = (renyi_model_info){
        .family = c->family,
        .layout = layouts[c->layout],
        .architecture = c->architecture,
        .image_size = c->image_size,
        .patch_size = c->patch_size,
        .n_patches = v->n_patches,
        .n_prefix = c->n_prefix,
        .dim = c->dim,
        .n_blocks = c->n_blocks,
        .n_heads = c->n_heads,
        .mlp_dim = c->mlp_dim,
        .n_classes = c->n_classes,
        .norm_eps = c->norm_eps,
        .n_params = v->n_params,
        .macs = m->macs,
        .preprocess = c->preprocess,
        .preprocess_source = c->preprocess_source,
        .cpu = m->level,
        .pool = c->pool == RY_POOL_TOKEN        ? "token"
                : c->pool == RY_POOL_CLASS_MEAN ? "token+avg"
                : c->pool == RY_POOL_ATTENTION  ? "map"
                                                : "avg",
        .dtype = m->dtype,
        .quantization = c->n_quantized ? c->quantization : NULL,
        .embed_dim = ry_vit_embed_dim(c),
        .activation = c->gated ? "swiglu" : ry_activation_name(c->activation),
        .none_below = c->none_below,
        .n_registers = c->n_registers,
        .is_sigmoid = (uint32_t)m->is_sigmoid,
    };
}

int renyi_model_is_assumed(const renyi_model *m) { return m->vit.config.is_assumed; }

size_t renyi_model_tensor_count(const renyi_model *m) { return m->n_tensors; }

void renyi_model_tensor(const renyi_model *m, size_t i, renyi_tensor_info *info)
{
    *info = i < m->n_tensors ? m->tensors[i] : (renyi_tensor_info){.name = "", .dtype = ""};
}

const char *ry_model_own_label(const renyi_model *m, uint32_t i)
{
    return m->labels.names && i < m->vit.config.n_classes ? m->labels.names[i] : NULL;
}

const char *renyi_model_label(const renyi_model *m, uint32_t i)
{
    const char *own = ry_model_own_label(m, i);
    const uint32_t class = own ? ry_imagenet_find(own, strlen(own)) : i;
    if (own && class == UINT32_MAX) return own;
    if (!own && m->vit.config.n_classes != RY_IMAGENET_CLASSES) return NULL;
    return renyi_imagenet_name(class);
}
