/* schedule.c - learning rate, keep rate and stochastic depth at a moment of a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/settings/schedule.h"

#include "base/hash.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

/* ---- learning rate --------------------------------------------------------------------------- */

static double lr_time(ry_lr_tick tick, ry_moment now)
{
    switch (tick) {
    case RY_LR_PER_STEP: return now.epoch + (double)now.step / now.steps;
    case RY_LR_PER_EPOCH: return now.epoch;
    case RY_LR_PER_EPOCH_LATE: break;
    }
    return now.epoch ? now.epoch - 1 : 0;
}

/* The share of peak - min that is left after the share `done` of the epochs. */
static double share_left(ry_lr_shape shape, double done)
{
    if (shape == RY_LR_CONSTANT) return 1.0;
    if (done >= 1.0) return 0.0;
    return shape == RY_LR_LINEAR ? 1.0 - done : 0.5 * (1.0 + cos(PI * done));
}

double ry_lr_at(const ry_lr_schedule *s, ry_moment now)
{
    const double t = lr_time(s->tick, now);
    if (t < s->warmup_epochs) return s->warmup_lr + (s->peak - s->warmup_lr) * t / s->warmup_epochs;
    const double before = s->warmup_prefix ? s->warmup_epochs : 0.0;
    const double length = s->epochs - before;
    return s->min +
           (s->peak - s->min) * share_left(s->shape, length > 0.0 ? (t - before) / length : 1.0);
}

double ry_lr_for_batch(double lr, uint32_t batch) { return lr * batch / 512.0; }

/* ---- keep rate ------------------------------------------------------------------------------- */

double ry_keep_at(const ry_keep_schedule *s, ry_moment now)
{
    if (now.epoch < s->start) return 1.0;
    const uint32_t since = now.epoch - s->start;
    if (since >= s->epochs) return s->keep;
    const double done = (since + (double)now.step / now.steps) / s->epochs;
    return s->keep + (1.0 - s->keep) * 0.5 * (1.0 + cos(PI * done));
}

/* ---- stochastic depth ------------------------------------------------------------------------ */

double ry_drop_path_rate(double rate, uint32_t block, uint32_t n_blocks)
{
    return n_blocks > 1 ? rate * block / (n_blocks - 1) : 0.0;
}

/* Uniform in [0, 1), a function of its arguments only. */
static double draw_uniform(const ry_drop_path *d, ry_moment now, uint64_t sample, uint32_t branch)
{
    enum { PURPOSE = 0x64726f70 }; /* "drop": no other use of the seed has this number */
    const uint64_t key[] = {d->seed, PURPOSE, now.epoch, now.step, sample, branch};
    ry_rng r = ry_rng_new(ry_hash(key, sizeof key));
    return ry_rng_uniform(&r);
}

void ry_drop_path_draw(const ry_drop_path *d, ry_moment now, const uint64_t *sample, uint32_t n,
                       float *branch)
{
    for (uint32_t b = 0; b < 2 * d->n_blocks; b++) {
        const double rate = ry_drop_path_rate(d->rate, b / 2, d->n_blocks);
        for (uint32_t i = 0; i < n; i++) {
            const int drops = rate > 0.0 && draw_uniform(d, now, sample[i], b) < rate;
            branch[(size_t)b * n + i] = drops ? 0.0f : (float)(1.0 / (1.0 - rate));
        }
    }
}
