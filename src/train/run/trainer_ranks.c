/* trainer_ranks.c - several processes that train one model: each has all weights and runs its share
 * of the micro-batches. The sum of the gradients has the same bits on every rank, so every rank
 * makes the same update. Only rank 0 writes files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "train/run/trainer.h"

#include <stdlib.h>
#include <string.h>

int ry_train_is_first(const renyi_train *t) { return t->ranks.r.rank == 0; }

renyi_status ry_train_agree(renyi_train *t, renyi_status mine, renyi_error *err)
{
    return ry_ranks_agree(&t->ranks, mine, err);
}

/* ---- the same on all ranks ------------------------------------------------------------------- */

enum { SAME_RUN, SAME_SETTINGS, SAME_IMAGES, SAME_LEVEL, SAME_WEIGHTS, N_SAME };

static const char *const same_names[N_SAME] = {
    "another --resume", "other settings", "other images or classes",
    "another CPU level (give all the same --cpu)", "other weights"};

/* Without the settings that may differ between machines. */
static renyi_status hash_settings(const renyi_train *t, uint64_t *out, renyi_error *err)
{
    static const char *const own[] = {"threads", "workers", "cache-mb"};
    json_t *all = ry_settings_json(ry_train_opt(t));
    for (size_t i = 0; all && i < sizeof own / sizeof *own; i++)
        (void)json_object_del(all, own[i]); /* it may be absent */
    char *text = all ? json_dumps(all, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(all);
    if (!text) return ry_fail_nomem(err, 0);
    *out = ry_hash(text, strlen(text));
    free(text);
    return RENYI_OK;
}

static uint64_t hash_weights(const ry_optim *o)
{
    const size_t bytes = o->params->total * sizeof(float);
    const uint64_t parts[] = {ry_hash(o->params->value, bytes), ry_hash(o->m, bytes),
                              ry_hash(o->v, bytes), o->ema ? ry_hash(o->ema, bytes) : 0, o->step};
    return ry_hash(parts, sizeof parts);
}

renyi_status ry_train_compare(renyi_train *t, renyi_error *err)
{
    ry_ranks *k = &t->ranks;
    uint64_t mine[N_SAME] = {t->s.opt.resume, 0, t->state.fingerprint, t->level, 0};
    uint64_t other[N_SAME];
    if (k->r.n_ranks == 1) return RENYI_OK;
    RY_TRY(ry_train_agree(t, hash_settings(t, &mine[SAME_SETTINGS], err), err));
    mine[SAME_WEIGHTS] = hash_weights(t->optim);
    memcpy(k->mine, mine, sizeof mine);
    RY_TRY(ry_ranks_gather(k, sizeof mine, err));
    memcpy(mine, k->all, sizeof mine); /* rank 0's, so that all ranks find the same error */
    for (uint32_t r = 1; r < k->r.n_ranks; r++) {
        memcpy(other, k->all + r * sizeof other, sizeof other);
        for (int i = 0; i < N_SAME; i++)
            if (other[i] != mine[i])
                return ry_fail(err, RENYI_ERR_ARG, -1, "rank %u has %s than rank 0", r,
                               same_names[i]);
    }
    return RENYI_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

renyi_status ry_train_sum(renyi_train *t, ry_step_losses *sums, renyi_error *err)
{
    const ry_params *p = t->optim->params;
    double all[] = {sums->total, sums->labels, sums->teacher, sums->tokens};
    RY_TRY(ry_ranks_sum_doubles(&t->ranks, all, sizeof all / sizeof *all, err));
    *sums = (ry_step_losses){all[0], all[1], all[2], all[3]};
    return ry_ranks_sum(&t->ranks, p->grad, p->total, err);
}

/* ---- files of rank 0 ------------------------------------------------------------------------- */

/* 0 = no such file. Contents are compared because another machine may see an older file. */
static uint64_t hash_file(const char *path)
{
    ry_mapped_file file = {0};
    if (ry_mapped_file_open(&file, path, 0, NULL)) return 0;
    const uint64_t hash = ry_hash(file.data, file.size);
    ry_mapped_file_close(&file);
    return hash ? hash : 1;
}

renyi_status ry_train_same_file(renyi_train *t, const char *path, int *is_seen, renyi_error *err)
{
    ry_ranks *k = &t->ranks;
    const uint64_t mine = k->r.n_ranks > 1 ? hash_file(path) : 1;
    *is_seen = mine != 0;
    memcpy(k->mine, &mine, sizeof mine);
    RY_TRY(ry_ranks_gather(k, sizeof mine, err));
    for (uint32_t r = 1; r < k->r.n_ranks; r++)
        *is_seen &= memcmp(k->all, k->all + r * sizeof mine, sizeof mine) == 0;
    return RENYI_OK;
}

renyi_status ry_train_share_score(renyi_train *t, renyi_train_score *score, renyi_error *err)
{
    memcpy(t->ranks.mine, score, sizeof *score);
    RY_TRY(ry_ranks_gather(&t->ranks, sizeof *score, err));
    memcpy(score, t->ranks.all, sizeof *score);
    return RENYI_OK;
}
