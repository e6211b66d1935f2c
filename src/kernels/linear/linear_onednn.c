/* linear_onednn.c - linears on oneDNN 2.6 or 3.x: weights are reordered once into its blocked
 * layout. Only this file and peak_onednn.c call oneDNN.
 *
 *            rows of x        weights    y
 *   bf16     bf16             bf16       f32; bias, activation and residual are post-ops
 *   int8     u8 (quant.h)     s8         s32 into scratch, then our own epilogue: each row has its
 *                                        own scale, which no post-op supports
 *
 * oneDNN chooses its blocking of k by the shape, and the blocking decides the rounding. So that an
 * image has the same bits in any batch and for any number of threads, every image is divided into
 * the same tiles (blocks of rows of equal height, all columns). Each tile is one sequential
 * primitive; threads only share the tiles. In bf16 rows of y must have no gaps (y.row = n_out):
 * with any other stride oneDNN 2.6 leaves its blocked kernels. Rows of x are converted, so theirs
 * have none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/linear_backend.h"
#include "kernels/linear/onednn_compat.h"

#include <assert.h>
#include <omp.h>
#include <string.h>

enum {
    TILE_ROWS = RY_LINEAR_TILE, /* rows of a tile, at most */
    TILE_ROWS_INT8 = 32,        /* so that its sums stay in the second-level cache */
    LANES = 16                  /* our epilogue reads whole vectors */
};

typedef struct formats {
    dnnl_data_type_t x, w, y;
} formats;
static const formats bf16_formats = {dnnl_bf16, dnnl_bf16, dnnl_f32};
static const formats int8_formats = {dnnl_u8, dnnl_s8, dnnl_s32};

typedef struct packed_weights { /* ry_linear.impl */
    const formats *types;
    const ry_quant_kernels *quant;
    dnnl_engine_t engine;
    ry_md md;              /* blocked layout of ry_linear.packed */
    dnnl_memory_t weights; /* over ry_linear.packed */
    dnnl_memory_t bias;    /* over ry_linear.bias */
    int8_t *channels;      /* [n_out, n_in], only while packing */
} packed_weights;

typedef struct tile_kind { /* one shape of tile */
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    ry_md x, y, scratch;
} tile_kind;

typedef struct thread_memory { /* memory objects are modified, so every thread has its own */
    dnnl_stream_t stream;
    dnnl_memory_t x[2], y[2], scratch[2]; /* by kind */
    unsigned char *scratch_bytes;
    int32_t *sums; /* [rows of a tile, n_out], int8 only */
} thread_memory;

typedef struct bound {           /* ry_linear_op.impl */
    size_t blocks, tall, height; /* the first `tall` blocks have height + 1 rows */
    tile_kind kinds[2];          /* [1] = tall */
    thread_memory *threads;      /* [n_threads] */
} bound;

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const dnnl_status_t s_ = (call);                                                           \
        if (s_ != dnnl_success)                                                                    \
            return ry_fail(err,                                                                    \
                           s_ == dnnl_out_of_memory ? RENYI_ERR_NOMEM : RENYI_ERR_UNSUPPORTED, -1, \
                           "oneDNN: status %d in %s", (int)s_, #call);                             \
    } while (0)

static int is_int8(const ry_linear *l)
{
    return ((const packed_weights *)l->impl)->types == &int8_formats;
}

static renyi_status make_attr(dnnl_primitive_attr_t *attr, const ry_linear *l, renyi_error *err)
{
    const ry_epilogue epilogue = is_int8(l) ? RY_EPI_NONE : l->epilogue;
    dnnl_post_ops_t ops;
    CHECK(dnnl_primitive_attr_create(attr));
    /* Our own scratch: that of the library is bound to the thread that made the primitive. */
    CHECK(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user));
    CHECK(dnnl_post_ops_create(&ops));
    dnnl_status_t st = dnnl_success;
    if (epilogue == RY_EPI_GELU) st = ry_dnnl_eltwise(ops, dnnl_eltwise_gelu_erf, 0.0f);
    if (epilogue == RY_EPI_QUICKGELU) st = ry_dnnl_eltwise(ops, dnnl_eltwise_swish, 1.702f);
    if (epilogue == RY_EPI_GELU_TANH) st = ry_dnnl_eltwise(ops, dnnl_eltwise_gelu_tanh, 0.0f);
    if (epilogue == RY_EPI_RESIDUAL) st = ry_dnnl_sum(ops);
    if (st == dnnl_success) st = dnnl_primitive_attr_set_post_ops(*attr, ops);
    dnnl_post_ops_destroy(ops);
    CHECK(st);
    return RENYI_OK;
}

/* A primitive desc for `rows` rows; `weights` NULL = oneDNN chooses the layout. */
static renyi_status make_pd(dnnl_primitive_desc_t *pd, const ry_linear *l, size_t rows,
                            const ry_md *weights, renyi_error *err)
{
    const packed_weights *p = l->impl;
    const formats *f = p->types;
    ry_md x = {0}, w = {0}, bias = {0}, y = {0};
    dnnl_primitive_attr_t attr = NULL;
    RY_TRY(make_attr(&attr, l, err));
    dnnl_status_t st = ry_md_plain(&x, f->x, rows, l->n_in);
    if (!st) st = ry_md_plain(&y, f->y, rows, l->n_out);
    if (!st) st = ry_md_plain(&bias, dnnl_f32, 1, l->n_out);
    if (!st) st = weights ? ry_md_copy(&w, weights) : ry_md_any(&w, f->w, l->n_in, l->n_out);
    /* Created for one thread, because tiles run inside our own parallel region. */
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    if (!st) st = ry_dnnl_matmul(pd, p->engine, &x, &w, is_int8(l) ? NULL : &bias, &y, attr);
    omp_set_num_threads(threads);
    ry_md_free(&x), ry_md_free(&w), ry_md_free(&bias), ry_md_free(&y);
    dnnl_primitive_attr_destroy(attr);
    CHECK(st);
    return RENYI_OK;
}

/* Reorder plain weights of a type, [n_out, n_in] or [n_in, n_out] if transposed, into the blocked
 * layout at l->packed. */
static renyi_status reorder(const ry_linear *l, const packed_weights *p, dnnl_data_type_t type,
                            const void *w, int transposed, renyi_error *err)
{
    ry_md plain = {0};
    const dnnl_engine_t engine = p->engine;
    dnnl_memory_t from_mem = NULL, to_mem = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    /* On one thread: the threads of OpenMP would spin afterwards, in the way of the loader's
     * threads.
     */
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    dnnl_status_t st = transposed ? ry_md_plain(&plain, type, l->n_in, l->n_out)
                                  : ry_md_transposed(&plain, type, l->n_in, l->n_out);
    if (!st) st = ry_memory(&from_mem, &plain, engine, (void *)(uintptr_t)w);
    if (!st) st = ry_memory(&to_mem, &p->md, engine, l->packed);
    if (!st) st = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (!st) st = ry_dnnl_reorder(&pd, engine, &plain, &p->md);
    if (!st) st = dnnl_primitive_create(&primitive, pd);
    if (!st) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from_mem}, {DNNL_ARG_TO, to_mem}};
        st = dnnl_primitive_execute(primitive, stream, 2, args);
    }
    if (!st) st = dnnl_stream_wait(stream);
    omp_set_num_threads(threads);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    dnnl_stream_destroy(stream);
    dnnl_memory_destroy(from_mem);
    dnnl_memory_destroy(to_mem);
    ry_md_free(&plain);
    CHECK(st);
    return RENYI_OK;
}

static size_t tile_rows(const ry_linear *l) { return is_int8(l) ? TILE_ROWS_INT8 : TILE_ROWS; }

/* ry_panel_packer: into the plain matrix */
static void quantize_channels(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                              const float *rows, float *scratch)
{
    const packed_weights *p = l->impl;
    (void)scratch;
    for (size_t i = 0; i < count; i++)
        ry_int8_channel(l, spec, first + i, rows + i * l->n_in, p->channels + (first + i) * l->n_in,
                        0);
}

/* Quantizes all channels, then reorders them at once. */
static renyi_status reorder_int8(ry_linear *l, packed_weights *p, const ry_linear_spec *spec,
                                 const renyi_allocator *al, renyi_error *err)
{
    p->channels = ry_alloc(al, l->n_out, l->n_in);
    if (!p->channels) return ry_fail_nomem(err, l->n_out * l->n_in);
    renyi_status st = ry_linear_each_panel(l, spec, LANES, quantize_channels, al, err);
    if (!st) st = reorder(l, p, dnnl_s8, p->channels, 0, err);
    ry_free(al, p->channels);
    p->channels = NULL;
    return st;
}

static renyi_status pack_columns(ry_linear *l, const ry_linear_spec *spec,
                                 const renyi_allocator *al, renyi_error *err)
{
    if (is_int8(l))
        return ry_int8_columns(l, spec, (l->n_out + LANES - 1) / LANES * LANES, al, err);
    return ry_linear_take_bias(l, spec, l->n_out, al, err);
}

static renyi_status pack_weights(ry_linear *l, const ry_linear_spec *spec, const formats *types,
                                 const renyi_allocator *al, renyi_error *err)
{
    packed_weights *p = l->impl = ry_calloc(al, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->types = types;
    p->quant = renyi_cpu_detect() >= RENYI_CPU_AVX512 ? &ry_quant_avx512 : &ry_quant_scalar;
    RY_TRY(pack_columns(l, spec, al, err));
    CHECK(ry_dnnl_engine(&p->engine, 1));
    dnnl_primitive_desc_t pd = NULL;
    RY_TRY(make_pd(&pd, l, tile_rows(l), NULL, err)); /* for the usual tile height */
    dnnl_status_t st = ry_md_query(&p->md, pd, dnnl_query_weights_md);
    dnnl_primitive_desc_destroy(pd);
    CHECK(st);
    RY_TRY(ry_linear_take(l, spec, ry_md_bytes(&p->md), al, err));
    if (is_int8(l))
        RY_TRY(reorder_int8(l, p, spec, al, err));
    else if (spec->w)
        RY_TRY(reorder(l, p, dnnl_f32, spec->w, 0, err));
    CHECK(ry_memory(&p->weights, &p->md, p->engine, l->packed));
    ry_md bias = {0};
    st = ry_md_plain(&bias, dnnl_f32, 1, l->n_out);
    if (!st) st = ry_memory(&p->bias, &bias, p->engine, l->bias);
    ry_md_free(&bias);
    CHECK(st);
    return RENYI_OK;
}

static renyi_status pack_bf16(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                              renyi_error *err)
{
    return pack_weights(l, spec, &bf16_formats, al, err);
}

static renyi_status pack_int8(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                              renyi_error *err)
{
    return pack_weights(l, spec, &int8_formats, al, err);
}

static renyi_status update_weights(ry_linear *l, const float *w, int transposed, renyi_error *err)
{
    return reorder(l, l->impl, dnnl_f32, w, transposed, err);
}

static void free_weights(ry_linear *l, const renyi_allocator *al)
{
    packed_weights *p = l->impl;
    if (!p) return;
    dnnl_memory_destroy(p->weights);
    dnnl_memory_destroy(p->bias);
    ry_md_free(&p->md);
    dnnl_engine_destroy(p->engine);
    ry_free(al, p);
}

/* ---- ops ----------------------------------------------------------------------------------- */

static renyi_status make_kind(ry_linear_op *op, bound *b, int tall, renyi_error *err)
{
    const packed_weights *w = op->l->impl;
    tile_kind *k = &b->kinds[tall];
    RY_TRY(make_pd(&k->pd, op->l, b->height + (size_t)tall, &w->md, err));
    CHECK(dnnl_primitive_create(&k->primitive, k->pd));
    CHECK(ry_md_query(&k->x, k->pd, dnnl_query_src_md));
    CHECK(ry_md_query(&k->y, k->pd, dnnl_query_dst_md));
    CHECK(ry_md_query(&k->scratch, k->pd, dnnl_query_scratchpad_md));
    return RENYI_OK;
}

static renyi_status make_thread(const ry_linear_op *op, bound *b, thread_memory *t, size_t scratch,
                                const renyi_allocator *al, renyi_error *err)
{
    const packed_weights *w = op->l->impl;
    t->scratch_bytes = ry_alloc(al, scratch, 1);
    if (!t->scratch_bytes) return ry_fail_nomem(err, scratch);
    if (is_int8(op->l)) {
        const size_t sums = (b->height + (b->tall != 0)) * op->l->n_out + LANES;
        t->sums = ry_alloc(al, sums, sizeof *t->sums);
        if (!t->sums) return ry_fail_nomem(err, sums * sizeof *t->sums);
    }
    CHECK(dnnl_stream_create(&t->stream, w->engine, dnnl_stream_default_flags));
    for (int kind = 0; kind < 2; kind++) {
        const tile_kind *k = &b->kinds[kind];
        if (!k->primitive) continue;
        CHECK(ry_memory(&t->x[kind], &k->x, w->engine, DNNL_MEMORY_NONE));
        CHECK(ry_memory(&t->y[kind], &k->y, w->engine, DNNL_MEMORY_NONE));
        CHECK(ry_memory(&t->scratch[kind], &k->scratch, w->engine, t->scratch_bytes));
    }
    return RENYI_OK;
}

static renyi_status bind_op(ry_linear_op *op, const renyi_allocator *al, renyi_error *err)
{
    assert(is_int8(op->l) || op->y.row == op->l->n_out);
    bound *b = op->impl = ry_calloc(al, 1, sizeof *b);
    if (!b) return ry_fail_nomem(err, sizeof *b);
    b->blocks = (op->rows + tile_rows(op->l) - 1) / tile_rows(op->l);
    b->height = op->rows / b->blocks;
    b->tall = op->rows % b->blocks;
    size_t scratch = 64;
    for (int kind = 0; kind < 2; kind++) {
        if (kind ? b->tall == 0 : b->tall == b->blocks) continue; /* no tile of this height */
        RY_TRY(make_kind(op, b, kind, err));
        const size_t bytes = ry_md_bytes(&b->kinds[kind].scratch);
        if (bytes > scratch) scratch = bytes;
    }
    b->threads = ry_calloc(al, op->n_threads, sizeof *b->threads);
    if (!b->threads) return ry_fail_nomem(err, op->n_threads * sizeof *b->threads);
    for (unsigned t = 0; t < op->n_threads; t++)
        RY_TRY(make_thread(op, b, &b->threads[t], scratch, al, err));
    return RENYI_OK;
}

static void unbind_op(ry_linear_op *op, const renyi_allocator *al)
{
    bound *b = op->impl;
    if (!b) return;
    for (unsigned t = 0; b->threads && t < op->n_threads; t++) {
        for (int kind = 0; kind < 2; kind++) {
            dnnl_memory_destroy(b->threads[t].x[kind]);
            dnnl_memory_destroy(b->threads[t].y[kind]);
            dnnl_memory_destroy(b->threads[t].scratch[kind]);
        }
        dnnl_stream_destroy(b->threads[t].stream);
        ry_free(al, b->threads[t].scratch_bytes);
        ry_free(al, b->threads[t].sums);
    }
    for (int kind = 0; kind < 2; kind++) {
        tile_kind *k = &b->kinds[kind];
        dnnl_primitive_destroy(k->primitive);
        dnnl_primitive_desc_destroy(k->pd);
        ry_md_free(&k->x), ry_md_free(&k->y), ry_md_free(&k->scratch);
    }
    ry_free(al, b->threads);
    ry_free(al, b);
}

/* The first row of a block; for block b->blocks the end of all rows. */
static size_t first_row(const bound *b, size_t block)
{
    return block * b->height + (block < b->tall ? block : b->tall);
}

/* Blocks that hold the first `rows` rows: a block is computed whole or not at all. */
static size_t blocks_of(const bound *b, size_t rows)
{
    size_t n = b->blocks;
    while (n > 0 && first_row(b, n - 1) >= rows) n--;
    return n;
}

static size_t count_tiles(const ry_linear_op *op, ry_extent run)
{
    return run.n_images * blocks_of(op->impl, run.rows);
}

static void execute(const ry_linear_op *op, int kind, const thread_memory *m, const void *x,
                    void *y)
{
    const bound *b = op->impl;
    const packed_weights *w = op->l->impl;
    /* These calls fail only for wrong arguments; binding has checked them. */
    dnnl_memory_set_data_handle(m->x[kind], (void *)(uintptr_t)x);
    dnnl_memory_set_data_handle(m->y[kind], y);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, m->x[kind]},
                                    {DNNL_ARG_WEIGHTS, w->weights},
                                    {DNNL_ARG_DST, m->y[kind]},
                                    {DNNL_ARG_SCRATCHPAD, m->scratch[kind]},
                                    {DNNL_ARG_BIAS, w->bias}};
    dnnl_primitive_execute(b->kinds[kind].primitive, m->stream, is_int8(op->l) ? 4 : 5, args);
}

typedef struct place { /* of a tile */
    size_t image, row, rows;
    int kind;
} place;

static place place_of(const ry_linear_op *op, size_t t, ry_extent run)
{
    const bound *b = op->impl;
    const size_t blocks = blocks_of(b, run.rows), block = t % blocks;
    const int kind = block < b->tall;
    return (place){t / blocks, first_row(b, block), b->height + (size_t)kind, kind};
}

/* Converted rows of all images of the run follow each other. A tile that reaches past the last row
 * of an image reads rows of the next image, or the padding after the last; these results are not
 * used. */
static void tile_bf16(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *input, float *y)
{
    const bound *b = op->impl;
    const place at = place_of(op, t, run);
    const uint16_t *x = (const uint16_t *)input + (at.image * run.rows + at.row) * op->l->n_in;
    execute(op, at.kind, &b->threads[thread], x, y + at.image * op->y.image + at.row * op->y.row);
}

static void tile_int8(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *input, float *y)
{
    const bound *b = op->impl;
    const ry_linear *l = op->l;
    const packed_weights *w = l->impl;
    const place at = place_of(op, t, run);
    const thread_memory *m = &b->threads[thread];
    const size_t first = at.image * run.rows + at.row, all = run.n_images * run.rows;
    const size_t rows = run.rows - at.row < at.rows ? run.rows - at.row : at.rows;
    const ry_quant *quant = (const ry_quant *)input + first;
    const ry_quant_columns columns = {l->scale, l->sum, l->bias};

    execute(op, at.kind, m, (const uint8_t *)input + ry_quant_offset(all) + first * l->n_in,
            m->sums);
    y += at.image * op->y.image + at.row * op->y.row;
    for (size_t r = 0; r < rows; r++)
        w->quant->finish(y + r * op->y.row, m->sums + r * l->n_out, quant[r], &columns, l->n_out,
                         l->epilogue);
}

/* ---- rows in fewer bits -------------------------------------------------------------------- */

/* Tiles read whole blocks, so there is padding after the last row. */
static size_t bytes_bf16(const ry_linear *l, size_t rows)
{
    return (rows + TILE_ROWS) * l->n_in * sizeof(uint16_t);
}

static size_t bytes_int8(const ry_linear *l, size_t rows)
{
    return ry_quant_offset(rows) + (rows + TILE_ROWS_INT8) * l->n_in;
}

static void convert_bf16(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                         const float *x, size_t x_row)
{
    (void)rows;
    const packed_weights *w = l->impl;
    w->quant->to_bf16((uint16_t *)to + first * l->n_in, l->n_in, x, x_row, count, l->n_in);
}

static void convert_int8(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                         const float *x, size_t x_row)
{
    const packed_weights *w = l->impl;
    uint8_t *q = (uint8_t *)to + ry_quant_offset(rows);
    w->quant->quantize(q + first * l->n_in, l->n_in, (ry_quant *)to + first, x, x_row, count,
                       l->n_in, l->has_range ? &l->range : NULL);
}

const ry_linear_vtable ry_linear_onednn_bf16 = {.pack = pack_bf16,
                                                .unpack = free_weights,
                                                .update = update_weights,
                                                .bind = bind_op,
                                                .unbind = unbind_op,
                                                .tiles = count_tiles,
                                                .tile = tile_bf16,
                                                .input_bytes = bytes_bf16,
                                                .convert = convert_bf16};
const ry_linear_vtable ry_linear_onednn_int8 = {.pack = pack_int8,
                                                .reads = 1,
                                                .unpack = free_weights,
                                                .bind = bind_op,
                                                .unbind = unbind_op,
                                                .tiles = count_tiles,
                                                .tile = tile_int8,
                                                .row_padding = LANES,
                                                .input_bytes = bytes_int8,
                                                .convert = convert_int8};
