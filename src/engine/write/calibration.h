/* calibration.h - what src/eval needs of a calibration.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CALIBRATION_H
#define RY_CALIBRATION_H

#include "renyi/quantize.h"

const renyi_model *ry_calibration_model(const renyi_calibration *c);
uint32_t ry_calibration_batch(const renyi_calibration *c);
uint32_t ry_calibration_threads(const renyi_calibration *c);

/* Of a model of so many blocks and this width? */
int ry_calibration_fits(const renyi_calibration *c, uint32_t n_blocks, uint32_t dim);

#endif
