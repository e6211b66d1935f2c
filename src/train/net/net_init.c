/* net_init.c - random parameters as timm begins with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/rng.h"
#include "train/net/net_state.h"

#include <string.h>

#define DEVIATION 0.02 /* of timm's trunc_normal_ */

static int is_norm_weight(ry_vit_role role)
{
    return role == RY_NORM_W || role == RY_NORM1_W || role == RY_NORM2_W ||
           role == (ry_vit_role)RY_FEATURE_NORM_W;
}

void ry_net_init(ry_net *net, uint64_t seed)
{
    const ry_params *p = &net->params;
    for (uint32_t i = 0; i < p->n; i++) {
        const ry_param *q = &p->list[i];
        float *value = p->value + q->offset;
        ry_rng mix = ry_rng_new(seed);
        ry_rng rng = ry_rng_new(ry_rng_next(&mix) ^ ry_hash(q->name, strlen(q->name)));
        for (size_t k = 0; k < q->size; k++)
            value[k] = q->n_dims > 1 ? (float)(ry_rng_truncated_normal(&rng) * DEVIATION)
                       : is_norm_weight(q->role) ? 1.0f
                                                 : 0.0f;
    }
    net->n_last = 0;
}
