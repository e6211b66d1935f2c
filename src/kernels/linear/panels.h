/* panels.h - the layout of weights of 8 and 4 bits, in memory and in quantized files of language
 * models: a file is mapped and used as it is.
 *
 * A panel holds RY_PANEL outputs. Panels follow each other, so that a product of one row reads all
 * weights front to back. Inside a panel, inputs are grouped by four: the four numbers that one
 * instruction multiplies and adds for an output are adjacent, then come the other outputs. Outputs
 * after n_out and inputs after n_in are zeros.
 *
 *   int8   [depth / 4, 16, 4] numbers; depth = n_in rounded up to 4
 *   int4   [depth / 64] blocks of 544 bytes; depth = n_in rounded up to 64. A block is two groups
 *          of 32 inputs: their steps [2, 16] bytes, then their numbers [2, 8, 8, 4] bytes. The
 *          lower half of a byte belongs to output j, the upper half to output j + 8 (quant.h)
 *
 * The scale of every output (and for int8 its sum, quant.h) is stored separately.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PANELS_H
#define RY_PANELS_H

#include "kernels/linear/linear.h"

#include <stdint.h>

enum {
    RY_PANEL = 16,      /* outputs */
    RY_INT4_BLOCK = 64, /* inputs of a block */
    RY_INT4_STEPS = 32, /* bytes of steps at its beginning */
    RY_INT4_BYTES = 544 /* of a block */
};

static inline size_t ry_panels_of(size_t n_out) { return (n_out + RY_PANEL - 1) / RY_PANEL; }
static inline size_t ry_int8_depth(size_t n_in) { return (n_in + 3) / 4 * 4; }
static inline size_t ry_int4_depth(size_t n_in)
{
    return (n_in + RY_INT4_BLOCK - 1) / RY_INT4_BLOCK * RY_INT4_BLOCK;
}

/* Bytes of a panel of INT8 or INT4. */
size_t ry_panel_bytes(renyi_dtype dtype, size_t n_in);

/* Offset of the number of output `lane` and input k in a panel of int8. */
static inline size_t ry_int8_place(size_t lane, size_t k)
{
    return k / 4 * RY_PANEL * 4 + lane * 4 + k % 4;
}

/* Offsets in a panel of int4: the step of output `lane` and group g; the byte with input k. */
static inline size_t ry_int4_step_place(size_t lane, size_t g)
{
    return g / 2 * RY_INT4_BYTES + g % 2 * RY_PANEL + lane;
}
static inline size_t ry_int4_place(size_t lane, size_t k)
{
    return k / RY_INT4_BLOCK * RY_INT4_BYTES + RY_INT4_STEPS + k % RY_INT4_BLOCK / 4 * 32 +
           lane % 8 * 4 + k % 4;
}

/* Packs rows [count <= RY_PANEL, n_in] into a panel with the scale, and for int8 the sum, of each
 * output; all RY_PANEL of them are written. Every CPU level can compute with these numbers.
 * scratch: [n_in + 64] */
typedef struct ry_panel {
    void *bytes;
    float scale[RY_PANEL], sum[RY_PANEL];
} ry_panel;
void ry_panel_make(ry_panel *out, renyi_dtype dtype, const float *rows, size_t count, size_t n_in,
                   float *scratch);

#endif
