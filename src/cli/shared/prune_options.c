/* prune_options.c - see prune_options.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/prune_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Add " key=value" (or " key" without a value) to the owned text. */
static char *append(char *text, const char *key, const char *value)
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

/* A blank in a value would start another word of the policy. */
static int is_one_word(const char *text)
{
    if (!*text) return 0;
    for (; *text; text++)
        if (isspace((unsigned char)*text)) return 0;
    return 1;
}

/* All words of the command line but --prune as " key=value ..."; owned, NULL after reporting. */
static char *other_words(const char *verb, const prune_options *o)
{
    char *layers = o->drop_loc ? plain_list(o->drop_loc) : NULL;
    const struct {
        const char *option, *key, *value;
    } words[] = {
        {"keep-rate", "keep", o->keep_rate},
        {"keep-tokens", "tokens", o->keep_tokens},
        {"p", "p", o->p},
        {"r", "r", o->r},
        {"drop-loc", "layers", layers},
        {"metric", "metric", o->metric},
        {"norm", "n", o->norm},
        {"rescue", "c", o->rescue},
    };
    char *text = cli_copy("");

    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++) {
        if (!words[i].value) continue;
        if (is_one_word(words[i].value)) {
            text = append(text, words[i].key, words[i].value);
            continue;
        }
        options_usage_error(verb, "option '--%s': '%s' is not one word", words[i].option,
                            words[i].value);
        free(text);
        text = NULL;
    }
    if (text && o->fuse_token) text = append(text, "fuse", NULL);
    free(layers);
    return text;
}

/* The rule that the words belong to when --prune names none. */
static const char *implied_rule(const prune_options *o)
{
    return o->r ? "tome" : o->p ? "naive" : "evit";
}

int prune_texts(const char *verb, const prune_options *o, cli_strings *texts)
{
    char *words = other_words(verb, o);

    if (!words) return -1;
    for (size_t i = 0; i < o->policies.count; i++)
        cli_strings_add(texts, cli_format("%s%s", o->policies.items[i], words));
    if (!o->policies.count)
        cli_strings_add(texts,
                        *words ? cli_format("%s%s", implied_rule(o), words) : cli_copy("none"));
    free(words);
    return 0;
}

int prune_error(const char *verb, const char *text, const renyi_error *err)
{
    enum { SHOWN = 160 }; /* of the text: the line must have room for what is wrong with it */
    const char *what = err->message[0] ? err->message : renyi_status_name(err->code);

    if (err->code != RENYI_ERR_ARG) {
        cli_error("%s", what);
        return CLI_FAILED;
    }
    cli_error("%s: policy '%.*s%s': %s; see 'renyi policies'", verb, SHOWN, text,
              strlen(text) > SHOWN ? "..." : "", what);
    return CLI_USAGE;
}

int prune_check(const char *verb, const char *text, const renyi_model *model,
                char full[RENYI_POLICY_MAX])
{
    renyi_error err = {0};

    if (renyi_policy_check(text, model, full, RENYI_POLICY_MAX, &err) == RENYI_OK) return CLI_OK;
    return prune_error(verb, text, &err);
}

void prune_options_free(prune_options *o) { cli_strings_free(&o->policies); }
