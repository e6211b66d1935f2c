/* tile_grid.c - which grid of tiles an image gets, where it lies in it, and the pixels of base and
 * tiles. Sizes are computed in the double steps of the published Python, pixels are Pillow's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/tile_grid.h"

#include "base/status.h"
#include "image/fit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_SIDE (1u << 24) /* as in fit.c */

/* ---- sizes --------------------------------------------------------------------------------- */

uint32_t ry_tile_most_squares(const ry_tile_grids *g) { return ry_tile_most_rows(g, 1, 0); }

uint32_t ry_tile_most_rows(const ry_tile_grids *g, uint32_t each, int ends_lines)
{
    uint32_t most = each;
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t lines = ends_lines ? g->grid[i][1] * g->patches : 0;
        const uint32_t n = (1 + g->grid[i][0] * g->grid[i][1]) * each + lines;
        most = n > most ? n : most;
    }
    return most;
}

/* ---- the grid ------------------------------------------------------------------------------ */

static double smaller(double a, double b) { return a < b ? a : b; }

/* The grid that keeps most pixels of the image, which counts none twice; of those the one with the
 * least area left over; of those the first. */
static uint32_t best_grid(const ry_tile_grids *g, double width, double height)
{
    double most = 0.0, least_waste = INFINITY;
    uint32_t best = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const double w = (double)g->grid[i][0] * g->side, h = (double)g->grid[i][1] * g->side;
        const double scale = smaller(w / width, h / height);
        const double kept = smaller(trunc(width * scale) * trunc(height * scale), width * height);
        const double waste = w * h - kept;
        if (kept > most || (kept == most && waste < least_waste)) {
            most = kept;
            least_waste = waste;
            best = i;
        }
    }
    return best;
}

/* The image keeps its shape and fills the grid in one direction. */
static void place_pixels(ry_tile_plan *p, uint32_t side, double width, double height)
{
    const uint32_t grid_w = p->across * side, grid_h = p->down * side;
    const double scale_w = grid_w / width, scale_h = grid_h / height;
    p->width = grid_w;
    p->height = grid_h;
    if (scale_w < scale_h)
        p->height = (uint32_t)smaller(ceil(height * scale_w), grid_h);
    else
        p->width = (uint32_t)smaller(ceil(width * scale_h), grid_w);
    p->left = (grid_w - p->width) / 2;
    p->top = (grid_h - p->height) / 2;
}

/* int(round(x, 7)) of Python, or int(x) */
static uint32_t whole_patches(double x, int truncates)
{
    const double down = floor(x);
    return (uint32_t)(!truncates && down + 1.0 - x < 5e-8 ? down + 1.0 : down);
}

/* Equal borders on both sides are removed, counted in patches; a patch that holds a bit of the
 * image may go with them. */
static void place_patches(ry_tile_plan *p, const ry_tile_grids *g, double width, double height)
{
    const uint32_t columns = p->across * g->patches, lines = p->down * g->patches;
    p->first_column = p->first_line = 0;
    p->n_columns = columns;
    p->n_lines = lines;
    if (g->keeps_padding) return;
    if (width / height > (double)columns / (double)lines) {
        p->first_line = (lines - whole_patches(height * (columns / width), g->truncates)) / 2;
        p->n_lines = lines - 2 * p->first_line;
    } else {
        p->first_column = (columns - whole_patches(width * (lines / height), g->truncates)) / 2;
        p->n_columns = columns - 2 * p->first_column;
    }
}

renyi_status ry_tile_place(ry_tile_plan *out, const ry_tile_grids *grids, uint32_t width,
                           uint32_t height, renyi_error *err)
{
    if (!width || !height) return ry_fail(err, RENYI_ERR_ARG, -1, "an image without pixels");
    if (width > MAX_SIDE || height > MAX_SIDE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "an image of %" PRIu32 " x %" PRIu32 "; sides up to %u can be resized",
                       width, height, MAX_SIDE);
    const uint32_t i = best_grid(grids, width, height);
    *out = (ry_tile_plan){.across = grids->grid[i][0], .down = grids->grid[i][1]};
    place_pixels(out, grids->side, width, height);
    place_patches(out, grids, width, height);
    return RENYI_OK;
}

/* ---- pixels -------------------------------------------------------------------------------- */

/* One axis of a tile: the part of [at, at + size) of the grid that lies in [from, from + n).
 * Returns 0 if there is none. */
static int overlap(ry_placed *out, uint32_t in_size, uint32_t at, uint32_t size, uint32_t from,
                   uint32_t n)
{
    const uint32_t first = at > from ? at : from;
    const uint32_t end = at + size < from + n ? at + size : from + n;
    if (first >= end) return 0;
    *out = (ry_placed){.axis = {in_size, size, first - at, end - first, 0.0, 0.0},
                       .pad = first - from};
    return 1;
}

renyi_status ry_tile_cut(uint8_t *out, const renyi_image *image, const ry_tile_plan *plan,
                         uint32_t side, renyi_interpolation filter,
                         const ry_resize_kernels *kernels, const renyi_allocator *al,
                         renyi_error *err)
{
    const size_t stride = 3 * (size_t)side, bytes = side * stride;
    RY_TRY(ry_fit_check_image(image, err));
    const uint32_t w = image->width, h = image->height;
    const ry_pixels in = {image->rgb, image->stride ? image->stride : 3 * (size_t)w, w, h};
    const ry_resize_spec base = {
        {w, side, 0, side, 0.0, 0.0}, {h, side, 0, side, 0.0, 0.0}, filter};
    RY_TRY(ry_resize(out, stride, &in, &base, kernels, al, err));
    for (uint32_t t = 0; t < plan->across * plan->down; t++) {
        ry_placed x, y;
        out += bytes;
        memset(out, 0, bytes);
        if (!overlap(&x, w, plan->left, plan->width, t % plan->across * side, side) ||
            !overlap(&y, h, plan->top, plan->height, t / plan->across * side, side))
            continue;
        const ry_resize_spec spec = {x.axis, y.axis, filter};
        RY_TRY(ry_resize(out + y.pad * stride + 3 * (size_t)x.pad, stride, &in, &spec, kernels, al,
                         err));
    }
    return RENYI_OK;
}

/* ---- patches of a tile --------------------------------------------------------------------- */

/* [*first, *first + *n) of the tile's patches: those of [from, from + size) of the grid. */
static void clip_patches(uint32_t *first, uint32_t *n, uint32_t from, uint32_t size,
                         uint32_t tile_at, uint32_t patches)
{
    const uint32_t a = from > tile_at ? from - tile_at : 0;
    const uint32_t end = from + size > tile_at ? from + size - tile_at : 0;
    const uint32_t b = end < patches ? end : patches;
    *first = a < b ? a : 0;
    *n = a < b ? b - a : 0;
}

ry_tile_window ry_tile_window_of(const ry_tile_plan *plan, uint32_t patches, uint32_t t)
{
    ry_tile_window w = {0, 0, patches, patches};
    if (!t) return w;
    clip_patches(&w.left, &w.columns, plan->first_column, plan->n_columns,
                 (t - 1) % plan->across * patches, patches);
    clip_patches(&w.top, &w.lines, plan->first_line, plan->n_lines,
                 (t - 1) / plan->across * patches, patches);
    return w;
}
