/* clip_text.c - opening a text tower and answering questions about it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/clip/clip_text.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/dtype.h"
#include "engine/core/engine_options.h"

static renyi_status fill_text(renyi_text *t, const ry_checkpoint *ckpt, const renyi_options *opt,
                              renyi_error *err)
{
    ry_text_config config;
    RY_TRY(ry_text_configure(&config, ckpt, err));
    if (opt->dtype == RENYI_DTYPE_DEFAULT && config.quantised)
        t->dtype = ry_dtype_of_quantised(t->level);
    return ry_text_load(&t->tower, &config, ckpt, opt, t->level, t->dtype, err);
}

renyi_status renyi_text_open(renyi_text **out, const char *path, const renyi_options *options,
                             renyi_error *err)
{
    renyi_options opt;
    renyi_cpu level;
    renyi_dtype dtype;
    ry_checkpoint ckpt = {0};
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_text_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    RY_TRY(ry_options_read(&opt, options, err));
    RY_TRY(ry_cpu_choose(opt.cpu, &level, err));
    RY_TRY(ry_dtype_choose(opt.dtype, level, &dtype, err));

    renyi_text *t = ry_calloc(&opt.allocator, 1, sizeof *t);
    if (!t) return ry_fail_in(err, ry_fail_nomem(err, sizeof *t), path);
    t->al = opt.allocator;
    t->level = level;
    t->dtype = dtype;
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt.limits, &t->al, err);
    if (st == RENYI_OK) {
        st = fill_text(t, &ckpt, &opt, err);
        if (st != RENYI_OK) st = ry_fail_in(err, st, path);
    }
    ry_checkpoint_close(&ckpt, &t->al);
    if (st != RENYI_OK) {
        renyi_text_free(t);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

void renyi_text_free(renyi_text *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_text_free(&t->tower, &al);
    ry_free(&al, t);
}

void renyi_text_get_info(const renyi_text *t, renyi_text_info *info)
{
    const ry_text_config *c = &t->tower.config;
    *info = (renyi_text_info){
        .layout = c->layout == RY_LAYOUT_OPENAI ? "openai" : "huggingface",
        .activation = c->activation == RY_EPI_GELU ? "gelu" : "quick_gelu",
        .dim = c->dim,
        .n_blocks = c->n_blocks,
        .n_heads = c->n_heads,
        .mlp_dim = c->mlp_dim,
        .vocab = c->vocab,
        .context = c->context,
        .embed_dim = c->embed_dim,
        .norm_eps = c->norm_eps,
        .logit_scale = c->logit_scale,
        .n_params = t->tower.n_params,
        .fingerprint = t->tower.fingerprint,
        .dtype = t->dtype,
        .cpu = t->level,
    };
}
