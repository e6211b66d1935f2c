/* viz_answer.c - the most likely classes of a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"

#include <math.h>

/* Classes by falling logit, equal ones by their number; NaN never gets in. Returns how many. */
static uint32_t find_top(uint32_t *top, uint32_t k, const float *logits, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = count;
        while (at > 0 && logits[i] > logits[top[at - 1]]) at--;
        if (at == k || isnan(logits[i])) continue;
        if (count < k) count++;
        for (uint32_t j = count - 1; j > at; j--) top[j] = top[j - 1];
        top[at] = i;
    }
    return count;
}

static float probability(const float *logits, uint32_t n, uint32_t of, uint32_t best)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)logits[best]);
    return (float)(exp((double)logits[of] - (double)logits[best]) / sum);
}

renyi_status ry_viz_fill_answer(const renyi_viz *v, const ry_viz_policy *policy,
                                const float *logits, double ms, renyi_viz_answer *out,
                                ry_stash *stash, renyi_error *err)
{
    const ry_vit_config *c = &v->model->vit.config;
    uint32_t best[RENYI_VIZ_MAX_TOP];
    const uint32_t n = find_top(best, v->n_top, logits, c->n_classes);
    renyi_viz_guess *top = RY_STASH_TAKE(stash, renyi_viz_guess, n);
    if (!top) return ry_fail_nomem(err, n * sizeof *top);
    for (uint32_t i = 0; i < n; i++) {
        top[i] =
            (renyi_viz_guess){.index = best[i],
                              .name = ry_stash_text(stash, v->class_names[best[i]]),
                              .probability = probability(logits, c->n_classes, best[i], best[0])};
        if (!top[i].name) return ry_fail_nomem(err, sizeof *top);
    }
    *out = (renyi_viz_answer){.n_top = n, .top = top, .macs = policy->macs[c->n_blocks], .ms = ms};
    return RENYI_OK;
}
