/* golden_taps.h - a model of ../shared with the file of its reference's numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_GOLDEN_TAPS_H
#define RENYI_TESTS_GOLDEN_TAPS_H

#include "engine/model.h"
#include "formats/safetensors.h"
#include "image/patches.h"

#include "shared.h"

#include <math.h>

typedef struct golden_taps {
    renyi_model *model;
    ry_tensors *taps;
    float lut[3][256]; /* the model's normalisation */
} golden_taps;

/* 0 if ../shared is not there. */
static inline int golden_taps_open(golden_taps *g, const char *model, const char *taps,
                                   renyi_cpu level)
{
    renyi_error err = {0};
    const char *model_path = shared_path(model), *taps_path = shared_path(taps);
    if (!model_path || !taps_path) return 0;
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level};
    if (renyi_model_open(&g->model, model_path, &opt, &err)) fail_msg("%s", err.message);
    if (ry_safetensors_open(&g->taps, taps_path, NULL, NULL, &err)) fail_msg("%s", err.message);
    ry_normalize_lut(g->lut, g->model->vit.config.preprocess.mean,
                     g->model->vit.config.preprocess.std);
    return 1;
}

static inline void golden_taps_close(golden_taps *g)
{
    renyi_model_free(g->model);
    ry_tensors_free(g->taps);
}

static inline const void *golden_tap(const ry_tensors *taps, const char *name)
{
    const ry_tensor *t = ry_tensors_find(taps, name);
    if (!t) fail_msg("golden file has no %s", name);
    return t->data;
}

/* The larger of two errors; one that is no number is infinite (fmax would forget it). */
static inline double golden_worse(double worst, double error)
{
    return isnan(error) ? INFINITY : fmax(worst, error);
}

/* The largest distance of a row from the reference's, relative to the length of that; infinite
 * where a number is not finite. */
static inline double golden_row_error(const float *got, const float *want, size_t rows, size_t n)
{
    double worst = 0.0;
    for (size_t r = 0; r < rows; r++) {
        double far = 0.0, length = 0.0;
        for (size_t i = r * n; i < (r + 1) * n; i++) {
            far += pow((double)got[i] - (double)want[i], 2.0);
            length += pow((double)want[i], 2.0);
        }
        worst = fmax(worst, isfinite(far) ? sqrt(far / length) : INFINITY);
    }
    return worst;
}

#endif
