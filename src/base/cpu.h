/* cpu.h - which instruction sets this machine has.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CPU_H
#define RY_CPU_H

#include "renyi/renyi.h"

/* Resolve what the caller asked for: AUTO becomes the best level; a level that the machine lacks
 * is RENYI_ERR_UNSUPPORTED. */
renyi_status ry_cpu_choose(renyi_cpu wanted, renyi_cpu *out, renyi_error *err) RENYI_CHECK;

/* Instructions beyond the levels: products of bytes, and of bf16, summed in 32 bits. Both at
 * AVX-512's width. */
int ry_cpu_has_vnni(void);
int ry_cpu_has_bf16(void);

/* Physical cores this process may run on, at least 1. */
unsigned ry_cpu_cores(void);

#endif
