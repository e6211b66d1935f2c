/* templates.h - reading lists of sentences; the doors are in renyi/collections.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEMPLATES_H
#define RY_TEMPLATES_H

#include "renyi/eval.h"

/* None yet; for those who have the bytes already. */
renyi_status ry_templates_new(renyi_templates **out, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
renyi_status ry_templates_read(renyi_templates *t, const char *file, const void *bytes, size_t size,
                               renyi_error *err) RENYI_CHECK;

#endif
