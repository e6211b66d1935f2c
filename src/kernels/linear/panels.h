/* panels.h - the layout of weights of 8 and 4 bits, in memory and (int8, int4) in quantized files
 * of language models: a file is mapped and used as it is.
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
 *   Q4_0   the same with steps [2, 16] of 16 bits, floats as in the file: blocks of 576 bytes
 *   Q8_0   the same with steps of 16 bits and numbers [2, 8, 16, 4] bytes: blocks of 1088 bytes
 *
 * The scale of every output of int8 and int4 (and for int8 its sum, quant.h) is stored separately.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PANELS_H
#define RY_PANELS_H

#include "base/half.h"
#include "kernels/linear/quant.h"

enum {
    RY_PANEL = 16,     /* outputs */
    RY_INT4_BLOCK = 64 /* inputs of a block: two groups */
};

/* How weights in groups of 32 inputs are kept. */
typedef struct ry_groups {
    unsigned bits;       /* of a number: 4 (0 .. 15, less 8) or 8 (signed) */
    unsigned step_bytes; /* of a step: 1 (0 .. 255) or 2 (a half float) */
} ry_groups;

static inline ry_groups ry_groups_of(ry_linear_blocks blocks)
{
    return (ry_groups){blocks == RY_BLOCKS_Q8 ? 8 : 4, blocks ? 2 : 1};
}
/* Bytes of the steps at the beginning of a block, and of a block. */
static inline size_t ry_groups_steps(ry_groups g) { return 2 * (size_t)RY_PANEL * g.step_bytes; }
static inline size_t ry_groups_block(ry_groups g)
{
    return ry_groups_steps(g) + (size_t)RY_INT4_BLOCK * RY_PANEL / 8 * g.bits;
}

static inline size_t ry_panels_of(size_t n_out) { return (n_out + RY_PANEL - 1) / RY_PANEL; }
static inline size_t ry_int8_depth(size_t n_in) { return (n_in + 3) / 4 * 4; }
static inline size_t ry_int4_depth(size_t n_in)
{
    return (n_in + RY_INT4_BLOCK - 1) / RY_INT4_BLOCK * RY_INT4_BLOCK;
}

/* Bytes of a panel of weights in groups; of INT8 or INT4. */
static inline size_t ry_groups_panel(ry_groups g, size_t n_in)
{
    return ry_int4_depth(n_in) / RY_INT4_BLOCK * ry_groups_block(g);
}
size_t ry_panel_bytes(renyi_dtype dtype, size_t n_in);

/* Offset of the number of output `lane` and input k in a panel of int8. */
static inline size_t ry_int8_place(size_t lane, size_t k)
{
    return k / 4 * RY_PANEL * 4 + lane * 4 + k % 4;
}

/* Offsets in a panel of groups: the step of output `lane` and group i; the byte with input k. */
static inline size_t ry_group_step_place(ry_groups g, size_t lane, size_t i)
{
    return i / 2 * ry_groups_block(g) + (i % 2 * RY_PANEL + lane) * g.step_bytes;
}
static inline size_t ry_group_place(ry_groups g, size_t lane, size_t k)
{
    const size_t lanes =
        g.bits == 4 ? RY_PANEL / 2 : RY_PANEL; /* outputs with a byte of their own */
    return k / RY_INT4_BLOCK * ry_groups_block(g) + ry_groups_steps(g) +
           (k % RY_INT4_BLOCK / 4 * lanes + lane % lanes) * 4 + k % 4;
}

/* The number of output `lane` and input k, between -8 and 7 or -128 and 127, and the step of its
 * group i. The specification. */
static inline int ry_group_number(ry_groups g, const uint8_t *panel, size_t lane, size_t k)
{
    const uint8_t byte = panel[ry_group_place(g, lane, k)];
    if (g.bits == 8) return (int8_t)byte;
    return (lane < RY_PANEL / 2 ? byte & 15 : byte >> 4) - RY_INT4_ZERO;
}
static inline float ry_group_step(ry_groups g, const uint8_t *panel, size_t lane, size_t i)
{
    const uint8_t *at = panel + ry_group_step_place(g, lane, i);
    if (g.step_bytes == 1) return (float)*at;
    return ry_half_to_float((uint16_t)(at[0] | (unsigned)at[1] << 8));
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
