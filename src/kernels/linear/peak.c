/* peak.c - times our own threaded f32 product: the reference speed of `renyi bench` in a build
 * without oneDNN, whose product is timed otherwise (peak_onednn.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/linear.h"

#ifndef RY_HAS_ONEDNN
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"

#include <omp.h>

/* One product [rows, n_in] x [n_in, n_out] with zeros, and the memory of it. */
typedef struct product {
    ry_linear *linear;
    ry_linear_op *op;
    float *x, *y;
    size_t rows;
} product;

static void product_free(product *p)
{
    ry_linear_op_free(p->op, NULL);
    ry_linear_free(p->linear, NULL);
    ry_free(NULL, p->x);
    ry_free(NULL, p->y);
}

static renyi_status product_make(product *p, size_t rows, size_t n_out, size_t n_in,
                                 unsigned n_threads, renyi_error *err)
{
    const ry_linear_spec spec = {.n_out = n_out, .n_in = n_in};
    p->rows = rows;
    RY_TRY(ry_linear_new(&p->linear, &spec, renyi_cpu_detect(), NULL, err));
    const size_t x_row = ry_linear_row(p->linear, n_in), y_row = ry_linear_row(p->linear, n_out);
    RY_TRY(ry_linear_op_new(&p->op, p->linear, rows, (ry_rows){x_row, rows * x_row},
                            (ry_rows){y_row, rows * y_row}, n_threads, NULL, err));
    p->x = ry_calloc(NULL, rows * x_row, sizeof(float));
    p->y = ry_calloc(NULL, rows * y_row, sizeof(float));
    return p->x && p->y ? RENYI_OK : ry_fail_nomem(err, rows * (x_row + y_row) * sizeof(float));
}

/* Seconds of the fastest of `repeats` runs. */
static double product_time(const product *p, int repeats, unsigned n_threads)
{
    const ry_extent run = {1, p->rows};
    const long tiles = (long)ry_linear_op_tiles(p->op, run);
    double best = 1e9;
    for (int r = 0; r < repeats; r++) {
        const double start = ry_clock();
#pragma omp parallel for num_threads((int)n_threads) schedule(dynamic)
        for (long t = 0; t < tiles; t++)
            ry_linear_op_tile(p->op, (size_t)t, run, (unsigned)omp_get_thread_num(), p->x, p->y);
        const double seconds = ry_clock() - start;
        if (seconds < best) best = seconds;
    }
    return best;
}

renyi_status ry_measure_peak(unsigned n_threads, double *gflops, renyi_error *err)
{
    static const size_t shapes[][3] = {
        {1576, 2304, 768}, {1576, 768, 768}, {1576, 3072, 768}, {1576, 768, 3072}};
    renyi_status st = RENYI_OK;
    *gflops = 0.0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !st; i++) {
        product p = {0};
        st = product_make(&p, shapes[i][0], shapes[i][1], shapes[i][2], n_threads, err);
        const double flops =
            2.0 * (double)shapes[i][0] * (double)shapes[i][1] * (double)shapes[i][2];
        if (!st) {
            const double speed = flops / product_time(&p, 6, n_threads) * 1e-9;
            if (speed > *gflops) *gflops = speed;
        }
        product_free(&p);
    }
    return st;
}
#endif
