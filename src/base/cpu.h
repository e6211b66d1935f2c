/* cpu.h - what this machine has: instruction sets, physical cores, a monotonic clock.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CPU_H
#define RY_CPU_H

#include "renyi/renyi.h"

/* AUTO becomes the best level; a level that the machine does not have is RENYI_ERR_UNSUPPORTED. */
renyi_status ry_cpu_choose(renyi_cpu wanted, renyi_cpu *out, renyi_error *err) RENYI_CHECK;

/* AVX-512 extensions: dot products of bytes and of bf16, summed in 32 bits. */
int ry_cpu_has_vnni(void);
int ry_cpu_has_bf16(void);

/* Physical cores this process may run on, at least 1. */
unsigned ry_cpu_cores(void);

/* Seconds since some fixed time in the past. */
double ry_clock(void);

#endif
