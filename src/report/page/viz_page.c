/* viz_page.c - the page of pictures: headline, photos, and what the script needs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/viz_page_data.h"

#include "base/alloc.h"
#include "base/status.h"
#include "report/figure/sheet_out.h"
#include "report/page/page.h"

#include <string.h>

static int has_text(const char *text) { return text && *text; }

static void put_title(ry_sink *s, const renyi_viz_page *page)
{
    if (has_text(page->title))
        ry_put_escaped(s, page->title);
    else
        ry_putf(s, "What %s looks at, and what it drops", page->photos[0]->model);
}

static void put_headline(ry_sink *s, const renyi_viz_page *page)
{
    const renyi_viz_result *r = page->photos[0];
    ry_put(s, "<header>\n<h1>");
    put_title(s, page);
    ry_put(s, "</h1>\n");
    if (has_text(page->note)) ry_putf(s, "<p class=\"note\">%s</p>\n", page->note);
    ry_put(s, "<dl class=\"facts\">\n");
    ry_page_fact(s, "model", r->model);
    ry_putf(s, "<div><dt>blocks</dt><dd>%u</dd></div>\n", r->n_blocks);
    ry_putf(s, "<div><dt>patches</dt><dd>%u × %u of %u px</dd></div>\n", r->photo.grid,
            r->photo.grid, r->photo.patch);
    ry_putf(s, "<div><dt>unpruned</dt><dd>%.2f GMACs</dd></div>\n", r->dense.macs / 1e9);
    ry_put(s, "</dl>\n");
    ry_put(s, "</header>\n");
}

static renyi_status put_picture(ry_sink *s, const renyi_viz_photo *p, renyi_error *err)
{
    ry_sink png = {.al = s->al};
    const renyi_status status = ry_put_png(&png, p->rgb, p->size, p->size, 0, err);
    ry_put(s, "data:image/png;base64,");
    if (status == RENYI_OK) ry_put_base64(s, png.bytes, png.size);
    ry_free(s->al, png.bytes);
    return status;
}

/* One button a photo; the script takes the pictures from here. */
static renyi_status put_photos(ry_sink *s, const renyi_viz_page *page, renyi_error *err)
{
    ry_put(s, "<div id=\"photos\" role=\"group\" aria-label=\"Photos\">\n");
    for (uint32_t i = 0; i < page->n_photos; i++) {
        const renyi_viz_photo *p = &page->photos[i]->photo;
        ry_put(s, "<button type=\"button\"><img alt=\"\" src=\"");
        RY_TRY(put_picture(s, p, err));
        ry_putf(s, "\"><span>%s</span></button>\n", p->name);
    }
    ry_put(s, "</div>\n");
    return RENYI_OK;
}

/* For those who do not run the script: the answers. */
static void put_noscript(ry_sink *s, const renyi_viz_page *page)
{
    ry_put(s, "<noscript><p>The pictures are drawn by this page's own script, which is off. "
              "What the unpruned model says:</p>\n<ul>\n");
    for (uint32_t i = 0; i < page->n_photos; i++) {
        const renyi_viz_result *r = page->photos[i];
        if (!r->dense.n_top) continue;
        ry_putf(s, "<li>%s: %s, %.1f %%</li>\n", r->photo.name, r->dense.top[0].name,
                100.0 * (double)r->dense.top[0].probability);
    }
    ry_put(s, "</ul></noscript>\n");
}

/* The command, and every policy with all its defaults. */
static void put_what_ran(ry_sink *s, const renyi_viz_page *page)
{
    const renyi_viz_result *r = page->photos[0];
    const uint32_t n = r->n_rows + r->n_sweep;
    if (!n && !has_text(page->command)) return;
    ry_put(s, "<section id=\"ran\">\n<h2>What ran</h2>\n");
    if (has_text(page->command))
        ry_putf(s, "<pre class=\"command\" tabindex=\"0\"><code>%s</code></pre>\n", page->command);
    if (n) ry_putf(s, "<details><summary>Policies in full (%u)</summary>\n<ul>\n", n);
    for (uint32_t i = 0; i < n; i++)
        ry_putf(s, "<li><code>%s</code></li>\n",
                i < r->n_rows ? r->rows[i].policy : r->sweep[i - r->n_rows].policy);
    if (n) ry_put(s, "</ul></details>\n");
    ry_put(s, "</section>\n");
}

static renyi_status put_page(ry_sink *s, const renyi_viz_page *page, renyi_error *err)
{
    ry_page_head(s, has_text(page->title) ? page->title : page->photos[0]->model, ry_viz_css);
    put_headline(s, page);
    ry_put(s, "<main>\n");
    RY_TRY(put_photos(s, page, err));
    put_noscript(s, page);
    ry_put(s, ry_viz_html);
    put_what_ran(s, page);
    ry_page_foot(s);
    ry_viz_put_data(s, page);
    ry_put(s, "<script>\n");
    ry_put(s, ry_viz_draw_js);
    ry_put(s, ry_viz_patch_js);
    ry_put(s, "</script>\n");
    ry_page_script(s, ry_viz_js);
    ry_put_bytes(s, "", 1);
    return s->failed ? ry_fail_nomem(err, s->wanted) : RENYI_OK;
}

renyi_status renyi_viz_html(renyi_report_text *out, const renyi_viz_page *page, renyi_error *err)
{
    if (!out || !page) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_viz_html: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(ry_viz_check(page, err));
    ry_sink s = {.al = &page->allocator};
    const renyi_status status = put_page(&s, page, err);
    if (status != RENYI_OK) {
        ry_free(&page->allocator, s.bytes);
        return status;
    }
    *out = (renyi_report_text){s.bytes, s.size - 1, page->allocator};
    return RENYI_OK;
}
