/* mosaic.c - our own rule: thin the grid in block 0, where coverage counts most, and later merge
 * what is removed around tokens that are important and unlike each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/mosaic.h"

#include "base/arena.h"

static uint32_t patches_in(const ry_pruner *p, uint32_t cut)
{
    return p->tokens_in[cut] - p->shape.n_prefix;
}

/* Only the first cut can see the full grid: every cut removes something. */
int ry_mosaic_thins(const ry_pruner *p, uint32_t cut)
{
    return p->policy.cuts[cut].layer == 0 &&
           patches_in(p, cut) == (uint64_t)p->shape.grid * p->shape.grid;
}

static void needs(const ry_pruner *p, uint32_t cut, ry_block_needs *needs)
{
    const double P = patches_in(p, cut);

    if (ry_mosaic_thins(p, cut)) {
        needs->what = RY_NEED_COLUMNS;
        needs->columns = (ry_column_spec){.kind = RY_COLUMN_POWER, .order = 4.0};
        needs->drops = 1;
        return;
    }
    needs->what = RY_NEED_TOKENS;
    needs->sizes = needs->mean_length = 1;
    needs->macs = 0.5 * P * P * p->dim; /* the Gram matrix, one half by symmetry */
    if (p->shape.n_prefix) {
        needs->what |= RY_NEED_CLASS_ROW;
    } else { /* attention received, from every patch that a row stands for */
        needs->what |= RY_NEED_COLUMNS;
        needs->columns = (ry_column_spec){.kind = RY_COLUMN_POWER, .order = 1.0, .row_weights = 1};
    }
}

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    if (ry_mosaic_thins(p, cut)) return phase == 0;
    return ry_mosaic_merge_tiles(p, n_tokens - p->shape.n_prefix, phase);
}

/* Floats from one row of a matrix to the next: whole cache lines, and not a multiple of 2048 bytes,
 * which would put one column of all rows into the same few lines of the cache. */
static size_t padded(size_t width)
{
    const size_t row = (width + 15) / 16 * 16;
    return row % 512 == 0 ? row + 16 : row;
}

ry_mosaic ry_mosaic_layout(const ry_pruner *p, uint32_t cut, void *base, size_t *bytes)
{
    const size_t P = patches_in(p, cut), R = p->kernels.gram_rows;
    ry_arena a = {.base = base, .cap = base ? p->scratch_each : 0};
    ry_mosaic m = {.n = (uint32_t)P};

    m.value = RY_TAKE(&a, float, P);
    m.keys = RY_TAKE(&a, uint64_t, 2 * P);
    m.order = RY_TAKE(&a, uint32_t, P);
    if (ry_mosaic_thins(p, cut)) {
        m.squares = RY_TAKE(&a, uint32_t, P);
        m.stays = RY_TAKE(&a, uint8_t, P);
    } else {
        m.z_row = padded(p->dim);
        m.gram_row = padded(P);
        m.pack_each = (ry_gram_scratch(P, p->dim, R) + 15) / 16 * 16;
        m.rows = RY_TAKE(&a, uint32_t, P);
        m.place = RY_TAKE(&a, uint32_t, P);
        m.kept = RY_TAKE(&a, uint32_t, P);
        m.gone = RY_TAKE(&a, uint32_t, P);
        m.closeness = RY_TAKE(&a, float, P);
        m.overlap = RY_TAKE(&a, float, P);
        m.sizes = RY_TAKE(&a, float, P + p->shape.n_prefix);
        m.mean = RY_TAKE(&a, float, p->dim);
        m.z = RY_TAKE(&a, float, P *m.z_row);
        m.gram = RY_TAKE(&a, float, P *m.gram_row);
        m.pack = RY_TAKE(&a, float, ry_gram_blocks(P, R) * m.pack_each);
    }
    *bytes = a.overflow ? SIZE_MAX : a.used;
    return m;
}

/* Cuts follow one another, so they share: the largest is enough. */
static size_t scratch(const ry_pruner *p)
{
    size_t most = 0;
    for (uint32_t i = 0; i < p->policy.n_cuts; i++) {
        size_t bytes;
        ry_mosaic_layout(p, i, NULL, &bytes);
        if (bytes > most) most = bytes;
    }
    return most;
}

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *view, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    size_t bytes;
    const ry_mosaic m = ry_mosaic_layout(p, cut, ry_pruner_scratch(p, view->image), &bytes);

    if (ry_mosaic_thins(p, cut))
        ry_mosaic_thin(p, &m, view, out);
    else
        ry_mosaic_merge(p, &m, view, out, phase, tile);
}

const ry_rule_body ry_rule_mosaic = {needs, tiles, work, scratch};
