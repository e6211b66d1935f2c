/* test_tower_faults.c - damaged towers of SigLIP and OpenCLIP: every fault has a message that names
 * the tensor or the key. The towers are those of tests/vit_families.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "model/vit/vit.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define FOLDER RENYI_SOURCE_DIR "/tests/vit_families/"

/* ---- a copy of a checkpoint with one change ------------------------------------------------- */

typedef struct change {
    const char *without;            /* tensors whose names contain this are left out; NULL = none */
    const char *bent;               /* the tensor that gets the shape [2, n / 2] */
    const char *config, *open_clip; /* other configs; NULL = those of the folder */
} change;

static renyi_status fill(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                         renyi_error *err)
{
    (void)user;
    (void)err;
    memcpy(out, (const char *)t->data + at, n);
    return RENYI_OK;
}

/* Writes the tensors of `from` with the change to `path`. */
static void write_changed(const char *path, const ry_checkpoint *from, const change *c)
{
    const size_t n = ry_tensors_count(from->tensors);
    ry_tensor *list = calloc(n, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const ry_tensor *t = ry_tensors_at(from->tensors, i);
        if (c->without && strstr(t->name, c->without)) continue;
        list[count] = *t;
        if (c->bent && strcmp(t->name, c->bent) == 0) {
            list[count].n_dims = 2;
            list[count].shape[0] = 2;
            list[count].shape[1] = ry_tensor_elements(t) / 2;
        }
        count++;
    }
    const ry_safetensors_content content = {list, count, NULL, fill, NULL};
    renyi_error err;
    assert_int_equal(ry_safetensors_write(path, &content, NULL, &err), RENYI_OK);
    free(list);
}

/* The configuration of a changed tower must fail with both texts in the message. */
static void refuse(const char *family, change c, renyi_status want, const char *says,
                   const char *also)
{
    char path[] = "/tmp/renyi_tower_XXXXXX.safetensors";
    ry_checkpoint from, ckpt;
    ry_vit_config config;
    renyi_error err = {0};
    char folder[512];
    snprintf(folder, sizeof folder, FOLDER "%s", family);
    assert_int_equal(ry_checkpoint_open(&from, folder, NULL, NULL, &err), RENYI_OK);
    assert_true(mkstemps(path, 12) >= 0);
    write_changed(path, &from, &c);
    assert_int_equal(ry_checkpoint_open(&ckpt, path, NULL, NULL, &err), RENYI_OK);
    ckpt.config = c.config ? json_loads(c.config, 0, NULL) : json_incref(from.config);
    ckpt.open_clip_config =
        c.open_clip ? json_loads(c.open_clip, 0, NULL) : json_incref(from.open_clip_config);
    const renyi_status st = ry_vit_configure(&config, &ckpt, 0, &err);
    if (st != want || !strstr(err.message, says) || !strstr(err.message, also))
        fail_msg("%s: %d '%s', not %d with '%s' and '%s'", family, (int)st, err.message, (int)want,
                 says, also);
    ry_checkpoint_close(&ckpt, NULL);
    ry_checkpoint_close(&from, NULL);
    remove(path);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void pooling_heads(void **state)
{
    (void)state;
    refuse("hf_siglip", (change){.without = "head.probe"}, RENYI_ERR_FORMAT,
           "missing vision_model.head.probe; take the whole, unchanged file", "a SigLIP");
    refuse("hf_siglip", (change){.bent = "vision_model.head.probe"}, RENYI_ERR_FORMAT,
           "vision_model.head.probe [2, 18] instead of [1, 1, 36]", "wrong shape");
    refuse("hf_siglip", (change){.without = "vision_model.head."}, RENYI_ERR_FORMAT,
           "vision_model.head.probe", "vision_use_head");
    refuse("hf_siglip",
           (change){.config = "{\"vision_config\": {\"num_attention_heads\": 2, "
                              "\"vision_use_head\": false}}"},
           RENYI_ERR_FORMAT, "vision_use_head is false", "head.probe is there");
    refuse("hf_siglip", (change){.bent = "vision_model.head.attention.in_proj_weight"},
           RENYI_ERR_FORMAT, "head.attention.in_proj_weight", "instead of [108, 36]");
    refuse("timm_siglip", (change){.without = "attn_pool.latent"}, RENYI_ERR_FORMAT,
           "missing attn_pool.latent", "timm");
    refuse("timm_siglip", (change){.bent = "attn_pool.kv.weight"}, RENYI_ERR_FORMAT,
           "attn_pool.kv.weight", "instead of [72, 36]");
    refuse("timm_siglip",
           (change){.config = "{\"global_pool\": \"avg\", \"model_args\": {\"num_heads\": 2}}"},
           RENYI_ERR_FORMAT, "global_pool is 'avg'", "attn_pool.latent");
    refuse("timm_siglip", (change){.without = "attn_pool."}, RENYI_ERR_FORMAT,
           "global_pool is 'map'", "missing");
    refuse("open_clip_siglip", (change){.without = "attn_pool.latent"}, RENYI_ERR_FORMAT,
           "missing visual.trunk.attn_pool.latent", "open_clip");
}

static void naflex(void **state)
{
    (void)state;
    refuse("hf_siglip", (change){.bent = "vision_model.embeddings.patch_embedding.weight"},
           RENYI_ERR_UNSUPPORTED, "SigLIP 2 NaFlex", "patch_embedding.weight");
}

/* vision_cfg of tests/vit_families/open_clip with one key changed. */
#define OPEN_CLIP(embed, vision) \
    "{\"model_cfg\": {\"embed_dim\": " embed ", \"vision_cfg\": {" vision "}}}"
#define SIZES "\"head_width\": 20, \"mlp_ratio\": 1.55, "

static void open_clip_configs(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says, *also;
    } rows[] = {
        {OPEN_CLIP("24", SIZES "\"width\": 768"), "width is 768", "the tensors have 40"},
        {OPEN_CLIP("24", SIZES "\"layers\": 12"), "layers is 12", "the tensors have 3"},
        {OPEN_CLIP("24", SIZES "\"patch_size\": 16"), "patch_size is 16", "the tensors have 4"},
        {OPEN_CLIP("24", SIZES "\"image_size\": 224"), "image_size is 224", "the tensors have 24"},
        {OPEN_CLIP("24", SIZES "\"image_size\": [24, 32]"), "image_size is a list", "[24, 24]"},
        {OPEN_CLIP("512", SIZES "\"width\": 40"), "embed_dim is 512", "the tensors have 24"},
        {OPEN_CLIP("24", "\"head_width\": 64"), "mlp_ratio 4 of the width 40", "62 of the tensors"},
        {OPEN_CLIP("24", "\"mlp_ratio\": 1.55, \"head_width\": 64"), "head_width 64",
         "another model?"},
        {OPEN_CLIP("24", "\"mlp_ratio\": 1.55, \"head_width\": 0"), "head_width 0", "width 40"},
        {OPEN_CLIP("24", SIZES "\"no_ln_pre\": true"), "no_ln_pre is true", "ln_pre.weight"},
        {OPEN_CLIP("24", SIZES "\"pool_type\": 3"), "pool_type", "open_clip_config.json"},
        {OPEN_CLIP("24", SIZES "\"norm_kwargs\": {\"eps\": 2}"), "eps is 2", "norm_kwargs"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse("open_clip", (change){.open_clip = rows[i].json}, RENYI_ERR_FORMAT, rows[i].says,
               rows[i].also);
    refuse("open_clip", (change){.open_clip = OPEN_CLIP("24", SIZES "\"pool_type\": \"none\"")},
           RENYI_ERR_UNSUPPORTED, "pool_type is 'none'", "tok and avg");
    refuse("open_clip",
           (change){.open_clip = OPEN_CLIP("24", SIZES "\"act_kwargs\": {\"approximate\": \"x\"}")},
           RENYI_ERR_UNSUPPORTED, "approximate is 'x'", "act_kwargs");
    refuse("open_clip", (change){.without = "ln_pre"}, RENYI_ERR_FORMAT, "no_ln_pre is false",
           "visual.ln_pre.weight is missing");
    refuse("open_clip",
           (change){.open_clip = "{\"model_cfg\": {\"embed_dim\": 24, \"vision_cfg\": "
                                 "{\"head_width\": 20, \"mlp_ratio\": 1.55}}, "
                                 "\"preprocess_cfg\": {\"resize_mode\": \"longest\"}}"},
           RENYI_ERR_UNSUPPORTED, "resize_mode is 'longest'", "shortest or squash");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pooling_heads), cmocka_unit_test(naflex),
                                       cmocka_unit_test(open_clip_configs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
