/* update_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/update_template.h"

void ry_update_init_avx512(ry_update_kernels *k) { fill(k); }
