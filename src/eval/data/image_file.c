/* image_file.c - see image_file.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/data/image_file.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/whole_file.h"

static renyi_status fit_bytes(uint8_t *pixels, uint32_t original[2], const uint8_t *bytes,
                              size_t size, const ry_photo_spec *spec, renyi_error *err)
{
    const renyi_image_options opt = {
        .struct_size = sizeof opt, .apply_exif = spec->apply_exif, .limits = spec->limits};
    renyi_image image;
    RY_TRY(renyi_image_decode(&image, bytes, size, &opt, err));
    original[0] = image.width;
    original[1] = image.height;
    const renyi_status st = renyi_image_fit(pixels, &image, &spec->preprocess, NULL, err);
    renyi_image_free(&image, &opt);
    return st;
}

renyi_status ry_photo_load_sized(uint8_t *pixels, uint32_t size[2], const char *path,
                                 const ry_photo_spec *spec, renyi_error *err)
{
    uint8_t *bytes;
    size_t n_bytes;
    RY_TRY(ry_file_read(&bytes, &n_bytes, path, spec->limits.max_image_bytes, NULL, err));
    const renyi_status st = fit_bytes(pixels, size, bytes, n_bytes, spec, err);
    ry_free(NULL, bytes);
    return st;
}

renyi_status ry_photo_load(uint8_t *pixels, const char *path, const ry_photo_spec *spec,
                           renyi_error *err)
{
    uint32_t size[2];
    return ry_photo_load_sized(pixels, size, path, spec, err);
}

void ry_photo_normalise(float *chw, const uint8_t *pixels, const renyi_preprocess *spec)
{
    const size_t area = (size_t)spec->size * spec->size;
    for (size_t c = 0; c < 3; c++) {
        const float mean = (float)spec->mean[c], std = (float)spec->std[c];
        /* The order of timm and torchvision: to [0, 1], minus mean, over std, all in float. */
        for (size_t i = 0; i < area; i++)
            chw[c * area + i] = ((float)pixels[3 * i + c] / 255.0f - mean) / std;
    }
}
