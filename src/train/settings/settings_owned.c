/* settings_owned.c - settings that outlive the caller's texts, and as JSON for logs and
 * checkpoints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "train/settings/settings.h"

#include <string.h>

renyi_status ry_settings_put(ry_settings_owned *s, size_t index, const char *text,
                             const renyi_allocator *al, renyi_error *err)
{
    size_t n;
    const ry_setting *setting = ry_settings(&n) + index;
    if (setting->kind != RENYI_SETTING_TEXT) return ry_setting_read(setting, &s->opt, text, err);
    char *copy = ry_strdup(al, text);
    if (!copy) return ry_fail_nomem(err, strlen(text) + 1);
    const renyi_status st = ry_setting_read(setting, &s->opt, copy, err);
    char *gone = st ? copy : s->texts[index];
    if (!st) s->texts[index] = copy;
    ry_free(al, gone);
    return st;
}

renyi_status ry_settings_copy(ry_settings_owned *out, const renyi_train_options *opt,
                              const renyi_allocator *al, renyi_error *err)
{
    char text[RENYI_SETTING_MAX];
    size_t n;
    const ry_setting *list = ry_settings(&n);
    *out = (ry_settings_owned){.opt = *opt, .texts = ry_calloc(al, n, sizeof *out->texts)};
    if (!out->texts) return ry_fail_nomem(err, n * sizeof *out->texts);
    for (size_t i = 0; i < n; i++) {
        if (list[i].kind != RENYI_SETTING_TEXT) continue;
        ry_setting_print(&list[i], opt, text, sizeof text);
        RY_TRY(ry_settings_put(out, i, text, al, err));
    }
    return RENYI_OK;
}

void ry_settings_free(ry_settings_owned *s, const renyi_allocator *al)
{
    size_t n;
    (void)ry_settings(&n);
    for (size_t i = 0; s->texts && i < n; i++) ry_free(al, s->texts[i]);
    ry_free(al, s->texts);
    *s = (ry_settings_owned){0};
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Paths may be any bytes; a string of JSON may not. */
static json_t *text_json(const char *text)
{
    json_t *string = json_string(text);
    return string ? string : json_string("(not UTF-8)");
}

json_t *ry_settings_json(const renyi_train_options *opt)
{
    char text[RENYI_SETTING_MAX];
    size_t n;
    const ry_setting *list = ry_settings(&n);
    json_t *object = json_object();
    for (size_t i = 0; object && i < n; i++) {
        ry_setting_print(&list[i], opt, text, sizeof text);
        if (!json_object_set_new(object, list[i].name, text_json(text))) continue;
        json_decref(object);
        return NULL;
    }
    return object;
}

renyi_status ry_settings_from_json(ry_settings_owned *s, const json_t *object, const char *where,
                                   const renyi_allocator *al, renyi_error *err)
{
    size_t n;
    const ry_setting *list = ry_settings(&n);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!ry_setting_find(key, NULL))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: unknown setting '%.60s'", where, key);
    }
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_object_get(object, list[i].name));
        if (!text)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: the setting '%s' is missing", where,
                           list[i].name);
        const renyi_status st = ry_settings_put(s, i, text, al, err);
        if (st == RENYI_ERR_ARG || st == RENYI_ERR_LIMIT) {
            if (err) err->code = RENYI_ERR_FORMAT;
            return ry_fail_in(err, RENYI_ERR_FORMAT, where);
        }
        if (st) return st;
    }
    return RENYI_OK;
}
