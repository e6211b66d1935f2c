/* batch_sample.c - loads, augments and mixes one pair of samples; keeps decoded images.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "train/data/batch_sample.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/status.h"
#include "train/data/augment_steps.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- cache ----------------------------------------------------------------------------------- */

struct ry_cache {
    renyi_image *images; /* [n], rgb = NULL: not here */
    uint64_t n, max_bytes;
    renyi_allocator al;
    pthread_mutex_t lock; /* of images and bytes */
    uint64_t bytes;
};

renyi_status ry_cache_new(ry_cache **out, uint64_t n, uint64_t max_bytes, const renyi_allocator *al,
                          renyi_error *err)
{
    *out = NULL;
    if (n > SIZE_MAX / sizeof(renyi_image)) return ry_fail_nomem(err, SIZE_MAX);
    ry_cache *c = ry_calloc(al, 1, sizeof *c);
    renyi_image *images = ry_calloc(al, (size_t)n, sizeof *images);
    if (!c || !images) {
        ry_free(al, images);
        ry_free(al, c);
        return ry_fail_nomem(err, (size_t)n * sizeof *images);
    }
    *c = (ry_cache){.images = images, .n = n, .max_bytes = max_bytes};
    if (al) c->al = *al;
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return RENYI_OK;
}

void ry_cache_free(ry_cache *c)
{
    if (!c) return;
    const renyi_allocator al = c->al;
    for (uint64_t i = 0; i < c->n; i++) renyi_image_free(&c->images[i], NULL);
    pthread_mutex_destroy(&c->lock);
    ry_free(&al, c->images);
    ry_free(&al, c);
}

int ry_cache_find(ry_cache *c, uint64_t i, renyi_image *out)
{
    if (!c) return 0;
    pthread_mutex_lock(&c->lock);
    *out = c->images[i];
    pthread_mutex_unlock(&c->lock);
    return out->rgb != NULL;
}

int ry_cache_keep(ry_cache *c, uint64_t i, const renyi_image *image)
{
    const uint64_t stride = image->stride ? image->stride : 3 * (uint64_t)image->width;
    const uint64_t bytes = stride * image->height;
    if (!c) return 0;
    pthread_mutex_lock(&c->lock);
    const int is_kept = !c->images[i].rgb && bytes <= c->max_bytes - c->bytes;
    if (is_kept) {
        c->images[i] = *image;
        c->bytes += bytes;
    }
    pthread_mutex_unlock(&c->lock);
    return is_kept;
}

uint64_t ry_cache_bytes(ry_cache *c)
{
    if (!c) return 0;
    pthread_mutex_lock(&c->lock);
    const uint64_t bytes = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return bytes;
}

/* ---- Beta distribution ----------------------------------------------------------------------- */

/* The logarithm of a Gamma(shape) number: Marsaglia and Tsang 2000; shapes below 1 by way of
 * shape + 1. A logarithm because tiny shapes give numbers that a double cannot hold. */
static double log_gamma_number(ry_rng *rng, double shape)
{
    double boost = 0.0;
    if (shape < 1.0) {
        boost = log(1.0 - ry_rng_uniform(rng)) / shape;
        shape += 1.0;
    }
    const double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double x = ry_rng_normal(rng), base = 1.0 + c * x, v = base * base * base;
        const double u = 1.0 - ry_rng_uniform(rng);
        if (base > 0.0 && log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return boost + log(d) + log(v);
    }
}

double ry_rng_beta(ry_rng *rng, double alpha)
{
    const double a = log_gamma_number(rng, alpha), b = log_gamma_number(rng, alpha);
    return 1.0 / (1.0 + exp(b - a));
}

/* ---- draw ------------------------------------------------------------------------------------ */

static uint32_t clip_side(int64_t i, uint32_t n) { return i < 0 ? 0 : i < n ? (uint32_t)i : n; }

/* A square of share 1 - lambda round a random centre; it is clipped to the image, and lambda is
 * computed again from the clipped area. */
static void draw_box(ry_mix *m, uint32_t size, ry_rng *rng)
{
    const int64_t side = (int64_t)(size * sqrt(1.0 - m->lambda));
    const int64_t y = ry_rng_below(rng, size), x = ry_rng_below(rng, size);
    m->top = clip_side(y - side / 2, size);
    m->bottom = clip_side(y + (side + 1) / 2, size);
    m->left = clip_side(x - side / 2, size);
    m->right = clip_side(x + (side + 1) / 2, size);
    const double area = (double)(m->bottom - m->top) * (m->right - m->left);
    m->lambda = 1.0 - area / ((double)size * size);
}

ry_mix ry_mix_draw(const ry_augment *a, uint32_t size, ry_rng *rng)
{
    ry_mix m = {.lambda = 1.0};
    const int can_mix = a->mixup_alpha > 0.0, can_cut = a->cutmix_alpha > 0.0;
    if ((!can_mix && !can_cut) || ry_rng_uniform(rng) >= a->mix_prob) return m;
    m.is_cut = can_cut && (!can_mix || ry_rng_uniform(rng) < a->mix_switch_prob);
    m.lambda = ry_rng_beta(rng, m.is_cut ? a->cutmix_alpha : a->mixup_alpha);
    if (m.is_cut && m.lambda < 1.0) draw_box(&m, size, rng);
    return m;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static void swap_box(float *a, float *b, uint32_t size, const ry_mix *m)
{
    for (size_t c = 0; c < 3; c++)
        for (size_t y = m->top; y < m->bottom; y++)
            for (size_t x = m->left; x < m->right; x++) {
                const size_t i = (c * size + y) * size + x;
                const float own = a[i];
                a[i] = b[i];
                b[i] = own;
            }
}

void ry_mix_pair(float *a, float *b, uint32_t size, const ry_mix *m)
{
    if (m->lambda == 1.0) return;
    if (m->is_cut) {
        swap_box(a, b, size, m);
        return;
    }
    const float own = (float)m->lambda, other = (float)(1.0 - m->lambda);
    for (size_t i = 0; i < 3 * (size_t)size * size; i++) {
        const float x = a[i], y = b[i];
        a[i] = x * own + y * other;
        b[i] = y * own + x * other;
    }
}

void ry_mix_target(float *target, const ry_mix_labels *l)
{
    const double low = l->smoothing / l->n_classes;
    const float off = (float)low, on = (float)(1.0 - l->smoothing + low);
    const float own = (float)l->lambda, other = (float)(1.0 - l->lambda);
    for (uint32_t k = 0; k < l->n_classes; k++)
        target[k] = (k == l->label ? on : off) * own + (k == l->partner ? on : off) * other;
}

/* ---- samples --------------------------------------------------------------------------------- */

static renyi_status load_image(renyi_image *out, const ry_sampler *s, const char *path,
                               renyi_error *err)
{
    const renyi_image_options opt = {
        .struct_size = sizeof opt, .apply_exif = s->o.apply_exif, .limits = s->o.limits};
    return renyi_image_load(out, path, &opt, err);
}

/* Image `index`, from the cache or its file, augmented into row `row`. */
static renyi_status fill_row(const ry_sampler *s, const ry_plan_item *item, uint32_t row,
                             const ry_sample_rows *rows, uint8_t *scratch, uint32_t *decoded,
                             renyi_error *err)
{
    const uint32_t sample = ry_plan_sample(item, row);
    const uint64_t index = ry_plan_image(&s->plan, item, sample);
    const size_t floats = 3 * (size_t)s->target.size * s->target.size;
    ry_rng rng =
        ry_rng_for(s->o.seed, RY_CHANCE_SAMPLE, item->epoch, ry_plan_place(&s->plan, item, sample));
    renyi_dataset_image file;
    renyi_image image;
    renyi_dataset_get_image(s->data, (size_t)index, &file);
    rows->label[row] = file.label;
    rows->image[row] = index;
    rows->sample[row] = sample;
    int is_kept = ry_cache_find(s->cache, index, &image);
    if (!is_kept) {
        const renyi_status st = load_image(&image, s, file.path, err);
        if (st) return ry_fail_in(err, st, file.path);
        ++*decoded;
        is_kept = ry_cache_keep(s->cache, index, &image);
    }
    const renyi_status st = ry_augment_image(rows->chw + row * floats, scratch, &image,
                                             &s->o.augment, &s->target, &rng, err);
    if (!is_kept) renyi_image_free(&image, NULL);
    return st ? ry_fail_in(err, st, file.path) : RENYI_OK;
}

static ry_mix mix_of(const ry_sampler *s, const ry_plan_item *item)
{
    ry_rng rng = ry_rng_for(s->o.seed, RY_CHANCE_MIX, item->epoch, item->step);
    return ry_mix_draw(&s->o.augment, s->target.size, &rng);
}

double ry_sampler_lambda(const ry_sampler *s, const ry_plan_item *item)
{
    return mix_of(s, item).lambda;
}

static void fill_target(const ry_sampler *s, const ry_sample_rows *rows, uint32_t row,
                        uint32_t partner, double lambda)
{
    const ry_mix_labels labels = {rows->label[row], rows->label[partner], s->o.n_classes,
                                  s->o.smoothing, lambda};
    ry_mix_target(rows->target + (size_t)row * s->o.n_classes, &labels);
}

renyi_status ry_sampler_pair(const ry_sampler *s, const ry_plan_item *item, uint32_t k,
                             const ry_sample_rows *rows, uint32_t *decoded, renyi_error *err)
{
    const uint32_t partner = item->n - 1 - k;
    const size_t floats = 3 * (size_t)s->target.size * s->target.size;
    const ry_mix mix = mix_of(s, item);
    uint8_t *scratch = ry_alloc(NULL, 2, floats);
    if (!scratch) return ry_fail_nomem(err, 2 * floats);
    renyi_status st = fill_row(s, item, k, rows, scratch, decoded, err);
    if (!st && partner != k) st = fill_row(s, item, partner, rows, scratch, decoded, err);
    ry_free(NULL, scratch);
    if (st) return st;
    fill_target(s, rows, k, partner, mix.lambda);
    if (partner == k) return RENYI_OK; /* mixing a sample with itself changes nothing */
    fill_target(s, rows, partner, k, mix.lambda);
    ry_mix_pair(rows->chw + k * floats, rows->chw + partner * floats, s->target.size, &mix);
    return RENYI_OK;
}

void ry_sampler_prefetch(const ry_sampler *s, const ry_plan_item *item, uint32_t k)
{
    for (uint32_t side = 0; side < 2 && k < item->n_pairs; side++) {
        const uint32_t sample = ry_plan_sample(item, side ? item->n - 1 - k : k);
        const uint64_t index = ry_plan_image(&s->plan, item, sample);
        renyi_dataset_image file;
        renyi_image image;
        if (ry_cache_find(s->cache, index, &image)) continue;
        renyi_dataset_get_image(s->data, (size_t)index, &file);
        ry_file_prefetch(file.path);
    }
}
