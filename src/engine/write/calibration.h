/* calibration.h - what the rest of the library reads from a calibration.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CALIBRATION_H
#define RY_CALIBRATION_H

#include "renyi/quantize.h"

const renyi_model *ry_calibration_model(const renyi_calibration *c);
uint32_t ry_calibration_batch(const renyi_calibration *c);
uint32_t ry_calibration_threads(const renyi_calibration *c);

/* Was it made with a model of this size? */
int ry_calibration_fits(const renyi_calibration *c, uint32_t n_blocks, uint32_t dim);

#endif
