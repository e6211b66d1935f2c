/* presets.c - policies that have a name. Words behind the name override the preset's, so one name
 * serves every row of a table: "paper:naive-col p=24", "paper:evit-ours keep=0.8".
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/policy_spec.h"

/* The three columns of the paper's EViT tables at one choice of layers. "Ours" is Algorithm 2; the
 * paper's Table 16 says c = 0.8, the published code 0.2 (evit-ours-code), no text says which made
 * the tables. */
#define EVIT_ROWS(suffix, layers, tables)                                                       \
    {"paper:evit" suffix, "evit keep=0.7 layers=" layers " metric=cls fuse",                    \
     tables ", column CLS (plain EViT); other rows: keep=0.8, keep=0.9"},                       \
        {"paper:evit-ours" suffix,                                                              \
         "evit keep=0.7 layers=" layers " metric=correct n=2 c=0.8 fuse",                       \
         tables                                                                                 \
         ", column Ours: class attention, 80 % of the kept by Col-L2; other rows as above"},    \
    {                                                                                           \
        "paper:evit-random" suffix, "evit keep=0.7 layers=" layers " metric=random fuse",       \
            tables                                                                              \
            ", column Random; the fused token is weighted by the random scores, as in the code" \
    }

static const ry_preset presets[] = {
    {"fast", "mosaic keep=0.7 layers=0,3,6",
     "recommended: half the arithmetic; thins the grid in block 0, merges later"},
    {"balanced", "mosaic p=16 layers=0-5",
     "recommended: six tenths of the arithmetic, spread over the first six blocks"},
    {"careful", "mosaic keep=0.7 layers=3,6,9",
     "recommended: two thirds of the arithmetic, least loss"},
    {"paper:naive-cls", "naive p=16 layers=early metric=cls",
     "Tables 2 and 7, column CLS, first six blocks; other rows: p=4 to p=24"},
    {"paper:naive-col", "naive p=16 layers=early metric=col n=4",
     "Table 2, Ours: Col-L4 in the first six blocks; n as in the code, the paper says 2 to 4"},
    {"paper:naive-col-end", "naive p=16 layers=early metric=col n=4 at=end",
     "as paper:naive-col, cut after the block as the published file does; its GFLOPs are higher "
     "than the paper's"},
    {"paper:naive-correct", "naive p=16 layers=early metric=correct n=4 c=0.4",
     "Table 7, Ours: class attention, 40 % of the kept by Col-L4; c as in the code, the paper does "
     "not say"},
    {"paper:naive-cls-all", "naive p=8 layers=all metric=cls",
     "Tables 3 and 8, column CLS, every block; other rows: p=2 to p=12 (ViT-L: to p=6)"},
    {"paper:naive-col-all", "naive p=8 layers=all metric=col n=4",
     "Table 3, Ours: Col-L4 in every block; other rows as above"},
    {"paper:naive-correct-all", "naive p=8 layers=all metric=correct n=4 c=0.4",
     "Table 8, Ours: Algorithm 2 in every block; other rows as above"},
    EVIT_ROWS("", "3,6,9", "Tables 9-11, 13-15"),
    EVIT_ROWS("-036", "0,3,6", "Tables 1, 9-11, 13-15"),
    EVIT_ROWS("-147", "1,4,7", "Table 11"),
    EVIT_ROWS("-258", "2,5,8", "Table 11"),
    EVIT_ROWS("-4710", "4,7,10", "Table 11"),
    {"paper:tca", "tca drop=0.1 layers=3,6,9 metric=cls start=1",
     "Tables 4 and 5, column TCA, without its memory of earlier pictures; also layers=0,3,6"},
    {"paper:tca-ours", "tca drop=0.1 layers=3,6,9 metric=col n=4 start=1",
     "Tables 4 and 5, column Ours: Col-L4 in place of class attention; also layers=0,3,6"},
    {"paper:evit-ours-code", "evit keep=0.7 layers=3,6,9 metric=correct n=2 c=0.2 fuse",
     "as paper:evit-ours with the rescue ratio of the published code"},
};

const ry_preset *ry_presets(size_t *count)
{
    *count = sizeof presets / sizeof *presets;
    return presets;
}
