/* next_fixture.h - the small LLaVA-NeXT of tests/llava_next in the names of each layout, its
 * images, and what the reference makes of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_LLAVA_NEXT_FIXTURE_H
#define RENYI_TESTS_LLAVA_NEXT_FIXTURE_H

#include "fixtures/vit_fixture.h"
#include "formats/safetensors.h"
#include "image/tile_grid.h"

#include <sys/stat.h>

#define NEXT_FOLDER RENYI_SOURCE_DIR "/tests/llava_next/"
enum { NEXT_SIDE = 28, NEXT_PATCH = 7, NEXT_VOCAB = 96 };

/* ---- the model ----------------------------------------------------------------------------- */

typedef enum next_layout {
    NEXT_HF,   /* as transformers 5 writes it */
    NEXT_HF_4, /* as llava-hf's files are: vision_tower.vision_model */
    NEXT_HF_5, /* everything under model. */
    NEXT_OWN   /* LLaVA's own, with its own rules */
} next_layout;

static inline const char *next_layout_name(next_layout l)
{
    static const char *const names[] = {"transformers 5", "llava-hf", "transformers 4.52", "llava"};
    return names[l];
}

/* Prefixes in NEXT_HF and in the other layouts. */
static const char *const next_names[][4] = {
    {"vision_tower.", "vision_tower.vision_model.", "model.vision_tower.vision_model.",
     "model.vision_tower.vision_tower.vision_model."},
    {"multi_modal_projector.linear_1.", "multi_modal_projector.linear_1.",
     "model.multi_modal_projector.linear_1.", "model.mm_projector.0."},
    {"multi_modal_projector.linear_2.", "multi_modal_projector.linear_2.",
     "model.multi_modal_projector.linear_2.", "model.mm_projector.2."},
    {"language_model.lm_head.", "language_model.lm_head.", "lm_head.", "lm_head."},
    {"language_model.model.", "language_model.model.", "model.language_model.", "model."},
    {"image_newline", "image_newline", "model.image_newline", "model.image_newline"},
};

#define NEXT_OWN_CONFIG                                                                           \
    "{\"model_type\": \"llava\", \"image_aspect_ratio\": \"anyres\", \"mm_patch_merge_type\": "   \
    "\"spatial_unpad\", \"image_grid_pinpoints\": [[28, 56], [56, 28], [56, 56], [84, 28], [28, " \
    "84]], \"mm_projector_type\": \"mlp2x_gelu\", \"mm_vision_select_layer\": -2, "               \
    "\"mm_vision_select_feature\": \"patch\", \"hidden_size\": 32, \"intermediate_size\": 48, "   \
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"num_hidden_layers\": 2, "          \
    "\"vocab_size\": 96, \"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-5, "              \
    "\"rope_theta\": 10000.0, \"bos_token_id\": 1, \"eos_token_id\": 2}"

/* The whole text of a file of tests/llava_next, to be freed. */
static inline char *next_text(const char *name)
{
    char path[600], *text = calloc(1, 1 << 14);
    snprintf(path, sizeof path, NEXT_FOLDER "%s", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 14) - 1, f) > 0);
    fclose(f);
    return text;
}

static inline void next_put(const char *folder, const char *name, const char *text)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* All tensors; data from malloc. */
static inline void next_tensors(fixture *f, next_layout layout)
{
    ry_tensors *set;
    *f = (fixture){0};
    assert_ok(ry_safetensors_open(&set, NEXT_FOLDER "model.safetensors", NULL, NULL, err));
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        char name[200];
        void *data = malloc(t->bytes);
        assert_non_null(data);
        memcpy(data, t->data, t->bytes);
        snprintf(name, sizeof name, "%s", t->name);
        for (size_t k = 0; k < sizeof next_names / sizeof *next_names; k++) {
            const size_t n = strlen(next_names[k][0]);
            if (strncmp(t->name, next_names[k][0], n) != 0) continue;
            snprintf(name, sizeof name, "%s%s", next_names[k][layout], t->name + n);
            break;
        }
        fix_add(f, name, t->n_dims, t->shape, data);
        f->t[f->n - 1].dtype = t->dtype;
        f->t[f->n - 1].bytes = t->bytes;
    }
    ry_tensors_free(set);
}

/* Writes tensors (NULL = all) and config.json (NULL = the layout's); returns the folder. */
static inline const char *next_write(next_layout layout, const fixture *given, const char *config)
{
    const char *folder = fix_path("llava_next");
    fixture *f = calloc(1, sizeof *f);
    char path[700], *text;
    assert_non_null(f);
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (!given) next_tensors(f, layout);
    const fixture *all = given ? given : f;
    const ry_safetensors_content content = {all->t, all->n, NULL, NULL, NULL};
    assert_ok(ry_safetensors_write(path, &content, NULL, err));
    fix_free(f);
    free(f);
    if (layout != NEXT_OWN) {
        text = next_text("preprocessor_config.json");
        next_put(folder, "preprocessor_config.json", text);
        free(text);
    }
    text = layout == NEXT_OWN ? strdup(NEXT_OWN_CONFIG) : next_text("config.json");
    next_put(folder, "config.json", config ? config : text);
    free(text);
    return folder;
}

static inline void next_remove(const char *folder)
{
    static const char *const names[] = {"model.safetensors", "config.json",
                                        "preprocessor_config.json"};
    char path[700];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* ---- images and expected numbers ----------------------------------------------------------- */

static inline ry_tensors *next_expected(void)
{
    ry_tensors *set;
    assert_ok(ry_safetensors_open(&set, NEXT_FOLDER "expected.safetensors", NULL, NULL, err));
    return set;
}

static inline uint32_t next_count(const ry_tensors *set)
{
    return (uint32_t)ry_tensors_find(set, "sizes")->shape[0];
}

/* Image i by the formula of the reference; valid until the next call. */
static inline renyi_image next_picture(const ry_tensors *set, uint32_t i)
{
    static uint8_t rgb[3 * 16384];
    const int32_t *size = (const int32_t *)ry_tensors_find(set, "sizes")->data + 2 * i;
    const uint32_t w = (uint32_t)size[0], h = (uint32_t)size[1];
    assert_true((size_t)w * h * 3 <= sizeof rgb);
    for (uint32_t y = 0, at = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            for (uint32_t c = 0; c < 3; c++, at++) {
                const uint32_t noise =
                    x * 73856093u ^ y * 19349663u ^ c * 83492791u ^ (i + 1) * 2654435761u;
                rgb[at] = (uint8_t)(x * (3 + c) + y * (5 - c) + (x * y >> 3) + (noise >> 13 & 63));
            }
    return (renyi_image){.rgb = rgb, .width = w, .height = h};
}

/* What the reference makes of an image: in LLaVA's own rules, if they differ. */
typedef struct next_case {
    const ry_tensors *set;
    uint32_t image;
    const char *rules;
} next_case;

static inline const ry_tensor *next_find(const next_case *c, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%u.%s", c->rules, c->image, what);
    const ry_tensor *t = ry_tensors_find(c->set, name);
    if (!t) fail_msg("no %s", name);
    return t;
}

static inline next_case next_case_of(const ry_tensors *set, uint32_t i, int own)
{
    char name[64];
    snprintf(name, sizeof name, "own.%u.rows", i);
    return (next_case){set, i, own && ry_tensors_find(set, name) ? "own" : "hf"};
}

#endif
