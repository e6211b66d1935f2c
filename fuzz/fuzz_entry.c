/* fuzz_entry.c - the entry point of one fuzz program; FUZZ_TARGET names the target it runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_targets.h"

fuzz_target LLVMFuzzerTestOneInput;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return FUZZ_TARGET(data, size); }
