/* quantize.h - writes model files with 8-bit or 4-bit weights (docs/QUANTIZATION.md).
 *
 * Call orders:
 *   weights only      renyi_model_quantize
 *   with calibration  renyi_model_open (f32), renyi_dataset_open (unlabelled = 1)
 *                     -> renyi_calibration_new -> renyi_calibration_photos
 *                     -> renyi_model_quantize -> free in reverse order
 *   language model    renyi_lm_quantize
 *
 * The file opens like any other. renyi_model_open computes in int8 by default where that is fast.
 * The rules of renyi.h and eval.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_QUANTIZE_H
#define RENYI_QUANTIZE_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calibration ----------------------------------------------------------------------------- */

/* Measures the range of the activations on images. Call order: renyi_calibration_new ->
 * renyi_calibration_photos, or renyi_calibration_run with pixels -> renyi_model_quantize ->
 * renyi_calibration_free. Without calibration, activations are quantized per token at run time. */

/* The smallest and largest number of every token that enters a product of the blocks. */
typedef struct renyi_calibration renyi_calibration;

typedef struct renyi_calibration_options {
    uint32_t struct_size;
    uint32_t max_batch; /* images per call; 0 = 8 */
    uint32_t n_threads; /* 0 = as in renyi_session_options */
} renyi_calibration_options;

/* m must compute in f32. Borrows m until renyi_calibration_free. On success *out is owned by the
 * caller (renyi_calibration_free). */
RENYI_API RENYI_CHECK renyi_status renyi_calibration_new(renyi_calibration **out,
                                                         const renyi_model *m,
                                                         const renyi_calibration_options *opt,
                                                         renyi_error *err);
RENYI_API void renyi_calibration_free(renyi_calibration *c);

/* Runs n <= max_batch images fitted by renyi_image_fit, pixels [n, size, size, 3], and records the
 * inputs of every product. */
RENYI_API RENYI_CHECK renyi_status renyi_calibration_run(renyi_calibration *c,
                                                         const uint8_t *pixels, uint32_t n,
                                                         renyi_error *err);

typedef struct renyi_calibration_photos_options {
    uint32_t struct_size;
    uint32_t apply_exif; /* 1 = apply the EXIF orientation */
    renyi_limits limits; /* limits for images */
    void *user;          /* first argument of the callbacks; each may be NULL */
    /* Called for each image that is skipped. */
    void (*on_failure)(void *user, const char *file, const char *message);
    renyi_progress progress; /* called after every batch: images done, all images; non-zero stops */
} renyi_calibration_photos_options;

/* Runs all images of a dataset. An image that cannot be read is reported and skipped. */
RENYI_API RENYI_CHECK renyi_status
renyi_calibration_photos(renyi_calibration *c, const renyi_dataset *d,
                         const renyi_calibration_photos_options *opt, renyi_error *err);

/* Images run so far. */
RENYI_API uint64_t renyi_calibration_images(const renyi_calibration *c);

typedef enum renyi_product {
    RENYI_PRODUCT_QKV = 0,
    RENYI_PRODUCT_PROJ = 1,
    RENYI_PRODUCT_FC1 = 2,
    RENYI_PRODUCT_FC2 = 3
} renyi_product;

/* How the range of an input is chosen. Numbers outside it are clipped. */
typedef enum renyi_range_rule {
    RENYI_RANGE_PERCENTILE = 0, /* `percentile` percent of the tokens have their largest number
                                   below the upper end, and as many their smallest number above the
                                   lower end */
    RENYI_RANGE_MAX = 1         /* from the smallest to the largest number of all tokens */
} renyi_range_rule;

typedef struct renyi_calibrated_range {
    float low, high; /* low < high */
    double spread;   /* width relative to the range of the median token */
} renyi_calibrated_range;

/* percentile: above 50, at most 100; 0 = 99.9; ignored by RENYI_RANGE_MAX. If there are more than
 * 32,768 tokens per product, an even sample of that size is used. */
RENYI_API RENYI_CHECK renyi_status renyi_calibration_range(const renyi_calibration *c,
                                                           uint32_t block, renyi_product product,
                                                           renyi_range_rule rule, double percentile,
                                                           renyi_calibrated_range *out,
                                                           renyi_error *err);

/* ---- Vision Transformers --------------------------------------------------------------------- */

typedef struct renyi_quantize_options {
    uint32_t struct_size;
    const renyi_calibration *calibration; /* of the same model; NULL = activations per token */
    renyi_range_rule rule;
    double percentile;
    double max_spread; /* products with a larger spread get no range and stay per token; 0 = 8.
                          Reason: a few very large numbers, which some models have in one product,
                          would leave only a few steps for the rest */
    renyi_limits limits;
    renyi_allocator allocator;
    renyi_progress progress; /* bytes written, all bytes; non-zero stops */
    void *progress_user;
} renyi_quantize_options;

typedef struct renyi_quantize_result {
    uint32_t n_quantized;         /* number of 8-bit weights */
    uint32_t n_ranges;            /* of them with a calibrated range */
    uint64_t bytes_in, bytes_out; /* size of all tensors */
} renyi_quantize_result;

/* Writes model `in` (any path for renyi_model_open) to the .safetensors file `out`, with the
 * weights of the blocks' products in 8 bits and everything else unchanged; configs go into the
 * metadata. It processes one row of one matrix at a time, so the model may be larger than memory.
 * The file appears only when complete. A model that is already quantized, and an `out` that is a
 * file of `in`, are errors. result may be NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_model_quantize(const char *in, const char *out,
                                                        const renyi_quantize_options *opt,
                                                        renyi_quantize_result *result,
                                                        renyi_error *err);

/* ---- language models ------------------------------------------------------------------------- */

typedef struct renyi_lm_quantize_options {
    uint32_t struct_size;
    renyi_dtype dtype; /* INT8 (also 0) or INT4 */
    renyi_limits limits;
    renyi_allocator allocator;
    renyi_progress progress; /* bytes written, all bytes; non-zero stops */
    void *progress_user;
} renyi_lm_quantize_options;

/* Writes `in`, a Llama or a LLaVA (any path for renyi_lm_open), to the .safetensors file `out`,
 * with the matrices of the language model in 8 or 4 bits, in the layout that the products read: the
 * file is mapped and runs without conversion. Everything else, also tower and projector of a LLaVA,
 * stays unchanged. Configs go into the metadata; the tokenizer does not: copy it beside `out`. It
 * processes some rows at a time, so the model may be larger than memory. The file appears only when
 * complete. result may be NULL; its n_quantized counts q, k, v as one weight, and gate and up as
 * one. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_quantize(const char *in, const char *out,
                                                     const renyi_lm_quantize_options *opt,
                                                     renyi_quantize_result *result,
                                                     renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
