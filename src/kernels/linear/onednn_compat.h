/* onednn_compat.h - the few calls in which oneDNN 2.x and 3.x differ: memory descriptors are
 * structs in 2.x and handles in 3.x; operation descriptors exist only in 2.x.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ONEDNN_COMPAT_H
#define RY_ONEDNN_COMPAT_H

#include <oneapi/dnnl/dnnl.h>

#include <cpuid.h>
#include <stddef.h>
#include <string.h>

/* 1 if the CPU has AMX but hides the sizes of its tiles (CPUID leaf 0x1D), as some virtual machines
 * do. oneDNN then configures no tiles and ends the process with SIGILL. */
static inline int ry_amx_without_sizes(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & (1u << 24))) return 0;
    return !__get_cpuid_count(0x1D, 0, &a, &b, &c, &d) || a == 0;
}

/* An engine, without AMX where oneDNN cannot use it. That limit holds for the whole process and is
 * possible only before oneDNN's first use; if another part of the program was first, products in
 * bf16 and int8 (`low`) are refused. */
static inline dnnl_status_t ry_dnnl_engine(dnnl_engine_t *out, int low)
{
    if (ry_amx_without_sizes()) {
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
        const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
        if (low && (isa & ~(unsigned)dnnl_cpu_isa_avx512_core_bf16)) return dnnl_unimplemented;
    }
    return dnnl_engine_create(out, dnnl_cpu, 0);
}

typedef struct ry_md {
    dnnl_memory_desc_t md;
    int set;
} ry_md;

#if DNNL_VERSION_MAJOR >= 3
#define RY_MD(m) ((m)->md)
#else
#define RY_MD(m) (&(m)->md)
#endif

static inline dnnl_status_t ry_md_make(ry_md *m, dnnl_data_type_t type, size_t rows, size_t cols,
                                       size_t row_stride, size_t col_stride)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
    const dnnl_dims_t strides = {(dnnl_dim_t)row_stride, (dnnl_dim_t)col_stride};
    m->set = 1;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_create_with_strides(&m->md, 2, dims, type, strides);
#else
    return dnnl_memory_desc_init_by_strides(&m->md, 2, dims, type, strides);
#endif
}

/* [rows, cols], row-major */
static inline dnnl_status_t ry_md_plain(ry_md *m, dnnl_data_type_t type, size_t rows, size_t cols)
{
    return ry_md_make(m, type, rows, cols, cols, 1);
}

/* [rows, cols], column-major */
static inline dnnl_status_t ry_md_transposed(ry_md *m, dnnl_data_type_t type, size_t rows,
                                             size_t cols)
{
    return ry_md_make(m, type, rows, cols, 1, rows);
}

/* [rows, cols] in the layout that oneDNN chooses */
static inline dnnl_status_t ry_md_any(ry_md *m, dnnl_data_type_t type, size_t rows, size_t cols)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
    m->set = 1;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_create_with_tag(&m->md, 2, dims, type, dnnl_format_tag_any);
#else
    return dnnl_memory_desc_init_by_tag(&m->md, 2, dims, type, dnnl_format_tag_any);
#endif
}

static inline dnnl_status_t ry_md_copy(ry_md *to, const ry_md *from)
{
    to->set = 1;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_clone(&to->md, from->md);
#else
    to->md = from->md;
    return dnnl_success;
#endif
}

static inline void ry_md_free(ry_md *m)
{
#if DNNL_VERSION_MAJOR >= 3
    if (m->set) dnnl_memory_desc_destroy(m->md);
#endif
    m->set = 0;
}

static inline size_t ry_md_bytes(const ry_md *m) { return dnnl_memory_desc_get_size(RY_MD(m)); }

/* A copy of the descriptor that the primitive chose. */
static inline dnnl_status_t ry_md_query(ry_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    m->set = 1;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_clone(&m->md, dnnl_primitive_desc_query_md(pd, what, 0));
#else
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what, 0);
    if (md)
        m->md = *md;
    else
        memset(&m->md, 0, sizeof m->md);
    return dnnl_success;
#endif
}

static inline dnnl_status_t ry_memory(dnnl_memory_t *mem, const ry_md *m, dnnl_engine_t engine,
                                      void *data)
{
    return dnnl_memory_create(mem, RY_MD(m), engine, data);
}

static inline dnnl_status_t ry_dnnl_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(ops, kind, alpha, 0.0f);
#else
    return dnnl_post_ops_append_eltwise(ops, 1.0f, kind, alpha, 0.0f);
#endif
}

static inline dnnl_status_t ry_dnnl_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1.0f);
#endif
}

/* bias NULL = none */
static inline dnnl_status_t ry_dnnl_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                           const ry_md *x, const ry_md *w, const ry_md *bias,
                                           const ry_md *y, const_dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_matmul_primitive_desc_create(pd, engine, x->md, w->md, bias ? bias->md : NULL,
                                             y->md, attr);
#else
    dnnl_matmul_desc_t desc;
    const dnnl_status_t st =
        dnnl_matmul_desc_init(&desc, &x->md, &w->md, bias ? &bias->md : NULL, &y->md);
    return st ? st : dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL);
#endif
}

static inline dnnl_status_t ry_dnnl_reorder(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                            const ry_md *from, const ry_md *to)
{
    return dnnl_reorder_primitive_desc_create(pd, RY_MD(from), engine, RY_MD(to), engine, NULL);
}

#endif
