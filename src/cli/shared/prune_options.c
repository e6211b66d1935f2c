/* prune_options.c - from --prune, --keep, ... to policy texts that the library accepts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/prune_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Adds " key=value" (or " key" without a value) to the owned text. */
static char *append_key(char *text, const char *key, const char *value)
{
    char *longer = cli_format("%s %s%s%s", text, key, value ? "=" : "", value ? value : "");
    free(text);
    return longer;
}

/* "(3, 6, 9)" or "[3, 6, 9]", as Python prints them, to "3,6,9". Owned. */
static char *plain_list(const char *text)
{
    char *out = cli_copy(text), *to = out;

    for (; *text; text++)
        if (!strchr("()[]", *text) && !isspace((unsigned char)*text)) *to++ = *text;
    *to = '\0';
    return out;
}

/* A space in a value would begin another key of the policy. */
static int has_no_space(const char *text)
{
    if (!*text) return 0;
    for (; *text; text++)
        if (isspace((unsigned char)*text)) return 0;
    return 1;
}

/* All options but --prune as " key=value ..."; owned, NULL after reporting. */
static char *other_options(const char *verb, const prune_options *o)
{
    char *layers = o->layers ? plain_list(o->layers) : NULL;
    const struct {
        const char *key, *value;
    } given[] = {
        {"keep", o->keep},  {"tokens", o->tokens}, {"p", o->p}, {"r", o->r},
        {"layers", layers}, {"metric", o->metric}, {"n", o->n}, {"c", o->c},
    };
    char *text = cli_copy("");

    for (size_t i = 0; text && i < sizeof given / sizeof *given; i++) {
        if (!given[i].value) continue;
        if (has_no_space(given[i].value)) {
            text = append_key(text, given[i].key, given[i].value);
            continue;
        }
        options_usage_error(verb, "option '--%s': '%s' is empty or has a space in it", given[i].key,
                            given[i].value);
        free(text);
        text = NULL;
    }
    if (text && o->fuse) text = append_key(text, "fuse", NULL);
    free(layers);
    return text;
}

/* The rule that the options belong to if --prune gives none. */
static const char *implied_rule(const prune_options *o)
{
    return o->r ? "tome" : o->p ? "naive" : "evit";
}

int prune_error(const char *verb, const char *text, const renyi_error *err)
{
    enum { SHOWN = 160 }; /* of the text, so that the line has space for what is wrong with it */

    if (err->code != RENYI_ERR_ARG) return cli_fail(err);
    cli_error("%s: policy '%.*s%s': %s; see 'renyi policies'", verb, SHOWN, text,
              strlen(text) > SHOWN ? "..." : "", cli_reason(err));
    return CLI_USAGE;
}

int prune_check(const char *verb, const char *text, const renyi_model *model, char *full)
{
    renyi_error err = {0};

    if (renyi_policy_check(text, model, full, RENYI_POLICY_MAX, &err) == RENYI_OK) return CLI_OK;
    return prune_error(verb, text, &err);
}

int prune_policies(const char *verb, const prune_options *o, cli_strings *texts)
{
    char *keys = other_options(verb, o);
    int code = CLI_OK;

    if (!keys) return CLI_USAGE;
    for (size_t i = 0; i < o->policies.count; i++)
        cli_strings_add(texts, cli_format("%s%s", o->policies.items[i], keys));
    if (!o->policies.count)
        cli_strings_add(texts,
                        *keys ? cli_format("%s%s", implied_rule(o), keys) : cli_copy("none"));
    free(keys);
    for (size_t i = 0; code == CLI_OK && i < texts->count; i++)
        code = prune_check(verb, texts->items[i], NULL, NULL);
    return code;
}

int prune_policy(const char *verb, const prune_options *o, char **text)
{
    cli_strings texts = {0};

    if (o->policies.count > 1)
        return options_usage_error(verb, "one --prune POLICY at a time, %zu given",
                                   o->policies.count);
    const int code = prune_policies(verb, o, &texts);
    if (code == CLI_OK) *text = cli_copy(texts.items[0]);
    cli_strings_free(&texts);
    return code;
}

void prune_options_free(prune_options *o) { cli_strings_free(&o->policies); }
