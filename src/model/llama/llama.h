/* llama.h - a Llama decoder in memory: its configuration and packed weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAMA_H
#define RY_LLAMA_H

#include "formats/checkpoint.h"
#include "kernels/linear/linear.h"

typedef struct ry_llama_config {
    const char *layout; /* of the names in the file; static */
    uint32_t dim, n_layers, n_heads, n_kv_heads, head_dim, mlp_dim;
    uint32_t vocab, context; /* number of token ids; positions it was trained for */
    int32_t bos, eos, image; /* token ids; -1 = not in the config */
    double rope_theta, norm_eps;
    int tied;           /* the token table is also the output matrix */
    int paired;         /* GGUF: rows of q and k that are turned together are neighbors */
    renyi_dtype stored; /* INT8 or INT4: packed matrices (llama_tensors.h); DEFAULT = floats */
} ry_llama_config;

/* Widths of a layer's products. */
static inline size_t ry_llama_q(const ry_llama_config *c)
{
    return (size_t)c->n_heads * c->head_dim;
}
static inline size_t ry_llama_kv(const ry_llama_config *c)
{
    return (size_t)c->n_kv_heads * c->head_dim;
}
static inline size_t ry_llama_qkv(const ry_llama_config *c)
{
    return ry_llama_q(c) + 2 * ry_llama_kv(c);
}

/* One packed copy of each matrix serves passes of many rows and of one row. */
typedef struct ry_llama_layer {
    float *norm1, *norm2; /* [C] RMSNorm before attention and before the MLP */
    ry_linear *qkv;       /* C -> q, then k, then v; inside each head-major */
    ry_linear *proj;      /* q -> C, RY_EPI_RESIDUAL */
    ry_linear *gate_up;   /* C -> M of the gate, then M of the gated values */
    ry_linear *down;      /* M -> C, RY_EPI_RESIDUAL */
} ry_llama_layer;

typedef struct ry_llama {
    ry_llama_config config;
    ry_tensor tokens;       /* [vocab, C] token table, in the type of the file */
    ry_llama_layer *layers; /* [n_layers] */
    float *norm;            /* [C] final RMSNorm */
    ry_linear *head;        /* C -> vocab */
    uint64_t n_params;
    uint64_t bytes; /* of all of the above */
} ry_llama;

/* Sizes from the shapes, the rest from the config or the defaults of transformers. Checks name,
 * shape and type of every tensor; one message lists all faults. A checkpoint without a Llama is
 * RENYI_ERR_UNSUPPORTED. */
renyi_status ry_llama_configure(ry_llama_config *out, const ry_checkpoint *ckpt,
                                renyi_error *err) RENYI_CHECK;

/* Parameters of a model with this configuration, and roughly the memory of its weights; the token
 * table keeps the type of the file, and so do matrices with blocks that fit (ry_parts_blocks). */
uint64_t ry_llama_params(const ry_llama_config *c);
uint64_t ry_llama_bytes(const ry_llama_config *c, const ry_checkpoint *ckpt, renyi_dtype dtype);

/* Converts and packs the weights; `config` is the result of ry_llama_configure for this checkpoint.
 * If config->stored is set, matrices are borrowed from the checkpoint, which must outlive *out, and
 * dtype is ignored. On failure *out is freed and zero. */
renyi_status ry_llama_load(ry_llama *out, const ry_llama_config *config, const ry_checkpoint *ckpt,
                           const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                           renyi_error *err) RENYI_CHECK;
void ry_llama_free(ry_llama *m, const renyi_allocator *al); /* any partly built state */

#endif
