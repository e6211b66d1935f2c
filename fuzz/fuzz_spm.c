/* fuzz_spm.c - any bytes as a SentencePiece model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "spm_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ry_spm *s;
    renyi_error err = {0};
    const renyi_status st = ry_spm_read_model(&s, data, size, "fuzz", NULL, NULL, &err);
    fuzz_spm(st, s, &err);
    return 0;
}
