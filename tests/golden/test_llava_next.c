/* test_llava_next.c - a LLaVA-NeXT against transformers (tests/llava_next, written by
 * tools/ref/llava_next.py): pixels of base and tiles equal, rows and newlines in the same places,
 * rows within 1e-5, logits within 1e-3, greedy tokens equal; for wide, tall, square and very long
 * images, in the names of three versions of transformers, and in LLaVA's own layout and rules. With
 * budgets for each tile and for the image: the same patches and newlines, logits, tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "engine/llava/conversation.h"
#include "llava_next/next_fixture.h"

#include "fixtures/golden_taps.h"

enum { TOKENS = 8 };

static const renyi_cpu levels[] = {RENYI_CPU_SCALAR, RENYI_CPU_AVX2, RENYI_CPU_AVX512};

/* ---- comparing ----------------------------------------------------------------------------- */

static void check_pixels(const next_case *c, const ry_tile_grids *grids, const renyi_image *image)
{
    static uint8_t got[(1 + RY_MAX_TILES) * NEXT_SIDE * NEXT_SIDE * 3];
    const ry_resize_kernels *const kernels[] = {&ry_resize_scalar, ry_resize_best()};
    const ry_tensor *want = next_find(c, "squares");
    ry_tile_plan plan;
    assert_ok(ry_tile_place(&plan, grids, image->width, image->height, err));
    assert_int_equal(1 + plan.across * plan.down, want->shape[0]);
    for (int k = 0; k < 2; k++) {
        memset(got, 1, sizeof got);
        assert_ok(ry_tile_cut(got, image, &plan, NEXT_SIDE, RENYI_BICUBIC, kernels[k], NULL, err));
        assert_memory_equal(got, want->data, want->bytes);
    }
}

/* Newlines are where the reference has them, and all other rows have the patch that belongs there:
 * the base in raster order, then the part of the grid without border. */
static void check_places(const next_case *c, const renyi_visual_tokens *t)
{
    const ry_tensor *ends = next_find(c, "newline");
    const uint32_t G = NEXT_SIDE / NEXT_PATCH, P = G * G;
    uint32_t n = 0, lines = 0;
    while (n < P) assert_int_equal(t->kept[n], n), n++;
    assert_int_equal(ends->shape[0], t->tiles.n_lines);
    for (uint32_t y = t->tiles.first_line; lines < t->tiles.n_lines; y++, lines++) {
        for (uint32_t k = 0; k < t->tiles.n_columns; k++, n++) {
            const uint32_t x = t->tiles.first_column + k, tile = y / G * t->tiles.across + x / G;
            assert_int_equal(t->kept[n], (1 + tile) * P + y % G * G + x % G);
        }
        assert_int_equal(n, ((const int32_t *)ends->data)[lines]);
        assert_int_equal(t->kept[n], RENYI_NEWLINE);
        n++;
    }
    assert_int_equal(n, t->n);
    assert_int_equal(n, t->n_full);
}

static double check_rows(const next_case *c, const renyi_visual_tokens *t)
{
    const ry_tensor *want = next_find(c, "rows");
    assert_int_equal(t->n, want->shape[0]);
    assert_int_equal(t->lm_dim, want->shape[1]);
    return golden_row_error(t->rows, want->data, t->n, t->lm_dim);
}

/* The prompt; LLaVA's own config has no image token, so its place is LLaVA's -200. */
static size_t read_prompt(const ry_tensors *set, int32_t ids[32])
{
    const ry_tensor *t = ry_tensors_find(set, "prompt");
    assert_true(t->shape[0] <= 32);
    memcpy(ids, t->data, t->bytes);
    for (size_t i = 0; i < t->shape[0]; i++)
        if (ids[i] == NEXT_VOCAB - 1) ids[i] = RENYI_LVLM_IMAGE;
    return t->shape[0];
}

static double check_answer(const next_case *c, renyi_conversation *talk, const renyi_image *image,
                           uint32_t n_visual)
{
    int32_t prompt[32];
    static float logits[NEXT_VOCAB];
    const renyi_answer_options o = {
        .struct_size = sizeof o, .max_new_tokens = TOKENS, .ignore_eos = 1, .logits = logits};
    const size_t n_prompt = read_prompt(c->set, prompt);
    const float *want = next_find(c, "logits")->data;
    renyi_answer a;
    double worst = 0.0;
    assert_ok(renyi_conversation_show(talk, image, err));
    assert_ok(renyi_conversation_ask_ids(talk, prompt, n_prompt, &o, &a, err));
    for (size_t i = 0; i < NEXT_VOCAB; i++)
        worst = golden_worse(worst, fabs((double)logits[i] - (double)want[i]));
    assert_int_equal(a.n_ids, TOKENS);
    assert_memory_equal(a.ids, next_find(c, "tokens")->data, TOKENS * sizeof *a.ids);
    assert_int_equal(a.n_visual, n_visual);
    return worst;
}

/* ---- all images in a layout ---------------------------------------------------------------- */

static void check_layout(next_layout layout, renyi_cpu level, int threads)
{
    const renyi_lvlm_options opt = {.struct_size = sizeof opt, .cpu = level};
    const renyi_conversation_options talk_opt = {.struct_size = sizeof talk_opt,
                                                 .n_threads = (uint32_t)threads};
    const renyi_visual_session_options vision = {.struct_size = sizeof vision,
                                                 .n_threads = (uint32_t)threads};
    const char *folder = next_write(layout, NULL, NULL);
    ry_tensors *set = next_expected();
    renyi_lvlm *m;
    renyi_conversation *talk;
    renyi_visual_session *s;
    renyi_visual_tokens t;
    double rows = 0.0, logits = 0.0;
    assert_ok(renyi_lvlm_open(&m, folder, &opt, err));
    assert_ok(renyi_conversation_new(&talk, m, &talk_opt, err));
    assert_ok(renyi_visual_session_new(&s, renyi_lvlm_visual(m), &vision, err));
    for (uint32_t i = 0; i < next_count(set); i++) {
        const next_case c = next_case_of(set, i, layout == NEXT_OWN);
        const renyi_image image = next_picture(set, i);
        check_pixels(&c, &renyi_lvlm_visual(m)->side.config.tiles, &image);
        assert_ok(renyi_visual_run(s, &image, &t, err));
        assert_true(t.n <= renyi_visual_session_tokens(s));
        check_places(&c, &t);
        rows = golden_worse(rows, check_rows(&c, &t));
        logits = golden_worse(logits, check_answer(&c, talk, &image, t.n));
    }
    print_message("%s, %s: rows within %.1e, logits within %.1e\n", next_layout_name(layout),
                  renyi_cpu_name(level), rows, logits);
    assert_true(rows < 1e-5);
    assert_true(logits < 1e-3);
    renyi_visual_session_free(s);
    renyi_conversation_free(talk);
    renyi_lvlm_free(m);
    ry_tensors_free(set);
    next_remove(folder);
}

static void test_levels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (levels[i] <= renyi_cpu_detect()) check_layout(NEXT_HF, levels[i], 1 + (int)i);
}

static void test_layouts(void **state)
{
    (void)state;
    for (next_layout l = NEXT_HF_4; l <= NEXT_OWN; l++) check_layout(l, renyi_cpu_detect(), 2);
}

/* ---- budgets ------------------------------------------------------------------------------- */

static double check_cut(const ry_tensors *set, const renyi_lvlm *m, uint32_t k, uint32_t image)
{
    static const char *const cuts[] = {
        "vispruner tokens=5 important=1 metric=cls",
        "vispruner tokens=20 important=1 metric=cls budget=image",
        "vispruner tokens=20 important=1 metric=cls budget=image newlines=no",
        "vispruner tokens=3 important=1 metric=cls budget=image",
    };
    char name[16];
    snprintf(name, sizeof name, "cut.%u", k);
    const next_case c = {set, image, name};
    const renyi_conversation_options o = {.struct_size = sizeof o, .policy = cuts[k]};
    const renyi_image p = next_picture(set, image);
    const ry_tensor *kept = next_find(&c, "kept");
    renyi_conversation *talk;
    assert_ok(renyi_conversation_new(&talk, m, &o, err));
    const double worst = check_answer(&c, talk, &p, (uint32_t)kept->shape[0]);
    assert_memory_equal(talk->image.kept, kept->data, kept->bytes);
    assert_true(talk->image.n <= renyi_visual_session_tokens(talk->vision));
    renyi_conversation_free(talk);
    return worst;
}

static void test_budgets(void **state)
{
    (void)state;
    const char *folder = next_write(NEXT_HF, NULL, NULL);
    ry_tensors *set = next_expected();
    const ry_tensor *images = ry_tensors_find(set, "cut_images");
    renyi_lvlm *m;
    double worst = 0.0;
    assert_ok(renyi_lvlm_open(&m, folder, NULL, err));
    for (uint32_t k = 0; k < 4; k++)
        for (size_t i = 0; i < images->shape[0]; i++)
            worst = golden_worse(
                worst, check_cut(set, m, k, (uint32_t)((const int32_t *)images->data)[i]));
    print_message("budgets: logits within %.1e\n", worst);
    assert_true(worst < 1e-3);
    renyi_lvlm_free(m);
    ry_tensors_free(set);
    next_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels),
                                       cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_budgets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
