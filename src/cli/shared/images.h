/* images.h - the images of a command line: which files are meant, and from a file to model input.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_IMAGES_H
#define RENYI_IMAGES_H

#include "cli/kit/options.h"
#include "cli/kit/output.h"

/* ---- which files --------------------------------------------------------------------------- */

typedef struct image_inputs {
    cli_strings
        paths;       /* in the order given; files of a directory sorted by the bytes of the name */
    size_t n_failed; /* arguments that gave nothing; reported on stderr */
    cli_strings failed, reasons; /* the same, for --json */
} image_inputs;

/* A directory means the images that renyi_dataset_open finds in it, with `recursive` also those
 * below it; subfolders that cannot be read and images that are not regular files are failures. A
 * file is taken whatever its
 * name is; "-" is stdin. `list` (may be NULL) is a file with one path per line. */
void image_inputs_collect(image_inputs *out, const cli_strings *arguments, const char *list,
                          int recursive);
void image_inputs_fail(image_inputs *inputs, const char *path, const char *reason);
void image_inputs_free(image_inputs *inputs);

/* on_note of the library's options: a warning on stderr, not repeated. */
void image_note(void *user, const char *text);

/* ---- from a file to model input ------------------------------------------------------------ */

/* What the command line changes in a model's preprocessing. */
typedef struct image_overrides {
    option_reals crop_pct, mean, std;
    const char *crop_mode, *interpolation; /* NULL = the model's */
    const char *decode;                    /* NULL = exact */
} image_overrides;

/* Rows of an option table. `a` has `image_size`, uint64_t. */
/* clang-format off */
#define SIZE_OPTION_ROWS(a) \
    {"image-size", 0, OPTION_COUNT, &(a)->image_size, "N", "input side in pixels (the model's)", 1, 16384}

#define DECODE_OPTION_ROW(to) \
    {"decode", 0, OPTION_CHOICE, to, "exact|scaled", "scaled: large photos faster, not the same pixels (exact)", 0, 0}

/* `a` has `over`, image_overrides, and `exif`, int. */
#define FIT_OPTION_ROWS(a) \
    {"crop-pct", 0, OPTION_REAL, &(a)->over.crop_pct, "X", "share of the resized image that is kept", 0, 0}, \
    {"crop-mode", 0, OPTION_CHOICE, &(a)->over.crop_mode, "center|squash|border", "how it is cropped", 0, 0}, \
    {"interpolation", 0, OPTION_CHOICE, &(a)->over.interpolation, "bicubic|bilinear|lanczos", "how it is resized", 0, 0}, \
    {"mean", 0, OPTION_REALS3, &(a)->over.mean, "R G B", "subtracted from pixel / 255", 0, 0}, \
    {"std", 0, OPTION_REALS3, &(a)->over.std, "R G B", "divides the difference", 0, 0}, \
    DECODE_OPTION_ROW(&(a)->over.decode), \
    {"exif", 0, OPTION_FLAG, &(a)->exif, "", "turn images by their EXIF orientation", 0, 0}

#define IMAGE_OPTION_ROWS(a) SIZE_OPTION_ROWS(a), FIT_OPTION_ROWS(a)
/* clang-format on */

typedef struct image_spec {
    renyi_preprocess preprocess;
    const char *source;    /* where it comes from, for people */
    int is_overridden;     /* something came from the command line */
    int own_normalization; /* mean or std did: the library's must not be used */
    int apply_exif;
    renyi_decode_mode decode;
} image_spec;

/* Of the argument of --decode; NULL = exact. */
renyi_decode_mode image_decode_mode(const char *name);

/* The model's preprocessing with the overrides; -1 after reporting wrong usage of `verb`. */
int image_spec_make(image_spec *out, const char *verb, const renyi_model_info *info,
                    const image_overrides *over);
void image_spec_note(const image_spec *spec);    /* one line on stderr */
json_t *image_spec_json(const image_spec *spec); /* for --json; NULL = no memory */

/* Neither stdin nor a pipe: the library can read it. */
int image_is_regular(const char *path);

/* Reads ("-" is stdin), decodes, resizes and crops into pixels [size, size, 3]. On failure returns
 * -1 and *why (owned) says what is wrong, without the path. */
int image_load(uint8_t *pixels, const char *path, const image_spec *spec, char **why);

/* Only reads and decodes, every pixel. out is owned (renyi_image_free); failure as above. */
int image_decode(renyi_image *out, const char *path, int apply_exif, char **why);

#endif
