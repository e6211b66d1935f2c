/* test_cost.c - tests the cost model: the GFLOPs of the paper's tables, to three decimals.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/paper_costs.h"
#include "prune/policy/cost.h"

#include <stdio.h>

#include "test.h"

enum { MAX_BLOCKS = 24, TOKENS = 197 };

static const ry_cost_shape shapes[] = {
    [VIT_S] = {196, 768, 384, 1536, 12, 1000},
    [VIT_B] = {196, 768, 768, 3072, 12, 1000},
    [VIT_L] = {196, 768, 1024, 4096, 24, 1000},
};

/* Token counts of a plan with `after[l]` tokens left by the cut of block l. */
static ry_cost cost_after(const ry_cost_shape *s, const uint32_t *after, int mid)
{
    uint32_t attn[MAX_BLOCKS], mlp[MAX_BLOCKS];
    for (uint32_t l = 0; l < s->n_blocks; l++) {
        attn[l] = l ? after[l - 1] : TOKENS;
        mlp[l] = mid ? after[l] : attn[l];
    }
    return ry_cost_of(s, &(ry_cost_tokens){attn, mlp, after[s->n_blocks - 1]});
}

static void naive_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof naive_rows / sizeof naive_rows[0]; i++) {
        const struct naive_row *row = &naive_rows[i];
        const ry_cost_shape *s = &shapes[row->model];
        uint32_t after[MAX_BLOCKS], n = TOKENS;
        for (uint32_t l = 0; l < s->n_blocks; l++) {
            if (row->where == ALL || (row->where == EARLY && l < 6)) n -= row->p;
            after[l] = n;
        }
        assert_int_equal(n, row->last);
        const ry_cost mid = cost_after(s, after, 1), end = cost_after(s, after, 0);
        if (!reads(ry_cost_macs(&mid), row->mid) ||
            !reads(ry_cost_macs_with_norm(&mid), row->mid_norm) ||
            !reads(ry_cost_macs(&end), row->end) ||
            !reads(ry_cost_macs(&mid) - mid.attention, row->mid_without_attention))
            fail_msg("row %zu: %.4f %.4f %.4f %.4f", i, ry_cost_macs(&mid) / 1e9,
                     ry_cost_macs_with_norm(&mid) / 1e9, ry_cost_macs(&end) / 1e9,
                     (ry_cost_macs(&mid) - mid.attention) / 1e9);
    }
}

/* Tokens left by EViT: k = ceil(r * patches), and one fused token if asked for. */
static void evit_after(const struct evit_row *row, uint32_t n_blocks, int fuse, uint32_t *after)
{
    uint32_t n = TOKENS;
    for (uint32_t l = 0, cut = 0; l < n_blocks; l++) {
        if (cut < 3 && row->cuts[cut] == l) {
            n = (uint32_t)ceil(row->r * (n - 1) - 1e-9) + 1 + (fuse ? 1 : 0);
            if (fuse) assert_int_equal(n, row->tokens[cut]);
            cut++;
        }
        after[l] = n;
    }
}

static void evit_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof evit_rows / sizeof evit_rows[0]; i++) {
        const struct evit_row *row = &evit_rows[i];
        const ry_cost_shape *s = &shapes[row->model];
        uint32_t after[MAX_BLOCKS];
        evit_after(row, s->n_blocks, 1, after);
        const ry_cost fused = cost_after(s, after, 1);
        evit_after(row, s->n_blocks, 0, after);
        const ry_cost dropped = cost_after(s, after, 1);
        if (!reads(ry_cost_macs(&fused), row->fused) ||
            !reads(ry_cost_macs_with_norm(&fused), row->fused_norm) ||
            !reads(ry_cost_macs_with_norm(&dropped), row->dropped_norm))
            fail_msg("row %zu: %.4f %.4f %.4f", i, ry_cost_macs(&fused) / 1e9,
                     ry_cost_macs_with_norm(&fused) / 1e9, ry_cost_macs_with_norm(&dropped) / 1e9);
    }
}

static void dense_is_the_same_as_equal_counts(void **state)
{
    (void)state;
    uint32_t after[MAX_BLOCKS];
    for (int l = 0; l < MAX_BLOCKS; l++) after[l] = TOKENS;
    for (int m = VIT_S; m <= VIT_L; m++) {
        const ry_cost a = ry_cost_dense(&shapes[m], TOKENS), b = cost_after(&shapes[m], after, 1);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naive_tables),
        cmocka_unit_test(evit_tables),
        cmocka_unit_test(dense_is_the_same_as_equal_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
