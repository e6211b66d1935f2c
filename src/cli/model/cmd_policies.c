/* cmd_policies.c - renyi policies: the presets, and the rules and keys of a policy text.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the library parses policies; tests/cli/prune.sh checks that every key it knows is here.
 */
#include "cli/kit/options.h"
#include "cli/kit/output.h"
#include "cli/verbs.h"

#include <string.h>

typedef struct policy_entry {
    const char *name, *takes, *about; /* takes: the value of a key */
} policy_entry;

static const policy_entry policy_rules[] = {
    {"none", NULL, "every token stays"},
    {"mosaic", NULL, "our own: thins the grid at block 0, later merges around important tokens"},
    {"evit", NULL, "keeps a share of the patches at a few blocks; the rest may be fused (EViT)"},
    {"naive", NULL, "removes p patches at every listed block (the Col-Ln paper's first setting)"},
    {"tome", NULL, "merges r pairs of similar tokens in every block (Token Merging)"},
    {"ats", NULL, "samples tokens by class attention, a number that adapts to the picture (ATS)"},
    {"tca", NULL, "keeps the best, merges the next around four centres, fuses the rest (TCA)"},
    {"fastv", NULL, "LLaVA: drops visual tokens after a layer of the language model (FastV)"},
    {"pyramiddrop", NULL, "LLaVA: the same in stages, ranked by the layer that follows"},
    {"dart", NULL, "LLaVA: the same, keeps those least similar to a few pivots (DART)"},
    {"sparsevlm", NULL, "LLaVA: rates by the text, merges a part of the dropped (SparseVLM)"},
    {"prumerge", NULL, "LLaVA: keeps the best visual tokens, merges others into them (PruMerge)"},
    {"vispruner", NULL, "LLaVA: keeps important tokens and the most diverse others (VisPruner)"},
    {"visionzip", NULL, "LLaVA: keeps class token and best patches, merges the rest (VisionZip)"},
    {"divprune", NULL, "LLaVA: keeps the most diverse patches: max-min distance (DivPrune)"},
    {"hiprune", NULL, "LLaVA: keeps anchors of a middle block, neighbours, the best (HiPrune)"},
    {"mosaic-behind", NULL, "LLaVA: our own: merges around important visual tokens"},
    {"cdpruner", NULL, "LLaVA: keeps diverse tokens that matter for the question (CDPruner)"},
    {"random", NULL, "LLaVA: keeps random visual tokens; the baseline of every method"},
    {"uniform", NULL, "LLaVA: keeps every n-th visual token"},
    {"pool", NULL, "LLaVA: averages neighbouring visual tokens on a smaller grid"},
    {"downsample", NULL, "LLaVA: a smaller picture, so that the tower makes fewer visual tokens"},
    {NULL, NULL, NULL},
};

static const policy_entry policy_keys[] = {
    {"keep", "R", "share of the patches KEPT by a cut, 0 < R <= 1, rounded up; or one a layer"},
    {"p", "N", "patches REMOVED by a cut; or one a layer"},
    {"tokens", "N", "patches KEPT, as a number; or one a layer; prumerge: or adaptive"},
    {"r", "N", "tokens REMOVED by merging in a block; or one a layer"},
    {"drop", "R", "tca: share that goes; twice as many are merged, so that more are saved"},
    {"inflection", "X", "how r changes with depth, from -1 (falls) to 1 (rises)"},
    {"plus", "yes|no", "prumerge: also patches at equal distances; plus alone means yes"},
    {"important", "R", "vispruner: share of the kept that the metric chooses, 0 to 1"},
    {"contextual", "R", "visionzip: share of the kept rows that merge the others, 0 to 1"},
    {"class_token", "yes|no", "visionzip: the class token is one of the kept rows"},
    {"anchors", "R", "hiprune: share of the kept that are anchors and their neighbours, 0 to 1"},
    {"block", "N", "hiprune: the block whose attention finds the anchors, from 0"},
    {"layers", "L",
     "blocks that cut, from 0: 0,3,6 or 0-5 or early (0-5) or all; 2-9/12: of 12 blocks"},
    {"layer", "L", "fastv, dart: layers of the language model that see all visual tokens"},
    {"alpha", "X", "mosaic: power of attention in the choice, 0 to 4"},
    {"omega", "X", "mosaic: power of attention per patch in the weights of a merge, 0 to 2"},
    {"beta", "X", "mosaic: factor of log(size) in later attention, 0 to 2"},
    {"memory", "X", "mosaic: share of earlier cuts in the importance of a patch, 0 to 1"},
    {"length", "mean|max",
     "mosaic: length of a merged row: the mean or the largest of its members"},
    {"col", "X", "mosaic: share of Col-L2 beside attention in the importance of a patch, 0 to 1"},
    {"temperature", "X", "mosaic: divides the logits of attention after the first merge, 0.5 to 2"},
    {"likeness", "T", "mosaic: only patches of a larger cosine go, and keep is the least; 0 = all"},
    {"metric", "M", "what ranks tokens: cls col correct random renyi shannon colv pool last text"},
    {"n", "N", "order of the column norm or entropy, 1 to inf"},
    {"rows", "all|text", "fastv, pyramiddrop: rows that count in a column"},
    {"c", "C", "correct: share of the kept that the column norm chooses, 0 to 1"},
    {"rounding", "code|paper", "correct: which of the two shares is rounded"},
    {"heads", "mean|each", "norm of the head mean, or mean of the norms of each head"},
    {"class_row", "yes|no", "the class token's row counts in a column"},
    {"registers", "yes|no", "the rows of register tokens count in a column"},
    {"diagonal", "yes|no", "a token's attention to itself counts in its column"},
    {"seed", "N", "of random"},
    {"reduce", "drop|fuse|merge", "what becomes of the removed; the words alone mean the same"},
    {"weights", "cls|score|pool|auto", "of the fused token"},
    {"at", "mid|end", "cut between attention and MLP, or after the block"},
    {"order", "score|position", "of the kept tokens"},
    {"start", "best|SEED", "tca: the first centre, best-scored or drawn"},
    {"levels", "budget|N", "ats: steps of the cumulative score; 196 as published, with keep=1"},
    {"neighbours", "N", "prumerge: tokens that each kept one takes in"},
    {"round", "N", "vispruner: duplicates that a round removes"},
    {"residual", "score|position|auto", "vispruner: how the others are listed before the rounds"},
    {"budget", "tile|image",
     "LLaVA-NeXT: tokens=K for each square, or for base and tiles together"},
    {"newlines", "yes|no", "LLaVA-NeXT: each line of tiles ends with the row image_newline"},
    {"pivots", "N", "dart: visual tokens that others are compared with"},
    {"text_pivots", "N", "dart: the same of the tokens behind the image"},
    {"recycle", "R", "sparsevlm: share of the dropped that is merged, 0 to 1"},
    {"members", "N", "sparsevlm: tokens of a merged row, about"},
    {"positions", "original|consecutive", "fastv, pyramiddrop, dart: of the tokens after a cut"},
    {NULL, NULL, NULL},
};

/* The policy in full; "" if the library refuses it, which a test excludes. */
static const char *full_text(const char *text, char full[RENYI_POLICY_MAX])
{
    if (renyi_policy_check(text, NULL, full, RENYI_POLICY_MAX, NULL) != RENYI_OK) full[0] = '\0';
    return full;
}

static void put_presets(void)
{
    size_t width = 0;

    for (size_t i = 0; i < renyi_preset_count(); i++) {
        renyi_preset preset;
        renyi_preset_get(i, &preset);
        if (strlen(preset.name) > width) width = strlen(preset.name);
    }
    printf("Presets (--prune NAME):\n");
    for (size_t i = 0; i < renyi_preset_count(); i++) {
        renyi_preset preset;
        renyi_preset_get(i, &preset);
        printf("  %s%-*s%s  %s\n  %*s  %s\n", cli_bold(stdout), (int)width, preset.name,
               cli_plain(stdout), preset.about, (int)width, "", preset.policy);
    }
}

static void put_grammar(void)
{
    char full[RENYI_POLICY_MAX];

    printf("\nOr write your own: RULE [key=value...], everything not said at its default.\n"
           "Rules, with all their defaults:\n");
    for (const policy_entry *rule = policy_rules; rule->name; rule++)
        printf("  %-13s %s\n                %s\n", rule->name, rule->about,
               full_text(rule->name, full));
    printf("\nKeys (rates are what is KEPT, p and r what each cut REMOVES):\n");
    for (const policy_entry *key = policy_keys; key->name; key++)
        printf("  %s=%-*s %s\n", key->name, 24 - (int)strlen(key->name), key->takes, key->about);
    printf("\nOr two, the second only for images whose two best logits differ by less than M:\n"
           "  cascade(POLICY -> POLICY if margin < M) combine=second|mean\n");
}

static json_t *presets_json(void)
{
    json_t *list = json_array();
    char full[RENYI_POLICY_MAX];

    for (size_t i = 0; i < renyi_preset_count(); i++) {
        renyi_preset preset;
        renyi_preset_get(i, &preset);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", preset.name, "policy",
                                              preset.policy, "full", full_text(preset.policy, full),
                                              "about", preset.about));
    }
    return list;
}

static void put_json(void)
{
    json_t *rules = json_array(), *keys = json_array();
    char full[RENYI_POLICY_MAX];

    for (const policy_entry *rule = policy_rules; rule->name; rule++)
        json_array_append_new(rules, json_pack("{s:s, s:s, s:s}", "name", rule->name, "full",
                                               full_text(rule->name, full), "about", rule->about));
    for (const policy_entry *key = policy_keys; key->name; key++)
        json_array_append_new(keys, json_pack("{s:s, s:s, s:s}", "key", key->name, "takes",
                                              key->takes, "about", key->about));
    json_print(
        json_pack("{s:o, s:o, s:o}", "presets", presets_json(), "rules", rules, "keys", keys));
}

int cmd_policies(int argc, char **argv)
{
    int json = 0;
    cli_strings arguments = {0};
    const option table[] = {
        {"json", 0, OPTION_FLAG, &json, "", "one JSON document", 0, 0},
    };
    const verb_syntax syntax = {
        "policies", "[--json]",
        "Lists the presets (each row of the paper's tables, and the recommended policies), the rules with all\n"
        "their defaults, and the keys of the policy text that --prune takes.",
        "  renyi policies\n"
        "  renyi policies --json\n",
        OPTIONS_OF(table)};
    const option_outcome outcome = options_parse(&syntax, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && arguments.count) {
        options_usage_error("policies", "unexpected '%s'", arguments.items[0]);
    } else if (outcome == OPTIONS_GO) {
        code = CLI_OK;
        if (json) {
            put_json();
        } else {
            put_presets();
            put_grammar();
        }
    }
    cli_strings_free(&arguments);
    return code;
}
