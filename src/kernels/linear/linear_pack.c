/* linear_pack.c - weights on their way into a linear, a panel at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/linear_backend.h"

#include <omp.h>

enum {
    SCRATCH = 64,     /* floats beyond n_in: ry_panel_packer */
    MAX_THREADS = 16, /* more would wait for the rows */
    PANELS = 8        /* of a batch for each thread: a wait now and then costs little */
};

renyi_status ry_linear_take(ry_linear *l, size_t bytes, const renyi_allocator *al, renyi_error *err)
{
    l->packed = ry_calloc(al, bytes, 1);
    l->packed_bytes = bytes;
    return l->packed ? RENYI_OK : ry_fail_nomem(err, bytes);
}

/* Panels that threads share; their rows were read before, one after the other. */
typedef struct batch {
    const float *rows;  /* of all its outputs */
    size_t first, end;  /* outputs */
    size_t panel, each; /* outputs of a panel; floats of a thread's scratch */
    float *scratch;     /* [threads, each] */
    int threads;
} batch;

static void pack_batch(ry_linear *l, const ry_linear_spec *spec, const batch *b,
                       ry_panel_packer pack)
{
    const int n = (int)((b->end - b->first + b->panel - 1) / b->panel);
#pragma omp parallel for num_threads(b->threads) schedule(dynamic)
    for (int i = 0; i < n; i++) {
        const size_t j = b->first + (size_t)i * b->panel, left = b->end - j;
        pack(l, spec, j, left < b->panel ? left : b->panel, b->rows + (j - b->first) * l->n_in,
             b->scratch + (size_t)omp_get_thread_num() * b->each);
    }
}

renyi_status ry_linear_each_panel(ry_linear *l, const ry_linear_spec *spec, size_t panel,
                                  ry_panel_packer pack, const renyi_allocator *al, renyi_error *err)
{
    const int most = omp_get_max_threads();
    batch b = {.panel = panel, .each = l->n_in + SCRATCH};
    b.threads = most < MAX_THREADS ? most : MAX_THREADS;
    const size_t step = (size_t)b.threads * PANELS * panel, room = spec->w ? 0 : step * l->n_in;
    const size_t floats = room + (size_t)b.threads * b.each;
    float *buffer = ry_alloc(al, floats, sizeof *buffer);
    renyi_status st = buffer ? RENYI_OK : ry_fail_nomem(err, floats * sizeof *buffer);
    b.scratch = buffer ? buffer + room : NULL;
    for (; !st && b.first < l->n_out; b.first = b.end) {
        b.end = l->n_out - b.first < step ? l->n_out : b.first + step;
        b.rows = spec->w ? spec->w + b.first * l->n_in : buffer;
        if (!spec->w)
            st = spec->reader->rows(spec->reader->user, b.first, b.end - b.first, buffer, err);
        if (!st) pack_batch(l, spec, &b, pack);
    }
    ry_free(al, buffer);
    return st;
}
