/* batch_loader_check.h - are the options of a loader and its data fit for each other?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BATCH_LOADER_CHECK_H
#define RY_BATCH_LOADER_CHECK_H

#include "train/data/batch_loader.h"

/* Fill in what zeros mean, then check all. */
renyi_status ry_loader_check(ry_loader_options *o, const renyi_dataset *d,
                             renyi_error *err) RENYI_CHECK;

#endif
