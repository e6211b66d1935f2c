/* settings_owned.c - settings that own their text, as a run keeps them: copies, JSON, and what may
 * change when a run is resumed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "train/settings/settings.h"

#include <string.h>

renyi_status ry_settings_set(ry_settings_owned *s, size_t index, const char *text,
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
        RY_TRY(ry_settings_set(out, i, text, al, err));
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

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Paths may be any bytes; a string of JSON may not. */
static json_t *json_of_text(const char *text)
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
        if (!json_object_set_new(object, list[i].name, json_of_text(text))) continue;
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
        const json_t *found = json_object_get(object, list[i].name);
        if (!found) found = json_object_get(object, ry_setting_old_name(list[i].name));
        const char *text = json_string_value(found);
        if (!text)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: the setting '%s' is missing", where,
                           list[i].name);
        const renyi_status st = ry_settings_set(s, i, text, al, err);
        if (st == RENYI_ERR_ARG || st == RENYI_ERR_LIMIT) {
            if (err) err->code = RENYI_ERR_FORMAT;
            return ry_fail_in(err, RENYI_ERR_FORMAT, where);
        }
        if (st) return st;
    }
    return RENYI_OK;
}

/* ---- resuming -------------------------------------------------------------------------------- */

static renyi_status merge_setting(ry_settings_owned *s, const renyi_train_options *given, size_t i,
                                  const renyi_allocator *al, renyi_error *err)
{
    char was[RENYI_SETTING_MAX], now[RENYI_SETTING_MAX];
    size_t n;
    const ry_setting *setting = ry_settings(&n) + i;
    ry_setting_print(setting, &s->opt, was, sizeof was);
    ry_setting_print(setting, given, now, sizeof now);
    if (strcmp(was, now) == 0) return RENYI_OK;
    if (setting->flags & RY_SETTING_CHANGES) return ry_settings_set(s, i, now, al, err);
    if (strcmp(now, "auto") == 0) return RENYI_OK; /* was made of it */
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s is '%.80s' in the checkpoint and '%.80s' now: a run that is resumed keeps "
                   "its settings; begin a new one in another folder",
                   setting->name, was, now);
}

renyi_status ry_settings_merge(ry_settings_owned *s, const renyi_train_options *given,
                               const renyi_allocator *al, renyi_error *err)
{
    size_t n;
    (void)ry_settings(&n);
    for (size_t i = 0; i < n; i++)
        if (given->given[i / 64] >> i % 64 & 1) RY_TRY(merge_setting(s, given, i, al, err));
    return RENYI_OK;
}
