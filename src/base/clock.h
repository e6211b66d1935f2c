/* clock.h - monotonic seconds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CLOCK_H
#define RY_CLOCK_H

double ry_clock(void);

#endif
