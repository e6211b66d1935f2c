/* text_lines.c - see text.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/data/text_lines.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"

#include <string.h>

typedef struct ry_pool_block {
    struct ry_pool_block *next;
    size_t used, size;
} ry_pool_block;

enum { POOL_BLOCK = 1 << 18 };

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

void *ry_pool_take(ry_pool *p, size_t bytes)
{
    const size_t align = sizeof(uint64_t);
    size_t rounded, whole;
    if (!ry_add_size(bytes, align - 1, &rounded)) return NULL;
    rounded &= ~(align - 1);
    if (!p->head || p->head->size - p->head->used < rounded) {
        const size_t size = rounded > POOL_BLOCK ? rounded : POOL_BLOCK;
        if (!ry_add_size(size, sizeof(ry_pool_block), &whole)) return NULL;
        ry_pool_block *b = ry_alloc(p->al, whole, 1);
        if (!b) return NULL;
        *b = (ry_pool_block){p->head, 0, size};
        p->head = b;
    }
    void *taken = (char *)(p->head + 1) + p->head->used;
    p->head->used += rounded;
    return taken;
}

char *ry_pool_copy(ry_pool *p, ry_text t)
{
    char *copy = ry_pool_take(p, t.n + 1);
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
    char *path = ry_pool_take(p, n);
    if (!path) return NULL;
    memcpy(path, folder.at, folder.n);
    if (slash) path[folder.n] = '/';
    memcpy(path + folder.n + slash, name.at, name.n);
    path[n - 1] = 0;
    return path;
}

void ry_pool_free(ry_pool *p)
{
    for (ry_pool_block *b = p->head, *next; b; b = next) {
        next = b->next;
        ry_free(p->al, b);
    }
    p->head = NULL;
}

int ry_grow(const renyi_allocator *al, void **items, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity) return 1;
    const size_t more = *capacity ? 2 * *capacity : 64;
    void *grown = more > *capacity ? ry_alloc(al, more, size) : NULL;
    if (!grown) return 0;
    if (*items) memcpy(grown, *items, count * size);
    ry_free(al, *items);
    *items = grown;
    *capacity = more;
    return 1;
}

/* ---- csv ---- */

ry_csv ry_csv_of(const char *name, const void *bytes, size_t size, ry_pool *pool)
{
    const ry_lines l = ry_lines_of(bytes, size); /* knows the UTF-8 mark */
    return (ry_csv){name, ',', l.at, l.end, 0, 1, pool};
}

static renyi_status fault(const ry_csv *c, renyi_error *err, const char *what)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s:%llu: %s", c->name, (unsigned long long)c->line,
                   what);
}

static renyi_status plain_field(ry_csv *c, ry_text *out, renyi_error *err)
{
    const char *start = c->at;
    while (c->at < c->end && *c->at != c->separator && *c->at != '\n') {
        if (*c->at++ == '"' && c->separator == ',')
            return fault(c, err, "a quote inside a field that has none around it");
    }
    *out = (ry_text){start, (size_t)(c->at - start)};
    if ((c->at == c->end || *c->at == '\n') && out->n && start[out->n - 1] == '\r') out->n--;
    return RENYI_OK;
}

/* c->at is behind the opening quote; "" inside stands for one quote. */
static renyi_status quoted_field(ry_csv *c, ry_text *out, renyi_error *err)
{
    const char *start = c->at;
    size_t doubled = 0;
    for (;; c->at++) {
        if (c->at == c->end) return fault(c, err, "a quote that is never closed");
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
        return fault(c, err,
                     "text behind a closing quote; a separator or the line's end is needed");
    if (!doubled) return RENYI_OK;
    char *copy = ry_pool_take(c->pool, out->n);
    if (!copy) return ry_fail_nomem(err, out->n);
    size_t n = 0;
    for (size_t i = 0; i < out->n; i++) {
        copy[n++] = out->at[i];
        if (out->at[i] == '"') i++;
    }
    *out = (ry_text){copy, n};
    return RENYI_OK;
}

static renyi_status record(ry_csv *c, ry_text *fields, size_t *n, renyi_error *err)
{
    for (;;) {
        if (*n == RY_CSV_FIELDS) return fault(c, err, "more than 64 columns");
        if (c->at < c->end && *c->at == '"') {
            c->at++;
            RY_TRY(quoted_field(c, &fields[*n], err));
        } else {
            RY_TRY(plain_field(c, &fields[*n], err));
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
        RY_TRY(record(c, fields, n, err));
        if (*n > 1 || fields[0].n) return RENYI_OK;
    }
    return RENYI_OK;
}
