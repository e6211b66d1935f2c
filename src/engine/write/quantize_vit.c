/* quantize_vit.c - renyi_model_quantize: a checkpoint with 8-bit weights, written row by row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/write/calibration.h"
#include "engine/write/quantize_meta.h"
#include "formats/safetensors.h"
#include "kernels/linear/quant.h"

#include <math.h>
#include <string.h>

#define MAX_SPREAD 8.0 /* renyi_quantize_options.max_spread */

/* Integers whose pairs fit in 16 bits: all CPU levels then compute with the same. */
enum { FOR_ALL_CPUS = 1 };

typedef enum item_kind { ITEM_COPY, ITEM_WEIGHT, ITEM_SCALE, ITEM_RANGE } item_kind;

typedef struct item { /* where the bytes of a tensor come from */
    item_kind kind;
    const ry_tensor *from;
    float range[2];
} item;

typedef char beside_name[RY_NAME_MAX + RY_QUANT_SUFFIX_MAX];

typedef struct job {
    renyi_quantize_options opt;
    ry_checkpoint ckpt;
    ry_tensor_naming naming;
    ry_vit_config config;
    /* what will be written; n of each */
    ry_tensor *tensors;
    item *items;
    beside_name *names;
    size_t n;
    /* the row at work */
    const ry_tensor *row_of;
    size_t row_at;
    float *row, scale;
    int8_t *q;
    uint64_t done, total; /* bytes */
    renyi_quantize_result result;
} job;

/* ---- rows ----------------------------------------------------------------------------------- */

/* Row j of a weight: job.q and job.scale. */
static renyi_status take_row(job *b, const ry_tensor *w, size_t j, renyi_error *err)
{
    const size_t n = (size_t)w->shape[1], bytes = n * ry_dtype_size(w->dtype);
    const ry_tensor row = {.name = w->name,
                           .dtype = w->dtype,
                           .n_dims = 1,
                           .shape = {n},
                           .data = (const char *)w->data + j * bytes,
                           .bytes = bytes};
    if (b->row_of == w && b->row_at == j) return RENYI_OK;
    RY_TRY(ry_tensor_to_f32(&row, b->row, err));
    for (size_t k = 0; k < n; k++)
        if (!isfinite(b->row[k]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "tensor '%.120s' holds %s in row %zu; finite weights wanted", w->name,
                           isnan(b->row[k]) ? "NaN" : "infinity", j);
    b->scale = ry_quant_channel(b->q, b->row, n, FOR_ALL_CPUS);
    b->row_of = w;
    b->row_at = j;
    return RENYI_OK;
}

static renyi_status fill_scales(job *b, const ry_tensor *w, uint64_t at, char *out, size_t n,
                                renyi_error *err)
{
    for (size_t i = 0; i < n; i += sizeof(float)) {
        RY_TRY(take_row(b, w, (size_t)(at + i) / sizeof(float), err));
        memcpy(out + i, &b->scale, sizeof(float));
    }
    return RENYI_OK;
}

/* A piece may begin and end inside a row. */
static renyi_status fill_weights(job *b, const ry_tensor *w, uint64_t at, char *out, size_t n,
                                 renyi_error *err)
{
    const size_t width = (size_t)w->shape[1];
    for (size_t i = 0, count; i < n; i += count) {
        const size_t place = (size_t)at + i, inside = place % width;
        count = width - inside < n - i ? width - inside : n - i;
        RY_TRY(take_row(b, w, place / width, err));
        memcpy(out + i, b->q + inside, count);
    }
    return RENYI_OK;
}

static renyi_status fill(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                         renyi_error *err)
{
    job *b = user;
    const item *it = &b->items[t - b->tensors];
    switch (it->kind) {
    case ITEM_COPY: memcpy(out, (const char *)it->from->data + at, n); break;
    case ITEM_RANGE: memcpy(out, (const char *)it->range + at, n); break;
    case ITEM_SCALE: RY_TRY(fill_scales(b, it->from, at, out, n, err)); break;
    case ITEM_WEIGHT: RY_TRY(fill_weights(b, it->from, at, out, n, err)); break;
    }
    if (at + n == t->bytes) ry_tensors_drop_pages(b->ckpt.tensors, it->from);
    b->done += n;
    if (b->opt.progress && b->opt.progress(b->opt.progress_user, b->done, b->total))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

/* ---- what will be written ------------------------------------------------------------------- */

static void add(job *b, ry_tensor t, item it)
{
    t.bytes = ry_tensor_elements(&t) * ry_dtype_size(t.dtype);
    b->total += t.bytes;
    b->tensors[b->n] = t;
    b->items[b->n++] = it;
}

static renyi_product product_of(ry_tensor_role role)
{
    switch (role) {
    case RY_PROJ_W: return RENYI_PRODUCT_PROJ;
    case RY_FC1_W: return RENYI_PRODUCT_FC1;
    case RY_FC2_W: return RENYI_PRODUCT_FC2;
    default: return RENYI_PRODUCT_QKV;
    }
}

static renyi_status add_floats(job *b, const ry_tensor *w, ry_tensor_role role, uint32_t block,
                               renyi_error *err)
{
    const renyi_quantize_options *o = &b->opt;
    item it = {.kind = ITEM_SCALE, .from = w};
    ry_tensor t = {.dtype = RY_F32, .n_dims = 1, .shape = {w->shape[0]}};
    ry_quant_part_name(b->names[b->n], w->name, RY_QUANT_SCALE);
    t.name = b->names[b->n];
    add(b, t, it);
    if (!o->calibration) return RENYI_OK;
    renyi_calibrated_range range;
    RY_TRY(renyi_calibration_range(o->calibration, block, product_of(role), o->rule, o->percentile,
                                   &range, err));
    if (range.spread > (o->max_spread > 0.0 ? o->max_spread : MAX_SPREAD)) return RENYI_OK;
    b->result.n_ranges++;
    it.kind = ITEM_RANGE;
    it.range[0] = range.low;
    it.range[1] = range.high;
    t.shape[0] = 2;
    ry_quant_part_name(b->names[b->n], w->name, RY_QUANT_RANGE);
    t.name = b->names[b->n];
    add(b, t, it);
    return RENYI_OK;
}

/* What becomes of a tensor, as far as it has elements of `size` bytes: wider types come first, so
 * that all lie aligned. */
static renyi_status list_tensor(job *b, const ry_tensor *t, size_t size, renyi_error *err)
{
    uint32_t block;
    const ry_tensor_name *row = ry_tensor_name_match(&b->naming, t->name, &block);
    if (!row || !ry_tensor_role_is_product(row->role)) {
        if (ry_dtype_size(t->dtype) == size) add(b, *t, (item){.kind = ITEM_COPY, .from = t});
        return RENYI_OK;
    }
    if (size == sizeof(float)) return add_floats(b, t, row->role, block, err);
    if (size > sizeof(int8_t)) return RENYI_OK;
    ry_tensor q = *t;
    q.dtype = RY_I8;
    add(b, q, (item){.kind = ITEM_WEIGHT, .from = t});
    b->result.n_quantised++;
    return RENYI_OK;
}

static renyi_status list_tensors(job *b, renyi_error *err)
{
    const ry_tensors *set = b->ckpt.tensors;
    const renyi_allocator *al = &b->opt.allocator;
    const size_t n = ry_tensors_count(set), most = 3 * n;
    const uint32_t dim = b->config.dim, mlp = b->config.mlp_dim, width = dim > mlp ? dim : mlp;
    b->tensors = ry_alloc(al, most, sizeof *b->tensors);
    b->items = ry_alloc(al, most, sizeof *b->items);
    b->names = ry_alloc(al, most, sizeof *b->names);
    b->row = ry_alloc(al, width, sizeof *b->row);
    b->q = ry_alloc(al, width, sizeof *b->q);
    if (!b->tensors || !b->items || !b->names || !b->row || !b->q)
        return ry_fail_nomem(err, most * sizeof *b->names);
    for (size_t size = 8; size; size /= 2)
        for (size_t i = 0; i < n; i++) RY_TRY(list_tensor(b, ry_tensors_at(set, i), size, err));
    for (size_t i = 0; i < n; i++) b->result.bytes_in += ry_tensors_at(set, i)->bytes;
    b->result.bytes_out = b->total;
    return RENYI_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static renyi_status check_source(job *b, const char *in, renyi_error *err)
{
    const renyi_calibration *c = b->opt.calibration;
    const renyi_status st = ry_vit_configure(&b->config, &b->ckpt, 0, err);
    if (st) return ry_fail_in(err, st, in);
    (void)ry_vit_naming_find(&b->naming, b->ckpt.tensors); /* configure has found it */
    if (b->config.n_quantized)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s is quantized already (%s); use the original", in,
                       b->config.quantization);
    if (c && !ry_calibration_fits(c, b->config.n_blocks, b->config.dim))
        return ry_fail(err, RENYI_ERR_ARG, -1, "the calibration is of another model than %s", in);
    return RENYI_OK;
}

static renyi_status quantise(job *b, const char *in, const char *out, renyi_error *err)
{
    const renyi_quantize_options *o = &b->opt;
    const ry_quantize_scheme scheme = {o->rule, o->percentile,
                                       renyi_calibration_images(o->calibration)};
    ry_quantize_meta meta;
    RY_TRY(ry_checkpoint_open(&b->ckpt, in, &o->limits, &o->allocator, err));
    RY_TRY(check_source(b, in, err));
    RY_TRY(ry_quantize_target(&b->ckpt, out, err));
    RY_TRY(list_tensors(b, err));
    renyi_status st =
        ry_quantize_meta_make(&meta, &b->ckpt, &b->config, &scheme, &o->allocator, err);
    const ry_safetensors_content content = {b->tensors, b->n, meta.pairs, fill, b};
    if (!st) st = ry_safetensors_write(out, &content, &o->allocator, err);
    ry_quantize_meta_free(&meta, &o->allocator);
    return st;
}

static void close_job(job *b)
{
    const renyi_allocator *al = &b->opt.allocator;
    ry_free(al, b->tensors);
    ry_free(al, b->items);
    ry_free(al, b->names);
    ry_free(al, b->row);
    ry_free(al, b->q);
    ry_checkpoint_close(&b->ckpt, al);
}

renyi_status renyi_model_quantize(const char *in, const char *out,
                                  const renyi_quantize_options *opt, renyi_quantize_result *result,
                                  renyi_error *err)
{
    job b = {0};
    if (!in || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_quantize: NULL path");
    if (opt) {
        if (opt->struct_size < sizeof opt->struct_size || opt->struct_size > sizeof *opt)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_quantize_options: struct_size %u, this library knows %zu",
                           opt->struct_size, sizeof *opt);
        memcpy(&b.opt, opt, opt->struct_size);
    }
    if (!b.opt.allocator.alloc != !b.opt.allocator.release)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "allocator has one of alloc and release; both or none wanted");
    const renyi_status st = quantise(&b, in, out, err);
    if (!st && result) *result = b.result;
    close_job(&b);
    return st;
}
