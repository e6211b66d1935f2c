/* options.h - renyi_options as a caller gave them. SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ENGINE_OPTIONS_H
#define RY_ENGINE_OPTIONS_H

#include "renyi/renyi.h"

/* A complete copy, shorter structs of older callers filled up with zeros; NULL = all defaults. */
renyi_status ry_options_read(renyi_options *out, const renyi_options *opt,
                             renyi_error *err) RENYI_CHECK;

#endif
