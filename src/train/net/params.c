/* params.c - see params.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/net/params.h"

const ry_param *ry_params_find(const ry_params *p, ry_vit_role role, uint32_t block)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].role == role && p->list[i].block == block) return &p->list[i];
    return NULL;
}
