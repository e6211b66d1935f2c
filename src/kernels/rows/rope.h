/* rope.h - rotary positions: the pairs (i, i + d/2) of a head's d floats are turned by an angle
 * that grows with the position, more slowly for larger i.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ROPE_H
#define RY_ROPE_H

#include <stddef.h>

/* Floats of the angles of one position. */
static inline size_t ry_rope_floats(size_t head) { return head / 2 * 2; }

/* angles: [d/2] cosines, then [d/2] sines of position * theta^(-2i/d). Frequency and angle are
 * rounded to floats, as the models were trained. */
void ry_rope_angles(float *angles, size_t position, size_t head, double theta);

/* x: [n_heads, d], in place. d is even. */
void ry_rope(float *x, size_t n_heads, size_t head, const float *angles);

#endif
