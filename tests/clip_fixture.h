/* clip_fixture.h - a small random CLIP as a list of tensors, in Hugging Face's names or in
 * OpenAI's; of the image tower only a stump. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_CLIP_FIXTURE_H
#define RENYI_TESTS_CLIP_FIXTURE_H

#include "base/rng.h"
#include "vit_fixture.h"

enum {
    CLIP_MERGES = 3,
    CLIP_VOCAB = 512 + CLIP_MERGES + 2, /* of a tokenizer with so many merges */
    CLIP_CONTEXT = 32,
    CLIP_DIM = 24,
    CLIP_HEADS = 3,
    CLIP_MLP = 40,
    CLIP_EMBED = 10,
    CLIP_BLOCKS = 2,
    CLIP_SOT = CLIP_VOCAB - 2,
    CLIP_EOT = CLIP_VOCAB - 1
};

#define CLIP_CONFIG \
    "{\"text_config\": {\"hidden_size\": 24, \"num_attention_heads\": 3}, \"vision_config\": {}}"

/* Random numbers about `middle`; rows [r, c], or a vector if r is 0. */
static inline void clip_add(fixture *f, ry_rng *rng, const char *name, uint64_t r, uint64_t c,
                            float middle)
{
    const uint64_t rows[2] = {r, c}, vector[1] = {c};
    const size_t n = (size_t)((r ? r : 1) * c);
    float *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++) data[i] = middle + 0.3f * (float)ry_rng_normal(rng);
    fix_add(f, name, r ? 2 : 1, r ? rows : vector, data);
}

static inline void clip_add_block(fixture *f, ry_rng *rng, unsigned block)
{
    static const struct {
        const char *name;
        uint64_t rows, columns;
        float middle;
    } parts[] = {
        {"layer_norm1.weight", 0, CLIP_DIM, 1},
        {"layer_norm1.bias", 0, CLIP_DIM, 0},
        {"self_attn.q_proj.weight", CLIP_DIM, CLIP_DIM, 0},
        {"self_attn.q_proj.bias", 0, CLIP_DIM, 0},
        {"self_attn.k_proj.weight", CLIP_DIM, CLIP_DIM, 0},
        {"self_attn.k_proj.bias", 0, CLIP_DIM, 0},
        {"self_attn.v_proj.weight", CLIP_DIM, CLIP_DIM, 0},
        {"self_attn.v_proj.bias", 0, CLIP_DIM, 0},
        {"self_attn.out_proj.weight", CLIP_DIM, CLIP_DIM, 0},
        {"self_attn.out_proj.bias", 0, CLIP_DIM, 0},
        {"layer_norm2.weight", 0, CLIP_DIM, 1},
        {"layer_norm2.bias", 0, CLIP_DIM, 0},
        {"mlp.fc1.weight", CLIP_MLP, CLIP_DIM, 0},
        {"mlp.fc1.bias", 0, CLIP_MLP, 0},
        {"mlp.fc2.weight", CLIP_DIM, CLIP_MLP, 0},
        {"mlp.fc2.bias", 0, CLIP_DIM, 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char name[96];
        snprintf(name, sizeof name, "text_model.encoder.layers.%u.%s", block, parts[i].name);
        clip_add(f, rng, name, parts[i].rows, parts[i].columns, parts[i].middle);
    }
}

/* In Hugging Face's names, with config.json in the metadata. */
static inline void clip_make(fixture *f)
{
    ry_rng rng = ry_rng_new(7);
    float *scale = malloc(sizeof *scale);
    memset(f, 0, sizeof *f);
    clip_add(f, &rng, "text_model.embeddings.token_embedding.weight", CLIP_VOCAB, CLIP_DIM, 0);
    clip_add(f, &rng, "text_model.embeddings.position_embedding.weight", CLIP_CONTEXT, CLIP_DIM, 0);
    for (unsigned i = 0; i < CLIP_BLOCKS; i++) clip_add_block(f, &rng, i);
    clip_add(f, &rng, "text_model.final_layer_norm.weight", 0, CLIP_DIM, 1);
    clip_add(f, &rng, "text_model.final_layer_norm.bias", 0, CLIP_DIM, 0);
    clip_add(f, &rng, "text_projection.weight", CLIP_EMBED, CLIP_DIM, 0);
    *scale = 2.5f;
    fix_add(f, "logit_scale", 0, (const uint64_t[]){0}, scale);
    clip_add(f, &rng, "vision_model.embeddings.class_embedding", 0, 8, 0);
    clip_add(f, &rng, "visual_projection.weight", CLIP_EMBED, 8, 0);
    f->meta[0] = "config.json";
    f->meta[1] = CLIP_CONFIG;
}

/* ---- the same weights under OpenAI's names -------------------------------------------------- */

/* q, k and v of a block below each other in one tensor; kind is "weight" or "bias". */
static inline void clip_stack_qkv(fixture *f, unsigned block, const char *kind)
{
    char name[96];
    char *data = NULL;
    ry_tensor first = {0};
    for (int k = 0; k < 3; k++) {
        snprintf(name, sizeof name, "text_model.encoder.layers.%u.self_attn.%c_proj.%s", block,
                 "qkv"[k], kind);
        const ry_tensor t = *fix_find(f, name);
        if (!k) data = malloc(3 * t.bytes), first = t;
        memcpy(data + (size_t)k * t.bytes, t.data, t.bytes);
        fix_remove(f, name);
    }
    const uint64_t shape[2] = {3 * first.shape[0], first.shape[1]};
    snprintf(name, sizeof name, "transformer.resblocks.%u.attn.in_proj_%s", block, kind);
    fix_add(f, name, first.n_dims, shape, data);
}

static inline void clip_transpose(fixture *f, const char *from, const char *to)
{
    const ry_tensor t = *fix_find(f, from);
    const uint64_t shape[2] = {t.shape[1], t.shape[0]};
    float *data = malloc(t.bytes);
    for (size_t i = 0; i < t.shape[0]; i++)
        for (size_t j = 0; j < t.shape[1]; j++)
            data[j * t.shape[0] + i] = ((const float *)t.data)[i * t.shape[1] + j];
    fix_remove(f, from);
    fix_add(f, to, 2, shape, data);
}

static inline void clip_to_openai(fixture *f)
{
    static const char *const words[][2] = {
        {"text_model.embeddings.token_embedding.", "token_embedding."},
        {"text_model.embeddings.position_embedding.weight", "positional_embedding"},
        {"text_model.final_layer_norm.", "ln_final."},
        {"vision_model.embeddings.", "visual."},
        {"layer_norm1.", "ln_1."},
        {"layer_norm2.", "ln_2."},
        {"self_attn.out_proj.", "attn.out_proj."},
        {"mlp.fc1.", "mlp.c_fc."},
        {"mlp.fc2.", "mlp.c_proj."},
    };
    for (unsigned i = 0; i < CLIP_BLOCKS; i++) {
        clip_stack_qkv(f, i, "weight");
        clip_stack_qkv(f, i, "bias");
    }
    clip_transpose(f, "text_projection.weight", "text_projection");
    clip_transpose(f, "visual_projection.weight", "visual.proj");
    for (size_t i = 0; i < f->n; i++) {
        char old[96], layer[64] = "";
        unsigned block;
        int skip = 0;
        strcpy(old, f->names[i]);
        if (sscanf(old, "text_model.encoder.layers.%u.%n", &block, &skip) == 1)
            snprintf(layer, sizeof layer, "transformer.resblocks.%u.", block);
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            if (strncmp(old + skip, words[k][0], strlen(words[k][0])) == 0)
                snprintf(f->names[i], sizeof f->names[i], "%s%s%s", layer, words[k][1],
                         old + skip + strlen(words[k][0]));
    }
}

#endif
