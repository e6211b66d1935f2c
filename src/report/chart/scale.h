/* scale.h - from numbers to places on an axis, and the round numbers to write beside it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SCALE_H
#define RY_SCALE_H

enum { RY_MAX_TICKS = 16 };

typedef struct ry_scale {
    double low, high; /* the numbers at both ends; low < high, finite */
    double from, to;  /* their places */
    int is_log;
    int n_ticks;
    double ticks[RY_MAX_TICKS];
    double step; /* between ticks of a linear axis */
} ry_scale;

/* An axis that shows least..most with a margin. At most `most_ticks` (2 to RY_MAX_TICKS) round
 * numbers on it. A range that is empty, reversed or not finite still gives an axis. Logarithmic
 * if may_be_log and most is above 6 times least; else linear. */
ry_scale ry_scale_of(double least, double most, int may_be_log, int most_ticks);

int ry_scale_decimals(const ry_scale *s, int tick); /* to write a tick with */

/* The place of v, which must be finite; outside the axis at its end. */
double ry_scale_at(const ry_scale *s, double v);

#endif
