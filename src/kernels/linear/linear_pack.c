/* linear_pack.c - packs weights of bf16, 8 and 4 bits into panels, a batch of rows at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/linear_backend.h"

#include <assert.h>
#include <omp.h>
#include <string.h>

renyi_status ry_linear_take(ry_linear *l, size_t bytes, const renyi_allocator *al, renyi_error *err)
{
    l->packed = ry_calloc(al, bytes, 1);
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

/* ---- batches of rows ------------------------------------------------------------------------- */

enum {
    SCRATCH = 64,     /* floats beyond n_in: ry_panel_packer */
    MAX_THREADS = 16, /* more would wait for the reader */
    PANELS = 8 /* per thread in a batch: threads then wait for the reader only now and then */
};

/* Rows are read by one thread, then packed by all. */
typedef struct batch {
    const float *rows;  /* [end - first, n_in] */
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
    const size_t step = (size_t)b.threads * PANELS * panel;
    const size_t read_floats = spec->w ? 0 : step * l->n_in;
    const size_t floats = read_floats + (size_t)b.threads * b.each;
    float *buffer = ry_alloc(al, floats, sizeof *buffer);
    renyi_status st = buffer ? RENYI_OK : ry_fail_nomem(err, floats * sizeof *buffer);
    b.scratch = buffer ? buffer + read_floats : NULL;
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

/* ---- bf16 ------------------------------------------------------------------------------------ */

/* scratch: a row of bfloat16 */
static void pack_bf16_rows(ry_linear *l, size_t first, size_t count, size_t width,
                           const float *rows, float *scratch)
{
    uint16_t *half = (uint16_t *)scratch;
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
    RY_TRY(ry_linear_take(l, padded * l->n_in * sizeof(uint16_t), al, err));
    return ry_linear_each_panel(l, spec, 16, packer, al, err);
}

/* ---- panels of 8 and 4 bits ------------------------------------------------------------------ */

size_t ry_panel_bytes(renyi_dtype dtype, size_t n_in)
{
    if (dtype == RENYI_DTYPE_INT4) return ry_int4_depth(n_in) / RY_INT4_BLOCK * RY_INT4_BYTES;
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

/* scratch: the numbers of the channel, then its steps */
static void int4_lane(ry_panel *out, size_t lane, const float *w, size_t n_in, float *scratch)
{
    uint8_t *to = out->bytes, *q = (uint8_t *)scratch;
    float *steps = scratch + ry_int4_depth(n_in) / 4;
    out->scale[lane] = ry_quant4_channel(q, steps, w, n_in);
    for (size_t g = 0; g < (n_in + RY_GROUP - 1) / RY_GROUP; g++)
        to[ry_int4_step_place(lane, g)] = (uint8_t)steps[g];
    for (size_t k = 0; k < n_in; k++) {
        uint8_t *byte = to + ry_int4_place(lane, k);
        *byte = (uint8_t)(lane < 8 ? (*byte & 0xf0) | q[k] : (*byte & 0x0f) | q[k] << 4);
    }
}

void ry_panel_make(ry_panel *out, renyi_dtype dtype, const float *rows, size_t count, size_t n_in,
                   float *scratch)
{
    const int is_int4 = dtype == RENYI_DTYPE_INT4;
    uint8_t *bytes = out->bytes;
    const size_t size = ry_panel_bytes(dtype, n_in);
    assert(count <= RY_PANEL);
    memset(out->scale, 0, sizeof out->scale);
    memset(out->sum, 0, sizeof out->sum);
    memset(bytes, is_int4 ? RY_INT4_ZERO * 0x11 : 0, size);
    for (size_t at = 0; is_int4 && at < size; at += RY_INT4_BYTES)
        memset(bytes + at, 0, RY_INT4_STEPS);
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
    int8_t *panel = (int8_t *)l->packed + first * ry_int8_depth(l->n_in), *q = (int8_t *)scratch;
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
    RY_TRY(ry_linear_take(l, bytes, al, err));
    return ry_linear_each_panel(l, spec, RY_PANEL, pairs ? pack_int8_pairs : pack_int8_single, al,
                                err);
}

size_t ry_int8_input_bytes(const ry_linear *l, size_t rows)
{
    return ry_quant_offset(rows) + rows * ry_int8_depth(l->n_in);
}

/* ---- int4 ------------------------------------------------------------------------------------ */

static void pack_int4(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                      const float *rows, float *scratch)
{
    const size_t bytes = ry_panel_bytes(RENYI_DTYPE_INT4, l->n_in);
    ry_panel panel = {.bytes = (char *)l->packed + first / RY_PANEL * bytes};
    (void)spec;
    ry_panel_make(&panel, RENYI_DTYPE_INT4, rows, count, l->n_in, scratch);
    memcpy(l->scale + first, panel.scale, sizeof panel.scale);
}

renyi_status ry_int4_pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                          renyi_error *err)
{
    const size_t padded = ry_panels_of(l->n_out) * RY_PANEL;
    const size_t bytes = padded / RY_PANEL * ry_panel_bytes(RENYI_DTYPE_INT4, l->n_in);
    RY_TRY(ry_linear_take_bias(l, spec, padded, al, err));
    l->scale = ry_calloc(al, padded, sizeof(float));
    if (!l->scale) return ry_fail_nomem(err, padded * sizeof(float));
    if (spec->stored) {
        borrow_panels(l, spec->stored, bytes);
        return RENYI_OK;
    }
    RY_TRY(ry_linear_take(l, bytes, al, err));
    return ry_linear_each_panel(l, spec, RY_PANEL, pack_int4, al, err);
}

size_t ry_int4_input_bytes(const ry_linear *l, size_t rows)
{
    const size_t depth = ry_int4_depth(l->n_in);
    return ry_quant4_offset(rows, depth) + rows * depth;
}
