/* model_input.h - one picture from a file to the pixels or floats a model takes.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_MODEL_INPUT_H
#define RENYI_MODEL_INPUT_H

#include "cli/kit/options.h"

#include "renyi/renyi.h"

/* What the command line changes in a model's preprocessing. */
typedef struct photo_overrides {
    option_reals crop_pct, mean, std;
    const char *crop_mode, *interpolation; /* NULL = the model's */
} photo_overrides;

typedef struct photo_spec {
    renyi_preprocess preprocess;
    const char *source;  /* where it comes from, for people */
    int is_overridden;   /* something came from the command line */
    int own_normalising; /* mean or std did: the library's must not be used */
    int apply_exif;
} photo_spec;

/* The model's preprocessing with the overrides; -1 after reporting wrong usage of `verb`. */
int photo_spec_make(photo_spec *out, const char *verb, const renyi_model_info *info,
                    const photo_overrides *over);
void photo_spec_note(const photo_spec *spec); /* one line on stderr */

/* Read, decode, resize, crop into pixels [size, size, 3]. On failure returns -1 and *why (owned)
 * says what is wrong; the path may or may not be in it. */
int photo_load(uint8_t *pixels, const char *path, const photo_spec *spec, char **why);

/* Read and decode alone. out is owned (renyi_image_free); failure as above. */
int photo_decode(renyi_image *out, const char *path, int apply_exif, char **why);

/* pixels [n, size, size, 3] -> floats [n, 3, size, size] = (pixel / 255 - mean) / std. */
void photo_normalise(float *chw, const uint8_t *pixels, size_t n, const renyi_preprocess *spec);

#endif
