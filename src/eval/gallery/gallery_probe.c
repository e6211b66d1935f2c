/* gallery_probe.c - how rows are made, told by what can be compared: words for the preprocessing,
 * and for the model the row of a picture that never changes. Weights that differ make another row;
 * a faster CPU or 8-bit numbers make nearly the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/gallery/gallery_index.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"
#include "renyi/clip.h"

#include <stdio.h>
#include <string.h>

#define SAME_COSINE                                                               \
    0.995 /* f32, bf16 and int8 of one model are nearer than this; models are not \
           */

/* [size, size, 3]: blocks of random colours over slopes, something for every layer to see. */
static void draw(uint8_t *pixels, size_t size)
{
    enum { BLOCK = 8 };
    for (size_t y = 0; y < size; y++)
        for (size_t x = 0; x < size; x++) {
            ry_rng rng = ry_rng_new((y / BLOCK) * 4099 + x / BLOCK + 1);
            const uint64_t noise = ry_rng_next(&rng);
            const size_t slopes[3] = {255 * x / size, 255 * y / size, 255 * (x + y) / (2 * size)};
            for (size_t c = 0; c < 3; c++)
                pixels[(y * size + x) * 3 + c] =
                    (uint8_t)((slopes[c] + ((noise >> (8 * c)) & 0xff)) / 2);
        }
}

static renyi_status run_probe(float *row, renyi_session *s, const renyi_preprocess *spec,
                              const renyi_allocator *al, renyi_error *err)
{
    const size_t size = spec->size;
    uint8_t *pixels = ry_alloc(al, size * size, 3);
    if (!pixels) return ry_fail_nomem(err, 3 * size * size);
    draw(pixels, size);
    const renyi_status st = renyi_run_pixels(s, pixels, 1, row, err);
    ry_free(al, pixels);
    if (!st) renyi_normalise_rows(row, 1, renyi_session_outputs(s));
    return st;
}

/* Everything that decides which pixels a photo becomes; the sizes of photos as text. */
static char *recipe_text(ry_pool *pool, const renyi_preprocess *p, const renyi_embed_options *o)
{
    char text[512];
    snprintf(text, sizeof text,
             "size=%u crop_mode=%d interpolation=%d crop=%.9g mean=%.9g,%.9g,%.9g "
             "std=%.9g,%.9g,%.9g exif=%u",
             p->size, (int)p->crop_mode, (int)p->interpolation, p->crop_pct, p->mean[0], p->mean[1],
             p->mean[2], p->std[0], p->std[1], p->std[2], o->apply_exif != 0);
    return ry_pool_text(pool, text);
}

renyi_status ry_gallery_making(ry_making *out, ry_pool *pool, const renyi_model *m,
                               const renyi_embed_options *opt, renyi_error *err)
{
    renyi_embed_options o;
    renyi_preprocess spec;
    renyi_session *s = NULL;
    *out = (ry_making){0};
    RY_TRY(ry_embed_options_read(&o, &spec, m, opt, err));
    RY_TRY(ry_embed_session(&s, m, &o, 1, err));
    float *probe = RY_POOL_TAKE(pool, renyi_session_outputs(s), float);
    out->probe = probe;
    out->policy = ry_pool_text(pool, renyi_session_policy(s));
    out->recipe = recipe_text(pool, &spec, &o);
    renyi_status st = probe && out->policy && out->recipe ? RENYI_OK : ry_fail_nomem(err, 4096);
    if (!st) st = run_probe(probe, s, &spec, pool->al, err);
    renyi_session_free(s);
    return st;
}

renyi_status ry_gallery_same(const ry_making *a, const ry_making *b, size_t dim, renyi_error *err)
{
    double cosine = 0.0;
    if (strcmp(a->policy, b->policy) != 0)
        return ry_fail(err, RENYI_ERR_ARG, -1, "it was made with the policy \"%.200s\"", a->policy);
    if (strcmp(a->recipe, b->recipe) != 0)
        return ry_fail(err, RENYI_ERR_ARG, -1, "it was made with another preprocessing");
    for (size_t k = 0; k < dim; k++) cosine += (double)a->probe[k] * (double)b->probe[k];
    if (!(cosine >= SAME_COSINE))
        return ry_fail(err, RENYI_ERR_ARG, -1, "it was made by another model (\"%.200s\")",
                       a->model);
    return RENYI_OK;
}
