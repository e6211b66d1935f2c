/* test_batch_loader.c - micro-batches depend only on seed, epoch, step and number; error messages
 * for bad images and options.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mkdtemp */
#include "fixtures/image_test.h"
#include "fixtures/test_heap.h"
#include "image/patches.h"
#include "train/data/augment_steps.h"
#include "train/data/batch_loader.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "test.h"

enum { IMAGES = 23, CLASSES = 3, SIZE = 24 };

static char root[] = "/tmp/renyi_loader_XXXXXX";

/* Image i: class i % 3, sizes that differ, a corner of the drawn plane that differs. */
static const char *image_path(uint32_t i)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%03u/%02u.ppm", root, i % CLASSES, i);
    return path;
}

static void image_size_of(uint32_t i, uint32_t *w, uint32_t *h)
{
    *w = 20 + 7 * (i % 5);
    *h = 20 + 5 * (i % 7);
}

static void write_image(uint32_t i)
{
    uint32_t w, h;
    image_size_of(i, &w, &h);
    FILE *f = fopen(image_path(i), "wb");
    assert_non_null(f);
    fprintf(f, "P6\n%u %u\n255\n", w, h);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            for (uint32_t c = 0; c < 3; c++) fputc(drawn(x + 11 * i, y, c), f);
    fclose(f);
}

static int make_images(void **state)
{
    (void)state;
    char folder[64];
    if (!mkdtemp(root)) return -1;
    for (uint32_t k = 0; k < CLASSES; k++) {
        snprintf(folder, sizeof folder, "%s/%03u", root, k);
        if (mkdir(folder, 0777)) return -1;
    }
    for (uint32_t i = 0; i < IMAGES; i++) write_image(i);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st, (void)type, (void)f;
    return remove(path);
}

static int remove_images(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static renyi_dataset *open_data(void)
{
    const renyi_dataset_options o = {.struct_size = sizeof o, .n_classes = CLASSES};
    renyi_dataset *d;
    renyi_error err;
    if (renyi_dataset_open(&d, root, NULL, &o, &err)) fail_msg("%s", err.message);
    return d;
}

static ry_loader_options options(void)
{
    ry_loader_options o = {.image_size = SIZE,
                           .mean = {0.485, 0.456, 0.406},
                           .std = {0.229, 0.224, 0.225},
                           .seed = 11,
                           .batch = 7,
                           .micro_batch = 4,
                           .keep_last = 1,
                           .n_classes = CLASSES,
                           .smoothing = 0.1};
    ry_augment_defaults(&o.augment);
    return o;
}

static ry_loader *open_loader(const renyi_dataset *d, const ry_loader_options *o)
{
    ry_loader *l;
    renyi_error err;
    if (ry_loader_new(&l, d, o, NULL, &err)) fail_msg("%s", err.message);
    return l;
}

static void next(ry_loader *l, ry_train_batch *b)
{
    renyi_error err;
    if (ry_loader_next(l, b, &err)) fail_msg("%s", err.message);
}

static uint64_t hash_of(const ry_train_batch *b)
{
    const size_t floats = 3 * SIZE * SIZE;
    return fnv1a((const uint8_t *)b->chw, b->n * floats * sizeof(float)) ^
           3 * fnv1a((const uint8_t *)b->target, b->n * CLASSES * sizeof(float)) ^
           5 * fnv1a((const uint8_t *)b->label, b->n * sizeof(uint32_t)) ^
           7 * fnv1a((const uint8_t *)b->image, b->n * sizeof(uint64_t));
}

enum { EPOCHS = 3, STEPS = 4, MICROS = 2 };
typedef uint64_t hashes[EPOCHS][STEPS][MICROS];

/* One run over all epochs, the caller's thread alone. */
static void reference(const renyi_dataset *d, const ry_loader_options *o, hashes out)
{
    ry_loader *l = open_loader(d, o);
    ry_train_batch b;
    assert_int_equal(ry_loader_steps(l), STEPS); /* 7 + 7 + 7 + 2 */
    for (uint32_t e = 0; e < EPOCHS; e++)
        for (uint32_t s = 0; s < STEPS; s++)
            for (uint32_t m = 0; m < (s < 3 ? MICROS : 1); m++) {
                next(l, &b);
                assert_true(b.epoch == e && b.step == s && b.micro == m);
                assert_int_equal(b.batch, s < 3 ? 7 : 2);
                assert_int_equal(b.n, s < 3 ? (m ? 3 : 4) : 2);
                assert_int_equal(b.last_of_step, m == (s < 3 ? 1 : 0));
                assert_int_equal(b.last_of_epoch, s == 3);
                out[e][s][m] = hash_of(&b);
            }
    ry_loader_free(l);
}

static void assert_same_run(const renyi_dataset *d, const ry_loader_options *o, hashes want)
{
    ry_loader *l = open_loader(d, o);
    for (;;) {
        ry_train_batch b;
        next(l, &b);
        if (b.epoch == EPOCHS) break;
        if (b.n) assert_true(hash_of(&b) == want[b.epoch][b.step][b.micro]);
    }
    ry_loader_free(l);
}

static void test_same_bits_for_all(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    ry_loader_options o = options();
    hashes want;
    reference(d, &o, want);
    assert_true(want[0][0][0] != want[1][0][0] && want[0][0][0] != want[0][1][0]);
    for (uint32_t workers = 0; workers <= 3; workers++)
        for (uint32_t threads = 1; threads <= 3; threads++)
            for (int cached = 0; cached < 3; cached++) {
                o.n_workers = workers;
                o.n_threads = threads;
                o.cache_bytes = cached == 0 ? 0 : cached == 1 ? 20000 : 1 << 20;
                assert_same_run(d, &o, want);
            }
    for (o.n_ranks = 2; o.n_ranks <= 4; o.n_ranks++)
        for (o.rank = 0; o.rank < o.n_ranks; o.rank++) assert_same_run(d, &o, want);
    o = options();
    o.seed++;
    hashes other;
    reference(d, &o, other);
    assert_true(other[0][0][0] != want[0][0][0]);
    renyi_dataset_free(d);
}

static void test_seek(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    ry_loader_options o = options();
    hashes want;
    reference(d, &o, want);
    o.n_workers = 2;
    ry_loader *l = open_loader(d, &o);
    ry_rng rng = ry_rng_new(1);
    renyi_error err;
    for (int round = 0; round < 40; round++) {
        const uint32_t e = (uint32_t)(ry_rng_next(&rng) % EPOCHS);
        const uint32_t s = (uint32_t)(ry_rng_next(&rng) % STEPS);
        assert_int_equal(ry_loader_seek(l, e, s, &err), RENYI_OK);
        for (uint64_t i = ry_rng_next(&rng) % 4; i < 5; i++) {
            ry_train_batch b;
            next(l, &b);
            assert_true(i % 4 || b.epoch >= e);
            if (b.epoch < EPOCHS) assert_true(hash_of(&b) == want[b.epoch][b.step][b.micro]);
        }
    }
    assert_int_equal(ry_loader_seek(l, 0, STEPS, &err), RENYI_ERR_ARG);
    ry_loader_free(l);
    renyi_dataset_free(d);
}

/* All settings zero: images as in evaluation, in the dataset's order, one-hot targets. */
static void test_plain(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    ry_loader_options o = options();
    float lut[3][256];
    o.augment = (ry_augment){0};
    o.smoothing = 0;
    o.keep_order = 1;
    ry_normalize_lut(lut, o.mean, o.std);
    ry_loader *l = open_loader(d, &o);
    for (uint32_t seen = 0; seen < IMAGES;) {
        ry_train_batch b;
        next(l, &b);
        for (uint32_t k = 0; k < b.n; k++, seen++) {
            const uint32_t i = (uint32_t)b.image[k];
            renyi_dataset_image file;
            renyi_dataset_get_image(d, i, &file);
            assert_int_equal(i, b.step * 7 + b.sample[k]);
            assert_int_equal(b.label[k], file.label);
            for (uint32_t c = 0; c < CLASSES; c++)
                assert_true(b.target[k * CLASSES + c] == (c == file.label ? 1.0f : 0.0f));
            const uint32_t number = (uint32_t)atoi(strrchr(file.path, '/') + 1);
            uint32_t w, h;
            image_size_of(number, &w, &h);
            uint8_t *rgb = malloc((size_t)w * h * 3), want[SIZE * SIZE * 3], got[SIZE * SIZE * 3];
            for (uint32_t y = 0; y < h; y++)
                for (uint32_t x = 0; x < w; x++)
                    for (uint32_t c = 0; c < 3; c++)
                        rgb[(y * w + x) * 3 + c] = drawn(x + 11 * number, y, c);
            const renyi_image image = {rgb, w, h, 0};
            const renyi_preprocess spec = {.size = SIZE, .crop_pct = 1.0};
            renyi_error err;
            assert_int_equal(renyi_image_fit(want, &image, &spec, NULL, &err), RENYI_OK);
            ry_loader_to_rgb(l, &b, k, got);
            assert_memory_equal(got, want, sizeof want);
            assert_true(b.chw[k * sizeof want] == lut[0][want[0]]);
            free(rgb);
        }
    }
    ry_loader_free(l);
    renyi_dataset_free(d);
}

/* Two ranks and a batch of two: one of them has no samples and gets one empty micro-batch per step.
 */
static void test_rank_without_samples(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    ry_loader_options o = options();
    o.batch = o.micro_batch = 2;
    o.keep_last = 0;
    o.rank = 1;
    o.n_ranks = 2;
    o.n_workers = 1;
    ry_loader *l = open_loader(d, &o);
    for (uint32_t i = 0; i < 30; i++) {
        ry_train_batch b;
        next(l, &b);
        assert_int_equal(b.n, 0);
        assert_int_equal(b.batch, 2);
        assert_true(b.last_of_step && b.step == i % 11 && b.epoch == i / 11);
    }
    ry_loader_free(l);
    renyi_dataset_free(d);
}

static void test_cache_decodes_once(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    ry_loader_options o = options();
    ry_loader_info info;
    ry_train_batch b;
    o.cache_bytes = 1 << 20;
    ry_loader *l = open_loader(d, &o);
    do next(l, &b);
    while (b.epoch < 3);
    ry_loader_get_info(l, &info);
    assert_int_equal(info.decoded, IMAGES);
    assert_true(info.cache_bytes > 10000 && info.cache_bytes < 1 << 20 && info.bytes > 10000);
    ry_loader_free(l);
    renyi_dataset_free(d);
}

/* ---- errors -------------------------------------------------------------------------------- */

/* A missing image, then a broken one: named at its turn, and again until a seek. */
static void assert_fault(const renyi_dataset *d, uint32_t workers, const char *name,
                         const char *why)
{
    ry_loader_options o = options();
    renyi_error err = {0};
    ry_train_batch b;
    uint32_t given = 0;
    o.keep_order = 1;
    o.n_workers = workers;
    ry_loader *l = open_loader(d, &o);
    while (!ry_loader_next(l, &b, &err)) given++;
    assert_true(given > 0 && given < 8);
    if (!strstr(err.message, name) || !strstr(err.message, why)) fail_msg("%s", err.message);
    renyi_error again = {0};
    assert_true(ry_loader_next(l, &b, &again) == err.code);
    assert_string_equal(again.message, err.message);
    assert_int_equal(ry_loader_seek(l, 1, 0, &err), RENYI_OK);
    next(l, &b);
    assert_int_equal(b.epoch, 1);
    ry_loader_free(l);
}

static void test_vanished_and_broken(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    for (uint32_t workers = 0; workers < 3; workers++) {
        assert_int_equal(remove(image_path(13)), 0);
        assert_fault(d, workers, "/001/13.ppm", "No such file");
        FILE *f = fopen(image_path(13), "wb");
        fputs("P6\n30 30\n255\nshort", f);
        fclose(f);
        assert_fault(d, workers, "/001/13.ppm", "");
        write_image(13);
    }
    renyi_dataset_free(d);
}

static void assert_refused(const renyi_dataset *d, const ry_loader_options *o, const char *part)
{
    renyi_error err = {0};
    ry_loader *l;
    assert_int_equal(ry_loader_new(&l, d, o, NULL, &err), RENYI_ERR_ARG);
    assert_null(l);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

#define REFUSED(part, change)               \
    do {                                    \
        ry_loader_options bad_ = options(); \
        ry_loader_options *const o = &bad_; \
        change;                             \
        assert_refused(d, o, part);         \
    } while (0)

static void test_options(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    REFUSED("image size 0", o->image_size = 0);
    REFUSED("batch size 0", o->batch = 0);
    REFUSED("0 classes", o->n_classes = 0);
    REFUSED("class 2, the model has 2", o->n_classes = 2);
    REFUSED("smoothing 1.5", o->smoothing = 1.5);
    REFUSED("deviation 0", o->std[1] = 0);
    REFUSED("rank 3 of 2", (o->rank = 3, o->n_ranks = 2));
    REFUSED("a batch of 24 from 23", (o->batch = 24, o->keep_last = 0));
    REFUSED("threads", o->n_workers = 5000);
    REFUSED("crop scale", o->augment.crop_scale[1] = 1.5);
    REFUSED("crop scale", o->augment.crop_scale[0] = 0);
    REFUSED("crop ratio", o->augment.crop_ratio[0] = 2);
    REFUSED("erased area", o->augment.erase_area[1] = 0.01);
    REFUSED("magnitude 11", o->augment.rand_magnitude = 11);
    REFUSED("mixup's alpha nan", o->augment.mixup_alpha = NAN);
    REFUSED("RandAugment with 101", o->augment.rand_ops = 101);
    renyi_dataset_free(d);
}

static void test_limits(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    ry_loader_options o = options();
    renyi_error err = {0};
    ry_train_batch b;
    o.limits.max_pixels = 500;
    ry_loader *l = open_loader(d, &o);
    renyi_status st;
    do st = ry_loader_next(l, &b, &err);
    while (!st);
    assert_int_equal(st, RENYI_ERR_LIMIT);
    assert_non_null(strstr(err.message, ".ppm"));
    ry_loader_free(l);
    renyi_dataset_free(d);
}

static void test_no_memory(void **state)
{
    (void)state;
    renyi_dataset *d = open_data();
    ry_loader_options o = options();
    o.cache_bytes = 1000;
    o.n_workers = 1;
    for (size_t at = 1; at < 100; at++) {
        test_heap heap = {.fail_at = at};
        const renyi_allocator al = test_heap_of(&heap);
        renyi_error err;
        ry_loader *l;
        const renyi_status st = ry_loader_new(&l, d, &o, &al, &err);
        if (!st) {
            ry_train_batch b;
            next(l, &b);
            ry_loader_free(l);
        } else {
            assert_int_equal(st, RENYI_ERR_NOMEM);
        }
        assert_int_equal(heap.live, 0);
        if (!st && heap.calls < at) {
            renyi_dataset_free(d);
            return;
        }
    }
    fail_msg("more than 100 allocations");
}

/* ---- random crop and erasing --------------------------------------------------------------- */

static void test_crop_boxes(void **state)
{
    (void)state;
    enum { N = 20000, W = 176, H = 140 };
    ry_augment a;
    ry_rng rng = ry_rng_new(4);
    double area = 0, shape = 0;
    ry_augment_defaults(&a);
    for (int i = 0; i < N; i++) {
        const ry_crop c = ry_crop_draw(W, H, &a, &rng);
        assert_true(c.width && c.height && c.left + c.width <= W && c.top + c.height <= H);
        const double share = (double)c.width * c.height / (W * H), s = (double)c.width / c.height;
        assert_true(share > 0.07 && share <= 1 && s > 0.7 && s < 1.4);
        area += share;
        shape += log(s);
    }
    /* timm's get_params over 400,000 draws: 0.4531 and 0.0284. */
    assert_true(fabs(area / N - 0.4531) < 0.006);
    assert_true(fabs(shape / N - 0.0284) < 0.005);
}

/* An image too long for any try: a crop of the middle, as in torchvision. */
static void test_crop_fallback(void **state)
{
    (void)state;
    ry_augment a;
    ry_rng rng = ry_rng_new(4);
    ry_augment_defaults(&a);
    a.crop_scale[0] = 0.5;
    ry_crop c = ry_crop_draw(1000, 10, &a, &rng);
    assert_true(c.width == 13 && c.height == 10 && c.left == 493 && c.top == 0);
    c = ry_crop_draw(10, 1000, &a, &rng);
    assert_true(c.width == 10 && c.height == 13 && c.left == 0 && c.top == 493);
    c = ry_crop_draw(1, 1, &a, &rng);
    assert_true(c.width == 1 && c.height == 1);
}

/* Erasing alone: boxes of the sizes that timm draws, noise of mean 0 and deviation 1. */
static void test_erasing(void **state)
{
    (void)state;
    enum { N = 2000, S = 32 };
    static float chw[3 * S * S];
    static uint8_t scratch[2 * 3 * S * S];
    ry_augment_target t = {.size = S, .mean = {0.5, 0.5, 0.5}, .std = {0.01, 0.01, 0.01}};
    const ry_augment a = {.erase = 0.25};
    uint8_t rgb[3 * S * S];
    memset(rgb, 255, sizeof rgb); /* 50 deviations away from the noise */
    const renyi_image image = {rgb, S, S, 0};
    int erased = 0;
    double share = 0, sum = 0, square = 0, n = 0;
    ry_normalize_lut(t.lut, t.mean, t.std);
    for (uint64_t i = 0; i < N; i++) {
        ry_rng rng = ry_rng_new(i * 1000003);
        renyi_error err;
        int count = 0;
        assert_int_equal(ry_augment_image(chw, scratch, &image, &a, &t, &rng, &err), RENYI_OK);
        for (int k = 0; k < 3 * S * S; k++) {
            if (chw[k] > 20) continue;
            count++;
            sum += (double)chw[k];
            square += (double)chw[k] * (double)chw[k];
        }
        assert_int_equal(count % 3, 0);
        erased += count > 0;
        n += count;
        share += count / 3.0 / (S * S);
    }
    assert_true(abs(erased - N / 4) < 80);
    assert_true(fabs(share / erased - 0.1756) < 0.012);
    assert_true(fabs(sum / n) < 0.02 && fabs(square / n - 1) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_for_all),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_rank_without_samples),
        cmocka_unit_test(test_cache_decodes_once),
        cmocka_unit_test(test_vanished_and_broken),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_crop_boxes),
        cmocka_unit_test(test_crop_fallback),
        cmocka_unit_test(test_erasing),
    };
    return cmocka_run_group_tests(tests, make_images, remove_images);
}
