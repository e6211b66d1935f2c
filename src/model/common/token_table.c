/* token_table.c - see token_table.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/token_table.h"

#include "base/alloc.h"
#include "base/status.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static renyi_status check_table(ry_loader *ld, const ry_tensor *t, size_t room)
{
    const size_t n = (size_t)ry_tensor_elements(t), size = ry_dtype_size(t->dtype);
    for (size_t at = 0; at < n; at += room) {
        ry_tensor piece = *t;
        piece.n_dims = 1;
        piece.shape[0] = n - at < room ? n - at : room;
        piece.bytes = piece.shape[0] * size;
        piece.data = (const char *)t->data + at * size;
        RY_TRY(ry_tensor_to_f32(&piece, ld->scratch, ld->err));
        for (size_t i = 0; i < piece.shape[0]; i++)
            if (!isfinite(ld->scratch[i]))
                return ry_fail(ld->err, RENYI_ERR_FORMAT, -1,
                               "tensor '%.120s' holds %s at element %zu of %zu; finite weights "
                               "wanted",
                               t->name, isnan(ld->scratch[i]) ? "NaN" : "infinity", at + i, n);
    }
    return RENYI_OK;
}

renyi_status ry_token_table_load(ry_tensor *out, ry_loader *ld, size_t room)
{
    const ry_tensor *from = ry_loader_find(ld, RY_TOKEN_EMBED, 0);
    RY_TRY(check_table(ld, from, room));
    void *copy = ry_alloc(ld->al, (size_t)from->bytes, 1);
    if (!copy) return ry_fail_nomem(ld->err, (size_t)from->bytes);
    memcpy(copy, from->data, (size_t)from->bytes);
    ry_tensors_drop_pages(ld->set, from);
    *out = *from;
    out->name = "";
    out->data = copy;
    ld->done++;
    ld->n_params += ry_tensor_elements(from);
    return RENYI_OK;
}

void ry_token_table_free(ry_tensor *t, const renyi_allocator *al)
{
    ry_free(al, (void *)(uintptr_t)t->data);
    *t = (ry_tensor){0};
}

void ry_token_table_row(const ry_tensor *t, size_t token, float *out)
{
    ry_tensor row = *t;
    row.n_dims = 1;
    row.shape[0] = t->shape[1];
    row.bytes = row.shape[0] * ry_dtype_size(t->dtype);
    row.data = (const char *)t->data + token * row.bytes;
    const renyi_status st = ry_tensor_to_f32(&row, out, NULL);
    assert(!st); /* a float type, or it would not have been loaded */
    (void)st;
}
