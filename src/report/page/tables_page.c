/* tables_page.c - a page of tables: results side by side, one section per table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

#include "base/status.h"

#include <string.h>

static void put_row(ry_buffer *s, const renyi_report_table *t, uint32_t row)
{
    ry_buffer_text(s, "<tr>");
    for (uint32_t k = 0; k < t->n_columns; k++) {
        const renyi_report_column *c = &t->columns[k];
        ry_buffer_text(s, c->is_text ? "<td class=\"mo\">" : "<td>");
        ry_putf(s, "%s</td>", c->cells[row] ? c->cells[row] : "–");
    }
    ry_buffer_text(s, "</tr>\n");
}

static void put_table(ry_buffer *s, const renyi_report_table *t)
{
    ry_putf(s, "<section>\n<h2>%s</h2>\n", t->title ? t->title : "");
    if (ry_has_text(t->about)) ry_putf(s, "<p>%s</p>\n", t->about);
    ry_putf(s,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>\n"
            "<thead><tr>",
            t->title ? t->title : "");
    for (uint32_t k = 0; k < t->n_columns; k++)
        ry_putf(s,
                t->columns[k].is_text ? "<th scope=\"col\" class=\"mo\">%s</th>"
                                      : "<th scope=\"col\">%s</th>",
                t->columns[k].name ? t->columns[k].name : "");
    ry_buffer_text(s, "</tr></thead>\n<tbody>\n");
    for (uint32_t row = 0; row < t->n_rows; row++) put_row(s, t, row);
    ry_buffer_text(s, "</tbody></table></div>\n</section>\n");
}

static renyi_status check_tables(const renyi_report_tables *r, renyi_error *err)
{
    if (!r || (r->n_tables && !r->tables))
        return ry_fail(err, RENYI_ERR_ARG, -1, "tables: NULL argument");
    if (r->struct_size != sizeof *r)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_report_tables: struct_size %u, this library knows %zu",
                       r->struct_size, sizeof *r);
    for (uint32_t i = 0; i < r->n_tables; i++) {
        const renyi_report_table *t = &r->tables[i];
        if (t->n_columns && !t->columns)
            return ry_fail(err, RENYI_ERR_ARG, -1, "tables: table %u has no columns", i);
        for (uint32_t k = 0; k < t->n_columns; k++)
            if (t->n_rows && !t->columns[k].cells)
                return ry_fail(err, RENYI_ERR_ARG, -1, "tables: column %u of table %u has no cells",
                               k, i);
    }
    return RENYI_OK;
}

renyi_status renyi_report_tables_html(renyi_report_text *out, const renyi_report_tables *r,
                                      renyi_error *err)
{
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "tables: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(check_tables(r, err));
    ry_buffer s = {.al = &r->allocator};
    ry_page_head(&s, ry_has_text(r->title) ? r->title : "Results", NULL);
    ry_page_header(&s, ry_has_text(r->title) ? r->title : "Results", r->note, r->date, r->command);
    ry_buffer_text(&s, "<main>\n");
    for (uint32_t i = 0; i < r->n_tables; i++) put_table(&s, &r->tables[i]);
    ry_page_foot(&s);
    ry_page_script(&s, "");
    return ry_text_finish(out, &s, RENYI_OK, err);
}
