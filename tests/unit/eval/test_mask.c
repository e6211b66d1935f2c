/* test_mask.c - checks the mask of one image: every form and fault of a PNG, the side of every
 * patch against brute force, the area under the ranking curve against all pairs, and fates of
 * patches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "eval/masks/mask.h"
#include "fixtures/png_build.h"
#include "image/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

enum { SIZE = 32, PATCH = 8, GRID = SIZE / PATCH, PATCHES = GRID * GRID, MAX_VALUES = 1 << 16 };

static ry_mask_spec spec_of(double crop_pct, renyi_crop_mode mode)
{
    return (ry_mask_spec){
        .limits = ry_limits(NULL),
        .preprocess = {.size = SIZE, .crop_mode = mode, .crop_pct = crop_pct, .std = {1, 1, 1}},
        .patch = PATCH};
}

static renyi_status read_png(uint8_t *sides, renyi_mask_kind *kind, const png_file *f, uint32_t w,
                             uint32_t h, const ry_mask_spec *spec, renyi_error *err)
{
    const uint32_t image_size[2] = {w, h};
    *err = (renyi_error){0};
    return ry_mask_read(sides, kind, f->bytes, f->size, image_size, spec, err);
}

/* ---- geometry ------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* Blobs of 1, 2 and 3. */
static void draw_trimap(uint16_t *values, uint32_t w, uint32_t h, uint32_t seed)
{
    const uint32_t cell = 1 + seed % 9;
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            uint32_t s = seed * 31 + (y / cell) * 977 + x / cell;
            next_random(&s);
            values[y * w + x] = (uint16_t)(1 + next_random(&s) % 3);
        }
}

/* One unit of length at a time: an output pixel is in_size units, an input pixel out_size. */
static int brute_side(const uint16_t *values, uint32_t w, const ry_placed *x, const ry_placed *y,
                      uint32_t column, uint32_t row)
{
    uint64_t count[4] = {0};
    const uint32_t in_w = x->axis.in_size, in_h = y->axis.in_size;
    for (uint32_t oy = row * PATCH; oy < (row + 1) * PATCH; oy++)
        for (uint32_t ox = column * PATCH; ox < (column + 1) * PATCH; ox++) {
            if (oy < y->pad || oy >= y->pad + y->axis.n || ox < x->pad || ox >= x->pad + x->axis.n)
                continue;
            for (uint32_t uy = 0; uy < in_h; uy++)
                for (uint32_t ux = 0; ux < in_w; ux++) {
                    const uint64_t ax = (uint64_t)(ox - x->pad + x->axis.from) * in_w + ux;
                    const uint64_t ay = (uint64_t)(oy - y->pad + y->axis.from) * in_h + uy;
                    count[values[ay / y->axis.out_size * w + ax / x->axis.out_size]]++;
                }
        }
    const uint64_t whole = (uint64_t)PATCH * PATCH * in_w * in_h, counted = count[1] + count[2];
    if (2 * counted < whole) return RY_NEITHER;
    return 2 * count[1] >= counted ? RY_OBJECT : RY_BACKGROUND;
}

static void check_geometry(uint32_t w, uint32_t h, double crop_pct, renyi_crop_mode mode)
{
    static uint16_t values[MAX_VALUES];
    static unsigned seen[3];
    const ry_mask_spec spec = spec_of(crop_pct, mode);
    uint8_t sides[PATCHES];
    renyi_mask_kind kind;
    renyi_error err;
    ry_placed x, y;
    draw_trimap(values, w, h, w * 7 + h);
    png_file f = png_build(w, h, PNG_GREY, 8, values, 0);
    if (read_png(sides, &kind, &f, w, h, &spec, &err)) fail_msg("%s", err.message);
    assert_int_equal(kind, RENYI_MASK_TRIMAP);
    assert_int_equal(ry_fit_place(&x, &y, w, h, &spec.preprocess, &err), RENYI_OK);
    for (uint32_t p = 0; p < PATCHES; p++) {
        const int want = brute_side(values, w, &x, &y, p % GRID, p / GRID);
        if (sides[p] != want) fail_msg("%u x %u, patch %u: %d, not %d", w, h, p, sides[p], want);
        seen[want]++;
    }
    free(f.bytes);
    if (w == 50) /* the last one */
        for (int s = 0; s < 3; s++) assert_true(seen[s] > 0);
}

static void test_geometry(void **state)
{
    (void)state;
    check_geometry(32, 32, 1.0, RENYI_CROP_CENTER); /* as it is */
    check_geometry(64, 64, 1.0, RENYI_CROP_CENTER); /* half */
    check_geometry(33, 47, 0.9, RENYI_CROP_CENTER);
    check_geometry(47, 33, 0.875, RENYI_CROP_CENTER);
    check_geometry(7, 61, 0.9, RENYI_CROP_CENTER); /* enlarged, far off the centre */
    check_geometry(1, 1, 1.0, RENYI_CROP_CENTER);
    check_geometry(29, 53, 0.9, RENYI_CROP_SQUASH);
    check_geometry(53, 20, 1.0, RENYI_CROP_BORDER); /* padding above and below */
    check_geometry(50, 31, 1.0, RENYI_CROP_BORDER);
}

/* A square in the middle lands on the patches in the middle, whatever the scale. */
static void test_known_shape(void **state)
{
    static const uint8_t want[PATCHES] = {1, 1, 1, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 1, 1, 1};
    static uint16_t values[MAX_VALUES];
    (void)state;
    for (uint32_t scale = 1; scale <= 5; scale++) {
        const uint32_t w = 32 * scale + 8 * scale, h = 32 * scale; /* the crop drops 4 a side */
        const ry_mask_spec spec = spec_of(1.0, RENYI_CROP_CENTER);
        uint8_t sides[PATCHES];
        renyi_mask_kind kind;
        renyi_error err;
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++)
                values[y * w + x] =
                    x >= 12 * scale && x < 28 * scale && y >= 8 * scale && y < 24 * scale;
        png_file f = png_build(w, h, PNG_GREY, 1, values, 0);
        if (read_png(sides, &kind, &f, w, h, &spec, &err)) fail_msg("%s", err.message);
        assert_int_equal(kind, RENYI_MASK_BINARY);
        assert_memory_equal(sides, want, PATCHES);
        free(f.bytes);
    }
}

/* Half is enough, both for counting a patch and for the object. */
static void test_halves(void **state)
{
    static uint16_t values[SIZE * SIZE];
    static const struct {
        uint16_t left, right, corner; /* halves of every patch, and its first pixel */
        int want, with_border;
    } cases[] = {{1, 2, 1, RY_OBJECT, RY_OBJECT},     {1, 2, 2, RY_BACKGROUND, RY_BACKGROUND},
                 {2, 3, 2, RY_BACKGROUND, RY_OBJECT}, {2, 3, 3, RY_NEITHER, RY_OBJECT},
                 {1, 3, 1, RY_OBJECT, RY_OBJECT},     {3, 3, 3, RY_NEITHER, RY_OBJECT}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int border = 0; border < 2; border++) {
            ry_mask_spec spec = spec_of(1.0, RENYI_CROP_CENTER);
            uint8_t sides[PATCHES];
            renyi_mask_kind kind;
            renyi_error err;
            spec.border_is_object = border;
            for (uint32_t i = 0; i < SIZE * SIZE; i++) {
                const uint32_t x = i % SIZE, y = i / SIZE;
                values[i] = x % PATCH < PATCH / 2 ? cases[c].left : cases[c].right;
                if (x % PATCH == 0 && y % PATCH == 0) values[i] = cases[c].corner;
            }
            png_file f = png_build(SIZE, SIZE, PNG_GREY, 2, values, 0);
            assert_int_equal(read_png(sides, &kind, &f, SIZE, SIZE, &spec, &err), RENYI_OK);
            for (int p = 0; p < PATCHES; p++)
                assert_int_equal(sides[p], border ? cases[c].with_border : cases[c].want);
            free(f.bytes);
        }
}

/* ---- forms and faults ----------------------------------------------------------------------- */

/* A PNG of 32 x 32 whose left half is `a` and right half is `b` (and its first pixel `c`). */
static png_file halves(int type, int depth, uint16_t a, uint16_t b, uint16_t c)
{
    static uint16_t values[SIZE * SIZE * 3];
    const int channels = type == PNG_RGB ? 3 : type == PNG_GREY_ALPHA ? 2 : 1;
    for (int i = 0; i < SIZE * SIZE * channels; i++)
        values[i] = i / channels % SIZE < SIZE / 2 ? a : b;
    values[0] = c;
    return png_build(SIZE, SIZE, type, depth, values, 0);
}

static void test_forms(void **state)
{
    static const struct {
        int type, depth;
        uint16_t object, background;
        renyi_mask_kind kind;
    } forms[] = {
        {PNG_GREY, 1, 1, 0, RENYI_MASK_BINARY},     {PNG_GREY, 8, 1, 0, RENYI_MASK_BINARY},
        {PNG_GREY, 8, 255, 0, RENYI_MASK_BINARY},   {PNG_GREY, 16, 65535, 0, RENYI_MASK_BINARY},
        {PNG_GREY, 16, 255, 0, RENYI_MASK_BINARY},  {PNG_PALETTE, 1, 1, 0, RENYI_MASK_BINARY},
        {PNG_PALETTE, 8, 15, 0, RENYI_MASK_BINARY}, {PNG_GREY, 2, 1, 2, RENYI_MASK_TRIMAP},
        {PNG_GREY, 4, 1, 2, RENYI_MASK_TRIMAP},     {PNG_GREY, 8, 1, 2, RENYI_MASK_TRIMAP},
        {PNG_GREY, 16, 1, 2, RENYI_MASK_TRIMAP},    {PNG_PALETTE, 2, 1, 2, RENYI_MASK_TRIMAP},
        {PNG_PALETTE, 4, 1, 2, RENYI_MASK_TRIMAP},  {PNG_PALETTE, 8, 1, 2, RENYI_MASK_TRIMAP}};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const ry_mask_spec spec = spec_of(1.0, RENYI_CROP_CENTER);
        png_file f = halves(forms[i].type, forms[i].depth, forms[i].object, forms[i].background,
                            forms[i].object);
        uint8_t sides[PATCHES];
        renyi_mask_kind kind;
        renyi_error err;
        if (read_png(sides, &kind, &f, SIZE, SIZE, &spec, &err)) fail_msg("%s", err.message);
        assert_int_equal(kind, forms[i].kind);
        for (int p = 0; p < PATCHES; p++)
            assert_int_equal(sides[p], p % GRID < GRID / 2 ? RY_OBJECT : RY_BACKGROUND);
        free(f.bytes);
    }
}

static void refuse(png_file f, renyi_mask_kind asked, uint32_t width, renyi_status code,
                   const char *text)
{
    ry_mask_spec spec = spec_of(1.0, RENYI_CROP_CENTER);
    uint8_t sides[PATCHES];
    renyi_mask_kind kind;
    renyi_error err;
    spec.kind = asked;
    const renyi_status st = read_png(sides, &kind, &f, width, SIZE, &spec, &err);
    if (st != code || !strstr(err.message, text)) fail_msg("%d: %s", (int)st, err.message);
    free(f.bytes);
}

static void test_faults(void **state)
{
    (void)state;
    refuse(halves(PNG_RGB, 8, 1, 0, 1), RENYI_MASK_AUTO, SIZE, RENYI_ERR_UNSUPPORTED,
           "RGB instead of one number per pixel; save it as gray or with a palette");
    refuse(halves(PNG_GREY_ALPHA, 8, 1, 0, 1), RENYI_MASK_AUTO, SIZE, RENYI_ERR_UNSUPPORTED,
           "an alpha channel instead");
    refuse(halves(PNG_GREY, 16, 300, 0, 0), RENYI_MASK_AUTO, SIZE, RENYI_ERR_UNSUPPORTED,
           "a 16-bit value of 300");
    refuse(halves(PNG_GREY, 8, 1, 2, 0), RENYI_MASK_AUTO, SIZE, RENYI_ERR_FORMAT,
           "values 0, 1, 2 are neither");
    refuse(halves(PNG_GREY, 8, 1, 0, 1), RENYI_MASK_TRIMAP, SIZE, RENYI_ERR_FORMAT,
           "values 0, 1; a trimap has 1 (object), 2 (background) and 3 (border)");
    refuse(halves(PNG_GREY, 8, 1, 0, 1), RENYI_MASK_AUTO, SIZE + 1, RENYI_ERR_FORMAT,
           "32 x 32 pixels for an image of 33 x 32");
    png_file cut = halves(PNG_GREY, 8, 1, 0, 1);
    cut.size /= 2;
    refuse(cut, RENYI_MASK_AUTO, SIZE, RENYI_ERR_FORMAT, "truncated");
    png_file none = {malloc(1), 0};
    refuse(none, RENYI_MASK_AUTO, SIZE, RENYI_ERR_UNSUPPORTED, "not a PNG");
    static const uint16_t wide[1] = {1};
    png_file small = png_build(1, 1, PNG_GREY, 8, wide, 0);
    ry_mask_spec spec = spec_of(1.0, RENYI_CROP_CENTER);
    uint8_t sides[PATCHES];
    renyi_mask_kind kind;
    renyi_error err;
    spec.limits.max_pixels = 0;
    assert_int_equal(read_png(sides, &kind, &small, 1, 1, &spec, &err), RENYI_ERR_LIMIT);
    free(small.bytes);
}

/* With the kind "binary", all but 0 is the object. */
static void test_binary_kind(void **state)
{
    ry_mask_spec spec = spec_of(1.0, RENYI_CROP_CENTER);
    png_file f = halves(PNG_GREY, 8, 17, 0, 200);
    uint8_t sides[PATCHES];
    renyi_mask_kind kind;
    renyi_error err;
    (void)state;
    spec.kind = RENYI_MASK_BINARY;
    assert_int_equal(read_png(sides, &kind, &f, SIZE, SIZE, &spec, &err), RENYI_OK);
    assert_int_equal(sides[0], RY_OBJECT);
    assert_int_equal(sides[GRID - 1], RY_BACKGROUND);
    free(f.bytes);
}

/* With apply_exif the mask is rotated by its own EXIF orientation: 6 moves the left half to the
 * top. */
static void test_exif(void **state)
{
    static uint16_t values[16 * SIZE];
    ry_mask_spec spec = spec_of(1.0, RENYI_CROP_SQUASH);
    uint8_t sides[PATCHES];
    renyi_mask_kind kind;
    renyi_error err;
    (void)state;
    for (int i = 0; i < 16 * SIZE; i++) values[i] = i % SIZE < SIZE / 2;
    png_file f = png_build(SIZE, 16, PNG_GREY, 1, values, 6);
    assert_int_equal(read_png(sides, &kind, &f, SIZE, 16, &spec, &err), RENYI_OK);
    assert_int_equal(sides[GRID], RY_OBJECT);
    assert_int_equal(sides[GRID - 1], RY_BACKGROUND);
    spec.apply_exif = 1;
    assert_int_equal(read_png(sides, &kind, &f, SIZE, 16, &spec, &err), RENYI_ERR_FORMAT);
    assert_int_equal(read_png(sides, &kind, &f, 16, SIZE, &spec, &err), RENYI_OK);
    assert_int_equal(sides[GRID - 1], RY_OBJECT);
    assert_int_equal(sides[PATCHES - GRID], RY_BACKGROUND);
    free(f.bytes);
}

/* ---- ranking and fates ---------------------------------------------------------------------- */

enum { MOST = 64 };

/* 1 = a ranks before b, 0.5 = tie; NaN ranks last. */
static double wins(float a, float b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0.5 : isnan(b) ? 1.0 : 0.0;
    return a > b ? 1.0 : a == b ? 0.5 : 0.0;
}

static void test_area(void **state)
{
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        const uint32_t n = 2 + next_random(&seed) % (MOST - 2), kinds = 1 + next_random(&seed) % 40;
        float score[MOST];
        uint8_t sides[MOST];
        uint32_t order[MOST], better;
        uint64_t scratch[2 * MOST];
        double sum = 0.0, pairs = 0.0, all[3] = {0}, kept[3] = {0};
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t k = next_random(&seed) % kinds;
            score[i] = k == 3 ? NAN : k == 4 ? -0.0f : k == 5 ? 0.0f : (float)k - 10.0f;
            sides[i] = (uint8_t)(i < 2 ? i + 1 : next_random(&seed) % 3);
        }
        const uint32_t n_kept = 1 + next_random(&seed) % n;
        for (uint32_t i = 0; i < n; i++) {
            better = 0;
            for (uint32_t j = 0; j < n; j++) {
                const double w = wins(score[j], score[i]);
                better += w == 1.0 || (w == 0.5 && j < i);
                if (sides[i] == RY_OBJECT && sides[j] == RY_BACKGROUND)
                    sum += wins(score[i], score[j]), pairs++;
            }
            all[sides[i]]++;
            kept[sides[i]] += better < n_kept;
        }
        ry_ranked r;
        ry_mask_rank(&r, score, sides, n, n_kept, order, scratch);
        assert_true(r.auc == sum / pairs);
        assert_true(r.kept_object == kept[RY_OBJECT] / all[RY_OBJECT]);
        assert_true(r.kept_background == kept[RY_BACKGROUND] / all[RY_BACKGROUND]);
    }
}

/* One prefix token, six patches. First cut: 0 and 1 stay, 2 joins 1, 3 is dropped, 4 and 5 are
 * fused. Second: 0 is dropped, 1 (with 2) stays, the fused token stays. Third: the fused token
 * joins 1. */
static void test_fates(void **state)
{
    static const int32_t position1[] = {RENYI_PREFIX, 0, 1, 2, 3, 4, 5};
    static const uint32_t source1[] = {0, 1, 2, RENYI_NONE};
    static const uint32_t target1[] = {0, 1, 2, 2, RENYI_NONE, 3, 3};
    static const int32_t position2[] = {RENYI_PREFIX, 0, 1, RENYI_FUSED};
    static const uint32_t source2[] = {0, 2, 3}, target2[] = {0, RENYI_NONE, 1, 2};
    static const int32_t position3[] = {RENYI_PREFIX, 1, RENYI_FUSED};
    static const uint32_t source3[] = {0, 1}, target3[] = {0, 1, 1};
    const renyi_cut cuts[] = {{.n_prefix = 1,
                               .n_in = 7,
                               .n_out = 4,
                               .position = position1,
                               .source = source1,
                               .target = target1},
                              {.n_prefix = 1,
                               .n_in = 4,
                               .n_out = 3,
                               .position = position2,
                               .source = source2,
                               .target = target2},
                              {.n_prefix = 1,
                               .n_in = 3,
                               .n_out = 2,
                               .position = position3,
                               .source = source3,
                               .target = target3}};
    enum { A = RY_FATE_ALONE, M = RY_FATE_MERGED, F = RY_FATE_FUSED, D = RY_FATE_DROPPED };
    static const uint8_t want[][6] = {
        {A, A, A, A, A, A}, {A, M, M, D, F, F}, {D, M, M, D, F, F}, {D, M, M, D, M, M}};
    uint8_t fate[6];
    uint32_t row[6], members[7];
    (void)state;
    ry_fate_begin(fate, row, 6, 1);
    assert_memory_equal(fate, want[0], 6);
    for (int c = 0; c < 3; c++) {
        ry_fate_cut(fate, row, 6, &cuts[c], members);
        assert_memory_equal(fate, want[c + 1], 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_geometry), cmocka_unit_test(test_known_shape),
        cmocka_unit_test(test_halves),   cmocka_unit_test(test_forms),
        cmocka_unit_test(test_faults),   cmocka_unit_test(test_binary_kind),
        cmocka_unit_test(test_exif),     cmocka_unit_test(test_area),
        cmocka_unit_test(test_fates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
