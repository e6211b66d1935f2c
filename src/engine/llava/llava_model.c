/* llava_model.c - opens a LLaVA: its visual side (image tower and projector), its language model
 * and its tokenizer, and checks that they belong together.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "engine/llava/llava_handles.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "model/common/other_families.h"
#include "model/llama/llama_tensors.h"
#include "model/llava/mmproj.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- an image tower in another folder ------------------------------------------------------ */

/* "openai/clip-vit-large-patch14-336" -> "clip-vit-large-patch14-336" */
static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Looks for `name` in the folder `path` and beside it. *out is owned by the caller, NULL if it is
 * in neither place. */
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
    if (!name || !*last_part(name)) {
        RY_TRY(ry_vit_refuse_others(llava, err));
        return ry_fail(
            err, RENYI_ERR_UNSUPPORTED, -1,
            "it has no image tower, and its config.json names none (mm_vision_tower); give "
            "the folder of its CLIP");
    }
    RY_TRY(find_folder(&folder, path, last_part(name), &opt->allocator, err));
    if (!folder)
        return ry_fail(err, RENYI_ERR_IO, -1,
                       "it has no image tower, and the one that config.json names, '%.100s', is "
                       "neither in this folder nor beside it; download it, or give the folder of "
                       "its CLIP",
                       name);
    const renyi_status st = ry_checkpoint_open(out, folder, &opt->limits, &opt->allocator, err);
    ry_free(&opt->allocator, folder);
    return st;
}

/* ---- the visual side ----------------------------------------------------------------------- */

/* Opens the checkpoint of the tower, if it is not part of the LLaVA's: the one at `tower_path`, or
 * the one that the LLaVA's config names. *out stays zero if there is none to open. */
static renyi_status open_tower(ry_checkpoint *out, const ry_checkpoint *llava, const char *path,
                               const char *tower_path, const renyi_options *opt, renyi_error *err)
{
    if (tower_path) return ry_checkpoint_open(out, tower_path, &opt->limits, &opt->allocator, err);
    /* A file that is no LLaVA at all gets its error from ry_visual_configure. */
    if (ry_visual_has_tower(llava) || !ry_visual_is_llava(llava)) return RENYI_OK;
    const renyi_status st = open_named_tower(out, path, llava, opt, err);
    return st ? ry_fail_in(err, st, path) : RENYI_OK;
}

static renyi_status load_visual(renyi_visual *v, const ry_visual_source *from,
                                const renyi_options *opt, renyi_error *err)
{
    ry_visual_config config;
    RY_TRY(ry_visual_configure(&config, from, opt->image_size, &v->al, err));
    if (opt->dtype == RENYI_DTYPE_DEFAULT && config.tower.n_quantized)
        v->dtype = ry_dtype_of_quantized(v->level);
    return ry_visual_load(&v->side, &config, from, opt, v->level, v->dtype, err);
}

/* From a LLaVA in a known layout. */
static renyi_status open_known(renyi_visual **out, const ry_checkpoint *llava, const char *path,
                               const char *tower_path, const renyi_options *opt,
                               const ry_compute *compute, renyi_error *err)
{
    ry_checkpoint tower = {0};
    renyi_visual *v = ry_calloc(&opt->allocator, 1, sizeof *v);
    if (!v) return ry_fail_in(err, ry_fail_nomem(err, sizeof *v), path);
    v->al = opt->allocator;
    v->limits = opt->limits;
    v->level = compute->level;
    v->dtype = compute->dtype;
    renyi_status st = open_tower(&tower, llava, path, tower_path, opt, err);
    if (st == RENYI_OK) {
        const ry_visual_source from = {llava, tower.tensors ? &tower : NULL};
        st = load_visual(v, &from, opt, err);
        if (st != RENYI_OK) st = ry_fail_in(err, st, path);
    }
    ry_checkpoint_close(&tower, &v->al);
    if (st != RENYI_OK) {
        renyi_visual_free(v);
        return st;
    }
    *out = v;
    return RENYI_OK;
}

/* renyi_visual_open from a checkpoint that is open already; opt: complete. */
static renyi_status open_visual(renyi_visual **out, const ry_checkpoint *file, const char *path,
                                const char *tower_path, const renyi_options *opt,
                                const ry_compute *compute, renyi_error *err)
{
    ry_checkpoint mmproj = {0};
    if (!ry_mmproj_is(file)) return open_known(out, file, path, tower_path, opt, compute, err);
    const renyi_status read = ry_mmproj_read(&mmproj, file, &opt->allocator, err);
    if (read) return ry_fail_in(err, read, path);
    const renyi_status st = open_known(out, &mmproj, path, tower_path, opt, compute, err);
    ry_checkpoint_close(&mmproj, &opt->allocator);
    return st;
}

renyi_status renyi_visual_open(renyi_visual **out, const char *path, const char *tower,
                               const renyi_options *options, renyi_error *err)
{
    renyi_options opt;
    ry_compute compute;
    ry_checkpoint llava = {0};
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_open: %s is NULL",
                       out ? "path" : "out");
    *out = NULL;
    RY_TRY(ry_compute_choose(&compute, &opt, options, err));
    renyi_status st = ry_checkpoint_open(&llava, path, &opt.limits, &opt.allocator, err);
    if (st == RENYI_OK) st = open_visual(out, &llava, path, tower, &opt, &compute, err);
    ry_checkpoint_close(&llava, &opt.allocator);
    return st;
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
        .most_squares = ry_tile_most_squares(&c->tiles),
        .n_grids = c->tiles.n,
        .grids = c->tiles.grid,
        .most_rows = ry_tile_most_rows(&c->tiles, v->side.tower.n_patches, c->ends_lines),
        .n_params = v->side.n_params,
        .dtype = v->dtype,
        .cpu = v->level,
    };
}

/* ---- do the parts belong together? --------------------------------------------------------- */

static renyi_status check_widths(const renyi_lvlm *m, renyi_error *err)
{
    if (!m->visual || m->visual_info.lm_dim == m->lm_info.dim) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "the projector makes rows of %u numbers, the language model reads rows of %u",
                   m->visual_info.lm_dim, m->lm_info.dim);
}

/* The vocabulary of a model is padded to a round number, and a SentencePiece file may lack the
 * tokens that LLaVA added. A tokenizer with more tokens, or far fewer, belongs to another model. */
static renyi_status check_tokenizer(const renyi_lvlm *m, renyi_error *err)
{
    enum { PADDING = 1024 };
    const uint32_t n = m->ids.n_ids, vocab = m->lm_info.vocab;
    if (!m->tokenizer || (n <= vocab && vocab - n <= PADDING)) return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_FORMAT, -1,
        "the tokenizer has %u tokens, the language model %u: does it belong to another model? (%s)",
        n, vocab, m->ids.source);
}

/* ---- the whole LLaVA ----------------------------------------------------------------------- */

static renyi_options options_of(const renyi_lvlm_options *o, renyi_dtype dtype)
{
    return (renyi_options){.struct_size = sizeof(renyi_options),
                           .cpu = o->cpu,
                           .limits = o->limits,
                           .allocator = o->allocator,
                           .progress = o->progress,
                           .progress_user = o->progress_user,
                           .dtype = dtype};
}

/* A model without a tokenizer beside it can still be asked with ids, so that is no error yet. */
static renyi_status open_tokenizer(renyi_lvlm *m, const char *path, const renyi_lvlm_options *o,
                                   renyi_error *err)
{
    const renyi_options opt = options_of(o, RENYI_DTYPE_DEFAULT);
    renyi_error why = {0};
    m->ids = (renyi_lm_tokenizer_info){.bos = -1, .eos = -1, .unk = -1, .image = -1};
    const renyi_status st =
        renyi_lm_tokenizer_open(&m->tokenizer, o->tokenizer ? o->tokenizer : path, &opt, &why);
    if (!st) {
        renyi_lm_tokenizer_get_info(m->tokenizer, &m->ids);
        return RENYI_OK;
    }
    if (st != RENYI_ERR_IO || o->tokenizer) return ry_fail(err, st, why.offset, "%s", why.message);
    m->why_no_tokenizer = ry_strdup(&m->al, why.message);
    return m->why_no_tokenizer ? RENYI_OK : ry_fail_nomem(err, sizeof why.message);
}

static int is_plain_llama(const ry_checkpoint *ckpt)
{
    ry_tensor_naming n;
    return !ry_visual_is_llava(ckpt) && ry_llama_naming_find(&n, ckpt->tensors);
}

/* Visual side and language model from one checkpoint: the file is mapped once. The visual side
 * first: it is small, so errors in it are found before gigabytes are read. */
static renyi_status open_parts(renyi_lvlm *m, ry_checkpoint *ckpt, const char *path,
                               const renyi_lvlm_options *o, renyi_error *err)
{
    const renyi_options visual = options_of(o, o->tower_dtype), lm = options_of(o, o->dtype);
    renyi_options opt;
    ry_compute compute;
    RY_TRY(ry_compute_choose(&compute, &opt, &visual, err));
    if (o->mmproj)
        RY_TRY(renyi_visual_open(&m->visual, o->mmproj, o->tower, &visual, err));
    else if (o->tower || !is_plain_llama(ckpt))
        RY_TRY(open_visual(&m->visual, ckpt, path, o->tower, &opt, &compute, err));
    if (m->visual) renyi_visual_get_info(m->visual, &m->visual_info);
    RY_TRY(ry_lm_open_checkpoint(&m->lm, ckpt, path, &lm, err));
    renyi_lm_get_info(m->lm, &m->lm_info);
    renyi_status st = check_widths(m, err);
    if (!st) st = check_tokenizer(m, err);
    return st ? ry_fail_in(err, st, path) : RENYI_OK;
}

static renyi_status fill_lvlm(renyi_lvlm *m, const char *path, const renyi_lvlm_options *o,
                              renyi_error *err)
{
    ry_checkpoint ckpt = {0};
    const renyi_options text = options_of(o, RENYI_DTYPE_DEFAULT);
    RY_TRY(open_tokenizer(m, path, o, err));
    if (o->text_tower) RY_TRY(renyi_relevance_open(&m->relevance, o->text_tower, NULL, &text, err));
    renyi_status st = ry_checkpoint_open(&ckpt, path, &o->limits, &m->al, err);
    if (!st) st = open_parts(m, &ckpt, path, o, err);
    ry_checkpoint_close(&ckpt, &m->al);
    return st;
}

renyi_status renyi_lvlm_open(renyi_lvlm **out, const char *path, const renyi_lvlm_options *options,
                             renyi_error *err)
{
    renyi_lvlm_options o;
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lvlm_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, options, "renyi_lvlm_options", err));
    RY_TRY(ry_allocator_check(&o.allocator, "renyi_lvlm_options", err));
    renyi_lvlm *m = ry_calloc(&o.allocator, 1, sizeof *m);
    if (!m) return ry_fail_nomem(err, sizeof *m);
    m->al = o.allocator;
    const renyi_status st = fill_lvlm(m, path, &o, err);
    if (st) {
        renyi_lvlm_free(m);
        return st;
    }
    *out = m;
    return RENYI_OK;
}

void renyi_lvlm_free(renyi_lvlm *m)
{
    if (!m) return;
    const renyi_allocator al = m->al;
    renyi_lm_free(m->lm);
    renyi_visual_free(m->visual);
    renyi_relevance_free(m->relevance);
    renyi_lm_tokenizer_free(m->tokenizer);
    ry_free(&al, m->why_no_tokenizer);
    ry_free(&al, m);
}

const renyi_lm *renyi_lvlm_lm(const renyi_lvlm *m) { return m->lm; }
const renyi_visual *renyi_lvlm_visual(const renyi_lvlm *m) { return m->visual; }
const renyi_lm_tokenizer *renyi_lvlm_tokenizer(const renyi_lvlm *m) { return m->tokenizer; }
const renyi_relevance *renyi_lvlm_relevance(const renyi_lvlm *m) { return m->relevance; }

uint64_t ry_lvlm_bytes(const renyi_lvlm *m)
{
    /* nearly all of the tower is in the matrices of its blocks */
    const uint64_t each = m->visual_info.dtype == RENYI_DTYPE_INT8   ? 1
                          : m->visual_info.dtype == RENYI_DTYPE_BF16 ? 2
                                                                     : 4;
    return m->lm_info.bytes + each * m->visual_info.n_params;
}
