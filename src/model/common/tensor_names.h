/* tensor_names.h - the names and shapes of a model's tensors in each layout (timm, Hugging Face,
 * OpenAI), and the check that a checkpoint has them all.
 *
 * There is one table per layout. It maps names to roles (RY_QKV_W, ...); all other code uses roles.
 * The ViT's tables are in tensor_tables.c; the text tower, the projector of LLaVA and Llama
 * bring their own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TENSOR_NAMES_H
#define RY_TENSOR_NAMES_H

#include "formats/tensor.h"
#include "model/vit/vit.h"

typedef enum ry_tensor_role {
    RY_CLS_TOKEN,
    RY_DIST_TOKEN,
    RY_REGISTERS,
    RY_POS_EMBED,
    RY_PATCH_W,
    RY_PATCH_B,
    RY_NORM_W,
    RY_NORM_B,
    RY_HEAD_W,
    RY_HEAD_B,
    RY_HEAD_DIST_W,
    RY_LOGIT_SCALE, /* CLIP */
    RY_LOGIT_BIAS,  /* SigLIP */
    RY_HEAD_DIST_B,
    RY_EMBED_W, /* CLIP: projection of the class row into the space shared by images and texts */
    RY_EMBED_B, /* no layout has one */
    RY_PRE_NORM_W,
    RY_PRE_NORM_B,
    RY_TOKEN_EMBED, /* text tower of CLIP, Llama */
    RY_TEXT_HEAD_W, /* SigLIP: projection with a bias, named inside the text tower */
    RY_TEXT_HEAD_B,
    /* Attention-pooling head. A layout has either qkv, or q and kv. */
    RY_POOL_PROBE,
    RY_POOL_QKV_W,
    RY_POOL_QKV_B,
    RY_POOL_Q_W,
    RY_POOL_Q_B,
    RY_POOL_KV_W,
    RY_POOL_KV_B,
    RY_POOL_PROJ_W,
    RY_POOL_PROJ_B,
    RY_POOL_NORM_W,
    RY_POOL_NORM_B,
    RY_POOL_FC1_W,
    RY_POOL_FC1_B,
    RY_POOL_FC2_W,
    RY_POOL_FC2_B,
    /* One of each in every block. A layout has either qkv or q, k and v. */
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
    RY_SCALE1, /* layer scale of attention */
    RY_NORM2_W,
    RY_NORM2_B,
    RY_FC1_W,
    RY_FC1_B,
    RY_FC2_W,
    RY_SCALE2, /* layer scale of the MLP */
    RY_FC2_B,
    RY_UP_W, /* second matrix of a gated MLP, if it is separate; fc1 is then its gate */
    RY_UP_B
} ry_tensor_role;

/* Weights of the products in blocks: the only tensors that may be 8-bit (tensor_quant.h). */
static inline int ry_tensor_role_is_product(ry_tensor_role role)
{
    return role == RY_QKV_W || role == RY_Q_W || role == RY_K_W || role == RY_V_W ||
           role == RY_PROJ_W || role == RY_FC1_W || role == RY_FC2_W || role == RY_UP_W;
}

/* Tensors that occur together: if one of a group is present, all of it must be. */
typedef enum ry_tensor_group {
    RY_GROUP_CORE = 1u << 0, /* always required */
    RY_GROUP_QKV_BIAS = 1u << 1,
    RY_GROUP_HEAD = 1u << 2,
    RY_GROUP_DISTILLED = 1u << 3, /* second prefix token */
    RY_GROUP_TEACHER = 1u << 4,   /* its head; Hugging Face then renames the first head too */
    RY_GROUP_CLASS = 1u << 5,     /* class token; required unless positions are for patches only */
    RY_GROUP_NORM = 1u << 6,      /* final LayerNorm; required unless fc_norm is present */
    RY_GROUP_FC_NORM = 1u << 7,   /* timm: LayerNorm of the mean of the patches */
    RY_GROUP_EMBED = 1u << 8,     /* CLIP: the projection */
    RY_GROUP_REGISTERS = 1u << 9,
    RY_GROUP_LAYER_SCALE = 1u << 10,
    RY_GROUP_GAMMA = 1u << 11,      /* the same under the names of DeiT-III's own files */
    RY_GROUP_PRE_NORM = 1u << 12,   /* LayerNorm before the blocks */
    RY_GROUP_PATCH_BIAS = 1u << 13, /* required unless there is such a LayerNorm */
    RY_GROUP_MLP = 1u << 14,        /* required unless the MLP is gated */
    RY_GROUP_GATED = 1u << 15,      /* gated MLP under names of its own */
    RY_GROUP_POOL = 1u << 16,       /* attention-pooling head */
    RY_GROUP_KEY_BIAS = 1u << 17,   /* DINOv3: of keys, which QKV_BIAS then does not contain */
    RY_GROUP_TEXT_HEAD = 1u << 20,  /* SigLIP: the projection of the text tower */
    RY_GROUP_LOGIT_BIAS = 1u << 21, /* SigLIP */
} ry_tensor_group;

/* Sizes that shapes are made of. */
typedef enum ry_tensor_extent {
    RY_X_END,
    RY_X_1,
    RY_X_RGB,
    RY_X_PATCH,
    RY_X_TOKENS,
    RY_X_DIM,
    RY_X_2DIM,
    RY_X_3DIM,
    RY_X_REGISTERS,
    RY_X_MLP,
    RY_X_MLP_IN, /* rows of fc1: twice RY_X_MLP if it holds gate and up */
    RY_X_CLASSES,
    RY_X_EMBED,
    RY_X_VOCAB, /* token ids of a text tower or of Llama */
    RY_X_Q,     /* Llama: width of all query heads together */
    RY_X_KV,    /* Llama: width of all key heads together; the same for values */
    RY_X_COUNT
} ry_tensor_extent;

/* ---- tables -------------------------------------------------------------------------------- */

typedef struct ry_tensor_name {
    ry_tensor_role role;
    ry_tensor_group group;
    const char *pattern;    /* '#' is the number of the block */
    unsigned char shape[4]; /* ry_tensor_extent, RY_X_END after the last */
} ry_tensor_name;

/* The names that one vendor gives to one family of models. */
typedef struct ry_tensor_layout {
    ry_layout id;
    int is_clip;
    const char *vendor;          /* for messages */
    const ry_tensor_name *names; /* [count]; a file with names[0] has this layout. If several begin
                                    alike, it has the first whose blocks it contains */
    size_t count;
    int heads_outside; /* the last part of the prefix ("vit.") is not in front of the heads */
    const char *const *others; /* NULL-terminated: prefixes of tensors that belong to other parts of
                                  the file, such as the other tower */
    const char *what;          /* for messages; NULL = "a ViT" or "a CLIP" */
    const char *mark;          /* a tensor without which a file does not have this layout; it need
                                  not be in the table. NULL = none */
    int is_siglip;
    const char *within;  /* the prefix must end with this; NULL = any prefix */
    const char *without; /* a tensor with which a file does not have this layout; NULL = none */
    int is_rotary;       /* positions are rotary: no tensor holds them */
} ry_tensor_layout;

enum { RY_N_LAYOUTS = 13 };
extern const ry_tensor_layout ry_vit_layouts[RY_N_LAYOUTS];

/* Prefix of tensors that only training reads. */
#define RY_TRAINING_PREFIX "training."

/* ---- naming of one checkpoint -------------------------------------------------------------- */

enum { RY_NAME_MAX = 192, RY_PREFIX_MAX = 64, RY_MAX_BLOCKS = 1024 };

typedef struct ry_tensor_naming {
    ry_layout layout;
    int is_clip, is_siglip;
    const ry_tensor_layout *of;
    const ry_tensor_name *table;
    size_t n_names;
    char prefix[RY_PREFIX_MAX];      /* of every name except those of heads: "", "model.", "vit." */
    char head_prefix[RY_PREFIX_MAX]; /* of the names of heads */
    char root[RY_PREFIX_MAX];        /* of ry_tensor_layout.others */
    uint32_t n_blocks;               /* highest block number found + 1 */
    unsigned groups;                 /* ry_tensor_group bits that are present */
} ry_tensor_naming;

/* 1 if one of the layouts fits: its names[0] is among the tensors, after any prefix. */
int ry_tensor_naming_among(ry_tensor_naming *out, const ry_tensors *set,
                           const ry_tensor_layout *layouts, size_t n_layouts);

/* The same for the layouts of a ViT or an image tower of CLIP. */
int ry_vit_naming_find(ry_tensor_naming *out, const ry_tensors *set);

/* "timm's patch_embed.proj.weight, ...": what ry_vit_naming_find looks for, for messages. */
const char *ry_vit_naming_looked_for(void);

/* Naming for a timm model of this configuration to be written. */
ry_tensor_naming ry_vit_naming_timm(const ry_vit_config *config);

/* Naming for a DINOv2 classifier of this configuration to be written, as Hugging Face's
 * save_pretrained names it; timm has no head that reads class token and mean. */
ry_tensor_naming ry_vit_naming_dinov2(const ry_vit_config *config);

/* Naming for the image tower of a CLIP to be written, in Hugging Face's layout. */
ry_tensor_naming ry_vit_naming_clip(uint32_t n_blocks);

/* The same of a SigLIP. */
ry_tensor_naming ry_vit_naming_siglip(uint32_t n_blocks);

/* The name of a table row in this checkpoint; `block` is used if the pattern has a '#'. */
void ry_tensor_name_write(char out[RY_NAME_MAX], const ry_tensor_naming *n,
                          const ry_tensor_name *row, uint32_t block);
int ry_tensor_name_in_block(const ry_tensor_name *row);

/* The table row that a tensor's name belongs to, and its block; NULL if none. */
const ry_tensor_name *ry_tensor_name_match(const ry_tensor_naming *n, const char *name,
                                           uint32_t *block);

/* 1 if the tensor belongs to another part of the file (ry_tensor_layout.others). */
int ry_tensor_name_is_other(const ry_tensor_naming *n, const char *name);

/* Calls visit for every tensor that a model of this naming has: in table order, and the rows of a
 * block for one block after the other. */
typedef void (*ry_tensor_name_visitor)(void *user, const ry_tensor_naming *n,
                                       const ry_tensor_name *row, uint32_t block);
void ry_tensor_names_each(const ry_tensor_naming *n, ry_tensor_name_visitor visit, void *user);

/* NULL if the layout has no such role or the checkpoint no such tensor. */
const ry_tensor *ry_tensor_of_role(const ry_tensor_naming *n, const ry_tensors *set,
                                   ry_tensor_role role, uint32_t block);

/* ---- checks (tensor_check.c) --------------------------------------------------------------- */

/* The extents of a ViT with this configuration. */
void ry_vit_extents(uint64_t out[RY_X_COUNT], const ry_vit_config *config);

/* Size of one axis of a tensor (of block 0) with n_dims dimensions; 0 if it is absent or has
 * another number of dimensions. */
uint64_t ry_tensor_size(const ry_tensor_naming *n, const ry_tensors *set, ry_tensor_role role,
                        uint32_t n_dims, uint32_t axis);

typedef struct ry_extent_limit {
    ry_tensor_extent extent;
    uint64_t max;
    const char *what; /* "width" */
} ry_extent_limit;

/* RENYI_ERR_LIMIT with the first of x above its limit; the message begins with `tower`. */
renyi_status ry_tensor_check_extents(const uint64_t *x, const ry_extent_limit *limits, size_t n,
                                     const char *tower, renyi_error *err) RENYI_CHECK;

/* The error for a file without a known layout: what was looked for and what is there. `said`: what
 * its config calls it; NULL = nothing. */
renyi_status ry_vit_not_found(const ry_tensors *set, const char *said, renyi_error *err);

/* RENYI_ERR_UNSUPPORTED with the first tensor that only another architecture has. */
renyi_status ry_vit_check_family(const ry_tensor_naming *n, const ry_tensors *set,
                                 renyi_error *err) RENYI_CHECK;

/* Checks every tensor: missing, wrong shape, not a float type, unknown. One message lists all
 * faults. extents[x] = 0 means unknown, because the tensor that defines it is itself faulty. */
renyi_status ry_tensor_check_all(const ry_tensor_naming *n, const uint64_t extents[RY_X_COUNT],
                                 const ry_tensors *set, renyi_error *err) RENYI_CHECK;

#endif
