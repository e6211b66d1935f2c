/* llama_stored.c - see llama_stored.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llama/llama_stored.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/panels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define AGAIN "; make the file again with 'renyi quantize'"

ry_matrix_shape ry_llama_shape(const ry_llama_config *c, ry_llama_matrix which)
{
    switch (which) {
    case RY_LLAMA_QKV: return (ry_matrix_shape){ry_llama_qkv(c), c->dim};
    case RY_LLAMA_PROJ: return (ry_matrix_shape){c->dim, ry_llama_q(c)};
    case RY_LLAMA_GATE_UP: return (ry_matrix_shape){2 * (size_t)c->mlp_dim, c->dim};
    case RY_LLAMA_DOWN: return (ry_matrix_shape){c->dim, c->mlp_dim};
    default: return (ry_matrix_shape){c->vocab, c->dim};
    }
}

static void write_name(char out[RY_NAME_MAX], ry_llama_matrix which, uint32_t layer,
                       ry_stored_part part)
{
    static const char *const names[] = {"qkv", "proj", "gate_up", "down", "head"};
    static const char *const parts[] = {"panels", "columns"};
    if (which == RY_LLAMA_HEAD)
        snprintf(out, RY_NAME_MAX, RY_STORED "head.%s", parts[part]);
    else
        snprintf(out, RY_NAME_MAX, RY_STORED "layers.%u.%s.%s", layer, names[which], parts[part]);
}

void ry_llama_stored_tensor(ry_tensor *t, char name[RY_NAME_MAX], const ry_llama_config *c,
                            ry_llama_matrix which, uint32_t layer, ry_stored_part part,
                            renyi_dtype dtype)
{
    const ry_matrix_shape s = ry_llama_shape(c, which);
    write_name(name, which, layer, part);
    *t = (ry_tensor){.name = name, .n_dims = 2};
    t->dtype = part == RY_STORED_PANELS ? RY_U8 : RY_F32;
    t->shape[0] = part == RY_STORED_PANELS    ? ry_panels_of(s.n_out)
                  : dtype == RENYI_DTYPE_INT8 ? 2
                                              : 1;
    t->shape[1] = part == RY_STORED_PANELS ? ry_panel_bytes(dtype, s.n_in) : s.n_out;
}

static const ry_tensor *find(const ry_tensors *set, ry_llama_matrix which, uint32_t layer,
                             ry_stored_part part)
{
    char name[RY_NAME_MAX];
    write_name(name, which, layer, part);
    return ry_tensors_find(set, name);
}

uint64_t ry_llama_stored_mlp(const ry_tensors *set)
{
    const ry_tensor *t = find(set, RY_LLAMA_GATE_UP, 0, RY_STORED_COLUMNS);
    return t && t->n_dims == 2 ? t->shape[1] / 2 : 0;
}

static renyi_status check_tensor(const ry_llama_config *c, const ry_tensors *set,
                                 ry_llama_matrix which, uint32_t layer, ry_stored_part part,
                                 renyi_error *err)
{
    char name[RY_NAME_MAX];
    ry_tensor want;
    ry_llama_stored_tensor(&want, name, c, which, layer, part, c->stored);
    const ry_tensor *t = ry_tensors_find(set, name);
    if (!t) return ry_fail(err, RENYI_ERR_FORMAT, -1, "tensor '%s' is missing" AGAIN, name);
    if (t->dtype == want.dtype && t->n_dims == 2 && t->shape[0] == want.shape[0] &&
        t->shape[1] == want.shape[1])
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "tensor '%s' is %s of %u dimensions [%" PRIu64 ", %" PRIu64 "]; %s [%" PRIu64
                   ", %" PRIu64 "] wanted for %s" AGAIN,
                   name, ry_dtype_name(t->dtype), t->n_dims, t->shape[0],
                   t->n_dims > 1 ? t->shape[1] : 0, ry_dtype_name(want.dtype), want.shape[0],
                   want.shape[1], c->stored == RENYI_DTYPE_INT4 ? "int4" : "int8");
}

renyi_status ry_llama_stored_check(ry_llama_config *c, const ry_tensors *set, renyi_error *err)
{
    const ry_tensor *head = find(set, RY_LLAMA_HEAD, 0, RY_STORED_PANELS);
    const int is_int4 =
        head && head->n_dims == 2 && head->shape[1] == ry_panel_bytes(RENYI_DTYPE_INT4, c->dim);
    c->stored = is_int4 ? RENYI_DTYPE_INT4 : RENYI_DTYPE_INT8;
    for (int which = 0; which < RY_N_LLAMA_MATRICES; which++)
        for (uint32_t i = 0; i < (which == RY_LLAMA_HEAD ? 1 : c->n_layers); i++)
            for (int part = 0; part < RY_N_STORED_PARTS; part++)
                RY_TRY(check_tensor(c, set, (ry_llama_matrix)which, i, (ry_stored_part)part, err));
    return RENYI_OK;
}

/* Tensors of a file may lie at any address: its floats are copied. */
static renyi_status read_columns(float *out, const ry_tensor *t, renyi_error *err)
{
    const size_t n = (size_t)ry_tensor_elements(t);
    RY_TRY(ry_tensor_to_f32(t, out, err));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(out[i]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "tensor '%.120s' holds %s at element %zu of %zu; finite numbers wanted",
                           t->name, isnan(out[i]) ? "NaN" : "infinity", i, n);
    return RENYI_OK;
}

renyi_status ry_llama_stored_linear(ry_linear **out, const ry_llama_config *c,
                                    const ry_tensors *set, ry_llama_matrix which, uint32_t layer,
                                    renyi_cpu level, const renyi_allocator *al, renyi_error *err)
{
    const ry_tensor *panels = find(set, which, layer, RY_STORED_PANELS);
    const ry_tensor *columns = find(set, which, layer, RY_STORED_COLUMNS);
    const ry_matrix_shape s = ry_llama_shape(c, which);
    float *floats = ry_alloc(al, 2 * s.n_out, sizeof *floats);
    if (!floats) return ry_fail_nomem(err, 2 * s.n_out * sizeof *floats);
    const ry_linear_stored stored = {panels->data, floats, floats + s.n_out};
    const int adds = which == RY_LLAMA_PROJ || which == RY_LLAMA_DOWN;
    const ry_linear_spec spec = {.n_out = s.n_out,
                                 .n_in = s.n_in,
                                 .epilogue = adds ? RY_EPI_RESIDUAL : RY_EPI_NONE,
                                 .dtype = c->stored,
                                 .stored = &stored,
                                 .few_rows = 1};
    renyi_status st = read_columns(floats, columns, err);
    if (!st) st = ry_linear_new(out, &spec, level, al, err);
    ry_free(al, floats);
    return st;
}
