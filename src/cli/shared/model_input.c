/* model_input.c - see model_input.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/model_input.h"

#include "cli/kit/files.h"
#include "cli/kit/output.h"

#include <stdlib.h>
#include <string.h>

static const size_t max_image_bytes = 256u << 20; /* the library's own default limit */

static renyi_crop_mode crop_mode_from(const char *name)
{
    if (strcmp(name, "squash") == 0) return RENYI_CROP_SQUASH;
    return strcmp(name, "border") == 0 ? RENYI_CROP_BORDER : RENYI_CROP_CENTER;
}

static renyi_interpolation interpolation_from(const char *name)
{
    if (strcmp(name, "bilinear") == 0) return RENYI_BILINEAR;
    return strcmp(name, "lanczos") == 0 ? RENYI_LANCZOS : RENYI_BICUBIC;
}

static int check_overrides(const char *verb, const photo_overrides *over)
{
    const double crop = over->crop_pct.values[0];

    if (over->crop_pct.given && !(crop > 0.0 && crop <= 1.0)) {
        options_usage_error(verb, "option '--crop-pct': %g is not above 0 and at most 1", crop);
        return -1;
    }
    for (int i = 0; over->std.given && i < 3; i++) {
        if (over->std.values[i] > 0.0) continue;
        options_usage_error(verb, "option '--std': %g is not above 0", over->std.values[i]);
        return -1;
    }
    return 0;
}

int photo_spec_make(photo_spec *out, const char *verb, const renyi_model_info *info,
                    const photo_overrides *over)
{
    renyi_preprocess *p = &out->preprocess;

    *out = (photo_spec){.preprocess = info->preprocess, .source = info->preprocess_source};
    if (check_overrides(verb, over)) return -1;
    out->own_normalising = over->mean.given || over->std.given;
    out->is_overridden =
        out->own_normalising || over->crop_pct.given || over->crop_mode || over->interpolation;
    if (over->crop_pct.given) p->crop_pct = over->crop_pct.values[0];
    if (over->mean.given) memcpy(p->mean, over->mean.values, sizeof p->mean);
    if (over->std.given) memcpy(p->std, over->std.values, sizeof p->std);
    if (over->crop_mode) p->crop_mode = crop_mode_from(over->crop_mode);
    if (over->interpolation) p->interpolation = interpolation_from(over->interpolation);
    return 0;
}

void photo_spec_note(const photo_spec *spec)
{
    const renyi_preprocess *p = &spec->preprocess;

    cli_note("preprocessing: %u x %u, crop %g (%s), %s, mean %g %g %g, std %g %g %g; from %s%s",
             p->size, p->size, p->crop_pct, crop_mode_name(p->crop_mode),
             interpolation_name(p->interpolation), p->mean[0], p->mean[1], p->mean[2], p->std[0],
             p->std[1], p->std[2], spec->source,
             spec->is_overridden ? ", changed by the command line" : "");
}

static char *reason(const renyi_error *err)
{
    return cli_copy(err->message[0] ? err->message : renyi_status_name(err->code));
}

int photo_decode(renyi_image *out, const char *path, int apply_exif, char **why)
{
    const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = apply_exif != 0};
    renyi_error err = {0};
    file_bytes bytes;

    *out = (renyi_image){0};
    if (read_file(path, max_image_bytes, &bytes, why)) return -1;
    const renyi_status status = renyi_image_decode(out, bytes.data, bytes.size, &opt, &err);
    free(bytes.data);
    if (status != RENYI_OK) *why = reason(&err);
    return status == RENYI_OK ? 0 : -1;
}

int photo_load(uint8_t *pixels, const char *path, const photo_spec *spec, char **why)
{
    const renyi_image_options opt = {.struct_size = sizeof opt,
                                     .apply_exif = spec->apply_exif != 0};
    renyi_error err = {0};
    renyi_image image;

    if (photo_decode(&image, path, spec->apply_exif, why)) return -1;
    const renyi_status status = renyi_image_fit(pixels, &image, &spec->preprocess, NULL, &err);
    renyi_image_free(&image, &opt);
    if (status != RENYI_OK) *why = reason(&err);
    return status == RENYI_OK ? 0 : -1;
}

void photo_normalise(float *chw, const uint8_t *pixels, size_t n, const renyi_preprocess *spec)
{
    const size_t area = (size_t)spec->size * spec->size;

    for (size_t image = 0; image < n; image++)
        for (size_t c = 0; c < 3; c++) {
            const float mean = (float)spec->mean[c], std = (float)spec->std[c];
            float *plane = chw + (image * 3 + c) * area;
            const uint8_t *from = pixels + image * 3 * area + c;
            /* The order of timm and torchvision: to [0, 1], minus mean, over std, all in float. */
            for (size_t i = 0; i < area; i++) plane[i] = ((float)from[3 * i] / 255.0f - mean) / std;
        }
}
