/* xlsx.c - see xlsx.h. The parts are stored in the zip without compression.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/vqa/xlsx.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h> /* crc32 */

/* ---- cells --------------------------------------------------------------------------------- */

static void put_bytes(ry_xlsx *x, const char *bytes, size_t n)
{
    if (x->failed) return;
    if (x->capacity - x->used < n) {
        const size_t size = 2 * x->capacity + n + 4096;
        char *grown = size > n ? ry_alloc(x->al, size, 1) : NULL;
        x->failed = !grown;
        if (!grown) return;
        if (x->used) memcpy(grown, x->sheet, x->used);
        ry_free(x->al, x->sheet);
        x->sheet = grown;
        x->capacity = size;
    }
    memcpy(x->sheet + x->used, bytes, n);
    x->used += n;
}

static void put(ry_xlsx *x, const char *text) { put_bytes(x, text, strlen(text)); }

/* Characters that XML does not have become U+FFFD. */
static void put_escaped(ry_xlsx *x, ry_text text)
{
    for (size_t at = 0; at < text.n;) {
        uint32_t c;
        const size_t n = ry_utf8_get(text.at + at, text.n - at, &c);
        if (c == '&')
            put(x, "&amp;");
        else if (c == '<')
            put(x, "&lt;");
        else if (c == '>')
            put(x, "&gt;");
        else if (c == RY_UTF8_BAD || c == 0xfffe || c == 0xffff ||
                 (c < 0x20 && c != '\t' && c != '\n'))
            put(x, "\xef\xbf\xbd");
        else
            put_bytes(x, text.at + at, n);
        at += n;
    }
}

/* "A1" ... "BL7" of the cell that comes next. */
static void put_place(ry_xlsx *x)
{
    char name[32];
    const uint32_t c = x->column++;
    if (c < 26)
        snprintf(name, sizeof name, "%c%u", (char)('A' + c), x->row);
    else
        snprintf(name, sizeof name, "%c%c%u", (char)('A' + c / 26 - 1), (char)('A' + c % 26),
                 x->row);
    put(x, name);
}

void ry_xlsx_row(ry_xlsx *x)
{
    char head[40];
    snprintf(head, sizeof head, "%s<row r=\"%u\">", x->row ? "</row>" : "", x->row + 1);
    put(x, head);
    x->row++;
    x->column = 0;
}

void ry_xlsx_text(ry_xlsx *x, ry_text text)
{
    if (!text.n) {
        x->column++;
        return;
    }
    put(x, "<c r=\"");
    put_place(x);
    put(x, "\" t=\"inlineStr\"><is><t xml:space=\"preserve\">");
    put_escaped(x, text);
    put(x, "</t></is></c>");
}

void ry_xlsx_number(ry_xlsx *x, ry_text digits)
{
    put(x, "<c r=\"");
    put_place(x);
    put(x, "\"><v>");
    put_bytes(x, digits.at, digits.n);
    put(x, "</v></c>");
}

void ry_xlsx_free(ry_xlsx *x)
{
    ry_free(x->al, x->sheet);
    *x = (ry_xlsx){0};
}

/* ---- the zip around it --------------------------------------------------------------------- */

#define XML "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
#define MAIN "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
#define RELATIONS "http://schemas.openxmlformats.org/package/2006/relationships"
#define DOCUMENT "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
#define TYPE "application/vnd.openxmlformats-"

typedef struct part {
    const char *name, *head, *tail; /* tail NULL = the head is all; else the sheet is between */
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

/* What local and central headers have in common: version 2.0, names in UTF-8, stored, 1 Jan 1980.
 */
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
    const size_t inside = p->tail ? x->used : 0;
    p->offset = f->written;
    p->size = n + inside + m;
    p->crc = add_crc(add_crc(0, p->head, n), inside ? x->sheet : "", inside);
    if (m) p->crc = add_crc(p->crc, p->tail, m);
    put_common(put_number(head, 0x04034b50, 4), p);
    RY_TRY(ry_output_file_write(f, head, LOCAL, err));
    RY_TRY(ry_output_file_write(f, p->name, strlen(p->name), err));
    RY_TRY(ry_output_file_write(f, p->head, n, err));
    if (inside) RY_TRY(ry_output_file_write(f, x->sheet, inside, err));
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
    if (x->failed) return ry_fail_nomem(err, x->capacity);
    if (x->used > 0x7fffffff)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: a table of more than 2 GB", path);
    RY_TRY(ry_output_file_open(&f, path, x->al, err));
    return ry_output_file_close(&f, write_zip(x, &f, err), x->al, err);
}
