/* quantize.h - a model file with 8-bit weights, and with ranges of its activations if photos tell
 * them. docs/QUANTIZATION.md says what is in the file.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Weights alone:      renyi_model_quantize
 * With calibration:   renyi_model_open (f32) -> renyi_dataset_open (unlabelled = 1)
 *                     -> renyi_calibration_new -> renyi_calibration_photos -> renyi_model_quantize
 *
 * The file loads like any other: renyi_model_open computes in int8 by default where that is fast.
 */
#ifndef RENYI_QUANTIZE_H
#define RENYI_QUANTIZE_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calibration --------------------------------------------------------------------------- */

/* What the inputs of the products in the blocks look like: of every token (a row of the input) its
 * smallest and its largest number. */
typedef struct renyi_calibration renyi_calibration;

typedef struct renyi_calibration_options {
    uint32_t struct_size;
    uint32_t max_batch; /* photos per call; 0 = 8 */
    uint32_t n_threads; /* 0 = physical cores */
} renyi_calibration_options;

/* Borrows m, which must compute in f32 and outlive the calibration. */
RENYI_API RENYI_CHECK renyi_status renyi_calibration_new(renyi_calibration **out,
                                                         const renyi_model *m,
                                                         const renyi_calibration_options *opt,
                                                         renyi_error *err);
RENYI_API void renyi_calibration_free(renyi_calibration *c);

/* Run n <= max_batch pictures, fitted by renyi_image_fit, and look at every product. */
RENYI_API RENYI_CHECK renyi_status renyi_calibration_run(renyi_calibration *c,
                                                         const uint8_t *pixels, uint32_t n,
                                                         renyi_error *err);

typedef struct renyi_calibration_photos_options {
    uint32_t struct_size;
    uint32_t apply_exif; /* 1 = turn photos as their EXIF orientation says */
    renyi_limits limits; /* of photos */
    void *user;          /* first argument of the callbacks; each may be NULL */
    void (*on_failure)(void *user, const char *file, const char *message); /* photo skipped */
    renyi_progress progress; /* after every batch: photos done of all; non-zero stops */
} renyi_calibration_photos_options;

/* Run all photos of a dataset. One that cannot be read is reported and skipped. */
RENYI_API RENYI_CHECK renyi_status
renyi_calibration_photos(renyi_calibration *c, const renyi_dataset *d,
                         const renyi_calibration_photos_options *opt, renyi_error *err);

/* Photos seen so far. */
RENYI_API uint64_t renyi_calibration_images(const renyi_calibration *c);

typedef enum renyi_product {
    RENYI_PRODUCT_QKV = 0,
    RENYI_PRODUCT_PROJ = 1,
    RENYI_PRODUCT_FC1 = 2,
    RENYI_PRODUCT_FC2 = 3
} renyi_product;

/* From what was seen to the range of an input. Numbers outside it are clipped. */
typedef enum renyi_range_rule {
    RENYI_RANGE_PERCENTILE = 0, /* `percentile` per cent of the tokens have their largest number
                                   below the high end, and as many their smallest above the low
                                   end */
    RENYI_RANGE_MAX = 1         /* from the smallest to the largest number of all tokens */
} renyi_range_rule;

typedef struct renyi_calibrated_range {
    float low, high; /* low < high */
    double spread;   /* how many times wider than the range of the median token alone */
} renyi_calibrated_range;

/* percentile: above 50, at most 100; 0 = 99.9. Ignored by RENYI_RANGE_MAX. At most 32,768 tokens of
 * a product, drawn evenly from all, stand for the others. */
RENYI_API RENYI_CHECK renyi_status renyi_calibration_range(const renyi_calibration *c,
                                                           uint32_t block, renyi_product product,
                                                           renyi_range_rule rule, double percentile,
                                                           renyi_calibrated_range *out,
                                                           renyi_error *err);

/* ---- the file ------------------------------------------------------------------------------ */

typedef struct renyi_quantize_options {
    uint32_t struct_size;
    const renyi_calibration *calibration; /* of the same model; NULL = activations per token */
    renyi_range_rule rule;
    double percentile;
    double max_spread; /* products with a larger spread get no range and stay per token; 0 = 8. Few
                          numbers that are far larger than all others (some models have them in one
                          product) would leave only a few steps to the rest */
    renyi_limits limits;
    renyi_allocator allocator;
    renyi_progress progress; /* bytes written of all; non-zero stops */
    void *progress_user;
} renyi_quantize_options;

typedef struct renyi_quantize_result {
    uint32_t n_quantised;         /* weights that are 8-bit now */
    uint32_t n_ranges;            /* of them with a calibrated range */
    uint64_t bytes_in, bytes_out; /* of all tensors */
} renyi_quantize_result;

/* Write model `in` (any path that renyi_model_open takes) to the .safetensors file `out` with the
 * weights of the blocks' products in 8 bits and all else as it is; configs travel in the metadata.
 * One row of one matrix at a time: a model larger than memory is fine. The file appears only when
 * complete. A model that is quantised already, and `out` being a file of `in`, are errors. result
 * may be NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_model_quantize(const char *in, const char *out,
                                                        const renyi_quantize_options *opt,
                                                        renyi_quantize_result *result,
                                                        renyi_error *err);

/* ---- language models ------------------------------------------------------------------------ */

typedef struct renyi_lm_quantize_options {
    uint32_t struct_size;
    renyi_dtype dtype; /* INT8 (0 too) or INT4 */
    renyi_limits limits;
    renyi_allocator allocator;
    renyi_progress progress; /* bytes written of all; non-zero stops */
    void *progress_user;
} renyi_lm_quantize_options;

/* Write `in`, a Llama or a LLaVA (any path that renyi_lm_open takes), to the .safetensors file
 * `out` with the matrices of the language model in 8 or 4 bits, laid out as the products read them:
 * it is mapped and runs without conversion. Tower and projector of a LLaVA and all else stay as
 * they are; configs travel in the metadata, the tokenizer does not: it belongs beside `out`. Some
 * rows at a time: a model larger than memory is fine. The file appears only when complete. result
 * may be NULL; its n_quantised counts q, k, v as one, and so gate and up. */
RENYI_API RENYI_CHECK renyi_status renyi_lm_quantize(const char *in, const char *out,
                                                     const renyi_lm_quantize_options *opt,
                                                     renyi_quantize_result *result,
                                                     renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
