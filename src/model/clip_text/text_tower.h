/* text_tower.h - the text tower of CLIP or SigLIP in memory: its configuration and packed weights,
 * and the names of its tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEXT_TOWER_H
#define RY_TEXT_TOWER_H

#include "model/common/tensor_names.h"

/* The token whose row becomes the embedding. */
typedef enum ry_text_pool {
    RY_TEXT_POOL_LARGEST, /* the first of the largest ids: CLIP's end of text */
    RY_TEXT_POOL_EOS,     /* the first token `eos`; token 0 if there is none */
    RY_TEXT_POOL_LAST,    /* the last of `context` tokens, padding included */
    RY_TEXT_POOL_FIRST
} ry_text_pool;

typedef struct ry_text_config {
    ry_layout layout;
    uint32_t dim, n_blocks, n_heads, mlp_dim;
    uint32_t vocab, context; /* number of token ids; the most tokens of a text */
    uint32_t embed_dim;
    double norm_eps;
    double logit_scale; /* exp of the number in the file */
    double logit_bias;  /* SigLIP's; else 0 */
    int is_sigmoid;     /* logits are independent of each other (SigLIP), not a softmax */
    int sees_all;       /* a token sees all tokens (SigLIP), not only those before it (CLIP) */
    ry_text_pool pool;
    uint32_t eos; /* of RY_TEXT_POOL_EOS */
    ry_epilogue activation;
    int quantized; /* the file has 8-bit weights */
} ry_text_config;

typedef struct ry_text {
    ry_text_config config;
    ry_tensor tokens;         /* [vocab, C] token table, in the type of the file */
    float *pos;               /* [context, C] */
    ry_block_weights *blocks; /* [n_blocks] */
    float *norm_w, *norm_b;   /* [C] final LayerNorm */
    ry_linear *projection;    /* C -> embed_dim, f32; with a bias in SigLIP */
    uint64_t n_params;
    uint64_t fingerprint; /* hash of all tensors of the tower and of the configuration */
} ry_text;

/* 1 if a text is all `context` ids, with its padding. */
static inline int ry_text_reads_padding(const ry_text_config *c)
{
    return c->sees_all || c->pool == RY_TEXT_POOL_LAST;
}

/* Sizes from the shapes, the rest from the config or from CLIP's defaults. Checks name, shape and
 * type of every tensor of the tower; one message lists all faults. A checkpoint without a text
 * tower is RENYI_ERR_UNSUPPORTED. */
renyi_status ry_text_configure(ry_text_config *out, const ry_checkpoint *ckpt,
                               renyi_error *err) RENYI_CHECK;

/* Converts and packs the weights; `config` is the result of ry_text_configure for this checkpoint.
 * On failure *out is freed and zero. */
renyi_status ry_text_load(ry_text *out, const ry_text_config *config, const ry_checkpoint *ckpt,
                          const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                          renyi_error *err) RENYI_CHECK;
void ry_text_free(ry_text *t, const renyi_allocator *al); /* any partly built state */

/* ---- names --------------------------------------------------------------------------------- */

/* 1 if the token embedding of a known layout is among the tensors, else 0. */
int ry_text_naming_find(ry_tensor_naming *out, const ry_tensors *set);

/* Naming for the text tower of a CLIP or SigLIP to be written, in Hugging Face's layout. */
ry_tensor_naming ry_text_naming_hf(uint32_t n_blocks, int is_siglip);

/* The extents of a tower with this configuration. */
void ry_text_extents(uint64_t out[RY_X_COUNT], const ry_text_config *c);

#endif
