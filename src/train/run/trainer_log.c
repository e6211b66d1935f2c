/* trainer_log.c - the lines of the log.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "train/run/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Times need no 17 digits: multiples of a power of two print short. */
static json_t *rough(double x, double unit)
{
    return isfinite(x) ? json_real(nearbyint(x * unit) / unit) : json_null();
}

/* One line: kind, then what the caller adds; takes over `value`. */
static void add(json_t *line, const char *key, json_t *value)
{
    if (line) (void)json_object_set_new(line, key, value);
}

static json_t *begin(const char *kind)
{
    json_t *line = json_object();
    add(line, "kind", json_string(kind));
    return line;
}

renyi_status ry_train_log_config(renyi_train *t, renyi_error *err)
{
    renyi_train_info info;
    json_t *line = begin("config");
    renyi_train_get_info(t, &info);
    add(line, "renyi", json_string(renyi_version()));
    add(line, "architecture", json_string(info.architecture));
    add(line, "params", json_integer((json_int_t)info.n_params));
    add(line, "trained", json_integer((json_int_t)info.n_trained));
    add(line, "classes", json_integer(info.n_classes));
    add(line, "tokens", json_integer(info.n_tokens));
    add(line, "photos", json_integer((json_int_t)info.n_photos));
    add(line, "val_photos", json_integer((json_int_t)info.n_val));
    add(line, "steps_per_epoch", json_integer((json_int_t)info.steps_per_epoch));
    add(line, "gmacs_forward", rough(info.macs_forward * 1e-9, 65536));
    add(line, "cpu", json_string(renyi_cpu_name(t->level)));
    add(line, "policy", json_string(t->policy_text));
    add(line, "settings", ry_settings_json(ry_train_opt(t)));
    return ry_log_file_put(&t->log, line, &t->al, err);
}

renyi_status ry_train_log_step(renyi_train *t, const renyi_train_step *s, renyi_error *err)
{
    json_t *line = begin("step");
    add(line, "epoch", json_integer((json_int_t)s->epoch));
    add(line, "step", json_integer((json_int_t)s->step));
    add(line, "loss", ry_log_number(s->loss));
    if (t->teacher) {
        add(line, "loss_labels", ry_log_number(s->loss_labels));
        add(line, "loss_teacher", ry_log_number(s->loss_teacher));
        add(line, "loss_tokens", ry_log_number(s->loss_tokens));
    }
    add(line, "lr", ry_log_number(s->lr));
    add(line, "keep", ry_log_number(s->keep));
    add(line, "grad_norm", ry_log_number(s->grad_norm));
    add(line, "images_per_second", rough(s->images_per_second, 8));
    add(line, "seconds", rough(s->seconds, 64));
    return ry_log_file_put(&t->log, line, &t->al, err);
}

static void add_score(json_t *line, const char *who, const renyi_train_score *s)
{
    char key[24];
    if (isnan(s->top1)) return;
    snprintf(key, sizeof key, "%s_loss", who);
    add(line, key, ry_log_number(s->loss));
    snprintf(key, sizeof key, "%s_top1", who);
    add(line, key, ry_log_number(s->top1));
    snprintf(key, sizeof key, "%s_top5", who);
    add(line, key, ry_log_number(s->top5));
}

renyi_status ry_train_log_epoch(renyi_train *t, const char *kind, const renyi_train_epoch *e,
                                renyi_error *err)
{
    json_t *line = begin(kind);
    add(line, "epoch", json_integer((json_int_t)e->epoch));
    add(line, "step", json_integer((json_int_t)e->step));
    add(line, "train_loss", ry_log_number(e->train_loss));
    add_score(line, "val", &e->val);
    add_score(line, "ema", &e->ema);
    add(line, "lr", ry_log_number(e->lr));
    add(line, "keep", ry_log_number(e->keep));
    add(line, "best", json_boolean(e->is_best));
    add(line, "seconds", rough(e->seconds, 64));
    return ry_log_file_put(&t->log, line, &t->al, err);
}
