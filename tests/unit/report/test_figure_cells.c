/* test_figure_cells.c - the colours of single pixels in the cells of a figure, and colour maps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "fixtures/figure_fixture.h"
#include "report/figure/figure_parts.h"

#include <stdlib.h>

#include "test.h"

enum { SIDE = 80, PATCH = SIDE / FIG_GRID }; /* of the cell, pixels */

typedef struct cell {
    figure_fixture fixture;
    const renyi_viz_result *results[1];
    renyi_figure_options opt;
    ry_figure figure;
    ry_drawing drawing;
    ry_canvas canvas;
    uint8_t *rgb; /* [SIDE, SIDE, 3] */
} cell;

static cell c;

static const ry_box whole = {0, 0, SIDE, SIDE};

static void begin_cell(renyi_colours colours)
{
    c.results[0] = &c.fixture.r;
    c.opt = (renyi_figure_options){.struct_size = sizeof c.opt, .opacity = 1, .colours = colours};
    assert_int_equal(ry_figure_check(&c.figure, c.results, 1, &c.opt, NULL), RENYI_OK);
    assert_int_equal(ry_figure_empty(&c.drawing, &c.figure, NULL), RENYI_OK);
    c.drawing.width = c.drawing.height = SIDE;
    c.canvas = (ry_canvas){.drawing = &c.drawing,
                           .opt = &c.figure.opt,
                           .r = &c.fixture.r,
                           .ink = ry_inks_of(0),
                           .cell = SIDE};
    ry_canvas_prepare(&c.canvas);
    assert_false(c.drawing.failed);
}

static void paint_cell(void)
{
    uint32_t width, height;
    assert_int_equal(ry_drawing_pixels(&c.drawing, 1, &c.rgb, &width, &height, NULL), RENYI_OK);
    assert_int_equal(width, SIDE);
    assert_int_equal(height, SIDE);
}

static void end_cell(void)
{
    ry_free(c.drawing.al, c.rgb);
    ry_canvas_free(&c.canvas);
    ry_drawing_free(&c.drawing);
}

/* Pixel (x, y) of a patch, counted from its own corner. */
static void expect_pixel(uint32_t patch, uint32_t x, uint32_t y, const uint8_t wanted[3])
{
    const size_t row = patch / FIG_GRID * PATCH + y, column = patch % FIG_GRID * PATCH + x;
    const uint8_t *seen = c.rgb + (row * SIDE + column) * 3;
    for (int i = 0; i < 3; i++)
        if (abs(seen[i] - wanted[i]) > 1) /* rounding of cairo */
            fail_msg("patch %u pixel %u, %u: %d %d %d instead of %d %d %d", patch, x, y, seen[0],
                     seen[1], seen[2], wanted[0], wanted[1], wanted[2]);
}

/* A pixel inside, beside the diagonal of dropped patches. */
static void expect_middle(uint32_t patch, const uint8_t wanted[3])
{
    expect_pixel(patch, PATCH / 2, PATCH / 4, wanted);
}

static int luma_of(const uint8_t rgb[3])
{
    return (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000;
}

static void kept_is_clear_and_dropped_is_dark(void **state)
{
    (void)state;
    figure_fill(&c.fixture);
    begin_cell(RENYI_COLOURS_EVEN);
    ry_cell_overlay(&c.canvas, &c.fixture.steps[0][1], whole);
    paint_cell();
    for (uint32_t i = 0; i < FIG_N; i++) {
        uint8_t wanted[3];
        figure_colour(i, wanted);
        if (c.fixture.state[0][1][i] == RENYI_VIZ_DROPPED) {
            const int l = luma_of(wanted);
            wanted[0] = (uint8_t)(13 + l / 4);
            wanted[1] = (uint8_t)(15 + l / 4);
            wanted[2] = (uint8_t)(21 + l / 4);
        }
        expect_middle(i, wanted);
        if (c.fixture.state[0][1][i] == RENYI_VIZ_DROPPED) { /* the stroke */
            const size_t row = i / FIG_GRID * PATCH + PATCH / 2, column = i % FIG_GRID * PATCH;
            assert_true(c.rgb[(row * SIDE + column + PATCH / 2) * 3] > wanted[0] + 1);
        }
    }
    end_cell();
}

static void dropped_is_light_in_a_dark_image(void **state)
{
    (void)state;
    figure_fill(&c.fixture);
    memset(c.fixture.rgb, 20, sizeof c.fixture.rgb);
    begin_cell(RENYI_COLOURS_EVEN);
    ry_cell_overlay(&c.canvas, &c.fixture.steps[0][0], whole);
    paint_cell();
    expect_middle(0, (const uint8_t[3]){20, 20, 20});
    expect_middle(3, (const uint8_t[3]){199, 203, 211});
    end_cell();
}

/* Row 1 rescues patch 4 and fuses column 3; a fused token is no patch. */
static void rescued_has_an_outline(void **state)
{
    uint8_t clear[3];
    const uint8_t orange[3] = {255, 154, 31};
    (void)state;
    figure_fill(&c.fixture);
    begin_cell(RENYI_COLOURS_EVEN);
    ry_cell_overlay(&c.canvas, &c.fixture.steps[1][0], whole);
    paint_cell();
    figure_colour(4, clear);
    expect_middle(4, clear);
    expect_pixel(4, PATCH / 2, 0, orange);
    expect_pixel(4, 0, PATCH / 2, orange);
    expect_pixel(9, PATCH / 2, PATCH / 2, (figure_colour(9, clear), clear));
    figure_colour(3, clear);
    expect_middle(3, (const uint8_t[3]){(uint8_t)(13 + luma_of(clear) / 4),
                                        (uint8_t)(15 + luma_of(clear) / 4),
                                        (uint8_t)(21 + luma_of(clear) / 4)});
    end_cell();
}

/* Row 2 at layer 1: patches 0, 1, 2 are one token, column 3 and the rest of column 2 are dropped.
 */
static void mosaic_has_mean_colours(void **state)
{
    const ry_inks ink = ry_inks_of(0);
    (void)state;
    figure_fill(&c.fixture);
    begin_cell(RENYI_COLOURS_EVEN);
    ry_cell_mosaic(&c.canvas, &c.fixture.steps[2][1], whole);
    paint_cell();
    for (uint32_t i = 0; i < 3; i++) expect_middle(i, (const uint8_t[3]){140, 80, 128});
    expect_middle(5, (const uint8_t[3]){140, 110, 128});
    expect_pixel(3, 2, PATCH / 2, (const uint8_t[3]){ink.open.r, ink.open.g, ink.open.b});
    /* No line inside the token, one around it. */
    expect_pixel(0, PATCH - 1, PATCH / 2, (const uint8_t[3]){140, 80, 128});
    const size_t below = ((PATCH - 1) * SIDE + PATCH / 2) * 3;
    assert_true(c.rgb[below + 1] > 100); /* half of a light line */
    end_cell();
}

static void heat_has_the_colours_of_the_map(void **state)
{
    (void)state;
    for (int map = 0; map < 2; map++) {
        uint8_t wanted[3];
        figure_fill(&c.fixture);
        c.fixture.score[0][0][7] = NAN;
        c.fixture.score[0][0][6] = -1e30F;
        c.fixture.score[0][0][5] = INFINITY;
        begin_cell((renyi_colours)map);
        ry_cell_heat(&c.canvas, c.fixture.score[0][0], 0, 15, whole);
        paint_cell();
        for (uint32_t i = 0; i < FIG_N; i++) {
            if (i == 5 || i == 7) { /* left open: the grey image */
                figure_colour(i, wanted);
                memset(wanted, luma_of(wanted), 3);
            } else {
                renyi_colour((renyi_colours)map, i == 6 ? 0 : round(i / 15.0 * 254) / 254, wanted);
            }
            expect_middle(i, wanted);
        }
        end_cell();
    }
}

static void equal_scores_are_in_the_middle(void **state)
{
    uint8_t wanted[3];
    (void)state;
    figure_fill(&c.fixture);
    for (int i = 0; i < FIG_N; i++) c.fixture.score[0][0][i] = 3;
    begin_cell(RENYI_COLOURS_EVEN);
    ry_cell_heat(&c.canvas, c.fixture.score[0][0], 3, 3, whole);
    paint_cell();
    renyi_colour(RENYI_COLOURS_EVEN, 0.5, wanted);
    expect_middle(11, wanted);
    end_cell();
}

/* ---- colour maps --------------------------------------------------------------------------- */

static double linear(uint8_t v)
{
    const double x = v / 255.0;
    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

static double lab_curve(double t)
{
    return t > 216.0 / 24389 ? cbrt(t) : (24389.0 / 27 * t + 16) / 116;
}

static void lab_of(const uint8_t rgb[3], double lab[3])
{
    const double r = linear(rgb[0]), g = linear(rgb[1]), b = linear(rgb[2]);
    const double x = lab_curve((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
    const double y = lab_curve(0.2126729 * r + 0.7151522 * g + 0.0721750 * b);
    const double z = lab_curve((0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883);
    lab[0] = 116 * y - 16;
    lab[1] = 500 * (x - y);
    lab[2] = 200 * (y - z);
}

static void steps_of_a_map_look_equal(void **state)
{
    (void)state;
    for (int map = 0; map < 2; map++) {
        double before[3] = {0}, least = 1e9, most = 0, lightness = 0;
        for (int i = 0; i <= 16; i++) {
            uint8_t rgb[3];
            double lab[3];
            renyi_colour((renyi_colours)map, i / 16.0, rgb);
            lab_of(rgb, lab);
            const double step = sqrt(pow(lab[0] - before[0], 2) + pow(lab[1] - before[1], 2) +
                                     pow(lab[2] - before[2], 2));
            if (i > 0) least = fmin(least, step), most = fmax(most, step);
            if (map == RENYI_COLOURS_EVEN) assert_true(i == 0 || lab[0] > lightness + 2);
            lightness = lab[0];
            memcpy(before, lab, sizeof lab);
        }
        assert_true(most < 1.25 * least);
    }
}

static void ends_of_a_map(void **state)
{
    uint8_t a[3], b[3];
    (void)state;
    renyi_colour(RENYI_COLOURS_EVEN, -5, a);
    renyi_colour(RENYI_COLOURS_EVEN, NAN, b);
    assert_memory_equal(a, b, 3);
    renyi_colour(RENYI_COLOURS_RED_BLUE, 0, a);
    renyi_colour(RENYI_COLOURS_RED_BLUE, INFINITY, b);
    assert_true(a[2] > a[0] && b[0] > b[2]); /* blue is low, red is high */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_is_clear_and_dropped_is_dark),
        cmocka_unit_test(dropped_is_light_in_a_dark_image),
        cmocka_unit_test(rescued_has_an_outline),
        cmocka_unit_test(mosaic_has_mean_colours),
        cmocka_unit_test(heat_has_the_colours_of_the_map),
        cmocka_unit_test(equal_scores_are_in_the_middle),
        cmocka_unit_test(steps_of_a_map_look_equal),
        cmocka_unit_test(ends_of_a_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
