/* xlsx.c - writes a spreadsheet: XML cells, stored in a zip file without compression.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/vqa/xlsx.h"

#include "base/output_file.h"
#include "base/status.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h> /* crc32 */

/* ---- cells ---------------------------------------------------------------------------------- */

/* Characters that XML does not allow become U+FFFD. */
static void put_escaped(ry_xlsx *x, ry_text text)
{
    for (size_t at = 0; at < text.n;) {
        uint32_t c;
        const size_t n = ry_utf8_get(text.at + at, text.n - at, &c);
        if (c == '&')
            ry_buffer_text(&x->sheet, "&amp;");
        else if (c == '<')
            ry_buffer_text(&x->sheet, "&lt;");
        else if (c == '>')
            ry_buffer_text(&x->sheet, "&gt;");
        else if (c == RY_UTF8_BAD || c == 0xfffe || c == 0xffff ||
                 (c < 0x20 && c != '\t' && c != '\n'))
            ry_buffer_text(&x->sheet, "\xef\xbf\xbd");
        else
            ry_buffer_put(&x->sheet, text.at + at, n);
        at += n;
    }
}

/* The name of the next cell: "A1" ... "BL7". */
static void put_place(ry_xlsx *x)
{
    char name[32];
    const uint32_t c = x->column++;
    if (c < 26)
        snprintf(name, sizeof name, "%c%u", (char)('A' + c), x->row);
    else
        snprintf(name, sizeof name, "%c%c%u", (char)('A' + c / 26 - 1), (char)('A' + c % 26),
                 x->row);
    ry_buffer_text(&x->sheet, name);
}

void ry_xlsx_row(ry_xlsx *x)
{
    char head[40];
    snprintf(head, sizeof head, "%s<row r=\"%u\">", x->row ? "</row>" : "", x->row + 1);
    ry_buffer_text(&x->sheet, head);
    x->row++;
    x->column = 0;
}

void ry_xlsx_text(ry_xlsx *x, ry_text text)
{
    if (!text.n) {
        x->column++;
        return;
    }
    ry_buffer_text(&x->sheet, "<c r=\"");
    put_place(x);
    ry_buffer_text(&x->sheet, "\" t=\"inlineStr\"><is><t xml:space=\"preserve\">");
    put_escaped(x, text);
    ry_buffer_text(&x->sheet, "</t></is></c>");
}

void ry_xlsx_number(ry_xlsx *x, ry_text digits)
{
    ry_buffer_text(&x->sheet, "<c r=\"");
    put_place(x);
    ry_buffer_text(&x->sheet, "\"><v>");
    ry_buffer_put(&x->sheet, digits.at, digits.n);
    ry_buffer_text(&x->sheet, "</v></c>");
}

void ry_xlsx_free(ry_xlsx *x)
{
    ry_buffer_free(&x->sheet);
    *x = (ry_xlsx){0};
}

/* ---- the zip around it ---------------------------------------------------------------------- */

#define XML "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
#define MAIN "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
#define RELATIONS "http://schemas.openxmlformats.org/package/2006/relationships"
#define DOCUMENT "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
#define TYPE "application/vnd.openxmlformats-"

typedef struct part {
    const char *name, *head, *tail; /* tail NULL = head only; else the sheet is between them */
    uint64_t size, offset;
    uint32_t crc;
} part;

enum { N_PARTS = 5, LOCAL = 30, CENTRAL = 46, END = 22, SHEET = 4 };

static void make_parts(part parts[N_PARTS])
{
    const part all[N_PARTS] = {
        {"[Content_Types].xml",
         XML "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">"
             "<Default Extension=\"rels\" ContentType=\"" TYPE "package.relationships+xml\"/>"
             "<Default Extension=\"xml\" ContentType=\"application/xml\"/>"
             "<Override PartName=\"/xl/workbook.xml\" ContentType=\"" TYPE
             "officedocument.spreadsheetml.sheet.main+xml\"/>"
             "<Override PartName=\"/xl/worksheets/sheet1.xml\" ContentType=\"" TYPE
             "officedocument.spreadsheetml.worksheet+xml\"/></Types>",
         NULL, 0, 0, 0},
        {"_rels/.rels",
         XML "<Relationships xmlns=\"" RELATIONS "\"><Relationship Id=\"rId1\" Type=\"" DOCUMENT
             "/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>",
         NULL, 0, 0, 0},
        {"xl/workbook.xml",
         XML "<workbook xmlns=\"" MAIN "\" xmlns:r=\"" DOCUMENT
             "\"><sheets><sheet name=\"Sheet1\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>",
         NULL, 0, 0, 0},
        {"xl/_rels/workbook.xml.rels",
         XML "<Relationships xmlns=\"" RELATIONS "\"><Relationship Id=\"rId1\" Type=\"" DOCUMENT
             "/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>",
         NULL, 0, 0, 0},
        {"xl/worksheets/sheet1.xml", XML "<worksheet xmlns=\"" MAIN "\"><sheetData>",
         "</row></sheetData></worksheet>", 0, 0, 0},
    };
    memcpy(parts, all, sizeof all);
}

static unsigned char *put_number(unsigned char *to, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) *to++ = (unsigned char)(value >> (8 * i));
    return to;
}

static uint32_t add_crc(uint32_t crc, const char *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc, (const Bytef *)bytes, n);
}

/* The fields that local and central headers share: version 2.0, UTF-8 names, stored, 1 Jan 1980. */
static unsigned char *put_common(unsigned char *to, const part *p)
{
    enum { VERSION = 20, UTF8_NAMES = 1 << 11, FIRST_DAY = 33 };
    to = put_number(to, VERSION, 2);
    to = put_number(to, UTF8_NAMES, 2);
    to = put_number(to, 0, 2 + 2); /* method, time */
    to = put_number(to, FIRST_DAY, 2);
    to = put_number(to, p->crc, 4);
    to = put_number(to, p->size, 4);
    to = put_number(to, p->size, 4);
    to = put_number(to, strlen(p->name), 2);
    return put_number(to, 0, 2); /* no extra field */
}

static renyi_status write_part(part *p, const ry_xlsx *x, ry_output_file *f, renyi_error *err)
{
    unsigned char head[LOCAL];
    const size_t n = strlen(p->head), m = p->tail ? strlen(p->tail) : 0;
    const size_t inside = p->tail ? x->sheet.size : 0;
    p->offset = f->written;
    p->size = n + inside + m;
    p->crc = add_crc(add_crc(0, p->head, n), inside ? x->sheet.bytes : "", inside);
    if (m) p->crc = add_crc(p->crc, p->tail, m);
    put_common(put_number(head, 0x04034b50, 4), p);
    RY_TRY(ry_output_file_write(f, head, LOCAL, err));
    RY_TRY(ry_output_file_write(f, p->name, strlen(p->name), err));
    RY_TRY(ry_output_file_write(f, p->head, n, err));
    if (inside) RY_TRY(ry_output_file_write(f, x->sheet.bytes, inside, err));
    return m ? ry_output_file_write(f, p->tail, m, err) : RENYI_OK;
}

static renyi_status write_directory(const part *parts, ry_output_file *f, renyi_error *err)
{
    const uint64_t start = f->written;
    unsigned char bytes[CENTRAL];
    for (int i = 0; i < N_PARTS; i++) {
        unsigned char *to = put_number(bytes, 0x02014b50, 4);
        to = put_common(put_number(to, 20, 2), &parts[i]);
        to = put_number(to, 0, 8); /* comment, disk, attributes inside */
        to = put_number(to, 0, 2); /* attributes outside, their second half */
        put_number(to, parts[i].offset, 4);
        RY_TRY(ry_output_file_write(f, bytes, CENTRAL, err));
        RY_TRY(ry_output_file_write(f, parts[i].name, strlen(parts[i].name), err));
    }
    const uint64_t size = f->written - start;
    unsigned char *to = put_number(put_number(bytes, 0x06054b50, 4), 0, 4);
    to = put_number(put_number(to, N_PARTS, 2), N_PARTS, 2);
    put_number(put_number(put_number(to, size, 4), start, 4), 0, 2);
    return ry_output_file_write(f, bytes, END, err);
}

static renyi_status write_zip(const ry_xlsx *x, ry_output_file *f, renyi_error *err)
{
    part parts[N_PARTS];
    make_parts(parts);
    for (int i = 0; i < N_PARTS; i++) RY_TRY(write_part(&parts[i], x, f, err));
    return write_directory(parts, f, err);
}

renyi_status ry_xlsx_write(ry_xlsx *x, const char *path, renyi_error *err)
{
    ry_output_file f;
    if (x->sheet.failed) return ry_fail_nomem(err, x->sheet.capacity);
    if (x->sheet.size > 0x7fffffff)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: the table is larger than 2 GB", path);
    RY_TRY(ry_output_file_open(&f, path, x->sheet.al, err));
    return ry_output_file_close(&f, write_zip(x, &f, err), x->sheet.al, err);
}
