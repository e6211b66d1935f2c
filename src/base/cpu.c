/* cpu.c - what this machine has: instruction sets, physical cores, a monotonic clock.
 *
 * A CPU level counts only if the operating system saves its registers too (CPUID and XGETBV).
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/cpu.h"

#include "base/status.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

renyi_cpu renyi_cpu_detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx2 && avx512) return RENYI_CPU_AVX512;
    if (avx2) return RENYI_CPU_AVX2;
#endif
    return RENYI_CPU_SCALAR;
}

int ry_cpu_has_vnni(void)
{
#if defined(__x86_64__)
    return renyi_cpu_detect() == RENYI_CPU_AVX512 && __builtin_cpu_supports("avx512vnni");
#else
    return 0;
#endif
}

int ry_cpu_has_bf16(void)
{
#if defined(__x86_64__)
    return renyi_cpu_detect() == RENYI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
    return 0;
#endif
}

const char *renyi_cpu_name(renyi_cpu level)
{
    switch (level) {
    case RENYI_CPU_AUTO: return "auto";
    case RENYI_CPU_SCALAR: return "scalar";
    case RENYI_CPU_AVX2: return "avx2";
    case RENYI_CPU_AVX512: return "avx512";
    }
    return "unknown";
}

renyi_status ry_cpu_choose(renyi_cpu wanted, renyi_cpu *out, renyi_error *err)
{
    const renyi_cpu best = renyi_cpu_detect();
    if ((unsigned)wanted > RENYI_CPU_AVX512)
        return ry_fail(err, RENYI_ERR_ARG, -1, "CPU level %d is not known", (int)wanted);
    if (wanted > best)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "this machine has %s, not %s",
                       renyi_cpu_name(best), renyi_cpu_name(wanted));
    *out = wanted == RENYI_CPU_AUTO ? best : wanted;
    return RENYI_OK;
}

/* One hyper-thread per core counts; without the sysfs entry every CPU is a core. */
static int is_first_sibling(int cpu)
{
    char path[96];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (!f) return 1;
    if (fscanf(f, "%d", &first) != 1) first = cpu;
    fclose(f);
    return first == cpu;
}

unsigned ry_cpu_cores(void)
{
    cpu_set_t set;
    unsigned allowed = 0, cores = 0;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set)) continue;
        allowed++;
        if (is_first_sibling(cpu)) cores++;
    }
    if (cores) return cores;
    return allowed ? allowed : 1;
}

double ry_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
