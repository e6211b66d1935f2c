/* figure.c - figures from results: checks, sizes, order of the parts, and PNG and SVG files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/figure_parts.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

static const char *const kinds[] = {"all",   "overlay",     "heat",     "mosaic",
                                    "norms", "predictions", "attention"};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MIN_COLUMNS = 4 };

const char *renyi_figure_name(renyi_figure_kind kind)
{
    return (unsigned)kind < N_KINDS ? kinds[kind] : NULL;
}

int renyi_figure_has(const renyi_viz_result *r, renyi_figure_kind kind)
{
    if (!r) return 0;
    switch (kind) {
    case RENYI_FIGURE_ALL: return 1;
    case RENYI_FIGURE_OVERLAY: return r->n_rows > 0 && r->n_layers > 0;
    case RENYI_FIGURE_HEAT: return r->n_metrics > 0 && r->n_layers > 0;
    case RENYI_FIGURE_NORMS: return r->n_norms > 0 && r->n_layers > 0;
    case RENYI_FIGURE_PREDICTIONS: return r->dense.n_top > 0;
    case RENYI_FIGURE_ATTENTION: return r->attention && r->n_layers > 0;
    case RENYI_FIGURE_MOSAIC:
        for (uint32_t i = 0; i < r->n_rows; i++)
            if (r->rows[i].merges && r->n_layers > 0) return 1;
        return 0;
    }
    return 0;
}

/* ---- checks -------------------------------------------------------------------------------- */

static const char *why_empty(renyi_figure_kind kind)
{
    switch (kind) {
    case RENYI_FIGURE_MOSAIC:
        return "no policy merges patches; add one such as mosaic, tome or reduce=merge";
    case RENYI_FIGURE_ATTENTION: return "attention was not requested";
    case RENYI_FIGURE_OVERLAY: return "there is no policy";
    default: return "the result does not contain it";
    }
}

static renyi_status check_result(const renyi_viz_result *r, const renyi_figure_options *opt,
                                 renyi_error *err)
{
    if (!r || !r->photo.rgb) return ry_fail(err, RENYI_ERR_ARG, -1, "figure: a result is NULL");
    const renyi_viz_photo *p = &r->photo;
    if (p->grid == 0 || p->patch == 0 || p->grid > 4096 || p->patch > 4096 ||
        p->size != p->grid * p->patch || p->size > 16384 || r->n_patches != p->grid * p->grid)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "figure: an image of %u pixels with %u x %u patches of %u pixels, %u in all",
                       p->size, p->grid, p->grid, p->patch, r->n_patches);
    if (!renyi_figure_has(r, opt->kind))
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure %s: nothing to draw: %s", kinds[opt->kind],
                       why_empty(opt->kind));
    if (r->attention && opt->head > r->attention->n_heads)
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure: head %u of a model with heads 0 to %u",
                       opt->head - 1, r->attention->n_heads - 1);
    return RENYI_OK;
}

static renyi_status check_options(const renyi_figure_options *o, renyi_error *err)
{
    if (!renyi_figure_name(o->kind))
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure: there is no kind %d", (int)o->kind);
    if (o->colours != RENYI_COLOURS_EVEN && o->colours != RENYI_COLOURS_RED_BLUE)
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure: there is no colour map %d",
                       (int)o->colours);
    if (o->cell && (o->cell < 48 || o->cell > 1024))
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure: cell %u; allowed: 48 to 1024", o->cell);
    if (!(o->scale >= 0.25 && o->scale <= 8))
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure: scale %g; allowed: 0.25 to 8", o->scale);
    if (!(o->opacity > 0 && o->opacity <= 1))
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure: opacity %g; allowed: above 0, at most 1",
                       o->opacity);
    return RENYI_OK;
}

const renyi_viz_tiles *ry_figure_tiles(const ry_figure *f, size_t i)
{
    return f->opt.tiles ? f->opt.tiles[i] : NULL;
}

renyi_status ry_figure_check(ry_figure *f, const renyi_viz_result *const *results, size_t n,
                             const renyi_figure_options *opt, renyi_error *err)
{
    *f = (ry_figure){.results = results, .n = n};
    if (!results || n == 0 || n > RENYI_FIGURE_MAX_RESULTS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "figure: %zu results; allowed: 1 to %d", n,
                       RENYI_FIGURE_MAX_RESULTS);
    if (opt) {
        const size_t known = opt->struct_size;
        if (known == 0 || known > sizeof f->opt)
            return ry_fail(err, RENYI_ERR_ARG, -1, "figure: struct_size %zu; set it to %zu", known,
                           sizeof f->opt);
        memcpy(&f->opt, opt, known);
    }
    if (f->opt.scale == 0) f->opt.scale = 2;
    if (f->opt.opacity == 0) f->opt.opacity = 0.7;
    RY_TRY(check_options(&f->opt, err));
    for (size_t i = 0; i < n; i++) {
        RY_TRY(check_result(results[i], &f->opt, err));
        if (ry_figure_tiles(f, i)) RY_TRY(ry_tiles_check(ry_figure_tiles(f, i), results[i], err));
    }
    return RENYI_OK;
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* A whole number of units per patch if that is close to the wanted size: then edges of patches fall
 * on pixels. */
static double cell_of(const ry_figure *f, size_t i)
{
    const renyi_viz_result *r = f->results[i];
    const renyi_viz_tiles *t = ry_figure_tiles(f, i);
    double usual = r->n_layers > 8 ? 112 : r->n_layers < 4 ? 210 : 154;
    if (t) usual = t->across > 3 ? 112 : 168;
    const double wanted = f->opt.cell ? f->opt.cell : usual;
    const double whole = round(wanted / r->photo.grid) * r->photo.grid;
    return whole > 0.75 * wanted && whole < 1.25 * wanted ? whole : wanted;
}

static uint32_t columns_of(const ry_figure *f, size_t i)
{
    const renyi_viz_result *r = f->results[i];
    uint32_t n = f->opt.kind == RENYI_FIGURE_PREDICTIONS ? r->n_rows + 1 : r->n_layers;
    if (f->opt.kind == RENYI_FIGURE_PREDICTIONS && n > 6) n = 6;
    return n < MIN_COLUMNS ? MIN_COLUMNS : n;
}

static double width_of(const ry_figure *f, size_t i)
{
    const double cell = cell_of(f, i), columns = columns_of(f, i) * (cell + RY_GAP) + cell;
    const renyi_viz_tiles *t = ry_figure_tiles(f, i);
    return t ? fmax(columns, ry_tiles_width(t, cell)) : columns;
}

/* ---- one result ---------------------------------------------------------------------------- */

static const char *title_of(const ry_figure *f, size_t i)
{
    const char *name = f->results[i]->photo.name;
    if (f->opt.title && i == 0) return f->opt.title;
    if (!name) return "photo";
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static void draw_head(ry_canvas *cv, const char *title)
{
    const renyi_figure_kind kind = cv->opt->kind;
    const int is_pruned = kind == RENYI_FIGURE_ALL || kind == RENYI_FIGURE_OVERLAY ||
                          kind == RENYI_FIGURE_MOSAIC || kind == RENYI_FIGURE_PREDICTIONS;
    const uint32_t most = kind == RENYI_FIGURE_PREDICTIONS ? RENYI_VIZ_MAX_TOP : 3;
    uint32_t n_top = 0;
    for (uint32_t i = 0; i <= (is_pruned ? cv->r->n_rows : 0); i++) {
        const uint32_t n = i ? cv->r->rows[i - 1].answer.n_top : cv->r->dense.n_top;
        if (n > n_top) n_top = n;
    }
    ry_draw_head(cv, title, is_pruned ? cv->r->n_rows : 0, n_top < most ? n_top : most);
}

static void draw_result(ry_canvas *cv, const char *title)
{
    ry_table tables[RY_MAX_TABLES];
    ry_canvas_prepare(cv);
    if (cv->drawing->failed) return;
    draw_head(cv, title);
    const int n = ry_tables_of(cv, tables);
    for (int i = 0; i < n; i++) ry_draw_table(cv, &tables[i]);
}

renyi_status ry_figure_empty(ry_drawing *out, const ry_figure *f, renyi_error *err)
{
    const renyi_allocator *al = &f->opt.allocator;
    *out = (ry_drawing){.al = al, .texts.al = al, .title = title_of(f, 0)};
    return ry_typesetter_new(&out->typesetter, al, err);
}

/* On failure there is nothing to free. */
static renyi_status draw_figure(ry_drawing *out, const ry_figure *f, renyi_error *err)
{
    RY_TRY(ry_figure_empty(out, f, err));
    ry_canvas cv = {.drawing = out, .opt = &f->opt, .ink = ry_inks_of(f->opt.is_dark != 0)};
    out->ground = cv.ink.ground;
    cv.x = cv.y = RY_MARGIN;
    for (size_t i = 0; i < f->n; i++) out->width = fmax(out->width, width_of(f, i) + 2 * RY_MARGIN);
    cv.right = out->width - RY_MARGIN;
    for (size_t i = 0; i < f->n && !out->failed; i++) {
        cv.r = f->results[i];
        cv.tiles = ry_figure_tiles(f, i);
        cv.cell = cell_of(f, i);
        cv.n_columns = columns_of(f, i);
        draw_result(&cv, title_of(f, i));
        if (i + 1 < f->n) cv.y += RY_MARGIN;
    }
    out->height = cv.y - 22 + RY_MARGIN;
    ry_canvas_free(&cv);
    if (!out->failed) return RENYI_OK;
    ry_drawing_free(out);
    return ry_fail_nomem(err, sizeof *out);
}

/* ---- files --------------------------------------------------------------------------------- */

renyi_status ry_figure_finish(renyi_figure_file *out, ry_buffer *s, renyi_status status,
                              renyi_error *err)
{
    const renyi_allocator al = *s->al;
    ry_buffer_put(s, "", 1);
    if (status == RENYI_OK && s->failed) status = ry_fail_nomem(err, s->wanted);
    if (status != RENYI_OK) {
        ry_free(&al, s->bytes);
        return status;
    }
    *out = (renyi_figure_file){s->bytes, s->size - 1, al};
    return RENYI_OK;
}

renyi_status ry_figure_png(ry_buffer *out, const ry_figure *f, renyi_error *err)
{
    const double per_inch = 96 * f->opt.scale; /* a unit is 1/96 inch */
    ry_drawing drawing;
    uint32_t width, height;
    uint8_t *rgb = NULL;
    RY_TRY(draw_figure(&drawing, f, err));
    renyi_status status = ry_drawing_pixels(&drawing, f->opt.scale, &rgb, &width, &height, err);
    if (status == RENYI_OK)
        status = ry_put_png(out, rgb, width, height, (uint32_t)(per_inch / 0.0254 + 0.5), err);
    ry_free(drawing.al, rgb);
    ry_drawing_free(&drawing);
    return status;
}

renyi_status renyi_figure_png(renyi_figure_file *out, const renyi_viz_result *const *results,
                              size_t n_results, const renyi_figure_options *opt, renyi_error *err)
{
    ry_figure f;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_figure_png: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(ry_figure_check(&f, results, n_results, opt, err));
    ry_buffer bytes = {.al = &f.opt.allocator};
    return ry_figure_finish(out, &bytes, ry_figure_png(&bytes, &f, err), err);
}

renyi_status renyi_figure_svg(renyi_figure_file *out, const renyi_viz_result *const *results,
                              size_t n_results, const renyi_figure_options *opt, renyi_error *err)
{
    ry_figure f;
    ry_drawing drawing;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_figure_svg: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(ry_figure_check(&f, results, n_results, opt, err));
    RY_TRY(draw_figure(&drawing, &f, err));
    ry_buffer bytes = {.al = &f.opt.allocator};
    const renyi_status status = ry_drawing_svg(&drawing, &bytes, err);
    ry_drawing_free(&drawing);
    return ry_figure_finish(out, &bytes, status, err);
}

void renyi_figure_free(renyi_figure_file *f)
{
    if (!f) return;
    const renyi_allocator al = f->allocator;
    ry_free(&al, f->bytes);
    memset(f, 0, sizeof *f);
}
