/* text_lines.c - splits text files into lines, words and comma-separated fields, and keeps copies.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/data/text_lines.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"

#include <string.h>
#include <strings.h>

/* ---- spans --------------------------------------------------------------------------------- */

ry_text ry_text_of(const char *s) { return (ry_text){s, strlen(s)}; }

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

ry_text ry_text_trim(ry_text t)
{
    while (t.n && is_blank(t.at[0])) t.at++, t.n--;
    while (t.n && is_blank(t.at[t.n - 1])) t.n--;
    return t;
}

int ry_text_compare(ry_text a, ry_text b)
{
    const int order = memcmp(a.at, b.at, a.n < b.n ? a.n : b.n);
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

int ry_text_number(ry_text t, uint32_t *out)
{
    uint64_t value = 0;
    if (!t.n) return 0;
    for (size_t i = 0; i < t.n; i++) {
        if (t.at[i] < '0' || t.at[i] > '9') return 0;
        value = value * 10 + (uint64_t)(t.at[i] - '0');
        if (value > UINT32_MAX) return 0;
    }
    *out = (uint32_t)value;
    return 1;
}

int ry_text_ends_with(ry_text t, const char *ending)
{
    const size_t n = strlen(ending);
    return t.n > n && strncasecmp(t.at + t.n - n, ending, n) == 0;
}

int ry_text_next_word(ry_text *rest, ry_text *word)
{
    *rest = ry_text_trim(*rest);
    size_t n = 0;
    while (n < rest->n && rest->at[n] != ' ' && rest->at[n] != '\t') n++;
    *word = (ry_text){rest->at, n};
    *rest = ry_text_trim((ry_text){rest->at + n, rest->n - n});
    return n > 0;
}

static int is_one_of(char c, const char *set) { return c && strchr(set, c) != NULL; }

int ry_text_split_last(ry_text t, const char *separators, ry_text *head, ry_text *last)
{
    size_t at = t.n;
    while (at && !is_one_of(t.at[at - 1], separators)) at--;
    *last = (ry_text){t.at + at, t.n - at};
    while (at && is_one_of(t.at[at - 1], separators)) at--;
    *head = (ry_text){t.at, at};
    return at > 0;
}

ry_text ry_text_file_name(ry_text path)
{
    size_t at = path.n;
    while (at && path.at[at - 1] != '/') at--;
    return (ry_text){path.at + at, path.n - at};
}

ry_text ry_text_folder(ry_text path)
{
    const size_t n = path.n - ry_text_file_name(path).n; /* with the slash */
    return (ry_text){path.at, n > 1 ? n - 1 : n};
}

/* ---- lines --------------------------------------------------------------------------------- */

ry_lines ry_lines_of(const void *bytes, size_t size)
{
    ry_lines l = {bytes, (const char *)bytes + size, 0};
    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) l.at += 3;
    return l;
}

int ry_lines_next(ry_lines *l, ry_text *line)
{
    const size_t left = (size_t)(l->end - l->at);
    if (!left) return 0;
    const char *newline = memchr(l->at, '\n', left);
    *line = (ry_text){l->at, newline ? (size_t)(newline - l->at) : left};
    l->at = newline ? newline + 1 : l->end;
    if (line->n && line->at[line->n - 1] == '\r') line->n--;
    l->number++;
    return 1;
}

/* ---- copies -------------------------------------------------------------------------------- */

char *ry_pool_copy(ry_pool *p, ry_text t)
{
    char *copy = ry_pool_take(p, t.n + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, t.at, t.n);
    copy[t.n] = 0;
    return copy;
}

char *ry_pool_join(ry_pool *p, ry_text folder, ry_text name)
{
    const size_t slash = folder.n && folder.at[folder.n - 1] != '/';
    size_t n;
    if (!ry_add_size(folder.n + slash + 1, name.n, &n)) return NULL;
    char *path = ry_pool_take(p, n, 1);
    if (!path) return NULL;
    memcpy(path, folder.at, folder.n);
    if (slash) path[folder.n] = '/';
    memcpy(path + folder.n + slash, name.at, name.n);
    path[n - 1] = 0;
    return path;
}

/* ---- comma-separated records --------------------------------------------------------------- */

ry_csv ry_csv_of(const char *name, const void *bytes, size_t size, ry_pool *pool)
{
    const ry_lines l = ry_lines_of(bytes, size); /* skips a byte order mark */
    return (ry_csv){name, ',', l.at, l.end, 0, 1, pool};
}

static renyi_status fail_record(const ry_csv *c, renyi_error *err, const char *what)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s:%llu: %s", c->name, (unsigned long long)c->line,
                   what);
}

static renyi_status read_plain_field(ry_csv *c, ry_text *out, renyi_error *err)
{
    const char *start = c->at;
    while (c->at < c->end && *c->at != c->separator && *c->at != '\n') {
        if (*c->at++ == '"' && c->separator == ',')
            return fail_record(c, err, "a quote inside a field that is not quoted");
    }
    *out = (ry_text){start, (size_t)(c->at - start)};
    if ((c->at == c->end || *c->at == '\n') && out->n && start[out->n - 1] == '\r') out->n--;
    return RENYI_OK;
}

/* c->at is after the opening quote; "" inside is one quote. */
static renyi_status read_quoted_field(ry_csv *c, ry_text *out, renyi_error *err)
{
    const char *start = c->at;
    size_t doubled = 0;
    for (;; c->at++) {
        if (c->at == c->end) return fail_record(c, err, "a quote without its end");
        if (*c->at == '\n') c->next++;
        if (*c->at != '"') continue;
        if (c->end - c->at < 2 || c->at[1] != '"') break;
        doubled++;
        c->at++;
    }
    *out = (ry_text){start, (size_t)(c->at - start)};
    c->at++;
    if (c->at < c->end && *c->at == '\r') c->at++;
    if (c->at < c->end && *c->at != c->separator && *c->at != '\n')
        return fail_record(c, err,
                           "text after a closing quote; wanted a separator or the end of the line");
    if (!doubled) return RENYI_OK;
    char *copy = ry_pool_take(c->pool, out->n, 1);
    if (!copy) return ry_fail_nomem(err, out->n);
    size_t n = 0;
    for (size_t i = 0; i < out->n; i++) {
        copy[n++] = out->at[i];
        if (out->at[i] == '"') i++;
    }
    *out = (ry_text){copy, n};
    return RENYI_OK;
}

static renyi_status read_record(ry_csv *c, ry_text *fields, size_t *n, renyi_error *err)
{
    for (;;) {
        if (*n == RY_CSV_FIELDS) return fail_record(c, err, "more than 64 columns");
        if (c->at < c->end && *c->at == '"') {
            c->at++;
            RY_TRY(read_quoted_field(c, &fields[*n], err));
        } else {
            RY_TRY(read_plain_field(c, &fields[*n], err));
        }
        ++*n;
        if (c->at == c->end) return RENYI_OK;
        if (*c->at++ == '\n') break; /* else a separator */
    }
    c->next++;
    return RENYI_OK;
}

renyi_status ry_csv_next(ry_csv *c, ry_text fields[RY_CSV_FIELDS], size_t *n, renyi_error *err)
{
    for (*n = 0; c->at < c->end; *n = 0) {
        c->line = c->next;
        RY_TRY(read_record(c, fields, n, err));
        if (*n > 1 || fields[0].n) return RENYI_OK;
    }
    return RENYI_OK;
}
