/* arch.h - names of architectures, such as "deit_base_distilled_patch16_384", and their sizes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ARCH_H
#define RY_ARCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct ry_arch {
    int is_deit, is_clip;
    int is_deit3, is_dino; /* DINOv2 */
    int is_dino3;          /* DINOv3 */
    int is_siglip;         /* no class token, an attention-pooling head */
    int has_texts;         /* both towers, in Hugging Face's names: CLIP, "siglip_..." */
    int is_distilled;
    uint32_t n_prefix;    /* class, distillation, registers; without a class token ("gap") the head
                             reads the mean of the patches */
    uint32_t n_registers; /* of these */
    uint32_t n_placed;    /* of these: tokens that have a position */
    int layer_scale, gated;
    int pre_norm;        /* LayerNorm before the blocks: CLIP, timm's "_clip" */
    int quick_gelu;      /* QuickGELU in timm's "_clip" */
    uint32_t n_qkv_bias; /* how many of q, k and v have a bias */
    double rope_theta;   /* of rotary positions; 0 = none */
    uint32_t dim, n_blocks, n_heads, mlp_dim;
    uint32_t patch_size, image_size;
    /* CLIP and SigLIP only: the width of an embedding, and the text tower */
    uint32_t embed_dim, text_dim, text_blocks, text_heads;
} ry_arch;

/* 1 if `name` has one of these forms, which are timm's, and S is a multiple of N (SigLIP also has
 * 384 pixels in patches of 14, whose last 6 pixels are in no patch):
 * (vit|deit)_(size)[_distilled]_patch(N)[_gap]_(S), at most one of _distilled and _gap;
 * clip_vit_(size)_patch(N)_(S) and siglip_(size)_patch(N)_(S), with a text tower;
 * vit_(size)_patch(N)_siglip_(S), the image tower of SigLIP alone;
 * vit_(size)_patch(N)_clip[_quickgelu]_(S), the image tower of CLIP alone;
 * deit3_(size)_patch(N)_(S);
 * vit_(size)_patch(N)_reg(R)_gap_(S);
 * vit_(size)_patch14[_reg(R)]_dinov2, whose S is 518;
 * vit_(size)[_plus]_patch(N)_dinov3[_qkvb][_(S)], without S 256: with a gated MLP, with biases of q
 * and v; S is not part of timm's name.
 * ry_arch_allowed describes them for messages. */
int ry_arch_parse(ry_arch *out, const char *name);
const char *ry_arch_allowed(void);

/* The name for these sizes: "vit_small_patch16_224", or "vit_d96_l4_patch8_64" for unusual ones. */
void ry_arch_write(char *out, size_t capacity, const ry_arch *a);

/* Heads as in the published models: width 64, except for a few wide models; 0 if 64 does not divide
 * dim. */
uint32_t ry_arch_heads(uint32_t dim);
/* Heads of the model of this name if it is so wide; 0 if the name does not tell. */
uint32_t ry_arch_named_heads(const char *name, uint32_t dim);

#endif
