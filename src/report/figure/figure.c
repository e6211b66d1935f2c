/* figure.c - the public doors of figures: checks, the order of the parts, and files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/viz.h"

#include "base/alloc.h"
#include "base/status.h"
#include "report/figure/figure_sheet.h"
#include "report/figure/sheet_out.h"

#include <string.h>

/* Hands the finished file over, or frees it. */
renyi_status ry_figure_finish(renyi_figure_file *out, ry_sink *s, renyi_status status,
                              renyi_error *err)
{
    const renyi_allocator al = *s->al;
    ry_put_bytes(s, "", 1);
    if (status == RENYI_OK && s->failed) status = ry_fail_nomem(err, s->wanted);
    if (status != RENYI_OK) {
        ry_free(&al, s->bytes);
        return status;
    }
    *out = (renyi_figure_file){s->bytes, s->size - 1, al};
    return RENYI_OK;
}

renyi_status ry_figure_png(ry_sink *out, const ry_figure *f, renyi_error *err)
{
    const double per_inch = 96 * f->opt.scale; /* a unit is 1/96 inch */
    ry_sheet sheet;
    uint32_t width, height;
    uint8_t *rgb = NULL;
    RY_TRY(ry_figure_sheet(&sheet, f, err));
    renyi_status status = ry_sheet_pixels(&sheet, f->opt.scale, &rgb, &width, &height, err);
    if (status == RENYI_OK)
        status = ry_put_png(out, rgb, width, height, (uint32_t)(per_inch / 0.0254 + 0.5), err);
    ry_free(sheet.al, rgb);
    ry_figure_sheet_free(&sheet);
    return status;
}

renyi_status renyi_figure_png(renyi_figure_file *out, const renyi_viz_result *const *results,
                              size_t n_results, const renyi_figure_options *opt, renyi_error *err)
{
    ry_figure f;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_figure_png: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(ry_figure_check(&f, results, n_results, opt, err));
    ry_sink bytes = {.al = &f.opt.allocator};
    return ry_figure_finish(out, &bytes, ry_figure_png(&bytes, &f, err), err);
}

renyi_status renyi_figure_svg(renyi_figure_file *out, const renyi_viz_result *const *results,
                              size_t n_results, const renyi_figure_options *opt, renyi_error *err)
{
    ry_figure f;
    ry_sheet sheet;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_figure_svg: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(ry_figure_check(&f, results, n_results, opt, err));
    RY_TRY(ry_figure_sheet(&sheet, &f, err));
    ry_sink bytes = {.al = &f.opt.allocator};
    const renyi_status status = ry_sheet_svg(&sheet, &bytes, err);
    ry_figure_sheet_free(&sheet);
    return ry_figure_finish(out, &bytes, status, err);
}

void renyi_figure_free(renyi_figure_file *f)
{
    if (!f) return;
    const renyi_allocator al = f->allocator;
    ry_free(&al, f->bytes);
    memset(f, 0, sizeof *f);
}
