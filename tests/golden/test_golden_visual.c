/* test_golden_visual.c - LLaVA's visual side against the reference: tower, scores, tokens kept and
 * merged. Reads ../shared; skips loudly without it. SPDX-License-Identifier: Apache-2.0 */
#include "renyi/lvlm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "golden_taps.h"

enum { PHOTOS = 3, PATCHES = 576, DIM = 64, SIDE = 336 };

typedef struct golden {
    renyi_visual *visual;
    ry_tensors *taps;
    const uint8_t *pixels;
} golden;

static int open_golden(golden *g, renyi_cpu level)
{
    renyi_error err = {0};
    const char *model = shared_path("models/llava_tiny_random");
    const char *taps = shared_path("golden/llava_tiny.safetensors");
    if (!model || !taps) return 0;
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level};
    if (renyi_visual_open(&g->visual, model, NULL, &opt, &err)) fail_msg("%s", err.message);
    if (ry_safetensors_open(&g->taps, taps, NULL, NULL, &err)) fail_msg("%s", err.message);
    g->pixels = golden_tap(g->taps, "images.pixels");
    return 1;
}

static void close_golden(golden *g)
{
    renyi_visual_free(g->visual);
    ry_tensors_free(g->taps);
}

static renyi_visual_session *open_session(const golden *g, const char *policy)
{
    const renyi_visual_session_options opt = {.struct_size = sizeof opt, .policy = policy};
    renyi_visual_session *s;
    renyi_error err = {0};
    if (renyi_visual_session_new(&s, g->visual, &opt, &err)) fail_msg("%s", err.message);
    return s;
}

static void run_pixels(renyi_visual_session *s, const golden *g, int photo,
                       renyi_visual_tokens *out)
{
    renyi_error err = {0};
    const size_t each = (size_t)SIDE * SIDE * 3;
    if (renyi_visual_run_pixels(s, g->pixels + (size_t)photo * each, out, &err))
        fail_msg("%s", err.message);
}

/* ---- the tower ----------------------------------------------------------------------------- */

static void check_features(renyi_cpu level)
{
    golden g;
    renyi_visual_tokens t;
    renyi_visual_info info;
    if (!open_golden(&g, level)) return;
    renyi_visual_get_info(g.visual, &info);
    assert_string_equal(info.layout, "transformers");
    assert_int_equal(info.n_blocks, 24);
    assert_int_equal(info.n_blocks_run, 23);
    assert_int_equal(info.lm_dim, 32);
    assert_int_equal(info.pad_to_square, 1);
    renyi_visual_session *s = open_session(&g, NULL);
    assert_int_equal(renyi_visual_session_tokens(s), PATCHES);
    run_pixels(s, &g, 0, &t);
    assert_int_equal(t.n, PATCHES);
    for (uint32_t i = 0; i < t.n; i++) assert_int_equal(t.kept[i], i);
    const double e = golden_row_error(t.features, golden_tap(g.taps, "features.0"), PATCHES, DIM);
    printf("%s: features within %.2g\n", renyi_cpu_name(level), e);
    assert_true(e < 2e-5);
    renyi_visual_session_free(s);
    close_golden(&g);
}

static void test_features(void **state)
{
    (void)state;
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        check_features((renyi_cpu)level);
}

/* A photo's file gives the pixels that the reference was given, and so the same bits. */
static void test_files(void **state)
{
    (void)state;
    golden g;
    renyi_error err = {0};
    const char *photo = shared_path("data/imagenet-val-500/006/ILSVRC2012_val_00001935.JPEG");
    if (!photo || !open_golden(&g, RENYI_CPU_AUTO)) return;
    renyi_visual_session *s = open_session(&g, NULL), *again = open_session(&g, NULL);
    renyi_visual_tokens a, b;
    run_pixels(s, &g, 0, &a);
    if (renyi_visual_run_file(again, photo, &b, &err)) fail_msg("%s", err.message);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.rows, b.rows, (size_t)a.n * a.lm_dim * sizeof(float));
    renyi_visual_session_free(s);
    renyi_visual_session_free(again);
    close_golden(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_files),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
