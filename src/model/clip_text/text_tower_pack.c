/* text_tower_pack.c - see text_tower_pack.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/clip_text/text_tower_pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void ry_text_pass_layout(ry_arena *a, ry_text_pass *p)
{
    const size_t R = p->max_rows;
    p->ids = RY_TAKE(a, int32_t, R);
    p->positions = RY_TAKE(a, uint32_t, R);
    p->texts = RY_TAKE(a, ry_text_span, R);
    p->paths = RY_TAKE(a, uint32_t, R * p->context);
}

/* Tokens that two texts have in common at their beginning. */
static uint32_t common(const ry_text_line *a, const ry_text_line *b)
{
    uint32_t i = 0;
    while (i < a->length && i < b->length && a->ids[i] == b->ids[i]) i++;
    return i;
}

static int by_ids(const void *left, const void *right)
{
    const ry_text_line *a = left, *b = right;
    const uint32_t i = common(a, b);
    if (i < a->length && i < b->length) return a->ids[i] < b->ids[i] ? -1 : 1;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

void ry_text_sort(ry_text_line *lines, size_t n) { qsort(lines, n, sizeof *lines, by_ids); }

size_t ry_text_pack(ry_text_pass *p, const ry_text_line *lines, size_t n)
{
    size_t k = 0;
    p->n_rows = p->n_texts = 0;
    for (; k < n && k < p->max_rows; k++) {
        const ry_text_line *line = &lines[k];
        const uint32_t shared = k ? common(line - 1, line) : 0;
        uint32_t *path = p->paths + k * p->context;
        assert(line->length && line->length <= p->context);
        if (line->length - shared > p->max_rows - p->n_rows) break;
        if (shared) memcpy(path, path - p->context, shared * sizeof *path);
        for (uint32_t i = shared; i < line->length; i++) {
            p->ids[p->n_rows] = line->ids[i];
            p->positions[p->n_rows] = i;
            path[i] = p->n_rows++;
        }
        p->texts[p->n_texts++] = (ry_text_span){line->length, shared, line->index};
    }
    return k;
}
