/* grid.c - bodies of the grids of sweep.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/sweep/grid.h"

#include "base/alloc.h"
#include "base/mapped_file.h"
#include "base/status.h"

#include <string.h>

enum { MAX_FILE = 1 << 20 };

/* What docs/PRUNING.md found worth a try, from gentle to bold: our own rule first, then what the
 * paper plugs its metric into, and merging. */
const char *renyi_grid_default_spec(void)
{
    return "policy none\n"
           "policy mosaic keep=0.5|0.6|0.7|0.8|0.9 layers=0,3,6|3,6,9\n"
           "policy mosaic p=8|16 layers=0-5\n"
           "policy evit keep=0.5|0.7|0.9 layers=3,6,9 metric=cls|correct n=2 c=0.8 fuse\n"
           "policy evit keep=0.7|0.9 layers=0,3,6 metric=col n=4 fuse\n"
           "policy naive p=8|16 layers=0-5 metric=col n=4\n"
           "policy tome r=5|9|13\n";
}

static renyi_status fill(renyi_grid *g, const renyi_grid_options *o, renyi_error *err)
{
    ry_mapped_file file = {0};
    if ((o->n_models && !o->models) || (o->n_sizes && !o->sizes) ||
        (o->n_policies && !o->policies) || (o->n_lines && !o->lines))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_grid_options: a list is NULL");
    if (o->file)
        RY_TRY(ry_mapped_file_open(&file, o->file, o->max_file_bytes ? o->max_file_bytes : MAX_FILE,
                                   err));
    const renyi_status st = ry_grid_read(g, o, o->file, file.data, file.size, err);
    ry_mapped_file_close(&file);
    return st;
}

renyi_status renyi_grid_new(renyi_grid **out, const renyi_grid_options *opt, renyi_error *err)
{
    renyi_grid_options o = {0};
    if (!out || !opt) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_grid_new: NULL argument");
    *out = NULL;
    if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_grid_options: struct_size %u, this library knows %zu",
                       opt->struct_size, sizeof o);
    memcpy(&o, opt, opt->struct_size);
    renyi_grid *g = ry_calloc(&o.allocator, 1, sizeof *g);
    if (!g) return ry_fail_nomem(err, sizeof *g);
    g->al = o.allocator;
    g->pool.al = &g->al;
    const renyi_status st = fill(g, &o, err);
    if (st)
        renyi_grid_free(g);
    else
        *out = g;
    return st;
}

void renyi_grid_free(renyi_grid *g)
{
    if (!g) return;
    const renyi_allocator al = g->al;
    ry_pool_free(&g->pool);
    ry_free(&al, g);
}

size_t renyi_grid_count(const renyi_grid *g)
{
    return (size_t)g->n_models * g->n_sizes * g->n_policies;
}

void renyi_grid_get(const renyi_grid *g, size_t i, renyi_grid_point *out)
{
    *out = (renyi_grid_point){NULL, 0, NULL};
    if (i >= renyi_grid_count(g)) return;
    const size_t row = i / g->n_policies;
    *out = (renyi_grid_point){g->models[row / g->n_sizes], g->sizes[row % g->n_sizes],
                              g->policies[i % g->n_policies]};
}

void renyi_grid_get_info(const renyi_grid *g, renyi_grid_info *out)
{
    *out =
        (renyi_grid_info){g->n_models, g->n_sizes, g->n_policies, g->models, g->sizes, g->policies};
}
