/* vit_anchor.c - one more token in the attention of a block: an anchor that its hook hands in. It
 * is a key and a value for every query, attends to nothing itself, and is gone after the block.
 *
 * It stands behind the tokens of the image, so that nothing else moves: LayerNorm and the product
 * of queries, keys and values have one row more, attention one key more. Its own query, which the
 * product makes along with them, is not used.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/vit_run.h"

#include <assert.h>
#include <string.h>

void ry_anchor_enter(ry_worker *w, uint32_t block)
{
    ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t C = p->vit->config.dim;

    assert(w->r->in->n == 1); /* the plan runs images one by one */
    ry_step step = ry_begin(w, 1);
    for (size_t i; ry_step_next(&step, &i);) {
        float *x = ry_tokens(w);
        const float *row = p->hook->anchor(p->hook->self, block, x);
        p->anchored[block] = row != NULL;
        if (!row) continue;
        memcpy(x + b->in * C, row, C * sizeof *x);
        if (b->sized) p->cuts.log_sizes[b->in] = 0.0f; /* it stands for itself alone */
    }
    ry_step_end(&step);
    w->now.anchored = p->anchored[block];
}
