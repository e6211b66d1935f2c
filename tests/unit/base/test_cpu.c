/* test_cpu.c - how many threads a process may use: control groups in a made-up tree, OpenMP.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/test_folder.h"

#include "base/cpu.h"

#include <math.h>
#include <omp.h>

/* One tree: the line of /proc/self/cgroup and up to three cpu.max files. NULL = no such file. */
typedef struct tree {
    const char *group;
    const char *top, *middle, *leaf; /* of /, /pod and /pod/box */
    double cpus;
} tree;

static void put_or_remove(const char *name, const char *text)
{
    if (text)
        put(name, text);
    else
        unlink(at(name));
}

static void test_cgroup(void **state)
{
    static const tree trees[] = {
        {NULL, NULL, NULL, NULL, 0},
        {"0::/\n", NULL, NULL, NULL, 0},
        {"0::/\n", "max 100000\n", NULL, NULL, 0},
        {"0::/\n", "200000 100000\n", NULL, NULL, 2}, /* in a container: its own root */
        {"0::/pod/box\n", NULL, "max 100000\n", "50000 100000\n", 0.5},
        {"0::/pod/box\n", NULL, "150000 100000\n", "400000 100000\n", 1.5}, /* the parent's */
        {"0::/pod/box\n", "100000 100000\n", "150000 100000\n", "max 100000\n", 1},
        {"0::/pod/box\n", NULL, NULL, "300000 100000\n", 3},
        {"12:cpu,cpuacct:/x\n1:name=systemd:/y\n0::/pod\n", NULL, "25000 10000\n", NULL, 2.5},
        {"12:cpu,cpuacct:/x\n", "200000 100000\n", NULL, NULL, 0}, /* version 1 only */
        {"0::/\n", "", NULL, NULL, 0},
        {"0::/\n", "\n", NULL, NULL, 0},
        {"0::/\n", "200000\n", NULL, NULL, 0},
        {"0::/\n", "-1 100000\n", NULL, NULL, 0},
        {"0::/\n", "200000 0\n", NULL, NULL, 0},
        {"0::/\n", "nan 100000\n", NULL, NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        put_or_remove("proc/self/cgroup", trees[i].group);
        put_or_remove("sys/fs/cgroup/cpu.max", trees[i].top);
        put_or_remove("sys/fs/cgroup/pod/cpu.max", trees[i].middle);
        put_or_remove("sys/fs/cgroup/pod/box/cpu.max", trees[i].leaf);
        const double cpus = ry_cgroup_cpus(root);
        if (fabs(cpus - trees[i].cpus) > 1e-9) fail_msg("tree %zu: %g CPUs", i, cpus);
    }
}

/* What OpenMP was told is used; without it the cores. */
static void test_threads(void **state)
{
    (void)state;
    const int before = omp_get_max_threads(), procs = omp_get_num_procs();
    omp_set_num_threads(procs + 3);
    assert_int_equal(ry_cpu_threads(1), procs + 3);
    omp_set_num_threads(procs);
    assert_int_equal(ry_cpu_threads(1), ry_cpu_cores());
    assert_true(ry_cpu_cores() >= 1 && ry_cpu_cores() <= (unsigned)procs);
    omp_set_num_threads(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cgroup),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
