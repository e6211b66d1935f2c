/* clip_layer_names.h - table rows for the blocks of CLIP, the same in both towers; `layer` is the
 * prefix of the names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CLIP_LAYER_NAMES_H
#define RY_CLIP_LAYER_NAMES_H

#include "model/common/tensor_names.h"

/* clang-format off: a table reads by columns */
#define RY_CLIP_HF_LAYER(layer)                                                              \
    {RY_NORM1_W, RY_GROUP_CORE, layer "layer_norm1.weight", {RY_X_DIM}},                     \
        {RY_NORM1_B, RY_GROUP_CORE, layer "layer_norm1.bias", {RY_X_DIM}},                   \
        {RY_Q_W, RY_GROUP_CORE, layer "self_attn.q_proj.weight", {RY_X_DIM, RY_X_DIM}},      \
        {RY_Q_B, RY_GROUP_CORE, layer "self_attn.q_proj.bias", {RY_X_DIM}},                  \
        {RY_K_W, RY_GROUP_CORE, layer "self_attn.k_proj.weight", {RY_X_DIM, RY_X_DIM}},      \
        {RY_K_B, RY_GROUP_CORE, layer "self_attn.k_proj.bias", {RY_X_DIM}},                  \
        {RY_V_W, RY_GROUP_CORE, layer "self_attn.v_proj.weight", {RY_X_DIM, RY_X_DIM}},      \
        {RY_V_B, RY_GROUP_CORE, layer "self_attn.v_proj.bias", {RY_X_DIM}},                  \
        {RY_PROJ_W, RY_GROUP_CORE, layer "self_attn.out_proj.weight", {RY_X_DIM, RY_X_DIM}}, \
        {RY_PROJ_B, RY_GROUP_CORE, layer "self_attn.out_proj.bias", {RY_X_DIM}},             \
        {RY_NORM2_W, RY_GROUP_CORE, layer "layer_norm2.weight", {RY_X_DIM}},                 \
        {RY_NORM2_B, RY_GROUP_CORE, layer "layer_norm2.bias", {RY_X_DIM}},                   \
        {RY_FC1_W, RY_GROUP_CORE, layer "mlp.fc1.weight", {RY_X_MLP, RY_X_DIM}},             \
        {RY_FC1_B, RY_GROUP_CORE, layer "mlp.fc1.bias", {RY_X_MLP}},                         \
        {RY_FC2_W, RY_GROUP_CORE, layer "mlp.fc2.weight", {RY_X_DIM, RY_X_MLP}},             \
    {                                                                                        \
        RY_FC2_B, RY_GROUP_CORE, layer "mlp.fc2.bias", { RY_X_DIM }                          \
    }

#define RY_CLIP_OPENAI_LAYER(layer)                                                     \
    {RY_NORM1_W, RY_GROUP_CORE, layer "ln_1.weight", {RY_X_DIM}},                       \
        {RY_NORM1_B, RY_GROUP_CORE, layer "ln_1.bias", {RY_X_DIM}},                     \
        {RY_QKV_W, RY_GROUP_CORE, layer "attn.in_proj_weight", {RY_X_3DIM, RY_X_DIM}},  \
        {RY_QKV_B, RY_GROUP_CORE, layer "attn.in_proj_bias", {RY_X_3DIM}},              \
        {RY_PROJ_W, RY_GROUP_CORE, layer "attn.out_proj.weight", {RY_X_DIM, RY_X_DIM}}, \
        {RY_PROJ_B, RY_GROUP_CORE, layer "attn.out_proj.bias", {RY_X_DIM}},             \
        {RY_NORM2_W, RY_GROUP_CORE, layer "ln_2.weight", {RY_X_DIM}},                   \
        {RY_NORM2_B, RY_GROUP_CORE, layer "ln_2.bias", {RY_X_DIM}},                     \
        {RY_FC1_W, RY_GROUP_CORE, layer "mlp.c_fc.weight", {RY_X_MLP, RY_X_DIM}},       \
        {RY_FC1_B, RY_GROUP_CORE, layer "mlp.c_fc.bias", {RY_X_MLP}},                   \
        {RY_FC2_W, RY_GROUP_CORE, layer "mlp.c_proj.weight", {RY_X_DIM, RY_X_MLP}},     \
    {                                                                                   \
        RY_FC2_B, RY_GROUP_CORE, layer "mlp.c_proj.bias", { RY_X_DIM }                  \
    }
/* clang-format on */

#endif
