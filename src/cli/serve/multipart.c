/* multipart.c - reads the parts of a multipart/form-data body (RFC 7578) that is whole in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem */
#include "cli/serve/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- the boundary ---------------------------------------------------------------------------- */

static int is_boundary_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c && strchr("'()+_,-./:=? ", c));
}

int multipart_boundary(const char *content_type, char boundary[MULTIPART_BOUNDARY + 1])
{
    static const char type[] = "multipart/form-data", key[] = "boundary=";
    size_t n = 0;

    if (strncasecmp(content_type, type, sizeof type - 1) != 0) return -1;
    const char *at = content_type + sizeof type - 1;
    at += strspn(at, " \t");
    if (*at != ';') return -1;
    at = strcasestr(at, key);
    if (!at) return -1;
    at += sizeof key - 1;
    const int is_quoted = *at == '"';
    if (is_quoted) at++;
    while (at[n] && at[n] != (is_quoted ? '"' : ';') && (is_quoted || at[n] != ' ')) {
        if (n == MULTIPART_BOUNDARY || !is_boundary_char(at[n])) return -1;
        n++;
    }
    if (!n || (is_quoted && at[n] != '"')) return -1;
    memcpy(boundary, at, n);
    boundary[n] = 0;
    return 0;
}

/* ---- the header of a part -------------------------------------------------------------------- */

/* A line of the header: Content-Disposition: form-data; name="image"; filename="a.jpg". */
typedef struct header_line {
    const char *at, *end;
} header_line;

/* The quoted value of a parameter such as name="...". Its quotes are outside other values. NULL =
 * there is none. */
static const char *find_parameter(const header_line *line, const char *key, size_t *n)
{
    const size_t n_key = strlen(key);
    const char *at = line->at;

    while ((at = memchr(at, ';', (size_t)(line->end - at)))) {
        at++;
        while (at < line->end && (*at == ' ' || *at == '\t')) at++;
        const char *name = at;
        while (at < line->end && *at != '=' && *at != ';') at++;
        if (at == line->end || *at == ';') continue;
        const size_t n_name = (size_t)(at - name);
        if (++at == line->end || *at != '"') continue; /* not quoted: no browser writes it */
        const char *value = ++at;
        at = memchr(at, '"', (size_t)(line->end - at));
        if (!at) return NULL;
        if (n_name == n_key && strncasecmp(name, key, n_key) == 0) {
            *n = (size_t)(at - value);
            return value;
        }
        at++;
    }
    return NULL;
}

static int read_disposition(multipart_part *out, const header_line *line)
{
    static const char form[] = "form-data";
    header_line rest = *line;

    while (rest.at < rest.end && (*rest.at == ' ' || *rest.at == '\t')) rest.at++;
    if ((size_t)(rest.end - rest.at) < sizeof form - 1 ||
        strncasecmp(rest.at, form, sizeof form - 1) != 0)
        return -1;
    out->name = find_parameter(&rest, "name", &out->n_name);
    out->filename = find_parameter(&rest, "filename", &out->n_filename);
    return out->name && out->n_name ? 0 : -1;
}

/* Reads the lines up to the empty one. Returns the first byte of the content; NULL with m->why. */
static const unsigned char *read_header(multipart *m, multipart_part *out)
{
    static const char disposition[] = "Content-Disposition:";
    const unsigned char *at = m->at;
    const size_t left = (size_t)(m->end - at);
    const unsigned char *limit = left > MULTIPART_HEADER ? at + MULTIPART_HEADER : m->end;

    for (;;) {
        const unsigned char *end = memmem(at, (size_t)(limit - at), "\r\n", 2);
        if (!end) break;
        if (end == at) return at + 2;
        const header_line line = {(const char *)at, (const char *)end};
        const size_t n = (size_t)(end - at);
        if (n >= sizeof disposition - 1 &&
            strncasecmp(line.at, disposition, sizeof disposition - 1) == 0) {
            const header_line value = {line.at + sizeof disposition - 1, line.end};
            if (read_disposition(out, &value)) {
                m->why = "a part of the form has no name";
                return NULL;
            }
        }
        at = end + 2;
    }
    m->why = "the header of a part of the form does not end";
    return NULL;
}

/* ---- parts ----------------------------------------------------------------------------------- */

int multipart_begin(multipart *m, const char *boundary, const void *body, size_t size)
{
    *m = (multipart){.at = body, .end = (const unsigned char *)body + size};
    m->n_delimiter = (size_t)snprintf(m->delimiter, sizeof m->delimiter, "\r\n--%s", boundary);
    /* The first delimiter has no line end before it. */
    if (size >= m->n_delimiter - 2 && memcmp(m->at, m->delimiter + 2, m->n_delimiter - 2) == 0) {
        m->at += m->n_delimiter - 2;
        return 0;
    }
    m->why = "the form does not begin with its boundary";
    return -1;
}

int multipart_next(multipart *m, multipart_part *out)
{
    *out = (multipart_part){0};
    if (m->end - m->at >= 2 && memcmp(m->at, "--", 2) == 0) return 0;
    if (m->end - m->at < 2 || memcmp(m->at, "\r\n", 2) != 0) {
        m->why = "the form ends before its last boundary";
        return -1;
    }
    m->at += 2;
    if (++m->n_parts > MULTIPART_PARTS) {
        m->why = "the form has too many parts";
        return -1;
    }
    out->bytes = read_header(m, out);
    if (!out->bytes) return -1;
    const unsigned char *end =
        memmem(out->bytes, (size_t)(m->end - out->bytes), m->delimiter, m->n_delimiter);
    if (!out->name || !end) {
        m->why = out->name ? "the form ends before its last boundary"
                           : "a part of the form has no Content-Disposition";
        return -1;
    }
    out->size = (size_t)(end - out->bytes);
    m->at = end + m->n_delimiter;
    return 1;
}
