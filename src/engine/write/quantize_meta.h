/* quantize_meta.h - the metadata of a quantised file: its scheme, and all that lay beside the
 * original, so that one file is the whole model.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_QUANTIZE_META_H
#define RY_QUANTIZE_META_H

#include "model/common/tensor_quant.h"
#include "renyi/quantize.h"

typedef struct ry_quantize_scheme {
    renyi_range_rule rule;
    double percentile;
    uint64_t n_photos; /* 0 = not calibrated */
} ry_quantize_scheme;

typedef struct ry_quantize_meta {
    const char **pairs; /* key, value, ..., NULL */
    char *texts[3];     /* made for it: scheme, config, preprocessor_config */
    char heads[16];
} ry_quantize_meta;

/* Borrows ckpt and config. Call ry_quantize_meta_free whatever it returns. */
renyi_status ry_quantize_meta_make(ry_quantize_meta *out, const ry_checkpoint *ckpt,
                                   const ry_vit_config *config, const ry_quantize_scheme *scheme,
                                   const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* The same of a language model in panels (model/llama/llama_stored.h). */
renyi_status ry_quantize_lm_meta(ry_quantize_meta *out, const ry_checkpoint *ckpt,
                                 renyi_dtype dtype, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;
void ry_quantize_meta_free(ry_quantize_meta *m, const renyi_allocator *al);

/* RENYI_ERR_ARG if `out` is a file of the checkpoint itself. */
renyi_status ry_quantize_target(const ry_checkpoint *ckpt, const char *out,
                                renyi_error *err) RENYI_CHECK;

#endif
