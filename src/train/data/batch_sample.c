/* batch_sample.c - see batch_sample.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/batch_sample.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "train/data/mix.h"

static renyi_status load_image(renyi_image *out, const ry_sampler *s, const char *path,
                               renyi_error *err)
{
    const renyi_image_options opt = {
        .struct_size = sizeof opt, .apply_exif = s->o.apply_exif, .limits = s->o.limits};
    return renyi_image_load(out, path, &opt, err);
}

/* Photo `index`, from the cache or its file, augmented into row `row`. */
static renyi_status fill_row(const ry_sampler *s, const ry_plan_item *item, uint32_t row,
                             const ry_sample_rows *rows, uint8_t *scratch, uint32_t *decoded,
                             renyi_error *err)
{
    const uint32_t sample = ry_plan_sample(item, row);
    const uint64_t index = ry_plan_photo(&s->plan, item, sample);
    const size_t floats = 3 * (size_t)s->target.size * s->target.size;
    ry_rng rng = ry_chance_of(s->o.seed, RY_CHANCE_SAMPLE, item->epoch,
                              ry_plan_place(&s->plan, item, sample));
    renyi_dataset_image file;
    renyi_image photo;
    renyi_dataset_get_image(s->data, (size_t)index, &file);
    rows->label[row] = file.label;
    rows->photo[row] = index;
    rows->sample[row] = sample;
    int is_kept = ry_cache_find(s->cache, index, &photo);
    if (!is_kept) {
        const renyi_status st = load_image(&photo, s, file.path, err);
        if (st) return ry_fail_in(err, st, file.path);
        ++*decoded;
        is_kept = ry_cache_keep(s->cache, index, &photo);
    }
    const renyi_status st = ry_augment_picture(rows->chw + row * floats, scratch, &photo,
                                               &s->o.augment, &s->target, &rng, err);
    if (!is_kept) renyi_image_free(&photo, NULL);
    return st ? ry_fail_in(err, st, file.path) : RENYI_OK;
}

static ry_mix mix_of(const ry_sampler *s, const ry_plan_item *item)
{
    ry_rng rng = ry_chance_of(s->o.seed, RY_CHANCE_MIX, item->epoch, item->step);
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
    if (partner == k) return RENYI_OK; /* mixed with itself: itself */
    fill_target(s, rows, partner, k, mix.lambda);
    ry_mix_pair(rows->chw + k * floats, rows->chw + partner * floats, s->target.size, &mix);
    return RENYI_OK;
}

void ry_sampler_prefetch(const ry_sampler *s, const ry_plan_item *item, uint32_t k)
{
    for (uint32_t side = 0; side < 2 && k < item->n_pairs; side++) {
        const uint32_t sample = ry_plan_sample(item, side ? item->n - 1 - k : k);
        const uint64_t index = ry_plan_photo(&s->plan, item, sample);
        renyi_dataset_image file;
        renyi_image photo;
        if (ry_cache_find(s->cache, index, &photo)) continue;
        renyi_dataset_get_image(s->data, (size_t)index, &file);
        ry_file_prefetch(file.path);
    }
}
