/* ranks_sum.c - see ranks.h: sums over all ranks that are the same everywhere.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/ranks.h"
#include "base/status.h"

#include <string.h>

/* Element i of what every rank said: all [n_ranks, n]. */
static float sum_floats(const ry_ranks *k, size_t n, size_t i)
{
    double sum = 0;
    for (uint32_t r = 0; r < k->r.n_ranks; r++) {
        float v;
        memcpy(&v, k->all + (r * n + i) * sizeof v, sizeof v);
        sum += (double)v;
    }
    return (float)sum;
}

static double sum_doubles(const ry_ranks *k, size_t n, size_t i)
{
    double sum = 0;
    for (uint32_t r = 0; r < k->r.n_ranks; r++) {
        double v;
        memcpy(&v, k->all + (r * n + i) * sizeof v, sizeof v);
        sum += v;
    }
    return sum;
}

renyi_status ry_ranks_sum(ry_ranks *k, float *values, size_t n, renyi_error *err)
{
    const size_t most = k->chunk / sizeof *values;
    if (k->r.n_ranks == 1) return RENYI_OK;
    if (k->is_broken)
        return ry_fail(err, RENYI_ERR_IO, -1, "the other ranks cannot be reached any more");
    if (k->r.sum) {
        const renyi_status st = k->r.sum(k->r.user, values, n, err);
        k->is_broken = st != RENYI_OK;
        return st;
    }
    for (size_t at = 0; at < n; at += most) {
        const size_t m = n - at < most ? n - at : most;
        memcpy(k->mine, values + at, m * sizeof *values);
        RY_TRY(ry_ranks_gather(k, m * sizeof *values, err));
        for (size_t i = 0; i < m; i++) values[at + i] = sum_floats(k, m, i);
    }
    return RENYI_OK;
}

renyi_status ry_ranks_sum_doubles(ry_ranks *k, double *values, size_t n, renyi_error *err)
{
    const size_t most = k->chunk / sizeof *values;
    if (k->r.n_ranks == 1) return RENYI_OK;
    for (size_t at = 0; at < n; at += most) {
        const size_t m = n - at < most ? n - at : most;
        memcpy(k->mine, values + at, m * sizeof *values);
        RY_TRY(ry_ranks_gather(k, m * sizeof *values, err));
        for (size_t i = 0; i < m; i++) values[at + i] = sum_doubles(k, m, i);
    }
    return RENYI_OK;
}
