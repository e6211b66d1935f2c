/* quantize_vit.c - renyi_model_quantize: a vision model with 8-bit weights, written row by row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/write/calibration.h"
#include "engine/write/quantize_file.h"
#include "kernels/linear/quant.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_SPREAD 8.0 /* default of renyi_quantize_options.max_spread */

/* Integers whose pairs fit in 16 bits, so that all CPU levels compute with the same ones. */
enum { FOR_ALL_CPUS = 1 };

typedef enum item_kind { ITEM_COPY, ITEM_WEIGHT, ITEM_SCALE, ITEM_RANGE } item_kind;

/* A tensor of the new file, as made from a weight of the original. */
typedef struct item {
    item_kind kind;
    const ry_tensor *weight;
    float range[2];
} item;

typedef struct job {
    renyi_quantize_options opt;
    ry_quantize_file file;
    ry_tensor_naming naming;
    ry_vit_config config;
    item *items; /* [file.n] */
    /* the current row */
    const ry_tensor *row_of;
    size_t row_at;
    float *row, scale;
    int8_t *q;
} job;

/* ---- rows ---------------------------------------------------------------------------------- */

/* Quantizes row j of a weight into b->q and b->scale. */
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
                           "tensor '%.120s' has %s in row %zu; weights must be finite", w->name,
                           isnan(b->row[k]) ? "NaN" : "infinity", j);
    b->scale = ry_quant_channel(b->q, b->row, n, FOR_ALL_CPUS);
    b->row_of = w;
    b->row_at = j;
    return RENYI_OK;
}

static renyi_status make_scales(job *b, const ry_tensor *w, uint64_t at, char *out, size_t n,
                                renyi_error *err)
{
    for (size_t i = 0; i < n; i += sizeof(float)) {
        RY_TRY(take_row(b, w, (size_t)(at + i) / sizeof(float), err));
        memcpy(out + i, &b->scale, sizeof(float));
    }
    return RENYI_OK;
}

/* A piece may begin and end inside a row. */
static renyi_status make_weights(job *b, const ry_tensor *w, uint64_t at, char *out, size_t n,
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

/* ry_quantize_make */
static renyi_status make_piece(void *user, size_t index, uint64_t at, char *out, size_t n,
                               renyi_error *err)
{
    job *b = user;
    const item *it = &b->items[index];
    switch (it->kind) {
    case ITEM_COPY: break;
    case ITEM_RANGE: memcpy(out, (const char *)it->range + at, n); break;
    case ITEM_SCALE: RY_TRY(make_scales(b, it->weight, at, out, n, err)); break;
    case ITEM_WEIGHT: RY_TRY(make_weights(b, it->weight, at, out, n, err)); break;
    }
    if (at + n == b->file.tensors[index].bytes)
        ry_tensors_drop_pages(b->file.ckpt.tensors, it->weight);
    return RENYI_OK;
}

/* ---- the tensors of the new file ----------------------------------------------------------- */

static renyi_product product_of(ry_tensor_role role)
{
    switch (role) {
    case RY_PROJ_W: return RENYI_PRODUCT_PROJ;
    case RY_FC1_W:
    case RY_UP_W: return RENYI_PRODUCT_FC1;
    case RY_FC2_W: return RENYI_PRODUCT_FC2;
    default: return RENYI_PRODUCT_QKV;
    }
}

/* A vector of n floats beside the weight of `it`. */
static void add_vector(job *b, item it, ry_quant_part part, uint64_t n)
{
    char *name = b->file.names[b->file.n];
    ry_quant_part_name(name, it.weight->name, part);
    const ry_tensor t = {.name = name, .dtype = RY_F32, .n_dims = 1, .shape = {n}};
    b->items[ry_quantize_add(&b->file, t, NULL)] = it;
}

/* Scales, and the range of inputs if it was calibrated and is narrow enough. */
static renyi_status add_vectors(job *b, const ry_tensor *w, ry_tensor_role role, uint32_t block,
                                renyi_error *err)
{
    const renyi_quantize_options *o = &b->opt;
    renyi_calibrated_range range;
    add_vector(b, (item){.kind = ITEM_SCALE, .weight = w}, RY_QUANT_SCALE, w->shape[0]);
    if (!o->calibration) return RENYI_OK;
    RY_TRY(renyi_calibration_range(o->calibration, block, product_of(role), o->rule, o->percentile,
                                   &range, err));
    if (range.spread > (o->max_spread > 0.0 ? o->max_spread : MAX_SPREAD)) return RENYI_OK;
    b->file.result.n_ranges++;
    add_vector(b, (item){.kind = ITEM_RANGE, .weight = w, .range = {range.low, range.high}},
               RY_QUANT_RANGE, 2);
    return RENYI_OK;
}

/* Adds what a tensor of the original becomes, as far as it has elements of `size` bytes. */
static renyi_status list_tensor(job *b, const ry_tensor *t, size_t size, renyi_error *err)
{
    uint32_t block;
    const ry_tensor_name *row = ry_tensor_name_match(&b->naming, t->name, &block);
    if (!row || !ry_tensor_role_is_product(row->role)) {
        if (ry_dtype_size(t->dtype) == size)
            b->items[ry_quantize_add(&b->file, *t, t)] = (item){.kind = ITEM_COPY};
        return RENYI_OK;
    }
    if (size == sizeof(float)) return add_vectors(b, t, row->role, block, err);
    if (size > sizeof(int8_t)) return RENYI_OK;
    ry_tensor q = *t;
    q.dtype = RY_I8;
    b->items[ry_quantize_add(&b->file, q, NULL)] = (item){.kind = ITEM_WEIGHT, .weight = t};
    b->file.result.n_quantized++;
    return RENYI_OK;
}

static renyi_status list_tensors(job *b, renyi_error *err)
{
    const ry_tensors *set = b->file.ckpt.tensors;
    const renyi_allocator *al = &b->file.al;
    const size_t n = ry_tensors_count(set), most = 3 * n;
    const uint32_t dim = b->config.dim, mlp = b->config.mlp_dim, width = dim > mlp ? dim : mlp;
    RY_TRY(ry_quantize_reserve(&b->file, most, err));
    b->items = ry_alloc(al, most, sizeof *b->items);
    b->row = ry_alloc(al, width, sizeof *b->row);
    b->q = ry_alloc(al, width, sizeof *b->q);
    if (!b->items || !b->row || !b->q) return ry_fail_nomem(err, most * sizeof *b->items);
    for (size_t size = 8; size; size /= 2)
        for (size_t i = 0; i < n; i++) RY_TRY(list_tensor(b, ry_tensors_at(set, i), size, err));
    return RENYI_OK;
}

/* ---- the whole file ------------------------------------------------------------------------ */

static renyi_status check_source(job *b, const char *in, renyi_error *err)
{
    const renyi_calibration *c = b->opt.calibration;
    const renyi_status st = ry_vit_configure(&b->config, &b->file.ckpt, 0, err);
    if (st) return ry_fail_in(err, st, in);
    (void)ry_vit_naming_find(&b->naming, b->file.ckpt.tensors); /* configure has found it */
    if (b->config.n_quantized)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s is quantized already (%s); use the original", in,
                       b->config.quantization);
    if (c && !ry_calibration_fits(c, b->config.n_blocks, b->config.dim))
        return ry_fail(err, RENYI_ERR_ARG, -1, "the calibration is of another model than %s", in);
    return RENYI_OK;
}

static json_t *describe_scheme(const renyi_quantize_options *o)
{
    const uint64_t n_images = renyi_calibration_images(o->calibration);
    char activations[64] = "per token";
    if (n_images && o->rule == RENYI_RANGE_MAX)
        snprintf(activations, sizeof activations, "static max");
    else if (n_images)
        snprintf(activations, sizeof activations, "static percentile %g",
                 o->percentile == 0.0 ? 99.9 : o->percentile);
    return json_pack("{s:i, s:s, s:s, s:I, s:[s, s, s, s], s:s}", "version", RY_QUANT_VERSION,
                     "weights", "int8, symmetric, per output channel", "activations", activations,
                     "calibration_photos", (json_int_t)n_images, "products", "qkv", "proj", "fc1",
                     "fc2", "renyi", renyi_version());
}

static renyi_status quantize_vit(job *b, const char *in, const char *out, renyi_error *err)
{
    ry_quantize_file *f = &b->file;
    RY_TRY(ry_checkpoint_open(&f->ckpt, in, &f->limits, &f->al, err));
    RY_TRY(check_source(b, in, err));
    RY_TRY(list_tensors(b, err));
    const ry_quantize_meta meta = {.scheme_key = RY_QUANT_KEY,
                                   .scheme = describe_scheme(&b->opt),
                                   .n_heads = b->config.n_heads,
                                   .architecture = b->config.architecture};
    return ry_quantize_write(f, out, &meta, err);
}

renyi_status renyi_model_quantize(const char *in, const char *out,
                                  const renyi_quantize_options *opt, renyi_quantize_result *result,
                                  renyi_error *err)
{
    job b = {0};
    renyi_quantize_options *o = &b.opt;
    if (!in || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_quantize: NULL path");
    RY_TRY(ry_struct_read(o, sizeof *o, opt, "renyi_quantize_options", err));
    RY_TRY(ry_allocator_check(&o->allocator, "renyi_quantize_options", err));
    b.file = (ry_quantize_file){.limits = o->limits,
                                .al = o->allocator,
                                .progress = o->progress,
                                .progress_user = o->progress_user,
                                .make = make_piece,
                                .make_user = &b};
    const renyi_status st = quantize_vit(&b, in, out, err);
    if (!st && result) *result = b.file.result;
    ry_free(&o->allocator, b.items);
    ry_free(&o->allocator, b.row);
    ry_free(&o->allocator, b.q);
    ry_quantize_close(&b.file);
    return st;
}
