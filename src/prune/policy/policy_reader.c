/* policy_reader.c - splits a policy text into keys and values. Defaults are policy texts too:
 * they are read first, then a preset's keys override them, then the user's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/policy_reader.h"
#include "base/status.h"

#include <string.h>

/* Defaults of each rule, and the reasons:
 *   p=8         in the tables of the paper for early layers and for all; costs ViT-S 0.8 points
 *   n, c        as each official file ships them (4 and 0.4; EViT 2), except EViT's c: its code has
 *               0.2 and the paper's Table 16 0.8. In early blocks the class row is a poor score:
 *               0.8 is 13.4 points (ViT-Ti) and 5.7 (DeiT-Ti) above class attention alone at
 *               layers 0,3,6, and within 0.4 of it at 3,6,9
 *   at=mid      the only place that agrees with the paper's GFLOPs (the Col-Ln file cuts at the
 *               end of the block)
 *   reduce      EViT fuses in all its scripts
 *   layers      EViT's own; mosaic's are the fast ones: it is the rule that can cut in block 0
 *   r=13        0.59 of the arithmetic at 197 tokens and 12 blocks, near EViT's 0.66
 *   drop=0.1    the "0.7" of the paper's TCA tables: only it has their GFLOPs
 *   start=best  the same on every run and machine; the published code draws it
 *   ats         EViT's budget and layers: the same upper bound, so that the two compare. The
 *               published code has levels=196 and no budget
 *   own rules   EViT's budget and layers; the order of the columns is that of the rule
 *   fastv, pyramiddrop, dart
 *               as their papers have it; positions stay, as in FastV's code. n is that of the
 *               paper's LLaVA tables. rows=text: among all rows those of the causal mask would
 *               favour the first tokens (docs/LM_PRUNING.md)
 *   sparsevlm   as its code has it
 *   prumerge, vispruner and the other rules for the visual tokens of a LLaVA
 *               192 of LLaVA's 576, the paper's smaller number; the rest as their code has it:
 *               visionzip's 10 of 64, 20 of 128 and 30 of 192 contextual tokens are 5 of 32,
 *               hiprune's mean attention of all tokens is the column norm of order 1.
 *               mosaic-behind has the constants of mosaic's presets */
#define RANKING                                                                              \
    " rounding=code heads=mean class_row=yes registers=yes diagonal=yes seed=0 weights=auto" \
    " at=mid order=score"
static const char *const defaults[] = {
    [RY_RULE_NONE] = "",
    [RY_RULE_NAIVE] = "p=8 layers=early metric=col n=4 c=0.4 reduce=drop" RANKING,
    [RY_RULE_EVIT] = "keep=0.7 layers=3,6,9 metric=cls n=2 c=0.8 reduce=fuse" RANKING,
    [RY_RULE_MOSAIC] = ("keep=0.7 layers=0,3,6 alpha=0.5 omega=0 beta=1 memory=0 length=mean"
                        " col=0 temperature=1 likeness=0"),
    [RY_RULE_TOME] = "r=13 inflection=0 layers=all",
    [RY_RULE_ATS] = "keep=0.7 layers=3,6,9 levels=budget",
    [RY_RULE_OWN] = "keep=0.7 layers=3,6,9 n=2 reduce=drop weights=auto at=mid order=score",
    [RY_RULE_OWN_CUT] = "keep=0.7 layers=3,6,9 n=2 at=mid",
    [RY_RULE_FASTV] = "keep=0.5 layer=2 metric=last n=4 rows=text positions=original",
    [RY_RULE_PYRAMIDDROP] =
        "keep=0.5 layers=8,16,24/32 metric=last n=4 rows=text positions=original",
    [RY_RULE_DART] = "tokens=128 layer=2 pivots=4 text_pivots=4 positions=original",
    [RY_RULE_SPARSEVLM] = "tokens=303,110,36 layers=3,7,16/32 n=1 recycle=0.3 members=10",
    [RY_RULE_PRUMERGE] = "tokens=192 plus=no metric=cls n=4 c=0.2 neighbours=32",
    [RY_RULE_VISPRUNER] = "tokens=192 important=0.5 metric=cls n=4 c=0.2 round=8 residual=auto",
    [RY_RULE_VISIONZIP] = "tokens=192 contextual=0.15625 class_token=yes metric=cls n=4 c=0.2",
    [RY_RULE_DIVPRUNE] = "tokens=192",
    [RY_RULE_HIPRUNE] = "tokens=192 anchors=0.1 block=8 metric=col n=1 c=0.2",
    [RY_RULE_MOSAIC_BEHIND] = "tokens=192 alpha=1 omega=1 length=max metric=cls n=4 c=0.2",
    [RY_RULE_CDPRUNER] = "tokens=192 metric=text n=4 c=0.2",
    [RY_RULE_RANDOM] = "tokens=192 seed=0",
    [RY_RULE_UNIFORM] = "tokens=192",
    [RY_RULE_POOL] = "tokens=192",
    [RY_RULE_DOWNSAMPLE] = "tokens=192",
    [RY_RULE_TCA] = "drop=0.1 layers=3,6,9 metric=cls n=4 start=best",
};

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* The next word at *cursor, which moves past it; len 0 at the end. Blanks inside parentheses are
 * part of the word. */
static ry_slice next_word(const char *text, const char **cursor)
{
    const char *at = *cursor;
    while (is_blank(*at)) at++;
    const char *end = at;
    for (int inside = 0; *end && (inside || !is_blank(*end)); end++)
        if (*end == '(')
            inside = 1;
        else if (*end == ')')
            inside = 0;
    *cursor = end;
    return (ry_slice){at, (size_t)(end - at), at - text};
}

static int same(const ry_slice *s, const char *word)
{
    return strlen(word) == s->len && memcmp(word, s->at, s->len) == 0;
}

static const char *rule_name(const ry_key_values *w) { return ry_rule_name(w->rule, w->own); }

static renyi_status unknown_key(const ry_key_values *w, const ry_slice *key, renyi_error *err)
{
    const ry_rule rule = w->rule;
    char list[256];
    ry_nearest near = {0};

    ry_key_list(list, sizeof list, rule);
    for (ry_key k = 0; k < RY_N_KEYS; k++)
        if (ry_key_for_rule(k, rule)) ry_nearest_offer(&near, key->at, key->len, ry_keys[k].name);
    if (!list[0])
        return ry_fail(err, RENYI_ERR_ARG, key->offset, "'%.*s': the rule none takes no words",
                       RY_SHOW(key));
    return ry_fail(err, RENYI_ERR_ARG, key->offset, "unknown word '%.*s'%s; %s takes %s",
                   RY_SHOW(key), ry_nearest_hint(&near), rule_name(w), list);
}

/* An error: two budgets of the same origin, or the same key twice. */
static renyi_status check_repeats(const ry_key_values *w, ry_key key, const ry_slice *value,
                                  ry_origin origin, int64_t offset, renyi_error *err)
{
    const ry_slice *before = &w->given[key].value;

    if (before->at && w->given[key].origin == origin) {
        if (before->len == value->len && memcmp(before->at, value->at, value->len) == 0)
            return ry_fail(err, RENYI_ERR_ARG, offset, "%s is given twice", ry_keys[key].name);
        return ry_fail(err, RENYI_ERR_ARG, offset,
                       "%s is given twice, as '%.*s' and as '%.*s'; say it once", ry_keys[key].name,
                       RY_SHOW(before), RY_SHOW(value));
    }
    for (ry_key k = 0; ry_key_is_budget(key) && ry_key_is_budget(k); k++)
        if (k != key && w->given[k].value.at && w->given[k].origin == origin)
            return ry_fail(err, RENYI_ERR_ARG, offset,
                           "%s and %s exclude each other: both say how many tokens stay",
                           ry_keys[k].name, ry_keys[key].name);
    return RENYI_OK;
}

static renyi_status set_key(ry_key_values *w, ry_key key, const ry_slice *value, ry_origin origin,
                            int64_t offset, renyi_error *err)
{
    RY_TRY(check_repeats(w, key, value, origin, offset, err));
    for (ry_key k = 0; ry_key_is_budget(key) && ry_key_is_budget(k); k++)
        w->given[k].value.at = NULL; /* a new budget replaces that of a lower origin */
    w->given[key].value = *value;
    w->given[key].origin = origin;
    return RENYI_OK;
}

/* Short forms of a key with its value. */
static const struct {
    const char *word, *value;
    ry_key key;
    ry_rule rule;
} short_forms[] = {{"adaptive", "adaptive", RY_KEY_TOKENS, RY_RULE_PRUMERGE},
                   {"plus", "yes", RY_KEY_PLUS, RY_RULE_PRUMERGE}};

/* A word without '=': a short form, or a key whose value is missing. */
static renyi_status set_bare(ry_key_values *w, const ry_slice *word, ry_origin origin,
                             renyi_error *err)
{
    if (ry_key_for_rule(RY_KEY_REDUCE, w->rule) &&
        ry_name_find(ry_keys[RY_KEY_REDUCE].names, word->at, word->len))
        return set_key(w, RY_KEY_REDUCE, word, origin, word->offset, err);
    for (size_t i = 0; i < sizeof short_forms / sizeof *short_forms; i++)
        if (w->rule == short_forms[i].rule && same(word, short_forms[i].word)) {
            const char *text = short_forms[i].value;
            const ry_slice value = {text, strlen(text), word->offset};
            return set_key(w, short_forms[i].key, &value, origin, word->offset, err);
        }
    for (ry_key k = 0; k < RY_N_KEYS; k++)
        if (ry_key_for_rule(k, w->rule) && same(word, ry_keys[k].name))
            return ry_fail(err, RENYI_ERR_ARG, word->offset, "'%s' needs a value: %s=...",
                           ry_keys[k].name, ry_keys[k].name);
    return unknown_key(w, word, err);
}

/* "3," of "3, 6, 9" and "(3, 6" of "(3, 6 9": checked here, where the value still has its
 * blanks. */
static renyi_status check_shape(const ry_slice *name, const ry_slice *value, renyi_error *err)
{
    const int open = memchr(value->at, '(', value->len) != NULL;
    const char *fault = NULL;
    if (!value->len)
        fault = "has no value";
    else if (value->at[value->len - 1] == ',')
        fault = "ends with a comma; a list is 3,6,9 or (3, 6, 9)";
    else if (open && value->at[value->len - 1] != ')')
        fault = "has a '(' without its ')' at the end";
    if (!fault) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, value->offset, "%.*s=%.*s %s", RY_SHOW(name), RY_SHOW(value),
                   fault);
}

static renyi_status set_item(ry_key_values *w, const ry_slice *word, ry_origin origin,
                             renyi_error *err)
{
    const char *equal = memchr(word->at, '=', word->len);
    if (!equal) return set_bare(w, word, origin, err);

    const size_t len = (size_t)(equal - word->at);
    const ry_slice name = {word->at, len, word->offset};
    const ry_slice value = {equal + 1, word->len - len - 1, word->offset + (int64_t)len + 1};
    char list[256];
    for (ry_key k = 0; k < RY_N_KEYS; k++) {
        if (!same(&name, ry_keys[k].name)) continue;
        RY_TRY(check_shape(&name, &value, err));
        if (ry_key_for_rule(k, w->rule)) return set_key(w, k, &value, origin, word->offset, err);
        if (w->rule == RY_RULE_NONE) break;
        ry_key_list(list, sizeof list, w->rule);
        return ry_fail(err, RENYI_ERR_ARG, word->offset, "%s takes no %s; it takes %s",
                       rule_name(w), ry_keys[k].name, list);
    }
    return unknown_key(w, &name, err);
}

/* All words of `text` from `cursor` on. */
static renyi_status set_all(ry_key_values *w, const char *text, const char *cursor,
                            ry_origin origin, renyi_error *err)
{
    for (;;) {
        const ry_slice word = next_word(text, &cursor);
        if (!word.len) return RENYI_OK;
        RY_TRY(set_item(w, &word, origin, err));
    }
}

static const ry_preset *find_preset(const ry_slice *word)
{
    size_t count;
    const ry_preset *presets = ry_presets(&count);
    for (size_t i = 0; i < count; i++)
        if (same(word, presets[i].name)) return &presets[i];
    return NULL;
}

/* own: NULL = no model is given. */
static renyi_status unknown_rule(const ry_slice *word, const ry_own_rules *own, renyi_error *err)
{
    char list[256];
    size_t count;
    const ry_preset *presets = ry_presets(&count);
    ry_nearest near = {0};

    ry_name_list(list, sizeof list, ry_rule_names, UINT32_MAX);
    if (!word->len || memchr(word->at, '=', word->len))
        return ry_fail(err, RENYI_ERR_ARG, word->offset,
                       "a policy begins with its rule (%s) or a preset such as fast", list);
    const ry_name *metric = ry_name_find(ry_keys[RY_KEY_METRIC].names, word->at, word->len);
    if (metric)
        return ry_fail(err, RENYI_ERR_ARG, word->offset,
                       "'%.*s' is a metric, not a rule; did you mean %s metric=%.*s?",
                       RY_SHOW(word),
                       metric->value == RY_METRIC_LAST   ? "fastv"
                       : metric->value == RY_METRIC_TEXT ? "cdpruner"
                                                         : "evit",
                       RY_SHOW(word));
    for (const ry_name *r = ry_rule_names; r->name; r++)
        ry_nearest_offer(&near, word->at, word->len, r->name);
    for (size_t i = 0; i < count; i++)
        ry_nearest_offer(&near, word->at, word->len, presets[i].name);
    for (const ry_own_rule *r = own ? own->first : NULL; r; r = r->next) {
        ry_nearest_offer(&near, word->at, word->len, r->name);
        ry_name_add(list, sizeof list, r->name);
    }
    return ry_fail(err, RENYI_ERR_ARG, word->offset,
                   "unknown rule '%.*s'%s; rules are %s, or a preset such as fast or "
                   "paper:evit-ours%s",
                   RY_SHOW(word), ry_nearest_hint(&near), list,
                   own ? "" : "; rules of your own need the model that they were added to");
}

/* The rule of that name, or the caller's own. */
static int find_rule(ry_key_values *out, const ry_slice *word, const ry_own_rules *own)
{
    const ry_name *rule = ry_name_find(ry_rule_names, word->at, word->len);
    out->own = rule ? NULL : ry_own_rules_find(own, word->at, word->len);
    if (rule) out->rule = (ry_rule)rule->value;
    if (out->own) out->rule = out->own->rule.cut ? RY_RULE_OWN_CUT : RY_RULE_OWN;
    return rule || out->own;
}

renyi_status ry_key_values_read(ry_key_values *out, const char *text, const ry_own_rules *own,
                                renyi_error *err)
{
    const char *cursor = text;
    const ry_slice first = next_word(text, &cursor);
    const ry_preset *preset = find_preset(&first);
    const char *inner = preset ? preset->text : NULL;
    const ry_slice word = preset ? next_word(inner, &inner) : first;

    memset(out, 0, sizeof *out);
    if (!find_rule(out, &word, own)) return unknown_rule(&first, own, err);
    const char *base = defaults[out->rule];
    RY_TRY(set_all(out, base, base, RY_FROM_DEFAULT, err));
    if (preset) RY_TRY(set_all(out, preset->text, inner, RY_FROM_PRESET, err));
    return set_all(out, text, cursor, RY_FROM_USER, err);
}

renyi_status ry_items_read(ry_items *out, ry_key key, const ry_slice *value, renyi_error *err)
{
    const char *at = value->at, *end = at + value->len;

    out->count = 0;
    if (value->len >= 2 && at[0] == '(' && end[-1] == ')') {
        at++;
        end--;
    }
    for (int last = 0; !last;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        const char *next = stop + 1;
        last = !comma;
        while (at < stop && is_blank(*at)) at++;
        while (stop > at && is_blank(stop[-1])) stop--;
        const int64_t offset = value->offset + (at - value->at);
        if (at == stop)
            return ry_fail(err, RENYI_ERR_ARG, offset,
                           "%s=%.*s has an empty place; write a,b,c without blanks or (a, b, c)",
                           ry_keys[key].name, RY_SHOW(value));
        if (out->count == RY_MAX_CUTS)
            return ry_fail(err, RENYI_ERR_ARG, offset, "%s names more than %d values",
                           ry_keys[key].name, (int)RY_MAX_CUTS);
        out->item[out->count++] = (ry_slice){at, (size_t)(stop - at), offset};
        at = next;
    }
    return RENYI_OK;
}
