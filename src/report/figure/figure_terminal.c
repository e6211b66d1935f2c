/* figure_terminal.c - figures in a terminal: as an image by its own protocol, or as half blocks
 * with labels in text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/figure_parts.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

enum { MIN_COLUMNS = 20, MAX_COLUMNS = 1000 }; /* characters */
enum { MAX_SIDE = 56 };                        /* of a cell, pixels */

/* ---- images -------------------------------------------------------------------------------- */

/* kitty takes base64 in pieces of 4096. q=2 turns off its reply, which would look like typing. */
static void put_kitty(ry_buffer *out, const ry_buffer *code, uint32_t columns)
{
    enum { PIECE = 4096 };
    for (size_t at = 0; at < code->size; at += PIECE) {
        const size_t left = code->size - at, n = left < PIECE ? left : PIECE;
        ry_buffer_text(out, "\033_G");
        if (at == 0) ry_putf(out, "a=T,f=100,q=2,c=%u,", columns);
        ry_buffer_text(out, left > PIECE ? "m=1;" : "m=0;");
        ry_buffer_put(out, code->bytes + at, n);
        ry_buffer_text(out, "\033\\");
    }
    ry_buffer_text(out, "\n");
}

static renyi_status put_image(ry_buffer *out, const ry_figure *f, renyi_terminal terminal,
                              uint32_t columns, renyi_error *err)
{
    ry_buffer png = {.al = out->al}, code = {.al = out->al};
    renyi_status status = ry_figure_png(&png, f, err);
    if (status == RENYI_OK) {
        ry_put_base64(&code, png.bytes, png.size);
        if (code.failed) status = ry_fail_nomem(err, code.wanted);
    }
    if (status == RENYI_OK && terminal == RENYI_TERMINAL_KITTY) put_kitty(out, &code, columns);
    if (status == RENYI_OK && terminal == RENYI_TERMINAL_ITERM2) {
        ry_putf(out, "\033]1337;File=inline=1;size=%zu;width=%u;preserveAspectRatio=1:", png.size,
                columns);
        ry_buffer_put(out, code.bytes, code.size);
        ry_buffer_text(out, "\a\n");
    }
    ry_free(png.al, png.bytes);
    ry_free(code.al, code.bytes);
    return status;
}

/* ---- half blocks --------------------------------------------------------------------------- */

/* Cells side by side, one character apart. */
typedef struct band {
    uint32_t first, n; /* cells */
    uint32_t side;     /* of a cell, in pixels = characters */
} band;

static void put_colour(ry_buffer *out, const char *ground, const uint8_t *rgb)
{
    ry_putf(out, "\033[%s;2;%u;%u;%um", ground, (unsigned)rgb[0], (unsigned)rgb[1],
            (unsigned)rgb[2]);
}

/* Two rows of pixels for each line of text: the upper half in the text colour, the lower half in
 * the background colour. Colours are written only where they change. */
static void put_pixels(ry_buffer *out, const band *b, const uint8_t *rgb, size_t width,
                       size_t height)
{
    for (size_t y = 0; y < height; y += 2) {
        const uint8_t *last_up = NULL, *last_down = NULL;
        for (size_t x = 0; x < width; x++) {
            const uint8_t *up = rgb + (y * width + x) * 3;
            const uint8_t *down = y + 1 < height ? up + 3 * width : NULL;
            if (x % (b->side + 1) == b->side) {
                ry_buffer_text(out, "\033[0m ");
                last_up = last_down = NULL;
                continue;
            }
            if (!last_up || memcmp(up, last_up, 3) != 0) put_colour(out, "38", up);
            if (down && (!last_down || memcmp(down, last_down, 3) != 0))
                put_colour(out, "48", down);
            ry_buffer_text(out, "\xE2\x96\x80");
            last_up = up;
            last_down = down;
        }
        ry_buffer_text(out, "\033[0m\n");
    }
}

/* ASCII text in a field of `width` characters, and a space. */
static void put_field(ry_buffer *out, const char *text, uint32_t width)
{
    size_t n = strlen(text);
    if (n > width) n = width;
    ry_buffer_put(out, text, n);
    for (; n <= width; n++) ry_buffer_text(out, " ");
}

static void put_titles(ry_buffer *out, const ry_canvas *cv, const band *b)
{
    ry_buffer_text(out, "\033[2m");
    for (uint32_t i = b->first; i < b->first + b->n; i++) {
        ry_caption w = {0};
        ry_cell_title(cv, i, &w);
        put_field(out, w.text, b->side);
    }
    ry_buffer_text(out, "\033[0m\n");
}

static void put_captions(ry_buffer *out, ry_canvas *cv, const ry_table *t, uint32_t row,
                         const band *b)
{
    for (uint32_t line = 0; line < t->n_lines; line++) {
        int is_empty = 1;
        const size_t before = out->size;
        for (uint32_t i = b->first; i < b->first + b->n; i++) {
            ry_caption w = {0};
            t->caption(cv, t, row, ry_use_cell(cv, i), line, &w);
            put_field(out, w.text, b->side);
            if (w.n > 0) is_empty = 0;
        }
        if (is_empty)
            out->size = before;
        else
            ry_buffer_text(out, "\n");
    }
}

static renyi_status put_band(ry_buffer *out, ry_canvas *cv, const ry_table *t, uint32_t row,
                             const band *b, renyi_error *err)
{
    ry_drawing *d = cv->drawing;
    uint8_t *rgb = NULL;
    uint32_t width, height;
    d->n_marks = d->n_boxes = 0; /* starts again, with the same bitmaps */
    d->width = b->n * (b->side + 1.0) - 1;
    d->height = b->side;
    cv->cell = b->side;
    for (uint32_t i = 0; i < b->n; i++) {
        const double x = i * (b->side + 1.0);
        ry_draw_cell(cv, t, row, b->first + i, (ry_box){x, 0, x + b->side, b->side});
    }
    if (d->failed) return ry_fail_nomem(err, sizeof *d);
    RY_TRY(ry_drawing_pixels(d, 1, &rgb, &width, &height, err));
    put_titles(out, cv, b);
    put_pixels(out, b, rgb, width, height);
    ry_free(d->al, rgb);
    put_captions(out, cv, t, row, b);
    ry_use_square(cv, 0);
    return RENYI_OK;
}

/* A whole number of pixels per patch, if the terminal is wide enough. */
static uint32_t side_of(const ry_canvas *cv, uint32_t columns)
{
    const uint32_t grid = cv->r->photo.grid;
    uint32_t wide = (columns + 1) / (cv->tiles ? cv->tiles->across : cv->r->n_layers);
    wide = wide > 0 ? wide - 1 : 0;
    if (wide > MAX_SIDE) wide = MAX_SIDE;
    if (wide >= grid) return wide / grid * grid;
    return grid <= columns ? grid : columns;
}

static void put_answer(ry_buffer *out, const ry_canvas *cv, uint32_t row)
{
    const char *label = row ? cv->r->rows[row - 1].label : "unpruned";
    const renyi_viz_answer *a = row ? &cv->r->rows[row - 1].answer : &cv->r->dense;
    ry_caption w = {0};
    ry_buffer_text(out, "  ");
    ry_put_clean(out, label);
    ry_buffer_text(out, ": ");
    if (cv->tiles) {
        ry_tokens_caption(cv, row, &w);
        ry_buffer_text(out, w.text);
        ry_buffer_text(out, ", ");
        w = (ry_caption){0};
    }
    if (a->n_top > 0) {
        ry_put_clean(out, a->top[0].name);
        ry_caption_add(&w, " ");
        ry_caption_number(&w, 100 * (double)a->top[0].probability, 1);
        ry_caption_add(&w, " %%, ");
    }
    ry_caption_macs(&w, a->macs);
    if (a->ms == a->ms) { /* not NaN */
        ry_caption_add(&w, ", ");
        ry_caption_number(&w, a->ms, 1);
        ry_caption_add(&w, " ms");
    }
    ry_buffer_text(out, w.text);
    ry_buffer_text(out, "\n");
}

static renyi_status put_table(ry_buffer *out, ry_canvas *cv, const ry_table *t, uint32_t columns,
                              renyi_error *err)
{
    const uint32_t side = side_of(cv, columns), in_band = (columns + 1) / (side + 1);
    ry_buffer_text(out, "\n\033[1m");
    ry_buffer_text(out, t->title.text);
    ry_buffer_text(out, "\033[0m\n");
    for (uint32_t row = 0; row < t->n_rows; row++) {
        ry_caption name = {0};
        t->name(cv, t, row, &name);
        ry_buffer_text(out, "\n");
        ry_put_clean(out, name.text);
        ry_buffer_text(out, "\n");
        for (uint32_t i = 0; i < ry_n_cells(cv);) {
            const uint32_t left = ry_line_end(cv, i) - i;
            const band b = {i, left < in_band ? left : in_band, side};
            RY_TRY(put_band(out, cv, t, row, &b, err));
            i += b.n;
        }
    }
    return RENYI_OK;
}

static renyi_status put_result(ry_buffer *out, ry_canvas *cv, uint32_t columns, renyi_error *err)
{
    ry_table tables[RY_MAX_TABLES];
    ry_canvas_prepare(cv);
    if (cv->drawing->failed) return ry_fail_nomem(err, sizeof *cv->drawing);
    ry_buffer_text(out, "\033[1m");
    ry_put_clean(out, cv->r->photo.name ? cv->r->photo.name : "photo");
    ry_buffer_text(out, "\033[0m\n");
    for (uint32_t i = 0; i <= cv->r->n_rows; i++) put_answer(out, cv, i);
    const int n = ry_tables_of(cv, tables);
    for (int i = 0; i < n; i++) RY_TRY(put_table(out, cv, &tables[i], columns, err));
    return RENYI_OK;
}

static renyi_status put_blocks(ry_buffer *out, const ry_figure *f, uint32_t columns,
                               renyi_error *err)
{
    renyi_status status = RENYI_OK;
    for (size_t i = 0; i < f->n && status == RENYI_OK; i++) {
        ry_drawing d;
        RY_TRY(ry_figure_empty(&d, f, err));
        ry_canvas cv = {.drawing = &d, .opt = &f->opt, .r = f->results[i], .is_terse = 1};
        cv.ink = ry_inks_of(1);
        cv.tiles = ry_figure_tiles(f, i);
        if (i > 0) ry_buffer_text(out, "\n");
        status = put_result(out, &cv, columns, err);
        ry_canvas_free(&cv);
        ry_drawing_free(&d);
    }
    return status;
}

renyi_status renyi_figure_terminal(renyi_figure_file *out, const renyi_viz_result *const *results,
                                   size_t n_results, const renyi_figure_options *opt,
                                   renyi_terminal terminal, uint32_t columns, renyi_error *err)
{
    ry_figure f;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_figure_terminal: NULL argument");
    memset(out, 0, sizeof *out);
    if (columns == 0) columns = 80;
    if (columns < MIN_COLUMNS || columns > MAX_COLUMNS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "terminal: %u columns; allowed: %d to %d", columns,
                       MIN_COLUMNS, MAX_COLUMNS);
    if (terminal != RENYI_TERMINAL_BLOCKS && terminal != RENYI_TERMINAL_KITTY &&
        terminal != RENYI_TERMINAL_ITERM2)
        return ry_fail(err, RENYI_ERR_ARG, -1, "terminal: there is no kind %d", (int)terminal);
    RY_TRY(ry_figure_check(&f, results, n_results, opt, err));
    ry_buffer bytes = {.al = &f.opt.allocator};
    const renyi_status status = terminal == RENYI_TERMINAL_BLOCKS
                                    ? put_blocks(&bytes, &f, columns, err)
                                    : put_image(&bytes, &f, terminal, columns, err);
    return ry_figure_finish(out, &bytes, status, err);
}
