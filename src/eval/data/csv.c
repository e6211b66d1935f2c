/* csv.c - see csv.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/data/csv.h"

#include "base/status.h"

#include <string.h>

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
