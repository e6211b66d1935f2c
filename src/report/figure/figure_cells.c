/* figure_cells.c - one cell of a figure: what is kept, what was merged, what scores high; and the
 * colour maps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/figure_parts.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- colour maps --------------------------------------------------------------------------- */

enum { STOPS = 33 };

/* A path through CIELAB (violet, blue, teal, green, yellow) on which lightness rises all the way,
 * cut into 32 steps of equal length: equal differences of a score look equally large, also in
 * grey and to people who see few colours. */
static const uint8_t even[STOPS][3] = {
    {40, 20, 83},    {49, 30, 101},  {55, 43, 119},   {56, 57, 133},   {53, 69, 144},
    {49, 80, 151},   {43, 90, 157},  {36, 99, 161},   {28, 108, 164},  {20, 116, 165},
    {13, 124, 165},  {6, 131, 165},  {1, 138, 163},   {0, 146, 162},   {5, 153, 160},
    {18, 160, 158},  {30, 167, 155}, {42, 174, 152},  {56, 181, 148},  {70, 188, 143},
    {85, 194, 137},  {99, 199, 131}, {112, 204, 125}, {126, 209, 118}, {139, 214, 111},
    {153, 218, 104}, {168, 221, 98}, {182, 225, 91},  {196, 228, 84},  {210, 232, 77},
    {225, 236, 71},  {241, 240, 66}, {255, 245, 62},
};

/* The same from blue over light grey to red. */
static const uint8_t red_blue[STOPS][3] = {
    {0, 66, 163},    {0, 77, 172},    {0, 88, 180},    {0, 99, 189},    {2, 111, 197},
    {34, 122, 203},  {57, 133, 208},  {75, 143, 212},  {92, 153, 216},  {107, 164, 219},
    {123, 173, 222}, {140, 183, 224}, {156, 192, 225}, {171, 200, 226}, {186, 207, 224},
    {199, 208, 218}, {208, 205, 208}, {214, 199, 196}, {219, 193, 184}, {223, 185, 172},
    {227, 178, 160}, {229, 170, 148}, {230, 161, 136}, {231, 152, 124}, {230, 141, 113},
    {228, 130, 102}, {225, 118, 92},  {222, 105, 81},  {217, 91, 71},   {208, 75, 59},
    {192, 59, 47},   {174, 43, 37},   {157, 27, 28},
};

void renyi_colour(renyi_colours map, double t, uint8_t rgb[3])
{
    const uint8_t(*stops)[3] = map == RENYI_COLOURS_RED_BLUE ? red_blue : even;
    const double at = t > 0 ? (t < 1 ? t : 1) * (STOPS - 1) : 0; /* NaN: the lower end */
    const int i = at < STOPS - 1 ? (int)at : STOPS - 2;
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)lround(stops[i][c] + (stops[i + 1][c] - stops[i][c]) * (at - i));
}

/* ---- patches ------------------------------------------------------------------------------- */

static const double MIN_LINED = 4; /* smallest side of a patch that gets lines, units */

static ry_box patch_box(const ry_canvas *cv, ry_box place, uint32_t patch)
{
    const uint32_t grid = cv->r->photo.grid;
    const double side = (place.x1 - place.x0) / grid;
    const double x = place.x0 + side * (patch % grid), y = place.y0 + side * (patch / grid);
    return (ry_box){x, y, x + side, y + side};
}

/* Adds all patches with cv->level == wanted to the open mark. Neighbours in a row become one box:
 * fewer edges, and no seams. */
static void add_level(ry_canvas *cv, ry_box place, uint8_t wanted)
{
    const uint32_t grid = cv->r->photo.grid;
    for (uint32_t row = 0; row < grid; row++)
        for (uint32_t column = 0; column < grid; column++) {
            const uint8_t *line = cv->level + (size_t)row * grid;
            if (line[column] != wanted) continue;
            const uint32_t first = column;
            while (column + 1 < grid && line[column + 1] == wanted) column++;
            const ry_box a = patch_box(cv, place, row * grid + first);
            const ry_box b = patch_box(cv, place, row * grid + column);
            ry_add_box(cv->drawing, a.x0, a.y0, b.x1, b.y1);
        }
}

static size_t count_level(const ry_canvas *cv, uint8_t wanted)
{
    size_t n = 0;
    for (uint32_t i = 0; i < cv->r->n_patches; i++) n += cv->level[i] == wanted;
    return n;
}

/* Draws a diagonal through every patch with cv->level == wanted. */
static void hatch_level(ry_canvas *cv, ry_box place, uint8_t wanted, ry_ink ink)
{
    if (place.x1 - place.x0 < MIN_LINED * cv->r->photo.grid) return;
    ry_open_lines(cv->drawing, ink, fmax(cv->cell / 190, 0.5));
    for (uint32_t i = 0; i < cv->r->n_patches; i++) {
        const ry_box b = patch_box(cv, place, i);
        if (cv->level[i] == wanted) ry_add_box(cv->drawing, b.x0, b.y1, b.x1, b.y0);
    }
}

/* ---- borders between tokens ---------------------------------------------------------------- */

/* Outside the grid it is RENYI_NONE. */
static uint32_t key_at(const ry_canvas *cv, uint32_t row, uint32_t column)
{
    const uint32_t grid = cv->r->photo.grid;
    return row < grid && column < grid ? cv->key[(size_t)row * grid + column] : RENYI_NONE;
}

/* Adds the edges on one grid line, horizontal (is_across) or vertical. Neighbouring edges become
 * one segment. */
static void add_edges(ry_canvas *cv, ry_box place, uint32_t line, int is_across)
{
    const uint32_t grid = cv->r->photo.grid;
    const double side = (place.x1 - place.x0) / grid, at = side * line;
    uint32_t first = 0;
    int is_open = 0;
    for (uint32_t i = 0; i <= grid; i++) {
        int is_edge = 0;
        if (i < grid) /* line - 1 wraps around on the first line: outside the grid */
            is_edge = is_across ? key_at(cv, line - 1, i) != key_at(cv, line, i)
                                : key_at(cv, i, line - 1) != key_at(cv, i, line);
        if (is_edge && !is_open) first = i;
        if (!is_edge && is_open) {
            const double a = side * first, b = side * i;
            if (is_across)
                ry_add_box(cv->drawing, place.x0 + a, place.y0 + at, place.x0 + b, place.y0 + at);
            else
                ry_add_box(cv->drawing, place.x0 + at, place.y0 + a, place.x0 + at, place.y0 + b);
        }
        is_open = is_edge;
    }
}

/* Draws lines wherever cv->key changes, if patches are large enough. */
static void draw_borders(ry_canvas *cv, ry_box place, ry_ink ink, double width)
{
    if (place.x1 - place.x0 < MIN_LINED * cv->r->photo.grid) return;
    ry_open_lines(cv->drawing, ink, width);
    for (uint32_t line = 0; line <= cv->r->photo.grid; line++) {
        add_edges(cv, place, line, 1);
        add_edges(cv, place, line, 0);
    }
}

/* Outlines the patches with cv->key == 0 in orange with dark edges, visible on any image. */
static void draw_ring(ry_canvas *cv, ry_box place)
{
    const double side = (place.x1 - place.x0) / cv->r->photo.grid;
    if (side < MIN_LINED) { /* too small for lines */
        for (uint32_t i = 0; i < cv->r->n_patches; i++) cv->level[i] = cv->key[i] == 0;
        ry_open_fill(cv->drawing, (ry_ink){255, 154, 31, 120});
        add_level(cv, place, 1);
        return;
    }
    const double width = fmax(side * 0.13, 0.8);
    draw_borders(cv, place, (ry_ink){20, 16, 8, 150}, 2.2 * width);
    draw_borders(cv, place, (ry_ink){255, 154, 31, 255}, width);
}

void ry_cell_ring(ry_canvas *cv, uint32_t patch, ry_box place)
{
    for (uint32_t i = 0; i < cv->r->n_patches; i++) cv->key[i] = i == patch ? 0 : RENYI_NONE;
    draw_ring(cv, place);
}

/* ---- what is kept -------------------------------------------------------------------------- */

void ry_cell_overlay(ry_canvas *cv, const renyi_viz_step *step, ry_box place)
{
    enum { GONE, HERE, BORDER };
    for (uint32_t i = 0; i < cv->r->n_patches; i++) {
        const int is_merged = step->state[i] == RENYI_VIZ_MERGED;
        cv->level[i] = !ry_is_inside(cv, i)                            ? BORDER
                       : step->state[i] == RENYI_VIZ_KEPT || is_merged ? HERE
                                                                       : GONE;
        cv->key[i] = is_merged ? step->group[i] : RENYI_NONE;
    }
    const size_t here = count_level(cv, HERE);
    ry_open_bitmap(cv->drawing, here == cv->r->n_patches ? cv->image : cv->gone, place);
    hatch_level(cv, place, GONE, cv->hatch); /* visible where the image has that colour */
    if (here > 0 && here < cv->r->n_patches) {
        ry_open_bitmap(cv->drawing, cv->image, place);
        add_level(cv, place, HERE);
    }
    if (step->n_merged > 0)
        draw_borders(cv, place, (ry_ink){255, 255, 255, 175}, fmax(cv->cell / 190, 0.5));
    if (step->n_rescued == 0) return;
    for (uint32_t i = 0; i < cv->r->n_patches; i++)
        cv->key[i] = step->rescued[i] && cv->level[i] == HERE ? 0 : RENYI_NONE;
    draw_ring(cv, place);
}

/* ---- what was merged ----------------------------------------------------------------------- */

typedef struct colour_sum {
    uint64_t rgb[3], n;
} colour_sum;

static void add_patch(colour_sum *to, const renyi_viz_photo *image, uint32_t patch)
{
    const size_t row = (size_t)(patch / image->grid) * image->patch;
    const size_t column = (size_t)(patch % image->grid) * image->patch;
    for (size_t y = row; y < row + image->patch; y++)
        for (size_t x = column; x < column + image->patch; x++)
            for (size_t c = 0; c < 3; c++) to->rgb[c] += image->rgb[(y * image->size + x) * 3 + c];
    to->n += (uint64_t)image->patch * image->patch;
}

void ry_cell_mosaic(ry_canvas *cv, const renyi_viz_step *step, ry_box place)
{
    const uint32_t n = cv->r->n_patches;
    colour_sum *sums = ry_calloc(cv->drawing->al, n, sizeof *sums);
    if (!sums) {
        cv->drawing->failed = 1;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        cv->key[i] = step->group[i];
        cv->level[i] = step->group[i] < n;
        if (step->group[i] < n) add_patch(&sums[step->group[i]], &cv->r->photo, i);
    }
    ry_draw_box(cv->drawing, cv->ink.open, place.x0, place.y0, place.x1, place.y1);
    hatch_level(cv, place, 0, cv->ink.rule);
    for (uint32_t g = 0; g < n; g++) {
        const colour_sum *m = &sums[g];
        if (!m->n) continue;
        ry_open_fill(cv->drawing, (ry_ink){(uint8_t)((m->rgb[0] + m->n / 2) / m->n),
                                           (uint8_t)((m->rgb[1] + m->n / 2) / m->n),
                                           (uint8_t)((m->rgb[2] + m->n / 2) / m->n), 255});
        for (uint32_t i = 0; i < n; i++) cv->level[i] = step->group[i] == g;
        add_level(cv, place, 1);
    }
    ry_free(cv->drawing->al, sums);
    draw_borders(cv, place, cv->ink.border, fmax(cv->cell / 190, 0.5));
}

/* ---- what scores high ---------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void ry_percentiles_of(ry_canvas *cv, size_t n, double *low, double *high)
{
    *low = *high = 0;
    if (n == 0) return;
    qsort(cv->sorted, n, sizeof *cv->sorted, by_value);
    *low = (double)cv->sorted[(n - 1) / 100];
    *high = (double)cv->sorted[n - 1 - (n - 1) / 100];
}

void ry_percentiles(ry_canvas *cv, const float *score, double *low, double *high)
{
    size_t n = 0;
    for (uint32_t i = 0; i < cv->r->n_patches; i++)
        if (isfinite(score[i])) cv->sorted[n++] = score[i];
    ry_percentiles_of(cv, n, low, high);
}

/* Computes the level of every patch, then fills one area for each level that occurs. Level 0 is for
 * scores that are not finite. */
void ry_cell_heat(ry_canvas *cv, const float *score, double low, double high, ry_box place)
{
    enum { TOP = 255 };
    uint8_t occurs[TOP + 1] = {0};
    const double span = high - low;
    for (uint32_t i = 0; i < cv->r->n_patches; i++) {
        const double t = span > 0 ? ((double)score[i] - low) / span : 0.5;
        cv->level[i] = 0;
        if (isfinite(score[i]))
            cv->level[i] = (uint8_t)(1 + lround(fmin(fmax(t, 0), 1) * (TOP - 1)));
        occurs[cv->level[i]] = 1;
    }
    ry_open_bitmap(cv->drawing, cv->grey, place);
    for (int level = 1; level <= TOP; level++) {
        uint8_t rgb[3];
        if (!occurs[level]) continue;
        renyi_colour(cv->opt->colours, (level - 1) / (double)(TOP - 1), rgb);
        ry_open_fill(cv->drawing,
                     (ry_ink){rgb[0], rgb[1], rgb[2], (uint8_t)lround(cv->opt->opacity * 255)});
        add_level(cv, place, (uint8_t)level);
    }
}
