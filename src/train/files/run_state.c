/* run_state.c - the state of a run as JSON: the metadata of a checkpoint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/files/run_state.h"

#include "base/json.h"
#include "base/status.h"
#include "train/files/run_folder.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(ry_run_state, field)

static const struct {
    const char *key;
    size_t at;
} counts[] = {{"epoch", AT(epoch)},         {"step_in_epoch", AT(step_in_epoch)},
              {"step", AT(step)},           {"samples", AT(samples)},
              {"log_bytes", AT(log_bytes)}, {"best_epoch", AT(best_epoch)}};

static const struct {
    const char *key;
    size_t at;
    int may_lack; /* null = not known yet */
} numbers[] = {{"loss_sum", AT(loss_sum), 0},     {"seconds", AT(seconds), 0},
               {"train_loss", AT(train_loss), 1}, {"val_loss", AT(val.loss), 1},
               {"val_top1", AT(val.top1), 1},     {"val_top5", AT(val.top5), 1},
               {"ema_loss", AT(ema.loss), 1},     {"ema_top1", AT(ema.top1), 1},
               {"ema_top5", AT(ema.top5), 1},     {"best_top1", AT(best_top1), 1}};

enum {
    N_COUNTS = sizeof counts / sizeof *counts,
    N_NUMBERS = sizeof numbers / sizeof *numbers,
    MOST_BYTES = 1 << 20
};

/* The largest exact integer of a double; real counts are far below. */
#define MOST_COUNT ((json_int_t)1 << 53)

void ry_run_state_begin(ry_run_state *s, uint64_t fingerprint)
{
    const renyi_train_score none = {NAN, NAN, NAN};
    *s = (ry_run_state){
        .fingerprint = fingerprint, .train_loss = NAN, .val = none, .ema = none, .best_top1 = NAN};
}

/* ---- writing --------------------------------------------------------------------------------- */

static int add_members(json_t *object, const ry_run_state *s, const renyi_train_options *opt)
{
    char hex[20];
    snprintf(hex, sizeof hex, "%016" PRIx64, s->fingerprint);
    int bad = json_object_set_new(object, "version", json_integer(RY_RUN_STATE_VERSION));
    for (size_t i = 0; i < N_COUNTS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)s + counts[i].at, sizeof value);
        bad |= json_object_set_new(object, counts[i].key, json_integer((json_int_t)value));
    }
    for (size_t i = 0; i < N_NUMBERS; i++) {
        double value;
        memcpy(&value, (const char *)s + numbers[i].at, sizeof value);
        bad |= json_object_set_new(object, numbers[i].key, ry_log_number(value));
    }
    bad |= json_object_set_new(object, "data", json_string(hex));
    return bad | json_object_set_new(object, "settings", ry_settings_json(opt));
}

json_t *ry_run_state_json(const ry_run_state *s, const renyi_train_options *opt)
{
    json_t *object = json_object();
    if (!object || !add_members(object, s, opt)) return object;
    json_decref(object);
    return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static renyi_status fail_member(const char *where, const char *key, const char *wanted,
                                renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"%s\": %s expected", where, key, wanted);
}

static renyi_status read_counts(ry_run_state *s, const json_t *object, const char *where,
                                renyi_error *err)
{
    for (size_t i = 0; i < N_COUNTS; i++) {
        const json_t *v = json_object_get(object, counts[i].key);
        const json_int_t x = json_integer_value(v);
        if (!json_is_integer(v) || x < 0 || x > MOST_COUNT)
            return fail_member(where, counts[i].key, "a whole number", err);
        const uint64_t value = (uint64_t)x;
        memcpy((char *)s + counts[i].at, &value, sizeof value);
    }
    return RENYI_OK;
}

static renyi_status read_numbers(ry_run_state *s, const json_t *object, const char *where,
                                 renyi_error *err)
{
    for (size_t i = 0; i < N_NUMBERS; i++) {
        const json_t *v = json_object_get(object, numbers[i].key);
        const int lacks = numbers[i].may_lack && json_is_null(v);
        if (!lacks && !json_is_number(v))
            return fail_member(where, numbers[i].key, "a number", err);
        const double value = lacks ? NAN : json_number_value(v);
        memcpy((char *)s + numbers[i].at, &value, sizeof value);
    }
    return RENYI_OK;
}

static renyi_status read_fingerprint(ry_run_state *s, const json_t *object, const char *where,
                                     renyi_error *err)
{
    const char *hex = json_string_value(json_object_get(object, "data"));
    if (!hex || strlen(hex) != 16 || strspn(hex, "0123456789abcdef") != 16 ||
        sscanf(hex, "%16" SCNx64, &s->fingerprint) != 1)
        return fail_member(where, "data", "16 hexadecimal digits", err);
    return RENYI_OK;
}

static renyi_status read_members(ry_run_state *s, ry_settings_owned *settings, const json_t *object,
                                 const char *where, const renyi_allocator *al, renyi_error *err)
{
    const json_int_t version = json_integer_value(json_object_get(object, "version"));
    if (version != RY_RUN_STATE_VERSION)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: written by another version of renyi (%lld; this one reads %d)", where,
                       (long long)version, RY_RUN_STATE_VERSION);
    RY_TRY(read_counts(s, object, where, err));
    RY_TRY(read_numbers(s, object, where, err));
    RY_TRY(read_fingerprint(s, object, where, err));
    const json_t *list = ry_json_object(object, "settings");
    if (!list) return fail_member(where, "settings", "an object", err);
    return ry_settings_from_json(settings, list, where, al, err);
}

renyi_status ry_run_state_parse(ry_run_state *s, ry_settings_owned *settings, const char *text,
                                size_t size, const char *where, const renyi_allocator *al,
                                renyi_error *err)
{
    const ry_json_limits limits = {.max_bytes = MOST_BYTES, .max_values = 4096, .max_depth = 4};
    json_t *object = NULL;
    *s = (ry_run_state){0};
    RY_TRY(ry_json_parse(&object, text, size, where, &limits, err));
    renyi_status st = read_members(s, settings, object, where, al, err);
    json_decref(object);
    return st;
}
