/* update.c - the update without special instructions, and the choice among the levels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/update_template.h"

void ry_update_kernels_init(ry_update_kernels *k, renyi_cpu level)
{
    fill(k);
    if (level >= RENYI_CPU_AVX2) ry_update_init_avx2(k);
    if (level >= RENYI_CPU_AVX512) ry_update_init_avx512(k);
}
