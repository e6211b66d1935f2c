/* rows.h - arithmetic on single rows of floats, the same at every CPU level: what cuts compute with
 * token rows, and rotary positions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ROWS_H
#define RY_ROWS_H

#include <stddef.h>
#include <stdint.h>

void ry_row_scale(float *y, const float *x, float w, size_t n); /* y = w x; exactly x for w = 1 */
void ry_row_add(float *y, const float *x, float w, size_t n);   /* y += w x */
float ry_row_length(const float *x, size_t n);                  /* |x| */
float ry_row_dot(const float *x, const float *y, size_t n);
double ry_row_dot_double(const float *x, const float *y,
                         size_t n);                              /* products and sums in double */
float ry_row_distance(const float *x, const float *y, size_t n); /* |x - y| */
float ry_row_dot_i16(const int16_t *x, const float *y, size_t n);
/* y = x / step, rounded. Returns the step, the smallest for which y fits in 16 bits; x is finite.
 */
float ry_row_to_i16(int16_t *y, const float *x, size_t n);
/* Scales x to |x| = length; a row of zeros stays. */
void ry_row_to_length(float *x, size_t n, double length);

/* Rotary positions: the pairs (i, i + d/2) of a head's d floats are rotated by an angle that grows
 * with the position, more slowly for larger i. */

/* Floats of the angles of one position. */
static inline size_t ry_rope_floats(size_t head) { return head / 2 * 2; }

/* angles: [d/2] cosines, then [d/2] sines of position * theta^(-2i/d). Frequency and angle are
 * rounded to float, as in the code the models were trained with. */
void ry_rope_angles(float *angles, size_t position, size_t head, double theta);

/* x: [n_heads, d], in place. d is even. */
void ry_rope(float *x, size_t n_heads, size_t head, const float *angles);

#endif
