/* rule.h - the interface of a rule that cuts blocks: the table of functions that each rule
 * fills, and the struct behind ry_pruner. A new pruning method is a new file with one such table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RULE_H
#define RY_RULE_H

#include "kernels/kernels.h"
#include "prune/rules/pruner.h"

typedef struct ry_rule_ops {
    /* What cut `cut` needs of its block; n_after, place and factors of 1 are already set. */
    void (*needs)(const ry_pruner *p, uint32_t cut, ry_block_needs *needs);
    /* Tiles per image of a phase of this cut with n_tokens tokens; 0 = no such phase. */
    uint32_t (*tiles)(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase);
    void (*work)(ry_pruner *p, uint32_t cut, const ry_block_view *view, ry_cut *out, uint32_t phase,
                 uint32_t tile);
    /* Bytes of scratch per image valid from the first to the last phase of a cut. */
    size_t (*scratch)(const ry_pruner *p);
} ry_rule_ops;

/* What a rule of the caller's own keeps for each image (own_rules.h). */
typedef struct ry_own_image ry_own_image;

struct ry_pruner {
    ry_policy policy;
    ry_policy_shape shape;
    uint32_t dim, n_heads, max_batch;
    ry_kernels kernels;
    const ry_rule_ops *ops;
    uint32_t tokens_in[RY_MAX_CUTS], tokens_out[RY_MAX_CUTS]; /* of each cut */
    uint64_t *image_keys;                                     /* [max_batch] */
    unsigned char *scratch; /* [max_batch, scratch_each], each 64-byte aligned */
    size_t scratch_each;
    ry_own_image *own; /* [max_batch] of a rule of the caller's own, else NULL */
};

static inline void *ry_pruner_scratch(const ry_pruner *p, uint32_t image)
{
    return p->scratch + image * p->scratch_each;
}

/* Does the cut remove nothing, whatever the image? It is then not made. */
int ry_pruner_is_idle(const ry_pruner *p, uint32_t cut);

/* What a rule asks for that reads the class row: that of the class token, or of the pooling head's
 * probe if the encoder has that instead; 0 = it has neither. */
static inline uint32_t ry_pruner_row_need(const ry_pruner *p)
{
    return ry_policy_has_class(&p->shape) ? RY_NEED_CLASS_ROW
           : p->shape.pools               ? RY_NEED_POOL_ROW
                                          : 0;
}

extern const ry_rule_ops
    ry_rule_select; /* naive, evit, own scores: rank, keep the best, reduce the rest */
extern const ry_rule_ops ry_rule_own_cut; /* a rule of the caller's own that decides alone */
extern const ry_rule_ops ry_rule_mosaic, ry_rule_tome, ry_rule_ats, ry_rule_tca;

#endif
