/* test_golden_pixels.c - decoded, resized and cropped JPEG files against the reference, pixel by
 * pixel. Reads ../shared; is skipped without it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "fixtures/shared_files.h"
#include "formats/safetensors.h"
#include "image/fit.h"

#include <math.h>
#include <string.h>

#include "test.h"

typedef struct golden_set {
    const char *file;
    uint32_t size;
    double crop_pct;
    int pad_to_square; /* LLaVA: padded to a square with the mean color first */
} golden_set;

static const golden_set SETS[] = {
    {"golden/vit_tiny.safetensors", 224, 0.9, 0},
    {"golden/deit_tiny.safetensors", 224, 0.9, 0},
    {"golden/clip_tiny.safetensors", 224, 1.0, 0},
    {"golden/llava_tiny.safetensors", 336, 1.0, 1},
};

/* LLaVA's expand2square with CLIP's mean color, truncated to bytes. free() the pixels. */
static renyi_image squared(const renyi_image *in)
{
    static const double mean[3] = {0.48145466, 0.4578275, 0.40821073};
    const uint32_t side = in->width > in->height ? in->width : in->height;
    const size_t left = (side - in->width) / 2, top = (side - in->height) / 2;
    uint8_t *rgb = malloc((size_t)side * side * 3);
    if (!rgb) abort();
    for (size_t i = 0; i < (size_t)side * side * 3; i++) rgb[i] = (uint8_t)(mean[i % 3] * 255);
    for (size_t y = 0; y < in->height; y++)
        memcpy(rgb + ((top + y) * side + left) * 3, in->rgb + y * in->stride,
               3 * (size_t)in->width);
    return (renyi_image){rgb, side, side, 0};
}

static void check_image(const golden_set *set, const char *name, const uint8_t *want,
                        const ry_resize_kernels *kernels)
{
    char rel[512];
    snprintf(rel, sizeof rel, "data/imagenet-val-500/%s", name);
    const char *path = shared_path(rel);
    if (!path) return;
    const size_t n = (size_t)set->size * set->size * 3;
    const renyi_preprocess spec = {set->size, RENYI_CROP_CENTER, RENYI_BICUBIC, set->crop_pct, {0},
                                   {0}};
    uint8_t *out = malloc(n);
    renyi_error err = {0};
    renyi_image image;
    if (renyi_image_load(&image, path, NULL, &err)) fail_msg("%s: %s", path, err.message);
    const renyi_image square = set->pad_to_square ? squared(&image) : (renyi_image){0};
    if (ry_fit(out, square.rgb ? &square : &image, &spec, kernels, NULL, &err))
        fail_msg("%s", err.message);
    if (memcmp(out, want, n)) fail_msg("%s: %s: pixels differ", set->file, name);
    free((void *)(uintptr_t)square.rgb);
    renyi_image_free(&image, NULL);
    free(out);
}

/* "images" in the metadata is a JSON list of plain file names. */
static int check_set(const golden_set *set, const ry_resize_kernels *kernels)
{
    ry_tensors *golden = NULL;
    renyi_error err = {0};
    const char *path = shared_path(set->file);
    if (!path) return 0;
    if (ry_safetensors_open(&golden, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    const ry_tensor *pixels = ry_tensors_find(golden, "images.pixels");
    const char *names = ry_tensors_meta(golden, "images");
    if (!pixels || !names) fail_msg("%s: no images.pixels, or no list of files", set->file);
    assert_int_equal(pixels->shape[1], set->size);
    const size_t each = (size_t)set->size * set->size * 3;
    int n = 0;
    for (const char *at = strchr(names, '"'); at; at = strchr(at, '"'), n++) {
        const char *end = strchr(at + 1, '"');
        char name[256];
        assert_non_null(end);
        assert_true((uint64_t)n < pixels->shape[0]);
        snprintf(name, sizeof name, "%.*s", (int)(end - at - 1), at + 1);
        check_image(set, name, (const uint8_t *)pixels->data + (size_t)n * each, kernels);
        at = end + 1;
    }
    assert_int_equal(n, pixels->shape[0]);
    ry_tensors_free(golden);
    return n;
}

static void test_pixels(void **state)
{
    (void)state;
    int n = 0;
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++) {
        n += check_set(&SETS[i], &ry_resize_scalar);
        if (renyi_cpu_detect() >= RENYI_CPU_AVX2) n += check_set(&SETS[i], &ry_resize_vec8);
    }
    printf("%d images equal the reference in every pixel, %d files absent\n", n, *shared_missing());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pixels)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
