/* paper_hyper.c - the paper's Table 16 (the recipe of fine-tuning) beside the recipes of renyi
 * train.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/paper/paper_given.h"

#include "cli/kit/output.h"
#include "cli/paper/paper_report.h"

#include "renyi/train.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const recipes[] = {"paper-evit", "paper-evit-ours"};
enum { N_RECIPES = sizeof recipes / sizeof *recipes, LONGEST = RENYI_SETTING_MAX };

/* The value of key=value in a policy; 0 = the policy does not have the key. */
static int policy_value(const char *policy, const char *key, char out[LONGEST])
{
    char full[RENYI_POLICY_MAX];
    const size_t n = strlen(key);

    if (renyi_policy_check(policy, NULL, full, sizeof full, NULL) != RENYI_OK) return 0;
    for (const char *at = strchr(full, ' '); at; at = strchr(at, ' ')) {
        at++;
        if (strncmp(at, key, n) != 0 || at[n] != '=') continue;
        snprintf(out, LONGEST, "%.*s", (int)strcspn(at + n + 1, " "), at + n + 1);
        return 1;
    }
    return 0;
}

/* The text of a setting; 0 = there is none. */
static int setting_value(const renyi_train_options *opt, const char *name, char out[LONGEST])
{
    for (size_t i = 0; i < renyi_train_setting_count(); i++) {
        renyi_train_setting s;
        renyi_train_get_setting(i, &s);
        if (strcmp(s.name, name) != 0) continue;
        renyi_train_show(opt, i, out, LONGEST);
        return 1;
    }
    return 0;
}

/* What a recipe of ours has for an item; 0 = it does not say, or it is the user's choice. */
static int value_here(const renyi_hyper *h, size_t recipe, char out[LONGEST])
{
    renyi_train_options opt;
    char policy[LONGEST];

    *out = 0;
    renyi_train_defaults(&opt);
    if (!h->setting) {
        snprintf(out, LONGEST, "%s", h->value); /* a fact about the program, not a setting */
        return 1;
    }
    if (renyi_train_recipe(&opt, recipes[recipe], NULL) != RENYI_OK) return 0;
    if (h->key) return setting_value(&opt, "prune", policy) && policy_value(policy, h->key, out);
    return setting_value(&opt, h->setting, out) && *out && strcmp(out, "auto") != 0;
}

/* "2e-5" is "0.00002"; "cosine" is "Cosine decay". */
static int is_same(const char *paper, const char *here)
{
    char *paper_end, *here_end;
    const double a = strtod(paper, &paper_end), b = strtod(here, &here_end);

    if (!*paper_end && !*here_end) return a == b;
    for (; *here; here++, paper++)
        if (tolower((unsigned char)*here) != tolower((unsigned char)*paper)) return 0;
    return !*paper || *paper == ' ';
}

/* ---- the table ------------------------------------------------------------------------------- */

static void put_row(text_table *t, size_t i)
{
    char text[LONGEST];
    renyi_hyper h;

    renyi_hyper_get(i, &h);
    text_table_cell(t, "%s", h.item);
    text_table_cell(t, "%s", h.value);
    for (size_t k = 0; k < N_RECIPES; k++) {
        const int is_said = value_here(&h, k, text);
        text_table_cell(t, "%s%s", is_said ? text : "-",
                        is_said && !is_same(h.value, text) ? " !" : "");
    }
    text_table_cell(t, "%s%s%s%s%s", h.setting ? "--" : "-", h.setting ? h.setting : "",
                    h.key ? " '... " : "", h.key ? h.key : "", h.key ? "=X'" : "");
}

static int is_in_table(const char *setting)
{
    for (size_t i = 0; i < renyi_hyper_count(); i++) {
        renyi_hyper h;
        renyi_hyper_get(i, &h);
        if (h.setting && strcmp(h.setting, setting) == 0) return 1;
    }
    return 0;
}

/* What our recipe sets that the table does not have: "betas 0.9,0.999, eps 1e-8, ..."; owned. */
static char *settings_beside(void)
{
    char *text = cli_copy("");
    renyi_recipe r;

    for (size_t k = 0; k < renyi_recipe_count(); k++) {
        renyi_recipe_get(k, &r);
        for (const char *const *at = r.settings; strcmp(r.name, recipes[0]) == 0 && *at; at += 2) {
            if (is_in_table(at[0])) continue;
            char *longer = cli_format("%s%s%s %s", text, *text ? ", " : "", at[0], at[1]);
            free(text);
            text = longer;
        }
    }
    return text;
}

void paper_hyper_text(const paper_arguments *a)
{
    text_table t = {0};

    if (!paper_wants_given(a, RENYI_HYPER_TABLE)) return;
    paper_put_title(RENYI_HYPER_TABLE, "the recipe of fine-tuning (Table 13)", a->markdown);
    puts("");
    text_table_column(&t, TEXT_LEFT, "item");
    text_table_column(&t, TEXT_LEFT, "paper");
    for (size_t k = 0; k < N_RECIPES; k++) text_table_column(&t, TEXT_LEFT, "%s", recipes[k]);
    text_table_column(&t, TEXT_LEFT, "setting");
    for (size_t i = 0; i < renyi_hyper_count(); i++) put_row(&t, i);
    text_table_put(&t, a->markdown, 2);
    puts("");
    for (size_t i = 0; i < renyi_hyper_count(); i++) {
        renyi_hyper h;
        renyi_hyper_get(i, &h);
        if (!h.about) continue;
        char *mark = cli_format("%s: ", h.item);
        paper_put_note(mark, h.about, a->markdown);
        free(mark);
    }
    char *rest = settings_beside();
    paper_put_note("Not in the table, from EViT's script: ", rest, a->markdown);
    free(rest);
    paper_put_note("", "paper-evit is column CLS of Table 13, paper-evit-ours column Ours.",
                   a->markdown);
    puts("");
}

json_t *paper_hyper_json(const paper_arguments *a)
{
    json_t *rows = json_array();
    char text[LONGEST];

    for (size_t i = 0; i < renyi_hyper_count(); i++) {
        json_t *here = json_object();
        renyi_hyper h;
        renyi_hyper_get(i, &h);
        for (size_t k = 0; k < N_RECIPES; k++)
            json_object_set_new(
                here, recipes[k],
                value_here(&h, k, text)
                    ? json_pack("{s:s, s:b}", "value", text, "is_papers", is_same(h.value, text))
                    : json_null());
        json_array_append_new(rows, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "item", h.item,
                                              "paper", h.value, "setting", json_text(h.setting),
                                              "key", json_text(h.key), "about", json_text(h.about),
                                              "recipes", here));
    }
    if (paper_wants_given(a, RENYI_HYPER_TABLE))
        return json_pack("{s:i, s:s, s:o}", "table", RENYI_HYPER_TABLE, "label", "tab:hyperparams",
                         "rows", rows);
    json_decref(rows);
    return json_null();
}
