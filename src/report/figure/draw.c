/* draw.c - what all parts of a figure share: colours, pictures, words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/draw.h"

#include "base/alloc.h"
#include "report/figure/type.h"

#include <math.h>
#include <string.h>

ry_look ry_look_of(int is_dark)
{
    static const ry_look light = {.ground = {255, 255, 255, 255},
                                  .text = {27, 31, 38, 255},
                                  .faint = {104, 112, 124, 255},
                                  .rule = {221, 225, 231, 255},
                                  .open = {246, 247, 249, 255},
                                  .border = {255, 255, 255, 230},
                                  .bar = {20, 116, 165, 255},
                                  .changed = {192, 59, 47, 255}};
    static const ry_look dark = {.ground = {17, 19, 24, 255},
                                 .text = {232, 235, 240, 255},
                                 .faint = {150, 158, 170, 255},
                                 .rule = {52, 57, 67, 255},
                                 .open = {28, 31, 38, 255},
                                 .border = {17, 19, 24, 230},
                                 .bar = {42, 174, 152, 255},
                                 .changed = {255, 132, 112, 255}};
    return is_dark ? dark : light;
}

double ry_column_x(const ry_draw *d, uint32_t column)
{
    return d->x + (column + 1.0) * (d->cell + RY_GAP);
}

/* ---- pictures ------------------------------------------------------------------------------ */

static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((299u * rgb[0] + 587u * rgb[1] + 114u * rgb[2] + 500) / 1000);
}

/* [size, size, 3]: each channel is base + luma * gain / 256. NULL = no memory. */
static uint8_t *toned(const ry_draw *d, const uint8_t base[3], uint32_t gain)
{
    const renyi_viz_photo *p = &d->r->photo;
    const size_t n = (size_t)p->size * p->size;
    uint8_t *out = ry_alloc(d->s->al, n, 3);
    for (size_t i = 0; out && i < 3 * n; i++)
        out[i] = (uint8_t)(base[i % 3] + luma(p->rgb + i / 3 * 3) * gain / 256);
    return out;
}

/* Has the photo more that looks like dusk than what looks like mist? Its mean would not tell: a
 * black dog on a light ground has that of a grey one. */
static int is_dark_photo(const renyi_viz_photo *p)
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

/* What is gone turns to dusk; in a dark photo, where dusk would not be seen, to mist. */
void ry_draw_prepare(ry_draw *d)
{
    static const uint8_t none[3] = {0, 0, 0}, dusk[3] = {13, 15, 21}, mist[3] = {196, 200, 208};
    const uint32_t n = d->r->n_patches, size = d->r->photo.size;
    ry_draw_free(d);
    d->level = ry_alloc(d->s->al, n, sizeof *d->level);
    d->key = ry_alloc(d->s->al, n, sizeof *d->key);
    d->sorted = ry_alloc(d->s->al, n, sizeof *d->sorted);
    if (!d->level || !d->key || !d->sorted) d->s->failed = 1;
    d->photo = ry_sheet_picture(d->s, d->r->photo.rgb, size, 0);
    d->grey = ry_sheet_picture(d->s, toned(d, none, 256), size, 1);
    const int is_dark = is_dark_photo(&d->r->photo);
    d->gone = ry_sheet_picture(d->s, is_dark ? toned(d, mist, 46) : toned(d, dusk, 64), size, 1);
    d->gone_ink = is_dark ? (ry_ink){219, 223, 231, 255} : (ry_ink){45, 47, 53, 255};
    d->hatch = is_dark ? (ry_ink){60, 66, 80, 80} : (ry_ink){215, 222, 235, 64};
}

void ry_draw_free(ry_draw *d)
{
    ry_free(d->s->al, d->level);
    ry_free(d->s->al, d->key);
    ry_free(d->s->al, d->sorted);
    d->level = NULL;
    d->key = NULL;
    d->sorted = NULL;
}

/* ---- words --------------------------------------------------------------------------------- */

void ry_say(ry_words *w, const char *text)
{
    const size_t room = sizeof w->text - 1 - w->n;
    size_t n = strlen(text);
    if (n > room) /* at the end of a character */
        for (n = room; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;) n--;
    memcpy(w->text + w->n, text, n);
    w->n += n;
    w->text[w->n] = 0;
}

void ry_say_number(ry_words *w, double v, int decimals)
{
    char digits[RY_NUMBER_MAX];
    digits[ry_number(digits, v, decimals)] = 0;
    ry_say(w, digits);
}

void ry_say_count(ry_words *w, uint64_t v) { ry_say_number(w, (double)v, 0); }

void ry_say_score(ry_words *w, double v)
{
    if (v == 0 || !isfinite(v)) {
        ry_say_number(w, v, 0);
        return;
    }
    int power = (int)floor(log10(fabs(v)));
    if (power >= -4 && power < 6) {
        ry_say_number(w, v, power >= 2 ? 0 : 2 - power < 6 ? 2 - power : 6);
        return;
    }
    ry_say_number(w, v / pow(10, power), 1);
    ry_say(w, "e");
    ry_say_number(w, power, 0);
}

void ry_say_macs(ry_words *w, double macs)
{
    const double giga = macs / 1e9;
    if (giga < 0.01) {
        ry_say_number(w, macs / 1e6, 2);
        ry_say(w, " MMACs");
        return;
    }
    ry_say_number(w, giga, giga < 9.995 ? 2 : giga < 99.95 ? 1 : 0);
    ry_say(w, " GMACs");
}

void ry_say_change(ry_words *w, double macs, double dense)
{
    if (!(dense > 0)) return;
    const double change = 100 * (macs / dense - 1);
    ry_say(w, change < 0 ? ", \xE2\x88\x92" : ", +");
    ry_say_number(w, fabs(change), 0);
    ry_say(w, " %");
}

enum { LINE_MAX_BYTES = 160 };

/* How many bytes of `text` make one line: whole words where one fits. */
static size_t line_of(ry_draw *d, ry_face face, const char *text, double most)
{
    char line[LINE_MAX_BYTES];
    size_t fits = 0;
    for (size_t i = 0; i < sizeof line - 1; i++) {
        if (text[i] == ' ' || !text[i]) {
            line[i] = 0;
            if (fits && ry_type_width(d->s->type, face, line) > most) break;
            fits = i;
        }
        if (!text[i]) break;
        line[i] = text[i];
    }
    return fits ? fits : strlen(text);
}

static double put_lines(ry_draw *d, double x, double y, ry_face face, ry_ink ink, const char *text,
                        double most, int max_lines)
{
    const double step = ry_type_size(face) * 1.3;
    for (int i = 0; i < max_lines && *text && !d->s->failed; i++, y += step) {
        char line[LINE_MAX_BYTES];
        const size_t n = line_of(d, face, text, most);
        if (i == max_lines - 1 || n >= sizeof line) {
            ry_sheet_text(d->s, x, y, face, RY_LEFT, ink, text, most);
            return y + step;
        }
        memcpy(line, text, n);
        line[n] = 0;
        ry_sheet_text(d->s, x, y, face, RY_LEFT, ink, line, most);
        for (text += n; *text == ' ';) text++;
    }
    return y;
}

double ry_draw_wrapped(ry_draw *d, double x, double y, ry_face face, ry_ink ink, const char *text,
                       double most, int max_lines)
{
    ry_sink clean = {.al = d->s->al};
    ry_put_clean(&clean, text);
    ry_put_bytes(&clean, "", 1);
    if (clean.failed)
        d->s->failed = 1;
    else
        y = put_lines(d, x, y, face, ink, clean.bytes, most, max_lines);
    ry_free(clean.al, clean.bytes);
    return y;
}
