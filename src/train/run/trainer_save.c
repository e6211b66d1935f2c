/* trainer_save.c - the files of a run, written by its first rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "train/files/model_file.h"
#include "train/files/save_point.h"
#include "train/run/trainer.h"

/* The log goes to the disk first: a checkpoint never speaks of lines that are lost. */
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
