/* peak.h - the matrix-product speed of this machine, as a yardstick.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PEAK_H
#define RY_PEAK_H

#include "renyi/renyi.h"

/* Best GFLOP/s of oneDNN's own threaded f32 product on the four shapes of a ViT-B block at batch 8.
 */
renyi_status ry_measure_peak(unsigned n_threads, double *gflops, renyi_error *err) RENYI_CHECK;

#endif
