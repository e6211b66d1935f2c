/* hook.h - where a block lets somebody see and change the token list. The model calls it, pruning
 * implements it, the engine ties the two; NULL means dense, and a dense run pays nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MODEL_HOOK_H
#define RY_MODEL_HOOK_H

#include <stddef.h>
#include <stdint.h>

/* What a rule wants to see of a block, asked once when the plan is made. */
enum {
    RY_NEED_CLASS_ROW = 1u << 0, /* head-mean attention of the class token */
    RY_NEED_COLUMNS = 1u << 1    /* column norms of the head-mean attention, of order `order` */
};

typedef struct ry_block_needs {
    uint32_t what;    /* RY_NEED_*; 0 = leave this block alone */
    double order;     /* n of the column norms: >= 1, or INFINITY */
    uint32_t n_after; /* tokens that leave the cut of this block; 0 = all of them */
} ry_block_needs;

/* What a block shows between attention and MLP, for one image. Pointers are borrowed for the call.
 */
typedef struct ry_block_view {
    uint32_t block, image;
    uint32_t n_tokens, dim, n_heads;
    uint32_t n_prefix;      /* leading tokens that must stay: class, distillation */
    const float *class_row; /* [N] with RY_NEED_CLASS_ROW */
    const float *columns;   /* [N] with RY_NEED_COLUMNS */
    const float *x;         /* [N, C] after the attention residual */
} ry_block_view;

typedef struct ry_token_hook {
    void (*needs)(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out);
    /* Writes the surviving rows to x_out [n_after, C]. Called once per image, from any thread, only
     * where needs() asked for something; NULL if the hook only watches. */
    void (*reduce)(void *self, const ry_block_view *view, float *x_out);
    void (*watch)(void *self, const ry_block_view *view); /* called before reduce; may be NULL */
    void *self;
} ry_token_hook;

#endif
