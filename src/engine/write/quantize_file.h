/* quantize_file.h - writes a quantized copy of a checkpoint: tensors that are copied or made piece
 * by piece, and metadata with everything that was beside the original, so that one file is the
 * whole model. Vision models (quantize_vit.c) and language models (quantize_lm.c) share it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_QUANTIZE_FILE_H
#define RY_QUANTIZE_FILE_H

#include "model/common/tensor_quant.h"
#include "renyi/quantize.h"

#include <jansson.h>

/* Makes bytes [at, at + n) of tensor `index` of the new file. Pieces come in order. */
typedef renyi_status (*ry_quantize_make)(void *user, size_t index, uint64_t at, char *out, size_t n,
                                         renyi_error *err);

typedef char ry_quantize_name[RY_NAME_MAX + RY_QUANT_SUFFIX_MAX];

/* The caller sets the options and `make`; the rest begins as zero. */
typedef struct ry_quantize_file {
    renyi_limits limits;
    renyi_allocator al;
    renyi_progress progress; /* of bytes written; or NULL */
    void *progress_user;
    ry_quantize_make make;
    void *make_user;
    ry_checkpoint ckpt; /* the original */
    /* the new file */
    size_t n;
    ry_tensor *tensors;      /* [n] */
    const ry_tensor **from;  /* [n] the tensor of the original that is copied; NULL = make() */
    ry_quantize_name *names; /* [n] for tensors with new names */
    uint64_t done;           /* bytes written */
    renyi_quantize_result result;
} ry_quantize_file;

/* What the metadata says of the new file, besides what the original has. */
typedef struct ry_quantize_meta {
    const char *scheme_key;   /* RY_QUANT_KEY or RY_QUANT_LM_KEY */
    json_t *scheme;           /* owned by ry_quantize_write; NULL = out of memory */
    uint32_t n_heads;         /* 0 = not written */
    const char *architecture; /* NULL = not written */
} ry_quantize_meta;

#define RY_QUANT_LM_KEY "renyi.lm_quantization"

/* Takes memory for at most this many tensors. */
renyi_status ry_quantize_reserve(ry_quantize_file *f, size_t most, renyi_error *err) RENYI_CHECK;

/* Adds a tensor; its bytes are computed. Wider element types must come first. Returns its index. */
size_t ry_quantize_add(ry_quantize_file *f, ry_tensor t, const ry_tensor *from);

/* Writes the file; `out` must not be a file of the original. */
renyi_status ry_quantize_write(ry_quantize_file *f, const char *out, const ry_quantize_meta *meta,
                               renyi_error *err) RENYI_CHECK;

void ry_quantize_close(ry_quantize_file *f);

#endif
