/* cells.c - one picture of a figure: what is kept, what was joined, what scores high.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "report/figure/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_LINED = 4 }; /* units of a patch that has room for lines round it */

static ry_rect patch_box(const ry_draw *d, ry_rect place, uint32_t patch)
{
    const uint32_t grid = d->r->photo.grid;
    const double side = (place.x1 - place.x0) / grid;
    const double x = place.x0 + side * (patch % grid), y = place.y0 + side * (patch / grid);
    return (ry_rect){x, y, x + side, y + side};
}

/* Adds boxes of all patches with d->level == wanted to the open mark, neighbours of a row as one:
 * fewer edges, and no seams. */
static void add_level(ry_draw *d, ry_rect place, uint8_t wanted)
{
    const uint32_t grid = d->r->photo.grid;
    for (uint32_t row = 0; row < grid; row++)
        for (uint32_t column = 0; column < grid; column++) {
            const uint8_t *line = d->level + (size_t)row * grid;
            if (line[column] != wanted) continue;
            const uint32_t first = column;
            while (column + 1 < grid && line[column + 1] == wanted) column++;
            const ry_rect a = patch_box(d, place, row * grid + first);
            const ry_rect b = patch_box(d, place, row * grid + column);
            ry_sheet_rect(d->s, a.x0, a.y0, b.x1, b.y1);
        }
}

static size_t count_level(const ry_draw *d, uint8_t wanted)
{
    size_t n = 0;
    for (uint32_t i = 0; i < d->r->n_patches; i++) n += d->level[i] == wanted;
    return n;
}

/* A stroke through every patch with d->level == wanted, from corner to corner. */
static void hatch_level(ry_draw *d, ry_rect place, uint8_t wanted, ry_ink ink)
{
    if (place.x1 - place.x0 < MIN_LINED * d->r->photo.grid) return;
    ry_sheet_lines(d->s, ink, fmax(d->cell / 190, 0.5));
    for (uint32_t i = 0; i < d->r->n_patches; i++) {
        const ry_rect b = patch_box(d, place, i);
        if (d->level[i] == wanted) ry_sheet_rect(d->s, b.x0, b.y1, b.x1, b.y0);
    }
}

/* ---- borders between tokens ---------------------------------------------------------------- */

/* The key on the other side of an edge: that of no patch outside the picture. */
static uint32_t key_at(const ry_draw *d, uint32_t row, uint32_t column)
{
    const uint32_t grid = d->r->photo.grid;
    return row < grid && column < grid ? d->key[(size_t)row * grid + column] : RENYI_NONE;
}

/* One line of edges, across (row fixed) or down (column fixed), runs of edges as one. */
static void add_edges(ry_draw *d, ry_rect place, uint32_t line, int is_across)
{
    const uint32_t grid = d->r->photo.grid;
    const double side = (place.x1 - place.x0) / grid, at = side * line;
    uint32_t first = 0;
    int is_open = 0;
    for (uint32_t i = 0; i <= grid; i++) {
        int is_edge = 0;
        if (i < grid) /* line - 1 of the first line is outside too: it wraps round */
            is_edge = is_across ? key_at(d, line - 1, i) != key_at(d, line, i)
                                : key_at(d, i, line - 1) != key_at(d, i, line);
        if (is_edge && !is_open) first = i;
        if (!is_edge && is_open) {
            const double a = side * first, b = side * i;
            if (is_across)
                ry_sheet_rect(d->s, place.x0 + a, place.y0 + at, place.x0 + b, place.y0 + at);
            else
                ry_sheet_rect(d->s, place.x0 + at, place.y0 + a, place.x0 + at, place.y0 + b);
        }
        is_open = is_edge;
    }
}

/* Lines wherever d->key changes, if there is room for them. */
static void draw_borders(ry_draw *d, ry_rect place, ry_ink ink, double width)
{
    if (place.x1 - place.x0 < MIN_LINED * d->r->photo.grid) return;
    ry_sheet_lines(d->s, ink, width);
    for (uint32_t line = 0; line <= d->r->photo.grid; line++) {
        add_edges(d, place, line, 1);
        add_edges(d, place, line, 0);
    }
}

/* Orange with dark edges: seen on any photo. */
static void draw_ring(ry_draw *d, ry_rect place)
{
    const double side = (place.x1 - place.x0) / d->r->photo.grid;
    if (side < MIN_LINED) { /* no room for lines */
        for (uint32_t i = 0; i < d->r->n_patches; i++) d->level[i] = d->key[i] == 0;
        ry_sheet_fill(d->s, (ry_ink){255, 154, 31, 120});
        add_level(d, place, 1);
        return;
    }
    const double width = fmax(side * 0.13, 0.8);
    draw_borders(d, place, (ry_ink){20, 16, 8, 150}, 2.2 * width);
    draw_borders(d, place, (ry_ink){255, 154, 31, 255}, width);
}

void ry_cell_ring(ry_draw *d, uint32_t patch, ry_rect place)
{
    for (uint32_t i = 0; i < d->r->n_patches; i++) d->key[i] = i == patch ? 0 : RENYI_NONE;
    draw_ring(d, place);
}

/* ---- what is kept -------------------------------------------------------------------------- */

void ry_cell_overlay(ry_draw *d, const renyi_viz_step *step, ry_rect place)
{
    enum { GONE, HERE };
    for (uint32_t i = 0; i < d->r->n_patches; i++) {
        const int is_merged = step->state[i] == RENYI_VIZ_MERGED;
        d->level[i] = step->state[i] == RENYI_VIZ_KEPT || is_merged ? HERE : GONE;
        d->key[i] = is_merged ? step->group[i] : RENYI_NONE;
    }
    const size_t here = count_level(d, HERE);
    ry_sheet_show(d->s, here == d->r->n_patches ? d->photo : d->gone, place);
    hatch_level(d, place, GONE, d->hatch); /* else not seen where the photo has that colour */
    if (here > 0 && here < d->r->n_patches) {
        ry_sheet_show(d->s, d->photo, place);
        add_level(d, place, HERE);
    }
    if (step->n_merged > 0)
        draw_borders(d, place, (ry_ink){255, 255, 255, 175}, fmax(d->cell / 190, 0.5));
    if (step->n_rescued == 0) return;
    for (uint32_t i = 0; i < d->r->n_patches; i++)
        d->key[i] = step->rescued[i] && d->level[i] == HERE ? 0 : RENYI_NONE;
    draw_ring(d, place);
}

/* ---- what was joined ----------------------------------------------------------------------- */

typedef struct sum {
    uint64_t rgb[3], n;
} sum;

static void add_patch(sum *to, const renyi_viz_photo *photo, uint32_t patch)
{
    const size_t row = (size_t)(patch / photo->grid) * photo->patch;
    const size_t column = (size_t)(patch % photo->grid) * photo->patch;
    for (size_t y = row; y < row + photo->patch; y++)
        for (size_t x = column; x < column + photo->patch; x++)
            for (size_t c = 0; c < 3; c++) to->rgb[c] += photo->rgb[(y * photo->size + x) * 3 + c];
    to->n += (uint64_t)photo->patch * photo->patch;
}

void ry_cell_mosaic(ry_draw *d, const renyi_viz_step *step, ry_rect place)
{
    const uint32_t n = d->r->n_patches;
    sum *sums = ry_calloc(d->s->al, n, sizeof *sums);
    if (!sums) {
        d->s->failed = 1;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        d->key[i] = step->group[i];
        d->level[i] = step->group[i] < n;
        if (step->group[i] < n) add_patch(&sums[step->group[i]], &d->r->photo, i);
    }
    ry_sheet_box(d->s, d->look.open, place.x0, place.y0, place.x1, place.y1);
    hatch_level(d, place, 0, d->look.rule);
    for (uint32_t g = 0; g < n; g++) {
        const sum *m = &sums[g];
        if (!m->n) continue;
        ry_sheet_fill(d->s, (ry_ink){(uint8_t)((m->rgb[0] + m->n / 2) / m->n),
                                     (uint8_t)((m->rgb[1] + m->n / 2) / m->n),
                                     (uint8_t)((m->rgb[2] + m->n / 2) / m->n), 255});
        for (uint32_t i = 0; i < n; i++) d->level[i] = step->group[i] == g;
        add_level(d, place, 1);
    }
    ry_free(d->s->al, sums);
    draw_borders(d, place, d->look.border, fmax(d->cell / 190, 0.5));
}

/* ---- what scores high ---------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void ry_percentiles(ry_draw *d, const float *score, double *low, double *high)
{
    size_t n = 0;
    for (uint32_t i = 0; i < d->r->n_patches; i++)
        if (isfinite(score[i])) d->sorted[n++] = score[i];
    *low = *high = 0;
    if (n == 0) return;
    qsort(d->sorted, n, sizeof *d->sorted, by_value);
    *low = (double)d->sorted[(n - 1) / 100];
    *high = (double)d->sorted[n - 1 - (n - 1) / 100];
}

/* Two passes: the level of every patch, then one area of boxes for each level that occurs. Level 0
 * is for scores that are not finite. */
void ry_cell_heat(ry_draw *d, const float *score, double low, double high, ry_rect place)
{
    enum { TOP = 255 };
    uint8_t occurs[TOP + 1] = {0};
    const double span = high - low;
    for (uint32_t i = 0; i < d->r->n_patches; i++) {
        const double t = span > 0 ? ((double)score[i] - low) / span : 0.5;
        d->level[i] = 0;
        if (isfinite(score[i]))
            d->level[i] = (uint8_t)(1 + lround(fmin(fmax(t, 0), 1) * (TOP - 1)));
        occurs[d->level[i]] = 1;
    }
    ry_sheet_show(d->s, d->grey, place);
    for (int level = 1; level <= TOP; level++) {
        uint8_t rgb[3];
        if (!occurs[level]) continue;
        renyi_colour(d->opt->colours, (level - 1) / (double)(TOP - 1), rgb);
        ry_sheet_fill(d->s,
                      (ry_ink){rgb[0], rgb[1], rgb[2], (uint8_t)lround(d->opt->opacity * 255)});
        add_level(d, place, (uint8_t)level);
    }
}
