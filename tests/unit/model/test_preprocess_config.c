/* test_preprocess_config.c - preprocessing from timm's and Hugging Face's configs, and invalid
 * ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/vit_fixture.h"
#include "model/vit/vit.h"

#include <math.h>

static renyi_status read_texts(renyi_preprocess *out, const char **source, ry_layout layout,
                               const char *config, const char *preprocessor, renyi_error *err)
{
    ry_checkpoint ckpt = {0};
    ry_vit_config c = {.layout = layout, .family = "vit", .image_size = 224};
    if (config) assert_non_null(ckpt.config = json_loads(config, 0, NULL));
    if (preprocessor) assert_non_null(ckpt.preprocessor_config = json_loads(preprocessor, 0, NULL));
    const renyi_status st = ry_preprocess_configure(&c, &ckpt, err);
    json_decref(ckpt.config);
    json_decref(ckpt.preprocessor_config);
    *out = c.preprocess;
    *source = c.preprocess_source;
    return st;
}

/* The side that images are resized to before the crop. */
static int resize_side(const renyi_preprocess *p, int crop)
{
    return (int)floor(crop / p->crop_pct);
}

/* CLIP's processor keeps the aspect ratio and crops, also if an old config does not say so. */
static void clip(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        renyi_crop_mode mode;
        int resize;
    } rows[] = {
        {"{\"size\": 224, \"crop_size\": 224, \"do_center_crop\": true}", RENYI_CROP_CENTER, 224},
        {"{\"size\": {\"shortest_edge\": 248}}", RENYI_CROP_CENTER, 248},
        {"{\"size\": {\"height\": 224, \"width\": 224}}", RENYI_CROP_SQUASH, 224},
        {"{}", RENYI_CROP_CENTER, 224},
        {NULL, RENYI_CROP_CENTER, 224},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ry_checkpoint ckpt = {0};
        ry_vit_config c = {
            .layout = RY_LAYOUT_OPENAI, .family = "clip", .is_clip = 1, .image_size = 224};
        if (rows[i].json)
            assert_non_null(ckpt.preprocessor_config = json_loads(rows[i].json, 0, NULL));
        assert_ok(ry_preprocess_configure(&c, &ckpt, err));
        json_decref(ckpt.preprocessor_config);
        assert_int_equal(c.preprocess.crop_mode, rows[i].mode);
        assert_int_equal(c.preprocess.interpolation, RENYI_BICUBIC);
        assert_int_equal(resize_side(&c.preprocess, 224), rows[i].resize);
        assert_true(c.preprocess.mean[2] == 0.40821073 && c.preprocess.std[0] == 0.26862954);
    }
}

static void hugging_face(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        renyi_crop_mode mode;
        renyi_interpolation filter;
        int resize; /* for a crop of 224 */
    } rows[] = {
        {"{\"size\": 224, \"resample\": 2}", RENYI_CROP_SQUASH, RENYI_BILINEAR, 224},
        {"{\"size\": {\"height\": 224, \"width\": 224}, \"resample\": 3}", RENYI_CROP_SQUASH,
         RENYI_BICUBIC, 224},
        {"{\"size\": 256, \"crop_size\": 224, \"do_center_crop\": true, \"resample\": 3}",
         RENYI_CROP_SQUASH, RENYI_BICUBIC, 256},
        {"{\"size\": {\"shortest_edge\": 248}, \"crop_size\": {\"height\": 224, \"width\": 224},"
         "\"do_center_crop\": true, \"resample\": 1}",
         RENYI_CROP_CENTER, RENYI_LANCZOS, 248},
        {"{\"size\": {\"shortest_edge\": 256}, \"crop_size\": 224, \"do_center_crop\": false}",
         RENYI_CROP_CENTER, RENYI_BILINEAR, 224},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        renyi_preprocess p;
        const char *source;
        assert_ok(read_texts(&p, &source, RY_LAYOUT_HF, NULL, rows[i].json, err));
        assert_int_equal(p.crop_mode, rows[i].mode);
        assert_int_equal(p.interpolation, rows[i].filter);
        assert_int_equal(resize_side(&p, 224), rows[i].resize);
        assert_int_equal(p.size, 224);
        assert_true(p.mean[0] == 0.5 && p.std[2] == 0.5);
        assert_string_equal(source, "preprocessor_config.json");
    }
}

/* A crop_pct that rounds to one pixel less would shift every pixel. */
static void every_resize_comes_back(void **state)
{
    (void)state;
    for (int side = 224; side <= 640; side++) {
        char json[160];
        renyi_preprocess p;
        const char *source;
        snprintf(
            json, sizeof json,
            "{\"size\": {\"shortest_edge\": %d}, \"crop_size\": 224, \"do_center_crop\": true}",
            side);
        assert_ok(read_texts(&p, &source, RY_LAYOUT_HF, NULL, json, err));
        assert_int_equal(resize_side(&p, 224), side);
    }
}

static void timm(void **state)
{
    (void)state;
    renyi_preprocess p;
    const char *source;
    assert_ok(
        read_texts(&p, &source, RY_LAYOUT_TIMM,
                   "{\"pretrained_cfg\": {\"mean\": [0.1, 0.2, 0.3], \"std\": [1, 2, 3],"
                   "\"crop_pct\": 1.0, \"interpolation\": \"bilinear\", \"crop_mode\": \"border\","
                   "\"input_size\": [3, 224, 224]}}",
                   NULL, err));
    assert_true(p.mean[1] == 0.2 && p.std[2] == 3.0 && p.crop_pct == 1.0);
    assert_int_equal(p.interpolation, RENYI_BILINEAR);
    assert_int_equal(p.crop_mode, RENYI_CROP_BORDER);
    assert_string_equal(source, "config.json (pretrained_cfg)");

    assert_ok(read_texts(&p, &source, RY_LAYOUT_TIMM, NULL, NULL, err));
    assert_true(p.crop_pct == 0.9 && p.mean[0] == 0.5 && p.interpolation == RENYI_BICUBIC);
    assert_ok(read_texts(&p, &source, RY_LAYOUT_HF, NULL, NULL, err));
    assert_true(p.crop_pct == 1.0 && p.crop_mode == RENYI_CROP_SQUASH);
    assert_int_equal(p.interpolation, RENYI_BILINEAR);
}

static void nonsense_is_named(void **state)
{
    (void)state;
    static const struct {
        ry_layout layout;
        const char *json, *word;
    } rows[] = {
        {RY_LAYOUT_TIMM, "{\"std\": [0.5, 0, 0.5]}", "std[1] is 0"},
        {RY_LAYOUT_TIMM, "{\"std\": [0.5, 0.5]}", "std"},
        {RY_LAYOUT_TIMM, "{\"mean\": [1e9, 0, 0]}", "mean[0]"},
        {RY_LAYOUT_TIMM, "{\"crop_pct\": 0}", "crop_pct is 0"},
        {RY_LAYOUT_TIMM, "{\"crop_pct\": 1.5}", "crop_pct is 1.5"},
        {RY_LAYOUT_TIMM, "{\"crop_pct\": \"all\"}", "crop_pct"},
        {RY_LAYOUT_TIMM, "{\"interpolation\": \"nearest\"}", "interpolation is 'nearest'"},
        {RY_LAYOUT_TIMM, "{\"crop_mode\": 3}", "crop_mode"},
        {RY_LAYOUT_TIMM, "{\"input_size\": [3, 0, 224]}", "input_size"},
        {RY_LAYOUT_HF, "{\"size\": 0}", "size is 0"},
        {RY_LAYOUT_HF, "{\"size\": 5000}", "size is 5000"},
        {RY_LAYOUT_HF, "{\"size\": {}}", "size is 0"},
        {RY_LAYOUT_HF, "{\"size\": {\"height\": 224, \"width\": 225}}", "224 x 225"},
        {RY_LAYOUT_HF, "{\"size\": 224, \"crop_size\": 256, \"do_center_crop\": true}",
         "crop_size 256"},
        {RY_LAYOUT_HF, "{\"resample\": 0}", "resample is 0"},
        {RY_LAYOUT_HF, "{\"rescale_factor\": 1.0}", "rescale_factor 1"},
        {RY_LAYOUT_HF, "{\"do_rescale\": false}", "do_rescale false"},
        {RY_LAYOUT_HF, "{\"do_resize\": false}", "do_resize"},
        {RY_LAYOUT_HF, "{\"image_std\": [0, 1, 1]}", "image_std[0] is 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char config[256];
        renyi_preprocess p;
        const char *source;
        renyi_error e = {0};
        const int hf = rows[i].layout == RY_LAYOUT_HF;
        snprintf(config, sizeof config, "{\"pretrained_cfg\": %s}", rows[i].json);
        const renyi_status st = read_texts(&p, &source, rows[i].layout, hf ? NULL : config,
                                           hf ? rows[i].json : NULL, &e);
        if (st == RENYI_OK) fail_msg("accepted: %s", rows[i].json);
        assert_says(&e, rows[i].word);
        assert_says(&e, hf ? "preprocessor_config.json" : "config.json");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hugging_face),
        cmocka_unit_test(clip),
        cmocka_unit_test(every_resize_comes_back),
        cmocka_unit_test(timm),
        cmocka_unit_test(nonsense_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
