/* test_quant_load.c - damaged files of 8-bit weights: the error names tensor, fault and remedy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/quant_fixture.h"

#include <math.h>

#define QKV "blocks.1.attn.qkv.weight"

static quant_calibration calibration;

/* A quantized file as a list of tensors, to be damaged. */
static void read_tensors(fixture *f, const char *path)
{
    ry_tensors *set = NULL;
    memset(f, 0, sizeof *f);
    assert_ok(ry_safetensors_open(&set, path, NULL, NULL, err));
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        void *data = malloc(t->bytes);
        memcpy(data, t->data, t->bytes);
        fix_add(f, t->name, t->n_dims, t->shape, data);
        f->t[i].dtype = t->dtype;
        f->t[i].bytes = t->bytes;
    }
    f->meta[0] = "num_heads";
    f->meta[1] = "4";
    ry_tensors_free(set);
}

static void make_quantized(fixture *f)
{
    const renyi_quantize_options o = {.struct_size = sizeof o,
                                      .calibration = calibration.calibration};
    quant_files q = quant_make("vit_tiny_patch8_32", &o);
    read_tensors(f, q.to);
    quant_free(&q);
}

/* Writes, opens, frees; returns the status, with the message in *e. */
static renyi_status try_open(fixture *f, renyi_error *e)
{
    const char *path = fix_write(f, "damaged.safetensors");
    renyi_model *m = NULL;
    const renyi_status st = renyi_model_open(&m, path, NULL, e);
    renyi_model_free(m);
    unlink(path);
    fix_free(f);
    return st;
}

static void expect_refused(fixture *f, const char *first, const char *second)
{
    renyi_error e = {0};
    assert_int_equal(try_open(f, &e), RENYI_ERR_FORMAT);
    assert_says(&e, first);
    assert_says(&e, second);
}

static float *numbers(fixture *f, const char *name)
{
    return (float *)(uintptr_t)fix_find(f, name)->data;
}

static void whole(void **state)
{
    (void)state;
    fixture f;
    renyi_error e = {0};
    make_quantized(&f);
    assert_int_equal(try_open(&f, &e), RENYI_OK);
    /* ranges are optional; each product has its own */
    make_quantized(&f);
    fix_remove(&f, QKV "_range");
    assert_int_equal(try_open(&f, &e), RENYI_OK);
}

static void names_and_shapes(void **state)
{
    (void)state;
    fixture f;
    make_quantized(&f);
    fix_remove(&f, QKV "_scale");
    expect_refused(&f, "missing " QKV "_scale", "renyi quantize");
    make_quantized(&f);
    fix_find(&f, QKV "_scale")->shape[0] = 24; /* x 4, as many bytes as before */
    fix_find(&f, QKV "_scale")->n_dims = 2;
    fix_find(&f, QKV "_scale")->shape[1] = 4;
    expect_refused(&f, "wrong shape " QKV "_scale [24, 4] instead of [96]", "renyi quantize");
    make_quantized(&f);
    fix_find(&f, QKV "_range")->shape[1] = 1;
    fix_find(&f, QKV "_range")->n_dims = 2;
    expect_refused(&f, "wrong shape " QKV "_range [2, 1] instead of [2]", "renyi quantize");
    make_quantized(&f);
    fix_find(&f, QKV "_scale")->dtype = RY_I32;
    expect_refused(&f, "not F32 " QKV "_scale I32", "renyi quantize");
    make_quantized(&f);
    fix_rename(&f, QKV "_range", "blocks.1.attn.qkv.bias_range");
    expect_refused(&f, "unknown blocks.1.attn.qkv.bias_range", "timm");
    make_quantized(&f);
    fix_rename(&f, QKV "_scale", "head.weight_scale");
    expect_refused(&f, "unknown head.weight_scale", "missing " QKV "_scale");
}

/* Floats with a scale beside them, and integers where only floats may be. */
static void wrong_types(void **state)
{
    (void)state;
    fixture f;
    make_quantized(&f);
    ry_tensor *t = fix_find(&f, QKV);
    free((void *)(uintptr_t)t->data);
    t->dtype = RY_U8;
    t->data = calloc(t->bytes, 1);
    expect_refused(&f, "not a float type " QKV " U8",
                   "beside a weight that is not I8 " QKV "_scale");
    make_quantized(&f);
    t = fix_find(&f, "head.weight");
    free((void *)(uintptr_t)t->data);
    t->bytes = ry_tensor_elements(t);
    t->dtype = RY_I8;
    t->data = calloc(t->bytes, 1);
    const ry_tensor last = *t; /* bytes come after floats */
    const size_t at = (size_t)(t - f.t);
    for (size_t i = at; i + 1 < f.n; i++) {
        f.t[i] = f.t[i + 1];
        strcpy(f.names[i], f.names[i + 1]);
        f.t[i].name = f.names[i];
    }
    f.t[f.n - 1] = last;
    strcpy(f.names[f.n - 1], "head.weight");
    f.t[f.n - 1].name = f.names[f.n - 1];
    expect_refused(&f, "not a float type head.weight I8", "timm");
}

static void bad_numbers(void **state)
{
    (void)state;
    static const float scales[] = {NAN, INFINITY, -1e-3f, 3e38f};
    static const float ranges[][2] = {{NAN, 1.0f},  {0.0f, NAN},   {0.0f, INFINITY},
                                      {1.0f, 1.0f}, {2.0f, -2.0f}, {-3e38f, 3e38f}};
    fixture f;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        make_quantized(&f);
        numbers(&f, QKV "_scale")[17] = scales[i];
        expect_refused(&f, "'" QKV "_scale' holds", "at element 17; a finite number from 0 on");
    }
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        make_quantized(&f);
        memcpy(numbers(&f, QKV "_range"), ranges[i], sizeof ranges[i]);
        expect_refused(&f, "'" QKV "_range' holds", "renyi quantize");
    }
    make_quantized(&f);
    ((int8_t *)(uintptr_t)fix_find(&f, QKV)->data)[5 * FIX_DIM] = -128;
    expect_refused(&f, "'" QKV "' holds -128 in channel 5", "renyi quantize");
    make_quantized(&f);
    numbers(&f, QKV "_scale")[17] = 0.0f; /* a channel of zeros */
    renyi_error e = {0};
    assert_int_equal(try_open(&f, &e), RENYI_OK);
}

/* Query, key and value are three tensors of one product. */
static void three_of_one(void **state)
{
    (void)state;
    const renyi_quantize_options o = {.struct_size = sizeof o,
                                      .calibration = calibration.calibration};
    const char *name = "vit.encoder.layer.0.attention.attention.key.weight_range";
    fixture f;
    fix_make(&f, "vit_tiny_patch8_32");
    fix_to_hf(&f, "vit.");
    for (int damage = 0; damage < 3; damage++) {
        const char *from = fix_write(&f, "hf.safetensors"), *to = fix_path("hf8.safetensors");
        fixture q;
        renyi_error e = {0};
        assert_ok(renyi_model_quantize(from, to, &o, NULL, err));
        read_tensors(&q, to);
        if (damage == 1) numbers(&q, name)[1] += 1.0f;
        if (damage == 2) fix_remove(&q, name);
        if (damage)
            expect_refused(&q, "do not have the same range", "key.weight");
        else
            assert_int_equal(try_open(&q, &e), RENYI_OK);
        unlink(from), unlink(to);
    }
    fix_free(&f);
}

static void schemes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        renyi_status st;
        const char *says;
    } rows[] = {
        {"{\"version\": 1}", RENYI_OK, ""},
        {"{\"version\": 2}", RENYI_ERR_UNSUPPORTED, "version 2; this build reads version 1"},
        {"{\"version\": \"1\"}", RENYI_ERR_FORMAT, "renyi.quantization"},
        {"{\"version\": 1, \"activations\": 3}", RENYI_ERR_FORMAT, "activations"},
        {"nonsense", RENYI_ERR_FORMAT, "renyi.quantization"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture f;
        renyi_error e = {0};
        make_quantized(&f);
        f.meta[2] = RY_QUANT_KEY;
        f.meta[3] = rows[i].text;
        assert_int_equal(try_open(&f, &e), rows[i].st);
        if (rows[i].st) assert_says(&e, rows[i].says);
    }
}

/* The configs of a model in its own metadata. */
static void configs_in_metadata(void **state)
{
    (void)state;
    fixture f;
    renyi_error e = {0};
    make_quantized(&f);
    f.meta[2] = "config.json";
    f.meta[3] = "{\"num_attention_heads\": 3}";
    assert_int_equal(try_open(&f, &e), RENYI_ERR_FORMAT);
    assert_says(&e, "3 heads");
    make_quantized(&f);
    f.meta[2] = "config.json";
    f.meta[3] = "[1, 2]";
    assert_int_equal(try_open(&f, &e), RENYI_ERR_FORMAT);
    assert_says(&e, "__metadata__ (config.json): a JSON object expected");
    make_quantized(&f);
    f.meta[2] = "preprocessor_config.json";
    f.meta[3] = "{";
    assert_int_equal(try_open(&f, &e), RENYI_ERR_FORMAT);
    assert_says(&e, "__metadata__ (preprocessor_config.json)");
}

static int begin(void **state)
{
    (void)state;
    calibration = quant_calibrate("vit_tiny_patch8_32", 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    quant_calibration_free(&calibration);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(names_and_shapes),
        cmocka_unit_test(wrong_types),
        cmocka_unit_test(bad_numbers),
        cmocka_unit_test(three_of_one),
        cmocka_unit_test(schemes),
        cmocka_unit_test(configs_in_metadata),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
