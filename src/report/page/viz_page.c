/* viz_page.c - the interactive page of renyi_viz: checks that its images fit together, writes it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

/* The page stores patches and layers in 16 bits; one bit of a layer means "fused". */
enum { MAX_PATCHES = 65534, MAX_BLOCKS = 32000, MAX_SIZE = 8192 };

/* ---- one result ---------------------------------------------------------------------------- */

static int has_maps(const renyi_viz_metric *list, uint32_t n, uint32_t n_layers)
{
    if (n && !list) return 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!list[i].name || !list[i].label || !list[i].maps) return 0;
        for (uint32_t k = 0; k < n_layers; k++)
            if (!list[i].maps[k].score) return 0;
    }
    return 1;
}

static int has_answer(const renyi_viz_answer *a)
{
    if (a->n_top > RENYI_VIZ_MAX_TOP || (a->n_top && !a->top)) return 0;
    for (uint32_t i = 0; i < a->n_top; i++)
        if (!a->top[i].name) return 0;
    return 1;
}

static int has_rows(const renyi_viz_row *rows, uint32_t n, const renyi_viz_result *r)
{
    if (n && !rows) return 0;
    for (uint32_t i = 0; i < n; i++) {
        const renyi_viz_row *row = &rows[i];
        if (!row->policy || !row->label || !row->steps || !has_answer(&row->answer)) return 0;
        if (row->metric != RENYI_NONE && row->metric >= r->n_metrics) return 0;
        if (row->norm != RENYI_NONE && row->norm >= r->n_norms) return 0;
        for (uint32_t k = 0; k < r->n_layers; k++)
            if (!row->steps[k].state || !row->steps[k].gone_at || !row->steps[k].group ||
                !row->steps[k].rescued || !row->steps[k].score)
                return 0;
    }
    return 1;
}

static int has_attention(const renyi_viz_result *r)
{
    const renyi_viz_attention *a = r->attention;
    if (!a) return 1;
    if (!a->layers || !a->n_heads || a->n_tokens != a->n_prefix + r->n_patches) return 0;
    if (a->query >= (int32_t)r->n_patches || a->token < 0 || a->token >= (int32_t)r->n_patches)
        return 0;
    for (uint32_t k = 0; k < r->n_layers; k++)
        if (!a->layers[k].row || !a->layers[k].column) return 0;
    return 1;
}

static int is_complete(const renyi_viz_result *r)
{
    return r->photo.rgb && r->photo.name && r->model && r->layers &&
           has_maps(r->metrics, r->n_metrics, r->n_layers) &&
           has_maps(r->norms, r->n_norms, r->n_layers) && (!r->n_keeps || (r->keeps && r->kept)) &&
           has_rows(r->rows, r->n_rows, r) && has_rows(r->sweep, r->n_sweep, r) &&
           has_answer(&r->dense) && has_attention(r);
}

static renyi_status check_one(const renyi_viz_result *r, uint32_t i, renyi_error *err)
{
    const renyi_viz_photo *p = &r->photo;
    if (!p->grid || !p->patch || p->size > MAX_SIZE || p->size != (uint64_t)p->grid * p->patch ||
        r->n_patches != (uint64_t)p->grid * p->grid)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "image %u: %u pixels, %u patches per side of %u pixels, %u in all: the "
                       "numbers contradict each other or exceed %d pixels",
                       i, p->size, p->grid, p->patch, r->n_patches, MAX_SIZE);
    if (r->n_patches > MAX_PATCHES || r->n_blocks > MAX_BLOCKS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "image %u: %u patches in %u blocks; at most %d in %d can be shown", i,
                       r->n_patches, r->n_blocks, MAX_PATCHES, MAX_BLOCKS);
    if (!r->n_layers || !(r->n_metrics + r->n_norms) || r->n_metrics > RENYI_VIZ_MAX_METRICS ||
        r->n_norms > RENYI_VIZ_MAX_METRICS + RENYI_VIZ_MAX_ORDERS)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "image %u: %u layers, %u metrics, %u norms; at least one layer and one of "
                       "the others is needed, at most %d metrics",
                       i, r->n_layers, r->n_metrics, r->n_norms, RENYI_VIZ_MAX_METRICS);
    if (!is_complete(r))
        return ry_fail(err, RENYI_ERR_ARG, -1, "image %u: a list or a name in it is NULL", i);
    return RENYI_OK;
}

/* ---- all results ---------------------------------------------------------------------------- */

static int same_maps(const renyi_viz_metric *a, const renyi_viz_metric *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].name, b[i].name) != 0) return 0;
    return 1;
}

static int same_rows(const renyi_viz_row *a, const renyi_viz_row *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].policy, b[i].policy) != 0) return 0;
    return 1;
}

static int is_same_kind(const renyi_viz_result *a, const renyi_viz_result *b)
{
    return a->photo.grid == b->photo.grid && a->photo.size == b->photo.size &&
           a->n_layers == b->n_layers && a->n_metrics == b->n_metrics && a->n_norms == b->n_norms &&
           a->n_keeps == b->n_keeps && a->n_rows == b->n_rows && a->n_sweep == b->n_sweep &&
           strcmp(a->model, b->model) == 0 &&
           memcmp(a->layers, b->layers, a->n_layers * sizeof *a->layers) == 0 &&
           (!a->n_keeps || memcmp(a->kept, b->kept, a->n_keeps * sizeof *a->kept) == 0) &&
           same_maps(a->metrics, b->metrics, a->n_metrics) &&
           same_maps(a->norms, b->norms, a->n_norms) && same_rows(a->rows, b->rows, a->n_rows) &&
           same_rows(a->sweep, b->sweep, a->n_sweep);
}

static renyi_status check_page(const renyi_viz_page *page, renyi_error *err)
{
    if (page->struct_size != sizeof *page)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_viz_page: struct_size %u, this library knows %zu", page->struct_size,
                       sizeof *page);
    if (!page->n_photos || page->n_photos > RENYI_VIZ_MAX_PHOTOS || !page->photos)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u images; a page shows 1 to %d", page->n_photos,
                       RENYI_VIZ_MAX_PHOTOS);
    for (uint32_t i = 0; i < page->n_photos; i++) {
        if (!page->photos[i]) return ry_fail(err, RENYI_ERR_ARG, -1, "image %u is NULL", i);
        RY_TRY(check_one(page->photos[i], i, err));
        if (!is_same_kind(page->photos[0], page->photos[i]))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "image %u has other layers, metrics, keep rates or policies than the "
                           "first: a page needs the results of one renyi_viz",
                           i);
    }
    return RENYI_OK;
}

/* ---- the page ------------------------------------------------------------------------------ */

static void put_title(ry_buffer *s, const renyi_viz_page *page)
{
    if (ry_has_text(page->title))
        ry_put_escaped(s, page->title);
    else
        ry_putf(s, "What %s looks at, and what it drops", page->photos[0]->model);
}

static void put_header(ry_buffer *s, const renyi_viz_page *page)
{
    const renyi_viz_result *r = page->photos[0];
    ry_buffer_text(s, "<header>\n<h1>");
    put_title(s, page);
    ry_buffer_text(s, "</h1>\n");
    if (ry_has_text(page->note)) ry_putf(s, "<p class=\"note\">%s</p>\n", page->note);
    ry_buffer_text(s, "<dl class=\"facts\">\n");
    ry_page_fact(s, "model", r->model);
    ry_putf(s, "<div><dt>blocks</dt><dd>%u</dd></div>\n", r->n_blocks);
    ry_putf(s, "<div><dt>patches</dt><dd>%u × %u of %u px</dd></div>\n", r->photo.grid,
            r->photo.grid, r->photo.patch);
    ry_putf(s, "<div><dt>unpruned</dt><dd>%.2f GMACs</dd></div>\n", r->dense.macs / 1e9);
    ry_buffer_text(s, "</dl>\n");
    ry_buffer_text(s, "</header>\n");
}

static renyi_status put_image(ry_buffer *s, const renyi_viz_photo *p, renyi_error *err)
{
    ry_buffer png = {.al = s->al};
    const renyi_status status = ry_put_png(&png, p->rgb, p->size, p->size, 0, err);
    ry_buffer_text(s, "data:image/png;base64,");
    if (status == RENYI_OK) ry_put_base64(s, png.bytes, png.size);
    ry_free(s->al, png.bytes);
    return status;
}

/* One button per image; the script reads the pixels from here. */
static renyi_status put_image_buttons(ry_buffer *s, const renyi_viz_page *page, renyi_error *err)
{
    ry_buffer_text(s, "<div id=\"photos\" role=\"group\" aria-label=\"Photos\">\n");
    for (uint32_t i = 0; i < page->n_photos; i++) {
        const renyi_viz_photo *p = &page->photos[i]->photo;
        ry_buffer_text(s, "<button type=\"button\"><img alt=\"\" src=\"");
        RY_TRY(put_image(s, p, err));
        ry_putf(s, "\"><span>%s</span></button>\n", p->name);
    }
    ry_buffer_text(s, "</div>\n");
    return RENYI_OK;
}

/* Without the script: only the answers. */
static void put_noscript(ry_buffer *s, const renyi_viz_page *page)
{
    ry_buffer_text(s,
                   "<noscript><p>The pictures are drawn by this page's own script, which is off. "
                   "What the unpruned model says:</p>\n<ul>\n");
    for (uint32_t i = 0; i < page->n_photos; i++) {
        const renyi_viz_result *r = page->photos[i];
        if (!r->dense.n_top) continue;
        ry_putf(s, "<li>%s: %s, %.1f %%</li>\n", r->photo.name, r->dense.top[0].name,
                100.0 * (double)r->dense.top[0].probability);
    }
    ry_buffer_text(s, "</ul></noscript>\n");
}

/* The command, and every policy in full. */
static void put_what_ran(ry_buffer *s, const renyi_viz_page *page)
{
    const renyi_viz_result *r = page->photos[0];
    const uint32_t n = r->n_rows + r->n_sweep;
    if (!n && !ry_has_text(page->command)) return;
    ry_buffer_text(s, "<section id=\"ran\">\n<h2>What ran</h2>\n");
    if (ry_has_text(page->command))
        ry_putf(s, "<pre class=\"command\" tabindex=\"0\"><code>%s</code></pre>\n", page->command);
    if (n) ry_putf(s, "<details><summary>Policies in full (%u)</summary>\n<ul>\n", n);
    for (uint32_t i = 0; i < n; i++)
        ry_putf(s, "<li><code>%s</code></li>\n",
                i < r->n_rows ? r->rows[i].policy : r->sweep[i - r->n_rows].policy);
    if (n) ry_buffer_text(s, "</ul></details>\n");
    ry_buffer_text(s, "</section>\n");
}

static renyi_status put_page(ry_buffer *s, const renyi_viz_page *page, renyi_error *err)
{
    ry_page_head(s, ry_has_text(page->title) ? page->title : page->photos[0]->model, ry_viz_css);
    put_header(s, page);
    ry_buffer_text(s, "<main>\n");
    RY_TRY(put_image_buttons(s, page, err));
    put_noscript(s, page);
    ry_buffer_text(s, ry_viz_html);
    put_what_ran(s, page);
    ry_page_foot(s);
    ry_put_viz_data(s, page);
    ry_buffer_text(s, "<script>\n");
    ry_buffer_text(s, ry_viz_draw_js);
    ry_buffer_text(s, ry_viz_patch_js);
    ry_buffer_text(s, "</script>\n");
    ry_page_script(s, ry_viz_js);
    return RENYI_OK;
}

renyi_status renyi_viz_html(renyi_report_text *out, const renyi_viz_page *page, renyi_error *err)
{
    if (!out || !page) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_viz_html: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(check_page(page, err));
    ry_buffer s = {.al = &page->allocator};
    return ry_text_finish(out, &s, put_page(&s, page, err), err);
}
