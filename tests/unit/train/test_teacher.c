/* test_teacher.c - a teacher on a student's tensors: logits against a session on the same pixels,
 * tokens against a forward pass in doubles, the map of classes, and errors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "engine/core/model_handle.h"
#include "fixtures/test_heap.h"
#include "fixtures/vit_reference.h"
#include "train/run/teacher.h"

enum { IMAGES = 3, SIDE = 32, VALUES = 3 * SIDE * SIDE, PATCHES = 16 };

static uint8_t pixels[IMAGES * SIDE * SIDE * 3];
static float chw[IMAGES * VALUES]; /* normalized for the student */

/* The student's normalization differs from the teacher's mean 0.5 and deviation 0.5. */
static const renyi_preprocess student_sees = {.mean = {0.485, 0.456, 0.406},
                                              .std = {0.229, 0.224, 0.225}};

static ry_vit_config student_of(uint32_t n_classes)
{
    return (ry_vit_config){
        .image_size = SIDE, .patch_size = 8, .n_classes = n_classes, .preprocess = student_sees};
}

static int make_images(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * i * 37 % 251);
    for (size_t i = 0; i < IMAGES; i++)
        for (size_t k = 0; k < SIDE * SIDE; k++)
            for (size_t c = 0; c < 3; c++)
                chw[i * VALUES + c * SIDE * SIDE + k] =
                    (float)((pixels[(i * SIDE * SIDE + k) * 3 + c] / 255.0 - student_sees.mean[c]) /
                            student_sees.std[c]);
    return 0;
}

static renyi_model *open_teacher(fixture *f, const char *architecture)
{
    static const char config[] =
        "{\"pretrained_cfg\": {\"mean\": [0.5, 0.5, 0.5], \"std\": [0.5, 0.5, 0.5]},"
        " \"label_names\": [\"ant\", \"bee, honeybee\", \"cat\", \"dog\", \"egret\"]}";
    renyi_model *m = NULL;
    const renyi_options opt = {.struct_size = sizeof opt};
    fix_make(f, architecture);
    f->meta[2] = "config.json", f->meta[3] = config;
    const char *path = fix_write(f, "teacher.safetensors");
    assert_ok(renyi_model_open(&m, path, &opt, err));
    unlink(path);
    return m;
}

static ry_teacher *new_teacher(const renyi_model *m, const ry_vit_config *student,
                               ry_teacher_options opt)
{
    ry_teacher *t = NULL;
    opt.max_batch = opt.max_batch ? opt.max_batch : IMAGES;
    opt.n_threads = opt.n_threads ? opt.n_threads : 2;
    assert_ok(ry_teacher_new(&t, m, student, &opt, NULL, err));
    return t;
}

static void check_logits(const char *architecture)
{
    static const uint32_t map[] = {4, 0, 2};
    const ry_vit_config student = student_of(3);
    const renyi_session_options so = {.struct_size = sizeof so, .max_batch = IMAGES};
    float want[IMAGES * FIX_CLASSES], got[IMAGES * 3], again[IMAGES * 3];
    float tokens[IMAGES * PATCHES * FIX_DIM];
    renyi_session *s = NULL;
    fixture f;
    renyi_model *m = open_teacher(&f, architecture);
    assert_ok(renyi_session_new(&s, m, &so, err));
    assert_ok(renyi_run_pixels(s, pixels, IMAGES, want, err));
    ry_teacher *t = new_teacher(m, &student, (ry_teacher_options){.class_map = map});
    assert_int_equal(ry_teacher_dim(t), 0);
    assert_ok(ry_teacher_run(t, chw, IMAGES, got, NULL, err));
    for (int i = 0; i < IMAGES * 3; i++)
        assert_true(fabsf(got[i] - want[i / 3 * FIX_CLASSES + (int)map[i % 3]]) < 2e-4f);
    ry_teacher_free(t);
    /* With tokens the logits are the same, and for any number of threads. */
    t = new_teacher(
        m, &student,
        (ry_teacher_options){.class_map = map, .tokens = RY_TOKENS_WHITE, .n_threads = 1});
    assert_ok(ry_teacher_run(t, chw, IMAGES, again, tokens, err));
    for (int i = 0; i < IMAGES * 3; i++) assert_true(fabsf(got[i] - again[i]) < 1e-5f);
    assert_ok(ry_teacher_run(t, chw + VALUES, 1, again, NULL, err)); /* one image */
    for (int i = 0; i < 3; i++) assert_true(fabsf(again[i] - got[3 + i]) < 1e-5f);
    ry_teacher_free(t);
    renyi_session_free(s);
    renyi_model_free(m);
    fix_free(&f);
}

static void test_logits(void **state)
{
    (void)state;
    check_logits("vit_tiny_patch8_32");
    check_logits("deit_tiny_distilled_patch8_32"); /* the mean of its heads */
    check_logits("vit_tiny_patch8_gap_32");
}

/* Rows after some blocks by the equations, for image i normalized for the teacher. */
static void reference_rows(const reference *r, ref_rows x, size_t i, uint32_t n_blocks)
{
    float own[VALUES];
    for (size_t k = 0; k < VALUES; k++)
        own[k] = (float)(pixels[(i * SIDE * SIDE + k % (SIDE * SIDE)) * 3 + k / (SIDE * SIDE)] /
                             255.0 * 2.0 -
                         1.0);
    ref_embed(r, x, own);
    for (uint32_t b = 0; b < n_blocks; b++) ref_block(r, b, x, PATCHES + r->c->n_prefix);
}

static void whiten(double *x, double eps)
{
    double mean = 0.0, variance = 0.0;
    for (int k = 0; k < FIX_DIM; k++) mean += x[k] / FIX_DIM;
    for (int k = 0; k < FIX_DIM; k++) variance += (x[k] - mean) * (x[k] - mean) / FIX_DIM;
    for (int k = 0; k < FIX_DIM; k++) x[k] = (x[k] - mean) / sqrt(variance + eps);
}

static void test_tokens(void **state)
{
    static ref_rows x;
    static float tokens[IMAGES * PATCHES * FIX_DIM];
    const ry_vit_config student = student_of(FIX_CLASSES);
    fixture f;
    (void)state;
    renyi_model *m = open_teacher(&f, "vit_tiny_patch8_32");
    const reference r = {&f, &m->vit.config, "norm"};
    for (int kind = RY_TOKENS_WHITE; kind <= RY_TOKENS_NORM; kind++) {
        ry_teacher *t =
            new_teacher(m, &student, (ry_teacher_options){.tokens = (ry_teacher_tokens)kind});
        assert_int_equal(ry_teacher_dim(t), FIX_DIM);
        assert_int_equal(ry_teacher_patches(t), PATCHES);
        assert_true(ry_teacher_macs(t) > 0.0);
        assert_ok(ry_teacher_run(t, chw, IMAGES, NULL, tokens, err));
        for (size_t i = 0; i < IMAGES; i++) {
            reference_rows(&r, x, i, r.c->n_blocks);
            for (size_t j = 0; j < PATCHES; j++) {
                double h[FIX_DIM];
                ref_norm(&r, "norm", h, x[1 + j]);
                if (kind == RY_TOKENS_WHITE) whiten(h, m->vit.config.norm_eps);
                const float *got = tokens + (i * PATCHES + j) * FIX_DIM;
                for (int k = 0; k < FIX_DIM; k++)
                    assert_true(fabs((double)got[k] - h[k]) < 1e-4 * (1.0 + fabs(h[k])));
            }
        }
        ry_teacher_free(t);
    }
    renyi_model_free(m);
    fix_free(&f);
}

/* Between the blocks: patches, then the class token, as they are or to mean 0 and variance 1. */
static void test_taps(void **state)
{
    enum { ROWS = PATCHES + 1, TAPS = 2 };
    static ref_rows x;
    static float tokens[TAPS * IMAGES * ROWS * FIX_DIM];
    static const uint32_t taps[TAPS] = {0, 1};
    const ry_vit_config student = student_of(FIX_CLASSES);
    fixture f;
    (void)state;
    renyi_model *m = open_teacher(&f, "vit_tiny_patch8_32");
    const reference r = {&f, &m->vit.config, "norm"};
    for (int raw = 0; raw < 2; raw++) {
        const ry_teacher_tokens kind = raw ? RY_TOKENS_RAW : RY_TOKENS_WHITE;
        ry_teacher *t = new_teacher(
            m, &student, (ry_teacher_options){.tokens = kind, .taps = taps, .n_taps = TAPS});
        assert_int_equal(ry_teacher_rows(t), ROWS);
        assert_ok(ry_teacher_run(t, chw, IMAGES, NULL, tokens, err));
        for (size_t at = 0; at < TAPS * IMAGES * ROWS; at++) {
            const size_t j = at % ROWS, i = at / ROWS % IMAGES, tap = at / ROWS / IMAGES;
            if (j == 0) reference_rows(&r, x, i, taps[tap] + 1);
            double *h = x[j < PATCHES ? 1 + j : 0];
            if (!raw) whiten(h, m->vit.config.norm_eps);
            for (int k = 0; k < FIX_DIM; k++)
                assert_true(fabs((double)tokens[at * FIX_DIM + (size_t)k] - h[k]) <
                            1e-4 * (1.0 + fabs(h[k])));
        }
        ry_teacher_free(t);
    }
    renyi_model_free(m);
    fix_free(&f);
}

static void refuse(const renyi_model *m, const ry_vit_config *student, ry_teacher_options opt,
                   const char *word)
{
    ry_teacher *t;
    renyi_error e = {0};
    opt.max_batch = opt.n_threads = 1;
    assert_int_equal(ry_teacher_new(&t, m, student, &opt, NULL, &e), RENYI_ERR_ARG);
    assert_null(t);
    assert_says(&e, word);
}

static void test_refused(void **state)
{
    static const uint32_t beyond[] = {0, 5, 1, 2, 3};
    ry_vit_config student = student_of(FIX_CLASSES);
    fixture f;
    float answers[FIX_CLASSES], tokens[1];
    renyi_error e = {0};
    (void)state;
    renyi_model *m = open_teacher(&f, "vit_tiny_patch8_32");
    refuse(m, &student, (ry_teacher_options){.class_map = beyond}, "class 5 of a teacher");
    student.n_classes = 3;
    refuse(m, &student, (ry_teacher_options){0}, "5 classes, the student 3");
    student.n_classes = FIX_CLASSES, student.image_size = 64;
    refuse(m, &student, (ry_teacher_options){0}, "32 pixels, the student sees 64");
    student.image_size = SIDE, student.patch_size = 16;
    refuse(m, &student, (ry_teacher_options){.tokens = RY_TOKENS_NORM}, "8 pixels wide");
    ry_teacher *t = new_teacher(m, &student, (ry_teacher_options){.max_batch = 1});
    assert_int_equal(ry_teacher_run(t, chw, 2, answers, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(ry_teacher_run(t, chw, 1, answers, tokens, &e), RENYI_ERR_ARG);
    assert_says(&e, "tokens");
    ry_teacher_free(t);
    ry_teacher_free(NULL);
    renyi_model_free(m);
    fix_free(&f);
}

/* ---- classes ------------------------------------------------------------------------------- */

static void assert_map(const uint32_t *got, const uint32_t *want, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) assert_int_equal(got[i], want[i]);
}

static void test_labels(void **state)
{
    static const char *const names[] = {"dog", "Honeybee", "cat"}, *const odd[] = {"dog", "cow"},
                             *const twice[] = {"bee", "honeybee"},
                             *const numbers[] = {"0", "1", "2", "3", "4"},
                             *const some[] = {NULL, "bee", NULL, "dog", NULL},
                             *const crossed[] = {"dog", "bee", NULL, NULL, NULL};
    uint32_t map[5];
    renyi_error e = {0};
    fixture f;
    (void)state;
    renyi_model *m = open_teacher(&f, "vit_tiny_patch8_32");
    assert_ok(ry_teacher_classes(map, m, names, 3, NULL, err));
    assert_map(map, (const uint32_t[]){3, 1, 2}, 3);
    assert_ok(ry_teacher_classes(map, m, numbers, 5, NULL, err)); /* as many: the same */
    assert_map(map, (const uint32_t[]){0, 1, 2, 3, 4}, 5);
    assert_ok(ry_teacher_classes(map, m, NULL, 5, NULL, err));
    assert_map(map, (const uint32_t[]){0, 1, 2, 3, 4}, 5);
    assert_ok(ry_teacher_classes(map, m, some, 5, NULL, err));
    assert_map(map, (const uint32_t[]){0, 1, 2, 3, 4}, 5);
    assert_int_equal(ry_teacher_classes(map, m, crossed, 5, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(ry_teacher_classes(map, m, odd, 2, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "class 1 (\"cow\")");
    assert_int_equal(ry_teacher_classes(map, m, NULL, 3, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(ry_teacher_classes(map, m, numbers, 3, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(ry_teacher_classes(map, m, twice, 2, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "both class 1");
    assert_ok(ry_teacher_class_list(map, m, "4,0, dog", 3, NULL, err));
    assert_map(map, (const uint32_t[]){4, 0, 3}, 3);
    assert_int_equal(ry_teacher_class_list(map, m, "4,0", 3, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "names 2 classes");
    assert_int_equal(ry_teacher_class_list(map, m, "4,0,5", 3, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "\"5\"");
    assert_int_equal(ry_teacher_class_list(map, m, "", 3, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(ry_teacher_class_list(map, m, ",,", 3, NULL, &e), RENYI_ERR_ARG);
    renyi_model_free(m);
    fix_free(&f);
}

/* The folders of imagenette, of a teacher that has ImageNet's classes and no labels. */
static void test_wordnet(void **state)
{
    static const char *const folders[] = {"n01440764", "n02102040", "n02979186", "n03000684",
                                          "n03028079", "n03394916", "n03417042", "n03425413",
                                          "n03445777", "n03888257"};
    static const uint32_t want[] = {0, 217, 482, 491, 497, 566, 569, 571, 574, 701};
    const renyi_init_options init = {
        .struct_size = sizeof init, .dim = 16, .n_blocks = 1, .n_heads = 2, .mlp_dim = 16};
    const char *path = fix_path("thousand.safetensors");
    const renyi_options opt = {.struct_size = sizeof opt};
    renyi_model *m = NULL;
    uint32_t map[10];
    (void)state;
    assert_ok(renyi_model_init_file(path, "vit_tiny_patch16_32", &init, err));
    assert_ok(renyi_model_open(&m, path, &opt, err));
    unlink(path);
    assert_ok(ry_teacher_classes(map, m, folders, 10, NULL, err));
    assert_map(map, want, 10);
    assert_ok(
        ry_teacher_class_list(map, m, "0,217,482,491,497,566,569,571,574,701", 10, NULL, err));
    assert_map(map, want, 10);
    renyi_model_free(m);
}

static void test_nomem(void **state)
{
    static const char *const names[] = {"dog", "bee", "cat"};
    const ry_vit_config student = student_of(3);
    fixture f;
    (void)state;
    renyi_model *m = open_teacher(&f, "vit_tiny_patch8_32");
    for (size_t fail = 1;; fail++) {
        test_heap heap = {.fail_at = fail};
        const renyi_allocator al = test_heap_of(&heap);
        renyi_error e = {0};
        uint32_t map[3];
        ry_teacher *t = NULL;
        renyi_status st = ry_teacher_classes(map, m, names, 3, &al, &e);
        if (!st) st = ry_teacher_class_list(map, m, "1,2,3", 3, &al, &e);
        const ry_teacher_options opt = {
            .max_batch = 2, .n_threads = 1, .class_map = map, .tokens = RY_TOKENS_WHITE};
        if (!st) st = ry_teacher_new(&t, m, &student, &opt, &al, &e);
        if (st) assert_int_equal(st, RENYI_ERR_NOMEM);
        ry_teacher_free(t);
        assert_int_equal(heap.live, 0);
        if (!st) break;
        assert_true(fail < 100);
    }
    renyi_model_free(m);
    fix_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits), cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_taps),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_labels), cmocka_unit_test(test_wordnet),
        cmocka_unit_test(test_nomem),
    };
    return cmocka_run_group_tests(tests, make_images, NULL);
}
