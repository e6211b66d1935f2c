/* cost.h - multiply-accumulates of a Vision Transformer from the token counts of its blocks, known
 * before an image is seen. Biases, softmax, GELU, residual adds, scores and gathers are not
 * counted.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_COST_H
#define RY_COST_H

#include <stdint.h>

typedef struct ry_cost_shape {
    uint32_t n_patches; /* before any pruning; each is embedded once */
    uint32_t patch_in;  /* values of a patch: 3 * patch_size^2 */
    uint32_t dim, mlp_dim, n_blocks;
    uint32_t head_out; /* classes, summed over all classifiers (a distilled DeiT has two); for
                        * CLIP the width of its embeddings */
    uint32_t pre_norm; /* tokens of the LayerNorm before the blocks; 0 = none */
    int gated;         /* the MLP has three products instead of two */
    int pools;         /* an attention-pooling head reads the tokens */
} ry_cost_shape;

/* Token counts of each block, class token and fused tokens included. A cut between attention and
 * MLP gives mlp[l] = attn[l + 1]; a cut at the end of the block gives mlp[l] = attn[l]. */
typedef struct ry_cost_tokens {
    const uint32_t *attn; /* [n_blocks] tokens that enter the attention */
    const uint32_t *mlp;  /* [n_blocks] tokens that enter the MLP */
    uint32_t last;        /* tokens of the final LayerNorm */
} ry_cost_tokens;

/* In multiply-accumulates. Doubles: ViT-L at a large input is far above 2^32, and all counts
 * stay exact below 2^53. */
typedef struct ry_cost {
    double patch_embed;
    double projections; /* qkv and output projection */
    double attention;   /* Q K^T and A V */
    double mlp;
    double head;
    double pool; /* the attention-pooling head, before the head */
    double
        norm; /* LayerNorm at 5 per element, the convention of fvcore and of the paper's tables */
    double pre_norm; /* the LayerNorm before the blocks, likewise */
} ry_cost;

/* One block with `attn` tokens in its attention and `mlp` tokens in its MLP; everything outside
 * the blocks. */
ry_cost ry_cost_block(const ry_cost_shape *s, uint32_t attn, uint32_t mlp);
ry_cost ry_cost_ends(const ry_cost_shape *s, uint32_t last);

ry_cost ry_cost_of(const ry_cost_shape *s, const ry_cost_tokens *t);

/* Every block sees the same number of tokens. */
ry_cost ry_cost_dense(const ry_cost_shape *s, uint32_t n_tokens);

double ry_cost_macs(const ry_cost *c);           /* products only */
double ry_cost_macs_with_norm(const ry_cost *c); /* and LayerNorm */

#endif
