/* update_avx2.c -
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/update_template.h"

void ry_update_init_avx2(ry_update_kernels *k) { fill(k); }
