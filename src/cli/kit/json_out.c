/* json_out.c - see json_out.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/json_out.h"

#include "cli/kit/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character at `s`, or 0 if there is none. */
static size_t utf8_length(const unsigned char *s)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

    if (n == 1) return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    unsigned code = s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0; /* a NUL ends the loop here */
        code = code << 6 | (s[i] & 0x3fu);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

json_t *json_text(const char *text)
{
    if (!text) return json_null();
    json_t *direct = json_string(text);
    if (direct) return direct;

    char *clean = cli_alloc(3 * strlen(text) + 1, 1), *to = clean;
    for (const unsigned char *from = (const unsigned char *)text; *from;) {
        const size_t n = utf8_length(from);
        memcpy(to, n ? (const char *)from : "\xef\xbf\xbd", n ? n : 3);
        to += n ? n : 3;
        from += n ? n : 1;
    }
    *to = 0;
    json_t *repaired = json_string(clean);
    free(clean);
    return repaired;
}

json_t *json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

const char *crop_mode_name(renyi_crop_mode mode)
{
    return mode == RENYI_CROP_SQUASH ? "squash" : mode == RENYI_CROP_BORDER ? "border" : "center";
}

const char *interpolation_name(renyi_interpolation interpolation)
{
    switch (interpolation) {
    case RENYI_BILINEAR: return "bilinear";
    case RENYI_LANCZOS: return "lanczos";
    case RENYI_BICUBIC: break;
    }
    return "bicubic";
}

json_t *json_preprocess(const renyi_preprocess *spec, const char *source)
{
    return json_pack("{s:i, s:f, s:s, s:s, s:[f,f,f], s:[f,f,f], s:o}", "size", (int)spec->size,
                     "crop_pct", spec->crop_pct, "crop_mode", crop_mode_name(spec->crop_mode),
                     "interpolation", interpolation_name(spec->interpolation), "mean",
                     spec->mean[0], spec->mean[1], spec->mean[2], "std", spec->std[0], spec->std[1],
                     spec->std[2], "source", json_text(source));
}

static int write_piece(const char *bytes, size_t size, void *stream)
{
    return fwrite(bytes, 1, size, stream) == size ? 0 : -1;
}

void json_print(json_t *document)
{
    if (!document) {
        cli_error("out of memory");
        exit(CLI_FAILED);
    }
    /* A failed write leaves its mark on stdout; cli_finish_output reports it. */
    if (json_dump_callback(document, write_piece, stdout,
                           JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0)
        putchar('\n');
    json_decref(document);
}
