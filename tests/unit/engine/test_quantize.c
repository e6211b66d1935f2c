/* test_quantize.c - model files with 8-bit weights: their content, the integers a run computes
 * with, calibrated ranges, configs in the file, refusals.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/quant_fixture.h"
#include "fixtures/test_heap.h"
#include "kernels/linear/quant.h"

#include <math.h>
#include <sys/stat.h>

/* ---- what is written ------------------------------------------------------------------------ */

static const float *floats(const ry_tensors *set, const char *weight, const char *tail)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s", weight, tail);
    const ry_tensor *t = ry_tensors_find(set, name);
    assert_non_null(t);
    assert_int_equal(t->dtype, RY_F32);
    return t->data;
}

/* The nearest multiples of a scale that puts the largest weight of a row, or the largest sum of two
 * neighbours of one sign, at 127. */
static void check_weight(const ry_tensor *was, const ry_tensor *is, const ry_tensors *set)
{
    const float *w = was->data, *scale = floats(set, is->name, "_scale");
    const int8_t *q = is->data;
    const size_t n_in = was->shape[1];
    for (size_t j = 0; j < was->shape[0]; j++) {
        int most = 0;
        for (size_t k = 0; k < n_in; k++) {
            const int v = q[j * n_in + k];
            most = abs(v) > most ? abs(v) : most;
            assert_true(fabsf(w[j * n_in + k] - scale[j] * (float)v) <= 0.5001f * scale[j]);
            const int next = k + 1 < n_in && k % 2 == 0 ? q[j * n_in + k + 1] : 0;
            if (v * next > 0) most = abs(v + next) > most ? abs(v + next) : most;
        }
        assert_in_range(most, 126, 128);
    }
}

static void what_is_written(void **state)
{
    (void)state;
    fixture f;
    ry_tensors *set = NULL;
    size_t n_weights = 0;
    renyi_quantize_result result;
    fix_make(&f, "deit_tiny_distilled_patch8_32");
    const char *from = fix_write(&f, "from.safetensors"), *to = fix_path("to.safetensors");
    assert_ok(renyi_model_quantize(from, to, NULL, &result, err));
    assert_ok(ry_safetensors_open(&set, to, NULL, NULL, err));
    assert_int_equal(ry_tensors_count(set), f.n + 4 * FIX_BLOCKS);
    for (size_t i = 0; i < f.n; i++) {
        const ry_tensor *is = ry_tensors_find(set, f.names[i]);
        assert_non_null(is);
        assert_memory_equal(is->shape, f.t[i].shape, is->n_dims * sizeof *is->shape);
        if (is->dtype == RY_I8) {
            n_weights++;
            check_weight(&f.t[i], is, set);
        } else {
            assert_memory_equal(is->data, f.t[i].data, f.t[i].bytes);
        }
    }
    assert_int_equal(n_weights, 4 * FIX_BLOCKS);
    assert_int_equal(result.n_quantized, n_weights);
    assert_true(result.bytes_out < result.bytes_in);
    assert_string_equal(ry_tensors_meta(set, "num_heads"), "4");
    assert_non_null(strstr(ry_tensors_meta(set, "architecture"), "deit"));
    assert_non_null(strstr(ry_tensors_meta(set, RY_QUANT_KEY), "\"activations\":\"per token\""));
    ry_tensors_free(set);
    unlink(from), unlink(to);
    fix_free(&f);
}

/* Integers times their scale quantize to the same integers again, so the way through floats loses
 * nothing: for any scale, rows of any length, with and without pairs. A kernel that needs pairs
 * refuses integers that do not fit. */
static void the_same_integers(void **state)
{
    (void)state;
    enum { N = 97 };
    static const float sizes[] = {1e-33f, 1e-20f, 3e-4f, 0.02f, 1.0f, 777.0f, 1e20f, 1e36f};
    uint32_t random = 1;
    for (size_t s = 0; s < 800; s++) {
        const int pairs = s % 2;
        float w[N], back[N];
        int8_t q[N], again[N];
        for (size_t k = 0; k < N; k++) {
            random = random * 1664525u + 1013904223u;
            w[k] = sizes[s % 8] * ((float)(random >> 8) * 0x1p-23f - 1.0f);
        }
        const float scale = ry_quant_channel(q, w, N, pairs);
        for (size_t k = 0; k < N; k++) back[k] = scale * (float)q[k];
        assert_true(ry_quant_channel_as(again, back, N, scale, pairs));
        assert_memory_equal(q, again, N);
        assert_true(ry_quant_channel_as(again, back, N, scale, 0));
        assert_memory_equal(q, again, N);
        if (pairs) continue; /* the scale need not be known if the largest is 127 */
        const float found = ry_quant_channel(again, back, N, 0);
        assert_memory_equal(q, again, N);
        assert_true(fabsf(found - scale) <= 4e-7f * scale);
    }
    const float wide[4] = {127.0f, 127.0f, 1.0f, -127.0f}, far[2] = {128.0f, 0.0f};
    int8_t out[4];
    assert_true(ry_quant_channel_as(out, wide, 4, 1.0f, 0));
    assert_false(ry_quant_channel_as(out, wide, 4, 1.0f, 1));
    assert_true(ry_quant_channel_as(out, wide + 2, 2, 1.0f, 1));
    assert_false(ry_quant_channel_as(out, far, 2, 1.0f, 0));
    assert_false(ry_quant_channel_as(out, far, 2, 0.0f, 0));
    /* too small to divide by: the integers are zeros */
    const float tiny[4] = {1e-40f, 0.0f, -1e-41f, 1e-45f};
    int8_t q[4];
    assert_true(ry_quant_channel(q, tiny, 4, 0) == 0.0f);
    for (int k = 0; k < 4; k++) assert_int_equal(q[k], 0);
}

/* ---- running -------------------------------------------------------------------------------- */

/* The file has the integers that AVX2 computes with: the same bits as from the original. */
static void the_same_bits(void **state)
{
    (void)state;
    float logits[2][FIX_CLASSES];
    if (renyi_cpu_detect() < RENYI_CPU_AVX2) return;
    quant_files q = quant_make("vit_tiny_patch8_32", NULL);
    for (int i = 0; i < 2; i++) {
        renyi_model *m = quant_open(i ? q.to : q.from, RENYI_DTYPE_INT8, RENYI_CPU_AVX2);
        quant_run(m, logits[i]);
        renyi_model_free(m);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    quant_free(&q);
}

static void loads_like_any_other(void **state)
{
    (void)state;
    float logits[4][FIX_CLASSES];
    renyi_model_info info;
    quant_files q = quant_make("vit_tiny_patch8_32", NULL);
    for (int i = 0; i < 4; i++) {
        /* f32 file in f32 and int8; 8-bit file as it comes and in f32 */
        const renyi_dtype dtype[] = {RENYI_DTYPE_F32, RENYI_DTYPE_INT8, RENYI_DTYPE_DEFAULT,
                                     RENYI_DTYPE_F32};
        renyi_model *m = quant_open(i < 2 ? q.from : q.to, dtype[i], RENYI_CPU_SCALAR);
        renyi_model_get_info(m, &info);
        assert_int_equal(info.dtype, i == 1 || i == 2 ? RENYI_DTYPE_INT8 : RENYI_DTYPE_F32);
        assert_int_equal(info.quantization != NULL, i >= 2);
        assert_int_equal(info.n_params, q.n_params);
        assert_int_equal(info.n_heads, FIX_HEADS);
        quant_run(m, logits[i]);
        renyi_model_free(m);
    }
    assert_string_equal(quant_text(q.to), "weights int8 per channel, activations per token");
    for (int c = 0; c < FIX_CLASSES; c++) {
        assert_true(fabsf(logits[1][c] - logits[2][c]) < 0.3f);
        assert_true(fabsf(logits[0][c] - logits[3][c]) < 0.3f);
    }
    assert_true(memcmp(logits[0], logits[3], sizeof logits[0]) != 0);
    quant_free(&q);
}

/* A product with a calibrated range: the error follows the width of the range, and values outside
 * are clipped. */
static void ranges_are_used(void **state)
{
    (void)state;
    enum { IN = 32, OUT = 16 };
    const ry_linear_backend bodies[] = {RY_LINEAR_INT8_SCALAR, RY_LINEAR_INT8_VEC8};
    const ry_quant_range range = {-1.0f, 3.0f};
    float w[OUT * IN] = {0}, x[2 * IN], y[2 * OUT];
    uint64_t buffer[128];
    for (int j = 0; j < OUT; j++) w[j * IN + 2 * j % IN] = 1.0f; /* picks an element */
    for (int k = 0; k < IN; k++) x[k] = 3.0f - 0.12f * (float)k, x[IN + k] = k % 4 ? -9.0f : 9.0f;
    for (size_t b = 0; b < 2; b++) {
        const ry_linear_spec spec = {.w = w, .n_out = OUT, .n_in = IN, .range = &range};
        const ry_extent run = {1, 2};
        ry_linear *l;
        ry_linear_op *op;
        if (bodies[b] == RY_LINEAR_INT8_VEC8 && renyi_cpu_detect() < RENYI_CPU_AVX2) continue;
        assert_ok(ry_linear_new_backend(&l, &spec, bodies[b], NULL, err));
        assert_ok(ry_linear_op_new(&op, l, 2, (ry_rows){IN, 2 * IN}, (ry_rows){OUT, 2 * OUT}, 1,
                                   NULL, err));
        assert_true(ry_linear_input_bytes(l, 2) <= sizeof buffer);
        ry_linear_op_convert(op, 0, run, x, buffer);
        for (size_t t = 0; t < ry_linear_op_tiles(op, run); t++)
            ry_linear_op_tile(op, t, run, 0, buffer, y);
        for (int j = 0; j < OUT; j++) {
            const int k = 2 * j % IN;
            assert_true(fabsf(y[j] - x[k]) <= 0.51f * 4.0f / 255.0f);
            assert_true(fabsf(y[OUT + j] - (k % 4 ? -1.0f : 3.0f)) <= 1e-5f);
        }
        ry_linear_op_free(op, NULL);
        ry_linear_free(l, NULL);
    }
}

/* ---- calibration ---------------------------------------------------------------------------- */

static void calibrated(void **state)
{
    (void)state;
    renyi_calibrated_range ranges[2][3];
    float logits[3][FIX_CLASSES];
    for (uint32_t threads = 1; threads <= 2; threads++) {
        quant_calibration c = quant_calibrate("vit_tiny_patch8_32", threads);
        renyi_calibrated_range *r = ranges[threads - 1];
        assert_int_equal(renyi_calibration_images(c.calibration), QUANT_PHOTOS);
        assert_ok(renyi_calibration_range(c.calibration, 1, RENYI_PRODUCT_FC2, RENYI_RANGE_MAX, 0,
                                          &r[0], err));
        assert_ok(renyi_calibration_range(c.calibration, 1, RENYI_PRODUCT_FC2,
                                          RENYI_RANGE_PERCENTILE, 100, &r[1], err));
        assert_ok(renyi_calibration_range(c.calibration, 0, RENYI_PRODUCT_FC1,
                                          RENYI_RANGE_PERCENTILE, 75, &r[2], err));
        quant_calibration_free(&c);
    }
    assert_memory_equal(ranges[0], ranges[1], sizeof ranges[0]); /* any number of threads */
    assert_memory_equal(&ranges[0][0], &ranges[0][1], sizeof ranges[0][0]);
    assert_true(ranges[0][0].low < 0.0f && ranges[0][0].high > 0.0f && ranges[0][0].spread >= 1.0);

    quant_calibration c = quant_calibrate("vit_tiny_patch8_32", 1);
    const renyi_quantize_options o = {
        .struct_size = sizeof o, .calibration = c.calibration, .rule = RENYI_RANGE_MAX};
    quant_files token = quant_make("vit_tiny_patch8_32", NULL);
    quant_files range = quant_make("vit_tiny_patch8_32", &o);
    const char *paths[] = {token.from, token.to, range.to};
    for (int i = 0; i < 3; i++) {
        renyi_model *m = quant_open(paths[i], RENYI_DTYPE_DEFAULT, RENYI_CPU_SCALAR);
        quant_run(m, logits[i]);
        renyi_model_free(m);
    }
    assert_string_equal(quant_text(range.to),
                        "weights int8 per channel, activations static max (6 photos)");
    for (int k = 0; k < FIX_CLASSES; k++) assert_true(fabsf(logits[0][k] - logits[2][k]) < 0.3f);
    assert_true(memcmp(logits[1], logits[2], sizeof logits[1]) != 0);
    quant_free(&token), quant_free(&range);
    quant_calibration_free(&c);
}

static void calibration_arguments(void **state)
{
    (void)state;
    quant_files q = quant_make("vit_tiny_patch8_32", NULL);
    quant_calibration c = quant_calibrate("vit_tiny_patch8_32", 1);
    renyi_calibration *none = NULL;
    renyi_error e = {0};
    renyi_calibrated_range range;
    renyi_model *m = quant_open(q.to, RENYI_DTYPE_DEFAULT, RENYI_CPU_SCALAR);
    assert_int_equal(renyi_calibration_new(&none, m, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "opened in f32");
    renyi_model_free(m);
    m = quant_open(q.from, RENYI_DTYPE_F32, RENYI_CPU_SCALAR);
    assert_ok(renyi_calibration_new(&none, m, NULL, err));
    assert_int_equal(
        renyi_calibration_range(none, 0, RENYI_PRODUCT_QKV, RENYI_RANGE_MAX, 0, &range, &e),
        RENYI_ERR_ARG);
    assert_says(&e, "no image");
    assert_int_equal(renyi_calibration_range(c.calibration, 0, RENYI_PRODUCT_QKV,
                                             RENYI_RANGE_PERCENTILE, 20, &range, &e),
                     RENYI_ERR_ARG);
    assert_says(&e, "above 50");
    assert_int_equal(renyi_calibration_range(c.calibration, 9, RENYI_PRODUCT_QKV, RENYI_RANGE_MAX,
                                             0, &range, &e),
                     RENYI_ERR_ARG);
    renyi_calibration_free(none);
    renyi_model_free(m);
    quant_calibration_free(&c);
    quant_free(&q);
}

/* ---- one file ------------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void one_file_carries_all(void **state)
{
    (void)state;
    char folder[512], path[600], config[600];
    fixture f;
    renyi_model_info info;
    fix_make(&f, "vit_tiny_patch8_32");
    snprintf(folder, sizeof folder, "%s", fix_path("model"));
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    snprintf(config, sizeof config, "%s/config.json", folder);
    const char *made = fix_write(&f, "made.safetensors"), *to = fix_path("alone.safetensors");
    assert_int_equal(rename(made, path), 0);
    write_text(config, "{\"architecture\": \"vit_toy\", \"num_attention_heads\": 2,"
                       " \"pretrained_cfg\": {\"mean\": [0.1, 0.2, 0.3], \"crop_pct\": 0.5},"
                       " \"label_names\": [\"a\", \"b\", \"c\", \"d\", \"e\"]}");
    assert_ok(renyi_model_quantize(folder, to, NULL, NULL, err));
    renyi_model *m = quant_open(to, RENYI_DTYPE_DEFAULT, RENYI_CPU_AUTO);
    renyi_model_get_info(m, &info);
    assert_int_equal(info.n_heads, 2);
    assert_true(info.preprocess.mean[2] == 0.3 && info.preprocess.crop_pct == 0.5);
    assert_string_equal(info.architecture, "vit_toy");
    assert_string_equal(renyi_model_label(m, 4), "e");
    renyi_model_free(m);
    renyi_error e = {0}; /* the model's own file is safe, by any name */
    assert_int_equal(renyi_model_quantize(folder, path, NULL, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "a file of the model itself");
    unlink(path), unlink(config), unlink(to), rmdir(folder);
    fix_free(&f);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static int stop(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    return done > total / 2;
}

static void refusals(void **state)
{
    (void)state;
    renyi_error e = {0};
    quant_files q = quant_make("vit_tiny_patch8_32", NULL);
    char to[512];
    snprintf(to, sizeof to, "%s", fix_path("never.safetensors"));
    assert_int_equal(renyi_model_quantize(q.to, to, NULL, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "quantized already");
    assert_int_equal(renyi_model_quantize("/no/such", to, NULL, NULL, &e), RENYI_ERR_IO);
    const renyi_quantize_options o = {.struct_size = sizeof o, .progress = stop};
    assert_int_equal(renyi_model_quantize(q.from, to, &o, NULL, &e), RENYI_ERR_ABORTED);
    quant_calibration c = quant_calibrate("vit_small_patch8_32", 1);
    const renyi_quantize_options other = {.struct_size = sizeof o, .calibration = c.calibration};
    fixture deep;
    fix_make_deep(&deep, "vit_tiny_patch8_32", 3);
    const char *from = fix_write(&deep, "deep.safetensors");
    assert_int_equal(renyi_model_quantize(from, to, &other, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "another model");
    assert_int_equal(access(to, F_OK), -1); /* none of them left a file */
    ((float *)(uintptr_t)fix_find(&deep, "blocks.2.mlp.fc1.weight")->data)[40] = NAN;
    unlink(from);
    from = fix_write(&deep, "deep.safetensors");
    assert_int_equal(renyi_model_quantize(from, to, NULL, NULL, &e), RENYI_ERR_FORMAT);
    assert_says(&e, "'blocks.2.mlp.fc1.weight' has NaN in row 1");
    assert_int_equal(access(to, F_OK), -1);
    unlink(from);
    fix_free(&deep);
    quant_calibration_free(&c);
    quant_free(&q);
}

/* The 1st, 2nd, 3rd ... allocation fails: no failure leaks. */
static void allocation_failures(void **state)
{
    (void)state;
    quant_files q = quant_make("vit_tiny_patch8_32", NULL);
    for (size_t n = 1;; n++) {
        test_heap heap = {.fail_at = n};
        renyi_quantize_options o = {.struct_size = sizeof o, .allocator = test_heap_of(&heap)};
        renyi_error e = {0};
        const renyi_status st = renyi_model_quantize(q.from, q.to, &o, NULL, &e);
        assert_int_equal(heap.live, 0);
        if (st == RENYI_OK) break;
        assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(n < 2000);
    }
    quant_free(&q);
}

/* The same for loading an 8-bit file, and for a calibration. */
static void allocation_failures_of_models(void **state)
{
    (void)state;
    quant_files q = quant_make("vit_tiny_patch8_32", NULL);
    renyi_status st[2] = {RENYI_ERR_NOMEM, RENYI_ERR_NOMEM};
    for (size_t n = 1; st[0] || st[1]; n++) {
        for (int side = 0; side < 2; side++) {
            test_heap heap = {.fail_at = side ? 0 : n};
            const renyi_options o = {.struct_size = sizeof o,
                                     .dtype = side ? RENYI_DTYPE_F32 : RENYI_DTYPE_INT8,
                                     .allocator = test_heap_of(&heap)};
            renyi_calibration *c = NULL;
            renyi_model *m = NULL;
            renyi_error e = {0};
            st[side] = renyi_model_open(&m, side ? q.from : q.to, &o, &e);
            if (side) {
                heap.fail_at = heap.calls + n;
                st[side] = renyi_calibration_new(&c, m, NULL, &e);
            }
            assert_true(st[side] == RENYI_OK || st[side] == RENYI_ERR_NOMEM);
            renyi_calibration_free(c);
            renyi_model_free(m);
            assert_int_equal(heap.live, 0);
        }
    }
    quant_free(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written),
        cmocka_unit_test(the_same_integers),
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(loads_like_any_other),
        cmocka_unit_test(ranges_are_used),
        cmocka_unit_test(calibrated),
        cmocka_unit_test(calibration_arguments),
        cmocka_unit_test(one_file_carries_all),
        cmocka_unit_test(refusals),
        cmocka_unit_test(allocation_failures),
        cmocka_unit_test(allocation_failures_of_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
