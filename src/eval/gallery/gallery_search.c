/* gallery_search.c - bodies of gallery.h: making, asking, searching.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/gallery/gallery_index.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "formats/safetensors.h"

#include <math.h>
#include <string.h>

renyi_status renyi_gallery_new(renyi_gallery **out, const renyi_options *opt, renyi_error *err)
{
    renyi_options o;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_new: out is NULL");
    *out = NULL;
    RY_TRY(ry_options_read(&o, opt, err));
    renyi_gallery *g = ry_calloc(&o.allocator, 1, sizeof *g);
    if (!g) return ry_fail_nomem(err, sizeof *g);
    g->al = o.allocator;
    g->pool.al = &g->al;
    g->limits = o.limits;
    g->making = (ry_making){.folder = "", .model = "", .policy = "", .recipe = ""};
    *out = g;
    return RENYI_OK;
}

renyi_status renyi_gallery_open(renyi_gallery **out, const char *path, const renyi_options *opt,
                                renyi_error *err)
{
    ry_tensors *set = NULL;
    if (!path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_open: path is NULL");
    RY_TRY(renyi_gallery_new(out, opt, err));
    const renyi_limits limits = ry_limits(&(*out)->limits);
    renyi_status st = ry_safetensors_open(&set, path, &limits, &(*out)->al, err);
    if (!st) st = ry_gallery_take(*out, set, path, err);
    ry_tensors_free(set);
    if (st) {
        renyi_gallery_free(*out);
        *out = NULL;
    }
    return st;
}

void renyi_gallery_free(renyi_gallery *g)
{
    if (!g) return;
    const renyi_allocator al = g->al;
    ry_pool_free(&g->pool);
    ry_free(&al, g->rows);
    ry_free(&al, g);
}

void renyi_gallery_get_info(const renyi_gallery *g, renyi_gallery_info *out)
{
    const ry_making *k = &g->making;
    *out = (renyi_gallery_info){g->n, g->dim, k->folder, k->model, k->policy};
}

void renyi_gallery_get_photo(const renyi_gallery *g, size_t i, renyi_gallery_photo *out)
{
    const ry_picture *p = &g->pictures[i];
    *out = (renyi_gallery_photo){p->file, p->size, p->time, g->rows + i * g->dim};
}

/* ---- search -------------------------------------------------------------------------------- */

/* Four sums at a time, always in this order: the same bits everywhere. */
static double dot(const float *a, const float *b, size_t n)
{
    double s[4] = {0};
    size_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (size_t j = 0; j < 4; j++) s[j] += (double)a[k + j] * (double)b[k + j];
    for (; k < n; k++) s[0] += (double)a[k] * (double)b[k];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* Into the list of the `most` best so far, best first; of equal ones the earlier stays in front. */
static void offer(renyi_hit *hits, size_t most, size_t *n, renyi_hit hit)
{
    if (*n == most && !(hit.score > hits[most - 1].score)) return;
    size_t at = *n < most ? (*n)++ : most - 1;
    for (; at && hit.score > hits[at - 1].score; at--) hits[at] = hits[at - 1];
    hits[at] = hit;
}

renyi_status renyi_gallery_search(const renyi_gallery *g, const float *row, size_t most,
                                  renyi_hit *hits, size_t *n, renyi_error *err)
{
    if (!g || !row || !n || (most && !hits))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_search: NULL argument");
    *n = 0;
    const double length = sqrt(dot(row, row, g->dim));
    if (g->n && !(length > 0.0 && isfinite(length)))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_search: a row of length %g", length);
    for (size_t i = 0; most && i < g->n; i++) {
        const double cosine = dot(row, g->rows + i * g->dim, g->dim) / length;
        const double score = fmin(1.0, fmax(-1.0, cosine)); /* lengths are 1 but for rounding */
        offer(hits, most, n, (renyi_hit){i, score});
    }
    return RENYI_OK;
}
