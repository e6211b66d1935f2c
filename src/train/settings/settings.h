/* settings.h - the table of all settings of a training run: name, field, range, default. Command
 * line, checkpoints, logs and messages are built from it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SETTINGS_H
#define RY_SETTINGS_H

#include "renyi/train.h"

#include <jansson.h>

enum {
    RY_SETTING_CHANGES = 1u << 0, /* may change when a run is resumed */
    RY_SETTING_AUTO = 1u << 1     /* 0 is "auto" */
};

typedef struct ry_setting {
    const char *name, *group;
    renyi_setting_kind kind;
    uint32_t n;       /* numbers of a REAL */
    size_t offset;    /* in renyi_train_options */
    double low, high; /* COUNT and REAL; high 0 = no limit of a COUNT */
    const char *argument;
    unsigned flags;
    const char *fallback; /* default, as text */
    const char *help;
} ry_setting;

/* The table. */
const ry_setting *ry_settings(size_t *count);
/* By its name or the one it had in older files; NULL if there is none. */
const ry_setting *ry_setting_find(const char *name, size_t *index);
const char *ry_setting_old_name(const char *name); /* `name` itself if it was always so */

/* `text` into the field of s, without marking it as given. Texts are borrowed. */
renyi_status ry_setting_read(const ry_setting *s, renyi_train_options *opt, const char *text,
                             renyi_error *err) RENYI_CHECK;
void ry_setting_print(const ry_setting *s, const renyi_train_options *opt, char *out, size_t size);

/* ---- settings that own their text ------------------------------------------------------------ */

typedef struct ry_settings_owned {
    renyi_train_options opt;
    char **texts; /* [count] what the texts of opt point to; NULL = static or not given */
} ry_settings_owned;

renyi_status ry_settings_copy(ry_settings_owned *out, const renyi_train_options *opt,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* Reads one setting into s; the text is copied. */
renyi_status ry_settings_set(ry_settings_owned *s, size_t index, const char *text,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_settings_free(ry_settings_owned *s, const renyi_allocator *al); /* zeroed is fine */

/* All settings as {"name": "text", ...}, and back: no unknown names, no setting missing. NULL = out
 * of memory. */
json_t *ry_settings_json(const renyi_train_options *opt);
renyi_status ry_settings_from_json(ry_settings_owned *s, const json_t *object, const char *where,
                                   const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Adds what was given on resume to the settings of the checkpoint. A setting that may not change
 * must have its old value. */
renyi_status ry_settings_merge(ry_settings_owned *s, const renyi_train_options *given,
                               const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* ---- numbers as text, the same in every locale ----------------------------------------------- */

enum { RY_NUMBER_TEXT = 40 };
int ry_number_read(const char *text, size_t length, double *out); /* 0 = not a finite number */
const char *ry_number_print(char out[RY_NUMBER_TEXT], double x);  /* reads back as x */

#endif
