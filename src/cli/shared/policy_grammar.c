/* policy_grammar.c - see policy_grammar.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/policy_grammar.h"

#include <stddef.h>

const policy_word policy_rules[] = {
    {"none", NULL, "every token stays"},
    {"mosaic", NULL, "our own: thins the grid at block 0, later merges around important tokens"},
    {"evit", NULL, "keeps a share of the patches at a few blocks; the rest may be fused (EViT)"},
    {"naive", NULL, "removes p patches at every listed block (the Col-Ln paper's first setting)"},
    {"tome", NULL, "merges r pairs of similar tokens in every block (Token Merging)"},
    {"ats", NULL, "samples tokens by class attention, a number that adapts to the picture (ATS)"},
    {"tca", NULL, "keeps the best, merges the next around four centres, fuses the rest (TCA)"},
    {"prumerge", NULL, "LLaVA: keeps the best visual tokens, which take in their like (PruMerge)"},
    {"vispruner", NULL, "LLaVA: keeps the important and, of the others, the most unlike ones"},
    {NULL, NULL, NULL},
};

const policy_word policy_keys[] = {
    {"keep", "R", "share of the patches KEPT by a cut, 0 < R <= 1, rounded up; or one a layer"},
    {"p", "N", "patches REMOVED by a cut; or one a layer"},
    {"tokens", "N", "patches KEPT by a cut, as a number; or one a layer; prumerge: or adaptive"},
    {"r", "N", "tokens REMOVED by merging in a block; or one a layer"},
    {"drop", "R", "tca: share that goes; twice as many are merged, so that more are saved"},
    {"inflection", "X", "how r changes with depth, from -1 (falls) to 1 (rises)"},
    {"plus", "yes|no", "prumerge: also patches at equal distances; plus alone means yes"},
    {"important", "R", "vispruner: share of the kept that the metric chooses, 0 to 1"},
    {"layers", "L", "blocks that cut, from 0: 0,3,6 or 0-5 or early (0-5) or all"},
    {"metric", "M", "what ranks tokens: cls col correct random renyi shannon colv"},
    {"n", "N", "order of the column norm or entropy, 1 to inf"},
    {"c", "C", "correct: share of the kept that the column norm chooses, 0 to 1"},
    {"rounding", "code|paper", "correct: which of the two shares is rounded"},
    {"heads", "mean|each", "norm of the head mean, or mean of the norms of each head"},
    {"class_row", "yes|no", "the class token's row counts in a column"},
    {"diagonal", "yes|no", "a token's attention to itself counts in its column"},
    {"seed", "N", "of random"},
    {"reduce", "drop|fuse|merge", "what becomes of the removed; the words alone mean the same"},
    {"weights", "cls|score|auto", "of the fused token"},
    {"at", "mid|end", "cut between attention and MLP, or after the block"},
    {"order", "score|position", "of the kept tokens"},
    {"start", "best|SEED", "tca: the first centre, best-scored or drawn"},
    {"neighbours", "N", "prumerge: tokens that each kept one takes in"},
    {"round", "N", "vispruner: duplicates that a round removes"},
    {"residual", "score|position|auto", "vispruner: how the others are listed before the rounds"},
    {NULL, NULL, NULL},
};
