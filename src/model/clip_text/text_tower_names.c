/* text_tower_names.c - the tables of the text tower's tensor names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/clip_text/text_tower_names.h"

#include "model/common/clip_layer_names.h"

#define SHAPE_DIM \
    {             \
        RY_X_DIM  \
    }

/* clang-format off: a table reads by columns */
static const ry_vit_name hf_names[] = {
    {RY_TOKEN_EMBED, RY_GROUP_CORE, "embeddings.token_embedding.weight", {RY_X_VOCAB, RY_X_DIM}},
    {RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embedding.weight", {RY_X_TOKENS, RY_X_DIM}},
    RY_CLIP_HF_LAYER("encoder.layers.#."),
    {RY_NORM_W, RY_GROUP_CORE, "final_layer_norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_CORE, "final_layer_norm.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_CORE, "text_projection.weight", {RY_X_EMBED, RY_X_DIM}},
    {RY_LOGIT_SCALE, RY_GROUP_HEAD, "logit_scale", {RY_X_END}}, /* not in a tower alone */
};

static const ry_vit_name openai_names[] = {
    {RY_TOKEN_EMBED, RY_GROUP_CORE, "token_embedding.weight", {RY_X_VOCAB, RY_X_DIM}},
    {RY_POS_EMBED, RY_GROUP_CORE, "positional_embedding", {RY_X_TOKENS, RY_X_DIM}},
    RY_CLIP_OPENAI_LAYER("transformer.resblocks.#."),
    {RY_NORM_W, RY_GROUP_CORE, "ln_final.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_CORE, "ln_final.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_CORE, "text_projection", {RY_X_DIM, RY_X_EMBED}}, /* x * projection */
    {RY_LOGIT_SCALE, RY_GROUP_HEAD, "logit_scale", {RY_X_END}},
};
/* clang-format on */

static const char *const hf_others[] = {"vision_model.", "visual_projection.", NULL};
static const char *const openai_others[] = {"visual.", "input_resolution", "context_length",
                                            "vocab_size", NULL};

/* OpenAI's first name ends like Hugging Face's: the longer one is asked for first. */
static const ry_vit_layout layouts[] = {
    {RY_LAYOUT_HF, 1, "Hugging Face", hf_names, sizeof hf_names / sizeof hf_names[0], 1, hf_others,
     NULL},
    {RY_LAYOUT_OPENAI, 1, "OpenAI", openai_names, sizeof openai_names / sizeof openai_names[0], 0,
     openai_others, NULL},
};

int ry_text_naming_find(ry_vit_naming *out, const ry_tensors *set)
{
    return ry_vit_naming_among(out, set, layouts, sizeof layouts / sizeof layouts[0]);
}

ry_vit_naming ry_text_naming_hf(uint32_t n_blocks)
{
    return (ry_vit_naming){.layout = RY_LAYOUT_HF,
                           .is_clip = 1,
                           .of = &layouts[0],
                           .table = layouts[0].names,
                           .n_names = layouts[0].count,
                           .body = "text_model.",
                           .n_blocks = n_blocks,
                           .groups = RY_GROUP_CORE | RY_GROUP_HEAD};
}

void ry_text_extents(uint64_t out[RY_X_COUNT], const ry_text_config *c)
{
    const uint64_t extents[RY_X_COUNT] = {
        [RY_X_TOKENS] = c->context, [RY_X_DIM] = c->dim,         [RY_X_3DIM] = 3 * (uint64_t)c->dim,
        [RY_X_MLP] = c->mlp_dim,    [RY_X_EMBED] = c->embed_dim, [RY_X_VOCAB] = c->vocab};
    for (int i = 0; i < RY_X_COUNT; i++) out[i] = extents[i];
}
