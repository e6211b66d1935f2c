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
    if (s->dtype == RENYI_DTYPE_INT8)
        return p->scale[lane] * (float)(int8_t)s->bytes[ry_int8_place(lane, k)];
    const uint8_t byte = s->bytes[ry_int4_place(lane, k)];
    const int q = (lane < 8 ? byte & 15 : byte >> 4) - RY_INT4_ZERO;
    return p->scale[lane] * (float)s->bytes[ry_int4_step_place(lane, k / RY_GROUP)] * (float)q;
}

static void measure_rows(sample *s, size_t count, size_t n_in)
{
    const int is_packed = s->dtype != RENYI_DTYPE_BF16;
    ry_panel p = {.bytes = s->bytes};
    if (is_packed) ry_panel_make(&p, s->dtype, s->rows, count, n_in, s->scratch);
    for (size_t lane = 0; lane < count; lane++)
        for (size_t k = 0; k < n_in; k++) {
            const float w = s->rows[lane * n_in + k];
            const float got = is_packed ? packed_at(s, &p, lane, k) : bf16_of(w);
            const double error = (double)got - (double)w;
            s->lost += error * error;
            s->all += (double)w * (double)w;
        }
}

/* ---- matrices ------------------------------------------------------------------------------ */

static renyi_status measure_layer(sample *s, const ry_tensor_naming *n, const ry_tensors *set,
                                  uint32_t layer, renyi_error *err)
{
    static const ry_tensor_role roles[] = {RY_Q_W,   RY_K_W,  RY_V_W,  RY_PROJ_W,
                                           RY_FC1_W, RY_UP_W, RY_FC2_W};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const ry_tensor *t = ry_tensor_of_role(n, set, roles[i], layer);
        const size_t n_in = (size_t)t->shape[1];
        const size_t count = t->shape[0] < RY_PANEL ? (size_t)t->shape[0] : RY_PANEL;
        const ry_parts part = {.part = {t}, .n = 1, .n_in = n_in, .set = set};
        RY_TRY(ry_parts_rows(&part, 0, count, s->rows, err));
        measure_rows(s, count, n_in);
    }
    return RENYI_OK;
}

static renyi_status measure(sample *s, const ry_llama_config *c, const ry_tensors *set,
                            renyi_error *err)
{
    const uint32_t layers[] = {0, c->n_layers / 2, c->n_layers - 1};
    ry_tensor_naming n;
    if (!ry_llama_naming_find(&n, set)) return RENYI_OK; /* ry_llama_configure found it */
    for (int i = 0; i < 3; i++)
        if (!i || layers[i] != layers[i - 1]) RY_TRY(measure_layer(s, &n, set, layers[i], err));
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
