/* policy_keys.c - the tables of the policy grammar: rules, keys with their values, and presets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/policy_keys.h"
#include "prune/policy/policy_spec.h"

#include <stdio.h>
#include <string.h>

#define RULE(x) (1u << RY_RULE_##x)
#define METRIC(x) (1u << RY_METRIC_##x)
enum {
    RANKED = RULE(NAIVE) | RULE(EVIT), /* rules that rank by a metric and keep the best */
    OWN = RULE(OWN) | RULE(OWN_CUT),   /* the caller's own */
    CUTTING = RANKED | RULE(MOSAIC) | RULE(TOME) | RULE(ATS) | RULE(TCA) | OWN,
    SCORED = RULE(PRUMERGE) | RULE(VISPRUNER) | RULE(VISIONZIP) | RULE(HIPRUNE) |
             RULE(MOSAIC_BEHIND) | RULE(CDPRUNER), /* behind the tower, by a metric */
    VISUAL = SCORED | RULE(DIVPRUNE) | RULE(RANDOM) | RULE(UNIFORM) | RULE(POOL) |
             RULE(DOWNSAMPLE), /* for the visual tokens of a LLaVA */
    LM_RANKED = RULE(FASTV) | RULE(PYRAMIDDROP),
    LM = LM_RANKED | RULE(DART) | RULE(SPARSEVLM), /* rules inside the language model */
    ORDERED = METRIC(COL) | METRIC(CORRECT) | METRIC(RENYI) | METRIC(COLV),
    COLUMNS = ORDERED | METRIC(SHANNON)
};

const ry_name ry_rule_names[] = {
    {"none", RY_RULE_NONE},
    {"naive", RY_RULE_NAIVE},
    {"evit", RY_RULE_EVIT},
    {"mosaic", RY_RULE_MOSAIC},
    {"tome", RY_RULE_TOME},
    {"ats", RY_RULE_ATS},
    {"tca", RY_RULE_TCA},
    {"fastv", RY_RULE_FASTV},
    {"pyramiddrop", RY_RULE_PYRAMIDDROP},
    {"dart", RY_RULE_DART},
    {"sparsevlm", RY_RULE_SPARSEVLM},
    {"prumerge", RY_RULE_PRUMERGE},
    {"vispruner", RY_RULE_VISPRUNER},
    {"visionzip", RY_RULE_VISIONZIP},
    {"divprune", RY_RULE_DIVPRUNE},
    {"hiprune", RY_RULE_HIPRUNE},
    {"mosaic-behind", RY_RULE_MOSAIC_BEHIND},
    {"cdpruner", RY_RULE_CDPRUNER},
    {"random", RY_RULE_RANDOM},
    {"uniform", RY_RULE_UNIFORM},
    {"pool", RY_RULE_POOL},
    {"downsample", RY_RULE_DOWNSAMPLE},
    {NULL, 0},
};
static const ry_name metric_names[] = {
    {"cls", RY_METRIC_CLS},
    {"col", RY_METRIC_COL},
    {"correct", RY_METRIC_CORRECT},
    {"random", RY_METRIC_RANDOM},
    {"renyi", RY_METRIC_RENYI},
    {"shannon", RY_METRIC_SHANNON},
    {"colv", RY_METRIC_COLV},
    {"pool", RY_METRIC_POOL},
    {"last", RY_METRIC_LAST},
    {"text", RY_METRIC_TEXT},
    {NULL, 0},
};
static const ry_name reduce_names[] = {
    {"drop", RY_REDUCE_DROP}, {"fuse", RY_REDUCE_FUSE}, {"merge", RY_REDUCE_MERGE}, {NULL, 0}};
static const ry_name rounding_names[] = {
    {"code", RY_ROUND_CODE}, {"paper", RY_ROUND_PAPER}, {NULL, 0}};
static const ry_name heads_names[] = {{"mean", RY_HEADS_MEAN}, {"each", RY_HEADS_EACH}, {NULL, 0}};
static const ry_name weights_names[] = {{"cls", RY_FUSE_CLS},
                                        {"score", RY_FUSE_SCORE},
                                        {"pool", RY_FUSE_POOL},
                                        {"auto", RY_FUSE_AUTO},
                                        {NULL, 0}};
static const ry_name place_names[] = {{"mid", RY_PLACE_MID}, {"end", RY_PLACE_END}, {NULL, 0}};
static const ry_name order_names[] = {
    {"score", RY_ORDER_SCORE}, {"position", RY_ORDER_POSITION}, {NULL, 0}};
static const ry_name residual_names[] = {{"score", RY_ORDER_SCORE},
                                         {"position", RY_ORDER_POSITION},
                                         {"auto", RY_RESIDUAL_AUTO},
                                         {NULL, 0}};
static const ry_name length_names[] = {{"mean", 0}, {"max", 1}, {NULL, 0}};
static const ry_name budget_names[] = {{"tile", 0}, {"image", 1}, {NULL, 0}};
static const ry_name rows_names[] = {{"all", RY_LM_ROWS_ALL}, {"text", RY_LM_ROWS_TEXT}, {NULL, 0}};
static const ry_name position_names[] = {{"original", 0}, {"consecutive", 1}, {NULL, 0}};
static const ry_name yes_no[] = {{"yes", 1}, {"no", 0}, {NULL, 0}};

const ry_key_info ry_keys[RY_N_KEYS] = {
    [RY_KEY_KEEP] =
        {"keep", RULE(EVIT) | RULE(MOSAIC) | RULE(ATS) | OWN | VISUAL | LM, 0, NULL,
         "the share of patches that stay, a plain decimal above 0 and at most 1, or one per layer"},
    [RY_KEY_P] = {"p", RULE(NAIVE) | RULE(MOSAIC) | OWN, 0, NULL,
                  "the number of patches removed in each layer, 0 to 999999, or one per layer"},
    [RY_KEY_TOKENS] = {"tokens", RULE(EVIT) | RULE(MOSAIC) | RULE(ATS) | OWN | VISUAL | LM, 0, NULL,
                       "the number of patches that stay, 1 to 999999, or one per layer (prumerge: "
                       "one number, or adaptive)"},
    [RY_KEY_R] = {"r", RULE(TOME), 0, NULL,
                  "the number of tokens merged in each layer, 0 to 999999, or one per layer"},
    [RY_KEY_DROP] = {"drop", RULE(TCA), 0, NULL,
                     "the share of patches that goes, a plain decimal above 0 and below 1, or one "
                     "per layer"},
    [RY_KEY_INFLECTION] = {"inflection", RULE(TOME), 0, NULL,
                           "a plain decimal from -1 (r falls from 2r to 0) to 1 (it rises)"},
    [RY_KEY_PLUS] = {"plus", RULE(PRUMERGE), 0, yes_no, NULL},
    [RY_KEY_IMPORTANT] = {"important", RULE(VISPRUNER), 0, NULL,
                          "the share of the kept patches that the metric chooses, a plain decimal "
                          "from 0 to 1"},
    [RY_KEY_CONTEXTUAL] = {"contextual", RULE(VISIONZIP), 0, NULL,
                           "the share of the kept rows that merge the other patches, a plain "
                           "decimal from 0 to 1"},
    [RY_KEY_CLASS_TOKEN] = {"class_token", RULE(VISIONZIP), 0, yes_no, NULL},
    [RY_KEY_ANCHORS] = {"anchors", RULE(HIPRUNE), 0, NULL,
                        "the share of the kept patches that are anchors and their neighbours, a "
                        "plain decimal from 0 to 1"},
    [RY_KEY_BLOCK] = {"block", RULE(HIPRUNE), 0, NULL,
                      "the block whose attention finds the anchors, from 0"},
    [RY_KEY_LAYERS] =
        {"layers", CUTTING | RULE(PYRAMIDDROP) | RULE(SPARSEVLM), 0, NULL,
         "a list of blocks such as 3 or 0-5 or 0,3,6 or (0, 3, 6), or early (0-5), or all; 2-9/12 "
         "are blocks 2 to 9 of a model with 12, and those at the same depth of another"},
    [RY_KEY_LAYER] = {"layer", RULE(FASTV) | RULE(DART), 0, NULL,
                      "the number of layers of the language model that see all visual tokens, 1 "
                      "to 999999"},
    [RY_KEY_ALPHA] = {"alpha", RULE(MOSAIC) | RULE(MOSAIC_BEHIND), 0, NULL,
                      "the power of attention in the choice, a plain decimal from 0 to 4"},
    [RY_KEY_OMEGA] = {"omega", RULE(MOSAIC) | RULE(MOSAIC_BEHIND), 0, NULL,
                      "the power of attention per patch in the weights of a merge, a plain decimal "
                      "from 0 to 2"},
    [RY_KEY_BETA] = {"beta", RULE(MOSAIC), 0, NULL,
                     "the factor of log(size) in later attention, a plain decimal from 0 to 2"},
    [RY_KEY_MEMORY] = {"memory", RULE(MOSAIC), 0, NULL,
                       "the share of earlier cuts in the importance of a patch, a plain decimal "
                       "from 0 to 1"},
    [RY_KEY_LENGTH] = {"length", RULE(MOSAIC) | RULE(MOSAIC_BEHIND), 0, length_names, NULL},
    [RY_KEY_COL] = {"col", RULE(MOSAIC), 0, NULL,
                    "the share of Col-L2 beside class attention in the importance of a patch, a "
                    "plain decimal from 0 to 1"},
    [RY_KEY_TEMPERATURE] = {"temperature", RULE(MOSAIC), 0, NULL,
                            "what divides the logits of attention after the first merge, a plain "
                            "decimal from 0.5 to 2"},
    [RY_KEY_LIKENESS] = {"likeness", RULE(MOSAIC), 0, NULL,
                         "the cosine above which a patch may go, a plain decimal from 0 to 1; 0 = "
                         "patches go by their number alone"},
    [RY_KEY_METRIC] = {"metric", RANKED | RULE(TCA) | SCORED | LM_RANKED, 0, metric_names, NULL},
    [RY_KEY_N] = {"n", RANKED | RULE(TCA) | OWN | SCORED | LM_RANKED | RULE(SPARSEVLM), ORDERED,
                  NULL, "a plain decimal of at least 1, or inf"},
    [RY_KEY_ROWS] = {"rows", LM_RANKED, METRIC(COL), rows_names, NULL},
    [RY_KEY_C] = {"c", RANKED | SCORED, METRIC(CORRECT), NULL, "a plain decimal from 0 to 1"},
    [RY_KEY_ROUNDING] = {"rounding", RANKED, METRIC(CORRECT), rounding_names, NULL},
    [RY_KEY_HEADS] = {"heads", RANKED, COLUMNS, heads_names, NULL},
    [RY_KEY_CLASS_ROW] = {"class_row", RANKED, COLUMNS, yes_no, NULL},
    [RY_KEY_REGISTERS] = {"registers", RANKED, COLUMNS, yes_no, NULL},
    [RY_KEY_DIAGONAL] = {"diagonal", RANKED, COLUMNS, yes_no, NULL},
    [RY_KEY_SEED] = {"seed", RANKED | RULE(RANDOM), METRIC(RANDOM), NULL,
                     "a whole number from 0 to 18446744073709551615"},
    [RY_KEY_REDUCE] = {"reduce", RANKED | RULE(OWN), 0, reduce_names, NULL},
    [RY_KEY_WEIGHTS] = {"weights", RANKED | RULE(OWN), 0, weights_names, NULL},
    [RY_KEY_AT] = {"at", RANKED | OWN, 0, place_names, NULL},
    [RY_KEY_ORDER] = {"order", RANKED | RULE(OWN), 0, order_names, NULL},
    [RY_KEY_START] = {"start", RULE(TCA), 0, NULL,
                      "best, or a whole number: the seed by which the first centre is drawn"},
    [RY_KEY_LEVELS] = {"levels", RULE(ATS), 0, NULL,
                       "budget (as many as patches may stay), or a number from 1 to 999999; 196 as "
                       "published"},
    [RY_KEY_NEIGHBOURS] = {"neighbours", RULE(PRUMERGE), 0, NULL,
                           "the number of tokens that each kept one takes in, 0 to 999999"},
    [RY_KEY_ROUND] = {"round", RULE(VISPRUNER), 0, NULL,
                      "the number of duplicates that a round removes, 1 to 999999"},
    [RY_KEY_RESIDUAL] = {"residual", RULE(VISPRUNER), 0, residual_names, NULL},
    [RY_KEY_BUDGET] = {"budget", VISUAL, 0, budget_names, NULL},
    [RY_KEY_NEWLINES] = {"newlines", VISUAL, 0, yes_no, NULL},
    [RY_KEY_PIVOTS] = {"pivots", RULE(DART), 0, NULL,
                       "the number of visual tokens that others are compared with, 1 to 999999"},
    [RY_KEY_TEXT_PIVOTS] = {"text_pivots", RULE(DART), 0, NULL,
                            "the number of text tokens that visual ones are compared with, 0 to "
                            "999999"},
    [RY_KEY_RECYCLE] = {"recycle", RULE(SPARSEVLM), 0, NULL,
                        "the share of the dropped tokens that is merged, a plain decimal from 0 to "
                        "1; 0 = none"},
    [RY_KEY_MEMBERS] = {"members", RULE(SPARSEVLM), 0, NULL,
                        "the number of tokens of a merged row, about, 1 to 999999"},
    [RY_KEY_POSITIONS] = {"positions", LM_RANKED | RULE(DART), 0, position_names, NULL},
};

const ry_name *ry_name_find(const ry_name *names, const char *word, size_t len)
{
    for (; names->name; names++)
        if (strlen(names->name) == len && memcmp(names->name, word, len) == 0) return names;
    return NULL;
}

const char *ry_name_of(const ry_name *names, int value)
{
    for (; names->name; names++)
        if (names->value == value) return names->name;
    return "?";
}

const char *ry_rule_name(ry_rule rule, const ry_own_rule *own)
{
    return own ? own->name : ry_name_of(ry_rule_names, (int)rule);
}

void ry_name_add(char *out, size_t size, const char *name)
{
    const size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", used ? ", " : "", name);
}

void ry_name_list(char *out, size_t size, const ry_name *names, uint32_t mask)
{
    out[0] = '\0';
    for (; names->name; names++)
        if (mask >> names->value & 1u) ry_name_add(out, size, names->name);
}

void ry_key_list(char *out, size_t size, ry_rule rule)
{
    out[0] = '\0';
    for (ry_key k = 0; k < RY_N_KEYS; k++)
        if (ry_key_for_rule(k, rule)) ry_name_add(out, size, ry_keys[k].name);
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Levenshtein distance: letters to insert, delete or replace. */
enum { LONGEST = 32 };
static size_t edits(const char *a, size_t na, const char *b, size_t nb)
{
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= nb; j++) row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            const size_t replace = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            const size_t shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < shift ? replace : shift;
        }
    }
    return row[nb];
}

void ry_nearest_offer(ry_nearest *n, const char *word, size_t len, const char *candidate)
{
    const size_t other = strlen(candidate);
    if (len > LONGEST || other > LONGEST) return;
    const size_t d = edits(word, len, candidate, other);
    /* At most one edit per three letters counts as a typing mistake. */
    if (d * 3 > (len > other ? len : other)) return;
    if (n->best && n->distance <= d) return;
    n->best = candidate;
    n->distance = d;
}

const char *ry_nearest_hint(ry_nearest *n)
{
    n->hint[0] = '\0';
    if (n->best) snprintf(n->hint, sizeof n->hint, " (did you mean %s?)", n->best);
    return n->hint;
}

/* ---- presets --------------------------------------------------------------------------------- */

/* Policies with a name. Keys after the name override the preset's, so one name serves every row of
 * a table: "paper:naive-col p=24", "paper:evit-ours keep=0.8". */

/* The three columns of the paper's EViT tables at one choice of layers. "Ours" is Algorithm 2; the
 * paper's Table 16 says c = 0.8, the published code 0.2 (evit-ours-code), neither says which
 * made the tables. */
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

/* Small cuts in two thirds of the blocks, whatever their number. */
#define MOSAIC_AT(keep, temperature)                                                             \
    "mosaic keep=" keep " layers=2-9/12 alpha=1 omega=1 beta=0.8 memory=0.5 length=max col=0.2 " \
    "temperature=" temperature
#define MOSAIC(keep) MOSAIC_AT(keep, "1.05")

static const ry_preset presets[] = {
    {"half", MOSAIC("0.77"), "recommended: half the arithmetic"},
    {"half-adaptive", "cascade(" MOSAIC_AT("0.72", "1.1") " -> " MOSAIC("0.84") " if margin < 0.3)",
     "half the arithmetic on average; what is not clear runs again with fewer cuts"},
    {"sure", "cascade(" MOSAIC("0.78") " -> none if margin < 0.9)",
     "recommended: nearly always the dense answer; what is not clear runs again without pruning"},
    {"fast", MOSAIC("0.74"), "recommended: 0.46 of the arithmetic"},
    {"balanced", MOSAIC("0.84"), "recommended: six tenths of the arithmetic"},
    {"careful", MOSAIC("0.88"), "recommended: two thirds of the arithmetic, least loss"},
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
    /* The published code draws the first centre; it seeds with 1. */
    {"paper:tca", "tca drop=0.1 layers=3,6,9 metric=cls start=1",
     "Tables 4 and 5, column TCA, with --adapt tca; also layers=0,3,6"},
    {"paper:tca-ours", "tca drop=0.1 layers=3,6,9 metric=col n=4 start=1",
     "Tables 4 and 5, column Ours: Col-L4 in place of class attention; also layers=0,3,6"},
    {"paper:prumerge", "prumerge tokens=192 metric=cls",
     "Table 6, column PruMerge; also tokens=256"},
    {"paper:prumerge-ours", "prumerge tokens=192 metric=col n=4",
     "Table 6, column Ours: Col-L4 in place of class attention; also tokens=256"},
    {"paper:vispruner", "vispruner tokens=192 important=0.5 metric=cls",
     "Table 12, column VisPruner; also tokens=256; the paper does not say which share is important"},
    {"paper:vispruner-ours",
     "vispruner tokens=192 important=0.5 metric=correct n=4 c=0.2 residual=position",
     "Table 12, column Ours: 20 % of the important by Col-L4, c as in the code; also tokens=256"},
    {"paper:evit-ours-code", "evit keep=0.7 layers=3,6,9 metric=correct n=2 c=0.2 fuse",
     "as paper:evit-ours with the rescue ratio of the published code"},
    {"lvlm:random", "random", "a method of renyi table: visual tokens that are drawn"},
    {"lvlm:uniform", "uniform", "a method of renyi table: every n-th visual token"},
    {"lvlm:pool", "pool", "a method of renyi table: averages of neighbours"},
    {"lvlm:downsample", "downsample", "a method of renyi table: a smaller picture"},
    {"lvlm:visionzip", "visionzip", "a method of renyi table: VisionZip"},
    {"lvlm:divprune", "divprune", "a method of renyi table: DivPrune"},
    {"lvlm:hiprune", "hiprune", "a method of renyi table: HiPrune"},
    {"lvlm:mosaic-behind", "mosaic-behind", "a method of renyi table: mosaic on the visual tokens"},
    {"lvlm:fastv", "fastv metric=last", "a method of renyi table: FastV"},
    {"lvlm:fastv-col", "fastv metric=col", "a method of renyi table: FastV by Col-Ln"},
    {"lvlm:dart", "dart", "a method of renyi table: DART"},
    {"lvlm:prumerge", "prumerge metric=cls", "a method of renyi table: PruMerge"},
    {"lvlm:prumerge-col", "prumerge metric=col", "a method of renyi table: PruMerge by Col-Ln"},
    {"lvlm:vispruner", "vispruner metric=cls", "a method of renyi table: VisPruner"},
    {"lvlm:vispruner-correct", "vispruner metric=correct",
     "a method of renyi table: VisPruner, class attention corrected by Col-Ln"},
};

const ry_preset *ry_presets(size_t *count)
{
    *count = sizeof presets / sizeof *presets;
    return presets;
}
