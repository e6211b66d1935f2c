/* params.h - the parameters that training changes: one flat array of values, one of gradients, and
 * a list of the tensors in them. Optimizer states are arrays of the same layout.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PARAMS_H
#define RY_PARAMS_H

#include "model/common/tensor_names.h"

#include <stddef.h>
#include <stdint.h>

/* Roles of parameters that are not part of a Vision Transformer. */
enum { RY_FEATURE_W = RY_FC2_B + 1, RY_FEATURE_B, RY_FEATURE_NORM_W, RY_FEATURE_NORM_B };

typedef struct ry_param {
    char name[RY_NAME_MAX]; /* timm's */
    size_t offset, size;    /* floats in the arrays; offsets are multiples of 16, gaps are zero */
    uint32_t n_dims;
    uint64_t shape[4];
    ry_tensor_role role; /* RY_QKV_W, never RY_Q_W; or RY_FEATURE_* */
    uint32_t block;      /* for roles inside blocks; the tap of RY_FEATURE_* */
    int decay;           /* 0: bias, LayerNorm, position embedding, class or distillation token */
    int is_model;        /* 0: used only in training, not saved in the model's file */
    int frozen;          /* set by the caller: the optimizer does not change it; if weight and bias
                            are both frozen their gradients are not computed */
} ry_param;

typedef struct ry_params {
    ry_param *list; /* [n] in the order of timm's state dict */
    uint32_t n;
    ry_param *files; /* [n_files] the same floats as the tensors of a file: `list` itself, or under
                        Hugging Face's names, with q, k and v apart */
    uint32_t n_files;
    size_t total; /* floats of an array, with gaps */
    float *value, *grad;
} ry_params;

/* NULL if there is none. */
const ry_param *ry_params_find(const ry_params *p, ry_tensor_role role, uint32_t block);

#endif
