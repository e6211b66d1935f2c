/* vit_fixture.h - a small random ViT as a list of tensors that a test may rename, cut, damage and
 * write to a file. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_VIT_FIXTURE_H
#define RENYI_TESTS_VIT_FIXTURE_H

#include "formats/safetensors.h"
#include "renyi/renyi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FIX_MAX = 192, FIX_DIM = 32, FIX_BLOCKS = 2, FIX_HEADS = 4, FIX_MLP = 48, FIX_CLASSES = 5 };

typedef struct fixture {
    char names[FIX_MAX][96];
    ry_tensor t[FIX_MAX]; /* data from malloc */
    size_t n;
    const char *meta[8]; /* key, value, ..., NULL */
} fixture;

static inline const char *fix_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/fixture_%ld_%s", RENYI_BINARY_DIR, (long)getpid(), name);
    return path;
}

#define assert_ok(expr)                                                  \
    do {                                                                 \
        renyi_error e_ = {0};                                            \
        renyi_error *const err = &e_;                                    \
        if ((expr) != RENYI_OK) fail_msg("%s: %s", #expr, err->message); \
    } while (0)

/* A whole row of words in one message. */
static inline void assert_says(const renyi_error *e, const char *word)
{
    if (!strstr(e->message, word)) fail_msg("\"%s\" is not in: %s", word, e->message);
    assert_true(strlen(e->message) < sizeof e->message);
    assert_null(strchr(e->message, '\n'));
}

static inline ry_tensor *fix_find(fixture *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->names[i], name) == 0) return &f->t[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Takes over `data`. */
static inline void fix_add(fixture *f, const char *name, uint32_t n_dims, const uint64_t *shape,
                           void *data)
{
    const size_t i = f->n++;
    assert_true(i < FIX_MAX);
    snprintf(f->names[i], sizeof f->names[i], "%s", name);
    f->t[i] = (ry_tensor){.name = f->names[i], .dtype = RY_F32, .n_dims = n_dims, .data = data};
    memcpy(f->t[i].shape, shape, n_dims * sizeof *shape);
    f->t[i].bytes = 4 * ry_tensor_elements(&f->t[i]);
}

static inline void fix_add_zeros(fixture *f, const char *name, uint64_t elements)
{
    fix_add(f, name, 1, &elements, calloc(elements, 4));
}

static inline void fix_remove(fixture *f, const char *name)
{
    const size_t i = (size_t)(fix_find(f, name) - f->t), last = --f->n;
    free((void *)(uintptr_t)f->t[i].data);
    f->t[i] = f->t[last];
    memcpy(f->names[i], f->names[last], sizeof f->names[i]);
    f->t[i].name = f->names[i];
}

static inline void fix_rename(fixture *f, const char *from, const char *to)
{
    snprintf(f->names[fix_find(f, from) - f->t], sizeof f->names[0], "%s", to);
}

static inline void fix_free(fixture *f)
{
    for (size_t i = 0; i < f->n; i++) free((void *)(uintptr_t)f->t[i].data);
    f->n = 0;
}

/* A timm model; `architecture` gives patch, input and whether it is distilled. */
static inline void fix_make_deep(fixture *f, const char *architecture, uint32_t n_blocks)
{
    const char *path = fix_path("made.safetensors");
    const renyi_init_options opt = {.struct_size = sizeof opt,
                                    .seed = 3,
                                    .n_classes = FIX_CLASSES,
                                    .dim = FIX_DIM,
                                    .n_blocks = n_blocks,
                                    .n_heads = FIX_HEADS,
                                    .mlp_dim = FIX_MLP};
    ry_tensors *set = NULL;
    memset(f, 0, sizeof *f);
    assert_ok(renyi_model_init_file(path, architecture, &opt, err));
    assert_ok(ry_safetensors_open(&set, path, NULL, NULL, err));
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        float *data = malloc(t->bytes);
        memcpy(data, t->data, t->bytes);
        fix_add(f, t->name, t->n_dims, t->shape, data);
        /* far enough from zero for a slip anywhere to move the logits */
        for (size_t k = 0; k < t->bytes / 4; k++) data[k] *= 5.0f;
    }
    ry_tensors_free(set);
    unlink(path);
    f->meta[0] = "num_heads";
    f->meta[1] = "4";
}

static inline void fix_make(fixture *f, const char *architecture)
{
    fix_make_deep(f, architecture, FIX_BLOCKS);
}

static inline const char *fix_write(const fixture *f, const char *name)
{
    const char *path = fix_path(name);
    const ry_safetensors_content content = {f->t, f->n, f->meta[0] ? f->meta : NULL, NULL, NULL};
    assert_ok(ry_safetensors_write(path, &content, NULL, err));
    return path;
}

/* `open`, a call with &it, path and err, refuses the fixture as a file: it gives nothing, and its
 * message says `word` and names the file. */
#define assert_refused(f, type, open, code, word)                 \
    do {                                                          \
        renyi_error e_ = {0};                                     \
        renyi_error *const err = &e_;                             \
        const char *const path = fix_write(f, "bad.safetensors"); \
        type *it = (type *)&it; /* open must clear it */          \
        assert_int_equal(open, code);                             \
        assert_null(it);                                          \
        assert_says(err, word);                                   \
        assert_says(err, path);                                   \
        unlink(path);                                             \
    } while (0)

/* ---- the same weights under Hugging Face's names ------------------------------------------- */

/* Tensor i, a packed qkv of `layer`, becomes three; `kind` is "weight" or "bias". */
static inline void fix_split_qkv(fixture *f, size_t i, const char *layer, const char *kind)
{
    static const char *const parts[] = {"query", "key", "value"};
    const ry_tensor whole = f->t[i];
    const size_t third = whole.bytes / 3;
    char old[96];
    strcpy(old, f->names[i]);
    for (size_t k = 0; k < 3; k++) {
        char name[192];
        const uint64_t shape[2] = {whole.shape[0] / 3, whole.shape[1]};
        void *data = malloc(third);
        memcpy(data, (const char *)whole.data + k * third, third);
        snprintf(name, sizeof name, "%sattention.attention.%s.%s", layer, parts[k], kind);
        fix_add(f, name, whole.n_dims, shape, data);
    }
    fix_remove(f, old);
}

/* Hugging Face's spelling of `tail`, a name without "blocks.N.", into out. */
static inline void fix_hf_name(char out[96], const char *layer, const char *tail, int distilled)
{
    static const char *const words[][2] = {
        {"cls_token", "embeddings.cls_token"},
        {"dist_token", "embeddings.distillation_token"},
        {"pos_embed", "embeddings.position_embeddings"},
        {"patch_embed.proj.", "embeddings.patch_embeddings.projection."},
        {"norm.", "layernorm."},
        {"norm1.", "layernorm_before."},
        {"norm2.", "layernorm_after."},
        {"attn.proj.", "attention.output.dense."},
        {"mlp.fc1.", "intermediate.dense."},
        {"mlp.fc2.", "output.dense."},
    };
    if (strncmp(tail, "head_dist.", 10) == 0)
        snprintf(out, 96, "distillation_classifier.%s", tail + 10);
    if (strncmp(tail, "head.", 5) == 0)
        snprintf(out, 96, "%sclassifier.%s", distilled ? "cls_" : "", tail + 5);
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
        if (strncmp(tail, words[k][0], strlen(words[k][0])) == 0)
            snprintf(out, 96, "%s%s%s", layer, words[k][1], tail + strlen(words[k][0]));
}

/* `prefix` is "vit." or "deit.". */
static inline void fix_to_hf(fixture *f, const char *prefix)
{
    int distilled = 0;
    for (size_t i = 0; i < f->n; i++) distilled |= strcmp(f->names[i], "dist_token") == 0;
    for (size_t i = f->n; i-- > 0;) {
        char old[96], layer[64];
        unsigned block;
        int skip = 0;
        strcpy(old, f->names[i]);
        snprintf(layer, sizeof layer, "%s", prefix);
        if (sscanf(old, "blocks.%u.%n", &block, &skip) == 1)
            snprintf(layer, sizeof layer, "%sencoder.layer.%u.", prefix, block);
        if (strncmp(old + skip, "attn.qkv.", 9) == 0)
            fix_split_qkv(f, i, layer, old + skip + 9);
        else
            fix_hf_name(f->names[i], layer, old + skip, distilled);
    }
}

#endif
