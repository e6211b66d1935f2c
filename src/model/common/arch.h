/* arch.h - names of architectures, such as "deit_base_distilled_patch16_384", and the sizes behind
 * them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ARCH_H
#define RY_ARCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct ry_arch {
    int is_deit, is_clip;
    uint32_t n_prefix; /* 2 distilled, 1, or 0: no class token, the mean of the patches ("gap") */
    uint32_t dim, n_blocks, n_heads, mlp_dim;
    uint32_t patch_size, image_size;
    /* CLIP only: the width of an embedding, and the text tower */
    uint32_t embed_dim, text_dim, text_blocks, text_heads;
} ry_arch;

/* (vit|deit|clip_vit)_(tiny|small|base|large|huge)[_distilled]_patch(N)[_gap]_(S); 1 when `name` is
 * one of these, with S a multiple of N, not both words in brackets and none of them for CLIP. What
 * is allowed, for messages: ry_arch_allowed. */
int ry_arch_parse(ry_arch *out, const char *name);
const char *ry_arch_allowed(void);

/* The name that the sizes deserve: "vit_small_patch16_224", or with unusual sizes
 * "vit_d96_l4_patch8_64". */
void ry_arch_write(char *out, size_t room, const ry_arch *a);

/* Heads by the rule of the published models: 64 values a head, but for the three widest. 0 when the
 * rule gives none. */
uint32_t ry_arch_heads(uint32_t dim);

#endif
