/* test_output_file.c - src/base/output_file.c: a file is complete or as it was; leftovers, links,
 * pipes, full disks, short memory.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/folder.h"
#include "base/output_file.h"

#include "fixtures/test_folder.h"
#include "fixtures/test_heap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void expect_text(const char *name, const char *wanted)
{
    char *text = read_all(at(name));
    assert_string_equal(text, wanted);
    free(text);
}

static size_t count_files(const char *folder)
{
    ry_folder list;
    assert_int_equal(ry_folder_read(&list, at(folder), NULL, NULL), RENYI_OK);
    const size_t n = list.count;
    ry_folder_free(&list);
    return n;
}

static renyi_status write_text(const char *path, const char *text, const renyi_allocator *al,
                               renyi_error *err)
{
    ry_output_file f;
    const renyi_status st = ry_output_file_open(&f, path, al, err);
    if (st) return st;
    return ry_output_file_close(&f, ry_output_file_write(&f, text, strlen(text), err), al, err);
}

static void test_complete_or_old(void **state)
{
    (void)state;
    ry_output_file f;
    renyi_error err = {0};
    put("a/file", "old");
    assert_int_equal(chmod(at("a/file"), 0600), 0);
    assert_int_equal(ry_output_file_open(&f, at("a/file"), NULL, &err), RENYI_OK);
    assert_int_equal(ry_output_file_write(&f, "new", 3, &err), RENYI_OK);
    expect_text("a/file", "old"); /* until it is complete */
    assert_int_equal(count_files("a"), 2);
    assert_int_equal(ry_output_file_close(&f, RENYI_ERR_ABORTED, NULL, &err), RENYI_ERR_ABORTED);
    expect_text("a/file", "old");
    assert_int_equal(count_files("a"), 1);

    struct stat st;
    assert_int_equal(write_text(at("a/file"), "newer", NULL, &err), RENYI_OK);
    expect_text("a/file", "newer");
    assert_int_equal(count_files("a"), 1);
    assert_int_equal(stat(at("a/file"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600); /* a private file stays private */
    assert_int_equal(write_text(at("no/such"), "x", NULL, &err), RENYI_ERR_IO);
    assert_non_null(strstr(err.message, "no/such: cannot create a file in its folder"));
    assert_int_equal(write_text(at("a"), "x", NULL, &err), RENYI_ERR_IO);
    assert_non_null(strstr(err.message, "not a regular file"));
}

/* A size limit acts like a full disk. */
static void test_full_disk(void **state)
{
    (void)state;
    struct rlimit old, small;
    renyi_error err = {0};
    put("full/file", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const renyi_status st = write_text(at("full/file"), "longer than four", NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(st, RENYI_ERR_IO);
    assert_non_null(strstr(err.message, "cannot write after 4 bytes"));
    expect_text("full/file", "old");
    assert_int_equal(count_files("full"), 1);
}

/* A link at the name is replaced; a link at a temporary name is not followed. */
static void test_links(void **state)
{
    (void)state;
    ry_output_file f;
    renyi_error err = {0};
    struct stat st;
    put("links/victim", "mine");
    assert_int_equal(symlink("victim", at("links/file")), 0);
    assert_int_equal(write_text(at("links/file"), "x", NULL, &err), RENYI_OK);
    expect_text("links/victim", "mine");
    assert_int_equal(lstat(at("links/file"), &st), 0);
    assert_true(S_ISREG(st.st_mode));

    assert_int_equal(ry_output_file_open(&f, at("links/next"), NULL, &err), RENYI_OK);
    char temp[512];
    snprintf(temp, sizeof temp, "%s", f.temp);
    assert_int_equal(ry_output_file_close(&f, RENYI_ERR_ABORTED, NULL, &err), RENYI_ERR_ABORTED);
    assert_int_equal(symlink("victim", temp), 0); /* planted where the next file would be */
    assert_int_equal(symlink("victim", at("links/next.part")), 0);
    assert_int_equal(write_text(at("links/next"), "x", NULL, &err), RENYI_OK);
    expect_text("links/victim", "mine");
    expect_text("links/next", "x");
}

/* A child begins to write and is killed. *temp: what it leaves. */
static void leave_behind(const char *path, char temp[512])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        ry_output_file f;
        char name[512] = "";
        if (!ry_output_file_open(&f, path, NULL, NULL)) snprintf(name, sizeof name, "%s", f.temp);
        if (write(ends[1], name, sizeof name) != sizeof name) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ends[0], temp, 512), 512);
    assert_int_equal(access(temp, F_OK), 0);
    /* while it is alive its file is not taken for a leftover */
    renyi_error err = {0};
    assert_int_equal(write_text(path, "x", NULL, &err), RENYI_OK);
    assert_int_equal(access(temp, F_OK), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
}

static void test_leftovers(void **state)
{
    (void)state;
    char temp[512], other[600];
    renyi_error err = {0};
    put("left/keep", "x");
    leave_behind(at("left/file"), temp);
    assert_int_equal(access(temp, F_OK), 0);
    assert_int_equal(write_text(at("left/fil"), "x", NULL, &err), RENYI_OK); /* another name */
    assert_int_equal(access(temp, F_OK), 0);
    /* the same of another host, and other files that look similar, stay */
    snprintf(other, sizeof other, "%s", at("left/file.00000000-1-0.tmp"));
    put("left/file.00000000-1-0.tmp", "x");
    put("left/file.tmp", "x");
    put("left/file.99-0.tmp", "x");
    const size_t before = count_files("left");
    assert_int_equal(write_text(at("left/file"), "x", NULL, &err), RENYI_OK);
    assert_int_equal(access(temp, F_OK), -1);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(count_files("left"), before - 1);
}

static void test_straight(void **state)
{
    (void)state;
    renyi_error err = {0};
    struct stat st;
    put("pipes/x", "");
    assert_int_equal(write_text("/dev/null", "x", NULL, &err), RENYI_OK);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(write_text("/dev/full", "x", NULL, &err), RENYI_ERR_IO);
    assert_null(strstr(err.message, "left behind"));
    assert_int_equal(mkfifo(at("pipes/fifo"), 0600), 0);
    const int end = open(at("pipes/fifo"), O_RDONLY | O_NONBLOCK);
    assert_true(end >= 0);
    char text[8] = "";
    assert_int_equal(write_text(at("pipes/fifo"), "told", NULL, &err), RENYI_OK);
    assert_int_equal(read(end, text, sizeof text), 4);
    assert_string_equal(text, "told");
    close(end);
}

static void test_no_memory(void **state)
{
    (void)state;
    char temp[512];
    put("memory/file", "old");
    for (size_t n = 1;; n++) {
        test_heap heap = {.fail_at = n};
        const renyi_allocator al = test_heap_of(&heap);
        renyi_error err = {0};
        leave_behind(at("memory/left"), temp);
        const renyi_status st = write_text(at("memory/left"), "new", &al, &err);
        assert_int_equal(heap.live, 0);
        if (heap.calls < n) {
            assert_int_equal(st, RENYI_OK);
            assert_true(n > 3);
            break;
        }
        assert_int_equal(st, RENYI_ERR_NOMEM);
    }
}

static void test_public(void **state)
{
    (void)state;
    renyi_output_file *out = NULL;
    renyi_error err = {0};
    put("public/file", "old");
    assert_int_equal(renyi_output_file_open(NULL, "x", &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_output_file_open(&out, at("no/such"), &err), RENYI_ERR_IO);
    assert_null(out);
    assert_int_equal(renyi_output_file_close(NULL, 1, &err), RENYI_OK);
    for (int is_complete = 0; is_complete < 2; is_complete++) {
        char path[512]; /* only needed for the call */
        snprintf(path, sizeof path, "%s", at("public/file"));
        assert_int_equal(renyi_output_file_open(&out, path, &err), RENYI_OK);
        memset(path, 0, sizeof path);
        assert_int_equal(renyi_output_file_write(out, "ne", 2, &err), RENYI_OK);
        assert_int_equal(renyi_output_file_write(out, "w", 1, &err), RENYI_OK);
        assert_int_equal(renyi_output_file_write(out, NULL, 1, &err), RENYI_ERR_ARG);
        assert_int_equal(renyi_output_file_close(out, is_complete, &err), RENYI_OK);
        expect_text("public/file", is_complete ? "new" : "old");
        assert_int_equal(count_files("public"), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete_or_old), cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_links),           cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_straight),        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_public),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
