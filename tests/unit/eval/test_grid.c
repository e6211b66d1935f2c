/* test_grid.c - grids combine values, remove equal policies, and name the line of an error.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/test_heap.h"
#include "renyi/sweep.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static char path[] = "/tmp/renyi_grid_XXXXXX";

static const char *spec_file(const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static renyi_grid *grid_ok(const renyi_grid_options *o)
{
    renyi_error err = {0};
    renyi_grid *g;
    if (renyi_grid_new(&g, o, &err)) fail_msg("%s", err.message);
    return g;
}

static renyi_grid *grid_of(const char *text)
{
    const renyi_grid_options o = {.struct_size = sizeof o, .file = spec_file(text)};
    return grid_ok(&o);
}

/* The points of a grid, one a line. */
static char *points(const renyi_grid *g)
{
    char *text = calloc(1, 1 << 20), *to = text;
    assert_non_null(text);
    for (size_t i = 0; i < renyi_grid_count(g); i++) {
        renyi_grid_point p;
        renyi_grid_get(g, i, &p);
        to += sprintf(to, "%s %u %s\n", p.model, p.image_size, p.policy);
    }
    return text;
}

/* No two points are equal, and every policy is written in full. */
static void assert_distinct(const renyi_grid *g)
{
    const size_t n = renyi_grid_count(g);
    for (size_t i = 0; i < n; i++) {
        char full[RENYI_POLICY_MAX];
        renyi_grid_point a, b;
        renyi_grid_get(g, i, &a);
        assert_int_equal(renyi_policy_check(a.policy, NULL, full, sizeof full, NULL), RENYI_OK);
        assert_string_equal(full, a.policy);
        for (size_t j = 0; j < i; j++) {
            renyi_grid_get(g, j, &b);
            assert_false(a.image_size == b.image_size && strcmp(a.model, b.model) == 0 &&
                         strcmp(a.policy, b.policy) == 0);
        }
    }
}

static size_t count_of(const char *policies)
{
    char text[1024];
    snprintf(text, sizeof text, "models m\n%s\n", policies);
    renyi_grid *g = grid_of(text);
    const size_t n = renyi_grid_count(g);
    assert_distinct(g);
    renyi_grid_free(g);
    return n;
}

static void test_product(void **state)
{
    (void)state;
    renyi_grid *g =
        grid_of("# a comment\r\n"
                "models a b a \"c d\"  # twice the same\n"
                "sizes 160 model 224 160\n"
                "policy none\n"
                "policy evit keep=0.5|0.7|0.9 layers=0,3,6|3,6,9 metric=cls|col fuse\n");
    renyi_grid_info info;
    renyi_grid_point p;
    renyi_grid_get_info(g, &info);
    assert_true(info.n_models == 3 && info.n_sizes == 3 && info.n_policies == 13);
    assert_int_equal(renyi_grid_count(g), 3 * 3 * 13);
    assert_distinct(g);
    renyi_grid_get(g, 0, &p);
    assert_true(strcmp(p.model, "a") == 0 && p.image_size == 160 && strcmp(p.policy, "none") == 0);
    renyi_grid_get(g, 13, &p);
    assert_true(strcmp(p.model, "a") == 0 && p.image_size == 0);
    renyi_grid_get(g, renyi_grid_count(g) - 1, &p);
    assert_true(strcmp(p.model, "c d") == 0 && p.image_size == 224);
    assert_non_null(strstr(p.policy, "evit keep=0.9 layers=3,6,9 metric=col"));
    renyi_grid_get(g, renyi_grid_count(g), &p);
    assert_null(p.model);
    renyi_grid_free(g);
}

static void test_dtypes(void **state)
{
    (void)state;
    renyi_grid *g = grid_of("models a\nsizes 96 64\ndtypes f32 int8 f32\npolicy none|fast\n");
    renyi_grid_point p;
    assert_int_equal(renyi_grid_count(g), 2 * 2 * 2);
    renyi_grid_get(g, 2, &p); /* by size, then dtype, then policy */
    assert_true(p.image_size == 96 && p.dtype == RENYI_DTYPE_INT8 && strcmp(p.policy, "none") == 0);
    renyi_grid_get(g, 4, &p);
    assert_true(p.image_size == 64 && p.dtype == RENYI_DTYPE_F32);
    renyi_grid_free(g);
    g = grid_of("models a\npolicy none\n");
    renyi_grid_get(g, 0, &p);
    assert_int_equal(p.dtype, RENYI_DTYPE_DEFAULT);
    renyi_grid_free(g);
}

static void test_same_order(void **state)
{
    (void)state;
    static const char spec[] = "models a\nsizes 96 64\npolicy evit|naive keep=0.5|0.7 p=8|16\n";
    renyi_grid *g = grid_of(spec), *h = grid_of(spec);
    char *one = points(g), *two = points(h);
    assert_string_equal(one, two);
    assert_int_equal(renyi_grid_count(g), 2 * 4);
    free(one);
    free(two);
    renyi_grid_free(g);
    renyi_grid_free(h);
}

static void test_collapse(void **state)
{
    (void)state;
    static const struct {
        const char *policies;
        size_t count;
    } cases[] = {
        {"policy evit metric=cls|col|random n=2|4", 4},
        {"policy evit metric=cls|correct n=2|4 c=0.2|0.8", 5},
        {"policy evit fuse|drop weights=cls|score", 3},
        {"policy evit|mosaic metric=cls|col keep=0.5|0.7", 6},
        {"policy evit keep=0.5|0.50|.5", 1},
        {"policy none|none", 1},
        {"policy half|fast|balanced|careful", 4},
        {"policy half\npolicy mosaic keep=0.77 layers=2-9/12 alpha=1 omega=1 beta=0.8 memory=0.5 "
         "length=max col=0.2 temperature=1.05",
         1},
        {"policy paper:evit-ours keep=0.7|0.9", 2},
        {"policy paper:evit-ours n=1|inf metric=correct|col", 4},
        {"policy evit layers=(0, 3, 6)|(3, 6, 9)|0,3,6", 2},
        {"frameworks evit naive\nmetrics cls col\nn 2 4\nkeep 0.5 0.7\np 8", 9},
        {"frameworks mosaic\nkeep 0.5 0.7\np 8 16 24", 5},
        {"frameworks evit\nframeworks mosaic|none\nkeep 0.5\nlayers 0,3,6 3,6,9", 5},
        {"frameworks evit mosaic\nkeep 0.9,0.8,0.7\npolicy none", 3},
        {"frameworks evit\nmetric random\nseed 1 2 3", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (count_of(cases[i].policies) != cases[i].count)
            fail_msg("%s: %zu policies", cases[i].policies, count_of(cases[i].policies));
}

static void test_wrong_specs(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *line, *message;
    } cases[] = {
        {"models m\nmodles x\n", ":2: ", "did you mean models?"},
        {"models m\n\nkeep 0.5\n", ":3: ", "no frameworks to combine them with"},
        {"models m\nframeworks evit\np 8\n", ":3: ", "metrics uses p"},
        {"models m\nframeworks evit\nkeep 0.5 1.5\n", ":3: ", "keep=1.5"},
        {"models m\nframeworks evit\nn 2\n", ":3: ", "metrics uses n"},
        {"models m\nframeworks evitt\n", ":2: ", "did you mean evit?"},
        {"models m\nmetrics cls rnadom\n", ":2: ", "did you mean random?"},
        {"models m\npolicy evit kep=0.5|0.7\n", ":2: ", "did you mean keep?"},
        {"models m\npolicy evit keep=0.5||0.7\n", ":2: ", "empty alternative"},
        {"models m\npolicy evit metric=cls n=2\n", ":2: ", "n goes with metric="},
        {"models m\npolicy none keep=0.5\n", ":2: ", "takes no words"},
        {"models m\npolicy evit keep=0.5 tokens=5\n", ":2: ", "exclude each other"},
        {"models m\npolicy keep=0.5\n", ":2: ", "begins with its rule"},
        {"models m\npolicy evit|\n", ":2: ", "empty alternative"},
        {"models m\npolicy\n", ":2: ", "has no values"},
        {"models m\npolicy evit fuse|kep\n", ":2: ", "kep"},
        {"models m\nframeworks evit\nlayers 0,3 0,3,6\nkeep 0.9,0.8,0.7\n", ":2: ", "3 values"},
        {"sizes 0\n", ":1: ", "is not a size"},
        {"sizes 160,192\n", ":1: ", "is not a size"},
        {"sizes 160 99999\n", ":1: ", "is not a size"},
        {"models \"m\n", ":1: ", "quote without its end"},
        {"models \"\"\n", ":1: ", "name is empty"},
        {"models m\x01\n", ":1: ", "control character"},
        {"# nothing\n", ": ", "no model"},
        {"", ": ", "no model"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const renyi_grid_options o = {.struct_size = sizeof o, .file = spec_file(cases[i].spec)};
        renyi_error err = {0};
        renyi_grid *g = (renyi_grid *)&err;
        if (!renyi_grid_new(&g, &o, &err)) fail_msg("accepted: %s", cases[i].spec);
        assert_null(g);
        assert_int_equal(err.offset, -1);
        if (strncmp(err.message, path, strlen(path)) != 0 ||
            strncmp(err.message + strlen(path), cases[i].line, strlen(cases[i].line)) != 0 ||
            !strstr(err.message, cases[i].message))
            fail_msg("%s-> %s", cases[i].spec, err.message);
    }
}

static void test_cascades(void **state)
{
    (void)state;
    assert_int_equal(count_of("policy cascade(mosaic keep=0.5|0.6 -> none|mosaic if margin < 1|2) "
                              "combine=mean|second"),
                     16);
    assert_int_equal(count_of("policy cascade(fast|half -> evit layers=(3, 6) if margin < 1)"), 2);
    assert_int_equal(count_of("policy sure combine=second|mean\npolicy sure"), 2);
    assert_int_equal(count_of("policy none|sure|half\npolicy sure|none"), 3);
    renyi_grid *g = grid_of("models m\npolicy cascade(mosaic -> none if margin < 1|2.5)\n");
    renyi_grid_point p;
    renyi_grid_get(g, 1, &p);
    assert_string_equal(p.policy, "cascade(mosaic keep=0.7 layers=0,3,6 -> none if margin < 2.5) "
                                  "combine=second");
    renyi_grid_free(g);

    static const char *const wrong[][2] = {
        {"policy cascade(mosaic keep=0.5| -> none if margin < 1)", "empty alternative"},
        {"policy cascade(mosaic -> none if margin < 1|-2)", "at least 0"},
        {"policy cascade(mosaic -> none if margin < 1) keep=0.5|0.7", "unknown word"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[256];
        renyi_error err = {0};
        snprintf(text, sizeof text, "models m\n%s\n", wrong[i][0]);
        const renyi_grid_options o = {.struct_size = sizeof o, .file = spec_file(text)};
        assert_int_not_equal(renyi_grid_new(&g, &o, &err), RENYI_OK);
        if (!strstr(err.message, wrong[i][1])) fail_msg("%s", err.message);
    }
}

static void test_limits(void **state)
{
    (void)state;
    char many[8192] = "models m\npolicy evit keep=";
    for (int i = 1; i < 100; i++) sprintf(many + strlen(many), "0.%02d|", i);
    strcat(many, "1 seed=1|2|3|4|5|6|7|8 metric=random|cls layers=");
    for (int i = 0; i < 30; i++) sprintf(many + strlen(many), "%d|", i);
    strcat(many, "30\n");
    const renyi_grid_options o = {.struct_size = sizeof o, .file = spec_file(many)};
    const renyi_grid_options small = {
        .struct_size = sizeof small, .file = path, .max_file_bytes = 10};
    renyi_error err = {0};
    renyi_grid *g;
    assert_int_equal(renyi_grid_new(&g, &o, &err), RENYI_ERR_LIMIT);
    assert_non_null(strstr(err.message, "more than 4096 policies"));
    assert_int_equal(renyi_grid_new(&g, &small, &err), RENYI_ERR_LIMIT);
}

static void test_options_replace(void **state)
{
    (void)state;
    static const char *const models[] = {"x y", "x y"}, *const policies[] = {"none|mosaic"};
    static const char *const lines[] = {"keep 0.5 0.7 # ours"};
    static const uint32_t sizes[] = {0, 96};
    renyi_grid_options o = {
        .struct_size = sizeof o,
        .file = spec_file("models a b\nsizes 64\npolicy evit\nframeworks mosaic\nkeep 0.9\n"),
        .n_models = 2,
        .models = models,
        .n_sizes = 2,
        .sizes = sizes,
        .n_policies = 1,
        .policies = policies,
        .n_lines = 1,
        .lines = lines};
    renyi_grid *g = grid_ok(&o);
    renyi_grid_info info;
    renyi_grid_get_info(g, &info);
    assert_true(info.n_models == 1 && info.n_sizes == 2); /* mosaic has keep=0.7 */
    assert_int_equal(info.n_policies, 3);
    assert_string_equal(info.models[0], "x y");
    assert_string_equal(info.policies[2], "mosaic keep=0.5 layers=0,3,6");
    renyi_grid_free(g);

    static const char *const rule[] = {"frameworks evit"}; /* does not use the p of the file */
    const renyi_grid_options r = {.struct_size = sizeof r,
                                  .file = spec_file("models a\nframeworks naive\nkeep 0.5\np 8\n"),
                                  .n_lines = 1,
                                  .lines = rule};
    g = grid_ok(&r);
    assert_int_equal(renyi_grid_count(g), 1);
    renyi_grid_free(g);

    static const char *const bad[] = {"evit keep=2", "keep two", "evit\n", ""};
    for (size_t i = 0; i < 4; i++) {
        renyi_error err = {0};
        const renyi_grid_options w = {.struct_size = sizeof w,
                                      .n_models = 1,
                                      .models = models,
                                      .n_policies = i != 1,
                                      .policies = &bad[i],
                                      .n_lines = i == 1,
                                      .lines = &bad[i]};
        assert_int_not_equal(renyi_grid_new(&g, &w, &err), RENYI_OK);
        assert_true(i == 3 || strstr(err.message, i == 1 ? "'keep two': " : "policy 'evit"));
    }
    o.struct_size = 0;
    assert_int_equal(renyi_grid_new(&g, &o, NULL), RENYI_ERR_ARG);
    o.struct_size = sizeof o;
    o.models = NULL;
    assert_int_equal(renyi_grid_new(&g, &o, NULL), RENYI_ERR_ARG);
    o = (renyi_grid_options){.struct_size = sizeof o, .file = "/no/such/spec"};
    assert_int_equal(renyi_grid_new(&g, &o, NULL), RENYI_ERR_IO);
}

static void test_default(void **state)
{
    (void)state;
    static const char *const models[] = {"m"};
    const renyi_grid_options o = {.struct_size = sizeof o, .n_models = 1, .models = models};
    renyi_grid *g = grid_ok(&o);
    renyi_grid_point p;
    assert_int_equal(renyi_grid_count(g), 37);
    renyi_grid_get(g, 0, &p);
    assert_true(p.image_size == 0 && strcmp(p.policy, "none") == 0);
    assert_distinct(g);
    renyi_grid_free(g);
}

static void test_no_memory(void **state)
{
    (void)state;
    test_heap heap = {0};
    const renyi_grid_options o = {
        .struct_size = sizeof o,
        .file = spec_file("models m\nframeworks evit\nkeep 0.5 0.7\npolicy none\n"),
        .allocator = test_heap_of(&heap)};
    for (size_t fail = 1;; fail++) {
        renyi_grid *g;
        heap = (test_heap){.fail_at = fail};
        const renyi_status st = renyi_grid_new(&g, &o, NULL);
        if (!st) renyi_grid_free(g);
        assert_int_equal(heap.live, 0);
        if (!st) break;
        assert_int_equal(st, RENYI_ERR_NOMEM);
    }
    assert_true(heap.calls >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),         cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_same_order),      cmocka_unit_test(test_collapse),
        cmocka_unit_test(test_wrong_specs),     cmocka_unit_test(test_limits),
        cmocka_unit_test(test_options_replace), cmocka_unit_test(test_default),
        cmocka_unit_test(test_no_memory),       cmocka_unit_test(test_cascades),
    };
    const int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
