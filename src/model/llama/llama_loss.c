/* llama_loss.c - measures the rounding of weights: some rows are packed as the kernels need them
 * and read back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llama/llama_loss.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/panels.h"
#include "kernels/linear/quant.h"
#include "model/common/weight_loader.h"
#include "model/llama/llama_tensors.h"

#include <math.h>
#include <string.h>

/* Buffers for the widest matrix. */
typedef struct sample {
    renyi_dtype dtype;
    float *rows;    /* [RY_PANEL, n_in] */
    float *scratch; /* [n_in + 64] */
    uint8_t *bytes; /* a panel */
    double lost, all;
} sample;

/* ---- numbers that the kernels see ---------------------------------------------------------- */

static float bf16_of(float x)
{
    uint16_t half;
    uint32_t bits;
    float out;
    ry_quant_scalar.to_bf16(&half, 1, &x, 1, 1, 1);
    bits = (uint32_t)half << 16;
    memcpy(&out, &bits, sizeof out);
    return out;
}

static float packed_at(const sample *s, const ry_panel *p, size_t lane, size_t k)
{
    const ry_groups g = ry_groups_of(RY_BLOCKS_NONE);
    if (s->dtype == RENYI_DTYPE_INT8)
        return p->scale[lane] * (float)(int8_t)s->bytes[ry_int8_place(lane, k)];
    return p->scale[lane] * ry_group_step(g, s->bytes, lane, k / RY_GROUP) *
           (float)ry_group_number(g, s->bytes, lane, k);
}

static void measure_rows(sample *s, size_t count, size_t n_in, int keeps)
{
    const int is_packed = s->dtype != RENYI_DTYPE_BF16;
    ry_panel p = {.bytes = s->bytes};
    if (is_packed && !keeps) ry_panel_make(&p, s->dtype, s->rows, count, n_in, s->scratch);
    for (size_t lane = 0; lane < count; lane++)
        for (size_t k = 0; k < n_in; k++) {
            const float w = s->rows[lane * n_in + k];
            const float got = keeps ? w : is_packed ? packed_at(s, &p, lane, k) : bf16_of(w);
            const double error = (double)got - (double)w;
            s->lost += error * error;
            s->all += (double)w * (double)w;
        }
}

/* ---- matrices ------------------------------------------------------------------------------ */

static renyi_status measure_matrix(sample *s, const ry_parts *parts, renyi_error *err)
{
    const int keeps = ry_parts_blocks(parts, s->dtype) != RY_BLOCKS_NONE;
    for (uint32_t i = 0; i < parts->n; i++) {
        const ry_parts one = {
            .part = {parts->part[i]}, .n = 1, .n_in = parts->n_in, .set = parts->set};
        const uint64_t rows = one.part[0]->shape[0];
        const size_t count = rows < RY_PANEL ? (size_t)rows : RY_PANEL;
        RY_TRY(ry_parts_rows(&one, 0, count, s->rows, err));
        measure_rows(s, count, parts->n_in, keeps);
    }
    return RENYI_OK;
}

static renyi_status measure(sample *s, const ry_llama_config *c, const ry_tensors *set,
                            renyi_error *err)
{
    const uint32_t layers[] = {0, c->n_layers / 2, c->n_layers - 1};
    ry_tensor_naming n;
    if (!ry_llama_naming_find(&n, set)) return RENYI_OK; /* ry_llama_configure found it */
    for (ry_llama_matrix which = RY_LLAMA_QKV; which < RY_N_LLAMA_MATRICES; which++)
        for (int i = 0; i < (which == RY_LLAMA_HEAD ? 1 : 3); i++) {
            if (i && layers[i] == layers[i - 1]) continue;
            const ry_parts parts = ry_llama_parts(c, &n, set, which, layers[i]);
            RY_TRY(measure_matrix(s, &parts, err));
        }
    return RENYI_OK;
}

renyi_status ry_llama_loss(double *out, const ry_llama_config *c, const ry_checkpoint *ckpt,
                           renyi_dtype dtype, const renyi_allocator *al, renyi_error *err)
{
    size_t widest = c->dim > c->mlp_dim ? c->dim : c->mlp_dim;
    if (ry_llama_q(c) > widest) widest = ry_llama_q(c);
    sample s = {.dtype = dtype};
    *out = 0.0;
    if (c->stored || dtype == RENYI_DTYPE_F32) return RENYI_OK;
    s.rows = ry_alloc(al, RY_PANEL * widest, sizeof *s.rows);
    s.scratch = ry_alloc(al, widest + 64, sizeof *s.scratch);
    const size_t panel = dtype == RENYI_DTYPE_BF16 ? 1 : ry_panel_bytes(dtype, widest);
    s.bytes = ry_alloc(al, panel, 1);
    const int has_memory = s.rows && s.scratch && s.bytes;
    const renyi_status st = has_memory ? measure(&s, c, ckpt->tensors, err)
                                       : ry_fail_nomem(err, RY_PANEL * widest * sizeof *s.rows);
    ry_free(al, s.rows);
    ry_free(al, s.scratch);
    ry_free(al, s.bytes);
    if (!st && s.all > 0.0) *out = sqrt(s.lost / s.all);
    return st;
}
