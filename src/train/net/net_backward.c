/* net_backward.c - the backward pass: heads, blocks from the last to the first, patches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "train/net/net_run.h"

typedef struct inputs {
    const float *dlogits, *dlogits_dist, *dfeatures;
    uint32_t lowest; /* block; L = only the heads learn */
    int patches;     /* does anything before the blocks learn? */
} inputs;

/* Frozen parameters at the bottom need no stream of gradients. */
static void find_lowest(const ry_net *net, inputs *in)
{
    const uint32_t L = net->config.n_blocks;
    in->lowest = L;
    in->patches = 0;
    for (uint32_t i = 0; i < net->params.n; i++) {
        const ry_param *q = &net->params.list[i];
        if (q->frozen) continue;
        if (q->role >= RY_NORM1_W && q->role <= RY_FC2_B) {
            if (q->block < in->lowest) in->lowest = q->block;
        } else if (q->role <= RY_PATCH_B) {
            in->patches = 1;
        }
    }
    if (in->patches) in->lowest = 0;
}

static void backward(ry_net_worker *w, const void *user)
{
    const inputs *in = user;
    const float *final_features = w->net->n_taps ? NULL : in->dfeatures;
    ry_net_ends_backward(w, in->dlogits, in->dlogits_dist, final_features);
    for (uint32_t i = w->net->config.n_blocks; i-- > in->lowest;) {
        ry_net_taps_backward(w, i, in->dfeatures);
        ry_net_block_backward(w, i);
    }
    if (in->patches) ry_net_embed_backward(w);
}

renyi_status ry_net_backward(ry_net *net, const float *dlogits, const float *dlogits_dist,
                             const float *dfeatures, renyi_error *err)
{
    inputs in = {.dlogits = dlogits, .dlogits_dist = dlogits_dist, .dfeatures = dfeatures};
    if (!net->n_last)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a backward pass needs a forward pass before it with the same weights and "
                       "cuts");
    if (dfeatures && !net->feature_dim)
        return ry_fail(err, RENYI_ERR_ARG, -1, "the model was made without features");
    find_lowest(net, &in);
    ry_net_threads(net, net->n_last, backward, &in);
    return RENYI_OK;
}
