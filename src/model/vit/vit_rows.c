/* vit_rows.c - see vit_rows.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/vit_rows.h"

#include <assert.h>

static ry_block_way way_of(const ry_block_needs *n, int only_prefix_is_read)
{
    if (only_prefix_is_read) return RY_WAY_PREFIX;
    if (n->place == RY_CUT_NONE) return RY_WAY_WHOLE;
    if (n->place == RY_CUT_END) return RY_WAY_END;
    if (n->what & RY_NEED_TOKENS) return RY_WAY_AFTER;
    return n->drops && !(n->what & RY_NEED_COLUMNS) ? RY_WAY_LISTED : RY_WAY_BEFORE;
}

/* Rows of the steps between the tokens that enter and those that leave. */
static void count_steps(ry_block_rows *r, uint32_t n_prefix)
{
    const uint32_t in = r->in, after = r->needs.place == RY_CUT_NONE ? in : r->needs.n_after;
    r->attend = r->project = r->mlp = in;
    r->out = after;
    switch (r->way) {
    case RY_WAY_PREFIX: r->attend = r->project = r->mlp = n_prefix; break;
    case RY_WAY_LISTED: r->attend = r->project = r->mlp = after; break;
    case RY_WAY_BEFORE: r->project = r->mlp = after; break;
    case RY_WAY_AFTER: r->mlp = after; break;
    case RY_WAY_WHOLE:
    case RY_WAY_END: break;
    }
}

void ry_block_rows_fit(ry_block_rows *r, uint32_t n_prefix, uint32_t in, uint32_t after)
{
    assert(n_prefix <= in && in <= r->in);
    assert(r->needs.place == RY_CUT_NONE || (n_prefix <= after && after <= r->needs.n_after));
    r->in = in;
    r->needs.n_after = after;
    count_steps(r, n_prefix);
}

void ry_vit_rows(ry_block_rows *rows, const ry_vit_config *config, uint32_t n_patches,
                 const ry_rows_options *opt)
{
    const ry_token_hook *hook = opt->hook;
    uint32_t tokens = n_patches + config->n_prefix;
    int sized = 0;

    for (uint32_t i = 0; i < config->n_blocks; i++) {
        ry_block_rows *r = &rows[i];
        *r = (ry_block_rows){.in = tokens, .sized = sized};
        if (hook) hook->needs(hook->self, i, tokens, &r->needs);
        r->anchored = r->needs.anchor;
        r->decide = r->needs.place != RY_CUT_NONE || r->needs.look;
        /* In the last block, with a head that reads the prefix alone, a cut changes no result: it
         * is made only for those who watch. */
        const int last =
            i == config->n_blocks - 1 && !opt->all_rows && config->pool == RY_POOL_TOKEN;
        const int only_prefix = last && !(r->decide && hook->watch);
        if (only_prefix) r->decide = 0;
        r->way = way_of(&r->needs, only_prefix);
        count_steps(r, config->n_prefix);
        tokens = r->out;
        sized = sized || r->needs.sizes;
    }
}

double ry_block_rows_macs(const ry_block_rows *r, const ry_vit_config *config)
{
    const double C = config->dim, M = config->mlp_dim, keys = r->in + (r->anchored != 0);
    const double class_row = r->way == RY_WAY_LISTED && (r->needs.what & RY_NEED_CLASS_ROW);
    const double rule = r->decide ? r->needs.macs : 0.0;
    return 3.0 * keys * C * C + (2.0 * r->attend + class_row) * keys * C + r->project * C * C +
           2.0 * r->mlp * C * M + rule;
}
