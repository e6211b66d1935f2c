/* quant_fixture.h - small models, quantised, and calibrations of them, for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_QUANT_FIXTURE_H
#define RENYI_TESTS_QUANT_FIXTURE_H

#include "model/vit_quant.h"
#include "renyi/quantize.h"
#include "vit_fixture.h"

enum { QUANT_PHOTOS = 6, QUANT_SIDE = 32, QUANT_VALUES = QUANT_SIDE * QUANT_SIDE * 3 };

/* A random model and its quantised twin. */
typedef struct quant_files {
    char from[512], to[512];
    uint64_t n_params;
} quant_files;

static inline quant_files quant_make(const char *architecture, const renyi_quantize_options *opt)
{
    static unsigned next;
    char name[32];
    quant_files q = {.n_params = 0};
    fixture f;
    snprintf(name, sizeof name, "from%u.safetensors", next);
    fix_make(&f, architecture);
    snprintf(q.from, sizeof q.from, "%s", fix_write(&f, name));
    snprintf(name, sizeof name, "to%u.safetensors", next++);
    snprintf(q.to, sizeof q.to, "%s", fix_path(name));
    for (size_t i = 0; i < f.n; i++) q.n_params += ry_tensor_elements(&f.t[i]);
    assert_ok(renyi_model_quantize(q.from, q.to, opt, NULL, err));
    fix_free(&f);
    return q;
}

static inline void quant_free(const quant_files *q) { unlink(q->from), unlink(q->to); }

static inline renyi_model *quant_open(const char *path, renyi_dtype dtype, renyi_cpu cpu)
{
    const renyi_options opt = {.struct_size = sizeof opt, .dtype = dtype, .cpu = cpu};
    renyi_model *m = NULL;
    assert_ok(renyi_model_open(&m, path, &opt, err));
    return m;
}

/* How the file says it was made; good until the next call. */
static inline const char *quant_text(const char *path)
{
    static char text[200];
    renyi_model_info info;
    renyi_model *m = quant_open(path, RENYI_DTYPE_DEFAULT, RENYI_CPU_AUTO);
    renyi_model_get_info(m, &info);
    snprintf(text, sizeof text, "%s", info.quantization ? info.quantization : "");
    renyi_model_free(m);
    return text;
}

/* Pictures of noise, brighter from one to the next. */
static inline void quant_photos(uint8_t pixels[QUANT_PHOTOS * QUANT_VALUES])
{
    uint32_t random = 7;
    for (size_t i = 0; i < (size_t)QUANT_PHOTOS * QUANT_VALUES; i++) {
        random = random * 1664525u + 1013904223u;
        pixels[i] = (uint8_t)((random >> 24) * (1 + i / QUANT_VALUES) / QUANT_PHOTOS);
    }
}

/* Logits of the first picture. */
static inline void quant_run(const renyi_model *m, float logits[FIX_CLASSES])
{
    const renyi_session_options o = {.struct_size = sizeof o, .n_threads = 1};
    uint8_t pixels[QUANT_PHOTOS * QUANT_VALUES];
    renyi_session *s = NULL;
    quant_photos(pixels);
    assert_ok(renyi_session_new(&s, m, &o, err));
    assert_ok(renyi_run_pixels(s, pixels, 1, logits, err));
    renyi_session_free(s);
}

typedef struct quant_calibration {
    renyi_model *model;
    renyi_calibration *calibration; /* has seen all pictures */
} quant_calibration;

static inline quant_calibration quant_calibrate(const char *architecture, uint32_t threads)
{
    const renyi_calibration_options o = {
        .struct_size = sizeof o, .max_batch = QUANT_PHOTOS, .n_threads = threads};
    uint8_t pixels[QUANT_PHOTOS * QUANT_VALUES];
    quant_calibration c = {NULL, NULL};
    fixture f;
    quant_photos(pixels);
    fix_make(&f, architecture);
    const char *path = fix_write(&f, "calibrated.safetensors");
    c.model = quant_open(path, RENYI_DTYPE_F32, RENYI_CPU_SCALAR);
    assert_ok(renyi_calibration_new(&c.calibration, c.model, &o, err));
    assert_ok(renyi_calibration_run(c.calibration, pixels, QUANT_PHOTOS, err));
    unlink(path);
    fix_free(&f);
    return c;
}

static inline void quant_calibration_free(quant_calibration *c)
{
    renyi_calibration_free(c->calibration);
    renyi_model_free(c->model);
}

#endif
