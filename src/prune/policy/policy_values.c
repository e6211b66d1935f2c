/* policy_values.c - reads the value of one key: a name, a number, a count.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/policy_values.h"

#include "base/decimal.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* "keep=2: keep is the share ..." */
renyi_status ry_value_bad(ry_key key, const ry_slice *item, renyi_error *err)
{
    const ry_key_info *info = &ry_keys[key];
    char list[128];
    ry_nearest near = {0};

    if (!info->names)
        return ry_fail(err, RENYI_ERR_ARG, item->offset, "%s=%.*s: %s is %s", info->name,
                       RY_SHOW(item), info->name, info->takes);
    ry_name_list(list, sizeof list, info->names, UINT32_MAX);
    for (const ry_name *n = info->names; n->name; n++)
        ry_nearest_offer(&near, item->at, item->len, n->name);
    return ry_fail(err, RENYI_ERR_ARG, item->offset, "%s=%.*s%s: %s is one of %s", info->name,
                   RY_SHOW(item), ry_nearest_hint(&near), info->name, list);
}

/* A key whose value is one name of its table. */
renyi_status ry_value_word(const ry_key_values *w, ry_key key, int *out, renyi_error *err)
{
    const ry_slice *value = ry_key_value(w, key);
    const ry_name *name = ry_name_find(ry_keys[key].names, value->at, value->len);
    if (!name) return ry_value_bad(key, value, err);
    *out = name->value;
    return RENYI_OK;
}

renyi_status ry_value_number(const ry_key_values *w, ry_key key, double low, double high,
                             double *out, renyi_error *err)
{
    const ry_slice *value = ry_key_value(w, key);
    if (key == RY_KEY_N && value->len == 3 && memcmp(value->at, "inf", 3) == 0) {
        *out = INFINITY;
        return RENYI_OK;
    }
    if (!ry_read_decimal(value->at, value->len, out) || !(*out >= low && *out <= high))
        return ry_value_bad(key, value, err);
    return RENYI_OK;
}

renyi_status ry_value_count(const ry_key_values *w, ry_key key, uint64_t least, uint32_t *out,
                            renyi_error *err)
{
    const ry_slice *value = ry_key_value(w, key);
    uint64_t count = 0;
    if (!ry_read_whole(value->at, value->len, RY_MAX_COUNT, &count) || count < least)
        return ry_value_bad(key, value, err);
    *out = (uint32_t)count;
    return RENYI_OK;
}
