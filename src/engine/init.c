/* init.c - a random model of any size, for benchmarks and tests. Tensor i has its own generator,
 * seeded from the caller's seed and i, so the same seed gives the same bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"
#include "formats/safetensors.h"
#include "model/arch.h"
#include "model/vit_names.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEVIATION 0.02 /* of timm's trunc_normal_ */

enum { MAX_DIM = 1 << 14, MAX_MLP = 1 << 16, MAX_CLASSES = 1 << 20 };

/* ---- sizes --------------------------------------------------------------------------------- */

typedef struct shape {
    ry_arch arch;
    uint32_t n_classes;
} shape;

static renyi_status check_shape(const shape *s, renyi_error *err)
{
    const ry_arch *a = &s->arch;
    if (a->dim > MAX_DIM || a->mlp_dim > MAX_MLP || s->n_classes > MAX_CLASSES ||
        a->n_blocks > RY_MAX_BLOCKS)
        return ry_fail(
            err, RENYI_ERR_LIMIT, -1,
            "dim %u, mlp_dim %u, n_blocks %u, n_classes %u; at most %d, %d, %d, %d accepted",
            a->dim, a->mlp_dim, a->n_blocks, s->n_classes, MAX_DIM, MAX_MLP, RY_MAX_BLOCKS,
            MAX_CLASSES);
    if (!a->n_heads || a->dim % a->n_heads)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u heads do not divide dim %u; set n_heads",
                       a->n_heads, a->dim);
    return RENYI_OK;
}

static renyi_status read_shape(shape *out, const char *architecture, const renyi_init_options *opt,
                               renyi_error *err)
{
    ry_arch *a = &out->arch;
    if (!ry_arch_parse(a, architecture))
        return ry_fail(err, RENYI_ERR_ARG, -1, "architecture '%.60s' is not known; %s",
                       architecture, ry_arch_allowed());
    out->n_classes = opt->n_classes ? opt->n_classes : 1000;
    if (opt->n_blocks) a->n_blocks = opt->n_blocks;
    if (opt->dim) {
        a->dim = opt->dim;
        a->mlp_dim = opt->dim <= MAX_DIM ? 4 * opt->dim : opt->dim;
        a->n_heads = ry_arch_heads(opt->dim);
    }
    if (opt->n_heads) a->n_heads = opt->n_heads;
    if (opt->mlp_dim) a->mlp_dim = opt->mlp_dim;
    return check_shape(out, err);
}

/* ---- tensors ------------------------------------------------------------------------------- */

typedef char name_text[RY_NAME_MAX];

typedef struct plan {
    ry_tensor *tensors;
    name_text *names;
    int *is_one; /* LayerNorm weights are 1, everything else is random */
    size_t n_tensors;
    uint64_t seed;
    const ry_tensor *current; /* being filled, with `rng` */
    ry_rng rng;
} plan;

static void plan_add(plan *p, const ry_vit_naming *n, const ry_vit_name *row, uint32_t block,
                     const uint64_t extents[RY_X_COUNT])
{
    const size_t i = p->n_tensors++;
    ry_vit_name_write(p->names[i], n, row, block);
    p->tensors[i] = (ry_tensor){.name = p->names[i], .dtype = RY_F32};
    for (; p->tensors[i].n_dims < 4 && row->shape[p->tensors[i].n_dims]; p->tensors[i].n_dims++)
        p->tensors[i].shape[p->tensors[i].n_dims] = extents[row->shape[p->tensors[i].n_dims]];
    p->is_one[i] = row->role == RY_NORM_W || row->role == RY_NORM1_W || row->role == RY_NORM2_W;
}

static void plan_free(plan *p)
{
    ry_free(NULL, p->tensors);
    ry_free(NULL, p->names);
    ry_free(NULL, p->is_one);
}

/* Everything outside the blocks comes first or last as in the table, blocks in order between. */
static renyi_status plan_tensors(plan *p, const shape *s, renyi_error *err)
{
    const ry_arch *a = &s->arch;
    const uint32_t side = a->image_size / a->patch_size;
    const ry_vit_naming n = ry_vit_naming_timm(a->n_blocks, a->n_prefix);
    const uint64_t extents[RY_X_COUNT] = {
        [RY_X_1] = 1,
        [RY_X_RGB] = 3,
        [RY_X_PATCH] = a->patch_size,
        [RY_X_TOKENS] = (uint64_t)side * side + a->n_prefix,
        [RY_X_DIM] = a->dim,
        [RY_X_3DIM] = 3 * a->dim,
        [RY_X_MLP] = a->mlp_dim,
        [RY_X_CLASSES] = s->n_classes,
    };
    const size_t most = n.n_names * a->n_blocks;
    p->tensors = ry_alloc(NULL, most, sizeof *p->tensors);
    p->names = ry_alloc(NULL, most, sizeof *p->names);
    p->is_one = ry_alloc(NULL, most, sizeof *p->is_one);
    if (!p->tensors || !p->names || !p->is_one) return ry_fail_nomem(err, most * sizeof *p->names);

    for (size_t i = 0; i < n.n_names; i++) {
        if (!(n.table[i].group & n.groups)) continue;
        if (!ry_vit_name_in_block(&n.table[i])) {
            plan_add(p, &n, &n.table[i], 0, extents);
            continue;
        }
        size_t end = i;
        while (end < n.n_names && ry_vit_name_in_block(&n.table[end])) end++;
        for (uint32_t b = 0; b < a->n_blocks; b++)
            for (size_t k = i; k < end; k++) plan_add(p, &n, &n.table[k], b, extents);
        i = end - 1;
    }
    return RENYI_OK;
}

/* Normal with deviation 0.02, drawn again beyond two deviations. */
static float truncated_normal(ry_rng *rng)
{
    double x;
    do {
        x = ry_rng_normal(rng);
    } while (fabs(x) > 2.0);
    return (float)(x * DEVIATION);
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
        const float x = p->is_one[index] ? 1.0f : truncated_normal(&p->rng);
        memcpy((char *)out + i, &x, sizeof x);
    }
    return RENYI_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

static renyi_status write_model(const char *path, plan *p, const shape *s, renyi_error *err)
{
    char name[128], seed[24], heads[16];
    ry_arch_write(name, sizeof name, &s->arch);
    snprintf(seed, sizeof seed, "%" PRIu64, p->seed);
    snprintf(heads, sizeof heads, "%u", s->arch.n_heads);
    const char *const meta[] = {"format",    "pt",         "architecture", name, "num_heads", heads,
                                "generator", "renyi init", "seed",         seed, NULL};
    const ry_safetensors_content content = {p->tensors, p->n_tensors, meta, fill, p};
    return ry_safetensors_write(path, &content, NULL, err);
}

renyi_status renyi_model_init_file(const char *path, const char *architecture,
                                   const renyi_init_options *options, renyi_error *err)
{
    renyi_init_options opt = {0};
    shape s;
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
    RY_TRY(read_shape(&s, architecture, &opt, err));
    plan p = {.seed = opt.seed};
    renyi_status st = plan_tensors(&p, &s, err);
    if (st == RENYI_OK) st = write_model(path, &p, &s, err);
    plan_free(&p);
    return st;
}
