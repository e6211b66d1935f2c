/* json_out.h - building and printing JSON results.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_JSON_OUT_H
#define RENYI_JSON_OUT_H

#include "renyi/renyi.h"
#include <jansson.h>

/* Text of unknown origin: bytes that are not UTF-8 become U+FFFD. NULL gives null. */
json_t *json_text(const char *text);
/* A number; NaN and infinities, which JSON lacks, give null. */
json_t *json_number(double value);
json_t *json_preprocess(const renyi_preprocess *spec, const char *source);
/* Print and release; the program ends when there is no memory for it. */
void json_print(json_t *document);

const char *crop_mode_name(renyi_crop_mode mode);
const char *interpolation_name(renyi_interpolation interpolation);

#endif
