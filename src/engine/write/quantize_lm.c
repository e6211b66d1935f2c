/* quantize_lm.c - renyi_lm_quantize: a language model whose matrices are panels that run as they
 * are (model/llama/llama_tensors.h), written panel by panel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/write/quantize_meta.h"
#include "formats/safetensors.h"
#include "kernels/linear/panels.h"
#include "model/common/weight_loader.h"
#include "model/llama/llama_tensors.h"

#include <stdio.h>
#include <string.h>

typedef struct item {      /* where the bytes of a tensor come from */
    const ry_tensor *from; /* copied; NULL = panels or columns of a matrix */
    ry_llama_matrix which;
    uint32_t layer;
    ry_stored_part part;
    float *columns; /* [2, outputs] of its matrix, filled with the panels */
} item;

typedef char name_text[RY_NAME_MAX];

typedef struct job {
    renyi_lm_quantize_options opt;
    ry_checkpoint ckpt;
    ry_llama_config config;
    ry_tensor_naming naming, stored; /* of the source, and of what is written */
    ry_tensor *tensors;              /* [n] what will be written */
    item *items;
    name_text *names;
    size_t n;
    float *columns; /* of all matrices */
    /* the panel at work */
    const item *panel_of;
    size_t panel_at;
    ry_panel panel;
    float *rows, *scratch;
    uint64_t done, total; /* bytes */
    renyi_quantize_result result;
} job;

/* ---- matrices ------------------------------------------------------------------------------ */

static ry_parts parts_of(const job *b, ry_llama_matrix which, uint32_t layer)
{
    static const ry_tensor_role roles[][3] = {
        {RY_Q_W, RY_K_W, RY_V_W}, {RY_PROJ_W}, {RY_FC1_W, RY_UP_W}, {RY_FC2_W}, {RY_HEAD_W}};
    static const uint32_t counts[] = {3, 1, 2, 1, 1};
    ry_parts p = {.n = counts[which]};
    for (uint32_t i = 0; i < p.n; i++) {
        const int tied = which == RY_LLAMA_HEAD && b->config.tied;
        const ry_tensor_role role = tied ? RY_TOKEN_EMBED : roles[which][i];
        p.part[i] = ry_tensor_of_role(&b->naming, b->ckpt.tensors, role, layer);
    }
    return p;
}

static void drop_parts(const job *b, const item *it)
{
    const ry_parts p = parts_of(b, it->which, it->layer);
    for (uint32_t i = 0; i < p.n; i++) ry_tensors_drop_pages(b->ckpt.tensors, p.part[i]);
}

/* Panel p of a matrix: job.panel, and its columns. */
static renyi_status take_panel(job *b, const item *it, size_t p, renyi_error *err)
{
    const ry_matrix_shape s = ry_llama_shape(&b->config, it->which);
    const size_t first = p * RY_PANEL, left = s.n_out - first;
    const size_t count = left < RY_PANEL ? left : RY_PANEL;
    const ry_parts parts = parts_of(b, it->which, it->layer);
    if (b->panel_of == it && b->panel_at == p) return RENYI_OK;
    RY_TRY(ry_parts_rows(&parts, first, count, b->rows, err));
    ry_panel_make(&b->panel, b->opt.dtype, b->rows, count, s.n_in, b->scratch);
    memcpy(it->columns + first, b->panel.scale, count * sizeof(float));
    memcpy(it->columns + s.n_out + first, b->panel.sum, count * sizeof(float));
    b->panel_of = it;
    b->panel_at = p;
    return RENYI_OK;
}

/* A piece may begin and end inside a panel. */
static renyi_status fill_panels(job *b, const item *it, const ry_tensor *t, uint64_t at, char *out,
                                size_t n, renyi_error *err)
{
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

static renyi_status fill(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                         renyi_error *err)
{
    job *b = user;
    const item *it = &b->items[t - b->tensors];
    if (it->from) {
        memcpy(out, (const char *)it->from->data + at, n);
        if (at + n == t->bytes) ry_tensors_drop_pages(b->ckpt.tensors, it->from);
    } else if (it->part == RY_STORED_COLUMNS) {
        memcpy(out, (const char *)it->columns + at, n);
    } else {
        RY_TRY(fill_panels(b, it, t, at, out, n, err));
    }
    b->done += n;
    if (b->opt.progress && b->opt.progress(b->opt.progress_user, b->done, b->total))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

/* ---- what will be written ------------------------------------------------------------------ */

static void add(job *b, ry_tensor t, item it)
{
    t.bytes = ry_tensor_elements(&t) * ry_dtype_size(t.dtype);
    b->total += t.bytes;
    b->tensors[b->n] = t;
    b->items[b->n++] = it;
}

/* One part of all matrices. */
static void add_matrices(job *b, ry_stored_part part)
{
    float *columns = b->columns;
    for (int which = 0; which < RY_N_LLAMA_MATRICES; which++)
        for (uint32_t i = 0; i < (which == RY_LLAMA_HEAD ? 1 : b->config.n_layers); i++) {
            const ry_llama_matrix m = (ry_llama_matrix)which;
            ry_tensor t;
            ry_llama_stored_tensor(&t, b->names[b->n], &b->config, m, i, part, b->opt.dtype);
            add(b, t, (item){.which = m, .layer = i, .part = part, .columns = columns});
            columns += 2 * ry_llama_shape(&b->config, m).n_out;
        }
}

/* The language model's own under the names of a stored one; what is not its own as it is. */
static void add_copy(job *b, const ry_tensor *from)
{
    uint32_t block;
    ry_tensor t = *from;
    const ry_tensor_name *row = ry_tensor_name_match(&b->naming, from->name, &block);
    for (size_t i = 0; row && i < b->stored.n_names; i++)
        if (b->stored.table[i].role == row->role) {
            ry_tensor_name_write(b->names[b->n], &b->stored, &b->stored.table[i], block);
            t.name = b->names[b->n];
        }
    if (!row || t.name != from->name) add(b, t, (item){.from = from});
}

static void add_copies(job *b, size_t size)
{
    for (size_t i = 0; i < ry_tensors_count(b->ckpt.tensors); i++) {
        const ry_tensor *t = ry_tensors_at(b->ckpt.tensors, i);
        if (ry_dtype_size(t->dtype) == size) add_copy(b, t);
    }
}

static renyi_status take_memory(job *b, renyi_error *err)
{
    const ry_llama_config *c = &b->config;
    const renyi_allocator *al = &b->opt.allocator;
    const size_t most = ry_tensors_count(b->ckpt.tensors) +
                        RY_N_STORED_PARTS * RY_N_LLAMA_MATRICES * ((size_t)c->n_layers + 1);
    size_t outputs = 0, width = 0;
    for (int which = 0; which < RY_N_LLAMA_MATRICES; which++) {
        const ry_matrix_shape s = ry_llama_shape(c, (ry_llama_matrix)which);
        outputs += s.n_out * (which == RY_LLAMA_HEAD ? 1 : c->n_layers);
        if (s.n_in > width) width = s.n_in;
    }
    b->tensors = ry_alloc(al, most, sizeof *b->tensors);
    b->items = ry_alloc(al, most, sizeof *b->items);
    b->names = ry_alloc(al, most, sizeof *b->names);
    b->columns = ry_alloc(al, 2 * outputs, sizeof *b->columns);
    b->rows = ry_alloc(al, RY_PANEL * width, sizeof *b->rows);
    b->scratch = ry_alloc(al, width + 64, sizeof *b->scratch);
    b->panel.bytes = ry_alloc(al, ry_panel_bytes(RENYI_DTYPE_INT8, width + 64), 1);
    if (b->tensors && b->items && b->names && b->columns && b->rows && b->scratch && b->panel.bytes)
        return RENYI_OK;
    return ry_fail_nomem(err, most * sizeof *b->names);
}

/* Panels before their columns, and wider types before narrower: a panel has a multiple of 32 bytes.
 */
static renyi_status list_tensors(job *b, renyi_error *err)
{
    RY_TRY(take_memory(b, err));
    add_copies(b, 8);
    add_matrices(b, RY_STORED_PANELS);
    b->result.n_quantised = 4 * b->config.n_layers + 1;
    add_matrices(b, RY_STORED_COLUMNS);
    for (size_t size = 4; size; size /= 2) add_copies(b, size);
    for (size_t i = 0; i < ry_tensors_count(b->ckpt.tensors); i++)
        b->result.bytes_in += ry_tensors_at(b->ckpt.tensors, i)->bytes;
    b->result.bytes_out = b->total;
    return RENYI_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static renyi_status check_source(job *b, const char *in, renyi_error *err)
{
    const renyi_status st = ry_llama_configure(&b->config, &b->ckpt, err);
    if (st) return ry_fail_in(err, st, in);
    if (b->config.stored)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s is quantized already (%s); use the original", in,
                       renyi_dtype_name(b->config.stored));
    (void)ry_llama_naming_find(&b->naming, b->ckpt.tensors); /* configure has found it */
    b->stored = ry_llama_naming(RY_STORED_LAYOUT, b->config.n_layers);
    return RENYI_OK;
}

static renyi_status quantise(job *b, const char *in, const char *out, renyi_error *err)
{
    const renyi_lm_quantize_options *o = &b->opt;
    ry_quantize_meta meta;
    RY_TRY(ry_checkpoint_open(&b->ckpt, in, &o->limits, &o->allocator, err));
    RY_TRY(check_source(b, in, err));
    RY_TRY(ry_quantize_target(&b->ckpt, out, err));
    RY_TRY(list_tensors(b, err));
    renyi_status st = ry_quantize_lm_meta(&meta, &b->ckpt, o->dtype, &o->allocator, err);
    const ry_safetensors_content content = {b->tensors, b->n, meta.pairs, fill, b};
    if (!st) st = ry_safetensors_write(out, &content, &o->allocator, err);
    ry_quantize_meta_free(&meta, &o->allocator);
    return st;
}

static void close_job(job *b)
{
    const renyi_allocator *al = &b->opt.allocator;
    void *const blocks[] = {b->tensors, b->items,   b->names,      b->columns,
                            b->rows,    b->scratch, b->panel.bytes};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) ry_free(al, blocks[i]);
    ry_checkpoint_close(&b->ckpt, al);
}

renyi_status renyi_lm_quantize(const char *in, const char *out,
                               const renyi_lm_quantize_options *opt, renyi_quantize_result *result,
                               renyi_error *err)
{
    job b = {0};
    if (!in || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_quantize: NULL path");
    RY_TRY(ry_struct_read(&b.opt, sizeof b.opt, opt, "renyi_lm_quantize_options", err));
    if (!b.opt.allocator.alloc != !b.opt.allocator.release)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "allocator has one of alloc and release; both or none wanted");
    if (b.opt.dtype == RENYI_DTYPE_DEFAULT) b.opt.dtype = RENYI_DTYPE_INT8;
    if (b.opt.dtype != RENYI_DTYPE_INT8 && b.opt.dtype != RENYI_DTYPE_INT4)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a language model is quantised to int8 or int4");
    const renyi_status st = quantise(&b, in, out, err);
    if (!st && result) *result = b.result;
    close_job(&b);
    return st;
}
