/* test_policy_cost.c - the GFLOPs of the paper's tables from policy texts and architecture names,
 * through the public API; and every figure of the paper's tables, if they are available.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/paper_costs.h"
#include "fixtures/paper_records.h"
#include "renyi/renyi.h"

#include <string.h>

enum { MAX_BLOCKS = 24 };

static const char *const architectures[] = {
    [VIT_S] = "vit_small_patch16_224",
    [VIT_B] = "vit_base_patch16_224",
    [VIT_L] = "vit_large_patch16_224",
};

static renyi_cost cost_of(const char *architecture, const char *policy, renyi_layer_cost *layers)
{
    renyi_error err = {0};
    renyi_cost cost;

    if (renyi_policy_cost(NULL, architecture, policy, &cost, layers, MAX_BLOCKS, &err) != RENYI_OK)
        fail_msg("%s, %s: %s", architecture, policy, err.message);
    return cost;
}

static void expect(const char *policy, const renyi_cost *got, double plain, double paper)
{
    if (!reads(got->total.macs, plain) || !reads(got->total.macs_paper, paper))
        fail_msg("%s: %.4f %.4f, expected %.3f %.3f", policy, got->total.macs / 1e9,
                 got->total.macs_paper / 1e9, plain, paper);
    if (got->total.macs_executed > got->total.macs * 1.02)
        fail_msg("%s: %.4f executed of %.4f", policy, got->total.macs_executed / 1e9,
                 got->total.macs / 1e9);
}

static const char *naive_text(mode where, uint32_t p, const char *rest)
{
    static char text[128];

    if (where == DENSE) return "none";
    snprintf(text, sizeof text, "naive p=%u layers=%s%s", p, where == EARLY ? "0-5" : "all", rest);
    return text;
}

static void naive_settings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof naive_rows / sizeof *naive_rows; i++) {
        const struct naive_row *row = &naive_rows[i];
        const char *arch = architectures[row->model];
        renyi_layer_cost layers[MAX_BLOCKS];

        const char *mid = naive_text(row->where, row->p, "");
        const renyi_cost cost = cost_of(arch, mid, layers);
        expect(mid, &cost, row->mid, row->mid_norm);
        assert_int_equal(layers[0].tokens_in, 197);
        assert_int_equal(layers[cost.n_blocks - 1].tokens_out, row->last);

        const char *end = naive_text(row->where, row->p, " at=end");
        const renyi_cost late = cost_of(arch, end, layers);
        if (!reads(late.total.macs, row->end)) fail_msg("%s: %.4f", end, late.total.macs / 1e9);
    }
}

static void evit_settings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof evit_rows / sizeof *evit_rows; i++) {
        const struct evit_row *row = &evit_rows[i];
        const char *arch = architectures[row->model];
        renyi_layer_cost layers[MAX_BLOCKS];
        char text[128];

        snprintf(text, sizeof text, "evit keep=%g layers=%u,%u,%u fuse", row->r, row->cuts[0],
                 row->cuts[1], row->cuts[2]);
        const renyi_cost fused = cost_of(arch, text, layers);
        expect(text, &fused, row->fused, row->fused_norm);
        for (int cut = 0; cut < 3; cut++) {
            assert_int_equal(layers[row->cuts[cut]].tokens_out, row->tokens[cut]);
            assert_int_equal(layers[row->cuts[cut]].tokens_mlp, row->tokens[cut]);
        }
        snprintf(text, sizeof text, "evit keep=%g layers=%u,%u,%u reduce=drop", row->r,
                 row->cuts[0], row->cuts[1], row->cuts[2]);
        const renyi_cost dropped = cost_of(arch, text, layers);
        if (!reads(dropped.total.macs_paper, row->dropped_norm))
            fail_msg("%s: %.4f", text, dropped.total.macs_paper / 1e9);
    }
}

/* embed + layers + head = total, in every column. */
static void parts_make_the_whole(void **state)
{
    static const char *const texts[] = {"none", "naive p=16 layers=0-5",
                                        "evit keep=0.7 layers=0,3,6 fuse",
                                        "mosaic keep=0.7 layers=3,6,9", "tome r=8"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        renyi_layer_cost layers[MAX_BLOCKS];
        const renyi_cost c = cost_of("deit_tiny_patch16_224", texts[i], layers);
        double plain = c.embed.macs + c.head.macs, paper = c.embed.macs_paper + c.head.macs_paper;
        double executed = c.embed.macs_executed + c.head.macs_executed;
        uint64_t params = c.embed.n_params + c.head.n_params;

        for (uint32_t l = 0; l < c.n_blocks; l++) {
            plain += layers[l].macs;
            paper += layers[l].macs_paper;
            executed += layers[l].macs_executed;
            params += layers[l].n_params;
            if (l) assert_int_equal(layers[l].tokens_in, layers[l - 1].tokens_out);
        }
        assert_true(fabs(plain - c.total.macs) < 1.0);
        assert_true(fabs(paper - c.total.macs_paper) < 1.0);
        assert_true(fabs(executed - c.total.macs_executed) < 1.0);
        assert_true(params == c.total.n_params);
        assert_true(params == 5717416);
    }
}

/* ---- the paper's tables --------------------------------------------------------------------- */

/* "ViT-S/16 (augreg)", "DeiT-B/16"; NULL for encoders of later chapters. */
static const char *architecture_of(const char *model)
{
    if (strcmp(model, "CLIP ViT-B/16") == 0) return "clip_vit_base_patch16_224";
    if (strstr(model, "CLIP")) return NULL;
    const int deit = strncmp(model, "DeiT", 4) == 0;
    if (strstr(model, "-S/16")) return deit ? "deit_small_patch16_224" : architectures[VIT_S];
    if (strstr(model, "-B/16")) return deit ? "deit_base_patch16_224" : architectures[VIT_B];
    return strstr(model, "ViT-L/16") ? architectures[VIT_L] : NULL;
}

static int policy_of(const json_t *setting, char *text, size_t size)
{
    const char *framework = json_string_value(json_object_get(setting, "framework"));
    const char *where = json_string_value(json_object_get(setting, "mode"));
    const json_t *p = json_object_get(setting, "p"),
                 *l = json_object_get(setting, "pruning_layers");
    const double keep = json_number_value(json_object_get(setting, "keep_rate"));

    if (framework && where && p && strcmp(framework, "naive") == 0)
        snprintf(text, size, "naive p=%d layers=%s", (int)json_integer_value(p),
                 strncmp(where, "early", 5) == 0 ? "0-5" : "all");
    else if (framework && strcmp(framework, "EViT") == 0 && json_array_size(l) == 3)
        snprintf(text, size, "evit keep=%g layers=%d,%d,%d fuse", keep,
                 (int)json_integer_value(json_array_get(l, 0)),
                 (int)json_integer_value(json_array_get(l, 1)),
                 (int)json_integer_value(json_array_get(l, 2)));
    else if (framework && strcmp(framework, "TCA") == 0 && json_array_size(l) == 3)
        snprintf(text, size, "tca drop=0.1 layers=%d,%d,%d", /* the paper's 0.7 */
                 (int)json_integer_value(json_array_get(l, 0)),
                 (int)json_integer_value(json_array_get(l, 1)),
                 (int)json_integer_value(json_array_get(l, 2)));
    else if (framework && keep == 1.0 &&
             (strcmp(framework, "EViT") == 0 || strcmp(framework, "zero-shot CLIP") == 0))
        snprintf(text, size, "none");
    else
        return 0;
    return 1;
}

/* One row of the tables; returns 1 if it has a figure to compare. */
static int check_row(const json_t *row)
{
    const json_t *plain = json_object_get(row, "gmacs_recomputed");
    const json_t *paper = json_object_get(row, "gmacs_recomputed_with_layernorm5");
    const json_t *printed = json_object_get(row, "gflops");
    const char *model = json_string_value(json_object_get(row, "model"));
    const char *arch = model ? architecture_of(model) : NULL;
    char text[128];

    if (!arch || !json_is_number(plain) || !json_is_number(paper) ||
        !policy_of(json_object_get(row, "setting"), text, sizeof text))
        return 0;
    const renyi_cost cost = cost_of(arch, text, NULL);
    const double macs = cost.total.macs / 1e9, gflops = cost.total.macs_paper / 1e9;
    if (fabs(macs - json_number_value(plain)) > 0.5001e-4 ||
        fabs(gflops - json_number_value(paper)) > 0.5001e-4)
        fail_msg("%s, %s: %.5f %.5f", arch, text, macs, gflops);
    if (json_is_true(json_object_get(row, "gflops_consistent")) &&
        fabs(gflops - json_number_value(printed)) > 0.0501)
        fail_msg("%s, %s: %.3f, the paper prints %.1f", arch, text, gflops,
                 json_number_value(printed));
    return 1;
}

static void tables_of_the_paper(void **state)
{
    json_t *tables = paper_records();
    size_t i, n_compared = 0;
    json_t *row;

    (void)state;
    if (!tables) return;
    json_array_foreach(tables, i, row) n_compared += (size_t)check_row(row);
    json_decref(tables);
    printf("%zu rows of the paper's tables\n", n_compared);
    assert_true(n_compared > 200);
}

/* TCA as the paper's "0.7", with and without the anchor in each cut but block 0's. */
static void condensation(void **state)
{
    (void)state;
    static const char arch[] = "clip_vit_base_patch16_224";
    const renyi_cost late = cost_of(arch, "tca drop=0.1 layers=3,6,9", NULL);
    const renyi_cost early = cost_of(arch, "tca drop=0.1 layers=0,3,6 metric=col", NULL);
    expect("3,6,9", &late, 11.863, 11.876);
    expect("0,3,6", &early, 9.163, 9.173);
    assert_int_equal(late.total.tokens_out, 77);
    assert_true(reads(late.total.macs + late.anchors.macs, 11.871));
    assert_true(reads(early.total.macs + early.anchors.macs, 9.169));
    assert_true(late.anchors.macs_executed < late.anchors.macs);
    assert_true(late.anchors.macs_executed < 0.001 * late.total.macs_executed);
    const renyi_cost dense = cost_of(arch, "none", NULL);
    assert_true(dense.anchors.macs == 0.0);
}

/* CLIP's image towers as published: parameters, and MACs with the LayerNorm before the blocks. */
static void image_towers_of_clip(void **state)
{
    static const struct {
        const char *name;
        uint64_t n_params;
        double paper;
    } rows[] = {{"clip_vit_base_patch32_224", 87849216, 4.4},
                {"clip_vit_base_patch16_224", 86192640, 17.6},
                {"clip_vit_large_patch14_224", 303966208, 81.1},
                {"clip_vit_large_patch14_336", 304293888, 191.1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const renyi_cost c = cost_of(rows[i].name, "none", NULL);
        assert_true(c.total.n_params == rows[i].n_params);
        assert_true(fabs(c.total.macs_paper * 1e-9 - rows[i].paper) < 0.05);
        assert_true(c.embed.macs_paper > c.embed.macs); /* it is counted there */
    }
}

static void faults_are_named(void **state)
{
    static const struct {
        const char *architecture, *policy;
    } faults[] = {
        {"vit_enormous_patch16_224", "none"},
        {"vit_small_patch16_225", "none"},
        {"", "none"},
        {"vit_small_patch16_224", "naive p=8 layers=12"},
        {"vit_small_patch16_224", "naive p=40 layers=0-5"}, /* 240 of 196 patches */
        {"vit_small_patch16_224", "evit keep=0 layers=3"},
        {"vit_small_patch16_224", "frobnicate"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        renyi_error err = {0};
        renyi_cost cost;
        assert_int_equal(
            renyi_policy_cost(NULL, faults[i].architecture, faults[i].policy, &cost, NULL, 0, &err),
            RENYI_ERR_ARG);
        assert_true(err.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naive_settings),       cmocka_unit_test(evit_settings),
        cmocka_unit_test(parts_make_the_whole), cmocka_unit_test(tables_of_the_paper),
        cmocka_unit_test(image_towers_of_clip), cmocka_unit_test(condensation),
        cmocka_unit_test(faults_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
