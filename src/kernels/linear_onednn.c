/* linear_onednn.c - linears on oneDNN: weights reordered once into its blocked layout, bias,
 * activation and residual as post-ops. With peak.c the only file that knows oneDNN; written for 2.6 and 3.x.
 *
 * oneDNN picks its blocking of k by the shape it is given, and that decides the rounding. So that an
 * image has the same bits in any batch and on any number of threads, every image is cut into the
 * same tiles (row blocks of equal height by chunks of columns) and each tile is one sequential
 * primitive; threads only share out the tiles. SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear_body.h"
#include "kernels/onednn_compat.h"

#include <omp.h>
#include <string.h>

enum {
    TILE_ROWS = 64, /* rows of a tile, at most */
    TILE_COLS = 768 /* outputs of a tile, at most */
};

typedef struct packed_weights { /* ry_linear.impl */
    dnnl_engine_t engine;
    size_t n_chunks, chunk; /* chunk: outputs of every chunk but the last, which has the rest */
    ry_md md[2];            /* blocked layout of a full chunk [0] and of the last [1] */
    float **data;           /* [n_chunks] reordered weights */
    dnnl_memory_t *weights; /* [n_chunks] over data */
    dnnl_memory_t *bias;    /* [n_chunks] over ry_linear.bias */
} packed_weights;

typedef struct tile_kind { /* one shape of tile */
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    ry_md x, y, scratch;
} tile_kind;

typedef struct thread_memory { /* memory objects are written to, so every thread has its own */
    dnnl_stream_t stream;
    dnnl_memory_t x[4], y[4], scratch[4]; /* by kind */
    unsigned char *scratch_bytes;
} thread_memory;

typedef struct bound { /* ry_linear_op.impl */
    size_t blocks, tall, height; /* the first `tall` blocks have height + 1 rows */
    tile_kind kinds[4];          /* 2 * (last chunk?) + (tall?) */
    thread_memory *threads;      /* [n_threads] */
} bound;

#define CHECK(call)                                                                             \
    do {                                                                                        \
        const dnnl_status_t s_ = (call);                                                        \
        if (s_ != dnnl_success)                                                                 \
            return ry_fail(err, s_ == dnnl_out_of_memory ? RENYI_ERR_NOMEM : RENYI_ERR_UNSUPPORTED, \
                           -1, "oneDNN: status %d in %s", (int)s_, #call);                      \
    } while (0)

static size_t chunk_cols(const ry_linear *l, const packed_weights *w, int is_last)
{
    return is_last ? l->n_out - (w->n_chunks - 1) * w->chunk : w->chunk;
}

static renyi_status make_attr(dnnl_primitive_attr_t *attr, ry_epilogue epilogue, renyi_error *err)
{
    dnnl_post_ops_t ops;
    CHECK(dnnl_primitive_attr_create(attr));
    /* Scratch of our own: the library's is tied to the thread that made the primitive. */
    CHECK(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user));
    CHECK(dnnl_post_ops_create(&ops));
    dnnl_status_t st = dnnl_success;
    if (epilogue == RY_EPI_GELU) st = ry_dnnl_eltwise(ops, dnnl_eltwise_gelu_erf, 0.0f);
    if (epilogue == RY_EPI_QUICKGELU) st = ry_dnnl_eltwise(ops, dnnl_eltwise_swish, 1.702f);
    if (epilogue == RY_EPI_RESIDUAL) st = ry_dnnl_sum(ops);
    if (st == dnnl_success) st = dnnl_primitive_attr_set_post_ops(*attr, ops);
    dnnl_post_ops_destroy(ops);
    CHECK(st);
    return RENYI_OK;
}

/* A primitive desc for [rows, n_in] x [n_in, cols]; `weights` NULL = oneDNN chooses the layout. */
static renyi_status make_pd(dnnl_primitive_desc_t *pd, const ry_linear *l, dnnl_engine_t engine,
                            size_t rows, size_t cols, ry_rows x, ry_rows y, const ry_md *weights,
                            renyi_error *err)
{
    ry_md xm, wm, bm, ym;
    dnnl_primitive_attr_t attr = NULL;
    RY_TRY(make_attr(&attr, l->epilogue, err));
    CHECK(ry_md_strided(&xm, rows, l->n_in, x.row));
    CHECK(ry_md_strided(&ym, rows, cols, y.row));
    CHECK(ry_md_strided(&bm, 1, cols, cols));
    CHECK(weights ? ry_md_copy(&wm, weights) : ry_md_any(&wm, l->n_in, cols));
    /* Created for one thread: tiles run inside a parallel region of ours. */
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const dnnl_status_t st = ry_dnnl_matmul(pd, engine, &xm, &wm, &bm, &ym, attr);
    omp_set_num_threads(threads);
    ry_md_free(&xm), ry_md_free(&wm), ry_md_free(&bm), ry_md_free(&ym);
    dnnl_primitive_attr_destroy(attr);
    CHECK(st);
    return RENYI_OK;
}

/* Reorder the plain [cols, n_in] weights at w into the blocked layout md at `to`. */
static renyi_status reorder(dnnl_engine_t engine, const float *w, size_t cols, size_t n_in,
                            const ry_md *md, float *to, renyi_error *err)
{
    ry_md plain;
    dnnl_memory_t from_mem = NULL, to_mem = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    CHECK(ry_md_transposed(&plain, n_in, cols)); /* logical [n_in, cols] over [cols, n_in] */
    dnnl_status_t st = ry_memory(&from_mem, &plain, engine, (void *)(uintptr_t)w);
    if (!st) st = ry_memory(&to_mem, md, engine, to);
    if (!st) st = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (!st) st = ry_dnnl_reorder(&pd, engine, &plain, md);
    if (!st) st = dnnl_primitive_create(&primitive, pd);
    if (!st) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from_mem}, {DNNL_ARG_TO, to_mem}};
        st = dnnl_primitive_execute(primitive, stream, 2, args);
    }
    if (!st) st = dnnl_stream_wait(stream);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    dnnl_stream_destroy(stream);
    dnnl_memory_destroy(from_mem);
    dnnl_memory_destroy(to_mem);
    ry_md_free(&plain);
    CHECK(st);
    return RENYI_OK;
}

/* The blocked layout that oneDNN wants for a chunk, asked with the usual tile height. */
static renyi_status choose_layout(const ry_linear *l, packed_weights *w, int is_last, renyi_error *err)
{
    const size_t cols = chunk_cols(l, w, is_last);
    dnnl_primitive_desc_t pd = NULL;
    RY_TRY(make_pd(&pd, l, w->engine, TILE_ROWS, cols, (ry_rows){l->n_in, 0},
                   (ry_rows){l->n_out, 0}, NULL, err));
    const dnnl_status_t st = ry_md_query(&w->md[is_last], pd, dnnl_query_weights_md);
    dnnl_primitive_desc_destroy(pd);
    CHECK(st);
    return RENYI_OK;
}

static renyi_status pack_chunk(ry_linear *l, packed_weights *w, size_t c, const ry_linear_spec *spec,
                               const renyi_allocator *al, renyi_error *err)
{
    const int is_last = c == w->n_chunks - 1;
    const size_t cols = chunk_cols(l, w, is_last), bytes = ry_md_bytes(&w->md[is_last]);
    ry_md bias_md;
    w->data[c] = ry_alloc(al, bytes, 1);
    if (!w->data[c]) return ry_fail_nomem(err, bytes);
    RY_TRY(reorder(w->engine, spec->w + c * w->chunk * l->n_in, cols, l->n_in, &w->md[is_last],
                   w->data[c], err));
    CHECK(ry_memory(&w->weights[c], &w->md[is_last], w->engine, w->data[c]));
    CHECK(ry_md_strided(&bias_md, 1, cols, cols));
    const dnnl_status_t st = ry_memory(&w->bias[c], &bias_md, w->engine, l->bias + c * w->chunk);
    ry_md_free(&bias_md);
    CHECK(st);
    return RENYI_OK;
}

static renyi_status pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err)
{
    packed_weights *w = l->impl = ry_calloc(al, 1, sizeof *w);
    l->bias = ry_calloc(al, l->n_out, sizeof(float));
    if (!w || !l->bias) return ry_fail_nomem(err, l->n_out * sizeof(float));
    if (spec->bias) memcpy(l->bias, spec->bias, l->n_out * sizeof(float));
    w->n_chunks = (l->n_out + TILE_COLS - 1) / TILE_COLS;
    w->chunk = (l->n_out + w->n_chunks - 1) / w->n_chunks;
    w->chunk = (w->chunk + 63) / 64 * 64; /* whole blocks of oneDNN's layouts */
    w->n_chunks = (l->n_out + w->chunk - 1) / w->chunk;
    w->data = ry_calloc(al, w->n_chunks, sizeof *w->data);
    w->weights = ry_calloc(al, w->n_chunks, sizeof *w->weights);
    w->bias = ry_calloc(al, w->n_chunks, sizeof *w->bias);
    if (!w->data || !w->weights || !w->bias) return ry_fail_nomem(err, w->n_chunks * sizeof *w->data);
    CHECK(dnnl_engine_create(&w->engine, dnnl_cpu, 0));
    RY_TRY(choose_layout(l, w, 1, err));
    if (w->n_chunks > 1) RY_TRY(choose_layout(l, w, 0, err));
    for (size_t c = 0; c < w->n_chunks; c++) RY_TRY(pack_chunk(l, w, c, spec, al, err));
    return RENYI_OK;
}

static void unpack(ry_linear *l, const renyi_allocator *al)
{
    packed_weights *w = l->impl;
    if (!w) return;
    for (size_t c = 0; c < w->n_chunks; c++) {
        if (w->weights) dnnl_memory_destroy(w->weights[c]);
        if (w->bias) dnnl_memory_destroy(w->bias[c]);
        if (w->data) ry_free(al, w->data[c]);
    }
    ry_md_free(&w->md[0]), ry_md_free(&w->md[1]);
    dnnl_engine_destroy(w->engine);
    ry_free(al, w->data);
    ry_free(al, w->weights);
    ry_free(al, w->bias);
    ry_free(al, w);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static renyi_status make_kind(ry_linear_op *op, bound *b, int kind, renyi_error *err)
{
    const packed_weights *w = op->l->impl;
    const int is_last = kind / 2, is_tall = kind % 2;
    tile_kind *k = &b->kinds[kind];
    RY_TRY(make_pd(&k->pd, op->l, w->engine, b->height + (size_t)is_tall,
                   chunk_cols(op->l, w, is_last), op->x, op->y, &w->md[is_last], err));
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
    CHECK(dnnl_stream_create(&t->stream, w->engine, dnnl_stream_default_flags));
    for (int kind = 0; kind < 4; kind++) {
        const tile_kind *k = &b->kinds[kind];
        if (!k->primitive) continue;
        CHECK(ry_memory(&t->x[kind], &k->x, w->engine, DNNL_MEMORY_NONE));
        CHECK(ry_memory(&t->y[kind], &k->y, w->engine, DNNL_MEMORY_NONE));
        CHECK(ry_memory(&t->scratch[kind], &k->scratch, w->engine, t->scratch_bytes));
    }
    return RENYI_OK;
}

static renyi_status bind(ry_linear_op *op, const renyi_allocator *al, renyi_error *err)
{
    const packed_weights *w = op->l->impl;
    bound *b = op->impl = ry_calloc(al, 1, sizeof *b);
    if (!b) return ry_fail_nomem(err, sizeof *b);
    b->blocks = (op->rows + TILE_ROWS - 1) / TILE_ROWS;
    b->height = op->rows / b->blocks;
    b->tall = op->rows % b->blocks;
    size_t scratch = 64;
    for (int kind = 0; kind < 4; kind++) {
        const int used = (kind % 2 ? b->tall > 0 : b->tall < b->blocks) && (kind / 2 || w->n_chunks > 1);
        if (!used) continue;
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

static void unbind(ry_linear_op *op, const renyi_allocator *al)
{
    bound *b = op->impl;
    if (!b) return;
    for (unsigned t = 0; b->threads && t < op->n_threads; t++) {
        for (int kind = 0; kind < 4; kind++) {
            dnnl_memory_destroy(b->threads[t].x[kind]);
            dnnl_memory_destroy(b->threads[t].y[kind]);
            dnnl_memory_destroy(b->threads[t].scratch[kind]);
        }
        dnnl_stream_destroy(b->threads[t].stream);
        ry_free(al, b->threads[t].scratch_bytes);
    }
    for (int kind = 0; kind < 4; kind++) {
        tile_kind *k = &b->kinds[kind];
        dnnl_primitive_destroy(k->primitive);
        dnnl_primitive_desc_destroy(k->pd);
        ry_md_free(&k->x), ry_md_free(&k->y), ry_md_free(&k->scratch);
    }
    ry_free(al, b->threads);
    ry_free(al, b);
}

static size_t tiles(const ry_linear_op *op, size_t n_images)
{
    const bound *b = op->impl;
    const packed_weights *w = op->l->impl;
    return n_images * b->blocks * w->n_chunks;
}

static void tile(const ry_linear_op *op, size_t t, size_t n_images, unsigned thread, const float *x,
                 float *y)
{
    (void)n_images;
    const bound *b = op->impl;
    const packed_weights *w = op->l->impl;
    const size_t c = t % w->n_chunks, block = t / w->n_chunks % b->blocks;
    const size_t image = t / w->n_chunks / b->blocks;
    const size_t row = block * b->height + (block < b->tall ? block : b->tall);
    const int kind = 2 * (c == w->n_chunks - 1) + (block < b->tall);
    const thread_memory *m = &b->threads[thread];

    x += image * op->x.image + row * op->x.row;
    y += image * op->y.image + row * op->y.row + c * w->chunk;
    /* These calls can only fail on arguments, and the arguments were proven when binding. */
    dnnl_memory_set_data_handle(m->x[kind], (void *)(uintptr_t)x);
    dnnl_memory_set_data_handle(m->y[kind], y);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, m->x[kind]},
                                    {DNNL_ARG_WEIGHTS, w->weights[c]},
                                    {DNNL_ARG_BIAS, w->bias[c]},
                                    {DNNL_ARG_DST, m->y[kind]},
                                    {DNNL_ARG_SCRATCHPAD, m->scratch[kind]}};
    dnnl_primitive_execute(b->kinds[kind].primitive, m->stream, 5, args);
}

const ry_linear_vtable ry_linear_onednn = {pack, unpack, bind, unbind, tiles, tile};
