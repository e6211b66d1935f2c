/* lvlm_fixture.h - a small random LLaVA in a folder: tower, projector, language model, tokenizer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_LVLM_FIXTURE_H
#define RENYI_TESTS_LVLM_FIXTURE_H

#include "image_tower_fixture.h"
#include "llama_fixture.h"
#include "renyi/lvlm.h"

#include <sys/stat.h>

enum { TOY_PATCHES = CLIP_TOKENS - 1, TOY_PIECES = 59, TOY_IMAGE = LLAMA_VOCAB - 1 };

#define TOY_CONFIG                                                                               \
    "{\"model_type\": \"llava\", \"image_token_index\": 60, \"text_config\": {\"model_type\": "  \
    "\"llama\", " LLAMA_NUMBERS "}, \"vision_config\": {\"model_type\": \"clip_vision_model\", " \
    "\"hidden_size\": 32, \"num_attention_heads\": 4, \"num_hidden_layers\": 2, "                \
    "\"intermediate_size\": 48, \"image_size\": 64, \"patch_size\": 16, \"hidden_act\": "        \
    "\"quick_gelu\"}}"

/* In llava-hf's names. */
static inline void toy_tensors(fixture *f)
{
    static fixture tower;
    ry_rng rng = ry_rng_new(11);
    llama_make(f);
    llama_rename(f, "language_model.model.", "language_model.", "ignored");
    fix_remove(f, "ignored");
    clip_make(&tower);
    for (size_t i = 0; i < tower.n; i++) {
        char name[96];
        const ry_tensor *t = &tower.t[i];
        if (strncmp(t->name, "vision_model.", 13) != 0) {
            free((void *)(uintptr_t)t->data);
            continue;
        }
        snprintf(name, sizeof name, "vision_tower.%.80s", t->name);
        fix_add(f, name, t->n_dims, t->shape, (void *)(uintptr_t)t->data);
    }
    llama_add(f, &rng, "multi_modal_projector.linear_1.weight", 40, FIX_DIM);
    llama_add(f, &rng, "multi_modal_projector.linear_1.bias", 0, 40);
    llama_add(f, &rng, "multi_modal_projector.linear_2.weight", LLAMA_DIM, 40);
    llama_add(f, &rng, "multi_modal_projector.linear_2.bias", 0, LLAMA_DIM);
    f->meta[0] = NULL;
}

static inline void toy_put(const char *folder, const char *name, const char *text)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* n pieces: unknown, begin, end, then a character each, the blank first; no bytes. */
static inline void toy_put_pieces(const char *folder, int n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123:?.";
    char text[8192];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\u2581\", "
        "\"prepend_scheme\": \"first\", \"split\": false}, \"added_tokens\": [{\"id\": 1, "
        "\"content\": \"<s>\", \"special\": true}, {\"id\": 2, \"content\": \"</s>\", "
        "\"special\": true}], \"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", "
        "\"vocab\": {\"<unk>\": 0, \"<s>\": 1, \"</s>\": 2, \"\u2581\": 3");
    for (int i = 4; i < n; i++) /* behind the letters, pairs of them */
        at += (size_t)snprintf(text + at, sizeof text - at, ", \"%.*s%c\": %d", (i - 4) / 58, "#",
                               letters[(i - 4) % 58], i);
    snprintf(text + at, sizeof text - at, "}, \"merges\": []}}");
    toy_put(folder, "tokenizer.json", text);
}

/* The folder; n_pieces 0 = without a tokenizer. */
static inline const char *toy_write(const fixture *f, const char *name, int n_pieces)
{
    const char *folder = fix_path(name);
    char path[700];
    const ry_safetensors_content content = {f->t, f->n, NULL, NULL, NULL};
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(ry_safetensors_write(path, &content, NULL, err));
    toy_put(folder, "config.json", TOY_CONFIG);
    if (n_pieces) toy_put_pieces(folder, n_pieces);
    return folder;
}

static inline void toy_remove(const char *folder)
{
    static const char *const names[] = {"model.safetensors", "config.json", "tokenizer.json"};
    char path[700];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* A picture that is no square. */
static inline renyi_image toy_photo(int seed)
{
    static uint8_t rgb[2][3 * 80 * 50];
    ry_rng rng = ry_rng_new((uint64_t)seed);
    for (size_t i = 0; i < sizeof rgb[0]; i++) rgb[seed & 1][i] = (uint8_t)ry_rng_next(&rng);
    return (renyi_image){.rgb = rgb[seed & 1], .width = 80, .height = 50};
}

#endif
