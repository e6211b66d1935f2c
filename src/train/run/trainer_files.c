/* trainer_files.c - writes the files of a run: checkpoint, models and the lines of the log.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/trainer.h"

#include "base/status.h"
#include "train/files/save_point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- checkpoint and models ------------------------------------------------------------------- */

/* Syncs the log first: log_bytes must not count lines that a crash can lose. */
static renyi_status save_checkpoint(renyi_train *t, renyi_error *err)
{
    const ry_save_point s = {.config = &t->config,
                             .labels = (const char *const *)t->labels.names,
                             .optim = t->optim,
                             .state = &t->state,
                             .settings = ry_train_opt(t)};
    RY_TRY(ry_log_file_sync(&t->log, err));
    t->state.log_bytes = t->log.bytes;
    t->state.seconds = ry_train_seconds(t);
    return ry_save_point_write(t->folder.checkpoint, &s, &t->al, err);
}

renyi_status ry_train_save_checkpoint(renyi_train *t, renyi_error *err)
{
    return ry_train_agree(t, ry_train_is_first(t) ? save_checkpoint(t, err) : RENYI_OK, err);
}

static renyi_status save_model(renyi_train *t, const char *path, const float *values,
                               renyi_error *err)
{
    const ry_model_file m = {.config = &t->config,
                             .labels = (const char *const *)t->labels.names,
                             .params = ry_net_params(t->net),
                             .values = values,
                             .dtype = ry_train_opt(t)->save_dtype};
    const int writes = ry_train_is_first(t);
    return ry_train_agree(t, writes ? ry_model_file_write(path, &m, &t->al, err) : RENYI_OK, err);
}

renyi_status ry_train_save_models(renyi_train *t, renyi_error *err)
{
    RY_TRY(save_model(t, t->folder.model, ry_net_params(t->net)->value, err));
    return t->optim->ema ? save_model(t, t->folder.model_ema, t->optim->ema, err) : RENYI_OK;
}

renyi_status ry_train_save_best(renyi_train *t, int ema, renyi_error *err)
{
    return save_model(t, t->folder.best, ema ? t->optim->ema : ry_net_params(t->net)->value, err);
}

/* ---- log ------------------------------------------------------------------------------------- */

/* Rounds to 1 / unit, a power of two: fewer digits in the log. */
static json_t *rounded(double x, double unit)
{
    return isfinite(x) ? json_real(nearbyint(x * unit) / unit) : json_null();
}

/* Takes over `value`. */
static void add_member(json_t *line, const char *key, json_t *value)
{
    if (line) (void)json_object_set_new(line, key, value);
}

/* A line of this kind; the caller adds the other members. */
static json_t *begin_line(const char *kind)
{
    json_t *line = json_object();
    add_member(line, "kind", json_string(kind));
    return line;
}

renyi_status ry_train_log_config(renyi_train *t, renyi_error *err)
{
    renyi_train_info info;
    json_t *line = begin_line("config");
    renyi_train_get_info(t, &info);
    add_member(line, "renyi", json_string(renyi_version()));
    add_member(line, "architecture", json_string(info.architecture));
    add_member(line, "params", json_integer((json_int_t)info.n_params));
    add_member(line, "trained", json_integer((json_int_t)info.n_trained));
    add_member(line, "classes", json_integer(info.n_classes));
    add_member(line, "tokens", json_integer(info.n_tokens));
    add_member(line, "photos", json_integer((json_int_t)info.n_photos));
    add_member(line, "val_photos", json_integer((json_int_t)info.n_val));
    add_member(line, "steps_per_epoch", json_integer((json_int_t)info.steps_per_epoch));
    add_member(line, "gmacs_forward", rounded(info.macs_forward * 1e-9, 65536));
    add_member(line, "cpu", json_string(renyi_cpu_name(t->level)));
    add_member(line, "policy", json_string(t->policy_text));
    add_member(line, "settings", ry_settings_json(ry_train_opt(t)));
    return ry_log_file_write(&t->log, line, &t->al, err);
}

renyi_status ry_train_log_step(renyi_train *t, const renyi_train_step *s, renyi_error *err)
{
    json_t *line = begin_line("step");
    add_member(line, "epoch", json_integer((json_int_t)s->epoch));
    add_member(line, "step", json_integer((json_int_t)s->step));
    add_member(line, "loss", ry_log_number(s->loss));
    if (t->teacher) {
        add_member(line, "loss_labels", ry_log_number(s->loss_labels));
        add_member(line, "loss_teacher", ry_log_number(s->loss_teacher));
        add_member(line, "loss_tokens", ry_log_number(s->loss_tokens));
    }
    add_member(line, "lr", ry_log_number(s->lr));
    add_member(line, "keep", ry_log_number(s->keep));
    add_member(line, "grad_norm", ry_log_number(s->grad_norm));
    add_member(line, "images_per_second", rounded(s->images_per_second, 8));
    add_member(line, "seconds", rounded(s->seconds, 64));
    return ry_log_file_write(&t->log, line, &t->al, err);
}

static void add_score(json_t *line, const char *prefix, const renyi_train_score *s)
{
    char key[24];
    if (isnan(s->top1)) return;
    snprintf(key, sizeof key, "%s_loss", prefix);
    add_member(line, key, ry_log_number(s->loss));
    snprintf(key, sizeof key, "%s_top1", prefix);
    add_member(line, key, ry_log_number(s->top1));
    snprintf(key, sizeof key, "%s_top5", prefix);
    add_member(line, key, ry_log_number(s->top5));
}

renyi_status ry_train_log_epoch(renyi_train *t, const char *kind, const renyi_train_epoch *e,
                                renyi_error *err)
{
    json_t *line = begin_line(kind);
    add_member(line, "epoch", json_integer((json_int_t)e->epoch));
    add_member(line, "step", json_integer((json_int_t)e->step));
    add_member(line, "train_loss", ry_log_number(e->train_loss));
    add_score(line, "val", &e->val);
    add_score(line, "ema", &e->ema);
    add_member(line, "lr", ry_log_number(e->lr));
    add_member(line, "keep", ry_log_number(e->keep));
    add_member(line, "best", json_boolean(e->is_best));
    add_member(line, "seconds", rounded(e->seconds, 64));
    return ry_log_file_write(&t->log, line, &t->al, err);
}
