/* test_base_json.c - JSON limits, messages with line and column, typed members.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

static json_t *parse_json(const char *text)
{
    renyi_error err;
    json_t *j = NULL;
    if (ry_json_parse(&j, text, strlen(text), "t.json", NULL, &err)) fail_msg("%s", err.message);
    return j;
}

static void expect_bad(const char *text, size_t size, const ry_json_limits *limits,
                       renyi_status code, const char *needle)
{
    renyi_error err = {RENYI_OK, 0, ""};
    json_t *j = (json_t *)&err;
    assert_int_equal(ry_json_parse(&j, text, size, "t.json", limits, &err), code);
    assert_null(j);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.message, "t.json"));
    if (!strstr(err.message, needle)) fail_msg("'%s' lacks '%s'", err.message, needle);
}

static void expect_format_error(const char *text, const char *needle)
{
    expect_bad(text, strlen(text), NULL, RENYI_ERR_FORMAT, needle);
}

static void test_syntax(void **state)
{
    (void)state;
    expect_format_error("{\n \"a\": 1,\n \"b\" 2}", "line 3, column");
    expect_format_error("{\"a\": 1, \"a\": 2}", "duplicate");
    expect_format_error("{\"a\": 1} x", "end of file");
    expect_format_error("{\"a\": \"\xff\xfe\"}", "unable to decode byte 0xff");
    expect_format_error("{\"a\": 1e999}", "overflow");
    expect_format_error("{\"a\": \"\\u0000\"}", "line 1");
    expect_format_error("", "line 1");
    expect_format_error("{\"a\": \"never ends", "line 1");
    expect_format_error("]]]]", "line 1");
    json_decref(parse_json("{\"a\": [1, 2.5, \"]]]][[[[\", {\"b\": null}]}"));
}

static void test_bombs(void **state)
{
    (void)state;
    static char deep[200001], wide[200001];
    memset(deep, '[', sizeof deep - 1);
    expect_bad(deep, sizeof deep - 1, NULL, RENYI_ERR_LIMIT, "deeper than 32");
    for (size_t i = 0; i + 1 < sizeof wide; i += 2) memcpy(wide + i, "0,", 2);
    wide[0] = '[';
    const ry_json_limits few = {0, 1000, 0}, short_text = {16, 0, 0};
    expect_bad(wide, sizeof wide - 1, &few, RENYI_ERR_LIMIT, "at most 1000");
    expect_bad(wide, sizeof wide - 1, &short_text, RENYI_ERR_LIMIT, "200000 bytes; at most 16");

    /* exactly at the limit is fine, one more is not */
    char nested[128];
    memset(nested, '[', 33), memset(nested + 33, ']', 33);
    expect_bad(nested, 66, NULL, RENYI_ERR_LIMIT, "byte 32");
    json_t *j;
    assert_int_equal(ry_json_parse(&j, nested + 1, 64, "t.json", NULL, NULL), RENYI_OK);
    json_decref(j);
}

static void test_members(void **state)
{
    (void)state;
    renyi_error err;
    json_t *j = parse_json(
        "{\"n\": 7, \"x\": 2, \"s\": \"hi\", \"b\": true, \"m\": [0.5, 1, 2], \"z\": null, "
        "\"neg\": -1, \"big\": 4294967296, \"o\": {\"n\": 9}}");
    uint32_t n = 5;
    double x = 0, m[3] = {9, 9, 9};
    const char *s = "default";
    int b = 0;

    assert_int_equal(ry_json_uint(j, "n", &n, "c.json", &err), RENYI_OK);
    assert_int_equal(n, 7);
    assert_int_equal(ry_json_uint(j, "absent", &n, "c.json", &err), RENYI_OK);
    assert_int_equal(ry_json_uint(j, "z", &n, "c.json", &err), RENYI_OK);
    assert_int_equal(ry_json_uint(NULL, "n", &n, "c.json", &err), RENYI_OK);
    assert_int_equal(n, 7);
    assert_int_equal(ry_json_double(j, "x", &x, "c.json", &err), RENYI_OK);
    assert_true(x == 2.0);
    assert_int_equal(ry_json_string(j, "s", &s, "c.json", &err), RENYI_OK);
    assert_string_equal(s, "hi");
    assert_int_equal(ry_json_bool(j, "b", &b, "c.json", &err), RENYI_OK);
    assert_int_equal(b, 1);
    assert_int_equal(ry_json_double3(j, "m", m, "c.json", &err), RENYI_OK);
    assert_true(m[0] == 0.5 && m[1] == 1.0 && m[2] == 2.0);
    assert_non_null(ry_json_object(j, "o"));
    assert_null(ry_json_object(j, "n"));
    assert_null(ry_json_object(NULL, "n"));

    assert_int_equal(ry_json_uint(j, "s", &n, "c.json", &err), RENYI_ERR_FORMAT);
    assert_string_equal(err.message, "c.json: \"s\" is a string; a whole number expected");
    assert_int_equal(ry_json_uint(j, "neg", &n, "c.json", &err), RENYI_ERR_FORMAT);
    assert_int_equal(ry_json_uint(j, "big", &n, "c.json", &err), RENYI_ERR_FORMAT);
    assert_non_null(strstr(err.message, "4294967296"));
    assert_int_equal(ry_json_double(j, "b", &x, "c.json", &err), RENYI_ERR_FORMAT);
    assert_int_equal(ry_json_string(j, "n", &s, "c.json", &err), RENYI_ERR_FORMAT);
    assert_int_equal(ry_json_bool(j, "n", &b, "c.json", &err), RENYI_ERR_FORMAT);
    assert_int_equal(ry_json_double3(j, "n", m, "c.json", &err), RENYI_ERR_FORMAT);
    assert_int_equal(n, 7);
    json_decref(j);

    j = parse_json("{\"two\": [1, 2], \"odd\": [1, \"a\", 3]}");
    assert_int_equal(ry_json_double3(j, "two", m, "c.json", &err), RENYI_ERR_FORMAT);
    assert_non_null(strstr(err.message, "\"two\" has 2 elements"));
    assert_int_equal(ry_json_double3(j, "odd", m, "c.json", &err), RENYI_ERR_FORMAT);
    assert_true(m[0] == 0.5);
    json_decref(j);
}

static void test_file(void **state)
{
    (void)state;
    renyi_error err;
    json_t *j;
    const char *path = RENYI_BINARY_DIR "/test_base_json.tmp";
    assert_int_equal(ry_json_load_file(&j, "/no/such/file.json", NULL, &err), RENYI_ERR_IO);
    assert_non_null(strstr(err.message, "/no/such/file.json"));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(ry_json_load_file(&j, path, NULL, &err), RENYI_ERR_FORMAT);
    assert_non_null(strstr(err.message, "empty"));
    f = fopen(path, "wb");
    fputs("{\"a\": 1}\n", f);
    fclose(f);
    assert_int_equal(ry_json_load_file(&j, path, NULL, &err), RENYI_OK);
    json_decref(j);
    const renyi_limits tiny = {0, 4, 0, 0, 0};
    assert_int_equal(ry_json_load_file(&j, path, &tiny, &err), RENYI_ERR_LIMIT);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
