/* figure_squares.c - what the cells of a row are: the layers of a result, or the base and the tiles
 * of a LLaVA-NeXT, which stand side by side as one picture without its border.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/figure_parts.h"

#include "base/status.h"

#include <math.h>

static const double TILE_GAP = 2; /* units, between tiles */

/* ---- checks -------------------------------------------------------------------------------- */

static int is_like(const renyi_viz_result *r, const renyi_viz_result *base)
{
    return r && r->photo.rgb && r->photo.size == base->photo.size &&
           r->photo.grid == base->photo.grid && r->photo.patch == base->photo.patch &&
           r->n_patches == base->n_patches && r->n_layers == 1 && r->n_rows == base->n_rows &&
           r->n_metrics == base->n_metrics && r->n_norms == base->n_norms;
}

static renyi_status check_grid(const renyi_viz_tiles *t, uint32_t grid, renyi_error *err)
{
    const uint32_t columns = t->across * grid, lines = t->down * grid;
    if (t->first_column <= columns && t->n_columns <= columns - t->first_column &&
        t->first_line <= lines && t->n_lines <= lines - t->first_line)
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "figure: columns %u + %u and lines %u + %u of %u x %u patches in tiles",
                   t->first_column, t->n_columns, t->first_line, t->n_lines, columns, lines);
}

renyi_status ry_tiles_check(const renyi_viz_tiles *t, const renyi_viz_result *base,
                            renyi_error *err)
{
    if (t->struct_size != sizeof *t)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_viz_tiles: struct_size %u; set it to %zu",
                       t->struct_size, sizeof *t);
    if (!t->across || !t->down || t->across > RENYI_VIZ_MAX_TILES ||
        t->down > RENYI_VIZ_MAX_TILES || t->across * t->down > RENYI_VIZ_MAX_TILES || !t->squares ||
        !t->n_tokens || !t->n_newlines)
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure: %u x %u tiles, or a list of them is NULL",
                       t->across, t->down);
    RY_TRY(check_grid(t, base->photo.grid, err));
    if (base->n_layers != 1 || base->attention)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "figure: a base of %u layers; a figure with tiles has one, and no attention",
                       base->n_layers);
    for (uint32_t i = 0; i < t->across * t->down; i++)
        if (!is_like(t->squares[i], base))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "figure: tile %u has other patches, metrics or policies than the base",
                           i);
    return RENYI_OK;
}

/* ---- cells --------------------------------------------------------------------------------- */

uint32_t ry_n_cells(const ry_canvas *cv)
{
    return cv->tiles ? 1 + cv->tiles->across * cv->tiles->down : cv->r->n_layers;
}

uint32_t ry_line_end(const ry_canvas *cv, uint32_t cell)
{
    if (!cv->tiles) return cv->r->n_layers;
    return cell ? cell + cv->tiles->across - (cell - 1) % cv->tiles->across : 1;
}

void ry_use_square(ry_canvas *cv, uint32_t square)
{
    const ry_square *s = &cv->squares[square];
    cv->square = square;
    cv->r = s->r;
    cv->image = s->image;
    cv->grey = s->grey;
    cv->gone = s->gone;
}

uint32_t ry_use_cell(ry_canvas *cv, uint32_t cell)
{
    if (!cv->tiles) return cell;
    ry_use_square(cv, cell);
    return 0;
}

void ry_cell_title(const ry_canvas *cv, uint32_t cell, ry_caption *out)
{
    if (!cv->tiles)
        ry_caption_add(out, "layer %u", cv->r->layers[cell]);
    else if (!cell)
        ry_caption_add(out, "base");
    else
        ry_caption_add(out, "tile %u", cell);
}

void ry_tokens_caption(const ry_canvas *cv, uint32_t row, ry_caption *out)
{
    const renyi_viz_tiles *t = cv->tiles;
    ry_caption_add(out, "%u", t->n_tokens[row]);
    if (row) ry_caption_add(out, " of %u", t->n_tokens[0]);
    ry_caption_add(out, " tokens");
    if (t->n_newlines[row])
        ry_caption_add(out, " (%u newline%s)", t->n_newlines[row],
                       t->n_newlines[row] > 1 ? "s" : "");
}

/* ---- the border ---------------------------------------------------------------------------- */

/* Patches [from, end) of a square without its border. */
typedef struct inside {
    uint32_t left, right, top, bottom;
} inside;

static void clip(uint32_t *from, uint32_t *end, uint32_t first, uint32_t n, uint32_t at,
                 uint32_t grid)
{
    *from = first > at ? first - at : 0;
    *end = first + n > at ? first + n - at : 0;
    if (*end > grid) *end = grid;
    if (*from > *end) *from = *end;
}

static inside inside_of(const ry_canvas *cv)
{
    const renyi_viz_tiles *t = cv->tiles;
    const uint32_t grid = cv->r->photo.grid;
    inside in = {0, grid, 0, grid};
    if (!cv->square) return in;
    const uint32_t column = (cv->square - 1) % t->across, line = (cv->square - 1) / t->across;
    clip(&in.left, &in.right, t->first_column, t->n_columns, column * grid, grid);
    clip(&in.top, &in.bottom, t->first_line, t->n_lines, line * grid, grid);
    return in;
}

uint32_t ry_n_inside(const ry_canvas *cv)
{
    const inside in = inside_of(cv);
    return (in.right - in.left) * (in.bottom - in.top);
}

int ry_is_inside(const ry_canvas *cv, uint32_t patch)
{
    const inside in = inside_of(cv);
    const uint32_t x = patch % cv->r->photo.grid, y = patch / cv->r->photo.grid;
    return x >= in.left && x < in.right && y >= in.top && y < in.bottom;
}

/* Covers the border: it is no part of what the language model reads. */
static void cover_border(ry_canvas *cv, ry_box place)
{
    const inside in = inside_of(cv);
    const double side = (place.x1 - place.x0) / cv->r->photo.grid;
    const double x0 = place.x0 + side * in.left, x1 = place.x0 + side * in.right;
    const double y0 = place.y0 + side * in.top, y1 = place.y0 + side * in.bottom;
    const ry_box boxes[] = {{place.x0, place.y0, x0, place.y1},
                            {x1, place.y0, place.x1, place.y1},
                            {x0, place.y0, x1, y0},
                            {x0, y1, x1, place.y1}};
    for (int i = 0; i < 4; i++)
        if (boxes[i].x1 > boxes[i].x0 && boxes[i].y1 > boxes[i].y0) ry_draw_border(cv, boxes[i]);
}

void ry_draw_border(ry_canvas *cv, ry_box box)
{
    ry_draw_box(cv->drawing, cv->ink.open, box.x0, box.y0, box.x1, box.y1);
    ry_draw_outline(cv->drawing, cv->ink.rule, 1, box);
}

void ry_draw_cell(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t cell, ry_box place)
{
    const uint32_t layer = ry_use_cell(cv, cell);
    t->cell(cv, t, row, layer, place);
    if (cv->tiles && ry_n_inside(cv) < cv->r->n_patches) cover_border(cv, place);
}

/* ---- scores -------------------------------------------------------------------------------- */

static const renyi_viz_map *map_of(const renyi_viz_result *r, int is_norm, uint32_t index,
                                   uint32_t layer)
{
    return &(is_norm ? r->norms : r->metrics)[index].maps[layer];
}

/* Collects the finite scores of the square in use, without its border; returns how many there are
 * now. */
static size_t collect(ry_canvas *cv, const float *score, size_t n)
{
    for (uint32_t i = 0; i < cv->r->n_patches; i++)
        if (ry_is_inside(cv, i) && isfinite(score[i])) cv->sorted[n++] = score[i];
    return n;
}

int ry_square_range(ry_canvas *cv, int is_norm, uint32_t index, uint32_t layer, double *low,
                    double *high)
{
    const renyi_viz_map *map = map_of(cv->r, is_norm, index, layer);
    const uint32_t used = cv->square;
    size_t n = 0;
    *low = (double)map->low;
    *high = (double)map->high;
    if (!used) return collect(cv, map->score, 0) > 0;
    for (uint32_t k = 1; k < ry_n_cells(cv); k++) {
        ry_use_square(cv, k);
        n = collect(cv, map_of(cv->r, is_norm, index, layer)->score, n);
    }
    ry_use_square(cv, used);
    ry_percentiles_of(cv, n, low, high);
    return n > 0;
}

/* ---- places in a figure -------------------------------------------------------------------- */

static double side_by_side(uint32_t n, double cell) { return n * (cell + TILE_GAP) - TILE_GAP; }

double ry_tiles_width(const renyi_viz_tiles *t, double cell)
{
    return 2 * (cell + RY_GAP) + side_by_side(t->across, cell);
}

/* A picture of several tiles has a line of text for each line of tiles. */
static uint32_t tile_lines(const ry_canvas *cv, const ry_table *t)
{
    return t->n_lines > 1 && ry_n_cells(cv) > 2 ? cv->tiles->down : 0;
}

double ry_row_height(const ry_canvas *cv, const ry_table *t)
{
    if (!cv->tiles) return cv->cell + t->n_lines * RY_LINE;
    return side_by_side(cv->tiles->down, cv->cell) + (1 + tile_lines(cv, t)) * RY_LINE;
}

ry_box ry_cell_place(const ry_canvas *cv, uint32_t cell)
{
    double x = ry_column_x(cv, cell), y = cv->y;
    if (cv->tiles && cell) {
        x = ry_column_x(cv, 1) + (cell - 1) % cv->tiles->across * (cv->cell + TILE_GAP);
        y += (cell - 1) / cv->tiles->across * (cv->cell + TILE_GAP);
    }
    return (ry_box){x, y, x + cv->cell, y + cv->cell};
}

/* ---- texts --------------------------------------------------------------------------------- */

/* The middle of all tiles. */
static double tiles_middle(const ry_canvas *cv)
{
    return ry_column_x(cv, 1) + side_by_side(cv->tiles->across, cv->cell) / 2;
}

static void draw_centred(ry_canvas *cv, ry_face face, ry_ink ink, double x, double y,
                         const char *text, double most)
{
    ry_draw_text(cv->drawing, x, y, face, RY_CENTRE, ink, text, most);
}

void ry_draw_titles(ry_canvas *cv)
{
    const uint32_t n = cv->tiles ? 1 : cv->r->n_layers;
    ry_caption all = {0};
    for (uint32_t i = 0; i < n; i++) {
        ry_caption w = {0};
        ry_cell_title(cv, i, &w);
        draw_centred(cv, RY_FACE_STRONG, cv->ink.text, ry_column_x(cv, i) + cv->cell / 2, cv->y,
                     w.text, cv->cell);
    }
    if (!cv->tiles) return;
    ry_caption_add(&all, "%u \xC3\x97 %u tile%s", cv->tiles->across, cv->tiles->down,
                   ry_n_cells(cv) > 2 ? "s" : "");
    draw_centred(cv, RY_FACE_STRONG, cv->ink.text, tiles_middle(cv), cv->y, all.text,
                 side_by_side(cv->tiles->across, cv->cell));
}

static void draw_caption(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t cell,
                         uint32_t line, double y)
{
    const uint32_t layer = ry_use_cell(cv, cell);
    const ry_ink ink = line + 1 < t->n_lines ? cv->ink.text : cv->ink.faint;
    ry_caption w = {0};
    t->caption(cv, t, row, layer, line, &w);
    draw_centred(cv, RY_FACE_SMALL, ink, ry_cell_place(cv, cell).x0 + cv->cell / 2, y, w.text,
                 cv->cell + RY_GAP - 2);
}

/* Below the base what it has; below the tiles what all of them have, and then each of them, in the
 * order of the picture. */
static void draw_tile_captions(ry_canvas *cv, const ry_table *t, uint32_t row)
{
    const double most = fmax(side_by_side(cv->tiles->across, cv->cell), cv->cell) + RY_GAP - 2;
    double y = cv->y + side_by_side(cv->tiles->down, cv->cell) + RY_LINE;
    ry_caption w = {0};
    draw_caption(cv, t, row, 0, 0, cv->y + cv->cell + RY_LINE);
    ry_use_square(cv, 1);
    t->caption(cv, t, row, 0, t->n_lines - 1, &w);
    draw_centred(cv, RY_FACE_SMALL, t->n_lines > 1 ? cv->ink.text : cv->ink.faint, tiles_middle(cv),
                 y, w.text, most);
    for (uint32_t line = 0, cell = 1; line < tile_lines(cv, t); line++) {
        y += RY_LINE;
        for (uint32_t i = 0; i < cv->tiles->across; i++, cell++) {
            w = (ry_caption){0};
            ry_use_square(cv, cell);
            t->caption(cv, t, row, 0, 0, &w);
            draw_centred(cv, RY_FACE_SMALL, cv->ink.faint,
                         ry_cell_place(cv, cell).x0 + cv->cell / 2, y, w.text, cv->cell);
        }
    }
    ry_use_square(cv, 0);
}

void ry_draw_captions(ry_canvas *cv, const ry_table *t, uint32_t row)
{
    if (cv->tiles) {
        draw_tile_captions(cv, t, row);
        return;
    }
    for (uint32_t i = 0; i < cv->r->n_layers; i++)
        for (uint32_t line = 0; line < t->n_lines; line++)
            draw_caption(cv, t, row, i, line, cv->y + cv->cell + (line + 1) * RY_LINE);
}
