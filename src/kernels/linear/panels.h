/* panels.h - weights of 8 and 4 bits as our products read them, and as quantised files of language
 * models keep them: a file is mapped and run without a pass over its bytes.
 *
 * A panel is RY_PANEL outputs in one stretch of memory; panels follow one another, so that a
 * product of one row reads all weights front to back. Inside, inputs go by fours: what an
 * instruction multiplies and adds up for one output lies together, eight outputs beside each other.
 * Outputs beyond n_out and inputs beyond n_in are zeros.
 *
 *   int8   [depth / 4, 16, 4] numbers; depth = n_in rounded up to 4
 *   int4   [depth / 64] blocks of 544 bytes; depth = n_in rounded up to 64. A block is two groups
 *          of 32 inputs: their steps [2, 16] bytes, then their numbers [2, 8, 8, 4] bytes, of which
 *          the lower half belongs to output j and the upper half to output j + 8 (quant4.h)
 *
 * The scale of every output (and of int8 its sum, quant.h) stands apart.
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

/* Where the number of output `lane` and input k lies in a panel of int8. */
static inline size_t ry_int8_place(size_t lane, size_t k)
{
    return k / 4 * RY_PANEL * 4 + lane * 4 + k % 4;
}

/* The step of output `lane` and group g, and the byte that holds input k, in a panel of int4. */
static inline size_t ry_int4_step_place(size_t lane, size_t g)
{
    return g / 2 * RY_INT4_BYTES + g % 2 * RY_PANEL + lane;
}
static inline size_t ry_int4_place(size_t lane, size_t k)
{
    return k / RY_INT4_BLOCK * RY_INT4_BYTES + RY_INT4_STEPS + k % RY_INT4_BLOCK / 4 * 32 +
           lane % 8 * 4 + k % 4;
}

/* A panel of rows [count <= RY_PANEL, n_in] with the scale, and of int8 the sum, of each; all
 * RY_PANEL of them are written. The numbers are such that every CPU level computes with the same.
 * scratch: [n_in + 64]. */
typedef struct ry_panel {
    void *bytes;
    float scale[RY_PANEL], sum[RY_PANEL];
} ry_panel;
void ry_panel_make(ry_panel *out, renyi_dtype dtype, const float *rows, size_t count, size_t n_in,
                   float *scratch);

#endif
