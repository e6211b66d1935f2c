/* tensor_read.c - see tensor_read.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/tensor_read.h"

#include "base/status.h"
#include "model/vit/vit_quant.h"

#include <math.h>
#include <string.h>

/* Index of the first NaN or infinity, or n. Whole blocks first: that loop has no branch. */
static size_t first_not_finite(const float *x, size_t n)
{
    enum { BLOCK = 4096 };
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t end = n - at < BLOCK ? n : at + BLOCK;
        unsigned bad = 0;
        for (size_t i = at; i < end; i++) {
            uint32_t bits;
            memcpy(&bits, x + i, sizeof bits);
            bad |= (bits & 0x7f800000u) == 0x7f800000u;
        }
        for (size_t i = at; bad && i < end; i++)
            if (!isfinite(x[i])) return i;
    }
    return n;
}

renyi_status ry_vit_read(float *out, const ry_tensor *t, const ry_tensors *set, renyi_error *err)
{
    const size_t n = (size_t)ry_tensor_elements(t);
    RY_TRY(t->dtype == RY_I8 ? ry_vit_dequantise(out, t, set, err) : ry_tensor_to_f32(t, out, err));
    const size_t bad = first_not_finite(out, n);
    if (bad == n) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "tensor '%.120s' holds %s at element %zu of %zu; finite weights wanted", t->name,
                   isnan(out[bad]) ? "NaN" : "infinity", bad, n);
}
