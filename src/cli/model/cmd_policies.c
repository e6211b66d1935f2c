/* cmd_policies.c - renyi policies: the policies that have names, and the grammar of all others.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/options.h"
#include "cli/kit/output.h"
#include "cli/shared/policy_grammar.h"
#include "cli/verbs.h"

#include <string.h>

/* The policy in full; "" when the library refuses it, which a test rules out. */
static const char *in_full(const char *text, char full[RENYI_POLICY_MAX])
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
    for (const policy_word *rule = policy_rules; rule->name; rule++)
        printf("  %-8s %s\n           %s\n", rule->name, rule->about, in_full(rule->name, full));
    printf("\nKeys (rates are what is KEPT, p and r what each cut REMOVES):\n");
    for (const policy_word *key = policy_keys; key->name; key++)
        printf("  %s=%-*s %s\n", key->name, 24 - (int)strlen(key->name), key->takes, key->about);
}

static json_t *presets_json(void)
{
    json_t *list = json_array();
    char full[RENYI_POLICY_MAX];

    for (size_t i = 0; i < renyi_preset_count(); i++) {
        renyi_preset preset;
        renyi_preset_get(i, &preset);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", preset.name, "policy",
                                              preset.policy, "full", in_full(preset.policy, full),
                                              "about", preset.about));
    }
    return list;
}

static void put_json(void)
{
    json_t *rules = json_array(), *keys = json_array();
    char full[RENYI_POLICY_MAX];

    for (const policy_word *rule = policy_rules; rule->name; rule++)
        json_array_append_new(rules, json_pack("{s:s, s:s, s:s}", "name", rule->name, "full",
                                               in_full(rule->name, full), "about", rule->about));
    for (const policy_word *key = policy_keys; key->name; key++)
        json_array_append_new(keys, json_pack("{s:s, s:s, s:s}", "key", key->name, "takes",
                                              key->takes, "about", key->about));
    json_print(
        json_pack("{s:o, s:o, s:o}", "presets", presets_json(), "rules", rules, "keys", keys));
}

int cmd_policies(int argc, char **argv)
{
    int json = 0;
    cli_strings words = {0};
    const option table[] = {
        {"json", 0, OPTION_FLAG, &json, "", "one JSON document", 0, 0},
    };
    const verb_syntax syntax = {
        "policies", "[--json]",
        "Lists the pruning policies that have names (each row of the paper, and the recommended ones), the\n"
        "rules with all their defaults, and the keys of the policy text that --prune takes.",
        "  renyi policies\n"
        "  renyi policies --json\n",
        OPTIONS_OF(table)};
    const option_outcome outcome = options_parse(&syntax, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && words.count) {
        options_usage_error("policies", "unexpected '%s'", words.items[0]);
    } else if (outcome == OPTIONS_GO) {
        code = CLI_OK;
        if (json) {
            put_json();
        } else {
            put_presets();
            put_grammar();
        }
    }
    cli_strings_free(&words);
    return code;
}
