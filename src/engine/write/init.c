/* init.c - a random model of any size, for benchmarks and tests. Tensor i has its own generator,
 * seeded from the caller's seed and i, so the same seed gives the same bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/write/config_json.h"
#include "engine/write/new_model.h"
#include "formats/safetensors.h"
#include "model/clip_text/text_tower.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEVIATION 0.02     /* of timm's trunc_normal_ */
#define LOGIT_SCALE 100.0f /* of OpenAI's models */

/* ---- tensors ------------------------------------------------------------------------------- */

typedef char name_text[RY_NAME_MAX];

typedef struct plan {
    ry_tensor *tensors;
    name_text *names;
    float *value; /* of all elements of a tensor: LayerNorm weights are 1; NAN = random */
    size_t n_tensors;
    uint64_t extents[RY_X_COUNT];
    uint64_t seed;
    const ry_tensor *current; /* being filled, with `rng` */
    ry_rng rng;
} plan;

static int is_norm(ry_tensor_role role)
{
    return role == RY_NORM_W || role == RY_NORM1_W || role == RY_NORM2_W || role == RY_PRE_NORM_W;
}

static void plan_add(void *user, const ry_tensor_naming *n, const ry_tensor_name *row,
                     uint32_t block)
{
    plan *p = user;
    const size_t i = p->n_tensors++;
    ry_tensor_name_write(p->names[i], n, row, block);
    p->tensors[i] = (ry_tensor){.name = p->names[i], .dtype = RY_F32};
    for (; p->tensors[i].n_dims < 4 && row->shape[p->tensors[i].n_dims]; p->tensors[i].n_dims++)
        p->tensors[i].shape[p->tensors[i].n_dims] = p->extents[row->shape[p->tensors[i].n_dims]];
    p->value[i] = is_norm(row->role) ? 1.0f : row->role == RY_LOGIT_SCALE ? logf(LOGIT_SCALE) : NAN;
}

static void plan_free(plan *p)
{
    ry_free(NULL, p->tensors);
    ry_free(NULL, p->names);
    ry_free(NULL, p->value);
}

/* text: of a CLIP; else its depth is 0. */
static renyi_status plan_tensors(plan *p, const ry_vit_config *c, const ry_text_config *text,
                                 renyi_error *err)
{
    const ry_tensor_naming n =
        c->is_clip ? ry_vit_naming_clip(c->n_blocks) : ry_vit_naming_timm(c->n_blocks, c->n_prefix);
    const ry_tensor_naming t = ry_text_naming_hf(text->n_blocks);
    const size_t most = n.n_names * c->n_blocks + t.n_names * text->n_blocks;
    p->tensors = ry_alloc(NULL, most, sizeof *p->tensors);
    p->names = ry_alloc(NULL, most, sizeof *p->names);
    p->value = ry_alloc(NULL, most, sizeof *p->value);
    if (!p->tensors || !p->names || !p->value) return ry_fail_nomem(err, most * sizeof *p->names);
    ry_vit_extents(p->extents, c);
    ry_tensor_names_each(&n, plan_add, p);
    if (!text->n_blocks) return RENYI_OK;
    ry_text_extents(p->extents, text);
    ry_tensor_names_each(&t, plan_add, p);
    return RENYI_OK;
}

static renyi_status fill(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                         renyi_error *err)
{
    plan *p = user;
    const size_t index = (size_t)(t - p->tensors);
    (void)at;
    (void)err;
    if (p->current != t) {
        ry_rng mix = ry_rng_new(p->seed);
        p->rng = ry_rng_new(ry_rng_next(&mix) ^ (index * 0x9e3779b97f4a7c15u));
        p->current = t;
    }
    for (size_t i = 0; i + sizeof(float) <= n; i += sizeof(float)) {
        const float x = isnan(p->value[index])
                            ? (float)(ry_rng_truncated_normal(&p->rng) * DEVIATION)
                            : p->value[index];
        memcpy((char *)out + i, &x, sizeof x);
    }
    return RENYI_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* config: the text of a CLIP's config.json, which knows the heads of both towers; else NULL. */
static renyi_status write_model(const char *path, plan *p, const ry_vit_config *c,
                                const char *config, renyi_error *err)
{
    char seed[24], heads[16];
    snprintf(seed, sizeof seed, "%" PRIu64, p->seed);
    snprintf(heads, sizeof heads, "%u", c->n_heads);
    const char *const meta[] = {"format",
                                "pt",
                                "architecture",
                                c->architecture,
                                config ? "config.json" : "num_heads",
                                config ? config : heads,
                                "generator",
                                "renyi init",
                                "seed",
                                seed,
                                NULL};
    const ry_safetensors_content content = {p->tensors, p->n_tensors, meta, fill, p};
    return ry_safetensors_write(path, &content, NULL, err);
}

static renyi_status write_clip(const char *path, plan *p, const ry_vit_config *c,
                               const ry_text_config *text, renyi_error *err)
{
    char *config = NULL;
    json_t *json = ry_clip_config_json(c, text);
    if (!json) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the config");
    RY_TRY(ry_json_text(&config, json, NULL, err));
    const renyi_status st = write_model(path, p, c, config, err);
    ry_free(NULL, config);
    return st;
}

renyi_status renyi_model_init_file(const char *path, const char *architecture,
                                   const renyi_init_options *options, renyi_error *err)
{
    renyi_init_options opt = {0};
    ry_vit_config config;
    ry_text_config text = {0};
    if (!path || !architecture)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_init_file: %s is NULL",
                       path ? "architecture" : "path");
    if (options) {
        if (options->struct_size < sizeof opt.struct_size || options->struct_size > sizeof opt)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_init_options: struct_size %u, this library knows %zu",
                           options->struct_size, sizeof opt);
        memcpy(&opt, options, options->struct_size);
    }
    RY_TRY(ry_new_model_config(&config, architecture, &opt, err));
    if (config.is_clip) {
        if (opt.n_classes)
            return ry_fail(err, RENYI_ERR_ARG, -1, "%u classes, but a CLIP has none",
                           opt.n_classes);
        RY_TRY(ry_new_text_config(&text, architecture, &opt, err));
    }
    plan p = {.seed = opt.seed};
    renyi_status st = plan_tensors(&p, &config, &text, err);
    if (st == RENYI_OK)
        st = config.is_clip ? write_clip(path, &p, &config, &text, err)
                            : write_model(path, &p, &config, NULL, err);
    plan_free(&p);
    return st;
}
