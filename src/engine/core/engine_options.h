/* engine_options.h - the caller's renyi_options, complete.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ENGINE_OPTIONS_H
#define RY_ENGINE_OPTIONS_H

#include "renyi/renyi.h"

/* A complete copy of what the caller gave, shorter structs of older callers filled up with zeros;
 * NULL = all defaults. */
renyi_status ry_options_read(renyi_options *out, const renyi_options *opt,
                             renyi_error *err) RENYI_CHECK;

/* The same for any struct that begins with its struct_size: out [size] bytes; `what` names it. */
renyi_status ry_struct_read(void *out, size_t size, const void *given, const char *what,
                            renyi_error *err) RENYI_CHECK;

#endif
