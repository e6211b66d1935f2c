/* new_model.c - see new_model.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/write/new_model.h"

#include "base/status.h"
#include "model/common/arch.h"
#include "model/common/tensor_names.h"
#include "model/vit/vit.h"

enum { MAX_DIM = 1 << 14, MAX_MLP = 1 << 16, MAX_CLASSES = 1 << 20 };

static renyi_status check(const ry_arch *a, uint32_t n_classes, renyi_error *err)
{
    if (a->dim > MAX_DIM || a->mlp_dim > MAX_MLP || n_classes > MAX_CLASSES ||
        a->n_blocks > RY_MAX_BLOCKS)
        return ry_fail(
            err, RENYI_ERR_LIMIT, -1,
            "dim %u, mlp_dim %u, n_blocks %u, n_classes %u; at most %d, %d, %d, %d accepted",
            a->dim, a->mlp_dim, a->n_blocks, n_classes, MAX_DIM, MAX_MLP, RY_MAX_BLOCKS,
            MAX_CLASSES);
    if (!a->n_heads || a->dim % a->n_heads)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u heads do not divide dim %u; set n_heads",
                       a->n_heads, a->dim);
    return RENYI_OK;
}

/* Of a CLIP both towers, and the embeddings. */
static void apply(ry_arch *a, const renyi_init_options *opt)
{
    if (opt->n_blocks) a->n_blocks = a->text_blocks = opt->n_blocks;
    if (opt->dim) {
        a->dim = a->text_dim = a->embed_dim = opt->dim;
        a->mlp_dim = opt->dim <= MAX_DIM ? 4 * opt->dim : opt->dim;
        a->n_heads = a->text_heads = ry_arch_heads(opt->dim);
    }
    if (opt->n_heads) a->n_heads = a->text_heads = opt->n_heads;
    if (opt->mlp_dim) a->mlp_dim = opt->mlp_dim;
}

static renyi_status read_arch(ry_arch *out, const char *architecture, const renyi_init_options *opt,
                              renyi_error *err)
{
    if (!ry_arch_parse(out, architecture))
        return ry_fail(err, RENYI_ERR_ARG, -1, "architecture '%.60s' is not known; %s",
                       architecture, ry_arch_allowed());
    if (opt) apply(out, opt);
    return RENYI_OK;
}

renyi_status ry_new_model_config(ry_vit_config *out, const char *architecture,
                                 const renyi_init_options *opt, renyi_error *err)
{
    const ry_checkpoint nothing = {0};
    uint32_t n_classes = opt && opt->n_classes ? opt->n_classes : 1000;
    ry_arch a;
    *out = (ry_vit_config){0};
    RY_TRY(read_arch(&a, architecture, opt, err));
    if (a.is_clip) n_classes = 0;
    RY_TRY(check(&a, n_classes, err));
    *out = (ry_vit_config){.layout = a.is_clip ? RY_LAYOUT_HF : RY_LAYOUT_TIMM,
                           .family = a.is_clip         ? "clip"
                                     : a.n_prefix == 2 ? "deit-distilled"
                                     : a.is_deit       ? "deit"
                                                       : "vit",
                           .is_clip = a.is_clip,
                           .proj_dim = a.embed_dim,
                           .image_size = a.image_size,
                           .patch_size = a.patch_size,
                           .dim = a.dim,
                           .n_blocks = a.n_blocks,
                           .n_heads = a.n_heads,
                           .mlp_dim = a.mlp_dim,
                           .n_classes = n_classes,
                           .n_prefix = a.n_prefix,
                           .pool = a.n_prefix ? RY_POOL_TOKEN : RY_POOL_MEAN,
                           .norm_eps = a.is_clip ? 1e-5 : 1e-6,
                           .activation = a.is_clip ? RY_EPI_QUICKGELU : RY_EPI_GELU};
    ry_arch_write(out->architecture, sizeof out->architecture, &a);
    return ry_preprocess_configure(out, &nothing, a.is_deit, err);
}

renyi_status ry_new_text_config(ry_text_config *out, const char *architecture,
                                const renyi_init_options *opt, renyi_error *err)
{
    ry_arch a;
    *out = (ry_text_config){0};
    RY_TRY(read_arch(&a, architecture, opt, err));
    *out = (ry_text_config){.layout = RY_LAYOUT_HF,
                            .dim = a.text_dim,
                            .n_blocks = a.text_blocks,
                            .n_heads = a.text_heads,
                            .mlp_dim = opt && opt->mlp_dim ? opt->mlp_dim : 4 * a.text_dim,
                            .vocab = 49408, /* of every published CLIP, as is the context */
                            .context = 77,
                            .embed_dim = a.embed_dim,
                            .norm_eps = 1e-5,
                            .logit_scale = 100.0,
                            .activation = RY_EPI_QUICKGELU};
    return RENYI_OK;
}
