/* peak_onednn.c - times oneDNN's threaded f32 product: the reference speed of `renyi bench`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/linear.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "kernels/linear/onednn_compat.h"

#include <omp.h>

typedef struct product {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    ry_md md[4]; /* x, w, bias, y */
    dnnl_memory_t mem[4];
    float *data[4];
} product;

static void product_free(product *p)
{
    dnnl_primitive_destroy(p->primitive);
    dnnl_primitive_desc_destroy(p->pd);
    for (int i = 0; i < 4; i++) {
        dnnl_memory_destroy(p->mem[i]);
        ry_md_free(&p->md[i]);
        ry_free(NULL, p->data[i]);
    }
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

static dnnl_status_t product_make(product *p, size_t rows, size_t cols, size_t depth)
{
    dnnl_status_t st = ry_dnnl_engine(&p->engine, 0);
    if (!st) st = dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
    if (!st) st = ry_md_plain(&p->md[0], dnnl_f32, rows, depth);
    if (!st) st = ry_md_any(&p->md[1], dnnl_f32, depth, cols);
    if (!st) st = ry_md_plain(&p->md[2], dnnl_f32, 1, cols);
    if (!st) st = ry_md_plain(&p->md[3], dnnl_f32, rows, cols);
    if (!st)
        st = ry_dnnl_matmul(&p->pd, p->engine, &p->md[0], &p->md[1], &p->md[2], &p->md[3], NULL);
    if (st) return st;
    ry_md_free(&p->md[1]);
    st = ry_md_query(&p->md[1], p->pd, dnnl_query_weights_md);
    if (!st) st = dnnl_primitive_create(&p->primitive, p->pd);
    for (int i = 0; i < 4 && !st; i++) {
        p->data[i] = ry_calloc(NULL, ry_md_bytes(&p->md[i]), 1);
        st = p->data[i] ? ry_memory(&p->mem[i], &p->md[i], p->engine, p->data[i])
                        : dnnl_out_of_memory;
    }
    return st;
}

/* Seconds of the fastest of `repeats` runs. */
static dnnl_status_t product_time(const product *p, int repeats, double *best)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->mem[0]},
                                    {DNNL_ARG_WEIGHTS, p->mem[1]},
                                    {DNNL_ARG_BIAS, p->mem[2]},
                                    {DNNL_ARG_DST, p->mem[3]}};
    *best = 1e9;
    for (int r = 0; r < repeats; r++) {
        const double start = ry_clock();
        dnnl_status_t st = dnnl_primitive_execute(p->primitive, p->stream, 4, args);
        if (!st) st = dnnl_stream_wait(p->stream);
        if (st) return st;
        const double seconds = ry_clock() - start;
        if (seconds < *best) *best = seconds;
    }
    return dnnl_success;
}

renyi_status ry_measure_peak(unsigned n_threads, double *gflops, renyi_error *err)
{
    static const size_t shapes[][3] = {
        {1576, 2304, 768}, {1576, 768, 768}, {1576, 3072, 768}, {1576, 768, 3072}};
    const int before = omp_get_max_threads();
    dnnl_status_t st = dnnl_success;
    *gflops = 0.0;
    omp_set_num_threads((int)n_threads);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !st; i++) {
        product p = {0};
        double seconds = 0.0;
        st = product_make(&p, shapes[i][0], shapes[i][1], shapes[i][2]);
        if (!st) st = product_time(&p, 6, &seconds);
        const double flops =
            2.0 * (double)shapes[i][0] * (double)shapes[i][1] * (double)shapes[i][2];
        if (!st && flops / seconds * 1e-9 > *gflops) *gflops = flops / seconds * 1e-9;
        product_free(&p);
    }
    omp_set_num_threads(before);
    if (st) return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "oneDNN: status %d", (int)st);
    return RENYI_OK;
}
