/* tensor_names.c - the tables of a ViT's tensor names in each layout, and code that finds the
 * layout of a checkpoint and matches its tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/tensor_names.h"

#include "base/status.h"
#include "model/common/clip_layer_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables -------------------------------------------------------------------------------- */

#define SHAPE_TOKEN              \
    {                            \
        RY_X_1, RY_X_1, RY_X_DIM \
    }
#define SHAPE_REGISTERS                  \
    {                                    \
        RY_X_1, RY_X_REGISTERS, RY_X_DIM \
    }
#define SHAPE_POS                     \
    {                                 \
        RY_X_1, RY_X_TOKENS, RY_X_DIM \
    }
#define SHAPE_PATCH                                \
    {                                              \
        RY_X_DIM, RY_X_RGB, RY_X_PATCH, RY_X_PATCH \
    }
#define SHAPE_DIM \
    {             \
        RY_X_DIM  \
    }
#define SHAPE_HEAD             \
    {                          \
        RY_X_CLASSES, RY_X_DIM \
    }

/* clang-format off: a table reads by columns */
/* The end of an attention-pooling head; proj, norm and mlp are names. */
#define POOL_TAIL(proj, norm, mlp)                                               \
    {RY_POOL_PROJ_W, RY_GROUP_POOL, proj ".weight", {RY_X_DIM, RY_X_DIM}},       \
        {RY_POOL_PROJ_B, RY_GROUP_POOL, proj ".bias", SHAPE_DIM},                \
        {RY_POOL_NORM_W, RY_GROUP_POOL, norm ".weight", SHAPE_DIM},              \
        {RY_POOL_NORM_B, RY_GROUP_POOL, norm ".bias", SHAPE_DIM},                \
        {RY_POOL_FC1_W, RY_GROUP_POOL, mlp ".fc1.weight", {RY_X_MLP, RY_X_DIM}}, \
        {RY_POOL_FC1_B, RY_GROUP_POOL, mlp ".fc1.bias", {RY_X_MLP}},             \
        {RY_POOL_FC2_W, RY_GROUP_POOL, mlp ".fc2.weight", {RY_X_DIM, RY_X_MLP}}, \
    {                                                                            \
        RY_POOL_FC2_B, RY_GROUP_POOL, mlp ".fc2.bias", SHAPE_DIM                 \
    }

/* The first half of a block, the same in timm's and Meta's files. */
#define TIMM_ATTENTION                                                                 \
    {RY_NORM1_W, RY_GROUP_CORE, "blocks.#.norm1.weight", SHAPE_DIM},                   \
        {RY_NORM1_B, RY_GROUP_CORE, "blocks.#.norm1.bias", SHAPE_DIM},                 \
        {RY_QKV_W, RY_GROUP_CORE, "blocks.#.attn.qkv.weight", {RY_X_3DIM, RY_X_DIM}},  \
        {RY_QKV_B, RY_GROUP_QKV_BIAS, "blocks.#.attn.qkv.bias", {RY_X_3DIM}},          \
        {RY_PROJ_W, RY_GROUP_CORE, "blocks.#.attn.proj.weight", {RY_X_DIM, RY_X_DIM}}, \
        {RY_PROJ_B, RY_GROUP_CORE, "blocks.#.attn.proj.bias", SHAPE_DIM},              \
    {                                                                                  \
        RY_SCALE1, RY_GROUP_LAYER_SCALE, "blocks.#.ls1.gamma", SHAPE_DIM               \
    }

static const ry_tensor_name timm_names[] = {
    {RY_PATCH_W, RY_GROUP_CORE, "patch_embed.proj.weight", SHAPE_PATCH},
    {RY_PATCH_B, RY_GROUP_PATCH_BIAS, "patch_embed.proj.bias", SHAPE_DIM},
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "cls_token", SHAPE_TOKEN},
    {RY_DIST_TOKEN, RY_GROUP_DISTILLED, "dist_token", SHAPE_TOKEN},
    {RY_REGISTERS, RY_GROUP_REGISTERS, "reg_token", SHAPE_REGISTERS},
    {RY_POS_EMBED, RY_GROUP_CORE, "pos_embed", SHAPE_POS},
    {RY_PRE_NORM_W, RY_GROUP_PRE_NORM, "norm_pre.weight", SHAPE_DIM},
    {RY_PRE_NORM_B, RY_GROUP_PRE_NORM, "norm_pre.bias", SHAPE_DIM},
    TIMM_ATTENTION,
    {RY_SCALE1, RY_GROUP_GAMMA, "blocks.#.gamma_1", SHAPE_DIM},
    {RY_NORM2_W, RY_GROUP_CORE, "blocks.#.norm2.weight", SHAPE_DIM},
    {RY_NORM2_B, RY_GROUP_CORE, "blocks.#.norm2.bias", SHAPE_DIM},
    {RY_FC1_W, RY_GROUP_CORE, "blocks.#.mlp.fc1.weight", {RY_X_MLP_IN, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_CORE, "blocks.#.mlp.fc1.bias", {RY_X_MLP_IN}},
    {RY_FC2_W, RY_GROUP_CORE, "blocks.#.mlp.fc2.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_FC2_B, RY_GROUP_CORE, "blocks.#.mlp.fc2.bias", SHAPE_DIM},
    {RY_SCALE2, RY_GROUP_LAYER_SCALE, "blocks.#.ls2.gamma", SHAPE_DIM},
    {RY_SCALE2, RY_GROUP_GAMMA, "blocks.#.gamma_2", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_NORM, "norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "norm.bias", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_FC_NORM, "fc_norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_FC_NORM, "fc_norm.bias", SHAPE_DIM},
    {RY_HEAD_W, RY_GROUP_HEAD, "head.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_HEAD, "head.bias", {RY_X_CLASSES}},
    {RY_HEAD_DIST_W, RY_GROUP_TEACHER, "head_dist.weight", SHAPE_HEAD},
    {RY_HEAD_DIST_B, RY_GROUP_TEACHER, "head_dist.bias", {RY_X_CLASSES}},
    {RY_POOL_PROBE, RY_GROUP_POOL, "attn_pool.latent", SHAPE_TOKEN},
    {RY_POOL_Q_W, RY_GROUP_POOL, "attn_pool.q.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_POOL_Q_B, RY_GROUP_POOL, "attn_pool.q.bias", SHAPE_DIM},
    {RY_POOL_KV_W, RY_GROUP_POOL, "attn_pool.kv.weight", {RY_X_2DIM, RY_X_DIM}},
    {RY_POOL_KV_B, RY_GROUP_POOL, "attn_pool.kv.bias", {RY_X_2DIM}},
    POOL_TAIL("attn_pool.proj", "attn_pool.norm", "attn_pool.mlp"),
    {RY_EMBED_W, RY_GROUP_EMBED, "head.proj.weight", {RY_X_EMBED, RY_X_DIM}}, /* open_clip's */
};

/* DINOv2 as Meta publishes it: timm's names but for the registers and the gated MLP. */
static const ry_tensor_name meta_names[] = {
    {RY_PATCH_W, RY_GROUP_CORE, "patch_embed.proj.weight", SHAPE_PATCH},
    {RY_PATCH_B, RY_GROUP_CORE, "patch_embed.proj.bias", SHAPE_DIM},
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "cls_token", SHAPE_TOKEN},
    {RY_REGISTERS, RY_GROUP_REGISTERS, "register_tokens", SHAPE_REGISTERS},
    {RY_POS_EMBED, RY_GROUP_CORE, "pos_embed", SHAPE_POS},
    TIMM_ATTENTION,
    {RY_NORM2_W, RY_GROUP_CORE, "blocks.#.norm2.weight", SHAPE_DIM},
    {RY_NORM2_B, RY_GROUP_CORE, "blocks.#.norm2.bias", SHAPE_DIM},
    {RY_FC1_W, RY_GROUP_MLP, "blocks.#.mlp.fc1.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_MLP, "blocks.#.mlp.fc1.bias", {RY_X_MLP}},
    {RY_FC2_W, RY_GROUP_MLP, "blocks.#.mlp.fc2.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_FC2_B, RY_GROUP_MLP, "blocks.#.mlp.fc2.bias", SHAPE_DIM},
    {RY_FC1_W, RY_GROUP_GATED, "blocks.#.mlp.w12.weight", {RY_X_MLP_IN, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_GATED, "blocks.#.mlp.w12.bias", {RY_X_MLP_IN}},
    {RY_FC2_W, RY_GROUP_GATED, "blocks.#.mlp.w3.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_FC2_B, RY_GROUP_GATED, "blocks.#.mlp.w3.bias", SHAPE_DIM},
    {RY_SCALE2, RY_GROUP_LAYER_SCALE, "blocks.#.ls2.gamma", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_NORM, "norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "norm.bias", SHAPE_DIM},
};

/* Around the blocks, the same in all versions of transformers. */
#define HF_EMBEDDINGS                                                                          \
    {RY_PATCH_W, RY_GROUP_CORE, "embeddings.patch_embeddings.projection.weight", SHAPE_PATCH}, \
        {RY_PATCH_B, RY_GROUP_CORE, "embeddings.patch_embeddings.projection.bias", SHAPE_DIM}, \
        {RY_CLS_TOKEN, RY_GROUP_CLASS, "embeddings.cls_token", SHAPE_TOKEN},                   \
        {RY_DIST_TOKEN, RY_GROUP_DISTILLED, "embeddings.distillation_token", SHAPE_TOKEN},     \
    {                                                                                          \
        RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embeddings", SHAPE_POS               \
    }
#define HF_HEADS                                                                          \
    {RY_NORM_W, RY_GROUP_NORM, "layernorm.weight", SHAPE_DIM},                            \
        {RY_NORM_B, RY_GROUP_NORM, "layernorm.bias", SHAPE_DIM},                          \
        {RY_HEAD_W, RY_GROUP_HEAD, "classifier.weight", SHAPE_HEAD},                      \
        {RY_HEAD_B, RY_GROUP_HEAD, "classifier.bias", {RY_X_CLASSES}},                    \
        {RY_HEAD_W, RY_GROUP_TEACHER, "cls_classifier.weight", SHAPE_HEAD},               \
        {RY_HEAD_B, RY_GROUP_TEACHER, "cls_classifier.bias", {RY_X_CLASSES}},             \
        {RY_HEAD_DIST_W, RY_GROUP_TEACHER, "distillation_classifier.weight", SHAPE_HEAD}, \
        {RY_HEAD_DIST_B, RY_GROUP_TEACHER, "distillation_classifier.bias", {RY_X_CLASSES}},

/* The blocks; v is the name of the value matrix, and so on. */
#define HF_LAYER(layer, q, k, v, proj, fc1, fc2)                                \
    {RY_NORM1_W, RY_GROUP_CORE, layer "layernorm_before.weight", SHAPE_DIM},    \
        {RY_NORM1_B, RY_GROUP_CORE, layer "layernorm_before.bias", SHAPE_DIM},  \
        {RY_Q_W, RY_GROUP_CORE, layer q ".weight", {RY_X_DIM, RY_X_DIM}},       \
        {RY_Q_B, RY_GROUP_QKV_BIAS, layer q ".bias", SHAPE_DIM},                \
        {RY_K_W, RY_GROUP_CORE, layer k ".weight", {RY_X_DIM, RY_X_DIM}},       \
        {RY_K_B, RY_GROUP_QKV_BIAS, layer k ".bias", SHAPE_DIM},                \
        {RY_V_W, RY_GROUP_CORE, layer v ".weight", {RY_X_DIM, RY_X_DIM}},       \
        {RY_V_B, RY_GROUP_QKV_BIAS, layer v ".bias", SHAPE_DIM},                \
        {RY_PROJ_W, RY_GROUP_CORE, layer proj ".weight", {RY_X_DIM, RY_X_DIM}}, \
        {RY_PROJ_B, RY_GROUP_CORE, layer proj ".bias", SHAPE_DIM},              \
        {RY_NORM2_W, RY_GROUP_CORE, layer "layernorm_after.weight", SHAPE_DIM}, \
        {RY_NORM2_B, RY_GROUP_CORE, layer "layernorm_after.bias", SHAPE_DIM},   \
        {RY_FC1_W, RY_GROUP_CORE, layer fc1 ".weight", {RY_X_MLP, RY_X_DIM}},   \
        {RY_FC1_B, RY_GROUP_CORE, layer fc1 ".bias", {RY_X_MLP}},               \
        {RY_FC2_W, RY_GROUP_CORE, layer fc2 ".weight", {RY_X_DIM, RY_X_MLP}},   \
    {                                                                           \
        RY_FC2_B, RY_GROUP_CORE, layer fc2 ".bias", SHAPE_DIM                   \
    }

static const ry_tensor_name hf_names[] = {
    HF_EMBEDDINGS,
    HF_LAYER("encoder.layer.#.", "attention.attention.query", "attention.attention.key",
             "attention.attention.value", "attention.output.dense", "intermediate.dense",
             "output.dense"),
    HF_HEADS};

/* The state dict of a model in transformers 5; its save_pretrained still writes the names above. */
static const ry_tensor_name hf5_names[] = {HF_EMBEDDINGS,
                                           HF_LAYER("layers.#.", "attention.q_proj",
                                                    "attention.k_proj", "attention.v_proj",
                                                    "attention.o_proj", "mlp.fc1", "mlp.fc2"),
                                           HF_HEADS};

/* DINOv2; v is the name of the value matrix, and so on, mlp the rows of the gated MLP. */
#define HF_DINO(q, k, v, proj, mlp)                                                         \
    HF_EMBEDDINGS,                                                                          \
        {RY_REGISTERS, RY_GROUP_REGISTERS, "embeddings.register_tokens", SHAPE_REGISTERS},  \
        {RY_NORM1_W, RY_GROUP_CORE, HF_DINO_LAYER "norm1.weight", SHAPE_DIM},               \
        {RY_NORM1_B, RY_GROUP_CORE, HF_DINO_LAYER "norm1.bias", SHAPE_DIM},                 \
        {RY_Q_W, RY_GROUP_CORE, HF_DINO_LAYER q ".weight", {RY_X_DIM, RY_X_DIM}},           \
        {RY_Q_B, RY_GROUP_QKV_BIAS, HF_DINO_LAYER q ".bias", SHAPE_DIM},                    \
        {RY_K_W, RY_GROUP_CORE, HF_DINO_LAYER k ".weight", {RY_X_DIM, RY_X_DIM}},           \
        {RY_K_B, RY_GROUP_QKV_BIAS, HF_DINO_LAYER k ".bias", SHAPE_DIM},                    \
        {RY_V_W, RY_GROUP_CORE, HF_DINO_LAYER v ".weight", {RY_X_DIM, RY_X_DIM}},           \
        {RY_V_B, RY_GROUP_QKV_BIAS, HF_DINO_LAYER v ".bias", SHAPE_DIM},                    \
        {RY_PROJ_W, RY_GROUP_CORE, HF_DINO_LAYER proj ".weight", {RY_X_DIM, RY_X_DIM}},     \
        {RY_PROJ_B, RY_GROUP_CORE, HF_DINO_LAYER proj ".bias", SHAPE_DIM},                  \
        {RY_SCALE1, RY_GROUP_LAYER_SCALE, HF_DINO_LAYER "layer_scale1.lambda1", SHAPE_DIM}, \
        {RY_NORM2_W, RY_GROUP_CORE, HF_DINO_LAYER "norm2.weight", SHAPE_DIM},               \
        {RY_NORM2_B, RY_GROUP_CORE, HF_DINO_LAYER "norm2.bias", SHAPE_DIM},                 \
        {RY_FC1_W, RY_GROUP_MLP, HF_DINO_LAYER "mlp.fc1.weight", {RY_X_MLP, RY_X_DIM}},     \
        {RY_FC1_B, RY_GROUP_MLP, HF_DINO_LAYER "mlp.fc1.bias", {RY_X_MLP}},                 \
        {RY_FC2_W, RY_GROUP_MLP, HF_DINO_LAYER "mlp.fc2.weight", {RY_X_DIM, RY_X_MLP}},     \
        {RY_FC2_B, RY_GROUP_MLP, HF_DINO_LAYER "mlp.fc2.bias", SHAPE_DIM}, mlp,             \
        {RY_SCALE2, RY_GROUP_LAYER_SCALE, HF_DINO_LAYER "layer_scale2.lambda1", SHAPE_DIM}, \
        {RY_NORM_W, RY_GROUP_NORM, "layernorm.weight", SHAPE_DIM},                          \
        {RY_NORM_B, RY_GROUP_NORM, "layernorm.bias", SHAPE_DIM},                            \
        {RY_HEAD_W, RY_GROUP_HEAD, "classifier.weight", {RY_X_CLASSES, RY_X_2DIM}},         \
        {RY_HEAD_B, RY_GROUP_HEAD, "classifier.bias", {RY_X_CLASSES}},
#define HF_DINO_LAYER "encoder.layer.#."
#define HF_DINO_PACKED                                                                            \
    {RY_FC1_W, RY_GROUP_GATED, HF_DINO_LAYER "mlp.weights_in.weight", {RY_X_MLP_IN, RY_X_DIM}},   \
        {RY_FC1_B, RY_GROUP_GATED, HF_DINO_LAYER "mlp.weights_in.bias", {RY_X_MLP_IN}},           \
        {RY_FC2_W, RY_GROUP_GATED, HF_DINO_LAYER "mlp.weights_out.weight", {RY_X_DIM, RY_X_MLP}}, \
    {                                                                                             \
        RY_FC2_B, RY_GROUP_GATED, HF_DINO_LAYER "mlp.weights_out.bias", SHAPE_DIM                 \
    }
#define HF_DINO_SPLIT                                                                           \
    {RY_FC1_W, RY_GROUP_GATED, HF_DINO_LAYER "mlp.gate_proj.weight", {RY_X_MLP, RY_X_DIM}},     \
        {RY_FC1_B, RY_GROUP_GATED, HF_DINO_LAYER "mlp.gate_proj.bias", {RY_X_MLP}},             \
        {RY_UP_W, RY_GROUP_GATED, HF_DINO_LAYER "mlp.up_proj.weight", {RY_X_MLP, RY_X_DIM}},    \
        {RY_UP_B, RY_GROUP_GATED, HF_DINO_LAYER "mlp.up_proj.bias", {RY_X_MLP}},                \
        {RY_FC2_W, RY_GROUP_GATED, HF_DINO_LAYER "mlp.down_proj.weight", {RY_X_DIM, RY_X_MLP}}, \
    {                                                                                           \
        RY_FC2_B, RY_GROUP_GATED, HF_DINO_LAYER "mlp.down_proj.bias", SHAPE_DIM                 \
    }

static const ry_tensor_name hf_dino_names[] = {
    HF_DINO("attention.attention.query", "attention.attention.key", "attention.attention.value",
            "attention.output.dense", HF_DINO_PACKED)};

/* The state dict in transformers 5; its save_pretrained still writes the names above. */
static const ry_tensor_name hf5_dino_names[] = {HF_DINO(
    "attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj", HF_DINO_SPLIT)};

static const ry_tensor_name hf_clip_names[] = {
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "embeddings.class_embedding", SHAPE_DIM},
    {RY_PATCH_W, RY_GROUP_CORE, "embeddings.patch_embedding.weight", SHAPE_PATCH},
    {RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embedding.weight", {RY_X_TOKENS, RY_X_DIM}},
    {RY_PRE_NORM_W, RY_GROUP_PRE_NORM, "pre_layrnorm.weight", SHAPE_DIM}, /* sic */
    {RY_PRE_NORM_B, RY_GROUP_PRE_NORM, "pre_layrnorm.bias", SHAPE_DIM},
    RY_CLIP_HF_LAYER("encoder.layers.#."),
    {RY_NORM_W, RY_GROUP_NORM, "post_layernorm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "post_layernorm.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_EMBED, "visual_projection.weight", {RY_X_EMBED, RY_X_DIM}},
};

/* names[0] is what CLIP does not have. */
static const ry_tensor_name hf_siglip_names[] = {
    {RY_PATCH_B, RY_GROUP_CORE, "embeddings.patch_embedding.bias", SHAPE_DIM},
    {RY_PATCH_W, RY_GROUP_CORE, "embeddings.patch_embedding.weight", SHAPE_PATCH},
    {RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embedding.weight", {RY_X_TOKENS, RY_X_DIM}},
    RY_CLIP_HF_LAYER("encoder.layers.#."),
    {RY_NORM_W, RY_GROUP_NORM, "post_layernorm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "post_layernorm.bias", SHAPE_DIM},
    {RY_POOL_PROBE, RY_GROUP_POOL, "head.probe", SHAPE_TOKEN},
    {RY_POOL_QKV_W, RY_GROUP_POOL, "head.attention.in_proj_weight", {RY_X_3DIM, RY_X_DIM}},
    {RY_POOL_QKV_B, RY_GROUP_POOL, "head.attention.in_proj_bias", {RY_X_3DIM}},
    POOL_TAIL("head.attention.out_proj", "head.layernorm", "head.mlp"),
    {RY_HEAD_W, RY_GROUP_HEAD, "classifier.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_HEAD, "classifier.bias", {RY_X_CLASSES}},
};

static const ry_tensor_name openai_names[] = {
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "visual.class_embedding", SHAPE_DIM},
    {RY_PATCH_W, RY_GROUP_CORE, "visual.conv1.weight", SHAPE_PATCH},
    {RY_POS_EMBED, RY_GROUP_CORE, "visual.positional_embedding", {RY_X_TOKENS, RY_X_DIM}},
    {RY_PRE_NORM_W, RY_GROUP_PRE_NORM, "visual.ln_pre.weight", SHAPE_DIM},
    {RY_PRE_NORM_B, RY_GROUP_PRE_NORM, "visual.ln_pre.bias", SHAPE_DIM},
    RY_CLIP_OPENAI_LAYER("visual.transformer.resblocks.#."),
    {RY_SCALE1, RY_GROUP_LAYER_SCALE, "visual.transformer.resblocks.#.ls_1.gamma", SHAPE_DIM},
    {RY_SCALE2, RY_GROUP_LAYER_SCALE, "visual.transformer.resblocks.#.ls_2.gamma", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_NORM, "visual.ln_post.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "visual.ln_post.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_EMBED, "visual.proj", {RY_X_DIM, RY_X_EMBED}}, /* transposed */
};
/* clang-format on */

/* Tensors of the text tower, and the scale of similarities. */
static const char *const hf_others[] = {"text_model.", "text_projection.", "logit_scale",
                                        "logit_bias", NULL};
static const char *const openai_others[] = {"transformer.",
                                            "token_embedding.",
                                            "positional_embedding",
                                            "ln_final.",
                                            "text_projection",
                                            "logit_scale",
                                            "input_resolution",
                                            "context_length",
                                            "vocab_size",
                                            "logit_bias",
                                            "text.",
                                            NULL};
static const char *const none[] = {NULL};

#define TABLE(names) names, sizeof names / sizeof names[0]
const ry_tensor_layout ry_vit_layouts[RY_N_LAYOUTS] = {
    {RY_LAYOUT_META, 0, "Meta", TABLE(meta_names), 0, none, "a DINOv2", "mask_token", 0, NULL},
    {RY_LAYOUT_TIMM, 0, "open_clip's", TABLE(timm_names), 1, openai_others, NULL, NULL, 0,
     "visual.trunk."},
    {RY_LAYOUT_TIMM, 0, "timm", TABLE(timm_names), 0, none, NULL, NULL, 0, NULL},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_dino_names), 1, none, "a DINOv2",
     "encoder.layer.0.layer_scale1.lambda1", 0, NULL},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf5_dino_names), 1, none, "a DINOv2",
     "encoder.layer.0.attention.q_proj.weight", 0, NULL},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_names), 1, none, NULL, NULL, 0, NULL},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf5_names), 1, none, NULL, NULL, 0, NULL},
    {RY_LAYOUT_HF, 1, "Hugging Face", TABLE(hf_clip_names), 1, hf_others, NULL, NULL, 0, NULL},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_siglip_names), 1, hf_others, "a SigLIP", NULL, 1,
     NULL},
    {RY_LAYOUT_OPENAI, 1, "OpenAI", TABLE(openai_names), 0, openai_others, NULL, NULL, 0, NULL},
};

/* ---- matching ------------------------------------------------------------------------------ */

const char *ry_vit_naming_looked_for(void)
{
    return "timm's and Meta's patch_embed.proj.weight, Hugging Face's "
           "patch_embeddings.projection.weight, CLIP's class_embedding, SigLIP's "
           "patch_embedding.bias";
}

/* The length of the prefix of `name` before `tail`, or -1: "model.a.b" with "a.b" gives 6. */
static int length_before(const char *name, const char *tail)
{
    const size_t n = strlen(name), t = strlen(tail);
    if (n < t || n - t >= RY_PREFIX_MAX || strcmp(name + n - t, tail) != 0) return -1;
    return n == t || name[n - t - 1] == '.' ? (int)(n - t) : -1;
}

/* Removes the last part of a prefix: "module.vit." becomes "module.". */
static void drop_part(char *prefix)
{
    if (!*prefix) return;
    prefix[strlen(prefix) - 1] = '\0';
    char *dot = strrchr(prefix, '.');
    *(dot ? dot + 1 : prefix) = '\0';
}

static void set_prefixes(ry_tensor_naming *out, const char *name, int length,
                         const ry_tensor_layout *l)
{
    memcpy(out->prefix, name, (size_t)length);
    out->prefix[length] = '\0';
    strcpy(out->head_prefix, out->prefix);
    if (l->heads_outside) drop_part(out->head_prefix);
    strcpy(out->root, out->head_prefix);
    if (l->within) out->root[length - (int)strlen(l->within)] = '\0';
}

static int ends_with(const char *text, int length, const char *tail)
{
    const int n = (int)strlen(tail);
    return length >= n && memcmp(text + length - n, tail, (size_t)n) == 0;
}

static int is_head(const ry_tensor_name *row)
{
    return row->role >= RY_HEAD_W && row->role <= RY_EMBED_B;
}

int ry_tensor_name_in_block(const ry_tensor_name *row) { return row->role >= RY_NORM1_W; }

void ry_tensor_name_write(char out[RY_NAME_MAX], const ry_tensor_naming *n,
                          const ry_tensor_name *row, uint32_t block)
{
    const char *prefix = is_head(row) ? n->head_prefix : n->prefix,
               *hash = strchr(row->pattern, '#');
    if (hash)
        snprintf(out, RY_NAME_MAX, "%s%.*s%u%s", prefix, (int)(hash - row->pattern), row->pattern,
                 block, hash + 1);
    else
        snprintf(out, RY_NAME_MAX, "%s%s", prefix, row->pattern);
}

void ry_tensor_names_each(const ry_tensor_naming *n, ry_tensor_name_visitor visit, void *user)
{
    for (size_t i = 0; i < n->n_names; i++) {
        if (!ry_tensor_name_in_block(&n->table[i])) {
            if (n->table[i].group & n->groups) visit(user, n, &n->table[i], 0);
            continue;
        }
        size_t end = i;
        while (end < n->n_names && ry_tensor_name_in_block(&n->table[end])) end++;
        for (uint32_t b = 0; b < n->n_blocks; b++)
            for (size_t k = i; k < end; k++)
                if (n->table[k].group & n->groups) visit(user, n, &n->table[k], b);
        i = end - 1;
    }
}

/* Reads a decimal number without sign or leading zero and moves *at behind it; 0 if none. */
static int read_number(const char **at, uint32_t *out)
{
    uint64_t v = 0;
    const char *p = *at;
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9')) return 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (v <= UINT32_MAX) v = v * 10 + (uint64_t)(*p - '0');
    *out = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
    *at = p;
    return 1;
}

static int matches_pattern(const char *name, const char *pattern, uint32_t *block)
{
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            if (!read_number(&name, block)) return 0;
        } else if (*name++ != *pattern) {
            return 0;
        }
    }
    return *name == '\0';
}

const ry_tensor_name *ry_tensor_name_match(const ry_tensor_naming *n, const char *name,
                                           uint32_t *block)
{
    *block = 0;
    for (size_t i = 0; i < n->n_names; i++) {
        const char *prefix = is_head(&n->table[i]) ? n->head_prefix : n->prefix;
        const size_t length = strlen(prefix);
        if (strncmp(name, prefix, length) == 0 &&
            matches_pattern(name + length, n->table[i].pattern, block))
            return &n->table[i];
    }
    return NULL;
}

static int is_square(uint64_t n)
{
    uint64_t side = 1;
    while (side * side < n && side < 4096) side++;
    return side * side == n;
}

/* 1 if there is a position for each patch of a square grid, perhaps some for registers, and none
 * for a class token. */
static int positions_are_square(const ry_tensor_naming *n, const ry_tensors *set)
{
    const ry_tensor *pos = ry_tensor_of_role(n, set, RY_POS_EMBED, 0);
    const ry_tensor *registers = ry_tensor_of_role(n, set, RY_REGISTERS, 0);
    if (!pos || pos->n_dims != 3) return 0;
    if (is_square(pos->shape[1])) return 1;
    return registers && registers->n_dims == 3 && pos->shape[1] > registers->shape[1] &&
           is_square(pos->shape[1] - registers->shape[1]);
}

/* Adds the groups that the present ones require. */
static void complete_groups(ry_tensor_naming *n, const ry_tensors *set)
{
    const unsigned both = RY_GROUP_HEAD | RY_GROUP_DISTILLED;
    if (n->layout == RY_LAYOUT_TIMM && (n->groups & both) == both) n->groups |= RY_GROUP_TEACHER;
    if (n->groups & RY_GROUP_TEACHER)
        n->groups |= n->layout == RY_LAYOUT_TIMM ? both : RY_GROUP_DISTILLED;
    const int needs_class = (n->groups & RY_GROUP_DISTILLED) || !positions_are_square(n, set);
    if (needs_class && !n->is_siglip) n->groups |= RY_GROUP_CLASS;
    if (!(n->groups & RY_GROUP_FC_NORM)) n->groups |= RY_GROUP_NORM;
    if (!(n->groups & RY_GROUP_PRE_NORM)) n->groups |= RY_GROUP_PATCH_BIAS;
    if (!(n->groups & RY_GROUP_GATED)) n->groups |= RY_GROUP_MLP;
    if (n->is_clip && n->layout == RY_LAYOUT_HF) n->groups |= RY_GROUP_PRE_NORM;
}

/* Finds the optional groups that are present and the number of blocks. */
static void count_tensors(ry_tensor_naming *out, const ry_tensors *set)
{
    out->groups = RY_GROUP_CORE;
    out->n_blocks = 0;
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        uint32_t block;
        const ry_tensor_name *row = ry_tensor_name_match(out, ry_tensors_at(set, i)->name, &block);
        if (!row) continue;
        out->groups |= row->group;
        if (ry_tensor_name_in_block(row) && block >= out->n_blocks)
            out->n_blocks = block < UINT32_MAX ? block + 1 : block;
    }
    complete_groups(out, set);
}

static ry_tensor_naming naming_of(const ry_tensor_layout *l)
{
    return (ry_tensor_naming){.layout = l->id,
                              .is_clip = l->is_clip,
                              .is_siglip = l->is_siglip,
                              .of = l,
                              .table = l->names,
                              .n_names = l->count};
}

static int has_mark(const ry_tensor_naming *n, const ry_tensors *set)
{
    char name[RY_NAME_MAX];
    if (!n->of->mark) return 1;
    snprintf(name, sizeof name, "%s%s", n->prefix, n->of->mark);
    return ry_tensors_find(set, name) != NULL;
}

int ry_tensor_naming_among(ry_tensor_naming *out, const ry_tensors *set,
                           const ry_tensor_layout *layouts, size_t n_layouts)
{
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const char *name = ry_tensors_at(set, i)->name;
        int is_found = 0;
        for (size_t k = 0; k < n_layouts; k++) {
            const ry_tensor_layout *l = &layouts[k];
            const int length = length_before(name, l->names[0].pattern);
            if (length < 0 || (l->within && !ends_with(name, length, l->within))) continue;
            ry_tensor_naming n = naming_of(l);
            set_prefixes(&n, name, length, l);
            if (!has_mark(&n, set)) continue;
            count_tensors(&n, set);
            if (!is_found || n.n_blocks) *out = n;
            is_found = 1;
            if (n.n_blocks) break;
        }
        if (is_found) return 1;
    }
    return 0;
}

int ry_vit_naming_find(ry_tensor_naming *out, const ry_tensors *set)
{
    return ry_tensor_naming_among(out, set, ry_vit_layouts, RY_N_LAYOUTS);
}

static const ry_tensor_layout *layout_of(ry_layout id, int is_clip, int is_siglip)
{
    const ry_tensor_layout *l = ry_vit_layouts;
    while (l->id != id || l->is_clip != is_clip || l->is_siglip != is_siglip || l->within) l++;
    return l;
}

ry_tensor_naming ry_vit_naming_timm(const ry_vit_config *c)
{
    ry_tensor_naming n = naming_of(layout_of(RY_LAYOUT_TIMM, 0, 0));
    n.n_blocks = c->n_blocks;
    n.groups = RY_GROUP_CORE | RY_GROUP_QKV_BIAS;
    n.groups |= c->pool == RY_POOL_MEAN ? RY_GROUP_FC_NORM : RY_GROUP_NORM;
    if (c->n_classes) n.groups |= RY_GROUP_HEAD;
    if (c->pool == RY_POOL_ATTENTION) n.groups |= RY_GROUP_POOL;
    if (ry_vit_class_rows(c)) n.groups |= RY_GROUP_CLASS;
    if (c->is_distilled) n.groups |= RY_GROUP_DISTILLED | RY_GROUP_TEACHER;
    if (c->n_registers) n.groups |= RY_GROUP_REGISTERS;
    if (c->layer_scale) n.groups |= RY_GROUP_LAYER_SCALE;
    n.groups |= c->pre_norm ? RY_GROUP_PRE_NORM : RY_GROUP_PATCH_BIAS;
    return n;
}

ry_tensor_naming ry_vit_naming_clip(uint32_t n_blocks)
{
    ry_tensor_naming n = naming_of(layout_of(RY_LAYOUT_HF, 1, 0));
    n.n_blocks = n_blocks;
    n.groups = RY_GROUP_CORE | RY_GROUP_CLASS | RY_GROUP_NORM | RY_GROUP_EMBED | RY_GROUP_PRE_NORM;
    strcpy(n.prefix, "vision_model.");
    return n;
}

ry_tensor_naming ry_vit_naming_siglip(uint32_t n_blocks)
{
    ry_tensor_naming n = naming_of(layout_of(RY_LAYOUT_HF, 0, 1));
    n.n_blocks = n_blocks;
    n.groups = RY_GROUP_CORE | RY_GROUP_NORM | RY_GROUP_POOL;
    strcpy(n.prefix, "vision_model.");
    return n;
}

int ry_tensor_name_is_other(const ry_tensor_naming *n, const char *name)
{
    const size_t length = strlen(n->root);
    if (!n->of || strncmp(name, n->root, length) != 0) return 0;
    for (const char *const *other = n->of->others; *other; other++)
        if (strncmp(name + length, *other, strlen(*other)) == 0) return 1;
    return 0;
}

const ry_tensor *ry_tensor_of_role(const ry_tensor_naming *n, const ry_tensors *set,
                                   ry_tensor_role role, uint32_t block)
{
    for (size_t i = 0; i < n->n_names; i++) {
        char name[RY_NAME_MAX];
        if (n->table[i].role != role) continue;
        ry_tensor_name_write(name, n, &n->table[i], block);
        const ry_tensor *t = ry_tensors_find(set, name);
        if (t) return t;
    }
    return NULL;
}
