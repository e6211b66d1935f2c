/* cpu.h - what this process may use: instruction sets, cores, threads; a monotonic clock.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CPU_H
#define RY_CPU_H

#include "renyi/renyi.h"

/* Kernels with vectors of 8 floats: AVX2 or NEON. */
#define RY_CPU_VEC8 RENYI_CPU_AVX2

/* AUTO becomes the best level; a level that the machine does not have is RENYI_ERR_UNSUPPORTED. */
renyi_status ry_cpu_choose(renyi_cpu wanted, renyi_cpu *out, renyi_error *err) RENYI_CHECK;

/* Extensions of AVX-512 and of NEON: dot products of bytes (VNNI, dotprod), small matrices of bytes
 * (i8mm), products of bf16 (AVX512_BF16, bf16). All sum in 32 bits. */
int ry_cpu_has_vnni(void);
int ry_cpu_has_dotprod(void);
int ry_cpu_has_i8mm(void);
int ry_cpu_has_bf16(void);

/* Physical cores this process may use, at least 1: those its affinity allows, and no more than the
 * CPU time that its control group gets. */
unsigned ry_cpu_cores(void);

/* Threads of a model where the caller says no number: what OpenMP was told (OMP_NUM_THREADS), else
 * the share of ry_cpu_cores that each of n_sharing processes gets. */
unsigned ry_cpu_threads(unsigned n_sharing);

/* CPUs that cgroup v2 gives to this process and to the groups above it (cpu.max); 0 = no limit.
 * root: "", or a folder with proc/ and sys/ for tests. */
double ry_cgroup_cpus(const char *root);

/* Seconds since some fixed time in the past. */
double ry_clock(void);

#endif
