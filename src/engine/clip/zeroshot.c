/* zeroshot.c - renyi_model_zeroshot: a classifier of an image tower and rows of words, and the
 * rows' own small helper.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/clip.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "kernels/rows/rows.h"

#include <math.h>

#define LENGTH_SLACK 1e-3 /* rows that went through 16-bit numbers are still of length 1 */

enum { MAX_CLASSES = 1 << 24 };

void renyi_normalise_rows(float *rows, size_t n, size_t dim)
{
    for (size_t i = 0; i < n; i++) ry_row_to_length(rows + i * dim, dim, 1.0);
}

static renyi_status check(const float *rows, size_t dim, uint32_t n, double scale, renyi_error *err)
{
    if (!n || n > MAX_CLASSES)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u classes; 1 to %d are allowed", n, MAX_CLASSES);
    if (!(scale > 0.0 && scale <= 1e6))
        return ry_fail(err, RENYI_ERR_ARG, -1, "scale %g; above 0 and at most 1e6 is allowed",
                       scale);
    for (uint32_t i = 0; i < n; i++) {
        const double length = (double)ry_row_length(rows + i * dim, dim);
        if (!(fabs(length - 1.0) <= LENGTH_SLACK))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "the row of class %u has length %g; renyi_normalise_rows makes it 1", i,
                           length);
    }
    return RENYI_OK;
}

static renyi_status fill(renyi_model *m, const float *rows, const char *const *names,
                         uint32_t n_classes, double scale, renyi_error *err)
{
    const ry_linear_spec spec = {.w = rows,
                                 .n_out = n_classes,
                                 .n_in = ry_vit_embed_dim(&m->vit.config),
                                 .dtype = RENYI_DTYPE_F32};
    m->vit.head = m->vit.head_dist = NULL;
    m->vit.words = NULL;
    m->vit.words_scale = scale;
    m->words_hash = ry_hash(rows, n_classes * spec.n_in * sizeof *rows);
    m->vit.config.n_classes = n_classes;
    RY_TRY(ry_linear_new(&m->vit.words, &spec, m->level, &m->al, err));
    return ry_labels_copy(&m->labels, names, n_classes, &m->al, err);
}

renyi_status renyi_model_zeroshot(renyi_model **out, const renyi_model *clip, const float *rows,
                                  const char *const *names, uint32_t n_classes, double scale,
                                  renyi_error *err)
{
    if (out) *out = NULL;
    if (!out || !clip || !rows)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_zeroshot: NULL argument");
    RY_TRY(check(rows, ry_vit_embed_dim(&clip->vit.config), n_classes, scale, err));
    renyi_model *m = ry_calloc(&clip->al, 1, sizeof *m);
    if (!m) return ry_fail_nomem(err, sizeof *m);
    *m = *clip;
    m->tower = clip->tower ? clip->tower : clip;
    m->owned = NULL;
    m->labels = (ry_labels){0};
    const renyi_status st = fill(m, rows, names, n_classes, scale, err);
    if (st) {
        renyi_model_free(m);
        return st;
    }
    *out = m;
    return RENYI_OK;
}

void renyi_model_keep_tower(renyi_model *zeroshot, renyi_model *clip)
{
    if (zeroshot && zeroshot != clip) zeroshot->owned = clip;
}
