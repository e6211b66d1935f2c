/* cpu.h - which instruction sets this machine has. SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BASE_CPU_H
#define RY_BASE_CPU_H

#include "renyi/renyi.h"

/* Resolve what the caller asked for: AUTO becomes the best level; a level that the machine lacks
 * is RENYI_ERR_UNSUPPORTED. */
renyi_status ry_cpu_choose(renyi_cpu wanted, renyi_cpu *out, renyi_error *err) RENYI_CHECK;

/* Physical cores this process may run on, at least 1. */
unsigned ry_cpu_cores(void);

#endif
