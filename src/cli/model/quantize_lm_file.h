/* quantize_lm_file.h - renyi quantize --lm: language models in 8 or 4 bits.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_QUANTIZE_LM_FILE_H
#define RENYI_QUANTIZE_LM_FILE_H

/* bits: "int8" or "int4". Returns the exit code. */
int quantize_lm(const char *model, const char *out, const char *bits, int json);

#endif
