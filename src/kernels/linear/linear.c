/* linear.c - chooses the implementation of a linear and forwards to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/linear.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "kernels/linear/linear_backend.h"

#include <assert.h>
#include <string.h>

/* Our own implementations, which exist at every level and have tiles of columns. */
static ry_linear_backend own_backend(renyi_cpu level, renyi_dtype dtype)
{
    const int vectors = level >= RY_CPU_VEC8;
    switch (dtype) {
    case RENYI_DTYPE_BF16:
        if (level >= RENYI_CPU_AVX512) return RY_LINEAR_BF16_AVX512;
        return vectors ? RY_LINEAR_BF16_VEC8 : RY_LINEAR_BF16_SCALAR;
    case RENYI_DTYPE_INT8: return vectors ? RY_LINEAR_INT8_VEC8 : RY_LINEAR_INT8_SCALAR;
    case RENYI_DTYPE_INT4: return vectors ? RY_LINEAR_GROUPS_VEC8 : RY_LINEAR_GROUPS_SCALAR;
    default:
        if (level >= RENYI_CPU_AVX512) return RY_LINEAR_AVX512;
        return vectors ? RY_LINEAR_VEC8 : RY_LINEAR_SCALAR;
    }
}

ry_linear_backend ry_linear_backend_for(renyi_cpu level, const ry_linear_spec *spec)
{
    if (spec->blocks) return own_backend(level, RENYI_DTYPE_INT4); /* the products of int4 */
    if (spec->few_rows || spec->dtype == RENYI_DTYPE_INT4) return own_backend(level, spec->dtype);
#if defined(__aarch64__)
    if (level >= RY_CPU_VEC8 && spec->dtype == RENYI_DTYPE_BF16 && ry_cpu_has_bf16())
        return RY_LINEAR_BF16MM;
#endif
#ifdef RY_HAS_ONEDNN
    if (spec->dtype == RENYI_DTYPE_BF16) return RY_LINEAR_ONEDNN_BF16;
    if (level >= RENYI_CPU_AVX512 && spec->dtype == RENYI_DTYPE_INT8) return RY_LINEAR_ONEDNN_INT8;
#endif
    return own_backend(level, spec->dtype);
}

/* The implementation of a backend for the instructions of this CPU; they give the same bits. */
static const ry_linear_vtable *best_of(const ry_linear_vtable *vt)
{
#if defined(__aarch64__)
    if (vt == &ry_linear_int8_vec8 && ry_cpu_has_i8mm()) return &ry_linear_int8_i8mm;
    if (vt == &ry_linear_int8_vec8 && ry_cpu_has_dotprod()) return &ry_linear_int8_dotprod;
    if (vt == &ry_linear_groups_vec8 && ry_cpu_has_dotprod()) return &ry_linear_groups_dotprod;
#endif
    return vt;
}

/* Reads all rows, for implementations that need the whole matrix. */
static renyi_status pack_whole(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                               renyi_error *err)
{
    ry_linear_spec whole = *spec;
    float *w = ry_alloc(al, spec->n_out * spec->n_in, sizeof *w);
    if (!w) return ry_fail_nomem(err, spec->n_out * spec->n_in * sizeof *w);
    whole.w = w;
    renyi_status st = ry_linear_read_all(l, spec, w, err);
    if (!st) st = l->vt->pack(l, &whole, al, err);
    ry_free(al, w);
    return st;
}

renyi_status ry_linear_new_backend(ry_linear **out, const ry_linear_spec *spec,
                                   ry_linear_backend backend, const renyi_allocator *al,
                                   renyi_error *err)
{
    static const ry_linear_vtable *const vtables[] = {
        [RY_LINEAR_SCALAR] = &ry_linear_scalar,
        [RY_LINEAR_VEC8] = &ry_linear_vec8,
        [RY_LINEAR_INT8_SCALAR] = &ry_linear_int8_scalar,
        [RY_LINEAR_INT8_VEC8] = &ry_linear_int8_vec8,
        [RY_LINEAR_BF16_SCALAR] = &ry_linear_bf16_scalar,
        [RY_LINEAR_BF16_VEC8] = &ry_linear_bf16_vec8,
        [RY_LINEAR_GROUPS_SCALAR] = &ry_linear_groups_scalar,
        [RY_LINEAR_GROUPS_VEC8] = &ry_linear_groups_vec8,
#if defined(__x86_64__)
        [RY_LINEAR_AVX512] = &ry_linear_avx512,
        [RY_LINEAR_BF16_AVX512] = &ry_linear_bf16_avx512,
#elif defined(__aarch64__)
        [RY_LINEAR_BF16MM] = &ry_linear_bf16_bf16mm,
#endif
#ifdef RY_HAS_ONEDNN
        [RY_LINEAR_ONEDNN_BF16] = &ry_linear_onednn_bf16,
        [RY_LINEAR_ONEDNN_INT8] = &ry_linear_onednn_int8,
#endif
    };
    *out = NULL;
    if (!vtables[backend])
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "this library was built without oneDNN");
    ry_linear *l = ry_calloc(al, 1, sizeof *l);
    if (!l) return ry_fail_nomem(err, sizeof *l);
    l->vt = best_of(vtables[backend]);
    l->n_out = spec->n_out;
    l->n_in = spec->n_in;
    l->epilogue = spec->epilogue;
    l->has_range = spec->range != NULL;
    if (spec->range) l->range = *spec->range;
    l->few_rows = spec->few_rows || spec->dtype == RENYI_DTYPE_INT4 || spec->blocks;
    const int whole = spec->reader && !spec->w && !l->vt->reads;
    const renyi_status st = whole ? pack_whole(l, spec, al, err) : l->vt->pack(l, spec, al, err);
    if (st) {
        ry_linear_free(l, al);
        return st;
    }
    *out = l;
    return RENYI_OK;
}

renyi_status ry_linear_new(ry_linear **out, const ry_linear_spec *spec, renyi_cpu level,
                           const renyi_allocator *al, renyi_error *err)
{
    return ry_linear_new_backend(out, spec, ry_linear_backend_for(level, spec), al, err);
}

void ry_linear_free(ry_linear *l, const renyi_allocator *al)
{
    if (!l) return;
    if (l->vt->unpack) l->vt->unpack(l, al);
    if (!l->borrowed) ry_free(al, l->packed);
    ry_free(al, l->bias);
    ry_free(al, l->scale);
    ry_free(al, l->sum);
    ry_free(al, l);
}

renyi_status ry_linear_update(ry_linear *l, const float *w, int transposed, const float *bias,
                              renyi_error *err)
{
    if (!l->vt->update)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "weights of 8 bits or fewer, or for few rows, cannot be changed in place");
    memset(l->bias, 0, l->n_out * sizeof(float));
    if (bias) memcpy(l->bias, bias, l->n_out * sizeof(float));
    return l->vt->update(l, w, transposed, err);
}

size_t ry_linear_row(const ry_linear *l, size_t width) { return width + l->vt->row_padding; }
size_t ry_linear_out(const ry_linear *l) { return l->n_out; }
size_t ry_linear_in(const ry_linear *l) { return l->n_in; }
size_t ry_linear_bytes(const ry_linear *l) { return l->packed_bytes; }
const float *ry_linear_bias(const ry_linear *l) { return l->bias; }

renyi_status ry_linear_op_new(ry_linear_op **out, const ry_linear *l, size_t rows_per_image,
                              ry_rows x, ry_rows y, unsigned n_threads, const renyi_allocator *al,
                              renyi_error *err)
{
    *out = NULL;
    ry_linear_op *op = ry_calloc(al, 1, sizeof *op);
    if (!op) return ry_fail_nomem(err, sizeof *op);
    op->l = l;
    op->rows = rows_per_image;
    op->x = x;
    op->y = y;
    op->n_threads = n_threads;
    const renyi_status st = l->vt->bind ? l->vt->bind(op, al, err) : RENYI_OK;
    if (st) {
        ry_linear_op_free(op, al);
        return st;
    }
    *out = op;
    return RENYI_OK;
}

void ry_linear_op_free(ry_linear_op *op, const renyi_allocator *al)
{
    if (!op) return;
    if (op->l->vt->unbind) op->l->vt->unbind(op, al);
    ry_free(al, op->scratch);
    ry_free(al, op);
}

const ry_linear *ry_linear_op_of(const ry_linear_op *op) { return op->l; }
ry_rows ry_linear_op_input(const ry_linear_op *op) { return op->x; }

size_t ry_linear_op_tiles(const ry_linear_op *op, ry_extent run)
{
    assert(run.rows <= op->rows);
    return op->l->vt->tiles(op, run);
}

void ry_linear_op_tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                       const void *x, float *y)
{
    op->l->vt->tile(op, t, run, thread, x, y);
}

size_t ry_linear_input_bytes(const ry_linear *l, size_t rows)
{
    return l->vt->input_bytes ? l->vt->input_bytes(l, rows) : 0;
}

int ry_linear_op_converts(const ry_linear_op *op) { return op->l->vt->convert != NULL; }

void ry_linear_op_convert(const ry_linear_op *op, size_t t, ry_extent run, const float *x, void *to)
{
    const size_t rows = run.n_images * run.rows, first = t * RY_CONVERT_ROWS;
    size_t end = first + RY_CONVERT_ROWS < rows ? first + RY_CONVERT_ROWS : rows;
    for (size_t row = first, count; row < end;
         row += count) { /* there may be gaps between images */
        const size_t image = row / run.rows, inside = row % run.rows;
        count = end - row < run.rows - inside ? end - row : run.rows - inside;
        op->l->vt->convert(op->l, to, rows, row, count,
                           x + image * op->x.image + inside * op->x.row, op->x.row);
    }
}
