/* init.c - a random model of any size, for benchmarks and tests. Tensor i has its own generator,
 * seeded from the caller's seed and i, so the same seed gives the same bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/new_model.h"
#include "formats/safetensors.h"
#include "model/vit_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEVIATION 0.02 /* of timm's trunc_normal_ */

/* ---- tensors ------------------------------------------------------------------------------- */

typedef char name_text[RY_NAME_MAX];

typedef struct plan {
    ry_tensor *tensors;
    name_text *names;
    int *is_one; /* LayerNorm weights are 1, everything else is random */
    size_t n_tensors;
    uint64_t extents[RY_X_COUNT];
    uint64_t seed;
    const ry_tensor *current; /* being filled, with `rng` */
    ry_rng rng;
} plan;

static void plan_add(void *user, const ry_vit_naming *n, const ry_vit_name *row, uint32_t block)
{
    plan *p = user;
    const size_t i = p->n_tensors++;
    ry_vit_name_write(p->names[i], n, row, block);
    p->tensors[i] = (ry_tensor){.name = p->names[i], .dtype = RY_F32};
    for (; p->tensors[i].n_dims < 4 && row->shape[p->tensors[i].n_dims]; p->tensors[i].n_dims++)
        p->tensors[i].shape[p->tensors[i].n_dims] = p->extents[row->shape[p->tensors[i].n_dims]];
    p->is_one[i] = row->role == RY_NORM_W || row->role == RY_NORM1_W || row->role == RY_NORM2_W;
}

static void plan_free(plan *p)
{
    ry_free(NULL, p->tensors);
    ry_free(NULL, p->names);
    ry_free(NULL, p->is_one);
}

static renyi_status plan_tensors(plan *p, const ry_vit_config *c, renyi_error *err)
{
    const ry_vit_naming n = ry_vit_naming_timm(c->n_blocks, c->n_prefix);
    const size_t most = n.n_names * c->n_blocks;
    ry_vit_extents(p->extents, c);
    p->tensors = ry_alloc(NULL, most, sizeof *p->tensors);
    p->names = ry_alloc(NULL, most, sizeof *p->names);
    p->is_one = ry_alloc(NULL, most, sizeof *p->is_one);
    if (!p->tensors || !p->names || !p->is_one) return ry_fail_nomem(err, most * sizeof *p->names);
    ry_vit_names_each(&n, plan_add, p);
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
        const float x =
            p->is_one[index] ? 1.0f : (float)(ry_rng_truncated_normal(&p->rng) * DEVIATION);
        memcpy((char *)out + i, &x, sizeof x);
    }
    return RENYI_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

static renyi_status write_model(const char *path, plan *p, const ry_vit_config *c, renyi_error *err)
{
    char seed[24], heads[16];
    snprintf(seed, sizeof seed, "%" PRIu64, p->seed);
    snprintf(heads, sizeof heads, "%u", c->n_heads);
    const char *const meta[] = {"format", "pt",        "architecture", c->architecture, "num_heads",
                                heads,    "generator", "renyi init",   "seed",          seed,
                                NULL};
    const ry_safetensors_content content = {p->tensors, p->n_tensors, meta, fill, p};
    return ry_safetensors_write(path, &content, NULL, err);
}

renyi_status renyi_model_init_file(const char *path, const char *architecture,
                                   const renyi_init_options *options, renyi_error *err)
{
    renyi_init_options opt = {0};
    ry_vit_config config;
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
    plan p = {.seed = opt.seed};
    renyi_status st = plan_tensors(&p, &config, err);
    if (st == RENYI_OK) st = write_model(path, &p, &config, err);
    plan_free(&p);
    return st;
}
