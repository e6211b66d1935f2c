/* llama_names.c - the tables of a Llama's tensor names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llama/llama_names.h"

#include <string.h>

/* clang-format off: a table reads by columns */
#define NAMES(body, layer, head)                                                          \
    {RY_TOKEN_EMBED, RY_GROUP_CORE, body "embed_tokens.weight", {RY_X_VOCAB, RY_X_DIM}},  \
        {RY_NORM1_W, RY_GROUP_CORE, layer "input_layernorm.weight", {RY_X_DIM}},          \
        {RY_Q_W, RY_GROUP_CORE, layer "self_attn.q_proj.weight", {RY_X_Q, RY_X_DIM}},     \
        {RY_K_W, RY_GROUP_CORE, layer "self_attn.k_proj.weight", {RY_X_KV, RY_X_DIM}},    \
        {RY_V_W, RY_GROUP_CORE, layer "self_attn.v_proj.weight", {RY_X_KV, RY_X_DIM}},    \
        {RY_PROJ_W, RY_GROUP_CORE, layer "self_attn.o_proj.weight", {RY_X_DIM, RY_X_Q}},  \
        {RY_NORM2_W, RY_GROUP_CORE, layer "post_attention_layernorm.weight", {RY_X_DIM}}, \
        {RY_FC1_W, RY_GROUP_CORE, layer "mlp.gate_proj.weight", {RY_X_MLP, RY_X_DIM}},    \
        {RY_UP_W, RY_GROUP_CORE, layer "mlp.up_proj.weight", {RY_X_MLP, RY_X_DIM}},       \
        {RY_FC2_W, RY_GROUP_CORE, layer "mlp.down_proj.weight", {RY_X_DIM, RY_X_MLP}},    \
        {RY_NORM_W, RY_GROUP_CORE, body "norm.weight", {RY_X_DIM}},                       \
    {                                                                                     \
        RY_HEAD_W, RY_GROUP_HEAD, head "lm_head.weight", { RY_X_VOCAB, RY_X_DIM }         \
    }

static const ry_vit_name inside_names[] = {
    NAMES("language_model.model.", "language_model.model.layers.#.", "language_model.")};
static const ry_vit_name inside_5_names[] = {
    NAMES("model.language_model.", "model.language_model.layers.#.", "")};
static const ry_vit_name plain_names[] = {NAMES("model.", "model.layers.#.", "")};
static const ry_vit_name stored_names[] = {
    {RY_TOKEN_EMBED, RY_GROUP_CORE, RY_STORED "embed_tokens.weight", {RY_X_VOCAB, RY_X_DIM}},
    {RY_NORM1_W, RY_GROUP_CORE, RY_STORED "layers.#.input_layernorm.weight", {RY_X_DIM}},
    {RY_NORM2_W, RY_GROUP_CORE, RY_STORED "layers.#.post_attention_layernorm.weight", {RY_X_DIM}},
    {RY_NORM_W, RY_GROUP_CORE, RY_STORED "norm.weight", {RY_X_DIM}}};
/* clang-format on */

/* Its panels are looked at by llama_stored.c; the rest is as in the file that it was made of. */
static const char *const stored_others[] = {RY_STORED "layers.",
                                            RY_STORED "head.",
                                            "vision_tower.",
                                            "multi_modal_projector.",
                                            "image_newline",
                                            "model.vision_tower.",
                                            "model.multi_modal_projector.",
                                            "model.mm_projector.",
                                            "model.image_newline",
                                            NULL};
static const char *const inside_others[] = {"vision_tower.", "multi_modal_projector.",
                                            "image_newline", NULL};
static const char *const inside_5_others[] = {"model.vision_tower.", "model.multi_modal_projector.",
                                              "model.image_newline", NULL};
static const char *const plain_others[] = {"model.vision_tower.", "model.mm_projector.",
                                           "model.image_newline", NULL};

/* Longer names first: the first one of a plain Llama is the end of another's. */
#define TABLE(table) .names = table, .count = sizeof table / sizeof table[0]
static const ry_vit_layout layouts[] = {
    {.id = RY_LAYOUT_HF,
     .house = RY_STORED_LAYOUT,
     TABLE(stored_names),
     .others = stored_others,
     .what = "a quantised Llama"},
    {.id = RY_LAYOUT_HF,
     .house = "llava-hf", /* transformers 4 */
     TABLE(inside_names),
     .others = inside_others,
     .what = "a Llama"},
    {.id = RY_LAYOUT_HF,
     .house = "llava-hf-5", /* transformers 5 */
     TABLE(inside_5_names),
     .others = inside_5_others,
     .what = "a Llama"},
    {.id = RY_LAYOUT_HF,
     .house = "llama", /* and the first LLaVA's */
     TABLE(plain_names),
     .others = plain_others,
     .what = "a Llama"},
};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

int ry_llama_naming_find(ry_vit_naming *out, const ry_tensors *set)
{
    return ry_vit_naming_among(out, set, layouts, N_LAYOUTS);
}

ry_vit_naming ry_llama_naming(const char *layout, uint32_t n_layers)
{
    const ry_vit_layout *l = layouts;
    while (strcmp(l->house, layout) != 0) l++;
    return (ry_vit_naming){.layout = l->id,
                           .of = l,
                           .table = l->names,
                           .n_names = l->count,
                           .n_blocks = n_layers,
                           .groups = RY_GROUP_CORE | RY_GROUP_HEAD};
}

void ry_llama_extents(uint64_t out[RY_X_COUNT], const ry_llama_config *c)
{
    memset(out, 0, RY_X_COUNT * sizeof *out);
    out[RY_X_DIM] = c->dim;
    out[RY_X_MLP] = c->mlp_dim;
    out[RY_X_VOCAB] = c->vocab;
    out[RY_X_Q] = ry_llama_q(c);
    out[RY_X_KV] = ry_llama_kv(c);
}
