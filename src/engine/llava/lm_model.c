/* lm_model.c - opening a language model and answering questions about it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/lm_model.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "model/llama/llama_names.h"

#define RY_LM_SMALL 1000000000u /* parameters that any machine holds as floats */

/* A file with panels runs as it is. */
static renyi_status choose_stored(renyi_dtype *out, renyi_dtype stored, renyi_dtype wanted,
                                  renyi_error *err)
{
    *out = stored;
    if (wanted == RENYI_DTYPE_DEFAULT || wanted == RENYI_DTYPE_AUTO || wanted == stored)
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "its weights are %s, ready to run, and cannot become %s; take the original",
                   renyi_dtype_name(stored), renyi_dtype_name(wanted));
}

/* Halves become floats only where that is cheap: of a 7B they would take 27 GB. */
static renyi_dtype usual_dtype(const ry_llama_config *c, const ry_checkpoint *ckpt)
{
    ry_vit_naming n;
    if (ry_llama_params(c) <= RY_LM_SMALL || !ry_llama_naming_find(&n, ckpt->tensors))
        return RENYI_DTYPE_F32;
    const ry_tensor *t = ry_vit_tensor(&n, ckpt->tensors, RY_Q_W, 0);
    return t && (t->dtype == RY_F16 || t->dtype == RY_BF16) ? RENYI_DTYPE_BF16 : RENYI_DTYPE_F32;
}

static renyi_status configure(renyi_lm *lm, ry_llama_config *config, const ry_checkpoint *ckpt,
                              const renyi_options *opt, renyi_error *err)
{
    RY_TRY(ry_llama_configure(config, ckpt, err));
    if (config->stored) return choose_stored(&lm->dtype, config->stored, opt->dtype, err);
    if (opt->dtype == RENYI_DTYPE_DEFAULT) lm->dtype = usual_dtype(config, ckpt);
    return RENYI_OK;
}

/* A stored model keeps the checkpoint's tensors. */
static renyi_status fill_lm(renyi_lm *lm, ry_checkpoint *ckpt, const renyi_options *opt,
                            renyi_error *err)
{
    ry_llama_config config;
    RY_TRY(configure(lm, &config, ckpt, opt, err));
    RY_TRY(ry_llama_load(&lm->model, &config, ckpt, opt, lm->level, lm->dtype, err));
    if (config.stored) {
        lm->kept = ckpt->tensors;
        ckpt->tensors = NULL;
    }
    return RENYI_OK;
}

/* What the options alone say of a model. */
static renyi_status begin(renyi_lm *lm, renyi_options *opt, const renyi_options *given,
                          renyi_error *err)
{
    *lm = (renyi_lm){0};
    RY_TRY(ry_options_read(opt, given, err));
    RY_TRY(ry_cpu_choose(opt->cpu, &lm->level, err));
    RY_TRY(ry_dtype_choose_lm(opt->dtype, &lm->dtype, err));
    lm->al = opt->allocator;
    return RENYI_OK;
}

renyi_status renyi_lm_open(renyi_lm **out, const char *path, const renyi_options *options,
                           renyi_error *err)
{
    renyi_options opt;
    renyi_lm start;
    ry_checkpoint ckpt = {0};
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    RY_TRY(begin(&start, &opt, options, err));
    renyi_lm *lm = ry_calloc(&opt.allocator, 1, sizeof *lm);
    if (!lm) return ry_fail_in(err, ry_fail_nomem(err, sizeof *lm), path);
    *lm = start;
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt.limits, &lm->al, err);
    if (st == RENYI_OK) {
        st = fill_lm(lm, &ckpt, &opt, err);
        if (st != RENYI_OK) st = ry_fail_in(err, st, path);
    }
    ry_checkpoint_close(&ckpt, &lm->al);
    if (st != RENYI_OK) {
        renyi_lm_free(lm);
        return st;
    }
    *out = lm;
    return RENYI_OK;
}

static renyi_status describe(renyi_lm *lm, const ry_checkpoint *ckpt, const renyi_options *opt,
                             renyi_error *err)
{
    ry_llama *m = &lm->model;
    ry_vit_naming n;
    const renyi_status st = configure(lm, &m->config, ckpt, opt, err);
    if (st || !ry_llama_naming_find(&n, ckpt->tensors)) return st;
    m->n_params = ry_llama_params(&m->config);
    m->bytes = ry_llama_bytes(&m->config, lm->dtype,
                              ry_vit_tensor(&n, ckpt->tensors, RY_TOKEN_EMBED, 0)->bytes);
    return RENYI_OK;
}

renyi_status renyi_lm_describe(const char *path, const renyi_options *options, renyi_lm_info *info,
                               renyi_error *err)
{
    renyi_options opt;
    renyi_lm lm;
    ry_checkpoint ckpt = {0};
    if (!info || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_describe: %s is NULL",
                       info ? "path" : "info");
    *info = (renyi_lm_info){0};
    RY_TRY(begin(&lm, &opt, options, err));
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt.limits, &lm.al, err);
    if (st == RENYI_OK) {
        st = describe(&lm, &ckpt, &opt, err);
        if (st != RENYI_OK) st = ry_fail_in(err, st, path);
    }
    ry_checkpoint_close(&ckpt, &lm.al);
    renyi_lm_get_info(&lm, info);
    return st;
}

void renyi_lm_free(renyi_lm *lm)
{
    if (!lm) return;
    const renyi_allocator al = lm->al;
    ry_llama_free(&lm->model, &al);
    ry_tensors_free(lm->kept);
    ry_free(&al, lm);
}

void renyi_lm_get_info(const renyi_lm *lm, renyi_lm_info *info)
{
    const ry_llama_config *c = &lm->model.config;
    *info = (renyi_lm_info){
        .layout = c->layout,
        .dim = c->dim,
        .n_layers = c->n_layers,
        .n_heads = c->n_heads,
        .mlp_dim = c->mlp_dim,
        .n_kv_heads = c->n_kv_heads,
        .head_dim = c->head_dim,
        .vocab = c->vocab,
        .context = c->context,
        .bos = c->bos,
        .eos = c->eos,
        .image = c->image,
        .rope_theta = c->rope_theta,
        .norm_eps = c->norm_eps,
        .tied = c->tied,
        .n_params = lm->model.n_params,
        .bytes = lm->model.bytes,
        .dtype = lm->dtype,
        .cpu = lm->level,
    };
}
