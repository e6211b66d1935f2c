/* weight_loader_rows.c - matrices that are packed as they are read, some rows at a time: of a
 * language model's largest, the floats alone would be half a gigabyte.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/weight_loader.h"

#include "base/status.h"

#include <assert.h>
#include <math.h>

/* Rows first .. first + count of a tensor [rows, n_in] */
static renyi_status read_slice(const ry_tensor *t, size_t first, size_t count, float *to,
                               renyi_error *err)
{
    const size_t n_in = (size_t)t->shape[1], row = n_in * ry_dtype_size(t->dtype);
    ry_tensor slice = *t;
    slice.shape[0] = count;
    slice.data = (const char *)t->data + first * row;
    slice.bytes = count * row;
    RY_TRY(ry_tensor_to_f32(&slice, to, err));
    for (size_t i = 0; i < count * n_in; i++)
        if (!isfinite(to[i]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "tensor '%.120s' holds %s in row %zu; finite weights wanted", t->name,
                           isnan(to[i]) ? "NaN" : "infinity", first + i / n_in);
    return RENYI_OK;
}

renyi_status ry_parts_rows(const ry_parts *p, size_t first, size_t count, float *to,
                           renyi_error *err)
{
    size_t begin = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const ry_tensor *t = p->part[i];
        const size_t rows = (size_t)t->shape[0], from = first > begin ? first - begin : 0;
        if (first + count > begin && from < rows) {
            const size_t end = first + count - begin < rows ? first + count - begin : rows;
            RY_TRY(read_slice(t, from, end - from, to, err));
            to += (end - from) * t->shape[1];
        }
        begin += rows;
    }
    return RENYI_OK;
}

typedef struct reading {
    ry_loader *ld;
    ry_parts parts;
} reading;

/* ry_linear_reader.rows */
static renyi_status read_rows(void *user, size_t first, size_t count, float *to, renyi_error *err)
{
    const reading *r = user;
    size_t end = 0;
    RY_TRY(ry_parts_rows(&r->parts, first, count, to, err));
    for (uint32_t i = 0; i < r->parts.n; i++) { /* parts that end among these rows */
        end += (size_t)r->parts.part[i]->shape[0];
        if (end > first && end <= first + count)
            RY_TRY(ry_loader_finished(r->ld, r->parts.part[i]));
    }
    return RENYI_OK;
}

renyi_status ry_loader_rows(ry_loader *ld, const ry_linear_source *s, ry_linear **out)
{
    reading r = {.ld = ld, .parts.n = s->parts};
    const ry_linear_reader reader = {read_rows, &r};
    const ry_linear_spec spec = {.n_out = s->n_out,
                                 .n_in = s->n_in,
                                 .epilogue = s->epilogue,
                                 .dtype = s->dtype,
                                 .reader = &reader,
                                 .few_rows = 1};
    assert(!s->transposed);
    for (uint32_t i = 0; i < s->parts; i++) r.parts.part[i] = ry_loader_find(ld, s->w[i], s->block);
    return ry_linear_new(out, &spec, ld->level, ld->al, ld->err);
}
