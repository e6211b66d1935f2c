/* grid.c - a grid of models, sizes, dtypes and policies, and how a policy text with alternatives
 * becomes all the policies that it stands for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/sweep/grid.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/model_handle.h"
#include "prune/policy/cascade.h"

#include <string.h>

enum { MAX_FILE = 1 << 20 };

/* ---- words --------------------------------------------------------------------------------- */

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

ry_text ry_grid_next_word(ry_text *rest)
{
    size_t from = 0, to;
    while (from < rest->n && is_blank(rest->at[from])) from++;
    int inside = 0;
    for (to = from; to < rest->n && (inside || !is_blank(rest->at[to])); to++)
        inside = rest->at[to] == '(' || (inside && rest->at[to] != ')');
    const ry_text word = {rest->at + from, to - from};
    *rest = (ry_text){rest->at + to, rest->n - to};
    return word;
}

size_t ry_grid_alternatives(ry_text values)
{
    size_t n = 1;
    for (size_t i = 0; i < values.n; i++) n += values.at[i] == '|';
    return n;
}

ry_text ry_grid_alternative(ry_text values, size_t i)
{
    for (;; i--) {
        const char *bar = memchr(values.at, '|', values.n);
        const size_t n = bar ? (size_t)(bar - values.at) : values.n;
        if (!i || !bar) return (ry_text){values.at, n};
        values = (ry_text){bar + 1, values.n - n - 1};
    }
}

ry_key ry_grid_key(ry_text name)
{
    ry_key k = 0;
    while (k < RY_N_KEYS && ry_text_compare(name, ry_text_of(ry_keys[k].name)) != 0) k++;
    return k;
}

/* ---- one combination ----------------------------------------------------------------------- */

typedef struct writer {
    char out[RY_MAX_POLICY_TEXT];
    size_t n;
} writer;

static void put_text(writer *w, ry_text t)
{
    for (size_t i = 0; i < t.n; i++, w->n++)
        if (w->n < sizeof w->out - 1) w->out[w->n] = t.at[i];
    w->out[w->n < sizeof w->out ? w->n : sizeof w->out - 1] = 0;
}

static void put_word(writer *w, const ry_grid_word *word, size_t alternative)
{
    put_text(w, ry_text_of(" "));
    if (word->name.n) {
        put_text(w, word->name);
        put_text(w, ry_text_of("="));
    }
    put_text(w, ry_grid_alternative(word->values, alternative));
}

static renyi_status parse_policy(const renyi_grid *g, ry_policy *out, const writer *w,
                                 renyi_error *err)
{
    if (w->n >= sizeof w->out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a policy has at most %d bytes; this one has %zu",
                       RY_MAX_POLICY_TEXT - 1, w->n);
    const renyi_status st = ry_policy_parse_own(out, w->out, g->own, err);
    if (st && err) err->offset = -1; /* an offset in a text that the user did not write */
    return st;
}

/* Does the word have a meaning only with some metrics, or only if tokens are fused? */
static int is_dependent(const ry_grid_word *w)
{
    return w->key < RY_N_KEYS && (ry_keys[w->key].metrics || w->key == RY_KEY_WEIGHTS);
}

static int has_meaning(const ry_grid_word *w, const ry_policy *p)
{
    return ry_key_is_used(w->key, p) && (w->key != RY_KEY_WEIGHTS || ry_policy_fuses(p));
}

/* A word that the rule takes, or one that no rule takes: the parser reports that. */
static int is_for_rule(const ry_grid_word *w, ry_rule rule)
{
    return w->key == RY_N_KEYS || ry_key_for_rule(w->key, rule);
}

static renyi_status add_text(renyi_grid *g, const char *full, renyi_error *err)
{
    for (uint32_t i = 0; i < g->n_policies; i++)
        if (strcmp(full, g->policies[i]) == 0) return RENYI_OK;
    const char *copy = ry_pool_copy(&g->pool, ry_text_of(full));
    if (!copy) return ry_fail_nomem(err, strlen(full));
    g->policies[g->n_policies++] = copy; /* fits, because combinations are limited */
    return RENYI_OK;
}

static renyi_status count_combination(renyi_grid *g, renyi_error *err)
{
    if (g->n_combinations++ < RY_GRID_POLICIES) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %d policies in one grid", RY_GRID_POLICIES);
}

static renyi_status add_combination(renyi_grid *g, ry_text rule, ry_rule kind, ry_grid_word *words,
                                    size_t n_words, const size_t *choice, renyi_error *err)
{
    writer text = {.n = 0};
    ry_policy core, whole;
    char full[RY_MAX_POLICY_TEXT];
    RY_TRY(count_combination(g, err));
    put_text(&text, rule);
    for (size_t i = 0; i < n_words; i++)
        if (is_for_rule(&words[i], kind) && !is_dependent(&words[i]))
            put_word(&text, &words[i], choice[i]), words[i].is_used = 1;
    RY_TRY(parse_policy(g, &core, &text, err));
    for (size_t i = 0; i < n_words; i++)
        if (is_for_rule(&words[i], kind) && is_dependent(&words[i]) &&
            has_meaning(&words[i], &core))
            put_word(&text, &words[i], choice[i]), words[i].is_used = 1;
    RY_TRY(parse_policy(g, &whole, &text, err));
    ry_policy_print(full, &whole);
    return add_text(g, full, err);
}

/* ---- all combinations ---------------------------------------------------------------------- */

renyi_status ry_grid_expand(renyi_grid *g, ry_text rule, ry_grid_word *words, size_t n_words,
                            renyi_error *err)
{
    size_t choice[RY_GRID_WORDS] = {0};
    writer name = {.n = 0};
    ry_policy bare;
    put_text(&name, rule);
    RY_TRY(parse_policy(g, &bare, &name, err));
    for (;;) {
        RY_TRY(add_combination(g, rule, bare.rule, words, n_words, choice, err));
        size_t i = n_words; /* the last word changes fastest */
        while (i-- > 0) {
            if (!is_for_rule(&words[i], bare.rule)) continue;
            if (++choice[i] < ry_grid_alternatives(words[i].values)) break;
            choice[i] = 0;
        }
        if (i == SIZE_MAX) return RENYI_OK;
    }
}

static renyi_status read_word(ry_grid_word *out, ry_text word, renyi_error *err)
{
    const char *equal = memchr(word.at, '=', word.n);
    const size_t n = equal ? (size_t)(equal - word.at) : 0;
    *out = (ry_grid_word){.name = {word.at, n}, .values = word, .key = RY_N_KEYS};
    if (equal) out->values = (ry_text){equal + 1, word.n - n - 1};
    for (size_t i = ry_grid_alternatives(out->values); i-- > 0;)
        if (!ry_grid_alternative(out->values, i).n)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "'%.*s' has an empty alternative; write key=a|b|c", RY_SHOWN(word));
    if (equal)
        out->key = ry_grid_key(out->name);
    else if (ry_name_find(ry_keys[RY_KEY_REDUCE].names, word.at, ry_grid_alternative(word, 0).n))
        out->key = RY_KEY_REDUCE;
    return RENYI_OK;
}

/* Reports a word that no combination uses with the message of the parser. */
static renyi_status fail_unused(const renyi_grid *g, ry_text rule, const ry_grid_word *words,
                                size_t n_words, const ry_grid_word *unused, renyi_error *err)
{
    writer text = {.n = 0};
    ry_policy p;
    put_text(&text, rule);
    for (size_t i = 0; i < n_words; i++)
        if (&words[i] == unused || (words[i].is_used && !is_dependent(&words[i])))
            put_word(&text, &words[i], 0);
    RY_TRY(parse_policy(g, &p, &text, err));
    return ry_fail(err, RENYI_ERR_ARG, -1, "'%.*s' has no meaning here", RY_SHOWN(unused->name));
}

/* ---- cascades ------------------------------------------------------------------------------- */

static renyi_status add_cascade(renyi_grid *g, const writer *w, renyi_error *err)
{
    ry_cascade c;
    char full[RY_MAX_POLICY_TEXT];
    RY_TRY(count_combination(g, err));
    if (w->n >= sizeof w->out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a policy has at most %d bytes; this one has %zu",
                       RY_MAX_POLICY_TEXT - 1, w->n);
    const renyi_status st = ry_cascade_parse(&c, w->out, g->own, err);
    if (st && err) err->offset = -1;
    RY_TRY(st);
    ry_cascade_print(full, &c);
    return add_text(g, full, err);
}

/* Where a value with alternatives ends: at a blank, or at the ')' of the cascade. */
static size_t value_end(ry_text t, size_t at)
{
    int depth = 0;
    for (; at < t.n; at++) {
        depth += (t.at[at] == '(') - (t.at[at] == ')');
        if (depth < 0 || (!depth && is_blank(t.at[at]))) break;
    }
    return at;
}

/* The alternatives of each word are combined as they stand: `done` and the first alternative of the
 * rest, then the next. A word begins after a blank, a '=' or a '('. */
static renyi_status expand_cascade(renyi_grid *g, const writer *done, ry_text rest,
                                   renyi_error *err)
{
    const char *bar = memchr(rest.at, '|', rest.n);
    if (!bar || done->n >= sizeof done->out) {
        writer w = *done;
        put_text(&w, rest);
        return add_cascade(g, &w, err);
    }
    size_t from = (size_t)(bar - rest.at);
    while (from && !is_blank(rest.at[from - 1]) && !strchr("=(", rest.at[from - 1])) from--;
    const size_t to = value_end(rest, from);
    const ry_text values = {rest.at + from, to - from};
    for (size_t i = 0; i < ry_grid_alternatives(values); i++) {
        const ry_text one = ry_grid_alternative(values, i);
        writer w = *done;
        if (!one.n)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "'%.*s' has an empty alternative; write key=a|b|c", RY_SHOWN(values));
        put_text(&w, (ry_text){rest.at, from});
        put_text(&w, one);
        RY_TRY(expand_cascade(g, &w, (ry_text){rest.at + to, rest.n - to}, err));
    }
    return RENYI_OK;
}

/* Does the text begin as a cascade does, or with a preset that is one? */
static int is_cascade(ry_text text)
{
    writer w = {.n = 0};
    put_text(&w, text);
    return ry_is_cascade(w.out);
}

renyi_status ry_grid_policy(renyi_grid *g, ry_text text, renyi_error *err)
{
    ry_grid_word words[RY_GRID_WORDS], rules;
    if (is_cascade(text)) return expand_cascade(g, &(writer){.n = 0}, text, err);
    size_t n = 0;
    ry_text word = ry_grid_next_word(&text);
    RY_TRY(read_word(&rules, word, err));
    if (rules.name.n) rules.values = word; /* "keep=0.5": the parser reports the missing rule */
    while ((word = ry_grid_next_word(&text)).n) {
        if (n == RY_GRID_WORDS)
            return ry_fail(err, RENYI_ERR_ARG, -1, "a policy has at most %d words", RY_GRID_WORDS);
        RY_TRY(read_word(&words[n++], word, err));
    }
    for (size_t i = 0; i < ry_grid_alternatives(rules.values); i++) {
        const ry_text rule = ry_grid_alternative(rules.values, i);
        if (!n && is_cascade(rule)) /* "none|sure" */
            RY_TRY(expand_cascade(g, &(writer){.n = 0}, rule, err));
        else
            RY_TRY(ry_grid_expand(g, rule, words, n, err));
    }
    for (size_t i = 0; i < n; i++)
        if (!words[i].is_used)
            return fail_unused(g, ry_grid_alternative(rules.values, 0), words, n, &words[i], err);
    return RENYI_OK;
}

/* ---- the grid ------------------------------------------------------------------------------ */

/* What docs/PRUNING.md found worth trying: mosaic with small cuts in many blocks, of equal shares
 * and of shares that fall or rise with depth, with numbers that depend on the image, in cascades,
 * and with few large cuts; then the rules that the paper uses with its metric, and merging. */
const char *renyi_grid_default_spec(void)
{
    return "policy none\n"
           "policy half keep=0.71|0.74|0.77|0.8|0.84|0.88|0.92\n"
           "policy half keep=0.82,0.82,0.82,0.76,0.76,0.76,0.76,0.76|"
           "0.74,0.74,0.74,0.82,0.82,0.82,0.82,0.82|0.9,0.9,0.9,0.84,0.84,0.84,0.84,0.84\n"
           "policy half keep=0.7 likeness=0.6|0.7\n"
           "policy sure\n"
           "policy cascade(fast -> careful if margin < 0.5|1)\n"
           "policy mosaic keep=0.5|0.7|0.9 layers=0,3,6|3,6,9\n"
           "policy mosaic p=8|16 layers=0-5\n"
           "policy evit keep=0.5|0.7|0.9 layers=3,6,9 metric=cls|correct n=2 c=0.8 fuse\n"
           "policy evit keep=0.7|0.9 layers=0,3,6 metric=col n=4 fuse\n"
           "policy naive p=8|16 layers=0-5 metric=col n=4\n"
           "policy tome r=5|9|13\n";
}

static renyi_status fill_grid(renyi_grid *g, const renyi_grid_options *o, renyi_error *err)
{
    ry_mapped_file file = {0};
    if ((o->n_models && !o->models) || (o->n_sizes && !o->sizes) || (o->n_dtypes && !o->dtypes) ||
        (o->n_policies && !o->policies) || (o->n_lines && !o->lines))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_grid_options: a list is NULL");
    if (o->file)
        RY_TRY(ry_mapped_file_open(&file, o->file, o->max_file_bytes ? o->max_file_bytes : MAX_FILE,
                                   err));
    g->own = o->rules_of ? &o->rules_of->rules : NULL;
    const renyi_status st = ry_grid_read(g, o, o->file, file.data, file.size, err);
    g->own = NULL;
    ry_mapped_file_close(&file);
    return st;
}

renyi_status renyi_grid_new(renyi_grid **out, const renyi_grid_options *opt, renyi_error *err)
{
    renyi_grid_options o;
    if (!out || !opt) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_grid_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_grid_options", err));
    renyi_grid *g = ry_calloc(&o.allocator, 1, sizeof *g);
    if (!g) return ry_fail_nomem(err, sizeof *g);
    g->al = o.allocator;
    g->pool.al = &g->al;
    const renyi_status st = fill_grid(g, &o, err);
    if (st)
        renyi_grid_free(g);
    else
        *out = g;
    return st;
}

void renyi_grid_free(renyi_grid *g)
{
    if (!g) return;
    const renyi_allocator al = g->al;
    ry_pool_free(&g->pool);
    ry_free(&al, g);
}

size_t renyi_grid_count(const renyi_grid *g)
{
    return (size_t)g->n_models * g->n_sizes * g->n_dtypes * g->n_policies;
}

void renyi_grid_get(const renyi_grid *g, size_t i, renyi_grid_point *out)
{
    *out = (renyi_grid_point){0};
    if (i >= renyi_grid_count(g)) return;
    const size_t group = i / g->n_policies, row = group / g->n_dtypes;
    *out = (renyi_grid_point){.model = g->models[row / g->n_sizes],
                              .image_size = g->sizes[row % g->n_sizes],
                              .dtype = g->dtypes[group % g->n_dtypes],
                              .policy = g->policies[i % g->n_policies]};
}

void renyi_grid_get_info(const renyi_grid *g, renyi_grid_info *out)
{
    *out = (renyi_grid_info){.n_models = g->n_models,
                             .n_sizes = g->n_sizes,
                             .n_policies = g->n_policies,
                             .models = g->models,
                             .sizes = g->sizes,
                             .policies = g->policies,
                             .n_dtypes = g->n_dtypes,
                             .dtypes = g->dtypes};
}
