/* rule_list.c - checks rules of the caller's own and keeps them in a list.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/rule_list.h"

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/status.h"
#include "prune/policy/policy_keys.h"

#include <math.h>
#include <string.h>

static int is_letter(char c) { return c >= 'a' && c <= 'z'; }

static int is_name(const char *name, size_t len)
{
    if (!len || len > RY_OWN_NAME || !is_letter(name[0])) return 0;
    for (size_t i = 1; i < len; i++)
        if (!is_letter(name[i]) && !(name[i] >= '0' && name[i] <= '9') && name[i] != '_') return 0;
    return 1;
}

/* What the name means already; NULL = nothing. */
static const char *meaning_of(const ry_own_rules *list, const char *name, size_t len)
{
    size_t count;
    const ry_preset *presets = ry_presets(&count);
    if (ry_name_find(ry_rule_names, name, len)) return "a rule of the library";
    if (strcmp(name, "cascade") == 0) return "a word of the policy grammar";
    if (ry_name_find(ry_keys[RY_KEY_METRIC].names, name, len)) return "a metric";
    for (size_t i = 0; i < count; i++)
        if (strcmp(presets[i].name, name) == 0) return "a preset";
    return ry_own_rules_find(list, name, len) ? "a rule that was added before" : NULL;
}

static renyi_status check_name(const ry_own_rules *list, const char *name, renyi_error *err)
{
    const size_t len = name ? strlen(name) : 0;
    if (!name || !is_name(name, len))
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "rule name '%.40s': a name has 1 to %d letters a-z, digits and _, and begins "
            "with a letter",
            name ? name : "", RY_OWN_NAME);
    const char *meaning = meaning_of(list, name, len);
    if (!meaning) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "rule name '%s' is %s; choose another", name, meaning);
}

/* The order must be one that a policy text can give. */
static int is_order(double order)
{
    char text[RY_DECIMAL_TEXT];
    double read;
    if (isinf(order)) return order > 0;
    if (!(order >= 1)) return 0;
    ry_print_decimal(text, order);
    return ry_read_decimal(text, strlen(text), &read) && read == order;
}

static renyi_status check_rule(const renyi_rule *r, renyi_error *err)
{
    const uint32_t known =
        RENYI_NEED_CLASS_ROW | RENYI_NEED_COLUMNS | RENYI_NEED_TOKENS | RENYI_NEED_SIZES;
    if (!r->score == !r->cut)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rule '%s' has %s; set one", r->name,
                       r->score ? "both score and cut" : "neither score nor cut");
    if (r->needs & ~known)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rule '%s': needs 0x%x is not made of RENYI_NEED_*",
                       r->name, (unsigned)r->needs);
    if (r->score && (r->needs & RENYI_NEED_SIZES))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rule '%s': RENYI_NEED_SIZES is for rules with cut; tokens of a rule with "
                       "score have sizes if the policy says reduce=merge",
                       r->name);
    if (r->order != 0 && !is_order(r->order))
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "rule '%s': order %g; at least 1 with at most 15 digits before the point, or "
            "infinity",
            r->name, r->order);
    return RENYI_OK;
}

renyi_status ry_own_rules_add(ry_own_rules *list, const renyi_rule *rule, const renyi_allocator *al,
                              renyi_error *err)
{
    RY_TRY(check_name(list, rule->name, err));
    RY_TRY(check_rule(rule, err));
    if (list->count == RY_MAX_OWN_RULES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "rule '%s': a model takes at most %d rules",
                       rule->name, RY_MAX_OWN_RULES);
    ry_own_rule *own = ry_calloc(al, 1, sizeof *own);
    if (!own) return ry_fail_nomem(err, sizeof *own);
    own->rule = *rule;
    memcpy(own->name, rule->name, strlen(rule->name));
    own->rule.name = own->name;
    if (own->rule.order == 0) own->rule.order = 2;
    own->next = list->first;
    list->first = own;
    list->count++;
    return RENYI_OK;
}

void ry_own_rules_free(ry_own_rules *list, const renyi_allocator *al)
{
    while (list->first != list->borrowed) {
        const ry_own_rule *own = list->first;
        list->first = own->next;
        ry_free(al, (void *)(uintptr_t)own);
    }
}

ry_own_rules ry_own_rules_borrow(const ry_own_rules *from)
{
    return (ry_own_rules){from->first, from->first, from->count};
}

const ry_own_rule *ry_own_rules_find(const ry_own_rules *list, const char *word, size_t len)
{
    for (const ry_own_rule *own = list ? list->first : NULL; own; own = own->next)
        if (strlen(own->name) == len && memcmp(own->name, word, len) == 0) return own;
    return NULL;
}
