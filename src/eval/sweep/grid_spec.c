/* grid_spec.c - reads the lines of a sweep's spec: models, sizes, dtypes, policies and
 * values to combine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "eval/sweep/grid.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 16384, MAX_SIDE = 16384 };

/* The first word of a line; the keys of the policy grammar follow after WORD_KEYS. */
enum {
    WORD_MODELS,
    WORD_SIZES,
    WORD_DTYPES,
    WORD_POLICY,
    WORD_FRAMEWORKS,
    WORD_KEYS,
    N_WORDS = WORD_KEYS + RY_N_KEYS
};

static const ry_name word_names[] = {
    {"models", WORD_MODELS},
    {"model", WORD_MODELS},
    {"sizes", WORD_SIZES},
    {"size", WORD_SIZES},
    {"dtypes", WORD_DTYPES},
    {"dtype", WORD_DTYPES},
    {"policy", WORD_POLICY},
    {"policies", WORD_POLICY},
    {"frameworks", WORD_FRAMEWORKS},
    {"framework", WORD_FRAMEWORKS},
    {"metrics", WORD_KEYS + RY_KEY_METRIC},
    {NULL, 0},
};

typedef struct reader {
    renyi_grid *g;
    uint64_t
        replaced;  /* one bit for each word that the options set: lines of the file do not count */
    uint64_t seen; /* one bit for each word seen */
    ry_text frameworks;             /* alternatives */
    ry_grid_word keys[RY_N_KEYS];   /* alternatives of each; empty = not given */
    char where[RY_N_KEYS + 1][160]; /* the last line of each key, and of the frameworks */
} reader;

static int is_replaced(const reader *r, int word) { return (int)(r->replaced >> word & 1u); }

/* ---- words and values ---------------------------------------------------------------------- */

static int find_word(ry_text word)
{
    const ry_name *name = ry_name_find(word_names, word.at, word.n);
    const ry_key key = ry_grid_key(word);
    return name ? name->value : key < RY_N_KEYS ? WORD_KEYS + (int)key : -1;
}

static renyi_status fail_unknown(ry_text word, renyi_error *err)
{
    ry_nearest near = {0};
    for (const ry_name *n = word_names; n->name; n++)
        ry_nearest_offer(&near, word.at, word.n, n->name);
    for (ry_key k = 0; k < RY_N_KEYS; k++)
        ry_nearest_offer(&near, word.at, word.n, ry_keys[k].name);
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "unknown word '%.*s'%s; a line begins with models, sizes, dtypes, policy, "
                   "frameworks, metrics, or a key such as n, c, keep, p, layers",
                   RY_SHOWN(word), ry_nearest_hint(&near));
}

/* Appends more alternatives, with '|' between. */
static renyi_status append_values(renyi_grid *g, ry_text *to, ry_text more, renyi_error *err)
{
    const size_t n = to->n + (to->n != 0) + more.n;
    if (n > MAX_LINE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %d bytes of values", MAX_LINE);
    char *text = ry_pool_take(&g->pool, n + 1, 1);
    if (!text) return ry_fail_nomem(err, n);
    memcpy(text, to->at, to->n);
    if (to->n) text[to->n] = '|';
    memcpy(text + n - more.n, more.at, more.n);
    *to = (ry_text){text, n};
    return RENYI_OK;
}

/* Can the key have this value? Checked by parsing a policy with a rule that takes the key, a metric
 * that uses it, and all layers, because the value may be a list with one number per layer. */
static renyi_status check_value(ry_key key, ry_text value, renyi_error *err)
{
    const ry_rule rule = ry_key_for_rule(key, RY_RULE_EVIT)    ? RY_RULE_EVIT
                         : ry_key_for_rule(key, RY_RULE_NAIVE) ? RY_RULE_NAIVE
                         : ry_key_for_rule(key, RY_RULE_TOME)  ? RY_RULE_TOME
                                                               : RY_RULE_TCA;
    char text[RY_MAX_POLICY_TEXT];
    ry_policy p;
    int metric = RY_METRIC_CLS;
    while (!ry_key_for_metric(key, (ry_metric)metric)) metric++;
    const int n =
        snprintf(text, sizeof text, "%s%s%s%s %s=%.*s", ry_name_of(ry_rule_names, (int)rule),
                 key == RY_KEY_LAYERS ? "" : " layers=all", ry_keys[key].metrics ? " metric=" : "",
                 ry_keys[key].metrics ? ry_name_of(ry_keys[RY_KEY_METRIC].names, metric) : "",
                 ry_keys[key].name, (int)value.n, value.at);
    if (n < 0 || (size_t)n >= sizeof text)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a value of %zu bytes is too long", value.n);
    return ry_policy_parse(&p, text, err);
}

static renyi_status check_framework(const renyi_grid *g, ry_text name, renyi_error *err)
{
    char text[128];
    ry_policy p;
    snprintf(text, sizeof text, "%.*s", RY_SHOWN(name));
    return ry_policy_parse_own(&p, text, g->own, err);
}

/* Blanks and '|' both separate values. Each is checked here, where its line is known. */
static renyi_status add_values(reader *r, int word, ry_text rest, renyi_error *err)
{
    const ry_key key = (ry_key)(word - WORD_KEYS);
    ry_text *to = word == WORD_FRAMEWORKS ? &r->frameworks : &r->keys[key].values;
    for (ry_text values; (values = ry_grid_next_word(&rest)).n;) {
        for (size_t i = 0; i < ry_grid_alternatives(values); i++) {
            const ry_text value = ry_grid_alternative(values, i);
            RY_TRY(word == WORD_FRAMEWORKS ? check_framework(r->g, value, err)
                                           : check_value(key, value, err));
        }
        RY_TRY(append_values(r->g, to, values, err));
    }
    return RENYI_OK;
}

/* ---- models and sizes ---------------------------------------------------------------------- */

static renyi_status add_model(renyi_grid *g, ry_text name, renyi_error *err)
{
    if (!name.n) return ry_fail(err, RENYI_ERR_FORMAT, -1, "a model name is empty");
    for (uint32_t i = 0; i < g->n_models; i++)
        if (ry_text_compare(ry_text_of(g->models[i]), name) == 0) return RENYI_OK;
    if (g->n_models == RY_GRID_MODELS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %d models", RY_GRID_MODELS);
    const char *copy = ry_pool_copy(&g->pool, name);
    if (!copy) return ry_fail_nomem(err, name.n);
    g->models[g->n_models++] = copy;
    return RENYI_OK;
}

/* Names are separated by blanks; a name in quotes may have some. */
static renyi_status add_models(renyi_grid *g, ry_text rest, renyi_error *err)
{
    while ((rest = ry_text_trim(rest)).n) {
        const int quoted = rest.at[0] == '"';
        size_t n = (size_t)quoted;
        while (n < rest.n && (quoted ? rest.at[n] != '"' : rest.at[n] != ' ' && rest.at[n] != '\t'))
            n++;
        if (quoted && n == rest.n)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "a quote without its end: %.*s",
                           RY_SHOWN(rest));
        RY_TRY(add_model(g, (ry_text){rest.at + quoted, n - (size_t)quoted}, err));
        n += (size_t)quoted;
        rest = (ry_text){rest.at + n, rest.n - n};
    }
    return RENYI_OK;
}

static renyi_status add_size(renyi_grid *g, uint32_t size, renyi_error *err)
{
    for (uint32_t i = 0; i < g->n_sizes; i++)
        if (g->sizes[i] == size) return RENYI_OK;
    if (g->n_sizes == RY_GRID_SIZES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %d sizes", RY_GRID_SIZES);
    g->sizes[g->n_sizes++] = size;
    return RENYI_OK;
}

static renyi_status add_sizes(renyi_grid *g, ry_text rest, renyi_error *err)
{
    for (ry_text word; (word = ry_grid_next_word(&rest)).n;) {
        uint32_t size = 0;
        if (ry_text_compare(word, ry_text_of("model")) != 0 &&
            (!ry_text_number(word, &size) || !size || size > MAX_SIDE))
            return ry_fail(
                err, RENYI_ERR_FORMAT, -1,
                "'%.*s' is not a size: wanted a side of 1 to %d pixels, or the word model",
                RY_SHOWN(word), MAX_SIDE);
        RY_TRY(add_size(g, size, err));
    }
    return RENYI_OK;
}

static renyi_status add_dtype(renyi_grid *g, renyi_dtype dtype, renyi_error *err)
{
    for (uint32_t i = 0; i < g->n_dtypes; i++)
        if (g->dtypes[i] == dtype) return RENYI_OK;
    if (g->n_dtypes == RY_GRID_DTYPES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %d dtypes", RY_GRID_DTYPES);
    g->dtypes[g->n_dtypes++] = dtype;
    return RENYI_OK;
}

static renyi_status add_dtypes(renyi_grid *g, ry_text rest, renyi_error *err)
{
    static const renyi_dtype known[] = {RENYI_DTYPE_F32, RENYI_DTYPE_BF16, RENYI_DTYPE_INT8,
                                        RENYI_DTYPE_AUTO};
    enum { N_KNOWN = sizeof known / sizeof *known };
    for (ry_text word; (word = ry_grid_next_word(&rest)).n;) {
        int i = 0;
        while (i < N_KNOWN && ry_text_compare(word, ry_text_of(renyi_dtype_name(known[i]))) != 0)
            i++;
        if (i == N_KNOWN)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "'%.*s' is not a dtype: wanted f32, bf16, int8 or auto", RY_SHOWN(word));
        RY_TRY(add_dtype(g, known[i], err));
    }
    return RENYI_OK;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* A comment begins with '#' at the start or after a blank, outside quotes. */
static ry_text without_comment(ry_text line)
{
    int quoted = 0;
    for (size_t i = 0; i < line.n; i++) {
        if (line.at[i] == '"') quoted = !quoted;
        if (line.at[i] == '#' && !quoted && (!i || line.at[i - 1] == ' ' || line.at[i - 1] == '\t'))
            return (ry_text){line.at, i};
    }
    return line;
}

static renyi_status check_bytes(ry_text line, renyi_error *err)
{
    if (line.n > MAX_LINE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a line of more than %d bytes", MAX_LINE);
    for (size_t i = 0; i < line.n; i++)
        if ((unsigned char)line.at[i] < 32 && line.at[i] != '\t')
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "a control character (%d); a spec must be text", line.at[i]);
    return RENYI_OK;
}

static renyi_status take_line(reader *r, ry_text line, const char *where, renyi_error *err)
{
    RY_TRY(check_bytes(line, err));
    ry_text rest = ry_text_trim(without_comment(line));
    if (!rest.n) return RENYI_OK;
    const ry_text first = ry_grid_next_word(&rest);
    const int word = find_word(first);
    if (word < 0) return fail_unknown(first, err);
    if (is_replaced(r, word)) return RENYI_OK;
    r->seen |= (uint64_t)1 << word;
    rest = ry_text_trim(rest);
    if (!rest.n) return ry_fail(err, RENYI_ERR_FORMAT, -1, "'%.*s' has no values", RY_SHOWN(first));
    if (word == WORD_MODELS) return add_models(r->g, rest, err);
    if (word == WORD_SIZES) return add_sizes(r->g, rest, err);
    if (word == WORD_DTYPES) return add_dtypes(r->g, rest, err);
    if (word == WORD_POLICY) return ry_grid_policy(r->g, rest, err);
    const size_t slot = word == WORD_FRAMEWORKS ? RY_N_KEYS : (size_t)(word - WORD_KEYS);
    snprintf(r->where[slot], sizeof r->where[slot], "%s", where);
    return add_values(r, word, rest, err);
}

static renyi_status fail_at(renyi_error *err, renyi_status st, const char *where)
{
    if (err) err->offset = -1;
    return st ? ry_fail_in(err, st, where) : st;
}

static renyi_status take_file(reader *r, const char *name, const void *bytes, size_t size,
                              renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        char where[160];
        snprintf(where, sizeof where, "%.120s:%llu", name, (unsigned long long)l.number);
        RY_TRY(fail_at(err, take_line(r, line, where, err), where));
    }
    return RENYI_OK;
}

static renyi_status take_options(reader *r, const renyi_grid_options *o, renyi_error *err)
{
    char where[160];
    for (uint32_t i = 0; i < o->n_models; i++)
        RY_TRY(add_model(r->g, ry_text_of(o->models[i]), err));
    for (uint32_t i = 0; i < o->n_sizes; i++) {
        if (o->sizes[i] > MAX_SIDE)
            return ry_fail(err, RENYI_ERR_ARG, -1, "size %u: at most %d pixels", o->sizes[i],
                           MAX_SIDE);
        RY_TRY(add_size(r->g, o->sizes[i], err));
    }
    for (uint32_t i = 0; i < o->n_dtypes; i++) RY_TRY(add_dtype(r->g, o->dtypes[i], err));
    for (uint32_t i = 0; i < o->n_policies; i++) {
        const ry_text text = ry_text_of(o->policies[i]);
        snprintf(where, sizeof where, "policy '%.*s'", RY_SHOWN(text));
        RY_TRY(fail_at(err, check_bytes(text, err), where));
        RY_TRY(fail_at(err, ry_grid_policy(r->g, text, err), where));
    }
    for (uint32_t i = 0; i < o->n_lines; i++) {
        const ry_text text = ry_text_of(o->lines[i]);
        snprintf(where, sizeof where, "'%.*s'", RY_SHOWN(text));
        RY_TRY(fail_at(err, take_line(r, text, where, err), where));
    }
    r->replaced = r->seen | (o->n_models ? 1u << WORD_MODELS : 0) |
                  (o->n_sizes ? 1u << WORD_SIZES : 0) | (o->n_dtypes ? 1u << WORD_DTYPES : 0) |
                  (o->n_policies ? 1u << WORD_POLICY : 0);
    return RENYI_OK;
}

/* ---- combining ----------------------------------------------------------------------------- */

/* One framework with all keys that are not budgets, and one budget (RY_N_KEYS = none). */
static renyi_status cross_budget(reader *r, ry_text rule, ry_key budget, renyi_error *err)
{
    ry_grid_word words[RY_N_KEYS];
    size_t n = 0;
    for (ry_key k = 0; k < RY_N_KEYS; k++)
        if (r->keys[k].values.n && (!ry_key_is_budget(k) || k == budget)) words[n++] = r->keys[k];
    const renyi_status st = ry_grid_expand(r->g, rule, words, n, err);
    for (size_t i = 0; i < n; i++)
        if (words[i].is_used) r->keys[words[i].key].is_used = 1;
    return fail_at(err, st, r->where[RY_N_KEYS]);
}

static renyi_status cross_framework(reader *r, ry_text rule, renyi_error *err)
{
    char name[128];
    ry_policy bare;
    int n = 0;
    snprintf(name, sizeof name, "%.*s", RY_SHOWN(rule));
    RY_TRY(ry_policy_parse_own(&bare, name, r->g->own, err));
    for (ry_key k = 0; ry_key_is_budget(k); k++) {
        if (!r->keys[k].values.n || !ry_key_for_rule(k, bare.rule)) continue;
        RY_TRY(cross_budget(r, rule, k, err));
        n++;
    }
    return n ? RENYI_OK : cross_budget(r, rule, RY_N_KEYS, err);
}

static renyi_status cross_all(reader *r, renyi_error *err)
{
    const ry_text none = {NULL, 0};
    for (size_t i = 0; r->frameworks.n && i < ry_grid_alternatives(r->frameworks); i++)
        RY_TRY(cross_framework(r, ry_grid_alternative(r->frameworks, i), err));
    for (ry_key k = 0; k < RY_N_KEYS; k++) {
        if (!r->keys[k].values.n || r->keys[k].is_used) continue;
        /* values of the file belong to its frameworks, which the options replaced */
        if (is_replaced(r, WORD_FRAMEWORKS) && !is_replaced(r, WORD_KEYS + (int)k)) continue;
        const ry_text f = r->frameworks.n ? r->frameworks : none;
        if (!f.n)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: values of %s, but no frameworks to combine them with; add "
                           "'frameworks evit', or write them in a policy: evit %s=a|b",
                           r->where[k], ry_keys[k].name, ry_keys[k].name);
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: no combination of the frameworks (%.*s) and metrics uses %s",
                       r->where[k], RY_SHOWN(f), ry_keys[k].name);
    }
    return RENYI_OK;
}

renyi_status ry_grid_read(renyi_grid *g, const renyi_grid_options *o, const char *name,
                          const void *bytes, size_t size, renyi_error *err)
{
    reader r = {.g = g};
    const char *usual = renyi_grid_default_spec();
    for (ry_key k = 0; k < RY_N_KEYS; k++)
        r.keys[k] =
            (ry_grid_word){.name = ry_text_of(ry_keys[k].name), .values = {"", 0}, .key = k};
    r.frameworks = (ry_text){"", 0};
    RY_TRY(take_options(&r, o, err));
    if (bytes) RY_TRY(take_file(&r, name, bytes, size, err));
    RY_TRY(cross_all(&r, err));
    if (!g->n_policies) RY_TRY(take_file(&r, "default", usual, strlen(usual), err));
    if (!g->n_sizes) g->sizes[g->n_sizes++] = 0;
    if (!g->n_dtypes) g->dtypes[g->n_dtypes++] = RENYI_DTYPE_DEFAULT;
    if (!g->n_models)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s%sthe grid has no model; add a line 'models NAME'", bytes ? name : "",
                       bytes ? ": " : "");
    return RENYI_OK;
}
