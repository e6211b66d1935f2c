/* policy_values.c - see policy_values.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/policy_values.h"

#include "base/status.h"
#include "prune/policy/policy_number.h"

#include <math.h>
#include <string.h>

/* "keep=2: keep is the share ..." */
renyi_status ry_value_bad(ry_key key, const ry_slice *item, renyi_error *err)
{
    const ry_key_info *info = &ry_keys[key];
    char list[128];
    ry_nearest near = {0};

    if (!info->words)
        return ry_fail(err, RENYI_ERR_ARG, item->offset, "%s=%.*s: %s is %s", info->name,
                       RY_SHOW(item), info->name, info->takes);
    ry_name_list(list, sizeof list, info->words, UINT32_MAX);
    for (const ry_name *n = info->words; n->name; n++)
        ry_nearest_offer(&near, item->at, item->len, n->name);
    return ry_fail(err, RENYI_ERR_ARG, item->offset, "%s=%.*s%s: %s is one of %s", info->name,
                   RY_SHOW(item), ry_nearest_hint(&near), info->name, list);
}

/* A key whose value is one word of its table. */
renyi_status ry_value_word(const ry_words *w, ry_key key, int *out, renyi_error *err)
{
    const ry_slice *value = ry_words_value(w, key);
    const ry_name *name = ry_name_find(ry_keys[key].words, value->at, value->len);
    if (!name) return ry_value_bad(key, value, err);
    *out = name->value;
    return RENYI_OK;
}

renyi_status ry_value_number(const ry_words *w, ry_key key, double low, double high, double *out,
                             renyi_error *err)
{
    const ry_slice *value = ry_words_value(w, key);
    if (key == RY_KEY_N && value->len == 3 && memcmp(value->at, "inf", 3) == 0) {
        *out = INFINITY;
        return RENYI_OK;
    }
    if (!ry_read_decimal(value->at, value->len, out) || !(*out >= low && *out <= high))
        return ry_value_bad(key, value, err);
    return RENYI_OK;
}
