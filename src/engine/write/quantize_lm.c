/* quantize_lm.c - renyi_lm_quantize: a language model whose matrices are packed panels that run
 * without conversion (model/llama/llama_tensors.h), written panel by panel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/write/quantize_file.h"
#include "kernels/linear/panels.h"
#include "model/llama/llama_tensors.h"

#include <string.h>

/* A tensor of the new file: the panels or the columns of one matrix. */
typedef struct item {
    ry_llama_matrix which;
    uint32_t layer;
    ry_stored_part part;
    float *columns; /* [2, outputs] of its matrix, filled while the panels are made */
} item;

typedef struct job {
    renyi_lm_quantize_options opt;
    ry_quantize_file file;
    ry_llama_config config;
    ry_tensor_naming naming, stored; /* of the original, and of the new file */
    item *items;                     /* [file.n] */
    float *columns;                  /* of all matrices */
    /* the current panel */
    const item *panel_of;
    size_t panel_at;
    ry_panel panel;
    float *rows, *scratch;
} job;

/* ---- panels -------------------------------------------------------------------------------- */

static ry_parts parts_of(const job *b, const item *it)
{
    return ry_llama_parts(&b->config, &b->naming, b->file.ckpt.tensors, it->which, it->layer);
}

static void drop_parts(const job *b, const item *it)
{
    const ry_parts p = parts_of(b, it);
    for (uint32_t i = 0; i < p.n; i++) ry_tensors_drop_pages(b->file.ckpt.tensors, p.part[i]);
}

/* Packs panel p of a matrix into b->panel and fills its columns. */
static renyi_status take_panel(job *b, const item *it, size_t p, renyi_error *err)
{
    const ry_matrix_shape s = ry_llama_shape(&b->config, it->which);
    const size_t first = p * RY_PANEL, left = s.n_out - first;
    const size_t count = left < RY_PANEL ? left : RY_PANEL;
    const ry_parts parts = parts_of(b, it);
    if (b->panel_of == it && b->panel_at == p) return RENYI_OK;
    RY_TRY(ry_parts_rows(&parts, first, count, b->rows, err));
    ry_panel_make(&b->panel, b->opt.dtype, b->rows, count, s.n_in, b->scratch);
    memcpy(it->columns + first, b->panel.scale, count * sizeof(float));
    memcpy(it->columns + s.n_out + first, b->panel.sum, count * sizeof(float));
    b->panel_of = it;
    b->panel_at = p;
    return RENYI_OK;
}

/* ry_quantize_make. A piece may begin and end inside a panel. */
static renyi_status make_piece(void *user, size_t index, uint64_t at, char *out, size_t n,
                               renyi_error *err)
{
    job *b = user;
    const item *it = &b->items[index];
    const ry_tensor *t = &b->file.tensors[index];
    if (it->part == RY_STORED_COLUMNS) {
        memcpy(out, (const char *)it->columns + at, n);
        return RENYI_OK;
    }
    const size_t size = (size_t)t->shape[1];
    for (size_t i = 0, count; i < n; i += count) {
        const size_t place = (size_t)at + i, inside = place % size;
        count = size - inside < n - i ? size - inside : n - i;
        RY_TRY(take_panel(b, it, place / size, err));
        memcpy(out + i, (const char *)b->panel.bytes + inside, count);
    }
    if (at + n == t->bytes) drop_parts(b, it);
    return RENYI_OK;
}

/* ---- the tensors of the new file ----------------------------------------------------------- */

/* One part of all matrices. */
static void add_matrices(job *b, ry_stored_part part)
{
    float *columns = b->columns;
    for (int which = 0; which < RY_N_LLAMA_MATRICES; which++)
        for (uint32_t i = 0; i < (which == RY_LLAMA_HEAD ? 1 : b->config.n_layers); i++) {
            const ry_llama_matrix m = (ry_llama_matrix)which;
            ry_tensor t;
            ry_llama_stored_tensor(&t, b->file.names[b->file.n], &b->config, m, i, part,
                                   b->opt.dtype);
            b->items[ry_quantize_add(&b->file, t, NULL)] =
                (item){.which = m, .layer = i, .part = part, .columns = columns};
            columns += 2 * ry_llama_shape(&b->config, m).n_out;
        }
}

/* Tensors of the language model that are not matrices get the names of the new file; tensors of
 * other parts keep their names. */
static void add_copy(job *b, const ry_tensor *from)
{
    uint32_t block;
    ry_tensor t = *from;
    char *name = b->file.names[b->file.n];
    const ry_tensor_name *row = ry_tensor_name_match(&b->naming, from->name, &block);
    for (size_t i = 0; row && i < b->stored.n_names; i++)
        if (b->stored.table[i].role == row->role) {
            ry_tensor_name_write(name, &b->stored, &b->stored.table[i], block);
            t.name = name;
        }
    if (!row || t.name != from->name) ry_quantize_add(&b->file, t, from);
}

static void add_copies(job *b, size_t size)
{
    const ry_tensors *set = b->file.ckpt.tensors;
    for (size_t i = 0; i < ry_tensors_count(set); i++)
        if (ry_dtype_size(ry_tensors_at(set, i)->dtype) == size) add_copy(b, ry_tensors_at(set, i));
}

static renyi_status take_memory(job *b, renyi_error *err)
{
    const ry_llama_config *c = &b->config;
    const renyi_allocator *al = &b->file.al;
    const size_t most = ry_tensors_count(b->file.ckpt.tensors) +
                        ((size_t)c->n_layers + 1) * RY_N_STORED_PARTS * RY_N_LLAMA_MATRICES;
    size_t outputs = 0, width = 0;
    for (int which = 0; which < RY_N_LLAMA_MATRICES; which++) {
        const ry_matrix_shape s = ry_llama_shape(c, (ry_llama_matrix)which);
        outputs += s.n_out * (which == RY_LLAMA_HEAD ? 1 : c->n_layers);
        if (s.n_in > width) width = s.n_in;
    }
    RY_TRY(ry_quantize_reserve(&b->file, most, err));
    b->items = ry_alloc(al, most, sizeof *b->items);
    b->columns = ry_alloc(al, 2 * outputs, sizeof *b->columns);
    b->rows = ry_alloc(al, RY_PANEL * width, sizeof *b->rows);
    b->scratch = ry_alloc(al, width + 64, sizeof *b->scratch);
    b->panel.bytes = ry_alloc(al, ry_panel_bytes(RENYI_DTYPE_INT8, width + 64), 1);
    if (b->items && b->columns && b->rows && b->scratch && b->panel.bytes) return RENYI_OK;
    return ry_fail_nomem(err, most * sizeof *b->items);
}

/* Panels before their columns, which are known only when the panels are made. A panel has a
 * multiple of 32 bytes, so what follows stays aligned. */
static renyi_status list_tensors(job *b, renyi_error *err)
{
    RY_TRY(take_memory(b, err));
    add_copies(b, 8);
    add_matrices(b, RY_STORED_PANELS);
    add_matrices(b, RY_STORED_COLUMNS);
    for (size_t size = 4; size; size /= 2) add_copies(b, size);
    b->file.result.n_quantized = 4 * b->config.n_layers + 1;
    return RENYI_OK;
}

/* ---- the whole file ------------------------------------------------------------------------ */

static renyi_status check_source(job *b, const char *in, renyi_error *err)
{
    const renyi_status st = ry_llama_configure(&b->config, &b->file.ckpt, err);
    if (st) return ry_fail_in(err, st, in);
    if (b->config.stored)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s is quantized already (%s); use the original", in,
                       renyi_dtype_name(b->config.stored));
    if (b->config.paired)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s is a GGUF, which runs as it is (--dtype chooses how); quantize the "
                       "model's safetensors instead",
                       in);
    (void)ry_llama_naming_find(&b->naming, b->file.ckpt.tensors); /* configure has found it */
    b->stored = ry_llama_naming(RY_STORED_LAYOUT, b->config.n_layers);
    return RENYI_OK;
}

static json_t *describe_scheme(renyi_dtype dtype)
{
    const int is_int4 = dtype == RENYI_DTYPE_INT4;
    return json_pack("{s:i, s:s, s:s, s:s}", "version", 1, "weights",
                     is_int4 ? "int4, symmetric, groups of 32 inputs"
                             : "int8, symmetric, per output channel",
                     "activations", is_int4 ? "int8 per token and group" : "per token", "renyi",
                     renyi_version());
}

static renyi_status quantize_lm(job *b, const char *in, const char *out, renyi_error *err)
{
    ry_quantize_file *f = &b->file;
    RY_TRY(ry_checkpoint_open(&f->ckpt, in, &f->limits, &f->al, err));
    RY_TRY(check_source(b, in, err));
    RY_TRY(list_tensors(b, err));
    const ry_quantize_meta meta = {.scheme_key = RY_QUANT_LM_KEY,
                                   .scheme = describe_scheme(b->opt.dtype)};
    return ry_quantize_write(f, out, &meta, err);
}

renyi_status renyi_lm_quantize(const char *in, const char *out,
                               const renyi_lm_quantize_options *opt, renyi_quantize_result *result,
                               renyi_error *err)
{
    job b = {0};
    renyi_lm_quantize_options *o = &b.opt;
    if (!in || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_quantize: NULL path");
    RY_TRY(ry_struct_read(o, sizeof *o, opt, "renyi_lm_quantize_options", err));
    RY_TRY(ry_allocator_check(&o->allocator, "renyi_lm_quantize_options", err));
    if (o->dtype == RENYI_DTYPE_DEFAULT) o->dtype = RENYI_DTYPE_INT8;
    if (o->dtype != RENYI_DTYPE_INT8 && o->dtype != RENYI_DTYPE_INT4)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a language model is quantized to int8 or int4");
    b.file = (ry_quantize_file){.limits = o->limits,
                                .al = o->allocator,
                                .progress = o->progress,
                                .progress_user = o->progress_user,
                                .make = make_piece,
                                .make_user = &b};
    const renyi_status st = quantize_lm(&b, in, out, err);
    if (!st && result) *result = b.file.result;
    void *const blocks[] = {b.items, b.columns, b.rows, b.scratch, b.panel.bytes};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) ry_free(&o->allocator, blocks[i]);
    ry_quantize_close(&b.file);
    return st;
}
