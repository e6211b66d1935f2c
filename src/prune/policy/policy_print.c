/* policy_print.c - prints a policy in full: every key that its rule and metric take, defaults
 * included.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"
#include "prune/policy/policy_keys.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* A text of limited size; `len` keeps counting when it is full. */
typedef struct writer {
    char *out;
    size_t size, len;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *fmt, ...)
{
    const size_t space = w->len < w->size ? w->size - w->len : 0;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(space ? w->out + w->len : NULL, space, fmt, ap);
    va_end(ap);
    w->len += n > 0 ? (size_t)n : 0;
}

static void put_decimal(writer *w, double x)
{
    char text[RY_DECIMAL_TEXT];
    put(w, "%s", ry_print_decimal(text, x));
}

/* "0-5" for three or more in a row, else "0,3,6". */
static void put_layers(writer *w, const ry_policy *p)
{
    if (p->every_layer) {
        put(w, "all");
        return;
    }
    for (uint32_t i = 0; i < p->n_cuts; i++) {
        uint32_t last = i;
        while (last + 1 < p->n_cuts && p->cuts[last + 1].layer == p->cuts[last].layer + 1) last++;
        put(w, "%s%" PRIu32, i ? "," : "", p->cuts[i].layer);
        if (last < i + 2) continue;
        put(w, "-%" PRIu32, p->cuts[last].layer);
        i = last;
    }
    if (p->depth) put(w, "/%" PRIu32, p->depth);
}

static int same_budget(const ry_policy *p)
{
    for (uint32_t i = 1; i < p->n_cuts; i++)
        if (p->cuts[i].keep != p->cuts[0].keep || p->cuts[i].count != p->cuts[0].count ||
            p->cuts[i].drop != p->cuts[0].drop)
            return 0;
    return 1;
}

static int same_reduce(const ry_policy *p)
{
    for (uint32_t i = 1; i < p->n_cuts; i++)
        if (p->cuts[i].reduce != p->cuts[0].reduce) return 0;
    return 1;
}

/* One number for all cuts, or one per cut. With layers=all the length of a list sets the number
 * of layers, so it stays a list. */
static void put_budget(writer *w, const ry_policy *p)
{
    const uint32_t n = same_budget(p) && !p->every_layer ? 1 : p->n_cuts;
    if (p->budget == RY_BUDGET_ADAPTIVE) {
        put(w, "adaptive");
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (i) put(w, ",");
        if (p->budget == RY_BUDGET_KEEP)
            put_decimal(w, p->cuts[i].keep);
        else if (p->budget == RY_BUDGET_SHARE)
            put_decimal(w, p->cuts[i].drop);
        else
            put(w, "%" PRIu32, p->cuts[i].count);
    }
}

static void put_reduce(writer *w, const ry_policy *p)
{
    const uint32_t n = same_reduce(p) ? 1 : p->n_cuts;
    for (uint32_t i = 0; i < n; i++)
        put(w, "%s%s", i ? "," : "",
            ry_name_of(ry_keys[RY_KEY_REDUCE].names, (int)p->cuts[i].reduce));
}

static ry_key budget_key(const ry_policy *p)
{
    if (p->rule == RY_RULE_TOME) return RY_KEY_R;
    if (p->rule == RY_RULE_TCA) return RY_KEY_DROP;
    return p->budget == RY_BUDGET_KEEP   ? RY_KEY_KEEP
           : p->budget == RY_BUDGET_DROP ? RY_KEY_P
                                         : RY_KEY_TOKENS;
}

int ry_policy_fuses(const ry_policy *p)
{
    for (uint32_t i = 0; i < p->n_cuts; i++)
        if (p->cuts[i].reduce == RY_REDUCE_FUSE) return 1;
    return 0;
}

/* Is the key printed for this policy? */
static int is_said(const ry_policy *p, ry_key key)
{
    if (!ry_key_for_rule(key, p->rule) || !ry_key_is_used(key, p)) return 0;
    if (ry_key_is_budget(key)) return key == budget_key(p);
    if (key == RY_KEY_REGISTERS) return !p->registers; /* few models have any */
    if (key == RY_KEY_BUDGET) return p->over_image;
    if (key == RY_KEY_NEWLINES) return p->drops_newlines;
    if (p->rule == RY_RULE_MOSAIC_BEHIND) return 1;
    if (key == RY_KEY_ALPHA || key == RY_KEY_OMEGA || key == RY_KEY_BETA)
        return p->alpha != 0.5 || p->omega != 0 || p->beta != 1; /* together, or the defaults */
    if (key == RY_KEY_MEMORY) return p->memory != 0;
    if (key == RY_KEY_LENGTH) return p->longest;
    if (key == RY_KEY_COL) return p->col != 0;
    if (key == RY_KEY_TEMPERATURE) return p->temperature != 1;
    if (key == RY_KEY_LIKENESS) return p->likeness != 0;
    if (key == RY_KEY_INFLECTION) return same_budget(p) && !(p->every_layer && p->n_cuts > 1);
    return key != RY_KEY_WEIGHTS || ry_policy_fuses(p);
}

static int word_of(const ry_policy *p, ry_key key)
{
    switch (key) {
    case RY_KEY_METRIC: return (int)p->metric;
    case RY_KEY_ROUNDING: return (int)p->rounding;
    case RY_KEY_HEADS: return (int)p->heads;
    case RY_KEY_CLASS_ROW: return p->class_row != 0;
    case RY_KEY_REGISTERS: return p->registers != 0;
    case RY_KEY_DIAGONAL: return p->diagonal != 0;
    case RY_KEY_WEIGHTS: return (int)p->weights;
    case RY_KEY_AT: return (int)p->place;
    case RY_KEY_PLUS: return p->plus != 0;
    case RY_KEY_CLASS_TOKEN: return p->class_token != 0;
    case RY_KEY_LENGTH: return p->longest != 0;
    case RY_KEY_BUDGET: return p->over_image != 0;
    case RY_KEY_NEWLINES: return !p->drops_newlines;
    case RY_KEY_RESIDUAL: return (int)p->residual;
    case RY_KEY_ROWS: return (int)p->rows;
    case RY_KEY_POSITIONS: return p->renumbers != 0;
    default: return (int)p->order;
    }
}

static void put_start(writer *w, const ry_policy *p)
{
    if (p->start == RY_START_BEST)
        put(w, "best");
    else
        put(w, "%" PRIu64, p->seed);
}

static void put_levels(writer *w, const ry_policy *p)
{
    if (p->levels)
        put(w, "%" PRIu32, p->levels);
    else
        put(w, "budget");
}

static void put_value(writer *w, const ry_policy *p, ry_key key)
{
    switch (key) {
    case RY_KEY_KEEP:
    case RY_KEY_P:
    case RY_KEY_TOKENS:
    case RY_KEY_DROP:
    case RY_KEY_R: put_budget(w, p); return;
    case RY_KEY_INFLECTION: put_decimal(w, p->inflection); return;
    case RY_KEY_LAYERS: put_layers(w, p); return;
    case RY_KEY_LAYER: put(w, "%" PRIu32, p->cuts[0].layer); return;
    case RY_KEY_PIVOTS: put(w, "%" PRIu32, p->pivots); return;
    case RY_KEY_TEXT_PIVOTS: put(w, "%" PRIu32, p->text_pivots); return;
    case RY_KEY_RECYCLE: put_decimal(w, p->recycle); return;
    case RY_KEY_MEMBERS: put(w, "%" PRIu32, p->members); return;
    case RY_KEY_N: put_decimal(w, p->n); return;
    case RY_KEY_C: put_decimal(w, p->c); return;
    case RY_KEY_SEED: put(w, "%" PRIu64, p->seed); return;
    case RY_KEY_REDUCE: put_reduce(w, p); return;
    case RY_KEY_START: put_start(w, p); return;
    case RY_KEY_LEVELS: put_levels(w, p); return;
    case RY_KEY_IMPORTANT: put_decimal(w, p->important); return;
    case RY_KEY_CONTEXTUAL: put_decimal(w, p->contextual); return;
    case RY_KEY_ANCHORS: put_decimal(w, p->anchors); return;
    case RY_KEY_BLOCK: put(w, "%" PRIu32, p->block); return;
    case RY_KEY_ALPHA: put_decimal(w, p->alpha); return;
    case RY_KEY_OMEGA: put_decimal(w, p->omega); return;
    case RY_KEY_BETA: put_decimal(w, p->beta); return;
    case RY_KEY_MEMORY: put_decimal(w, p->memory); return;
    case RY_KEY_COL: put_decimal(w, p->col); return;
    case RY_KEY_TEMPERATURE: put_decimal(w, p->temperature); return;
    case RY_KEY_LIKENESS: put_decimal(w, p->likeness); return;
    case RY_KEY_NEIGHBOURS: put(w, "%" PRIu32, p->neighbours); return;
    case RY_KEY_ROUND: put(w, "%" PRIu32, p->round); return;
    default: put(w, "%s", ry_name_of(ry_keys[key].names, word_of(p, key)));
    }
}

static void put_policy(writer *w, const ry_policy *p)
{
    put(w, "%s", ry_rule_name(p->rule, p->own));
    for (ry_key k = 0; k < RY_N_KEYS; k++) {
        if (!is_said(p, k)) continue;
        put(w, " %s=", ry_keys[k].name);
        put_value(w, p, k);
    }
}

void ry_policy_print(char out[RY_MAX_POLICY_TEXT], const ry_policy *p)
{
    writer w = {out, RY_MAX_POLICY_TEXT, 0};
    put_policy(&w, p);
}

size_t ry_policy_text_length(const ry_policy *p)
{
    writer w = {NULL, 0, 0};
    put_policy(&w, p);
    return w.len;
}
