/* test_folder_walk.c - src/base/folder.c: kinds and order of entries; a walk reads each folder
 * once, goes on after one that cannot be read, and ends in circles of links.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/folder.h"

#include "base/status.h"
#include "fixtures/test_folder.h"
#include "fixtures/test_heap.h"

/* What a walk reported, one word per entry. */
typedef struct record {
    char text[4096];
} record;

static void append(record *r, const char *mark, const char *word)
{
    const size_t n = strlen(r->text);
    snprintf(r->text + n, sizeof r->text - n, "%s%s ", mark, word);
}

static renyi_status on_entry(void *user, const char *below, ry_entry_kind kind, renyi_error *err)
{
    (void)err;
    append(user, kind == RY_ENTRY_OTHER ? "?" : "", below);
    return RENYI_OK;
}

static void on_failure(void *user, const char *path, const char *reason)
{
    append(user, "!", path + strlen(root) + 1);
    append(user, "", reason);
}

static void expect_walk(const char *folder, const char *below, int is_flat, const char *wanted)
{
    record r = {""};
    renyi_error err = {0};
    char top[512];
    snprintf(top, sizeof top, "%s", at(folder));
    const ry_walk w = {.root = top,
                       .is_flat = is_flat,
                       .user = &r,
                       .on_entry = on_entry,
                       .on_failure = on_failure};
    if (ry_walk_files(&w, below, &err)) fail_msg("%s", err.message);
    assert_string_equal(r.text, wanted);
}

static void test_entries(void **state)
{
    (void)state;
    ry_folder list;
    renyi_error err = {0};
    put("kinds/b", "");
    put("kinds/.hidden", "");
    put("kinds/a/x", "");
    assert_int_equal(mkfifo(at("kinds/pipe"), 0600), 0);
    assert_int_equal(symlink("nothing", at("kinds/broken")), 0);
    assert_int_equal(symlink("b", at("kinds/to-file")), 0);
    assert_int_equal(symlink("a", at("kinds/to-folder")), 0);
    assert_int_equal(ry_folder_read(&list, at("kinds"), NULL, &err), RENYI_OK);
    const ry_entry wanted[] = {{".hidden", RY_ENTRY_FILE},    {"a", RY_ENTRY_FOLDER},
                               {"b", RY_ENTRY_FILE},          {"broken", RY_ENTRY_OTHER},
                               {"pipe", RY_ENTRY_OTHER},      {"to-file", RY_ENTRY_FILE},
                               {"to-folder", RY_ENTRY_FOLDER}};
    assert_int_equal(list.count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_string_equal(list.items[i].name, wanted[i].name);
        assert_int_equal(list.items[i].kind, wanted[i].kind);
    }
    ry_folder_free(&list);
    assert_int_equal(ry_folder_read(&list, at("absent"), NULL, &err), RENYI_ERR_IO);
    assert_non_null(strstr(err.message, "absent: No such file"));
    assert_int_equal(ry_folder_read(&list, at("kinds/b"), NULL, &err), RENYI_ERR_IO);
}

static int on_file(void *user, const char *name)
{
    append(user, "", name);
    return strcmp(name, "stop") == 0;
}

static void test_visit(void **state)
{
    (void)state;
    record r = {""};
    renyi_error err = {0};
    put("visit/b", "");
    put("visit/.a", "");
    put("visit/c/x", "");
    assert_int_equal(mkfifo(at("visit/pipe"), 0600), 0);
    assert_int_equal(renyi_visit_files(at("visit"), on_file, &r, &err), RENYI_OK);
    assert_string_equal(r.text, ".a b ");
    put("visit/stop", "");
    put("visit/z", "");
    r.text[0] = 0;
    assert_int_equal(renyi_visit_files(at("visit"), on_file, &r, &err), RENYI_ERR_ABORTED);
    assert_string_equal(r.text, ".a b stop ");
    assert_int_equal(renyi_visit_files(at("absent"), on_file, &r, &err), RENYI_ERR_IO);
    assert_int_equal(renyi_visit_files(NULL, on_file, &r, &err), RENYI_ERR_ARG);
}

static void test_order(void **state)
{
    (void)state;
    put("order/b.jpg", "");
    put("order/a/2", "");
    put("order/a/1/z", "");
    put("order/a.jpg", "");
    put("order/c/.x/y", "");
    assert_int_equal(mkfifo(at("order/p"), 0600), 0);
    expect_walk("order", "", 0, "a/1/z a/2 a.jpg b.jpg ?p ");
    expect_walk("order/", "", 1, "a.jpg b.jpg ?p ");
    expect_walk("order", "a", 0, "a/1/z a/2 ");
    expect_walk("order", "c", 0, "");
}

static void test_circles(void **state)
{
    (void)state;
    put("circle/a/one", "");
    put("circle/b/two", "");
    assert_int_equal(symlink("..", at("circle/a/up")), 0);
    assert_int_equal(symlink("../b", at("circle/a/zb")), 0);
    assert_int_equal(symlink(".", at("circle/b/self")), 0);
    assert_int_equal(symlink("a", at("circle/c")), 0);
    /* b is read under its first name, a/zb, and once */
    expect_walk("circle", "", 0, "a/one a/zb/two ");
    expect_walk("circle", "c", 0, "c/one c/zb/two "); /* a folder that is named, by its link */
    expect_walk("circle", "a/up", 0, "");             /* the root */
}

static void test_many_folders(void **state)
{
    (void)state;
    record r = {""};
    char name[64];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "many/%03d/x", i);
        put(name, "");
        snprintf(name, sizeof name, "many/%03d/up", i);
        assert_int_equal(symlink("..", at(name)), 0);
    }
    char top[512];
    snprintf(top, sizeof top, "%s", at("many"));
    const ry_walk w = {.root = top, .user = &r, .on_entry = on_entry};
    assert_int_equal(ry_walk_files(&w, "", NULL), RENYI_OK);
    size_t n = 0;
    for (const char *c = r.text; *c; c++) n += *c == ' ';
    assert_int_equal(n, 100);
}

static void test_failures(void **state)
{
    (void)state;
    renyi_error err = {0};
    char path[512] = "deep";
    for (size_t i = 0; i < RY_WALK_DEPTH; i++) strcat(path, "/d");
    strcat(path, "/x");
    put(path, "");
    put("deep/e", "");
    path[strlen(path) - 2] = 0;
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "!%s folders nested deeper than %d e ", path, RY_WALK_DEPTH);
    expect_walk("deep", "", 0, wanted); /* the walk goes on */
    record r = {""};
    char top[512];
    snprintf(top, sizeof top, "%s", at("deep"));
    ry_walk w = {.root = top, .user = &r, .on_entry = on_entry};
    assert_int_equal(ry_walk_files(&w, "", &err), RENYI_ERR_LIMIT); /* without on_failure */
    assert_non_null(strstr(err.message, "nested deeper"));
    w.on_failure = on_failure;
    w.root = "/no/such/folder"; /* what the caller named is never only reported */
    assert_int_equal(ry_walk_files(&w, "", &err), RENYI_ERR_IO);
    assert_non_null(strstr(err.message, "/no/such/folder: "));
}

static void test_unreadable(void **state)
{
    (void)state;
    if (!geteuid()) {
        print_message("root reads every folder: tests/cli/classify.sh does this as another user\n");
        skip();
    }
    put("closed/a/1", "");
    put("closed/b/2", "");
    put("closed/c/3", "");
    assert_int_equal(chmod(at("closed/b"), 0), 0);
    expect_walk("closed", "", 0, "a/1 !closed/b Permission denied c/3 ");
    assert_int_equal(chmod(at("closed/b"), 0700), 0);
}

static void test_no_memory(void **state)
{
    (void)state;
    char top[512];
    put("memory/a/b", "");
    put("memory/c", "");
    snprintf(top, sizeof top, "%s", at("memory"));
    for (size_t n = 1;; n++) {
        test_heap heap = {.fail_at = n};
        const renyi_allocator al = test_heap_of(&heap);
        record r = {""};
        renyi_error err = {0};
        const ry_walk w = {
            .al = &al, .root = top, .user = &r, .on_entry = on_entry, .on_failure = on_failure};
        const renyi_status st = ry_walk_files(&w, "", &err);
        assert_int_equal(heap.live, 0);
        if (heap.calls < n) {
            assert_string_equal(r.text, "a/b c ");
            break;
        }
        assert_int_equal(st, RENYI_ERR_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),      cmocka_unit_test(test_visit),
        cmocka_unit_test(test_order),        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_many_folders), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_unreadable),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
