/* tensor_quant.h - reads a tensor as floats, also if the checkpoint stores it in 8 bits.
 *
 * The weight of a block's product (qkv or q, k, v; proj; fc1; fc2) may be I8 [out, in], -127..127.
 * Beside it are then
 *   <weight>_scale   F32 [out]: w[j][k] = scale[j] * q[j][k]
 *   <weight>_range   F32 [2], if the product's input was calibrated: its lowest and highest value
 * and "renyi.quantization" in the metadata says how they were made.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TENSOR_QUANT_H
#define RY_TENSOR_QUANT_H

#include "model/common/tensor_names.h"

#define RY_QUANT_KEY "renyi.quantization"
#define RY_QUANTIZE_AGAIN "make the file again with 'renyi quantize'"
enum { RY_QUANT_VERSION = 1 };

/* out: [elements of t]; 8-bit weights times their scales. NaN and infinity are errors that name
 * tensor and element. */
renyi_status ry_tensor_read(float *out, const ry_tensor *t, const ry_tensors *set,
                            renyi_error *err) RENYI_CHECK;

/* The same for some elements, in the order of the file. Threads may read at the same time. */
typedef struct ry_range {
    size_t first, count;
} ry_range;
renyi_status ry_tensor_read_range(float *out, const ry_tensor *t, const ry_tensors *set,
                                  ry_range range, renyi_error *err) RENYI_CHECK;

/* out = the bytes of whole blocks of Q4_0 or Q8_0, if their numbers are finite. */
renyi_status ry_tensor_read_blocks(void *out, const ry_tensor *t, ry_range range,
                                   renyi_error *err) RENYI_CHECK;

/* The tensors that belong to an 8-bit weight. */
typedef enum ry_quant_part { RY_QUANT_SCALE, RY_QUANT_RANGE, RY_N_QUANT_PARTS } ry_quant_part;
enum { RY_QUANT_SUFFIX_MAX = 8 }; /* bytes that their names are longer than the weight's */

void ry_quant_part_name(char out[RY_NAME_MAX + RY_QUANT_SUFFIX_MAX], const char *weight,
                        ry_quant_part which);

/* The weight that the tensor `name` is the scale or range of; NULL if it is neither, or the set has
 * no such weight. */
const ry_tensor *ry_quant_part_weight(const ry_tensor_naming *n, const char *name,
                                      const ry_tensors *set);

/* Fills n_quantized and quantization. An unreadable or newer scheme in the metadata is an error. */
renyi_status ry_vit_quant_describe(ry_vit_config *c, const ry_tensor_naming *n,
                                   const ry_tensors *set, renyi_error *err) RENYI_CHECK;

/* 1 and out [out] = the scales of an I8 weight that ry_tensor_read accepted; else 0. */
int ry_quant_scales(float *out, const ry_tensor *weight, const ry_tensors *set);

/* *has = 1 and *out if the weight has a range, else *has = 0. */
renyi_status ry_quant_input_range(ry_quant_range *out, int *has, const ry_tensor *weight,
                                  const ry_tensors *set, renyi_error *err) RENYI_CHECK;

#endif
