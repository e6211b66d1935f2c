/* fuzz_runs.c - any bytes as the log of a training run: what is before and after the first NUL are
 * two stages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "train/files/run_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const renyi_run_log *r)
{
    renyi_run_info info;
    renyi_run_log_get_info(r, &info);
    if (info.n_steps + info.n_epochs < 1 || !isfinite(info.epochs) || !isfinite(info.steps))
        abort();
    for (int what = 0; what <= RENYI_RUN_EMA_TOP1; what++)
        for (int axis = 0; axis < 3; axis++) {
            renyi_run_curve c;
            if (renyi_run_log_get_curve(&c, r, (renyi_run_quantity)what, (renyi_run_axis)axis, 3, 7,
                                        NULL))
                abort();
            if (c.n > 7) abort();
            for (size_t i = 0; i < c.n; i++)
                if (!isfinite(c.x[i]) || !isfinite(c.y[i]) ||
                    (i && c.x[i] < c.x[i - 1] * (1 - 1e-9)))
                    abort();
            renyi_run_curve_free(&c);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size ? memchr(data, 0, size) : NULL;
    const size_t first = cut ? (size_t)(cut - data) : size;
    renyi_error err = {0};
    renyi_run_log *r = ry_calloc(NULL, 1, sizeof *r);
    if (!r) return 0;
    r->max_lines = 1000;
    renyi_status st = ry_run_log_read(r, "a.jsonl", (const char *)data, first, &err);
    if (!st && cut)
        st = ry_run_log_read(r, "b.jsonl", (const char *)cut + 1, size - first - 1, &err);
    if (st && !err.message[0]) abort();
    if (!st) check(r);
    renyi_run_log_free(r);
    return 0;
}
