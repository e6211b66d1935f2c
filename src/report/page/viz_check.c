/* viz_check.c - whether the photos of a page fit together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/viz_page_data.h"

#include "base/status.h"

#include <string.h>

/* Patches and layers are 16-bit numbers in the page; the top bit of a layer says "fused". */
enum { MAX_PATCHES = 65534, MAX_BLOCKS = 32000, MAX_SIZE = 8192 };

/* ---- one result ---------------------------------------------------------------------------- */

static int has_maps(const renyi_viz_metric *list, uint32_t n, uint32_t n_layers)
{
    if (n && !list) return 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!list[i].name || !list[i].label || !list[i].maps) return 0;
        for (uint32_t k = 0; k < n_layers; k++)
            if (!list[i].maps[k].score) return 0;
    }
    return 1;
}

static int has_answer(const renyi_viz_answer *a)
{
    if (a->n_top > RENYI_VIZ_MAX_TOP || (a->n_top && !a->top)) return 0;
    for (uint32_t i = 0; i < a->n_top; i++)
        if (!a->top[i].name) return 0;
    return 1;
}

static int has_rows(const renyi_viz_row *rows, uint32_t n, const renyi_viz_result *r)
{
    if (n && !rows) return 0;
    for (uint32_t i = 0; i < n; i++) {
        const renyi_viz_row *row = &rows[i];
        if (!row->policy || !row->label || !row->steps || !has_answer(&row->answer)) return 0;
        if (row->metric != RENYI_NONE && row->metric >= r->n_metrics) return 0;
        if (row->norm != RENYI_NONE && row->norm >= r->n_norms) return 0;
        for (uint32_t k = 0; k < r->n_layers; k++)
            if (!row->steps[k].state || !row->steps[k].gone_at || !row->steps[k].group ||
                !row->steps[k].rescued || !row->steps[k].score)
                return 0;
    }
    return 1;
}

static int has_attention(const renyi_viz_result *r)
{
    const renyi_viz_attention *a = r->attention;
    if (!a) return 1;
    if (!a->layers || !a->n_heads || a->n_tokens != a->n_prefix + r->n_patches) return 0;
    if (a->query >= (int32_t)r->n_patches || a->token < 0 || a->token >= (int32_t)r->n_patches)
        return 0;
    for (uint32_t k = 0; k < r->n_layers; k++)
        if (!a->layers[k].row || !a->layers[k].column) return 0;
    return 1;
}

static int is_whole(const renyi_viz_result *r)
{
    return r->photo.rgb && r->photo.name && r->model && r->layers &&
           has_maps(r->metrics, r->n_metrics, r->n_layers) &&
           has_maps(r->norms, r->n_norms, r->n_layers) && (!r->n_keeps || (r->keeps && r->kept)) &&
           has_rows(r->rows, r->n_rows, r) && has_rows(r->sweep, r->n_sweep, r) &&
           has_answer(&r->dense) && has_attention(r);
}

static renyi_status check_one(const renyi_viz_result *r, uint32_t i, renyi_error *err)
{
    const renyi_viz_photo *p = &r->photo;
    if (!p->grid || !p->patch || p->size > MAX_SIZE || p->size != (uint64_t)p->grid * p->patch ||
        r->n_patches != (uint64_t)p->grid * p->grid)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "photo %u: %u pixels, %u patches a side of %u pixels, %u in all: they do "
                       "not fit together, or are more than %d pixels",
                       i, p->size, p->grid, p->patch, r->n_patches, MAX_SIZE);
    if (r->n_patches > MAX_PATCHES || r->n_blocks > MAX_BLOCKS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "photo %u: %u patches in %u blocks; at most %d in %d can be shown", i,
                       r->n_patches, r->n_blocks, MAX_PATCHES, MAX_BLOCKS);
    if (!r->n_layers || !(r->n_metrics + r->n_norms) || r->n_metrics > RENYI_VIZ_MAX_METRICS ||
        r->n_norms > RENYI_VIZ_MAX_METRICS + RENYI_VIZ_MAX_ORDERS)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "photo %u: %u layers, %u metrics, %u norms; at least one layer and one of "
                       "the others is needed, at most %d metrics",
                       i, r->n_layers, r->n_metrics, r->n_norms, RENYI_VIZ_MAX_METRICS);
    if (!is_whole(r))
        return ry_fail(err, RENYI_ERR_ARG, -1, "photo %u: a list or a name in it is NULL", i);
    return RENYI_OK;
}

/* ---- all of them --------------------------------------------------------------------------- */

static int same_maps(const renyi_viz_metric *a, const renyi_viz_metric *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].name, b[i].name) != 0) return 0;
    return 1;
}

static int same_rows(const renyi_viz_row *a, const renyi_viz_row *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].policy, b[i].policy) != 0) return 0;
    return 1;
}

static int is_alike(const renyi_viz_result *a, const renyi_viz_result *b)
{
    return a->photo.grid == b->photo.grid && a->photo.size == b->photo.size &&
           a->n_layers == b->n_layers && a->n_metrics == b->n_metrics && a->n_norms == b->n_norms &&
           a->n_keeps == b->n_keeps && a->n_rows == b->n_rows && a->n_sweep == b->n_sweep &&
           strcmp(a->model, b->model) == 0 &&
           memcmp(a->layers, b->layers, a->n_layers * sizeof *a->layers) == 0 &&
           (!a->n_keeps || memcmp(a->kept, b->kept, a->n_keeps * sizeof *a->kept) == 0) &&
           same_maps(a->metrics, b->metrics, a->n_metrics) &&
           same_maps(a->norms, b->norms, a->n_norms) && same_rows(a->rows, b->rows, a->n_rows) &&
           same_rows(a->sweep, b->sweep, a->n_sweep);
}

renyi_status ry_viz_check(const renyi_viz_page *page, renyi_error *err)
{
    if (page->struct_size != sizeof *page)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_viz_page: struct_size %u, this library knows %zu", page->struct_size,
                       sizeof *page);
    if (!page->n_photos || page->n_photos > RENYI_VIZ_MAX_PHOTOS || !page->photos)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u photos; a page shows 1 to %d", page->n_photos,
                       RENYI_VIZ_MAX_PHOTOS);
    for (uint32_t i = 0; i < page->n_photos; i++) {
        if (!page->photos[i]) return ry_fail(err, RENYI_ERR_ARG, -1, "photo %u is NULL", i);
        RY_TRY(check_one(page->photos[i], i, err));
        if (!is_alike(page->photos[0], page->photos[i]))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "photo %u has other layers, metrics, keep rates or policies than the "
                           "first: a page shows the results of one renyi_viz",
                           i);
    }
    return RENYI_OK;
}
