/* test_cascade.c - tests the grammar of cascades: what a text means, its full form, refusals with
 * their place, and that everything that takes one policy refuses a cascade by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/cascade.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#define COUNT(x) (sizeof(x) / sizeof *(x))
#define MOSAIC(keep) "mosaic keep=" keep " layers=0,3,6"
#define SMALL_CUTS(keep, temperature)                                                            \
    "mosaic keep=" keep " layers=2-9/12 alpha=1 omega=1 beta=0.8 memory=0.5 length=max col=0.2 " \
    "temperature=" temperature
#define ADAPTIVE "cascade(" SMALL_CUTS("0.72", "1.1") " -> " SMALL_CUTS("0.84", "1.05")

static ry_cascade parse_text(const char *text)
{
    ry_cascade c;
    renyi_error err = {0};
    if (ry_cascade_parse(&c, text, NULL, &err)) fail_msg("'%s' was refused: %s", text, err.message);
    return c;
}

static const struct {
    const char *text, *full;
} meanings[] = {
    {"none", "none"},
    {"mosaic", MOSAIC("0.7")},
    {"cascade(mosaic -> none if margin < 2)",
     "cascade(" MOSAIC("0.7") " -> none if margin < 2) combine=second"},
    {" cascade ( mosaic keep=0.5->mosaic if margin<.50 ) combine=mean ",
     "cascade(" MOSAIC("0.5") " -> " MOSAIC("0.7") " if margin < 0.5) combine=mean"},
    {"cascade(mosaic layers=(0, 3, 6) -> mosaic layers=(0, 3, 6) if\tmargin < 0)combine=second",
     "cascade(" MOSAIC("0.7") " -> " MOSAIC("0.7") " if margin < 0) combine=second"},
    {"cascade(tome r=13 -> ats if margin < 123456789.25)",
     "cascade(tome r=13 inflection=0 layers=all -> ats keep=0.7 layers=3,6,9 levels=budget if "
     "margin < 123456789.25) combine=second"},
    {"half-adaptive", ADAPTIVE " if margin < 0.3) combine=second"},
    {"half-adaptive combine=mean", ADAPTIVE " if margin < 0.3) combine=mean"},
    {"half", SMALL_CUTS("0.77", "1.05")},
};

static void test_meanings(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(meanings); i++) {
        char full[RY_MAX_POLICY_TEXT];
        const ry_cascade c = parse_text(meanings[i].text);
        ry_cascade_print(full, &c);
        assert_string_equal(full, meanings[i].full);
        const ry_cascade again = parse_text(full);
        assert_memory_equal(&c, &again, sizeof c);
        assert_int_equal(c.is_cascade, strncmp(full, "cascade", 7) == 0);
    }
}

/* Each part means what it means alone. */
static void test_parts(void **state)
{
    (void)state;
    const ry_cascade c = parse_text("cascade(fast -> careful if margin < 1.5) combine=mean");
    const ry_cascade first = parse_text("fast"), second = parse_text("careful");
    assert_memory_equal(&c.first, &first.first, sizeof c.first);
    assert_memory_equal(&c.second, &second.first, sizeof c.second);
    assert_true(c.margin == 1.5 && c.combine == RY_COMBINE_MEAN);
    assert_false(first.is_cascade);
}

/* A preset may be a cascade; combine after its name replaces that of the preset. */
static void test_preset(void **state)
{
    (void)state;
    size_t count, found = 0;
    const ry_preset *presets = ry_presets(&count);
    for (size_t i = 0; i < count; i++) {
        char text[RY_MAX_POLICY_TEXT];
        if (!ry_is_cascade(presets[i].text)) continue;
        found++;
        assert_true(ry_is_cascade(presets[i].name));
        const ry_cascade named = parse_text(presets[i].name), meant = parse_text(presets[i].text);
        assert_memory_equal(&named, &meant, sizeof named);
        snprintf(text, sizeof text, "%s combine=mean", presets[i].name);
        assert_int_equal(parse_text(text).combine, RY_COMBINE_MEAN);
        snprintf(text, sizeof text, "%s keep=0.5", presets[i].name);
        ry_cascade c;
        renyi_error err = {0};
        assert_int_equal(ry_cascade_parse(&c, text, NULL, &err), RENYI_ERR_ARG);
        assert_int_equal(err.offset, strlen(presets[i].name) + 1);
    }
    assert_true(found > 0);
}

static const struct {
    const char *text, *place, *message; /* place: where the fault begins in the text */
} refusals[] = {
    {"cascade", "", "is written cascade("},
    {"cascade mosaic", "mosaic", "is written cascade("},
    {"cascade(mosaic -> none if margin < 2", "(", "without its ')'"},
    {"cascade(mosaic)", "mosaic)", "no '->'"},
    {"cascade(mosaic layers=(3 -> 6) if margin < 2)", "mosaic", "no '->'"},
    {"cascade( -> none if margin < 2)", "-> none", "first policy is missing"},
    {"cascade(mosaic -> if margin < 2)", "if", "second policy is missing"},
    {"cascade(mosaic -> none -> fast if margin < 2)", "-> fast", "second '->'"},
    {"cascade(mosaic keep=7 -> none if margin < 2)", "7 ->", "keep=7"},
    {"cascade(mosaic -> evit kep=0.5 if margin < 2)", "kep", "did you mean keep?"},
    {"cascade(mosaic -> none)", ")", "no condition"},
    {"cascade(mosaic -> none if entropy < 2)", "entropy", "margin < M"},
    {"cascade(mosaic -> none if margin > 2)", "margin", "margin < M"},
    {"cascade(mosaic -> none if margin <)", ")", "at least 0"},
    {"cascade(mosaic -> none if margin < -1)", "-1", "at least 0"},
    {"cascade(mosaic -> none if margin < -0)", "-0", "at least 0"},
    {"cascade(mosaic -> none if margin < inf)", "inf", "at least 0"},
    {"cascade(mosaic -> none if margin < nan)", "nan", "at least 0"},
    {"cascade(mosaic -> none if margin < 1e3)", "1e3", "at least 0"},
    {"cascade(mosaic -> none if margin < 2) fuse", "fuse", "unknown word 'fuse'"},
    {"cascade(mosaic -> none if margin < 2) combine=", "combine=", "second or mean"},
    {"cascade(mosaic -> none if margin < 2) combine=first", "first", "second or mean"},
    {"cascade(mosaic -> none if margin < 2) combine=mean combine=mean", "combine=mean combine",
     NULL},
    {"cascade(cascade(mosaic -> none if margin < 1) -> none if margin < 2)", "cascade(mosaic",
     "a cascade inside a cascade"},
    {"cascade(mosaic -> sure if margin < 2)", "sure", "a cascade inside a cascade"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        ry_cascade c;
        renyi_error err = {0};
        const char *text = refusals[i].text;
        if (ry_cascade_parse(&c, text, NULL, &err) != RENYI_ERR_ARG)
            fail_msg("'%s' was not refused", text);
        if (refusals[i].message && !strstr(err.message, refusals[i].message))
            fail_msg("'%s': %s", text, err.message);
        if (!refusals[i].message) continue;
        const char *place = strstr(text, refusals[i].place);
        const size_t want = refusals[i].place[0] ? (size_t)(place - text) : strlen(text);
        if (err.offset != (int64_t)want)
            fail_msg("'%s': %s at %d, not %zu", text, err.message, (int)err.offset, want);
    }
}

static void test_too_long(void **state)
{
    (void)state;
    char text[3 * RY_MAX_POLICY_TEXT];
    ry_cascade c;
    renyi_error err = {0};
    snprintf(text, sizeof text, "cascade(%1100s -> none if margin < 2)", "mosaic");
    assert_int_equal(ry_cascade_parse(&c, text, NULL, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "at most 1023 bytes"));
    /* short as typed, long in full */
    char list[600] = "0.9";
    for (int i = 1; i < 64; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), ",0.%04d", i);
    snprintf(text, sizeof text,
             "cascade(evit keep=%s layers=0-63 -> evit keep=%s layers=0-63 if margin < 2)", list,
             list);
    assert_true(strlen(text) < RY_MAX_POLICY_TEXT);
    assert_int_equal(ry_cascade_parse(&c, text, NULL, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "in full"));
}

/* What takes one policy refuses cascades by name; an own rule cannot have that name. */
static void test_elsewhere(void **state)
{
    (void)state;
    ry_policy p;
    renyi_error err = {0};
    assert_int_equal(ry_policy_parse(&p, "cascade(fast -> none if margin < 1)", &err),
                     RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "policy of one pass"));
    assert_int_equal(ry_policy_parse(&p, "sure", &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "policy of one pass"));
    assert_false(ry_is_cascade("cascades"));
    assert_false(ry_is_cascade("fast"));
}

static void test_check(void **state)
{
    (void)state;
    const ry_policy_shape vit = {12, 196, 1, 14, 0, 0};
    renyi_error err = {0};
    ry_cascade c = parse_text("cascade(mosaic layers=0,3 -> mosaic layers=0,12 if margin < 1)");
    assert_int_equal(ry_cascade_check(&c, &vit, &err), RENYI_ERR_ARG);
    c = parse_text("cascade(fast -> careful if margin < 1)");
    assert_int_equal(ry_cascade_check(&c, &vit, &err), RENYI_OK);
    assert_int_equal(c.first.cuts[0].layer, 2);
    assert_int_equal(c.second.depth, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meanings), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_preset),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_too_long), cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
