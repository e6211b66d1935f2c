/* panels.c - see panels.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/panels.h"

#include "kernels/linear/quant4.h"
#include "kernels/rows/quant.h"

#include <assert.h>
#include <string.h>

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

/* scratch: numbers of the channel, and behind them what ry_quant4_channel needs */
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
