/* vit.h - a Vision Transformer in memory: its configuration and packed weights, and how both are
 * read from a checkpoint.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_H
#define RY_VIT_H

#include "formats/checkpoint.h"
#include "kernels/linear/linear.h"
#include "renyi/renyi.h"

typedef enum ry_layout {
    RY_LAYOUT_TIMM,
    RY_LAYOUT_HF,
    RY_LAYOUT_OPENAI,
    RY_LAYOUT_META /* DINOv2 as Meta publishes it */
} ry_layout;

/* What the head reads. */
typedef enum ry_pooling {
    RY_POOL_TOKEN,      /* the class (and distillation) token, after the final LayerNorm */
    RY_POOL_MEAN,       /* LayerNorm of the mean of the patch tokens (timm's fc_norm) */
    RY_POOL_NORM_MEAN,  /* mean of the patch tokens after the final LayerNorm */
    RY_POOL_CLASS_MEAN, /* class token, then that mean: Hugging Face's classifier of DINOv2 */
    RY_POOL_ATTENTION,  /* attention of a learned query over them, then an MLP (ry_pool_head) */
    RY_POOL_PATCHES     /* every patch token: an output (ry_vit_pooling), no head reads it */
} ry_pooling;

/* How positions are fitted to another grid: torch.nn.functional.interpolate(mode="bicubic",
 * align_corners=False). */
typedef enum ry_pos_filter {
    RY_POS_ANTIALIAS, /* antialias=True, as in timm: a = -0.5, widened when the grid shrinks */
    RY_POS_PLAIN,     /* antialias=False, as in transformers: a = -0.75, four taps, clamped edges */
    RY_POS_OFFSET     /* the same with scale_factor=(n_out + 0.1) / n_in, as in Meta's DINOv2 */
} ry_pos_filter;

typedef struct ry_vit_config {
    ry_layout layout;
    const char *family;     /* "vit", "deit", "deit-distilled", "deit3", "dinov2", "dinov3", "clip",
                               "siglip"; static */
    char architecture[128]; /* from the config or made from the shapes */
    uint32_t image_size;    /* side of the input in pixels */
    uint32_t patch_size;
    uint32_t dim, n_blocks, n_heads, mlp_dim, n_classes;
    uint32_t n_prefix; /* tokens before the patches: class, distillation, registers, in this order;
                          0 = only patches */
    uint32_t n_registers; /* of these: tokens that no head reads and no rule drops */
    int is_distilled;     /* there is a distillation token */
    uint32_t n_placed;    /* leading prefix tokens that have a position of their own */
    int is_clip;          /* image tower of CLIP: no bias of patches */
    int is_siglip;        /* image tower of SigLIP in Hugging Face's names */
    int open_clip;        /* open_clip_config.json describes it */
    int is_assumed;       /* as renyi_model_is_assumed */
    int pre_norm;         /* LayerNorm before the blocks */
    int layer_scale;      /* every branch is multiplied by a vector (gamma) before it is added */
    int gated;            /* SwiGLU: mlp_dim is the width after the gate */
    uint32_t n_qkv_bias;  /* how many of q, k and v have a bias: 3, 2 (not the keys) or 0 */
    double rope_theta;    /* rotary positions of patches (rotary.h), no others; 0 = none */
    ry_pos_filter pos_filter;
    uint32_t proj_dim; /* width that CLIP projects the class row to; 0 = no projection */
    ry_pooling pool;
    double norm_eps;
    double none_below;      /* as in renyi_model_info */
    ry_epilogue activation; /* RY_EPI_GELU, RY_EPI_QUICKGELU or RY_EPI_GELU_TANH */
    renyi_preprocess preprocess;
    const char *preprocess_source; /* where it comes from, as text; static */
    uint32_t n_quantized;          /* 8-bit weights in the file */
    char quantization[160];        /* how they were made, as text; "" if none */
} ry_vit_config;

/* A block of a ViT or of CLIP's text tower. */
typedef struct ry_block_weights {
    float *norm1_w, *norm1_b; /* [C] */
    ry_linear *qkv;           /* C -> 3C; rows: all of q, then k, then v; inside each head-major */
    ry_linear *proj;          /* C -> C, RY_EPI_RESIDUAL; layer scale is in its weights */
    float *norm2_w, *norm2_b; /* [C] */
    ry_linear *fc1;           /* C -> M, activation; gated: C -> 2M, gate and up */
    ry_linear *fc2;           /* M -> C, RY_EPI_RESIDUAL; layer scale is in its weights */
} ry_block_weights;

/* The attention-pooling head of SigLIP: the probe, a learned query, attends to all patch tokens
 * after the final LayerNorm; y = proj(attention), result = y + MLP(LayerNorm y).
 *
 * The query is the same for every image, so two products with all tokens become small ones:
 *   logits of head h   q_h . (K_h x_j + b)  = (K_h^T q_h) . x_j + a number that softmax ignores
 *   output of head h   sum_j a_hj V_h x_j   = V_h (sum_j a_hj x_j) */
typedef struct ry_pool_head {
    ry_linear *keys;        /* C -> H: row h is K_h^T q_h / sqrt(d) */
    float *values;          /* [C, C] V transposed: row c is what channel c adds to the output */
    float *values_bias;     /* [C] */
    ry_linear *proj;        /* C -> C */
    float *norm_w, *norm_b; /* [C] */
    ry_linear *fc1, *fc2;   /* C -> M, activation; M -> C, RY_EPI_RESIDUAL */
} ry_pool_head;

typedef struct ry_vit {
    ry_vit_config config;
    uint32_t n_patches;     /* of image_size */
    ry_linear *patch_embed; /* 3*p*p (channel, row, column) -> C, RY_EPI_RESIDUAL: adds to the
                               positions */
    float *prefix;          /* [n_prefix, C] prefix tokens + their positions */
    float *pos;  /* [n_patches, C] positions of the patches, at image_size; 0 if rotary */
    float *rope; /* [n_patches, head width] angles of rotary positions; NULL = none */
    float *pre_norm_w, *pre_norm_b; /* [C] LayerNorm before the blocks; NULL = none */
    ry_block_weights *blocks;       /* [n_blocks] */
    float *norm_w, *norm_b;         /* [C] final LayerNorm */
    ry_pool_head pool;              /* of RY_POOL_ATTENTION, else zero */
    ry_linear *projection;          /* C -> proj_dim, without bias; NULL = none */
    /* A classifier has one of these: */
    ry_linear *head;        /* C -> n_classes; NULL if the checkpoint has none */
    ry_linear *text_head;   /* embedding -> n_classes, of a zero-shot model; NULL = none */
    double text_head_scale; /* length that embeddings are scaled to before the text head */
    ry_linear *head_dist;   /* second head of a distilled DeiT, or NULL */
    uint64_t n_params;      /* elements of all tensors that belong to the model */
} ry_vit;

/* Names of activations in configs: "gelu", "quick_gelu", "gelu_pytorch_tanh"; 1 if `name` is one of
 * these or another name of the same function. */
int ry_activation_parse(ry_epilogue *out, const char *name);
/* That of a model of timm, which its name tells. */
ry_epilogue ry_timm_activation(const char *architecture);
#define RY_ACTIVATIONS "gelu, quick_gelu and gelu_pytorch_tanh"

/* Leading rows that a head may read: class and distillation token. */
static inline uint32_t ry_vit_class_rows(const ry_vit_config *c)
{
    return c->n_prefix - c->n_registers;
}

/* What an output reads of the last block. */
static inline ry_pooling ry_vit_pooling(const ry_vit_config *c, renyi_output output)
{
    switch (output) {
    case RENYI_OUTPUT_CLASS: return RY_POOL_TOKEN;
    case RENYI_OUTPUT_MEAN: return c->pool == RY_POOL_MEAN ? RY_POOL_MEAN : RY_POOL_NORM_MEAN;
    case RENYI_OUTPUT_PATCHES: return RY_POOL_PATCHES;
    case RENYI_OUTPUT_AUTO:
    case RENYI_OUTPUT_EMBEDDING: break;
    }
    return c->pool;
}

/* Rows of an image that are pooled, and their width. */
static inline uint32_t ry_vit_pooled_rows(const ry_vit_config *c, ry_pooling pool)
{
    const uint32_t side = c->image_size / c->patch_size;
    return pool == RY_POOL_TOKEN ? ry_vit_class_rows(c) : pool == RY_POOL_PATCHES ? side * side : 1;
}

static inline uint32_t ry_vit_pooled_width(const ry_vit_config *c, ry_pooling pool)
{
    return pool == RY_POOL_CLASS_MEAN ? 2 * c->dim : c->dim;
}

/* Floats of an embedding: the projected class row, or all that the head reads. */
static inline uint32_t ry_vit_embed_dim(const ry_vit_config *c)
{
    if (c->proj_dim) return c->proj_dim;
    return ry_vit_pooled_width(c, c->pool) * ry_vit_pooled_rows(c, c->pool);
}

/* Columns of all matrices of C rows that read the pooled rows, for counting costs: two heads of a
 * distilled DeiT, a head of 2C; of CLIP the projection, without a text head. */
static inline uint32_t ry_vit_head_width(const ry_vit_config *c)
{
    if (c->proj_dim) return c->proj_dim;
    return c->n_classes * (c->is_distilled || c->pool == RY_POOL_CLASS_MEAN ? 2 : 1);
}

/* Floats of an output for each image. */
static inline uint32_t ry_vit_outputs(const ry_vit_config *c, renyi_output output)
{
    const ry_pooling pool = ry_vit_pooling(c, output);
    if (output == RENYI_OUTPUT_AUTO && c->n_classes) return c->n_classes;
    if (output == RENYI_OUTPUT_AUTO || output == RENYI_OUTPUT_EMBEDDING) return ry_vit_embed_dim(c);
    return ry_vit_pooled_width(c, pool) * ry_vit_pooled_rows(c, pool);
}

/* How the library that a file belongs to fits its positions to another grid. */
ry_pos_filter ry_vit_pos_filter(ry_layout layout, uint32_t n_registers);

/* What layer scale starts from in a new model: timm's values. */
static inline double ry_vit_first_scale(const ry_vit_config *c)
{
    return c->n_placed || c->n_registers ? 1e-5 : 1e-6; /* DeiT-III has no placed class token */
}

/* Reads from a checkpoint: layout, sizes (from the shapes), heads and preprocessing (from the
 * configs or the defaults of the family). Checks name, shape and type of every tensor; one message
 * lists all faults. `image_size` 0 = what the position embedding fits. */
renyi_status ry_vit_configure(ry_vit_config *out, const ry_checkpoint *ckpt, uint32_t image_size,
                              renyi_error *err) RENYI_CHECK;

/* Makes the name of an architecture from the family and the sizes, for inputs of this side. */
void ry_vit_write_name(ry_vit_config *c, uint32_t image_size);

/* Fills preprocess and preprocess_source of *c from the configs beside the weights or the defaults
 * of the family; family, layout and image_size must be set. */
renyi_status ry_preprocess_configure(ry_vit_config *c, const ry_checkpoint *ckpt,
                                     renyi_error *err) RENYI_CHECK;

/* Converts and packs the weights; `config` is the result of ry_vit_configure for this checkpoint.
 * NaN and infinity are errors that name tensor and element. On failure *out is freed and zero. */
renyi_status ry_vit_load(ry_vit *out, const ry_vit_config *config, const ry_checkpoint *ckpt,
                         const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                         renyi_error *err) RENYI_CHECK;
void ry_vit_free(ry_vit *v, const renyi_allocator *al); /* any partly built state */

/* ---- position embeddings for another grid -------------------------------------------------- */

/* in: [n_in * n_in, dim] positions of the patches in raster order, without those of prefix tokens;
 * out: [n_out * n_out, dim]. Equal grids give an exact copy. */
renyi_status ry_pos_embed_resample(float *out, uint32_t n_out, const float *in, uint32_t n_in,
                                   uint32_t dim, ry_pos_filter filter, const renyi_allocator *al,
                                   renyi_error *err) RENYI_CHECK;

#endif
