/* rows.h - the small arithmetic of whole token rows that cuts are made of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ROWS_H
#define RY_ROWS_H

#include <stddef.h>
#include <stdint.h>

void ry_row_scale(float *y, const float *x, float w, size_t n); /* y = w x; exactly x for w = 1 */
void ry_row_add(float *y, const float *x, float w, size_t n);   /* y += w x */
float ry_row_length(const float *x, size_t n);                  /* |x| */
float ry_row_dot(const float *x, const float *y, size_t n);
float ry_row_distance(const float *x, const float *y, size_t n); /* |x - y| */
float ry_row_dot_i16(const int16_t *x, const float *y, size_t n);
/* y = x in steps of what is returned, the smallest that 16 bits allow; x is finite. */
float ry_row_to_i16(int16_t *y, const float *x, size_t n);
void ry_row_to_length(float *x, size_t n, double length); /* zeros stay zeros */

#endif
