/* figure_canvas.c - what all parts of a figure share: inks, bitmaps of the image, captions,
 * wrapped text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/figure_parts.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

ry_inks ry_inks_of(int is_dark)
{
    static const ry_inks light = {.ground = {255, 255, 255, 255},
                                  .text = {27, 31, 38, 255},
                                  .faint = {104, 112, 124, 255},
                                  .rule = {221, 225, 231, 255},
                                  .open = {246, 247, 249, 255},
                                  .border = {255, 255, 255, 230},
                                  .bar = {20, 116, 165, 255},
                                  .changed = {192, 59, 47, 255}};
    static const ry_inks dark = {.ground = {17, 19, 24, 255},
                                 .text = {232, 235, 240, 255},
                                 .faint = {150, 158, 170, 255},
                                 .rule = {52, 57, 67, 255},
                                 .open = {28, 31, 38, 255},
                                 .border = {17, 19, 24, 230},
                                 .bar = {42, 174, 152, 255},
                                 .changed = {255, 132, 112, 255}};
    return is_dark ? dark : light;
}

double ry_column_x(const ry_canvas *cv, uint32_t column)
{
    return cv->x + (column + 1.0) * (cv->cell + RY_GAP);
}

/* ---- bitmaps ------------------------------------------------------------------------------- */

static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((299u * rgb[0] + 587u * rgb[1] + 114u * rgb[2] + 500) / 1000);
}

/* [size, size, 3]: each channel is base + luma * gain / 256. NULL = no memory. */
static uint8_t *toned(const ry_canvas *cv, const renyi_viz_photo *p, const uint8_t base[3],
                      uint32_t gain)
{
    const size_t n = (size_t)p->size * p->size;
    uint8_t *out = ry_alloc(cv->drawing->al, n, 3);
    for (size_t i = 0; out && i < 3 * n; i++)
        out[i] = (uint8_t)(base[i % 3] + luma(p->rgb + i / 3 * 3) * gain / 256);
    return out;
}

/* Are more pixels dark than light? The mean does not show it: a black dog on a light ground has
 * the same mean as a grey image. */
static int is_dark_image(const renyi_viz_photo *p)
{
    const size_t n = (size_t)p->size * p->size;
    size_t dark = 0, light = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t l = luma(p->rgb + 3 * i);
        dark += l < 60;
        light += l > 170;
    }
    return dark > light;
}

/* Dropped patches are shown dark; in a dark image, where that would not be visible, light. */
static void add_square(ry_canvas *cv, ry_square *s, int is_dark)
{
    static const uint8_t none[3] = {0, 0, 0}, dark[3] = {13, 15, 21}, light[3] = {196, 200, 208};
    const renyi_viz_photo *p = &s->r->photo;
    uint8_t *gone = is_dark ? toned(cv, p, light, 46) : toned(cv, p, dark, 64);
    s->image = ry_add_bitmap(cv->drawing, p->rgb, p->size, 0);
    s->grey = ry_add_bitmap(cv->drawing, toned(cv, p, none, 256), p->size, 1);
    s->gone = ry_add_bitmap(cv->drawing, gone, p->size, 1);
}

/* The base decides for its tiles whether the image is dark. */
void ry_canvas_prepare(ry_canvas *cv)
{
    const uint32_t n = cv->r->n_patches;
    const uint32_t n_tiles = cv->tiles ? cv->tiles->across * cv->tiles->down : 0;
    const int is_dark = is_dark_image(&cv->r->photo);
    ry_canvas_free(cv);
    cv->level = ry_alloc(cv->drawing->al, n, sizeof *cv->level);
    cv->key = ry_alloc(cv->drawing->al, n, sizeof *cv->key);
    cv->sorted = ry_alloc(cv->drawing->al, n, (n_tiles ? n_tiles : 1) * sizeof *cv->sorted);
    if (!cv->level || !cv->key || !cv->sorted) cv->drawing->failed = 1;
    for (uint32_t i = 0; i <= n_tiles; i++) {
        cv->squares[i].r = i ? cv->tiles->squares[i - 1] : cv->r;
        add_square(cv, &cv->squares[i], is_dark);
    }
    ry_use_square(cv, 0);
    cv->gone_ink = is_dark ? (ry_ink){219, 223, 231, 255} : (ry_ink){45, 47, 53, 255};
    cv->hatch = is_dark ? (ry_ink){60, 66, 80, 80} : (ry_ink){215, 222, 235, 64};
}

void ry_canvas_free(ry_canvas *cv)
{
    ry_free(cv->drawing->al, cv->level);
    ry_free(cv->drawing->al, cv->key);
    ry_free(cv->drawing->al, cv->sorted);
    cv->level = NULL;
    cv->key = NULL;
    cv->sorted = NULL;
}

/* ---- captions ------------------------------------------------------------------------------ */

void ry_caption_add(ry_caption *c, const char *format, ...)
{
    char text[2 * sizeof c->text];
    const size_t space = sizeof c->text - 1 - c->n;
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    size_t n = strlen(text);
    if (n > space) /* cut between two characters */
        for (n = space; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;) n--;
    memcpy(c->text + c->n, text, n);
    c->n += n;
    c->text[c->n] = 0;
}

void ry_caption_number(ry_caption *c, double v, int decimals)
{
    char digits[RY_NUMBER_MAX];
    digits[ry_number(digits, v, decimals)] = 0;
    ry_caption_add(c, "%s", digits);
}

void ry_caption_score(ry_caption *c, double v)
{
    if (v == 0 || !isfinite(v)) {
        ry_caption_number(c, v, 0);
        return;
    }
    int power = (int)floor(log10(fabs(v)));
    if (power >= -4 && power < 6) {
        ry_caption_number(c, v, power >= 2 ? 0 : 2 - power < 6 ? 2 - power : 6);
        return;
    }
    ry_caption_number(c, v / pow(10, power), 1);
    ry_caption_add(c, "e");
    ry_caption_number(c, power, 0);
}

void ry_caption_macs(ry_caption *c, double macs)
{
    const double giga = macs / 1e9;
    if (giga < 0.01) {
        ry_caption_number(c, macs / 1e6, 2);
        ry_caption_add(c, " MMACs");
        return;
    }
    ry_caption_number(c, giga, giga < 9.995 ? 2 : giga < 99.95 ? 1 : 0);
    ry_caption_add(c, " GMACs");
}

void ry_caption_change(ry_caption *c, double macs, double dense)
{
    if (!(dense > 0)) return;
    const double change = 100 * (macs / dense - 1);
    ry_caption_add(c, "%s", fabs(change) < 0.5 ? ", " : change < 0 ? ", \xE2\x88\x92" : ", +");
    ry_caption_number(c, fabs(change), 0);
    ry_caption_add(c, " %%");
}

/* ---- wrapped text -------------------------------------------------------------------------- */

enum { LINE_MAX_BYTES = 160 };

/* Bytes of `text` that fit on one line: whole words, or all of a first word that does not fit. */
static size_t line_bytes(ry_canvas *cv, ry_face face, const char *text, double most)
{
    char line[LINE_MAX_BYTES];
    size_t fits = 0;
    for (size_t i = 0; i < sizeof line - 1; i++) {
        if (text[i] == ' ' || !text[i]) {
            line[i] = 0;
            if (fits && ry_typeset_width(cv->drawing->typesetter, face, line) > most) break;
            fits = i;
        }
        if (!text[i]) break;
        line[i] = text[i];
    }
    return fits ? fits : strlen(text);
}

static double draw_lines(ry_canvas *cv, double x, double y, ry_face face, ry_ink ink,
                         const char *text, double most, int max_lines)
{
    const double step = ry_face_size(face) * 1.3;
    for (int i = 0; i < max_lines && *text && !cv->drawing->failed; i++, y += step) {
        char line[LINE_MAX_BYTES];
        const size_t n = line_bytes(cv, face, text, most);
        if (i == max_lines - 1 || n >= sizeof line) {
            ry_draw_text(cv->drawing, x, y, face, RY_LEFT, ink, text, most);
            return y + step;
        }
        memcpy(line, text, n);
        line[n] = 0;
        ry_draw_text(cv->drawing, x, y, face, RY_LEFT, ink, line, most);
        for (text += n; *text == ' ';) text++;
    }
    return y;
}

/* The text with what cannot be shown replaced; NULL = no memory. */
static char *clean_text(ry_canvas *cv, const char *text)
{
    ry_buffer clean = {.al = cv->drawing->al};
    ry_put_clean(&clean, text);
    ry_buffer_put(&clean, "", 1);
    if (!clean.failed) return clean.bytes;
    cv->drawing->failed = 1;
    ry_free(clean.al, clean.bytes);
    return NULL;
}

double ry_draw_wrapped_text(ry_canvas *cv, double x, double y, ry_face face, ry_ink ink,
                            const char *text, double most, int max_lines)
{
    char *clean = clean_text(cv, text);
    if (clean) y = draw_lines(cv, x, y, face, ink, clean, most, max_lines);
    ry_free(cv->drawing->al, clean);
    return y;
}

int ry_count_lines(ry_canvas *cv, ry_face face, const char *text, double most, int max_lines)
{
    char *clean = clean_text(cv, text);
    int n = 0;
    for (const char *at = clean; at && *at && n < max_lines; n++)
        for (at += line_bytes(cv, face, at, most); *at == ' ';) at++;
    ry_free(cv->drawing->al, clean);
    return n;
}
