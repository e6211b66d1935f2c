/* cpu.c - what this process may use: instruction sets, cores, threads; a monotonic clock.
 *
 * A CPU level counts only if the operating system saves its registers too (CPUID and XGETBV).
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/cpu.h"

#include "base/status.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* ---- instruction sets ------------------------------------------------------------------------ */

#if defined(RY_HAS_ONEDNN)
const char *renyi_build_options(void) { return "oneDNN, " RY_PNG_NAME; }
#elif defined(__aarch64__)
const char *renyi_build_options(void) { return RY_PNG_NAME; }
#else
const char *renyi_build_options(void)
{
    return RY_PNG_NAME "; no oneDNN: no bf16, and int8 as with AVX2";
}
#endif

renyi_cpu renyi_cpu_detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx2 && avx512) return RENYI_CPU_AVX512;
    if (avx2) return RENYI_CPU_AVX2;
#elif defined(__aarch64__) /* every ARM64 has NEON; what came later is asked for below */
    return RENYI_CPU_NEON;
#endif
    return RENYI_CPU_SCALAR;
}

#if defined(__aarch64__) && defined(__APPLE__)
static int arm_has(const char *feature) /* "DotProd" */
{
    char name[64];
    int value = 0;
    size_t size = sizeof value;
    snprintf(name, sizeof name, "hw.optional.arm.FEAT_%s", feature);
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value;
}
int ry_cpu_has_dotprod(void) { return arm_has("DotProd"); }
int ry_cpu_has_i8mm(void) { return arm_has("I8MM"); }
int ry_cpu_has_bf16(void) { return arm_has("BF16"); }
#elif defined(__aarch64__)
int ry_cpu_has_dotprod(void) { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
int ry_cpu_has_i8mm(void) { return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }
int ry_cpu_has_bf16(void) { return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0; }
#else
int ry_cpu_has_dotprod(void) { return 0; }
int ry_cpu_has_i8mm(void) { return 0; }
int ry_cpu_has_bf16(void)
{
    return renyi_cpu_detect() == RENYI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16");
}
#endif

int ry_cpu_has_vnni(void)
{
#if defined(__x86_64__)
    return renyi_cpu_detect() == RENYI_CPU_AVX512 && __builtin_cpu_supports("avx512vnni");
#else
    return 0;
#endif
}

const char *renyi_cpu_name(renyi_cpu level)
{
    switch (level) {
    case RENYI_CPU_AUTO: return "auto";
    case RENYI_CPU_SCALAR: return "scalar";
#if defined(__aarch64__)
    case RENYI_CPU_NEON: return "neon";
#else
    case RENYI_CPU_AVX2: return "avx2";
#endif
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

/* ---- cores and threads ----------------------------------------------------------------------- */

/* The line of `path` that begins with `start`, without it and without its newline; 0 if there is
 * none or it is too long. */
static int read_line_after(char *line, size_t size, const char *path, const char *start)
{
    int found = 0;
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    while (!found && fgets(line, (int)size, f)) {
        const size_t length = strlen(line), n = strlen(start);
        found = length > n && line[length - 1] == '\n' && strncmp(line, start, n) == 0;
        if (found) memmove(line, line + n, length - n), line[length - n - 1] = '\0';
    }
    fclose(f);
    return found;
}

/* "200000 100000" (microseconds per period) is 2 CPUs; "max 100000" or no file is no limit: 0. */
static double read_cpu_max(const char *path)
{
    char line[96], *end;
    if (!read_line_after(line, sizeof line, path, "")) return 0;
    const double quota = strtod(line, &end);
    const double period = *end == ' ' ? strtod(end, NULL) : 0;
    return end != line && quota > 0 && period > 0 ? quota / period : 0;
}

double ry_cgroup_cpus(const char *root)
{
    enum { MAX_PATH = 4096 };
    char group[MAX_PATH], path[2 * MAX_PATH];
    double least = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_line_after(group, sizeof group, path, "0::/")) return 0;
    for (;;) { /* a group and all that contain it */
        snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s/cpu.max", root, group);
        const double cpus = read_cpu_max(path);
        if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
        if (!*group) return least;
        char *slash = strrchr(group, '/');
        *(slash ? slash : group) = '\0';
    }
}

#ifdef __linux__
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

/* Cores that the affinity allows. */
static unsigned allowed_cores(void)
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
#else /* no affinity to ask for */
static unsigned allowed_cores(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}
#endif

unsigned ry_cpu_cores(void)
{
    const unsigned cores = allowed_cores();
    const double limit = ry_cgroup_cpus("");
    if (limit == 0 || limit + 0.5 >= (double)cores) return cores;
    return limit < 1.5 ? 1 : (unsigned)(limit + 0.5);
}

/* OpenMP starts as many threads as the affinity allows CPUs; another number was asked for, by
 * OMP_NUM_THREADS or omp_set_num_threads. */
unsigned ry_cpu_threads(unsigned n_sharing)
{
    const int threads = omp_get_max_threads();
    if (threads != omp_get_num_procs() && threads > 0) return (unsigned)threads;
    const unsigned cores = ry_cpu_cores() / n_sharing;
    return cores ? cores : 1;
}

/* ---- clock ----------------------------------------------------------------------------------- */

double ry_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
