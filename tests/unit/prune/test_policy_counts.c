/* test_policy_counts.c - tests policies on the shape of an encoder: tokens after every cut, the
 * split of Algorithm 2, and what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/policy_spec.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#define COUNT(x) (sizeof(x) / sizeof *(x))

static const ry_policy_shape vit = {12, 196, 1, 14, 0, 0};       /* ViT-Ti, -S, -B at 224 */
static const ry_policy_shape vit_large = {24, 196, 1, 14, 0, 0}; /* ViT-L */
static const ry_policy_shape distilled = {12, 196, 2, 14, 0, 0}; /* DeiT with two prefix tokens */
static const ry_policy_shape no_class = {12, 196, 0, 14, 0, 0}; /* an encoder without class token */

static ry_policy parse_text(const char *text)
{
    ry_policy p;
    renyi_error err = {0};
    if (ry_policy_parse(&p, text, &err)) fail_msg("'%s' was refused: %s", text, err.message);
    return p;
}

static ry_policy checked_policy(const char *text, const ry_policy_shape *shape)
{
    ry_policy p = parse_text(text);
    renyi_error err = {0};
    if (ry_policy_check(&p, shape, &err)) fail_msg("'%s' was refused: %s", text, err.message);
    return p;
}

/* "140 100 72": the tokens after each cut. */
static const char *tokens(const char *text, const ry_policy_shape *shape, char out[512])
{
    const ry_policy p = checked_policy(text, shape);
    uint32_t n = shape->n_prefix + shape->n_patches;
    char *end = out;
    for (uint32_t i = 0; i < p.n_cuts; i++) {
        n = ry_policy_tokens_after(&p, i, n, shape->n_prefix);
        end += sprintf(end, "%s%u", i ? " " : "", (unsigned)n);
    }
    return out;
}

static const struct {
    const char *text;
    const ry_policy_shape *shape;
    const char *tokens;
} counts[] = {
    /* every EViT setting of the paper; the layers do not matter to the counts */
    {"evit keep=0.7 layers=0,3,6", &vit, "140 100 72"},
    {"evit keep=0.7 layers=4,7,10", &vit, "140 100 72"},
    {"evit keep=0.8 layers=0,3,6", &vit, "159 129 105"},
    {"evit keep=0.9 layers=3,6,9", &vit, "179 163 148"},
    {"evit keep=0.7 drop", &vit, "139 98 69"},
    {"evit keep=0.7", &distilled, "141 101 73"},
    {"evit keep=0.7 metric=col", &no_class, "139 99 71"},
    {"evit tokens=100,50,25", &vit, "102 52 27"},
    {"evit tokens=500", &vit, "197 197 197"},
    {"evit tokens=100", &vit, "102 102 102"}, /* fusing one token would save nothing */
    {"evit reduce=drop,fuse,merge", &vit, "139 99 70"},
    {"evit keep=0.000000001", &vit, "3 3 3"},
    /* the naive tables: early and all */
    {"naive p=24", &vit, "173 149 125 101 77 53"},
    {"naive p=24 layers=early", &vit_large, "173 149 125 101 77 53"},
    {"naive p=12 layers=all", &vit, "185 173 161 149 137 125 113 101 89 77 65 53"},
    {"naive p=1,2,3 layers=0,1,2", &vit, "196 194 191"},
    {"naive p=195 layers=0", &vit, "2"},
    {"naive p=16 layers=0,1 fuse", &vit, "182 167"},
    {"mosaic", &vit, "139 98 69"},
    {"mosaic p=16 layers=0-5", &vit, "181 165 149 133 117 101"},
    {"mosaic tokens=50 layers=3", &no_class, "50"},
    /* no change */
    {"evit keep=1", &vit, "197 197 197"},
    {"mosaic keep=1 layers=0", &vit, "197"},
    {"naive p=0", &vit, "197 197 197 197 197 197"},
    {"tome r=0 layers=3", &vit, "197"},
    {"ats keep=1", &vit, "197 197 197"},
    {"none", &vit, NULL},
    /* tome: half of the patches at most, (r, inflection) as its code spreads it */
    {"tome", &vit, "184 171 158 145 132 119 106 93 80 67 54 41"},
    {"tome r=500 layers=0-3", &vit, "99 50 26 14"},
    {"tome r=500 layers=0", &distilled, "100"},
    {"tome r=16 inflection=1", &vit, "197 195 190 182 171 157 140 120 97 71 42 22"},
    {"tome r=16 inflection=-0.5", &vit, "173 151 130 111 93 77 62 49 37 27 18 10"},
    {"tome r=16 inflection=1 layers=3", &vit, "181"},
    /* ats: round(keep N), class token counted in, at least 8 */
    {"ats", &vit, "138 97 68"},
    {"ats keep=0.01", &vit, "8 8 8"},
    {"ats tokens=100,50,1", &vit, "101 51 2"},
    /* with levels: no more than those, and never the token with the least score */
    {"ats keep=1 levels=196", &vit, "196 195 194"},
    {"ats levels=50", &vit, "51 36 25"},
    {"ats levels=999", &vit, "138 97 68"},
    /* tca: the published code's counts; a cut that would save nothing is none */
    {"tca", &vit, "143 104 77"},
    {"tca drop=0.035", &vit, "182 167 155"},
    {"tca metric=col", &no_class, "142 103 76"},
    {"tca drop=0.1 layers=3", &distilled, "144"},
    {"tca drop=0.005", &vit, "197 197 197"}, /* none fused, two merged into four */
    {"tca drop=0.01", &vit, "197 197 197"},
    {"tca drop=0.011", &vit, "194 191 188"},
};

/* Layers of a model with 12 blocks in models of other depths. */
static void test_depths(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t n_blocks;
        const char *resolved;
    } depths[] = {
        {"mosaic keep=0.8 layers=2-9/12", 12, "mosaic keep=0.8 layers=2-9"},
        {"mosaic keep=0.8 layers=2-9/12", 24, "mosaic keep=0.8 layers=4,6,8,10,12,14,16,18"},
        {"mosaic keep=0.8 layers=2-9/12", 40, "mosaic keep=0.8 layers=6,10,13,16,20,23,26,30"},
        {"mosaic keep=0.5 layers=2-9/12", 6, "mosaic keep=0.25 layers=1-4"},
        {"mosaic keep=0.5,1,0.25 layers=0,3,6/12", 3, "mosaic keep=0.5,0.25 layers=0,1"},
        {"mosaic p=8,7,6 layers=0-2/3", 1, "mosaic p=21 layers=0"},
        {"mosaic tokens=80,70,60 layers=0-2/3", 2, "mosaic tokens=70,60 layers=0,1"},
        /* numbers that a text can say */
        {"mosaic keep=0.1 layers=0-3/4", 1, "mosaic keep=0.0001 layers=0"},
        {"mosaic keep=0.05 layers=0-2/3", 1, "mosaic keep=0.000125 layers=0"},
        {"mosaic keep=0.0000001 layers=0-2/3", 1, "mosaic keep=0.0000000000000000001 layers=0"},
        {"tca drop=0.0000000001 layers=0,1/2", 1,
         "tca drop=0.0000000002000000165 layers=0 metric=cls start=best"},
        {"tome r=999999 layers=0-2/3", 2, "tome r=999999 inflection=0 layers=0,1"},
        {"tome r=999999 layers=0,1 inflection=1", 2, "tome r=0,999999 layers=0,1"},
    };
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        const ry_policy_shape shape = {depths[i].n_blocks, 196, 1, 14, 0};
        const ry_policy p = checked_policy(depths[i].text, &shape);
        char out[RY_MAX_POLICY_TEXT];
        ry_policy_print(out, &p);
        assert_string_equal(out, depths[i].resolved);
        const ry_policy again = checked_policy(out, &shape);
        assert_memory_equal(&again, &p, sizeof p);
    }
}

static void test_counts(void **state)
{
    (void)state;
    char out[512];
    for (size_t i = 0; i < COUNT(counts); i++) {
        if (!counts[i].tokens) {
            assert_int_equal(checked_policy(counts[i].text, counts[i].shape).n_cuts, 0);
            continue;
        }
        tokens(counts[i].text, counts[i].shape, out);
        if (strcmp(out, counts[i].tokens))
            fail_msg("'%s': %s, not %s", counts[i].text, out, counts[i].tokens);
    }
}

/* ceil(keep * patches) in double is the ceiling of the rational number for all rates in use;
 * in float it would not be. */
static void test_rates_are_exact(void **state)
{
    (void)state;
    for (unsigned tenths = 1; tenths <= 10; tenths++) {
        char text[64];
        snprintf(text, sizeof text, "mosaic keep=%u.%u layers=3", tenths / 10, tenths % 10);
        const ry_policy p = parse_text(text);
        for (uint32_t n = 1; n < 600; n++)
            assert_int_equal(ry_policy_tokens_after(&p, 0, n + 1, 1) - 1, (tenths * n + 9) / 10);
    }
}

/* A cut never adds tokens, and leaves at least one patch. */
static void test_never_grows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(counts); i++) {
        const ry_policy p = parse_text(counts[i].text);
        for (uint32_t n = 0; n < 300; n++)
            for (uint32_t c = 0; c < p.n_cuts; c++)
                for (uint32_t prefix = 0; prefix <= 2; prefix++) {
                    const uint32_t after = ry_policy_tokens_after(&p, c, n, prefix);
                    assert_true(after <= n);
                    if (n > prefix) assert_true(after > prefix);
                }
    }
}

static void assert_split(const char *text, uint32_t kept, uint32_t by_class, uint32_t by_column)
{
    const ry_policy p = parse_text(text);
    uint32_t a, b;
    ry_policy_split(&p, kept, &a, &b);
    if (a != by_class || b != by_column)
        fail_msg("'%s' of %u: %u + %u, not %u + %u", text, (unsigned)kept, (unsigned)a, (unsigned)b,
                 (unsigned)by_class, (unsigned)by_column);
}

static void test_split(void **state)
{
    (void)state;
    /* EViT keep=0.7 keeps 138, 98, 70 */
    assert_split("evit metric=correct c=0.2", 138, 111, 27);
    assert_split("evit metric=correct c=0.2", 98, 79, 19);
    assert_split("evit metric=correct c=0.2", 70, 56, 14);
    assert_split("evit metric=correct c=0.8", 138, 28, 110);
    assert_split("evit metric=correct c=0.8", 98, 20, 78);
    assert_split("evit metric=correct c=0.8", 70, 14, 56);
    assert_split("evit metric=correct c=0.8 rounding=paper", 138, 27, 111);
    assert_split("evit metric=correct c=0.8 rounding=paper", 70, 13,
                 57); /* 70 * (1 - 0.8) in double */
    /* naive p=24 c=0.4 */
    static const uint32_t naive[6][2] = {{104, 68}, {89, 59}, {75, 49},
                                         {60, 40},  {46, 30}, {32, 20}};
    for (uint32_t i = 0; i < 6; i++)
        assert_split("naive metric=correct", 196 - 24 * (i + 1), naive[i][0], naive[i][1]);
    assert_split("naive metric=correct", 3, 2, 1);
    assert_split("naive metric=correct c=0.5", 2, 1, 1);
    for (uint32_t k = 0; k < 200; k++) {
        assert_split("evit metric=correct c=0", k, k, 0);
        assert_split("evit metric=correct c=1", k, 0, k);
        assert_split("evit metric=correct c=0 rounding=paper", k, k, 0);
        assert_split("evit metric=correct c=1 rounding=paper", k, 0, k);
        assert_split("evit", k, k, 0);
        assert_split("naive", k, 0, k);
    }
}

/* keep, merge, fuse */
static void test_tca_split(void **state)
{
    (void)state;
    static const struct {
        double drop;
        uint32_t patches, keep, merge, fuse;
    } rows[] = {{0.1, 196, 137, 40, 19},  {0.1, 142, 98, 30, 14},   {0.1, 103, 71, 22, 10},
                {0.035, 196, 176, 14, 6}, {0.035, 181, 161, 14, 6}, {0.035, 166, 149, 12, 5}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const ry_policy_cut cut = {.drop = rows[i].drop};
        ry_tca_split s;
        assert_true(ry_policy_tca_split(&cut, rows[i].patches, &s));
        assert_int_equal(s.keep, rows[i].keep);
        assert_int_equal(s.merge, rows[i].merge);
        assert_int_equal(s.fuse, rows[i].fuse);
    }
    const ry_policy_cut all = {.drop = 0.3};
    ry_tca_split s;
    assert_false(ry_policy_tca_split(&all, 7, &s));
}

static const struct {
    const char *text;
    const ry_policy_shape *shape;
    const char *says;
} refusals[] = {
    {"evit layers=12", &vit, "layer 12 is outside the model: its blocks are 0 to 11"},
    {"mosaic layers=0,3,99", &vit, "layer 99 is outside the model"},
    {"naive p=196 layers=0", &vit,
     "layer 0: p=196 leaves no token, only 196 of the 196 patches arrive there"},
    {"naive p=40", &vit, "layer 4: p=40 leaves no token, only 36 of the 196 patches arrive there"},
    {"mosaic p=100", &vit, "layer 3: p=100 leaves no token, only 96"},
    {"naive p=9 layers=all", &vit_large, "layer 21: p=9 leaves no token, only 7"},
    {"tome r=16,12,8", &vit, "a list of 3 values with layers=all: the model has 12 blocks"},
    {"evit", &no_class,
     "metric=cls looks at the class token, and this model has none; use metric=col, colv, renyi, "
     "shannon or random"},
    {"naive metric=correct", &no_class, "metric=correct looks at the class token"},
    {"evit metric=col weights=cls", &no_class, "use weights=score"},
    {"ats", &no_class,
     "the rule ats looks at the class token, and this model has none; use mosaic, tome"},
    {"tca", &no_class,
     "metric=cls looks at the class token, and this model has none; use metric=col"},
    {"tca drop=0.3", &vit, "layer 9: drop=0.3 fuses or merges all 7 patches that arrive there"},
    {"tca drop=0.9 layers=0", &vit, "layer 0: drop=0.9"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        ry_policy p = parse_text(refusals[i].text);
        renyi_error err = {0};
        if (ry_policy_check(&p, refusals[i].shape, &err) != RENYI_ERR_ARG)
            fail_msg("'%s' was accepted", refusals[i].text);
        if (!strstr(err.message, refusals[i].says))
            fail_msg("'%s': '%s' does not say '%s'", refusals[i].text, err.message,
                     refusals[i].says);
    }
}

/* What depends on the encoder: the meaning of layers=all, the weights of a fused token. */
static void test_resolution(void **state)
{
    (void)state;
    const ry_policy all = checked_policy("naive layers=all p=3 metric=cls", &vit_large);
    assert_int_equal(all.every_layer, 0);
    assert_int_equal(all.n_cuts, 24);
    for (uint32_t i = 0; i < 24; i++) {
        assert_int_equal(all.cuts[i].layer, i);
        assert_int_equal(all.cuts[i].count, 3);
    }
    assert_int_equal(checked_policy("evit metric=col", &vit).weights, RY_FUSE_CLS);
    assert_int_equal(checked_policy("evit metric=col", &no_class).weights, RY_FUSE_SCORE);
    assert_int_equal(checked_policy("evit metric=random", &vit).weights, RY_FUSE_SCORE);
    assert_int_equal(checked_policy("tome inflection=0.5", &vit).inflection == 0, 1);
    const ry_policy_shape deep = {65, 196, 1, 14, 0, 0}, empty = {12, 0, 1, 0, 0, 0};
    ry_policy p = parse_text("tome");
    assert_int_equal(ry_policy_check(&p, &deep, NULL), RENYI_ERR_ARG);
    p = parse_text("tome");
    assert_int_equal(ry_policy_check(&p, &empty, NULL), RENYI_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depths),          cmocka_unit_test(test_counts),
        cmocka_unit_test(test_rates_are_exact), cmocka_unit_test(test_never_grows),
        cmocka_unit_test(test_split),           cmocka_unit_test(test_tca_split),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_resolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
