/* policy_spec.h - a pruning policy as a struct, read from text and printed as text.
 *
 *   none
 *   naive   p=8 layers=0-5 metric=col n=4
 *   evit    keep=0.7 layers=0,3,6 metric=correct n=2 c=0.8 fuse
 *   mosaic  keep=0.7 layers=0,3,6
 *   tome    r=13
 *   ats     keep=0.7 layers=3,6,9
 *   prumerge tokens=192 metric=col
 *   random  tokens=192 seed=1
 *   fastv   layer=2 tokens=144
 *
 * First a rule or a preset's name, then key=value in any order (policy_keys.c lists them). A
 * policy knows no model; ry_policy_check checks it against one. Rates are always what is *kept*, p
 * is what is *removed* per layer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_SPEC_H
#define RY_POLICY_SPEC_H

#include "prune/policy/rule_list.h"

#include <stdint.h>

enum {
    RY_MAX_CUTS = 64,          /* layers of a policy; no common encoder is deeper */
    RY_MAX_POLICY_TEXT = 1024, /* bytes of a policy, as typed and as printed */
};

typedef enum ry_rule {
    RY_RULE_NONE,
    RY_RULE_NAIVE,
    RY_RULE_EVIT,
    RY_RULE_MOSAIC,
    RY_RULE_TOME,
    RY_RULE_ATS,
    RY_RULE_TCA,
    RY_RULE_OWN, /* the caller's own: scores, or whole decisions */
    RY_RULE_OWN_CUT,
    RY_RULE_FASTV, /* from here to PRUMERGE: rules inside the language model of a LLaVA */
    RY_RULE_PYRAMIDDROP,
    RY_RULE_DART,
    RY_RULE_SPARSEVLM,
    RY_RULE_PRUMERGE, /* from here on: rules behind the tower of a LLaVA */
    RY_RULE_VISPRUNER,
    RY_RULE_VISIONZIP,
    RY_RULE_DIVPRUNE,
    RY_RULE_HIPRUNE,
    RY_RULE_MOSAIC_BEHIND,
    RY_RULE_CDPRUNER,
    RY_RULE_RANDOM,
    RY_RULE_UNIFORM,
    RY_RULE_POOL,
    RY_RULE_DOWNSAMPLE /* before the tower: the image itself is smaller */
} ry_rule;

typedef enum ry_metric {
    RY_METRIC_CLS,     /* head-mean attention of the class token */
    RY_METRIC_COL,     /* Col-Ln */
    RY_METRIC_CORRECT, /* class attention first, then a share c rescued by Col-Ln (Algorithm 2) */
    RY_METRIC_RANDOM,
    RY_METRIC_RENYI,   /* smallest Renyi entropy of order n of the normalized column */
    RY_METRIC_SHANNON, /* its limit n -> 1 */
    RY_METRIC_COLV,    /* Col-Ln times the l2 norm of the token's value vector */
    RY_METRIC_POOL,    /* head-mean attention of the pooling head's probe */
    RY_METRIC_LAST,    /* inside a language model: head-mean attention of the last row */
    RY_METRIC_TEXT,    /* cdpruner: how relevant a patch is to the question */
    RY_METRIC_OWN      /* what the caller's own rule says; has no name in a policy */
} ry_metric;

typedef enum ry_reduce { RY_REDUCE_DROP, RY_REDUCE_FUSE, RY_REDUCE_MERGE } ry_reduce;
typedef enum ry_rounding {
    RY_ROUND_CODE,
    RY_ROUND_PAPER
} ry_rounding; /* trunc(K*c) for Col; floor(K*(1-c)) for cls */
typedef enum ry_heads {
    RY_HEADS_MEAN,
    RY_HEADS_EACH
} ry_heads; /* mean before the norm; norm of each, then mean */
typedef enum ry_fuse_weights {
    RY_FUSE_CLS,
    RY_FUSE_SCORE,
    RY_FUSE_POOL, /* attention of the pooling head's probe */
    RY_FUSE_AUTO  /* cls where the encoder has a class token, pool where it has a pooling head, else
                     score; ry_policy_check decides */
} ry_fuse_weights;
typedef enum ry_place {
    RY_PLACE_MID,
    RY_PLACE_END
} ry_place; /* between attention and MLP; after the block */
typedef enum ry_order { RY_ORDER_SCORE, RY_ORDER_POSITION } ry_order; /* of the kept tokens */
typedef enum ry_start {
    RY_START_BEST,
    RY_START_RANDOM
} ry_start; /* tca's first centre: the best-scored of those that merge; drawn by the seed */

/* Rows of a language model whose attention counts in a column. */
typedef enum ry_lm_rows { RY_LM_ROWS_ALL, RY_LM_ROWS_TEXT } ry_lm_rows; /* text: after the image */

/* How many tokens stay, per cut. */
typedef enum ry_budget {
    RY_BUDGET_KEEP,    /* ceil(keep * patches); ats: round(keep * tokens), at least 8; inside a
                          language model: int(keep * patches), of all cuts so far */
    RY_BUDGET_DROP,    /* patches - p, or tome's r */
    RY_BUDGET_COUNT,   /* exactly this many */
    RY_BUDGET_SHARE,   /* tca: computed from the share that is removed */
    RY_BUDGET_ADAPTIVE /* prumerge: the outliers of this image */
} ry_budget;

typedef struct ry_policy_cut {
    uint32_t layer;
    double keep;      /* RY_BUDGET_KEEP; a double: with a float ceil(0.8 * 10) is 9 */
    uint32_t count;   /* RY_BUDGET_DROP: p, or tome's r; RY_BUDGET_COUNT: tokens */
    ry_reduce reduce; /* merge for mosaic, tome, tca and RY_RULE_OWN_CUT, drop for ats */
    double drop;      /* RY_BUDGET_SHARE; a double too */
} ry_policy_cut;

/* Fields that the rule or the metric does not use are 0 (class_row, registers and diagonal: 1). */
typedef struct ry_policy {
    ry_rule rule;
    const ry_own_rule *own; /* the caller's own rule, borrowed from its model; else NULL */
    ry_metric metric;
    double
        n; /* order of col, correct, renyi, colv and own columns; >= 1 or INFINITY; 1 for shannon */
    double c; /* rescue ratio of correct: share of the kept that Col-Ln chooses */
    ry_rounding rounding;
    ry_heads heads;
    int class_row; /* the rows of class and distillation token count in a column */
    int registers; /* the rows of registers count in a column */
    int diagonal;  /* a token's attention to itself counts in its column */
    ry_fuse_weights weights;
    ry_place place;
    ry_order order;
    ry_start start;
    uint64_t seed;       /* of random, and of start */
    uint32_t levels;     /* ats: steps of the cumulative score; 0 = as many as the budget */
    int plus;            /* prumerge: also patches at equal distances */
    uint32_t neighbours; /* prumerge: tokens that are merged into each kept one */
    double important;    /* vispruner: share of the kept that the metric chooses */
    uint32_t round;      /* vispruner: duplicates that a round removes at most */
    ry_order residual;   /* vispruner: order of the others before the rounds */
    double contextual;   /* visionzip: share of the kept that merges others */
    int class_token;     /* visionzip: the class token is one of the kept */
    double anchors;      /* hiprune: share of the kept that are anchors and their neighbours */
    uint32_t block;      /* hiprune: the block whose attention finds the anchors */
    int over_image;      /* behind the tower of a LLaVA-NeXT: base and tiles share the budget */
    int drops_newlines;  /* the same: lines of patches do not end with a row of their own */
    ry_lm_rows rows;     /* fastv, pyramiddrop: rows that count in a column */
    int renumbers;       /* the same and dart: positions after a cut are consecutive; sparsevlm:
                            always */
    uint32_t pivots, text_pivots; /* dart */
    double recycle;               /* sparsevlm: share of the dropped that is merged */
    uint32_t members;             /* sparsevlm: tokens of a merged row */
    double alpha;                 /* mosaic: power of attention in the choice */
    double omega;       /* mosaic: power of attention per patch in the weights of a merge */
    double beta;        /* mosaic: factor of log(size) in later attention */
    int longest;        /* mosaic: merged rows are as long as their longest member */
    double memory;      /* mosaic: share of earlier cuts in the importance of a patch */
    double col;         /* mosaic: share of Col-L2 beside attention in the importance */
    double temperature; /* mosaic: divides the logits of attention after the first merge */
    double likeness;    /* mosaic: only patches with a larger cosine go, down to the budget; 0 = as
                           many as the budget says */
    ry_budget budget;
    double inflection; /* tome: slope of r over the cuts, -1 to 1; 0 after ry_policy_check */
    uint32_t depth;    /* layers=.../12: layers are those of a model with so many blocks, until
                          ry_policy_check, which clears it; 0 = of the model itself */
    int every_layer;   /* layers=all: until ry_policy_check, which clears it, n_cuts is 1, or the
                          length of a list that says something for each layer */
    uint32_t n_cuts;
    ry_policy_cut cuts[RY_MAX_CUTS]; /* ascending layers, none twice. Of a rule behind the tower
                                        one, whose layer is idle */
} ry_policy;

/* What a policy must know of the encoder it is for. */
typedef struct ry_policy_shape {
    uint32_t n_blocks, n_patches, n_prefix;
    uint32_t grid;        /* patches per side */
    int visual;           /* its rows go to a language model: rules behind the tower are allowed */
    uint32_t n_squares;   /* visual: base and tiles of an image at most; 0 = 1 */
    uint32_t n_registers; /* of n_prefix: the last ones */
    int pools; /* no class token, but an attention-pooling head: its probe takes that place */
    uint32_t lm_layers; /* of the language model that reads the patches; 0 = none runs */
} ry_policy_shape;

static inline int ry_policy_has_class(const ry_policy_shape *s)
{
    return s->n_prefix > s->n_registers;
}

/* Reads text (or a preset's name, "paper:..."). Defaults are filled in; RENYI_ERR_ARG names the
 * wrong word, what is allowed, and its offset in the text. */
renyi_status ry_policy_parse(ry_policy *out, const char *text, renyi_error *err) RENYI_CHECK;

/* The same where a model is given: its own rules are rules too. NULL = no model. */
renyi_status ry_policy_parse_own(ry_policy *out, const char *text, const ry_own_rules *own,
                                 renyi_error *err) RENYI_CHECK;

/* The policy in full with every default; parses back to the same struct. */
void ry_policy_print(char out[RY_MAX_POLICY_TEXT], const ry_policy *p);

/* Resolves depth, every_layer, inflection and weights=auto and checks the policy against an
 * encoder: layers exist, every cut leaves at least one patch, and a class token exists if one is
 * needed. */
renyi_status ry_policy_check(ry_policy *p, const ry_policy_shape *shape,
                             renyi_error *err) RENYI_CHECK;

/* Tokens (prefix and fused counted in) that leave cut `i` when n_tokens enter it. n_tokens: the
 * cut does nothing, also where fusing would remove one token and add one. If
 * ry_policy_is_adaptive an upper bound. */
uint32_t ry_policy_tokens_after(const ry_policy *p, uint32_t i, uint32_t n_tokens,
                                uint32_t n_prefix);

/* Does the number of tokens depend on the image? ry_policy_tokens_after is then an upper bound. */
int ry_policy_is_adaptive(const ry_policy *p);

/* Patches that cut `i` of naive, evit and mosaic keeps of `patches`; at least one. With likeness:
 * at least. */
uint32_t ry_policy_patches_kept(const ry_policy *p, uint32_t i, uint32_t patches);

/* What a cut of tca does with its patches: the best stay, the next are merged into centres, the
 * rest is fused into one row. */
enum { RY_TCA_CENTRES = 4 };
typedef struct ry_tca_split {
    uint32_t keep, merge, fuse; /* they sum to the patches */
} ry_tca_split;
/* Returns 0 and leaves *out alone if nothing would be kept. */
int ry_policy_tca_split(const ry_policy_cut *cut, uint32_t patches, ry_tca_split *out);

/* Is it a rule of the caller's own that reads this (RENYI_NEED_*)? */
static inline int ry_policy_own_needs(const ry_policy *p, uint32_t what)
{
    return p->own && (p->own->rule.needs & what);
}

/* Is it a rule for the visual tokens of a LLaVA, behind its tower or (downsample) before it? Such a
 * rule cuts no block. */
static inline int ry_policy_is_visual(const ry_policy *p) { return p->rule >= RY_RULE_PRUMERGE; }

/* Is it a rule inside the language model of a LLaVA? Its layers are those of the language model. */
static inline int ry_policy_is_lm(const ry_policy *p)
{
    return p->rule >= RY_RULE_FASTV && p->rule < RY_RULE_PRUMERGE;
}

/* Visual tokens that cut `i` of such a rule keeps, of n that were read; at most n. */
uint32_t ry_policy_lm_count(const ry_policy *p, uint32_t i, uint32_t n);

/* dart: tokens that a pivot adds, of n. */
uint32_t ry_policy_dart_share(const ry_policy *p, uint32_t n);

/* sparsevlm: how many of the tokens that a cut drops are merged, and into how many rows. */
uint32_t ry_policy_recycled(const ry_policy *p, uint32_t dropped);
uint32_t ry_policy_recycled_rows(const ry_policy *p, uint32_t dropped);

/* Every cut of such a rule keeps at least one visual token of n, and no more than arrive there. */
renyi_status ry_policy_check_lm_counts(const ry_policy *p, uint32_t n,
                                       renyi_error *err) RENYI_CHECK;

/* Patches that a rule behind the tower chooses by its metric (prumerge) or rows that it keeps in
 * all (the others), as the published code truncates; 0 with RY_BUDGET_ADAPTIVE. */
uint32_t ry_policy_visual_count(const ry_policy *p, uint32_t patches);

/* prumerge plus: patches 0, stride, 2 stride ... are kept too; 0 = none. count: patches chosen
 * by score. */
uint32_t ry_policy_plus_stride(uint32_t count, uint32_t patches);

/* downsample: patches a side of the smaller image, the most whose square is within the budget. */
uint32_t ry_policy_smaller_grid(const ry_policy *p, uint32_t patches);

/* Does it use random numbers? Images then need keys (ry_pruner_name_images). */
int ry_policy_draws(const ry_policy *p);

/* How many of the kept tokens the class row and Col-Ln choose (Algorithm 2). */
void ry_policy_split(const ry_policy *p, uint32_t kept, uint32_t *by_class, uint32_t *by_column);

/* Named policies: the rows of the paper, and the recommended ones. */
typedef struct ry_preset {
    const char *name, *text, *about;
} ry_preset;
const ry_preset *ry_presets(size_t *count);

/* Bytes of the printed policy without the NUL, also when they are more than RY_MAX_POLICY_TEXT. */
size_t ry_policy_text_length(const ry_policy *p);

/* Does any cut fuse? */
int ry_policy_fuses(const ry_policy *p);

#endif
