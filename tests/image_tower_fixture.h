/* image_tower_fixture.h - the image tower of a small random CLIP, under Hugging Face's names or
 * OpenAI's. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_IMAGE_TOWER_FIXTURE_H
#define RENYI_TESTS_IMAGE_TOWER_FIXTURE_H

#include "vit_fixture.h"

enum { CLIP_SIDE = 64, CLIP_TOKENS = 17, CLIP_VALUES = 3 * CLIP_SIDE * CLIP_SIDE };

/* A whole CLIP, FIX_DIM wide, as renyi init writes it. */
static inline const char *clip_init(const char *name)
{
    const char *path = fix_path(name);
    const renyi_init_options opt = {.struct_size = sizeof opt,
                                    .seed = 3,
                                    .dim = FIX_DIM,
                                    .n_blocks = FIX_BLOCKS,
                                    .n_heads = FIX_HEADS,
                                    .mlp_dim = FIX_MLP};
    assert_ok(renyi_model_init_file(path, "clip_vit_tiny_patch16_64", &opt, err));
    return path;
}

/* Its image tower, with weights far enough from zero for a slip anywhere to move the embedding. */
static inline void clip_make(fixture *f)
{
    const char *path = clip_init("made_clip.safetensors");
    ry_tensors *set = NULL;
    memset(f, 0, sizeof *f);
    assert_ok(ry_safetensors_open(&set, path, NULL, NULL, err));
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        if (strncmp(t->name, "text_", 5) == 0) continue;
        float *data = malloc(t->bytes);
        memcpy(data, t->data, t->bytes);
        fix_add(f, t->name, t->n_dims, t->shape, data);
        for (size_t k = 0; k < t->bytes / 4; k++) data[k] *= 5.0f;
    }
    ry_tensors_free(set);
    unlink(path);
    f->meta[0] = "num_heads";
    f->meta[1] = "4";
}

/* q, k and v of a block below each other. */
static inline void clip_stack(fixture *f, unsigned block, const char *kind)
{
    char names[3][96], name[96];
    const ry_tensor *part[3];
    for (int k = 0; k < 3; k++) {
        snprintf(names[k], sizeof names[k], "vision_model.encoder.layers.%u.self_attn.%c_proj.%s",
                 block, "qkv"[k], kind);
        part[k] = fix_find(f, names[k]);
    }
    const uint64_t shape[2] = {3 * part[0]->shape[0], part[0]->shape[1]};
    const size_t bytes = part[0]->bytes;
    const uint32_t n_dims = part[0]->n_dims;
    char *data = malloc(3 * bytes);
    for (int k = 0; k < 3; k++) memcpy(data + k * bytes, part[k]->data, bytes);
    for (int k = 0; k < 3; k++) fix_remove(f, names[k]);
    snprintf(name, sizeof name, "visual.transformer.resblocks.%u.attn.in_proj_%s", block, kind);
    fix_add(f, name, n_dims, shape, data);
}

/* OpenAI stores the projection for x times it. */
static inline void clip_transpose(fixture *f, const char *name)
{
    ry_tensor *t = fix_find(f, name);
    const size_t rows = (size_t)t->shape[0], columns = (size_t)t->shape[1];
    float *data = malloc(t->bytes);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            data[j * rows + i] = ((const float *)t->data)[i * columns + j];
    free((void *)(uintptr_t)t->data);
    t->data = data;
    t->shape[0] = columns;
    t->shape[1] = rows;
}

static inline void clip_to_openai(fixture *f)
{
    static const char *const outside[][2] = {
        {"vision_model.embeddings.class_embedding", "visual.class_embedding"},
        {"vision_model.embeddings.patch_embedding.weight", "visual.conv1.weight"},
        {"vision_model.embeddings.position_embedding.weight", "visual.positional_embedding"},
        {"vision_model.pre_layrnorm.weight", "visual.ln_pre.weight"},
        {"vision_model.pre_layrnorm.bias", "visual.ln_pre.bias"},
        {"vision_model.post_layernorm.weight", "visual.ln_post.weight"},
        {"vision_model.post_layernorm.bias", "visual.ln_post.bias"},
        {"visual_projection.weight", "visual.proj"},
    };
    static const char *const inside[][2] = {{"layer_norm1", "ln_1"},
                                            {"layer_norm2", "ln_2"},
                                            {"self_attn.out_proj", "attn.out_proj"},
                                            {"mlp.fc1", "mlp.c_fc"},
                                            {"mlp.fc2", "mlp.c_proj"}};
    static const char *const kinds[] = {"weight", "bias"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        fix_rename(f, outside[i][0], outside[i][1]);
    clip_transpose(f, "visual.proj");
    for (unsigned b = 0; b < FIX_BLOCKS; b++)
        for (int k = 0; k < 2; k++) {
            clip_stack(f, b, kinds[k]);
            for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
                char from[96], to[96];
                snprintf(from, sizeof from, "vision_model.encoder.layers.%u.%s.%s", b, inside[i][0],
                         kinds[k]);
                snprintf(to, sizeof to, "visual.transformer.resblocks.%u.%s.%s", b, inside[i][1],
                         kinds[k]);
                fix_rename(f, from, to);
            }
        }
}

/* n pictures of noise. */
static inline float *clip_pictures(size_t n)
{
    static float chw[4 * CLIP_VALUES];
    uint32_t state = 7;
    assert_true(n <= 4);
    for (size_t i = 0; i < n * CLIP_VALUES; i++) {
        state = state * 1664525u + 1013904223u;
        chw[i] = (float)(state >> 8) * 0x1p-22f - 2.0f;
    }
    return chw;
}

/* out: [n, outputs of the session] */
static inline void clip_run(const renyi_model *m, const char *policy, renyi_output output,
                            uint32_t n, float *out)
{
    renyi_session *s = NULL;
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = n,
                                       .n_threads = 2,
                                       .policy = policy,
                                       .output = output};
    assert_ok(renyi_session_new(&s, m, &opt, err));
    assert_ok(renyi_run_tensor(s, clip_pictures(n), n, out, err));
    renyi_session_free(s);
}

#endif
