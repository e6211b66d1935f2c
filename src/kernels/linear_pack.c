/* linear_pack.c - weights on their way into a linear, a panel at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear_body.h"

enum { SCRATCH = 64 }; /* floats beyond n_in: ry_panel_packer */

renyi_status ry_linear_take(ry_linear *l, size_t bytes, const renyi_allocator *al, renyi_error *err)
{
    l->packed = ry_calloc(al, bytes, 1);
    l->packed_bytes = bytes;
    return l->packed ? RENYI_OK : ry_fail_nomem(err, bytes);
}

renyi_status ry_linear_each_panel(ry_linear *l, const ry_linear_spec *spec, size_t panel,
                                  ry_panel_packer pack, const renyi_allocator *al, renyi_error *err)
{
    const size_t n = l->n_in, room = spec->w ? 0 : panel * n;
    float *scratch = ry_alloc(al, room + n + SCRATCH, sizeof *scratch);
    renyi_status st = scratch ? RENYI_OK : ry_fail_nomem(err, (room + n + SCRATCH) * sizeof(float));
    for (size_t j = 0; !st && j < l->n_out; j += panel) {
        const size_t count = l->n_out - j < panel ? l->n_out - j : panel;
        const float *rows = spec->w ? spec->w + j * n : scratch;
        if (!spec->w) st = spec->reader->rows(spec->reader->user, j, count, scratch, err);
        if (!st) pack(l, spec, j, count, rows, scratch + room);
    }
    ry_free(al, scratch);
    return st;
}
