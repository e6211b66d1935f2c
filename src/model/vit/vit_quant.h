/* vit_quant.h - 8-bit weights as a checkpoint stores them.
 *
 * The weight of a block's product (qkv or q, k, v; proj; fc1; fc2) may be I8 [out, in], -127..127.
 * Then there lie beside it
 *   <weight>_scale   F32 [out]: w[j][k] = scale[j] * q[j][k]
 *   <weight>_range   F32 [2], if the product's input was calibrated: its low and high end
 * and "renyi.quantization" in the metadata says how they were made.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_QUANT_H
#define RY_VIT_QUANT_H

#include "model/common/tensor_names.h"

#define RY_QUANT_KEY "renyi.quantization"
#define RY_QUANTISE_AGAIN "make the file again with 'renyi quantize'"
enum { RY_QUANT_VERSION = 1 };

typedef enum ry_vit_beside { RY_BESIDE_SCALE, RY_BESIDE_RANGE, RY_N_BESIDE } ry_vit_beside;
enum { RY_BESIDE_MAX = 8 }; /* bytes that its name is longer than the weight's */

void ry_vit_beside_name(char out[RY_NAME_MAX + RY_BESIDE_MAX], const char *weight,
                        ry_vit_beside which);

/* The product's weight that the tensor `name` is the scale or range of; NULL if it is neither, or
 * the set has no such weight. */
const ry_tensor *ry_vit_beside_weight(const ry_vit_naming *n, const char *name,
                                      const ry_tensors *set);

/* Fills n_quantised and quantization. An unreadable or newer scheme in the metadata is an error. */
renyi_status ry_vit_quant_describe(ry_vit_config *c, const ry_vit_naming *n, const ry_tensors *set,
                                   renyi_error *err) RENYI_CHECK;

/* out [out, in] = the floats that an I8 weight stands for. Names and shapes have been checked; a
 * bad number is an error that names tensor and place. */
renyi_status ry_vit_dequantise(float *out, const ry_tensor *weight, const ry_tensors *set,
                               renyi_error *err) RENYI_CHECK;

/* 1 and out [out] = the scales of an I8 weight, which ry_vit_dequantise found good; else 0. */
int ry_vit_quant_scale(float *out, const ry_tensor *weight, const ry_tensors *set);

/* 1 and *out if the weight has a range, else 0. */
renyi_status ry_vit_quant_range(ry_quant_range *out, int *has, const ry_tensor *weight,
                                const ry_tensors *set, renyi_error *err) RENYI_CHECK;

#endif
