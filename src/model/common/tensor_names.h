/* tensor_names.h - what timm, Hugging Face and OpenAI call the tensors of a Vision Transformer, and
 * what shape each has. One table a layout; everybody above speaks of roles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TENSOR_NAMES_H
#define RY_TENSOR_NAMES_H

#include "formats/tensor.h"
#include "model/vit/vit.h"

typedef enum ry_vit_role {
    RY_CLS_TOKEN,
    RY_DIST_TOKEN,
    RY_POS_EMBED,
    RY_PATCH_W,
    RY_PATCH_B,
    RY_NORM_W,
    RY_NORM_B,
    RY_HEAD_W,
    RY_HEAD_B,
    RY_HEAD_DIST_W,
    RY_LOGIT_SCALE, /* CLIP */
    RY_HEAD_DIST_B,
    RY_EMBED_W, /* CLIP: from the class row to the space of images and texts */
    RY_EMBED_B, /* no layout has one */
    RY_PRE_NORM_W,
    RY_PRE_NORM_B,
    RY_TOKEN_EMBED, /* CLIP's text tower */
    /* one of each in every block; a layout has either qkv or q, k and v */
    RY_NORM1_W,
    RY_NORM1_B,
    RY_QKV_W,
    RY_QKV_B,
    RY_Q_W,
    RY_Q_B,
    RY_K_W,
    RY_K_B,
    RY_V_W,
    RY_V_B,
    RY_PROJ_W,
    RY_PROJ_B,
    RY_NORM2_W,
    RY_NORM2_B,
    RY_FC1_W,
    RY_FC1_B,
    RY_FC2_W,
    RY_FC2_B,
    RY_UP_W /* Llama: of the gated MLP, whose gate is fc1 */
} ry_vit_role;

/* Tensors that come together or not at all: as soon as one is there, all are wanted. */
typedef enum ry_vit_group {
    RY_GROUP_CORE = 1u << 0, /* always wanted */
    RY_GROUP_QKV_BIAS = 1u << 1,
    RY_GROUP_HEAD = 1u << 2,
    RY_GROUP_DISTILLED = 1u << 3, /* second prefix token */
    RY_GROUP_TEACHER = 1u << 4, /* its head; Hugging Face then has another name for the first too */
    RY_GROUP_CLASS = 1u << 5,   /* class token: wanted unless there is a position for each patch */
    RY_GROUP_NORM = 1u << 6,    /* final LayerNorm: wanted unless the next is there */
    RY_GROUP_FC_NORM = 1u << 7, /* timm: LayerNorm of the mean of the patches */
    RY_GROUP_EMBED = 1u << 8    /* CLIP: the projection */
} ry_vit_group;

typedef enum ry_vit_extent {
    RY_X_END,
    RY_X_1,
    RY_X_RGB,
    RY_X_PATCH,
    RY_X_TOKENS,
    RY_X_DIM,
    RY_X_3DIM,
    RY_X_MLP,
    RY_X_CLASSES,
    RY_X_EMBED,
    RY_X_VOCAB, /* ids of a text tower */
    RY_X_Q,     /* Llama: floats of all heads */
    RY_X_KV,    /* and of those of keys and values */
    RY_X_COUNT
} ry_vit_extent;

/* What the extents are in a model of this configuration. */
void ry_vit_extents(uint64_t out[RY_X_COUNT], const ry_vit_config *config);

typedef struct ry_vit_name {
    ry_vit_role role;
    ry_vit_group group;
    const char *pattern;    /* '#' stands for the number of the block */
    unsigned char shape[4]; /* ry_vit_extent, RY_X_END after the last */
} ry_vit_name;

/* One family of models in the names of one house. */
typedef struct ry_vit_layout {
    ry_layout id;
    int is_clip;
    const char *house;        /* for messages */
    const ry_vit_name *names; /* [count]; the first is what the layout is known by */
    size_t count;
    int heads_outside; /* the last part of the prefix ("vit.") is not in front of the heads */
    const char *const *others; /* NULL-terminated: how names begin that belong to the other tower */
    const char *what;          /* for messages; NULL = "a ViT" or "a CLIP" */
} ry_vit_layout;

enum { RY_N_LAYOUTS = 4 };
extern const ry_vit_layout ry_vit_layouts[RY_N_LAYOUTS];

/* In front of tensors of a checkpoint that only training reads. */
#define RY_TRAINING_PREFIX "training."

/* Largest extents that a tower may have, for ry_vit_extents_check. */
typedef struct ry_extent_limit {
    ry_vit_extent extent;
    uint64_t max;
    const char *what; /* "width" */
} ry_extent_limit;

/* RENYI_ERR_LIMIT names the first of x beyond its limit; `tower` stands before it. */
renyi_status ry_vit_extents_check(const uint64_t *x, const ry_extent_limit *limits, size_t n,
                                  const char *tower, renyi_error *err) RENYI_CHECK;

enum { RY_NAME_MAX = 192, RY_PREFIX_MAX = 64, RY_MAX_BLOCKS = 1024 };

/* How one checkpoint spells the names. */
typedef struct ry_vit_naming {
    ry_layout layout;
    int is_clip;
    const ry_vit_layout *of;
    const ry_vit_name *table;
    size_t n_names;
    char body[RY_PREFIX_MAX]; /* in front of every name but those of the heads: "", "model.", "vit."
                               */
    char outer[RY_PREFIX_MAX]; /* in front of the names of the heads */
    uint32_t n_blocks;         /* highest number found + 1 */
    unsigned groups;           /* ry_vit_group bits that are there */
} ry_vit_naming;

/* 1 when the patch embedding of a known layout is among the tensors, 0 otherwise. */
int ry_vit_naming_find(ry_vit_naming *out, const ry_tensors *set);

/* The same with layouts of another tower: 1 when the first name of one of them is there. */
int ry_vit_naming_among(ry_vit_naming *out, const ry_tensors *set, const ry_vit_layout *layouts,
                        size_t n_layouts);

/* The naming of a timm model that is about to be written, with 0, 1 or 2 tokens before the patches;
 * without any it averages its patches. */
ry_vit_naming ry_vit_naming_timm(uint32_t n_blocks, uint32_t n_prefix);

/* The image tower of a CLIP that is about to be written, as Hugging Face names it. */
ry_vit_naming ry_vit_naming_clip(uint32_t n_blocks);

/* 1 for a tensor that belongs to CLIP's text tower, or to both. */
int ry_vit_name_is_other(const ry_vit_naming *n, const char *name);

/* "timm's patch_embed.proj.weight, ...": what ry_vit_naming_find looks for, for messages. */
const char *ry_vit_naming_looked_for(void);

/* Name of a table row in this checkpoint; `block` matters only where the pattern has one. */
void ry_vit_name_write(char out[RY_NAME_MAX], const ry_vit_naming *n, const ry_vit_name *row,
                       uint32_t block);
int ry_vit_name_in_block(const ry_vit_name *row);

/* Every tensor that a model of this naming has, in the order of the table, the blocks one after the
 * other where the rows of a block stand. */
typedef void (*ry_vit_see_name)(void *user, const ry_vit_naming *n, const ry_vit_name *row,
                                uint32_t block);
void ry_vit_names_each(const ry_vit_naming *n, ry_vit_see_name see, void *user);

/* NULL when the layout has no such role, or the checkpoint no such tensor. */
const ry_tensor *ry_vit_tensor(const ry_vit_naming *n, const ry_tensors *set, ry_vit_role role,
                               uint32_t block);

/* The weights of a block's products: the only ones that may be 8-bit (vit_quant.h). */
static inline int ry_vit_is_product(ry_vit_role role)
{
    return role == RY_QKV_W || role == RY_Q_W || role == RY_K_W || role == RY_V_W ||
           role == RY_PROJ_W || role == RY_FC1_W || role == RY_FC2_W || role == RY_UP_W;
}

/* The row that a tensor's name belongs to, with the number of its block; NULL if none. */
const ry_vit_name *ry_vit_name_match(const ry_vit_naming *n, const char *name, uint32_t *block);

#endif
