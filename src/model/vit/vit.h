/* vit.h - a Vision Transformer in memory: its configuration and its packed weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_H
#define RY_VIT_H

#include "formats/checkpoint.h"
#include "kernels/linear/linear.h"
#include "renyi/renyi.h"

typedef enum ry_layout { RY_LAYOUT_TIMM, RY_LAYOUT_HF, RY_LAYOUT_OPENAI } ry_layout;

/* What the head reads. */
typedef enum ry_pool {
    RY_POOL_TOKEN,    /* the class (and distillation) token, after the final LayerNorm */
    RY_POOL_MEAN,     /* LayerNorm of the mean of the patch tokens (timm's fc_norm) */
    RY_POOL_NORM_MEAN /* mean of the patch tokens after the final LayerNorm */
} ry_pool;

typedef struct ry_vit_config {
    ry_layout layout;
    const char *family;     /* "vit", "deit", "deit-distilled", "clip"; static */
    char architecture[128]; /* from the config or made from the shapes */
    uint32_t image_size;    /* side the session runs at */
    uint32_t patch_size;
    uint32_t dim, n_blocks, n_heads, mlp_dim, n_classes;
    uint32_t n_prefix; /* class (and distillation) tokens; 0 = only patches */
    int is_clip; /* an image tower of CLIP: a LayerNorm before the blocks, patches without bias */
    uint32_t proj_dim; /* width that CLIP projects the class row to; 0 = no projection */
    ry_pool pool;
    double norm_eps;
    ry_epilogue activation; /* RY_EPI_GELU or RY_EPI_QUICKGELU */
    renyi_preprocess preprocess;
    const char *preprocess_source; /* static text for people */
    uint32_t n_quantised;          /* 8-bit weights in the file */
    char quantization[160];        /* how, for people; "" if there are none */
} ry_vit_config;

typedef struct ry_vit_block {
    float *norm1_w, *norm1_b; /* [C] */
    ry_linear *qkv;           /* C -> 3C; rows: all of q, then k, then v; inside each head-major */
    ry_linear *proj;          /* C -> C, RY_EPI_RESIDUAL */
    float *norm2_w, *norm2_b; /* [C] */
    ry_linear *fc1;           /* C -> M, activation */
    ry_linear *fc2;           /* M -> C, RY_EPI_RESIDUAL */
} ry_vit_block;

typedef struct ry_vit {
    ry_vit_config config;
    uint32_t n_patches; /* of image_size */
    ry_linear
        *patch_embed; /* 3*p*p -> C, RY_EPI_RESIDUAL (onto the positions); channel, row, column */
    float *prefix;    /* [n_prefix, C] class (and distillation) token + its position */
    float *pos;       /* [n_patches, C] positions of the patches, at image_size */
    float *pre_norm_w, *pre_norm_b; /* [C] LayerNorm before the blocks; NULL = none */
    ry_vit_block *blocks;           /* [n_blocks] */
    float *norm_w, *norm_b;         /* [C] final LayerNorm */
    ry_linear *projection;          /* C -> proj_dim, without bias; NULL = none */
    /* A classifier is one of these: */
    ry_linear *head;      /* C -> n_classes; NULL if the checkpoint has none */
    ry_linear *words;     /* embedding -> n_classes, of a zero-shot model (clip.h); NULL = none */
    double words_scale;   /* length that embeddings have before they meet the words */
    ry_linear *head_dist; /* second head of a distilled DeiT, or NULL */
    uint64_t n_params;    /* elements of all tensors that belong to the model */
} ry_vit;

/* Rows of an image that the head reads. */
static inline uint32_t ry_vit_pooled_rows(const ry_vit_config *c)
{
    return c->pool == RY_POOL_TOKEN ? c->n_prefix : 1;
}

/* Floats of an embedding: the projected class row, or all that the head reads. */
static inline uint32_t ry_vit_embed_dim(const ry_vit_config *c)
{
    return c->proj_dim ? c->proj_dim : c->dim * ry_vit_pooled_rows(c);
}

/* Columns of all matrices that read the pooled rows, as costs are counted: the heads of a distilled
 * DeiT are two; of CLIP it is the projection, whatever words come after it. */
static inline uint32_t ry_vit_head_width(const ry_vit_config *c)
{
    if (c->proj_dim) return c->proj_dim;
    return c->n_classes * (c->n_prefix == 2 ? 2 : 1);
}

/* Floats that a run answers with. */
static inline uint32_t ry_vit_outputs(const ry_vit_config *c, renyi_output output)
{
    return output == RENYI_OUTPUT_AUTO && c->n_classes ? c->n_classes : ry_vit_embed_dim(c);
}

/* Find out what the checkpoint is: layout, sizes from the shapes, heads and preprocessing from the
 * configs or from timm's defaults. Checks name, shape and type of every tensor; all faults are
 * named at once. `image_size` 0 = what the position embedding fits. */
renyi_status ry_vit_configure(ry_vit_config *out, const ry_checkpoint *ckpt, uint32_t image_size,
                              renyi_error *err) RENYI_CHECK;

/* Convert and pack; `config` is what ry_vit_configure said of this checkpoint. NaN and infinity are
 * errors that name tensor and element. On failure *out is freed and zero. */
renyi_status ry_vit_load(ry_vit *out, const ry_vit_config *config, const ry_checkpoint *ckpt,
                         const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                         renyi_error *err) RENYI_CHECK;
void ry_vit_free(ry_vit *v, const renyi_allocator *al); /* any partly built state */

#endif
