/* test_masks.c - checks a study of masks on a small model: counts, rankings, fates and errors, the
 * same for all batch sizes and numbers of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "engine/viz/scores.h"
#include "fixtures/png_build.h"
#include "fixtures/test_heap.h"
#include "renyi/eval.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

/* Images 0 to 13: 8 has no mask, 9 a mask of another size, 10 a truncated one, 11 is not an image,
 * 12 is all background, 13 all object. */
enum { IMAGES = 14, GOOD = 8, FAILED = 4, ONE_SIDED = 2, SIDE = 48, BLOCKS = 3, PATCHES = 49 };
static const char *const metrics[] = {"cls", "col n=4", "renyi", "colv n=inf heads=each", "random"};
static const char *const policies[] = {"evit keep=0.5 layers=1 metric=col n=4 reduce=drop",
                                       "evit keep=0.6 layers=0,1,2 metric=cls fuse",
                                       "mosaic keep=0.7 layers=0,1",
                                       "tome r=6",
                                       "ats keep=0.5 layers=0,2",
                                       "evit keep=1 layers=0,1"};
enum { METRICS = 5, POLICIES = 6 };
static char root[] = "/tmp/renyi_masks_XXXXXX";
static renyi_model *model;
static renyi_dataset *data;

static const char *at(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static void make_image(int i)
{
    uint8_t ppm[16 + SIDE * SIDE * 3];
    char name[64];
    uint32_t state = (uint32_t)i + 1;
    size_t n = (size_t)snprintf((char *)ppm, sizeof ppm, "P6\n%d %d\n255\n", SIDE, SIDE);
    for (int k = 0; k < SIDE * SIDE * 3; k++) {
        state = state * 1664525u + 1013904223u;
        ppm[n++] = (uint8_t)(state >> 24);
    }
    snprintf(name, sizeof name, "photos/%d/%02d.ppm", i % 2, i);
    write_file(name, ppm, i == 11 ? 5 : n);
}

/* A disc at a different place in each image; even images have trimaps. Odd masks are in the folder
 * itself, even ones in subfolders with the names of the image folders. */
static void make_mask(int i)
{
    static uint16_t values[(SIDE + 1) * SIDE];
    const int w = i == 9 ? SIDE + 1 : SIDE;
    char name[64];
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < w; x++) {
            const int dx = x - 10 - 2 * i, dy = y - 24, d = dx * dx + dy * dy;
            uint16_t v = d < 150 ? 1 : d < 450 ? 3 : 2;
            if (i == 12) v = 2;
            if (i == 13) v = 1;
            values[y * w + x] = i % 2 ? (v == 1 ? 255 : 0) : v;
        }
    png_file f = png_build((uint32_t)w, SIDE, PNG_GREY, 8, values, 0);
    snprintf(name, sizeof name, "masks/%s%02d.png", i % 2 ? "" : "0/", i);
    if (i != 8) write_file(name, f.bytes, i == 10 ? f.size / 2 : f.size);
    free(f.bytes);
}

static renyi_masks_options options(void)
{
    return (renyi_masks_options){.struct_size = sizeof(renyi_masks_options),
                                 .folder = at("masks"),
                                 .n_metrics = METRICS,
                                 .metrics = metrics,
                                 .n_policies = POLICIES,
                                 .policies = policies,
                                 .batch = 4,
                                 .n_threads = 1};
}

static renyi_masks *run_ok(const renyi_masks_options *o)
{
    renyi_error err = {0};
    renyi_masks *s;
    if (renyi_masks_new(&s, model, data, o, &err) || renyi_masks_run(s, &err))
        fail_msg("%s", err.message);
    return s;
}

static void test_counts(void **state)
{
    const renyi_masks_options o = options();
    renyi_masks_info info;
    renyi_masks *s = run_ok(&o);
    static const char *const texts[FAILED] = {"no .png file of this name", "truncated", "PPM",
                                              "49 x 48 pixels for an image of 48 x 48"};
    (void)state;
    for (int again = 0; again < 2; again++) {
        renyi_masks_get_info(s, &info);
        assert_int_equal(info.images, GOOD);
        assert_int_equal(info.failed, FAILED);
        assert_int_equal(info.one_sided, ONE_SIDED);
        assert_int_equal(info.n_trimap, 4 + 1);
        assert_int_equal(info.n_binary, 4 + 1);
        assert_true(fabs(info.object + info.background + info.left_out - PATCHES) < 1e-9);
        assert_true(info.object > 1 && info.background > 1 && info.left_out > 0);
        assert_int_equal(renyi_masks_failure_count(s), FAILED);
        if (!again) assert_int_equal(renyi_masks_run(s, NULL), RENYI_OK);
    }
    assert_int_equal(info.n_patches, PATCHES);
    assert_int_equal(info.n_kept, 35); /* ceil(0.7 x 49) */
    for (size_t i = 0; i < FAILED; i++) {
        renyi_eval_failure f;
        renyi_masks_get_failure(s, i, &f);
        int known = 0;
        for (size_t t = 0; t < FAILED; t++) known |= strstr(f.message, texts[t]) != NULL;
        if (!known) fail_msg("%s: %s", f.file, f.message);
    }
    assert_string_equal(renyi_masks_metric(s, 2), "renyi n=2");
    assert_string_equal(renyi_masks_metric(s, 3), "colv n=inf heads=each");
    renyi_masks_free(s);
}

/* Every number of two studies, bit for bit. */
static void compare(const renyi_masks *a, const renyi_masks *b)
{
    for (uint32_t block = 0; block < BLOCKS; block++) {
        for (uint32_t m = 0; m < METRICS; m++) {
            renyi_masks_ranking x, y;
            renyi_masks_get_ranking(a, m, block, &x);
            renyi_masks_get_ranking(b, m, block, &y);
            assert_memory_equal(&x, &y, sizeof x);
        }
        for (uint32_t p = 0; p < POLICIES; p++) {
            renyi_masks_survival x, y;
            memset(&x, 0, sizeof x), memset(&y, 0, sizeof y);
            renyi_masks_get_survival(a, p, block, &x);
            renyi_masks_get_survival(b, p, block, &y);
            assert_int_equal(x.is_cut, y.is_cut);
            assert_memory_equal(&x.object, &y.object, sizeof x.object);
            assert_memory_equal(&x.background, &y.background, sizeof x.background);
        }
    }
}

static void test_same_numbers(void **state)
{
    static const uint32_t plans[][2] = {{1, 1}, {3, 2}, {64, 3}}; /* batch, threads */
    renyi_masks_options o = options();
    renyi_masks *first = run_ok(&o);
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        o.batch = plans[i][0];
        o.n_threads = plans[i][1];
        renyi_masks *other = run_ok(&o);
        compare(first, other);
        renyi_masks_free(other);
    }
    renyi_masks_free(first);
}

/* Shares sum to one; the first cut of a policy keeps what its metric says at that block; a policy
 * that removes nothing leaves all alone. */
static void test_policies(void **state)
{
    renyi_masks_options o = options();
    o.keep = 0.5;
    renyi_masks *s = run_ok(&o);
    (void)state;
    for (uint32_t p = 0; p < POLICIES; p++)
        for (uint32_t b = 0; b < BLOCKS; b++) {
            renyi_masks_survival v;
            renyi_masks_get_survival(s, p, b, &v);
            const renyi_masks_fates *f[] = {&v.object, &v.background};
            for (int side = 0; side < 2; side++)
                assert_true(fabs(f[side]->alone.mean + f[side]->merged.mean + f[side]->fused.mean +
                                 f[side]->dropped.mean - 1.0) < 1e-12);
            assert_int_equal(v.is_cut, p == 0 ? b == 1 : p == 2 ? b < 2 : p == 4 ? b != 1 : p != 5);
            if (p == 5) assert_true(v.object.alone.mean == 1.0 && v.background.alone.mean == 1.0);
            if (p == 1) assert_true(v.object.dropped.mean == 0.0 && v.object.fused.mean > 0.0);
            if (p == 3) assert_true(v.object.dropped.mean == 0.0 && v.object.merged.mean > 0.0);
            if (p == 4) assert_true(v.object.dropped.mean > 0.0 && v.object.merged.mean == 0.0);
        }
    renyi_masks_ranking rank;
    renyi_masks_survival cut;
    renyi_masks_get_ranking(s, 1, 1, &rank);
    renyi_masks_get_survival(s, 0, 1, &cut);
    assert_true(rank.kept_object.mean == cut.object.alone.mean);
    assert_true(rank.kept_background.mean == cut.background.alone.mean);
    renyi_masks_free(s);
}

static void test_rankings(void **state)
{
    renyi_masks_options o = options();
    o.keep = 1.0;
    o.n_policies = 0;
    renyi_masks *s = run_ok(&o);
    renyi_estimate d;
    (void)state;
    for (uint32_t m = 0; m < METRICS; m++)
        for (uint32_t b = 0; b < BLOCKS; b++) {
            renyi_masks_ranking r;
            renyi_masks_get_ranking(s, m, b, &r);
            assert_true(r.auc.mean >= 0.0 && r.auc.mean <= 1.0);
            assert_true(r.auc.range.low < r.auc.mean && r.auc.mean < r.auc.range.high);
            assert_true(r.kept_object.mean == 1.0 && r.kept_background.mean == 1.0);
            if (m == METRICS - 1) assert_true(fabs(r.auc.mean - 0.5) < 0.15); /* random */
            renyi_masks_ranking first;
            renyi_masks_get_ranking(s, 0, b, &first);
            renyi_masks_get_difference(s, 0, m, b, &d);
            assert_true(fabs(d.mean - (r.auc.mean - first.auc.mean)) < 1e-12);
            if (m == 0) assert_true(d.mean == 0.0 && d.range.low == 0.0 && d.range.high == 0.0);
        }
    renyi_masks_free(s);
}

/* The scores are those by which a policy would cut there, bit for bit. */
static void test_scores(void **state)
{
    enum { N = 3 };
    const size_t values = (size_t)112 * 112 * 3;
    const ry_scores_options o = {METRICS, metrics, 0.5, N, 2};
    uint8_t *pixels = malloc(N * values);
    float logits[N * 10];
    renyi_error err = {0};
    ry_scores *s;
    (void)state;
    assert_non_null(pixels);
    for (size_t i = 0; i < N * values; i++) pixels[i] = (uint8_t)(i * i * 2654435761u >> 24);
    if (ry_scores_new(&s, model, &o, &err)) fail_msg("%s", err.message);
    ry_scores_run(s, pixels, NULL, N);
    for (uint32_t m = 0; m < METRICS; m++)
        for (uint32_t b = 0; b < BLOCKS; b++) {
            char policy[128];
            snprintf(policy, sizeof policy, "evit keep=0.5 layers=%u metric=%s", b, metrics[m]);
            const renyi_session_options so = {
                .struct_size = sizeof so, .max_batch = N, .policy = policy, .trace = 1};
            renyi_session *session;
            if (renyi_session_new(&session, model, &so, &err) ||
                renyi_run_pixels(session, pixels, N, logits, &err))
                fail_msg("%s", err.message);
            for (uint32_t i = 0; i < N; i++) {
                renyi_cut cut;
                assert_int_equal(renyi_session_cut(session, i, 0, &cut, &err), RENYI_OK);
                assert_memory_equal(ry_scores_get(s, i, m, b), cut.score + cut.n_prefix,
                                    PATCHES * sizeof(float));
            }
            renyi_session_free(session);
        }
    ry_scores_free(s);
    free(pixels);
}

static void refuse(const renyi_masks_options *o, renyi_status code, const char *text)
{
    renyi_error err = {0};
    renyi_masks *s;
    const renyi_status st = renyi_masks_new(&s, model, data, o, &err);
    if (st != code || !strstr(err.message, text)) fail_msg("%d: %s", (int)st, err.message);
    assert_null(s);
}

static void test_faults(void **state)
{
    const char *const unknown[] = {"nonsense"}, *const twice[] = {"col n=4", "col  n=4"},
                      *const correct[] = {"correct"};
    renyi_masks_options o = options();
    renyi_error err = {0};
    renyi_masks *s;
    (void)state;
    assert_int_equal(renyi_masks_new(&s, NULL, data, &o, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_masks_run(NULL, &err), RENYI_ERR_ARG);
    renyi_masks_free(NULL);
    o.n_metrics = 1;
    o.metrics = unknown;
    refuse(&o, RENYI_ERR_ARG, "metric \"nonsense\": ");
    o.metrics = correct;
    refuse(&o, RENYI_ERR_ARG, "two rankings");
    o.metrics = twice;
    o.n_metrics = 2;
    refuse(&o, RENYI_ERR_ARG, "given twice");
    o = options();
    o.keep = 1.5;
    refuse(&o, RENYI_ERR_ARG, "keep 1.5");
    o = options();
    o.folder = NULL;
    refuse(&o, RENYI_ERR_ARG, "folder");
    o = options();
    o.kind = (renyi_mask_kind)7;
    refuse(&o, RENYI_ERR_ARG, "kind");
    o = options();
    o.batch = 100000;
    refuse(&o, RENYI_ERR_LIMIT, "the limits are 1024");
    o = options();
    o.struct_size = 3;
    refuse(&o, RENYI_ERR_ARG, "struct_size");
    /* Binary masks read as trimaps are failures, not errors of the study. */
    o = options();
    o.kind = RENYI_MASK_TRIMAP;
    s = run_ok(&o);
    renyi_masks_info info;
    renyi_masks_get_info(s, &info);
    assert_int_equal(info.n_binary, 0);
    assert_true(info.failed > FAILED);
    renyi_masks_free(s);
}

/* Images without classes, also from a list with any classes; label files are refused. */
static void test_unlabelled(void **state)
{
    static const char list[] = "file,label\nphotos/0/00.ppm,zebra\nphotos/1/01.ppm,\n";
    renyi_dataset_options o = {.struct_size = sizeof o, .unlabelled = 1};
    renyi_dataset_info info;
    renyi_dataset_image image;
    renyi_error err = {0};
    renyi_dataset *d;
    (void)state;
    write_file("list.csv", list, sizeof list - 1);
    if (renyi_dataset_open(&d, at("list.csv"), model, &o, &err)) fail_msg("%s", err.message);
    renyi_dataset_get_info(d, &info);
    renyi_dataset_get_image(d, 1, &image);
    assert_int_equal(info.n_images, 2);
    assert_int_equal(info.n_left_out, 0);
    assert_int_equal(image.label, RENYI_NO_CLASS);
    assert_string_equal(image.file, "photos/1/01.ppm");
    renyi_dataset_free(d);
    o.class_map = "map";
    assert_int_equal(renyi_dataset_open(&d, at("photos"), model, &o, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "label files"));
}

static int stop_soon(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    assert_int_equal(total, IMAGES);
    return done >= 4;
}

static void test_stop(void **state)
{
    renyi_masks_options o = options();
    renyi_error err = {0};
    renyi_masks_info info;
    renyi_masks *s;
    (void)state;
    o.progress = stop_soon;
    assert_int_equal(renyi_masks_new(&s, model, data, &o, &err), RENYI_OK);
    assert_int_equal(renyi_masks_run(s, &err), RENYI_ERR_ABORTED);
    renyi_masks_get_info(s, &info);
    assert_true(info.images > 0 && info.images <= 4);
    renyi_masks_free(s);
}

/* The border as object makes objects larger; other means and stds run on normalized floats. */
static void test_options(void **state)
{
    renyi_masks_options o = options();
    renyi_masks_info before, after;
    renyi_model_info info;
    (void)state;
    o.n_policies = 1;
    renyi_masks *s = run_ok(&o);
    renyi_masks_get_info(s, &before);
    renyi_masks_free(s);
    renyi_model_get_info(model, &info);
    info.preprocess.mean[0] = 0.4;
    o.border_is_object = 1;
    o.preprocess = &info.preprocess;
    s = run_ok(&o);
    renyi_masks_get_info(s, &after);
    renyi_masks_free(s);
    assert_true(after.object > before.object && after.left_out < before.left_out);
}

static void test_memory(void **state)
{
    int good = 0;
    (void)state;
    for (size_t allowed = 0; !good; allowed++) {
        test_heap h = {.fail_at = allowed + 1, .fail_on = 1};
        renyi_masks_options o = options();
        renyi_masks *s;
        renyi_error err = {0};
        o.n_policies = 1;
        o.n_metrics = 2;
        o.allocator = test_heap_of(&h);
        renyi_status st = renyi_masks_new(&s, model, data, &o, &err);
        if (!st) st = renyi_masks_run(s, &err);
        renyi_masks_free(s);
        assert_int_equal(h.live, 0);
        good = st == RENYI_OK;
        if (!good) assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(allowed < 300);
    }
}

/* The same for the part that allocates with the model's allocator. */
static void test_memory_of_scores(void **state)
{
    test_heap h = {0};
    const renyi_options mo = {
        .struct_size = sizeof mo, .image_size = 112, .allocator = test_heap_of(&h)};
    const ry_scores_options o = {METRICS, metrics, 0.5, 2, 1};
    renyi_error err = {0};
    renyi_model *own;
    int good = 0;
    (void)state;
    if (renyi_model_open(&own, at("m.safetensors"), &mo, &err)) fail_msg("%s", err.message);
    const size_t before = h.live;
    for (size_t allowed = 0; !good; allowed++) {
        ry_scores *s;
        h.fail_at = h.calls + allowed + 1;
        h.fail_on = 1;
        const renyi_status st = ry_scores_new(&s, own, &o, &err);
        ry_scores_free(s);
        assert_int_equal(h.live, before);
        good = st == RENYI_OK;
        if (!good) assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(allowed < 300);
    }
    renyi_model_free(own);
    assert_int_equal(h.live, 0);
}

static int set_up(void **state)
{
    const renyi_init_options init = {.struct_size = sizeof init,
                                     .seed = 1,
                                     .n_classes = 10,
                                     .dim = 64,
                                     .n_blocks = BLOCKS,
                                     .n_heads = 2};
    const renyi_options small = {.struct_size = sizeof small, .image_size = 112};
    const renyi_dataset_options all = {.struct_size = sizeof all, .unlabelled = 1};
    renyi_error err = {0};
    (void)state;
    if (!mkdtemp(root) || mkdir(at("photos"), 0777) || mkdir(at("masks"), 0777) ||
        mkdir(at("photos/0"), 0777) || mkdir(at("photos/1"), 0777) || mkdir(at("masks/0"), 0777))
        return -1;
    for (int i = 0; i < IMAGES; i++) {
        make_image(i);
        make_mask(i);
    }
    if (renyi_model_init_file(at("m.safetensors"), "vit_tiny_patch16_224", &init, &err) ||
        renyi_model_open(&model, at("m.safetensors"), &small, &err) ||
        renyi_dataset_open(&data, at("photos"), model, &all, &err)) {
        printf("%s\n", err.message);
        return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    renyi_dataset_free(data);
    renyi_model_free(model);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_same_numbers),
                                       cmocka_unit_test(test_policies),
                                       cmocka_unit_test(test_rankings),
                                       cmocka_unit_test(test_scores),
                                       cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_stop),
                                       cmocka_unit_test(test_unlabelled),
                                       cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_memory_of_scores)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
