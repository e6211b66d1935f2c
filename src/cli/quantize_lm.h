/* quantize_lm.h - renyi quantize --lm: language models in 8 or 4 bits.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLI_QUANTIZE_LM_H
#define RENYI_CLI_QUANTIZE_LM_H

/* bits: "int8" or "int4". Returns the exit code. */
int quantize_lm(const char *model, const char *out, const char *bits, int json);

#endif
