/* lm.c - opening a language model and answering questions about it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/lm.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/dtype.h"
#include "engine/options.h"

static renyi_status choose_stored(renyi_lm *lm, renyi_dtype stored, renyi_dtype wanted,
                                  renyi_error *err)
{
    lm->dtype = stored;
    if (wanted == RENYI_DTYPE_DEFAULT || wanted == RENYI_DTYPE_AUTO || wanted == stored)
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "its weights are %s, ready to run, and cannot become %s; take the original",
                   renyi_dtype_name(stored), renyi_dtype_name(wanted));
}

/* A stored model keeps the checkpoint's tensors. */
static renyi_status fill_lm(renyi_lm *lm, ry_checkpoint *ckpt, const renyi_options *opt,
                            renyi_error *err)
{
    ry_llama_config config;
    RY_TRY(ry_llama_configure(&config, ckpt, err));
    if (config.stored) {
        RY_TRY(choose_stored(lm, config.stored, opt->dtype, err));
        RY_TRY(ry_llama_load(&lm->model, &config, ckpt, opt, lm->level, lm->dtype, err));
        lm->kept = ckpt->tensors;
        ckpt->tensors = NULL;
        return RENYI_OK;
    }
    return ry_llama_load(&lm->model, &config, ckpt, opt, lm->level, lm->dtype, err);
}

renyi_status renyi_lm_open(renyi_lm **out, const char *path, const renyi_options *options,
                           renyi_error *err)
{
    renyi_options opt;
    renyi_cpu level;
    renyi_dtype dtype;
    ry_checkpoint ckpt = {0};
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    RY_TRY(ry_options_read(&opt, options, err));
    RY_TRY(ry_cpu_choose(opt.cpu, &level, err));
    RY_TRY(ry_dtype_choose_lm(opt.dtype, &dtype, err));

    renyi_lm *lm = ry_calloc(&opt.allocator, 1, sizeof *lm);
    if (!lm) return ry_fail_in(err, ry_fail_nomem(err, sizeof *lm), path);
    lm->al = opt.allocator;
    lm->level = level;
    lm->dtype = dtype;
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
