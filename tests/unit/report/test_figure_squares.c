/* test_figure_squares.c - base and tiles of a LLaVA-NeXT in a figure: where they are, the border,
 * counts, one scale for all tiles, and tiles that do not fit their base.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/figure_fixture.h"
#include "fixtures/test_heap.h"

#include "test.h"

enum { CELL = 64, SIDE = CELL / FIG_GRID, GAP = 2 };
enum { BASE_X = 30 + CELL + 12, TILES_X = BASE_X + CELL + 12 };

static figure_fixture squares[3]; /* the base and 2 x 1 tiles */
static const renyi_viz_result *tile_results[2], *base;
static uint32_t n_tokens[1 + FIG_ROWS], n_newlines[1 + FIG_ROWS];
static renyi_viz_tiles tiles;
static const renyi_viz_tiles *all_tiles;

/* Tile k has the blue 40 k and scores from 100 (k - 1). The first and the last of the eight columns
 * of the grid are border. */
static int setup(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        figure_fixture *f = &squares[k];
        figure_fill(f);
        f->r.n_layers = 1;
        f->r.attention = NULL;
        for (uint32_t i = 0; k && i < FIG_SIDE * FIG_SIDE; i++)
            f->rgb[3 * i + 2] = (uint8_t)(40 * k);
        for (uint32_t i = 0; k && i < FIG_N; i++) f->score[0][0][i] = (float)(100 * (k - 1) + i);
        for (uint32_t row = 0; row < FIG_ROWS; row++) f->steps[row][0].n_tokens = 9 - k;
    }
    base = &squares[0].r;
    for (int i = 0; i < 2; i++) tile_results[i] = &squares[1 + i].r;
    for (uint32_t i = 0; i <= FIG_ROWS; i++) {
        n_tokens[i] = 44 - 10 * i;
        n_newlines[i] = 4 - i;
    }
    tiles = (renyi_viz_tiles){.struct_size = sizeof tiles,
                              .across = 2,
                              .down = 1,
                              .first_column = 1,
                              .n_columns = 6,
                              .n_lines = 4,
                              .squares = tile_results,
                              .n_tokens = n_tokens,
                              .n_newlines = n_newlines};
    all_tiles = &tiles;
    return 0;
}

static renyi_figure_options options(renyi_figure_kind kind)
{
    return (renyi_figure_options){.struct_size = sizeof(renyi_figure_options),
                                  .kind = kind,
                                  .cell = CELL,
                                  .scale = 1,
                                  .tiles = &all_tiles};
}

static renyi_figure_file svg(renyi_figure_options opt)
{
    renyi_figure_file out;
    renyi_error err = {0};
    if (renyi_figure_svg(&out, &base, 1, &opt, &err)) fail_msg("%s", err.message);
    return out;
}

static int holds(const renyi_figure_file *f, const char *text)
{
    return strstr(f->bytes, text) != NULL;
}

/* ---- pixels -------------------------------------------------------------------------------- */

static const uint8_t *pixel(const renyi_image *image, uint32_t x, uint32_t y)
{
    return image->rgb + ((size_t)y * image->width + x) * 3;
}

static int is_patch(const renyi_image *image, uint32_t x, uint32_t y, uint32_t patch, uint8_t blue)
{
    uint8_t want[3];
    figure_colour(patch, want);
    want[2] = blue;
    return memcmp(pixel(image, x, y), want, 3) == 0;
}

/* The first policy keeps the columns 0 to 2 of every square. */
static void places(void **state)
{
    const renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    static const uint8_t border[3] = {246, 247, 249};
    const uint32_t mid = SIDE / 2, second = TILES_X + CELL + GAP;
    renyi_figure_file f;
    renyi_image image;
    uint32_t y = 0;
    (void)state;
    assert_int_equal(renyi_figure_png(&f, &base, 1, &opt, NULL), RENYI_OK);
    assert_int_equal(renyi_image_decode(&image, f.bytes, f.size, NULL, NULL), RENYI_OK);
    while (y < image.height && !is_patch(&image, BASE_X + mid, y, 0, 128)) y++;
    y += mid; /* the middle of the first line of patches */
    assert_true(y + CELL < image.height);
    assert_true(is_patch(&image, BASE_X + mid + SIDE, y + SIDE, 5, 128));
    assert_false(is_patch(&image, BASE_X + mid + 3 * SIDE, y, 3, 128)); /* dropped */
    for (uint32_t line = 0; line < FIG_GRID; line++) {
        const uint32_t at = y + line * SIDE, patch = line * FIG_GRID;
        assert_memory_equal(pixel(&image, TILES_X + mid, at), border, 3);
        assert_true(is_patch(&image, TILES_X + mid + SIDE, at, patch + 1, 40));
        assert_false(is_patch(&image, TILES_X + mid + 3 * SIDE, at, patch + 3, 40));
        assert_int_equal(pixel(&image, second - 1, at)[2], 255); /* the gap */
        assert_true(is_patch(&image, second + mid, at, patch, 80));
        assert_true(is_patch(&image, second + mid + 2 * SIDE, at, patch + 2, 80));
        assert_memory_equal(pixel(&image, second + mid + 3 * SIDE, at), border, 3);
    }
    renyi_image_free(&image, NULL);
    renyi_figure_free(&f);
}

/* A figure is as wide as its tiles need. */
static void width(void **state)
{
    const renyi_viz_result *many[16];
    renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    renyi_figure_file f;
    renyi_image image;
    (void)state;
    for (int i = 0; i < 16; i++) many[i] = tile_results[i % 2];
    tiles.across = 8;
    tiles.down = 2;
    tiles.squares = many;
    assert_int_equal(renyi_figure_png(&f, &base, 1, &opt, NULL), RENYI_OK);
    assert_int_equal(renyi_image_decode(&image, f.bytes, f.size, NULL, NULL), RENYI_OK);
    assert_int_equal(image.width, TILES_X + 8 * CELL + 7 * GAP + 30);
    renyi_image_free(&image, NULL);
    renyi_figure_free(&f);
}

/* ---- texts --------------------------------------------------------------------------------- */

static void texts(void **state)
{
    renyi_figure_options opt = options(RENYI_FIGURE_ALL);
    (void)state;
    opt.cell = 220;
    renyi_figure_file f = svg(opt);
    assert_true(holds(&f, ">base</text>") && holds(&f, ">2 \xC3\x97 1 tiles</text>"));
    assert_true(holds(&f, ">9 of 16</text>") && holds(&f, ">15 of 24 in all tiles</text>"));
    assert_true(holds(&f, ">8 of 12</text>") && holds(&f, ">7 of 12</text>"));
    assert_true(holds(&f, ">34 of 44 tokens (3 newlines)</text>"));
    assert_true(holds(&f, ">14 of 44 tokens (1 newline)</text>"));
    assert_true(holds(&f, ">border, no tokens</text>"));
    assert_true(holds(&f, ">0 to 15.0</text>"));   /* scores of the base */
    assert_true(holds(&f, ">1.00 to 114</text>")); /* of both tiles, without the border */
    assert_false(holds(&f, "layer 0") || holds(&f, "so far"));
    renyi_figure_free(&f);
    for (int k = 1; k < 3; k++)
        for (int i = 0; i < FIG_N; i++) squares[k].score[0][0][i] = NAN;
    opt.kind = RENYI_FIGURE_HEAT;
    f = svg(opt);
    assert_true(holds(&f, ">no scores</text>"));
    renyi_figure_free(&f);
}

/* Half blocks: the base, then each line of tiles, each with its count. */
static void terminal(void **state)
{
    const renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    renyi_figure_file f;
    (void)state;
    assert_int_equal(renyi_figure_terminal(&f, &base, 1, &opt, RENYI_TERMINAL_BLOCKS, 60, NULL),
                     RENYI_OK);
    assert_true(holds(&f, "34 of 44 tokens (3 newlines), tabby cat 75.0 %, 0.70 GMACs"));
    const char *at = strstr(f.bytes, "9 of 16");
    assert_non_null(at);
    assert_non_null(at = strstr(at, "tile 1"));
    assert_non_null(at = strstr(at, "tile 2"));
    assert_non_null(at = strstr(at, "8 of 12"));
    assert_non_null(strstr(at, "7 of 12"));
    renyi_figure_free(&f);
}

/* An entry that is NULL is an image without tiles. */
static void mixed(void **state)
{
    const renyi_viz_result *results[] = {base, base};
    const renyi_viz_tiles *list[] = {&tiles, NULL};
    renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    renyi_figure_file f;
    (void)state;
    opt.tiles = list;
    assert_int_equal(renyi_figure_svg(&f, results, 2, &opt, NULL), RENYI_OK);
    assert_true(holds(&f, "tiles</text>") && holds(&f, ">layer 0</text>"));
    renyi_figure_free(&f);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void expect(const char *message)
{
    const renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    renyi_figure_file out;
    renyi_error err = {0};
    assert_int_equal(renyi_figure_svg(&out, &base, 1, &opt, &err), RENYI_ERR_ARG);
    if (!strstr(err.message, message)) fail_msg("'%s' is not in '%s'", message, err.message);
    assert_null(out.bytes);
    setup(NULL);
}

static void bad_tiles(void **state)
{
    (void)state;
    tiles.struct_size = 0;
    expect("struct_size 0");
    tiles.across = 0;
    expect("0 x 1 tiles");
    tiles.down = 9;
    expect("2 x 9 tiles");
    tiles.across = tiles.down = 1u << 16; /* whose product is 0 */
    expect("65536 x 65536 tiles");
    tiles.squares = NULL;
    expect("is NULL");
    tiles.n_newlines = NULL;
    expect("is NULL");
    tiles.n_columns = 8;
    expect("columns 1 + 8");
    tiles.first_line = UINT32_MAX;
    expect("of 8 x 4 patches");
    squares[2].r.n_rows = 2;
    expect("tile 1 has other");
    tile_results[0] = NULL;
    expect("tile 0 has other");
    squares[0].r.n_layers = 2;
    expect("a base of 2 layers");
}

/* A program compiled before there were tiles sends a shorter struct. */
static void older_options(void **state)
{
    renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    (void)state;
    opt.struct_size = offsetof(renyi_figure_options, tiles);
    opt.tiles = (const renyi_viz_tiles *const *)1;
    renyi_figure_file f = svg(opt);
    assert_true(holds(&f, ">layer 0</text>"));
    renyi_figure_free(&f);
}

static void memory_runs_out(void **state)
{
    renyi_figure_options opt = options(RENYI_FIGURE_ALL);
    test_heap heap = {0};
    (void)state;
    opt.allocator = test_heap_of(&heap);
    renyi_figure_file f = svg(opt);
    renyi_figure_free(&f);
    assert_int_equal(heap.live, 0);
    const size_t calls = heap.calls;
    for (size_t i = 1; i <= calls; i += 3) {
        heap = (test_heap){.fail_at = i};
        assert_int_equal(renyi_figure_svg(&f, &base, 1, &opt, NULL), RENYI_ERR_NOMEM);
        assert_int_equal(heap.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(places, setup),
        cmocka_unit_test_setup(width, setup),
        cmocka_unit_test_setup(texts, setup),
        cmocka_unit_test_setup(terminal, setup),
        cmocka_unit_test_setup(mixed, setup),
        cmocka_unit_test_setup(bad_tiles, setup),
        cmocka_unit_test_setup(older_options, setup),
        cmocka_unit_test_setup(memory_runs_out, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
