/* visual.c - opening the visual side of a LLaVA and answering questions about it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/llava/visual_side.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- a tower that lies elsewhere ----------------------------------------------------------- */

/* "clip-vit-large-patch14-336" of "openai/clip-vit-large-patch14-336". */
static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* `name` in the folder `path`, or beside it; *out is owned, NULL if it is in neither place. */
static renyi_status find_folder(char **out, const char *path, const char *name,
                                const renyi_allocator *al, renyi_error *err)
{
    const size_t size = strlen(path) + strlen(name) + sizeof "/../";
    struct stat st;
    *out = ry_alloc(al, size, 1);
    if (!*out) return ry_fail_nomem(err, size);
    for (int beside = 0; beside < 2; beside++) {
        snprintf(*out, size, "%s/%s%s", path, beside ? "../" : "", name);
        if (stat(*out, &st) == 0) return RENYI_OK;
    }
    ry_free(al, *out);
    *out = NULL;
    return RENYI_OK;
}

/* The tower that the config of LLaVA's own layout names. */
static renyi_status open_named_tower(ry_checkpoint *out, const char *path,
                                     const ry_checkpoint *llava, const renyi_options *opt,
                                     renyi_error *err)
{
    const char *name = NULL;
    char *folder;
    RY_TRY(ry_json_string(llava->config, "mm_vision_tower", &name, "config.json", err));
    if (!name || !*last_part(name))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "no image tower in it, and no mm_vision_tower in its config.json; give the "
                       "folder of its CLIP");
    RY_TRY(find_folder(&folder, path, last_part(name), &opt->allocator, err));
    if (!folder)
        return ry_fail(err, RENYI_ERR_IO, -1,
                       "no image tower in it, and the one that config.json names, '%.100s', is "
                       "neither in this folder nor beside it; fetch it, or give the folder of its "
                       "CLIP",
                       name);
    const renyi_status st = ry_checkpoint_open(out, folder, &opt->limits, &opt->allocator, err);
    ry_free(&opt->allocator, folder);
    return st;
}

/* ---- open ---------------------------------------------------------------------------------- */

/* Both checkpoints as a caller names them; the tower's stays closed if it is in the first. */
typedef struct sources {
    ry_checkpoint llava, tower;
    ry_visual_source of;
} sources;

static renyi_status open_sources(sources *s, const char *path, const char *tower,
                                 const renyi_options *opt, renyi_error *err)
{
    RY_TRY(ry_checkpoint_open(&s->llava, path, &opt->limits, &opt->allocator, err));
    s->of.llava = &s->llava;
    if (tower) {
        s->of.tower = &s->tower;
        return ry_checkpoint_open(&s->tower, tower, &opt->limits, &opt->allocator, err);
    }
    /* of a file that is no LLaVA at all that is the thing to say */
    if (ry_visual_has_tower(&s->llava) || !ry_visual_is_llava(&s->llava)) return RENYI_OK;
    s->of.tower = &s->tower;
    const renyi_status st = open_named_tower(&s->tower, path, &s->llava, opt, err);
    return st ? ry_fail_in(err, st, path) : RENYI_OK;
}

static renyi_status fill(renyi_visual *v, const sources *s, const renyi_options *opt,
                         renyi_error *err)
{
    ry_visual_config config;
    RY_TRY(ry_visual_configure(&config, &s->of, opt->image_size, &v->al, err));
    if (opt->dtype == RENYI_DTYPE_DEFAULT && config.tower.n_quantised)
        v->dtype = ry_dtype_of_quantized(v->level);
    return ry_visual_load(&v->side, &config, &s->of, opt, v->level, v->dtype, err);
}

renyi_status renyi_visual_open(renyi_visual **out, const char *path, const char *tower,
                               const renyi_options *options, renyi_error *err)
{
    renyi_options opt;
    renyi_cpu level;
    renyi_dtype dtype;
    sources from = {0};
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_open: %s is NULL",
                       out ? "path" : "out");
    *out = NULL;
    RY_TRY(ry_options_read(&opt, options, err));
    RY_TRY(ry_cpu_choose(opt.cpu, &level, err));
    RY_TRY(ry_dtype_choose(opt.dtype, level, &dtype, err));

    renyi_visual *v = ry_calloc(&opt.allocator, 1, sizeof *v);
    if (!v) return ry_fail_in(err, ry_fail_nomem(err, sizeof *v), path);
    v->al = opt.allocator;
    v->limits = opt.limits;
    v->level = level;
    v->dtype = dtype;
    renyi_status st = open_sources(&from, path, tower, &opt, err);
    if (st == RENYI_OK) {
        st = fill(v, &from, &opt, err);
        if (st != RENYI_OK) st = ry_fail_in(err, st, path);
    }
    ry_checkpoint_close(&from.llava, &v->al);
    ry_checkpoint_close(&from.tower, &v->al);
    if (st != RENYI_OK) {
        renyi_visual_free(v);
        return st;
    }
    *out = v;
    return RENYI_OK;
}

void renyi_visual_free(renyi_visual *v)
{
    if (!v) return;
    const renyi_allocator al = v->al;
    ry_visual_free(&v->side, &al);
    ry_free(&al, v);
}

void renyi_visual_get_info(const renyi_visual *v, renyi_visual_info *info)
{
    const ry_visual_config *c = &v->side.config;
    *info = (renyi_visual_info){
        .layout = c->layout,
        .image_size = c->tower.image_size,
        .patch_size = c->tower.patch_size,
        .n_patches = v->side.tower.n_patches,
        .dim = c->tower.dim,
        .n_heads = c->tower.n_heads,
        .mlp_dim = c->tower.mlp_dim,
        .n_blocks = c->n_blocks,
        .n_blocks_run = c->tower.n_blocks,
        .lm_dim = c->lm_dim,
        .norm_eps = c->tower.norm_eps,
        .preprocess = c->tower.preprocess,
        .pad_to_square = (uint32_t)c->pad_to_square,
        .n_params = v->side.n_params,
        .dtype = v->dtype,
        .cpu = v->level,
    };
}
