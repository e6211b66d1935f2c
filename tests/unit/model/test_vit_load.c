/* test_vit_load.c - loading a ViT: prefix and positions, number formats, NaN, progress.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"
#include "fixtures/vit_fixture.h"
#include "model/vit/vit.h"

#include <math.h>

/* Loads a fixture; on success the caller owns *v. */
static renyi_status load(ry_vit *v, const fixture *f, const renyi_options *opt, renyi_error *err)
{
    ry_checkpoint ckpt = {0};
    ry_vit_config c;
    renyi_cpu level;
    const char *path = fix_write(f, "load.safetensors");
    ckpt.tensors_path = (char *)(uintptr_t)path;
    assert_ok(ry_cpu_choose(RENYI_CPU_AUTO, &level, err));
    assert_ok(ry_safetensors_open(&ckpt.tensors, path, NULL, NULL, err));
    assert_ok(ry_vit_configure(&c, &ckpt, 0, err));
    const renyi_status st = ry_vit_load(v, &c, &ckpt, opt, level, RENYI_DTYPE_F32, err);
    ry_tensors_free(ckpt.tensors);
    unlink(path);
    return st;
}

static const float *data_of(fixture *f, const char *name) { return fix_find(f, name)->data; }

static void prefix_and_positions(void **state)
{
    (void)state;
    const renyi_options opt = {.struct_size = sizeof opt};
    fixture f;
    ry_vit v;
    uint64_t params = 0;
    fix_make(&f, "deit_tiny_distilled_patch8_32");
    assert_ok(load(&v, &f, &opt, err));
    const float *cls = data_of(&f, "cls_token"), *dist = data_of(&f, "dist_token");
    const float *pos = data_of(&f, "pos_embed");
    for (int k = 0; k < FIX_DIM; k++) {
        assert_true(v.prefix[k] == cls[k] + pos[k]);
        assert_true(v.prefix[FIX_DIM + k] == dist[k] + pos[FIX_DIM + k]);
    }
    assert_int_equal(v.n_patches, 16);
    assert_memory_equal(v.pos, pos + 2 * FIX_DIM, 16 * FIX_DIM * sizeof *pos);
    assert_memory_equal(v.norm_w, data_of(&f, "norm.weight"), FIX_DIM * sizeof *pos);
    assert_memory_equal(v.blocks[1].norm2_b, data_of(&f, "blocks.1.norm2.bias"), FIX_DIM * 4);
    assert_int_equal(ry_linear_out(v.blocks[0].qkv), 3 * FIX_DIM);
    assert_int_equal(ry_linear_in(v.patch_embed), 3 * 8 * 8);
    assert_non_null(v.head);
    assert_non_null(v.head_dist);
    for (size_t i = 0; i < f.n; i++) params += ry_tensor_elements(&f.t[i]);
    assert_int_equal(v.n_params, params);
    ry_vit_free(&v, NULL);
    fix_free(&f);
}

static void bad_numbers_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t index;
        float value;
        const char *messages[2];
    } rows[] = {
        {"blocks.1.attn.qkv.weight",
         77,
         NAN,
         {"'blocks.1.attn.qkv.weight' holds NaN", "element 77 "}},
        {"head.bias", 0, INFINITY, {"'head.bias' holds infinity", "element 0 "}},
        {"patch_embed.proj.weight", 6143, -INFINITY, {"patch_embed.proj.weight", "element 6143 "}},
        {"pos_embed", 5, NAN, {"'pos_embed' holds NaN", "element 5 "}},
    };
    const renyi_options opt = {.struct_size = sizeof opt};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        ry_vit v;
        renyi_error e = {0};
        fix_make(&f, "vit_tiny_patch8_32");
        ((float *)(uintptr_t)data_of(&f, rows[i].name))[rows[i].index] = rows[i].value;
        assert_int_equal(load(&v, &f, &opt, &e), RENYI_ERR_FORMAT);
        assert_says(&e, rows[i].messages[0]);
        assert_says(&e, rows[i].messages[1]);
        assert_null(v.blocks); /* nothing is left behind */
        fix_free(&f);
    }
}

/* Values that bf16 holds exactly come back exactly. */
static void bf16(void **state)
{
    (void)state;
    const renyi_options opt = {.struct_size = sizeof opt};
    fixture f;
    ry_vit v;
    fix_make(&f, "vit_tiny_patch8_32");
    ry_tensor *t = fix_find(&f, "norm.bias");
    uint16_t *half = malloc(FIX_DIM * sizeof *half);
    for (int i = 0; i < FIX_DIM; i++) half[i] = (uint16_t)(0x3f80 + i); /* 1 + i / 128 */
    free((void *)(uintptr_t)t->data);
    t->data = half;
    t->dtype = RY_BF16;
    t->bytes = FIX_DIM * 2;
    assert_ok(load(&v, &f, &opt, err));
    for (int i = 0; i < FIX_DIM; i++) assert_true(v.norm_b[i] == 1.0f + (float)i / 128.0f);
    ry_vit_free(&v, NULL);
    fix_free(&f);
}

typedef struct watch {
    uint64_t calls, last, total, stop_at;
} watch;

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    watch *w = user;
    w->calls++;
    assert_int_equal(done, w->last + 1);
    w->last = done;
    w->total = total;
    return done == w->stop_at;
}

static void progress_and_stop(void **state)
{
    (void)state;
    fixture f;
    ry_vit v;
    watch w = {0};
    renyi_error e = {0};
    const renyi_options opt = {
        .struct_size = sizeof opt, .progress = on_progress, .progress_user = &w};
    fix_make(&f, "vit_tiny_patch8_32");
    assert_ok(load(&v, &f, &opt, err));
    assert_int_equal(w.calls, f.n);
    assert_int_equal(w.total, f.n);
    ry_vit_free(&v, NULL);
    w = (watch){.stop_at = 9};
    assert_int_equal(load(&v, &f, &opt, &e), RENYI_ERR_ABORTED);
    assert_int_equal(w.calls, 9);
    assert_says(&e, "after 9 of ");
    fix_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefix_and_positions),
        cmocka_unit_test(bad_numbers_are_named),
        cmocka_unit_test(bf16),
        cmocka_unit_test(progress_and_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
