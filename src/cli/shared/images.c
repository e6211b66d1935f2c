/* images.c - the images of a command line: which files are meant, and from a file to model input.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/images.h"

#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"
#include "cli/kit/output.h"

#include "renyi/eval.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- which files --------------------------------------------------------------------------- */

static const size_t max_list_bytes = 64u << 20;

void image_inputs_fail(image_inputs *inputs, const char *path, const char *reason)
{
    cli_error("%s: %s", path, reason);
    cli_strings_add(&inputs->failed, cli_copy(path));
    cli_strings_add(&inputs->reasons, cli_copy(reason));
    inputs->n_failed++;
}

void image_inputs_free(image_inputs *inputs)
{
    cli_strings_free(&inputs->paths);
    cli_strings_free(&inputs->failed);
    cli_strings_free(&inputs->reasons);
}

void image_note(void *user, const char *text)
{
    static char last[512]; /* a sweep opens the same folder for each model */

    (void)user;
    if (ranks_number() || strcmp(last, text) == 0) return;
    snprintf(last, sizeof last, "%s", text);
    cli_warn("%s", text);
}

static void on_failure(void *user, const char *path, const char *reason)
{
    image_inputs_fail(user, path, reason);
}

static void add_directory(image_inputs *out, const char *path, int recursive)
{
    const renyi_dataset_options o = {.struct_size = sizeof o,
                                     .unlabelled = 1,
                                     .top_only = !recursive,
                                     .user = out,
                                     .on_failure = on_failure,
                                     .on_note = image_note};
    const size_t failures = out->n_failed, n = strlen(path);
    renyi_dataset *data = NULL;
    renyi_dataset_info info = {0};
    renyi_error err = {0};
    const renyi_status st = renyi_dataset_open(&data, path, NULL, &o, &err);

    if (st == RENYI_OK) renyi_dataset_get_info(data, &info);
    for (size_t i = 0; i < info.n_images; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(data, i, &image);
        cli_strings_add(&out->paths, cli_copy(image.path));
    }
    renyi_dataset_free(data);
    if (st == RENYI_ERR_FORMAT && out->n_failed == failures) /* none is there */
        image_inputs_fail(out, path,
                          recursive ? "no images in this directory or below"
                                    : "no images in this directory (--recursive looks below it)");
    else if (st != RENYI_OK && st != RENYI_ERR_FORMAT) /* the reason begins with the path */
        image_inputs_fail(out, path,
                          strncmp(err.message, path, n) == 0 &&
                                  strncmp(err.message + n, ": ", 2) == 0
                              ? err.message + n + 2
                              : cli_reason(&err));
}

static void add_path(image_inputs *out, const char *path, int recursive)
{
    struct stat st;

    if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        add_directory(out, path, recursive);
    else
        cli_strings_add(&out->paths, cli_copy(path)); /* errors show when it is read */
}

static void add_list(image_inputs *out, const char *list, int recursive)
{
    cli_strings lines = {0};
    char *why;

    if (read_lines(list, max_list_bytes, &lines, &why)) {
        image_inputs_fail(out, list, why);
        free(why);
        return;
    }
    for (size_t k = 0; k < lines.count; k++)
        if (*lines.items[k]) add_path(out, lines.items[k], recursive);
    cli_strings_free(&lines);
}

void image_inputs_collect(image_inputs *out, const cli_strings *arguments, const char *list,
                          int recursive)
{
    *out = (image_inputs){0};
    for (size_t i = 0; i < arguments->count; i++) add_path(out, arguments->items[i], recursive);
    if (list) add_list(out, list, recursive);
}

/* ---- from a file to model input ------------------------------------------------------------ */

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

renyi_decode_mode image_decode_mode(const char *name)
{
    return name && strcmp(name, "scaled") == 0 ? RENYI_DECODE_SCALED : RENYI_DECODE_EXACT;
}

/* 0, or -1 after reporting. */
static int check_overrides(const char *verb, const image_overrides *over)
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

int image_spec_make(image_spec *out, const char *verb, const renyi_model_info *info,
                    const image_overrides *over)
{
    renyi_preprocess *p = &out->preprocess;

    *out = (image_spec){.preprocess = info->preprocess, .source = info->preprocess_source};
    if (check_overrides(verb, over)) return -1;
    out->decode = image_decode_mode(over->decode);
    out->own_normalization = over->mean.given || over->std.given;
    out->is_overridden =
        out->own_normalization || over->crop_pct.given || over->crop_mode || over->interpolation;
    if (over->crop_pct.given) p->crop_pct = over->crop_pct.values[0];
    if (over->mean.given) memcpy(p->mean, over->mean.values, sizeof p->mean);
    if (over->std.given) memcpy(p->std, over->std.values, sizeof p->std);
    if (over->crop_mode) p->crop_mode = crop_mode_from(over->crop_mode);
    if (over->interpolation) p->interpolation = interpolation_from(over->interpolation);
    return 0;
}

void image_spec_note(const image_spec *spec)
{
    const renyi_preprocess *p = &spec->preprocess;

    cli_note("preprocessing: %u x %u, crop %g (%s), %s, mean %g %g %g, std %g %g %g; from %s%s%s",
             p->size, p->size, p->crop_pct, crop_mode_name(p->crop_mode),
             interpolation_name(p->interpolation), p->mean[0], p->mean[1], p->mean[2], p->std[0],
             p->std[1], p->std[2], spec->source,
             spec->is_overridden ? ", changed by the command line" : "",
             spec->decode == RENYI_DECODE_SCALED ? "; decoded scaled" : "");
}

json_t *image_spec_json(const image_spec *spec)
{
    json_t *out = json_preprocess(&spec->preprocess, spec->source);
    const char *decode = spec->decode == RENYI_DECODE_SCALED ? "scaled" : "exact";

    if (out) json_object_set_new(out, "decode", json_string(decode));
    return out;
}

int image_is_regular(const char *path)
{
    struct stat st;

    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Standard input and pipes, which the library does not read: `*why` is set on failure. */
static renyi_status decode_stream(renyi_image *out, const char *path,
                                  const renyi_image_options *opt, renyi_error *err, char **why)
{
    file_bytes bytes;

    if (read_file(path, max_image_bytes, &bytes, why)) return RENYI_ERR_IO;
    const renyi_status status = renyi_image_decode(out, bytes.data, bytes.size, opt, err);
    free(bytes.data);
    return status;
}

static renyi_status stream_pixels(uint8_t *pixels, const char *path, const image_spec *spec,
                                  const renyi_image_options *opt, renyi_error *err, char **why)
{
    file_bytes bytes;

    if (read_file(path, max_image_bytes, &bytes, why)) return RENYI_ERR_IO;
    const renyi_status status = renyi_image_decode_pixels(pixels, NULL, bytes.data, bytes.size,
                                                          &spec->preprocess, opt, err);
    free(bytes.data);
    return status;
}

int image_decode(renyi_image *out, const char *path, int apply_exif, char **why)
{
    const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = apply_exif != 0};
    renyi_error err = {0};

    *out = (renyi_image){0};
    *why = NULL;
    const renyi_status status = image_is_regular(path) ? renyi_image_load(out, path, &opt, &err)
                                                       : decode_stream(out, path, &opt, &err, why);
    if (status != RENYI_OK && !*why) *why = cli_copy(cli_reason(&err));
    return status == RENYI_OK ? 0 : -1;
}

int image_load(uint8_t *pixels, const char *path, const image_spec *spec, char **why)
{
    const renyi_image_options opt = {
        .struct_size = sizeof opt, .apply_exif = spec->apply_exif != 0, .decode = spec->decode};
    renyi_error err = {0};

    *why = NULL;
    const renyi_status status =
        image_is_regular(path)
            ? renyi_image_load_pixels(pixels, path, &spec->preprocess, &opt, &err)
            : stream_pixels(pixels, path, spec, &opt, &err, why);
    if (status != RENYI_OK && !*why) *why = cli_copy(cli_reason(&err));
    return status == RENYI_OK ? 0 : -1;
}
