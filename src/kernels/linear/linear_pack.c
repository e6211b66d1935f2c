/* linear_pack.c - packs weights of bf16, 8 and 4 bits into panels; reads and packs weights on all
 * threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/linear/linear_backend.h"

#include <assert.h>
#include <string.h>

renyi_status ry_linear_take(ry_linear *l, const ry_linear_spec *spec, size_t bytes,
                            const renyi_allocator *al, renyi_error *err)
{
    const int has_weights = spec->w || spec->reader;
    l->packed = has_weights ? ry_alloc(al, bytes, 1) : ry_calloc(al, bytes, 1);
    l->packed_bytes = bytes;
    return l->packed ? RENYI_OK : ry_fail_nomem(err, bytes);
}

renyi_status ry_linear_take_bias(ry_linear *l, const ry_linear_spec *spec, size_t n_padded,
                                 const renyi_allocator *al, renyi_error *err)
{
    l->bias = ry_calloc(al, n_padded, sizeof(float));
    if (!l->bias) return ry_fail_nomem(err, n_padded * sizeof(float));
    if (spec->bias) memcpy(l->bias, spec->bias, spec->n_out * sizeof(float));
    return RENYI_OK;
}

/* ---- rows shared by threads ------------------------------------------------------------------ */

enum { SCRATCH = 64 }; /* floats beyond n_in: ry_panel_packer */

typedef struct row_job {
    ry_linear *l;
    const ry_linear_spec *spec;
    ry_panel_packer pack;
    size_t step;    /* rows of a task */
    float *whole;   /* [n_out, n_in]: rows are read into it, and not packed; or NULL */
    float *buffers; /* [threads, each]: the rows of a task, then the packer's scratch */
    size_t each;
} row_job;

/* ry_thread_pool_task: reads, then packs some rows. */
static renyi_status run_task(void *user, size_t task, unsigned thread, renyi_error *err)
{
    const row_job *b = user;
    const ry_linear_spec *spec = b->spec;
    const size_t first = task * b->step, n_in = b->l->n_in, left = b->l->n_out - first;
    const size_t count = left < b->step ? left : b->step;
    float *buffer = b->whole ? b->whole + first * n_in : b->buffers + thread * b->each;
    if (!spec->w) RY_TRY(spec->reader->rows(spec->reader->user, first, count, buffer, err));
    if (b->whole) return RENYI_OK;
    float *scratch = buffer + (spec->w ? 0 : b->step * n_in);
    b->pack(b->l, spec, first, count, spec->w ? spec->w + first * n_in : buffer, scratch);
    return RENYI_OK;
}

static renyi_status run_job(row_job *b, renyi_error *err)
{
    const size_t tasks = (b->l->n_out + b->step - 1) / b->step;
    return ry_thread_pool_run(b->spec->pool, tasks, run_task, b, err);
}

renyi_status ry_linear_each_panel(ry_linear *l, const ry_linear_spec *spec, size_t panel,
                                  ry_panel_packer pack, const renyi_allocator *al, renyi_error *err)
{
    const size_t each = (spec->w ? 0 : panel * l->n_in) + l->n_in + SCRATCH;
    const size_t floats = ry_thread_pool_threads(spec->pool) * each;
    row_job b = {.l = l, .spec = spec, .pack = pack, .step = panel, .each = each};
    b.buffers = ry_alloc(al, floats, sizeof *b.buffers);
    if (!b.buffers) return ry_fail_nomem(err, floats * sizeof *b.buffers);
    const renyi_status st = run_job(&b, err);
    ry_free(al, b.buffers);
    return st;
}

renyi_status ry_linear_read_all(ry_linear *l, const ry_linear_spec *spec, float *to,
                                renyi_error *err)
{
    row_job b = {.l = l, .spec = spec, .step = RY_PANEL, .whole = to};
    return run_job(&b, err);
}

/* ---- bf16 ------------------------------------------------------------------------------------ */

/* scratch: a row of bfloat16. Lanes after the last output are zeros. */
static void pack_bf16_rows(ry_linear *l, size_t first, size_t count, size_t width,
                           const float *rows, float *scratch)
{
    uint16_t *half = (uint16_t *)scratch;
    if (count < width) memset((uint16_t *)l->packed + first * l->n_in, 0, 2 * width * l->n_in);
    for (size_t j = first; j < first + count; j++, rows += l->n_in) {
        uint16_t *to = (uint16_t *)l->packed + j / width * width * l->n_in + j % width;
        ry_quant_scalar.to_bf16(half, l->n_in, rows, l->n_in, 1, l->n_in);
        for (size_t k = 0; k < l->n_in; k++) to[k * width] = half[k];
    }
}

#define RY_BF16_PACKER(width)                                                             \
    static void pack_bf16_##width(ry_linear *l, const ry_linear_spec *spec, size_t first, \
                                  size_t count, const float *rows, float *scratch)        \
    {                                                                                     \
        (void)spec;                                                                       \
        pack_bf16_rows(l, first, count, width, rows, scratch);                            \
    }
RY_BF16_PACKER(1)
RY_BF16_PACKER(16)
RY_BF16_PACKER(32)

renyi_status ry_bf16_pack(ry_linear *l, const ry_linear_spec *spec, size_t width,
                          const renyi_allocator *al, renyi_error *err)
{
    const size_t padded = (l->n_out + width - 1) / width * width;
    const ry_panel_packer packer = width == 1    ? pack_bf16_1
                                   : width == 16 ? pack_bf16_16
                                                 : pack_bf16_32;
    RY_TRY(ry_linear_take_bias(l, spec, padded, al, err));
    RY_TRY(ry_linear_take(l, spec, padded * l->n_in * sizeof(uint16_t), al, err));
    return ry_linear_each_panel(l, spec, width == 1 ? 16 : width, packer, al, err);
}

/* ---- panels of 8 and 4 bits ------------------------------------------------------------------ */

size_t ry_panel_bytes(renyi_dtype dtype, size_t n_in)
{
    if (dtype == RENYI_DTYPE_INT4) return ry_groups_panel(ry_groups_of(RY_BLOCKS_NONE), n_in);
    return RY_PANEL * ry_int8_depth(n_in);
}

static void int8_lane(ry_panel *out, size_t lane, const float *w, size_t n_in, int8_t *q)
{
    int8_t *to = out->bytes;
    int64_t sum = 0;
    out->scale[lane] = ry_quant_channel(q, w, n_in, 1);
    for (size_t k = 0; k < n_in; k++) {
        to[ry_int8_place(lane, k)] = q[k];
        sum += q[k];
    }
    out->sum[lane] = out->scale[lane] * (float)sum;
}

/* A panel without weights: steps are 0, and so are numbers. */
static void clear_groups(uint8_t *panel, ry_groups g, size_t n_in)
{
    const size_t size = ry_groups_panel(g, n_in), block = ry_groups_block(g);
    memset(panel, g.bits == 4 ? RY_INT4_ZERO * 0x11 : 0, size);
    for (size_t at = 0; at < size; at += block) memset(panel + at, 0, ry_groups_steps(g));
}

/* q: 0 .. 15; the panel was cleared */
static inline void set_half(uint8_t *byte, size_t lane, unsigned q)
{
    *byte = (uint8_t)(lane < RY_PANEL / 2 ? (*byte & 0xf0) | q : (*byte & 0x0f) | q << 4);
}

/* scratch: the numbers of the channel, then its steps */
static void int4_lane(ry_panel *out, size_t lane, const float *w, size_t n_in, float *scratch)
{
    const ry_groups g = ry_groups_of(RY_BLOCKS_NONE);
    uint8_t *to = out->bytes, *q = (uint8_t *)scratch;
    float *steps = scratch + ry_int4_depth(n_in) / 4;
    out->scale[lane] = ry_quant4_channel(q, steps, w, n_in);
    for (size_t i = 0; i < (n_in + RY_GROUP - 1) / RY_GROUP; i++)
        to[ry_group_step_place(g, lane, i)] = (uint8_t)steps[i];
    for (size_t k = 0; k < n_in; k++) set_half(to + ry_group_place(g, lane, k), lane, q[k]);
}

void ry_panel_make(ry_panel *out, renyi_dtype dtype, const float *rows, size_t count, size_t n_in,
                   float *scratch)
{
    const int is_int4 = dtype == RENYI_DTYPE_INT4;
    assert(count <= RY_PANEL);
    memset(out->scale, 0, sizeof out->scale);
    memset(out->sum, 0, sizeof out->sum);
    if (is_int4)
        clear_groups(out->bytes, ry_groups_of(RY_BLOCKS_NONE), n_in);
    else
        memset(out->bytes, 0, ry_panel_bytes(dtype, n_in));
    for (size_t lane = 0; lane < count; lane++, rows += n_in) {
        if (is_int4)
            int4_lane(out, lane, rows, n_in, scratch);
        else
            int8_lane(out, lane, rows, n_in, (int8_t *)scratch);
    }
}

/* ---- int8 ------------------------------------------------------------------------------------ */

renyi_status ry_int8_columns(ry_linear *l, const ry_linear_spec *spec, size_t n_padded,
                             const renyi_allocator *al, renyi_error *err)
{
    RY_TRY(ry_linear_take_bias(l, spec, n_padded, al, err));
    l->scale = ry_calloc(al, n_padded, sizeof(float));
    l->sum = ry_calloc(al, n_padded, sizeof(float));
    return l->scale && l->sum ? RENYI_OK : ry_fail_nomem(err, n_padded * sizeof(float));
}

void ry_int8_channel(ry_linear *l, const ry_linear_spec *spec, size_t j, const float *w, int8_t *q,
                     int pairs)
{
    int64_t sum = 0;
    const float known = spec->scale ? spec->scale[j] : 0.0f;
    const int fits = spec->scale && ry_quant_channel_as(q, w, spec->n_in, known, pairs);
    l->scale[j] = fits ? known : ry_quant_channel(q, w, spec->n_in, pairs);
    for (size_t k = 0; k < spec->n_in; k++) sum += q[k];
    l->sum[j] = l->scale[j] * (float)sum;
}

static void pack_int8(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                      const float *rows, float *scratch, int pairs)
{
    const size_t depth = ry_int8_depth(l->n_in);
    int8_t *panel = (int8_t *)l->packed + first * depth, *q = (int8_t *)scratch;
    if (count < RY_PANEL || depth > l->n_in) memset(panel, 0, RY_PANEL * depth);
    for (size_t lane = 0; lane < count; lane++) {
        ry_int8_channel(l, spec, first + lane, rows + lane * l->n_in, q, pairs);
        for (size_t k = 0; k < l->n_in; k++) panel[ry_int8_place(lane, k)] = q[k];
    }
}

static void pack_int8_pairs(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                            const float *rows, float *scratch)
{
    pack_int8(l, spec, first, count, rows, scratch, 1);
}

static void pack_int8_single(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                             const float *rows, float *scratch)
{
    pack_int8(l, spec, first, count, rows, scratch, 0);
}

static void borrow_panels(ry_linear *l, const ry_linear_stored *stored, size_t bytes)
{
    l->packed = (void *)(uintptr_t)stored->panels;
    l->packed_bytes = bytes;
    l->borrowed = 1;
    memcpy(l->scale, stored->scale, l->n_out * sizeof(float));
    if (l->sum) memcpy(l->sum, stored->sum, l->n_out * sizeof(float));
}

renyi_status ry_int8_pack(ry_linear *l, const ry_linear_spec *spec, int pairs,
                          const renyi_allocator *al, renyi_error *err)
{
    const size_t n_panels = ry_panels_of(l->n_out);
    const size_t bytes = n_panels * ry_panel_bytes(RENYI_DTYPE_INT8, l->n_in);
    RY_TRY(ry_int8_columns(l, spec, n_panels * RY_PANEL, al, err));
    if (spec->stored) {
        borrow_panels(l, spec->stored, bytes);
        return RENYI_OK;
    }
    RY_TRY(ry_linear_take(l, spec, bytes, al, err));
    return ry_linear_each_panel(l, spec, RY_PANEL, pairs ? pack_int8_pairs : pack_int8_single, al,
                                err);
}

size_t ry_int8_input_bytes(const ry_linear *l, size_t rows)
{
    return ry_quant_offset(rows) + rows * ry_int8_depth(l->n_in);
}

/* ---- int4 and blocks ------------------------------------------------------------------------- */

static void pack_int4(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                      const float *rows, float *scratch)
{
    const size_t bytes = ry_panel_bytes(RENYI_DTYPE_INT4, l->n_in);
    ry_panel panel = {.bytes = (char *)l->packed + first / RY_PANEL * bytes};
    (void)spec;
    ry_panel_make(&panel, RENYI_DTYPE_INT4, rows, count, l->n_in, scratch);
    memcpy(l->scale + first, panel.scale, sizeof panel.scale);
}

/* Group i of an output, from its block in a file. */
static void place_block(uint8_t *panel, ry_groups g, size_t lane, size_t i, const uint8_t *block)
{
    memcpy(panel + ry_group_step_place(g, lane, i), block, 2); /* both are little-endian */
    uint8_t *to = panel + ry_group_place(g, lane, i * RY_GROUP);
    const size_t four = ry_group_place(g, 0, 4) - ry_group_place(g, 0, 0);
    block += 2;
    for (size_t k = 0; k < RY_GROUP; k++) {
        uint8_t *byte = to + k / 4 * four + k % 4;
        if (g.bits == 8)
            *byte = block[k];
        else
            set_half(byte, lane, k < 16 ? block[k] & 15u : block[k - 16] >> 4);
    }
}

static void pack_blocks(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                        const float *rows, float *scratch)
{
    const ry_groups g = l->groups;
    const size_t n_groups = l->n_in / RY_GROUP, block_bytes = 2 + RY_GROUP / 8 * g.bits;
    const uint8_t *block = (const uint8_t *)rows;
    uint8_t *panel = (uint8_t *)l->packed + first / RY_PANEL * ry_groups_panel(g, l->n_in);
    (void)spec, (void)scratch;
    clear_groups(panel, g, l->n_in);
    for (size_t lane = 0; lane < count; lane++) {
        l->scale[first + lane] = 1.0f;
        for (size_t i = 0; i < n_groups; i++, block += block_bytes)
            place_block(panel, g, lane, i, block);
    }
}

renyi_status ry_groups_pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                            renyi_error *err)
{
    l->groups = ry_groups_of(spec->blocks);
    const size_t padded = ry_panels_of(l->n_out) * RY_PANEL;
    const size_t bytes = padded / RY_PANEL * ry_groups_panel(l->groups, l->n_in);
    assert(!spec->blocks || (spec->reader && !spec->w && l->n_in % RY_GROUP == 0));
    RY_TRY(ry_linear_take_bias(l, spec, padded, al, err));
    l->scale = ry_calloc(al, padded, sizeof(float));
    if (!l->scale) return ry_fail_nomem(err, padded * sizeof(float));
    if (spec->stored) {
        borrow_panels(l, spec->stored, bytes);
        return RENYI_OK;
    }
    RY_TRY(ry_linear_take(l, spec, bytes, al, err));
    return ry_linear_each_panel(l, spec, RY_PANEL, spec->blocks ? pack_blocks : pack_int4, al, err);
}

size_t ry_groups_input_bytes(const ry_linear *l, size_t rows)
{
    const size_t depth = ry_int4_depth(l->n_in);
    return ry_quant4_offset(rows, depth) + rows * depth;
}
