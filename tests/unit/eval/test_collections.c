/* test_collections.c - the table of known datasets and the lists of templates are complete and
 * found by name; bad ones are errors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/test_heap.h"
#include "renyi/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { SETS = 15 };
static char file[] = "/tmp/renyi_templates_XXXXXX";

static renyi_collection get(const char *word)
{
    renyi_error err = {0};
    renyi_collection c;
    if (renyi_collection_find(word, &c, &err)) fail_msg("%s", err.message);
    return c;
}

/* ---- datasets ----------------------------------------------------------------------------- */

static void test_table(void **state)
{
    (void)state;
    assert_int_equal(renyi_collection_count(), SETS);
    for (size_t i = 0; i < SETS; i++) {
        renyi_collection c, again;
        renyi_templates *t;
        renyi_collection_get(i, &c);
        assert_true(*c.name && *c.title && *c.folder && *c.photos && c.n_classes >= 10);
        assert_int_equal(!*c.list, c.layout == RENYI_LAYOUT_IMAGENET);
        assert_true(!c.is_subset || c.n_classes == 200);
        assert_true(c.tca_size >= 2 && c.tca_size <= 3 && c.tca_scale > 0 && c.tca_scale <= 5.5);
        assert_true(c.tca_lambda >= 1.5 && c.tca_lambda <= 8 && c.tca_beta >= 2 && c.tca_beta <= 9);
        assert_int_equal(renyi_templates_open(&t, c.templates, NULL, NULL), RENYI_OK);
        renyi_templates_free(t);
        again = get(c.name);
        assert_memory_equal(&again, &c, sizeof c);
        assert_string_equal(get(c.title).name, c.name);
        assert_string_equal(get(c.folder).name, c.name);
    }
    renyi_collection none;
    renyi_collection_get(SETS, &none);
    assert_true(!*none.name && !none.n_classes);
}

/* Some of the parameters that TCA's authors published. */
static void test_facts(void **state)
{
    static const struct {
        const char *word, *name;
        uint32_t classes, size;
        double scale, lambda, beta;
    } facts[] = {{"ImageNet-1k", "imagenet", 1000, 3, 0.1, 3, 5},
                 {"A", "imagenet-a", 200, 3, 0.01, 3, 5},
                 {"imagenet_s", "imagenet-sketch", 1000, 3, 0.1, 4, 8},
                 {"ImageNetV2", "imagenet-v2", 1000, 3, 0.1, 4, 9},
                 {"OxfordPets", "pets", 37, 3, 5.5, 2, 6},
                 {"stanford cars", "cars", 196, 3, 0.1, 1.5, 8},
                 {"fgvc", "aircraft", 100, 3, 0.02, 2, 2},
                 {"EuroSAT", "eurosat", 10, 2, 5, 8, 7}};
    (void)state;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const renyi_collection c = get(facts[i].word);
        assert_string_equal(c.name, facts[i].name);
        assert_int_equal(c.n_classes, facts[i].classes);
        assert_int_equal(c.tca_size, facts[i].size);
        assert_true(c.tca_scale == facts[i].scale && c.tca_lambda == facts[i].lambda &&
                    c.tca_beta == facts[i].beta);
    }
    renyi_error err = {0};
    renyi_collection c;
    assert_int_equal(renyi_collection_find("mnist", &c, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "\"mnist\"; known are: imagenet, imagenet-a"));
    assert_non_null(strstr(err.message, "ucf101"));
    assert_int_equal(renyi_collection_find("", &c, &err), RENYI_ERR_ARG);
}

static void test_imagenet_names(void **state)
{
    (void)state;
    assert_string_equal(renyi_imagenet_name(0), "tench, Tinca tinca");
    assert_string_equal(renyi_imagenet_name(999), "toilet tissue, toilet paper, bathroom tissue");
    assert_null(renyi_imagenet_name(1000));
    assert_string_equal(renyi_imagenet_clip_name(0), "tench");
    assert_string_equal(renyi_imagenet_clip_name(134), "crane bird");
    assert_string_equal(renyi_imagenet_clip_name(517), "construction crane");
    assert_string_equal(renyi_imagenet_clip_name(999), "toilet paper");
    assert_null(renyi_imagenet_clip_name(1000));
    for (uint32_t i = 0; i < 1000; i++) assert_true(*renyi_imagenet_clip_name(i));
}

/* ---- templates ----------------------------------------------------------------------------- */

static const char *put_file(const char *text, size_t n)
{
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_true(fwrite(text, 1, n, f) == n);
    fclose(f);
    return file;
}

static uint32_t count_of(const char *word)
{
    renyi_error err = {0};
    renyi_templates *t;
    uint32_t n;
    if (renyi_templates_open(&t, word, NULL, &err)) fail_msg("%s: %s", word, err.message);
    const char *const *texts = renyi_templates_texts(t, &n);
    for (uint32_t i = 0; i < n; i++) {
        const char *place = strstr(texts[i], "{}");
        assert_true(place && !strstr(place + 2, "{}"));
        for (uint32_t j = 0; j < i; j++) assert_string_not_equal(texts[i], texts[j]);
    }
    assert_string_equal(renyi_templates_name(t), word);
    renyi_templates_free(t);
    return n;
}

static void test_lists(void **state)
{
    static const struct {
        const char *name;
        uint32_t count;
    } lists[] = {{"imagenet80", 80}, {"simple", 1},   {"caltech101", 34}, {"dtd", 8},
                 {"eurosat", 3},     {"aircraft", 2}, {"food101", 1},     {"flowers", 1},
                 {"pets", 1},        {"cars", 8},     {"sun397", 2},      {"ucf101", 48}};
    (void)state;
    assert_int_equal(renyi_templates_builtin_count(), sizeof lists / sizeof *lists);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        assert_int_equal(count_of(lists[i].name), lists[i].count);
    for (size_t i = 0; i < renyi_templates_builtin_count(); i++)
        assert_true(count_of(renyi_templates_builtin_name(i)) > 0);
    assert_null(renyi_templates_builtin_name(100));
    assert_int_equal(count_of("imagenet-r"), 80); /* by the name of the dataset */
    assert_int_equal(count_of("oxford_pets"), 1);
    assert_int_equal(count_of("  a {} on a table "), 1);
}

static void test_files(void **state)
{
    static const char good[] = "\xef\xbb\xbf# mine\r\na {}.\r\n\n  {} in the rain\nthe {}";
    renyi_templates *t;
    uint32_t n;
    (void)state;
    assert_int_equal(renyi_templates_open(&t, put_file(good, sizeof good - 1), NULL, NULL),
                     RENYI_OK);
    const char *const *texts = renyi_templates_texts(t, &n);
    assert_int_equal(n, 3);
    assert_string_equal(texts[0], "a {}.");
    assert_string_equal(texts[1], "{} in the rain");
    assert_string_equal(texts[2], "the {}");
    renyi_templates_free(t);
}

static void open_bad(const char *word, const char *part)
{
    renyi_error err = {0};
    renyi_templates *t;
    if (renyi_templates_open(&t, word, NULL, &err) == RENYI_OK) fail_msg("opened: %s", word);
    assert_null(t);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
    assert_null(strchr(err.message, '\n'));
}

static void bad_file(const char *text, size_t n, const char *part)
{
    open_bad(put_file(text, n), part);
}
#define BAD(text, part) bad_file(text, sizeof text - 1, part)

static void test_bad_templates(void **state)
{
    char many[6 * 1001 + 1] = "", lengthy[1200];
    (void)state;
    BAD("a {}\na photo\n", ":2: template \"a photo\" has no {}");
    BAD("a {} and a {}\n", ":1: template \"a {} and a {}\" has more than one {}");
    BAD("a {name}\n", "has no {}");
    BAD("", "no templates in this file");
    BAD("# only a remark\n\n", "no templates in this file");
    BAD("a {}\0\n", "a zero byte");
    memset(lengthy, 'x', sizeof lengthy);
    memcpy(lengthy, "a {} ", 5);
    bad_file(lengthy, sizeof lengthy, ":1: a template of 1200 bytes");
    lengthy[sizeof lengthy - 1] = 0;
    open_bad(lengthy, "a template of 1199 bytes");
    for (int i = 0; i < 1001; i++) snprintf(many + 6 * i, 7, "{} %02d\n", i % 100);
    bad_file(many, 6 * 1001, ":1001: more than 1000 templates");
    open_bad("{} {}", "more than one {}");
    open_bad("a photo of a dog", "not a file, not a sentence with {}, and not one of the lists");
    open_bad("imagenet8O", "imagenet80, simple");
    open_bad("", "not one of the lists");
    open_bad("/tmp", "/tmp: not a regular file");
    assert_int_equal(renyi_templates_open(NULL, "simple", NULL, NULL), RENYI_ERR_ARG);
}

static void test_no_memory(void **state)
{
    renyi_status st;
    size_t fail_at = 1;
    (void)state;
    do {
        test_heap heap = {.fail_at = fail_at++, .fail_on = 1};
        const renyi_options o = {.struct_size = sizeof o, .allocator = test_heap_of(&heap)};
        renyi_templates *t;
        st = renyi_templates_open(&t, "imagenet80", &o, NULL);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        renyi_templates_free(t);
        assert_int_equal(heap.live, 0);
    } while (st);
    assert_true(fail_at > 3);
}

static int set_up(void **state)
{
    (void)state;
    const int fd = mkstemp(file);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),          cmocka_unit_test(test_facts),
        cmocka_unit_test(test_imagenet_names), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_files),          cmocka_unit_test(test_bad_templates),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
