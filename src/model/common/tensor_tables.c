/* tensor_tables.c - the tables of a ViT's tensor names: one for each layout of timm, Meta, Hugging
 * Face and OpenAI.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/clip_layer_names.h"
#include "model/common/tensor_names.h"

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

/* DINOv3: rotary positions, so no tensor of them; the published models have no bias of keys. mlp:
 * the rows of the first matrix of a plain MLP, or of the first two of a gated one. */
#define HF_DINO3(mlp)                                                                        \
    {RY_PATCH_W, RY_GROUP_CORE, "embeddings.patch_embeddings.weight", SHAPE_PATCH},          \
        {RY_PATCH_B, RY_GROUP_CORE, "embeddings.patch_embeddings.bias", SHAPE_DIM},          \
        {RY_CLS_TOKEN, RY_GROUP_CLASS, "embeddings.cls_token", SHAPE_TOKEN},                 \
        {RY_REGISTERS, RY_GROUP_REGISTERS, "embeddings.register_tokens", SHAPE_REGISTERS},   \
        {RY_NORM1_W, RY_GROUP_CORE, "layer.#.norm1.weight", SHAPE_DIM},                      \
        {RY_NORM1_B, RY_GROUP_CORE, "layer.#.norm1.bias", SHAPE_DIM},                        \
        {RY_Q_W, RY_GROUP_CORE, "layer.#.attention.q_proj.weight", {RY_X_DIM, RY_X_DIM}},    \
        {RY_Q_B, RY_GROUP_QKV_BIAS, "layer.#.attention.q_proj.bias", SHAPE_DIM},             \
        {RY_K_W, RY_GROUP_CORE, "layer.#.attention.k_proj.weight", {RY_X_DIM, RY_X_DIM}},    \
        {RY_K_B, RY_GROUP_KEY_BIAS, "layer.#.attention.k_proj.bias", SHAPE_DIM},             \
        {RY_V_W, RY_GROUP_CORE, "layer.#.attention.v_proj.weight", {RY_X_DIM, RY_X_DIM}},    \
        {RY_V_B, RY_GROUP_QKV_BIAS, "layer.#.attention.v_proj.bias", SHAPE_DIM},             \
        {RY_PROJ_W, RY_GROUP_CORE, "layer.#.attention.o_proj.weight", {RY_X_DIM, RY_X_DIM}}, \
        {RY_PROJ_B, RY_GROUP_CORE, "layer.#.attention.o_proj.bias", SHAPE_DIM},              \
        {RY_SCALE1, RY_GROUP_CORE, "layer.#.layer_scale1.lambda1", SHAPE_DIM},               \
        {RY_NORM2_W, RY_GROUP_CORE, "layer.#.norm2.weight", SHAPE_DIM},                      \
        {RY_NORM2_B, RY_GROUP_CORE, "layer.#.norm2.bias", SHAPE_DIM}, mlp,                   \
        {RY_FC2_W, RY_GROUP_CORE, "layer.#.mlp.down_proj.weight", {RY_X_DIM, RY_X_MLP}},     \
        {RY_FC2_B, RY_GROUP_CORE, "layer.#.mlp.down_proj.bias", SHAPE_DIM},                  \
        {RY_SCALE2, RY_GROUP_CORE, "layer.#.layer_scale2.lambda1", SHAPE_DIM},               \
        {RY_NORM_W, RY_GROUP_NORM, "norm.weight", SHAPE_DIM},                                \
        {RY_NORM_B, RY_GROUP_NORM, "norm.bias", SHAPE_DIM},
#define HF_DINO3_PLAIN                                                            \
    {RY_FC1_W, RY_GROUP_MLP, "layer.#.mlp.up_proj.weight", {RY_X_MLP, RY_X_DIM}}, \
    {                                                                             \
        RY_FC1_B, RY_GROUP_MLP, "layer.#.mlp.up_proj.bias", { RY_X_MLP }          \
    }
#define HF_DINO3_GATED                                                                 \
    {RY_FC1_W, RY_GROUP_GATED, "layer.#.mlp.gate_proj.weight", {RY_X_MLP, RY_X_DIM}},  \
        {RY_FC1_B, RY_GROUP_GATED, "layer.#.mlp.gate_proj.bias", {RY_X_MLP}},          \
        {RY_UP_W, RY_GROUP_GATED, "layer.#.mlp.up_proj.weight", {RY_X_MLP, RY_X_DIM}}, \
    {                                                                                  \
        RY_UP_B, RY_GROUP_GATED, "layer.#.mlp.up_proj.bias", { RY_X_MLP }              \
    }

static const ry_tensor_name hf_dino3_names[] = {HF_DINO3(HF_DINO3_PLAIN)};
static const ry_tensor_name hf_dino3_gated_names[] = {HF_DINO3(HF_DINO3_GATED)};

/* DINOv3 in timm, where it is an EVA: biases of q and v beside one matrix of all three. */
static const ry_tensor_name timm_dino3_names[] = {
    {RY_PATCH_W, RY_GROUP_CORE, "patch_embed.proj.weight", SHAPE_PATCH},
    {RY_PATCH_B, RY_GROUP_CORE, "patch_embed.proj.bias", SHAPE_DIM},
    {RY_CLS_TOKEN, RY_GROUP_CLASS, "cls_token", SHAPE_TOKEN},
    {RY_REGISTERS, RY_GROUP_REGISTERS, "reg_token", SHAPE_REGISTERS},
    {RY_NORM1_W, RY_GROUP_CORE, "blocks.#.norm1.weight", SHAPE_DIM},
    {RY_NORM1_B, RY_GROUP_CORE, "blocks.#.norm1.bias", SHAPE_DIM},
    {RY_QKV_W, RY_GROUP_CORE, "blocks.#.attn.qkv.weight", {RY_X_3DIM, RY_X_DIM}},
    {RY_Q_B, RY_GROUP_QKV_BIAS, "blocks.#.attn.q_bias", SHAPE_DIM},
    {RY_V_B, RY_GROUP_QKV_BIAS, "blocks.#.attn.v_bias", SHAPE_DIM},
    {RY_PROJ_W, RY_GROUP_CORE, "blocks.#.attn.proj.weight", {RY_X_DIM, RY_X_DIM}},
    {RY_PROJ_B, RY_GROUP_CORE, "blocks.#.attn.proj.bias", SHAPE_DIM},
    {RY_SCALE1, RY_GROUP_CORE, "blocks.#.gamma_1", SHAPE_DIM},
    {RY_NORM2_W, RY_GROUP_CORE, "blocks.#.norm2.weight", SHAPE_DIM},
    {RY_NORM2_B, RY_GROUP_CORE, "blocks.#.norm2.bias", SHAPE_DIM},
    {RY_FC1_W, RY_GROUP_MLP, "blocks.#.mlp.fc1.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_MLP, "blocks.#.mlp.fc1.bias", {RY_X_MLP}},
    {RY_FC1_W, RY_GROUP_GATED, "blocks.#.mlp.fc1_g.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_FC1_B, RY_GROUP_GATED, "blocks.#.mlp.fc1_g.bias", {RY_X_MLP}},
    {RY_UP_W, RY_GROUP_GATED, "blocks.#.mlp.fc1_x.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_UP_B, RY_GROUP_GATED, "blocks.#.mlp.fc1_x.bias", {RY_X_MLP}},
    {RY_FC2_W, RY_GROUP_CORE, "blocks.#.mlp.fc2.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_FC2_B, RY_GROUP_CORE, "blocks.#.mlp.fc2.bias", SHAPE_DIM},
    {RY_SCALE2, RY_GROUP_CORE, "blocks.#.gamma_2", SHAPE_DIM},
    {RY_NORM_W, RY_GROUP_NORM, "norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_NORM, "norm.bias", SHAPE_DIM},
    {RY_HEAD_W, RY_GROUP_HEAD, "head.weight", SHAPE_HEAD},
    {RY_HEAD_B, RY_GROUP_HEAD, "head.bias", {RY_X_CLASSES}},
};

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
    {RY_LAYOUT_META, 0, "Meta", TABLE(meta_names), 0, none, "a DINOv2", "mask_token", 0, NULL, NULL,
     0},
    {RY_LAYOUT_TIMM, 0, "open_clip's", TABLE(timm_names), 1, openai_others, NULL, NULL, 0,
     "visual.trunk.", NULL, 0},
    {RY_LAYOUT_TIMM, 0, "timm", TABLE(timm_dino3_names), 0, none, "a DINOv3", "blocks.0.gamma_1", 0,
     NULL, "pos_embed", 1},
    {RY_LAYOUT_TIMM, 0, "timm", TABLE(timm_names), 0, none, NULL, NULL, 0, NULL, NULL, 0},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_dino3_gated_names), 0, none, "a DINOv3",
     "layer.0.mlp.gate_proj.weight", 0, NULL, NULL, 1},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_dino3_names), 0, none, "a DINOv3", NULL, 0, NULL,
     NULL, 1},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_dino_names), 1, none, "a DINOv2",
     "encoder.layer.0.layer_scale1.lambda1", 0, NULL, NULL, 0},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf5_dino_names), 1, none, "a DINOv2",
     "encoder.layer.0.attention.q_proj.weight", 0, NULL, NULL, 0},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_names), 1, none, NULL, NULL, 0, NULL, NULL, 0},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf5_names), 1, none, NULL, NULL, 0, NULL, NULL, 0},
    {RY_LAYOUT_HF, 1, "Hugging Face", TABLE(hf_clip_names), 1, hf_others, NULL, NULL, 0, NULL, NULL,
     0},
    {RY_LAYOUT_HF, 0, "Hugging Face", TABLE(hf_siglip_names), 1, hf_others, "a SigLIP", NULL, 1,
     NULL, NULL, 0},
    {RY_LAYOUT_OPENAI, 1, "OpenAI", TABLE(openai_names), 0, openai_others, NULL, NULL, 0, NULL,
     NULL, 0},
};

const char *ry_vit_naming_looked_for(void)
{
    return "timm's and Meta's patch_embed.proj.weight, Hugging Face's "
           "patch_embeddings.projection.weight and patch_embeddings.weight, CLIP's class_embedding, "
           "SigLIP's patch_embedding.bias";
}
