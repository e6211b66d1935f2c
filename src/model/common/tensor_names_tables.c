/* tensor_names_tables.c - the names of all tensors in each layout, and their shapes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/clip_layer_names.h"

#define SHAPE_TOKEN              \
    {                            \
        RY_X_1, RY_X_1, RY_X_DIM \
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
static const ry_tensor_name timm_names[] = {
    {RY_PATCH_W, RY_GROUP_CORE, "patch_embed.proj.weight", SHAPE_PATCH},
    {RY_PATCH_B, RY_GROUP_CORE, "patch_embed.proj.bias", SHAPE_DIM},
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "cls_token", SHAPE_TOKEN},
    {RY_DIST_TOKEN, RY_GROUP_DISTILLED, "dist_token", SHAPE_TOKEN},
    {RY_POS_EMBED, RY_GROUP_CORE, "pos_embed", SHAPE_POS},
    {RY_NORM1_W, RY_GROUP_CORE, "blocks.#.norm1.weight", SHAPE_DIM},
    {RY_NORM1_B, RY_GROUP_CORE, "blocks.#.norm1.bias", SHAPE_DIM},
    {RY_QKV_W, RY_GROUP_CORE, "blocks.#.attn.qkv.weight", {RY_X_3DIM, RY_X_DIM}},
    {RY_QKV_B, RY_GROUP_QKV_BIAS, "blocks.#.attn.qkv.bias", {RY_X_3DIM}},
    {RY_PROJ_W, RY_GROUP_CORE, "blocks.#.attn.proj.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_PROJ_B, RY_GROUP_CORE, "blocks.#.attn.proj.bias", SHAPE_DIM},
    {RY_NORM2_W, RY_GROUP_CORE, "blocks.#.norm2.weight", SHAPE_DIM},
    {RY_NORM2_B, RY_GROUP_CORE, "blocks.#.norm2.bias", SHAPE_DIM},
    {RY_FC1_W, RY_GROUP_CORE, "blocks.#.mlp.fc1.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_CORE, "blocks.#.mlp.fc1.bias", {RY_X_MLP}},
    {RY_FC2_W, RY_GROUP_CORE, "blocks.#.mlp.fc2.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_FC2_B, RY_GROUP_CORE, "blocks.#.mlp.fc2.bias", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_NORM, "norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "norm.bias", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_FC_NORM, "fc_norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_FC_NORM, "fc_norm.bias", SHAPE_DIM},
    {RY_HEAD_W, RY_GROUP_HEAD, "head.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_HEAD, "head.bias", {RY_X_CLASSES}},
    {RY_HEAD_DIST_W, RY_GROUP_TEACHER, "head_dist.weight", SHAPE_HEAD},
    {RY_HEAD_DIST_B, RY_GROUP_TEACHER, "head_dist.bias", {RY_X_CLASSES}},
};

#define LAYER "encoder.layer.#."
static const ry_tensor_name hf_names[] = {
    {RY_PATCH_W, RY_GROUP_CORE, "embeddings.patch_embeddings.projection.weight", SHAPE_PATCH},
    {RY_PATCH_B, RY_GROUP_CORE, "embeddings.patch_embeddings.projection.bias", SHAPE_DIM},
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "embeddings.cls_token", SHAPE_TOKEN},
    {RY_DIST_TOKEN, RY_GROUP_DISTILLED, "embeddings.distillation_token", SHAPE_TOKEN},
    {RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embeddings", SHAPE_POS},
    {RY_NORM1_W, RY_GROUP_CORE, LAYER "layernorm_before.weight", SHAPE_DIM},
    {RY_NORM1_B, RY_GROUP_CORE, LAYER "layernorm_before.bias", SHAPE_DIM},
    {RY_Q_W, RY_GROUP_CORE, LAYER "attention.attention.query.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_Q_B, RY_GROUP_QKV_BIAS, LAYER "attention.attention.query.bias", SHAPE_DIM},
    {RY_K_W, RY_GROUP_CORE, LAYER "attention.attention.key.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_K_B, RY_GROUP_QKV_BIAS, LAYER "attention.attention.key.bias", SHAPE_DIM},
    {RY_V_W, RY_GROUP_CORE, LAYER "attention.attention.value.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_V_B, RY_GROUP_QKV_BIAS, LAYER "attention.attention.value.bias", SHAPE_DIM},
    {RY_PROJ_W, RY_GROUP_CORE, LAYER "attention.output.dense.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_PROJ_B, RY_GROUP_CORE, LAYER "attention.output.dense.bias", SHAPE_DIM},
    {RY_NORM2_W, RY_GROUP_CORE, LAYER "layernorm_after.weight", SHAPE_DIM},
    {RY_NORM2_B, RY_GROUP_CORE, LAYER "layernorm_after.bias", SHAPE_DIM},
    {RY_FC1_W, RY_GROUP_CORE, LAYER "intermediate.dense.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_CORE, LAYER "intermediate.dense.bias", {RY_X_MLP}},
    {RY_FC2_W, RY_GROUP_CORE, LAYER "output.dense.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_FC2_B, RY_GROUP_CORE, LAYER "output.dense.bias", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_NORM, "layernorm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "layernorm.bias", SHAPE_DIM},
    {RY_HEAD_W, RY_GROUP_HEAD, "classifier.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_HEAD, "classifier.bias", {RY_X_CLASSES}},
    {RY_HEAD_W, RY_GROUP_TEACHER, "cls_classifier.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_TEACHER, "cls_classifier.bias", {RY_X_CLASSES}},
    {RY_HEAD_DIST_W, RY_GROUP_TEACHER, "distillation_classifier.weight", SHAPE_HEAD},
    {RY_HEAD_DIST_B, RY_GROUP_TEACHER, "distillation_classifier.bias", {RY_X_CLASSES}},
};

#undef LAYER
static const ry_tensor_name hf_clip_names[] = {
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "embeddings.class_embedding", SHAPE_DIM},
    {RY_PATCH_W, RY_GROUP_CORE, "embeddings.patch_embedding.weight", SHAPE_PATCH},
    {RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embedding.weight", {RY_X_TOKENS, RY_X_DIM}},
    {RY_PRE_NORM_W, RY_GROUP_CORE, "pre_layrnorm.weight", SHAPE_DIM}, /* spelled so */
    {RY_PRE_NORM_B, RY_GROUP_CORE, "pre_layrnorm.bias", SHAPE_DIM},
    RY_CLIP_HF_LAYER("encoder.layers.#."),
    {RY_NORM_W, RY_GROUP_NORM, "post_layernorm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "post_layernorm.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_EMBED, "visual_projection.weight", {RY_X_EMBED, RY_X_DIM}},
};

static const ry_tensor_name openai_names[] = {
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "visual.class_embedding", SHAPE_DIM},
    {RY_PATCH_W, RY_GROUP_CORE, "visual.conv1.weight", SHAPE_PATCH},
    {RY_POS_EMBED, RY_GROUP_CORE, "visual.positional_embedding", {RY_X_TOKENS, RY_X_DIM}},
    {RY_PRE_NORM_W, RY_GROUP_CORE, "visual.ln_pre.weight", SHAPE_DIM},
    {RY_PRE_NORM_B, RY_GROUP_CORE, "visual.ln_pre.bias", SHAPE_DIM},
    RY_CLIP_OPENAI_LAYER("visual.transformer.resblocks.#."),
    {RY_NORM_W, RY_GROUP_NORM, "visual.ln_post.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "visual.ln_post.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_EMBED, "visual.proj", {RY_X_DIM, RY_X_EMBED}}, /* the transpose */
};
/* clang-format on */

/* What a file of two towers holds besides: texts, and how sharply they are compared with images. */
static const char *const hf_others[] = {"text_model.", "text_projection.", "logit_scale", NULL};
static const char *const openai_others[] = {
    "transformer.", "token_embedding.", "positional_embedding", "ln_final.",  "text_projection",
    "logit_scale",  "input_resolution", "context_length",       "vocab_size", NULL};
static const char *const none[] = {NULL};

#define TABLE(names) names, sizeof names / sizeof names[0]
const ry_tensor_layout ry_vit_layouts[RY_N_LAYOUTS] = {
    {RY_LAYOUT_TIMM, 0, "timm", TABLE(timm_names), 0, none, NULL},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_names), 1, none, NULL},
    {RY_LAYOUT_HF, 1, "Hugging Face", TABLE(hf_clip_names), 1, hf_others, NULL},
    {RY_LAYOUT_OPENAI, 1, "OpenAI", TABLE(openai_names), 0, openai_others, NULL},
};
