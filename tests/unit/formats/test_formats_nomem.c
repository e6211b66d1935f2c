/* test_formats_nomem.c - every allocation of every reader and of the writer fails once: the call
 * reports it, leaks nothing, and the next call works. Also for the allocations of jansson.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/formats_build.h"
#include "fixtures/test_heap.h"

#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "formats/torch/torch_zip.h"

#define FILES RENYI_SOURCE_DIR "/tests/formats/"
#define FOLDER RENYI_BINARY_DIR "/test_formats_nomem.tmp"

/* ---- a heap for jansson -------------------------------------------------------------------- */

static struct json_heap {
    long left, live, failures;
} json_heap;

static void *json_alloc(size_t size)
{
    if (json_heap.left-- <= 0) {
        json_heap.failures++;
        return NULL;
    }
    json_heap.live++;
    return malloc(size ? size : 1);
}

static void json_release(void *p)
{
    if (p) json_heap.live--;
    free(p);
}

/* ---- attempts ------------------------------------------------------------------------------ */

typedef renyi_status (*attempt)(const renyi_allocator *al, renyi_error *err);

static renyi_status read_safetensors(const renyi_allocator *al, renyi_error *err)
{
    ry_tensors *set;
    const renyi_status st = ry_safetensors_open(&set, FOLDER "/s-1.safetensors", NULL, al, err);
    ry_tensors_free(set);
    return st;
}

static renyi_status read_torch(const renyi_allocator *al, renyi_error *err)
{
    ry_tensors *set;
    renyi_status st = ry_torch_open(&set, FILES "views.pth", NULL, al, err);
    ry_tensors_free(set);
    if (st) return st;
    st = ry_torch_open(&set, FILES "training.pth", NULL, al, err);
    ry_tensors_free(set);
    return st;
}

static renyi_status read_folder(const renyi_allocator *al, renyi_error *err)
{
    ry_checkpoint c;
    const renyi_status st = ry_checkpoint_open(&c, FOLDER, NULL, al, err);
    ry_checkpoint_close(&c, al);
    return st;
}

/* A folder with one .pth of any name. */
static renyi_status read_single(const renyi_allocator *al, renyi_error *err)
{
    ry_checkpoint c;
    const renyi_status st = ry_checkpoint_open(&c, FOLDER "/single", NULL, al, err);
    ry_checkpoint_close(&c, al);
    return st;
}

static renyi_status read_gguf(const renyi_allocator *al, renyi_error *err)
{
    ry_checkpoint c;
    const char *path = RENYI_SOURCE_DIR "/tests/gguf/types.gguf";
    const renyi_status st = ry_checkpoint_open(&c, path, NULL, al, err);
    ry_checkpoint_close(&c, al);
    return st;
}

static renyi_status fill_zero(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                              renyi_error *err)
{
    (void)user, (void)t, (void)at, (void)err;
    memset(out, 0, n);
    return RENYI_OK;
}

static renyi_status write_model(const renyi_allocator *al, renyi_error *err)
{
    static const char *const meta[] = {"format", "pt", NULL};
    const ry_tensor t[] = {{"a", RY_F32, 2, {3, 4}, NULL, 0}, {"b", RY_F16, 1, {5}, NULL, 0}};
    const ry_safetensors_content content = {t, 2, meta, fill_zero, NULL};
    return ry_safetensors_write(FOLDER "/out.safetensors", &content, al, err);
}

/* ---- sweeps -------------------------------------------------------------------------------- */

static void sweep_library(attempt try)
{
    for (long n = 0;; n++) {
        test_heap heap = {.fail_at = (size_t)n + 1, .fail_on = 1};
        const renyi_allocator al = test_heap_of(&heap);
        renyi_error err = {RENYI_OK, 0, ""};
        json_heap = (struct json_heap){1000000, 0, 0};
        const renyi_status st = try(&al, &err);
        assert_int_equal(heap.live, 0);
        assert_int_equal(json_heap.live, 0);
        if (heap.calls < heap.fail_at) {
            assert_int_equal(st, RENYI_OK);
            assert_true(n > 0);
            return;
        }
        assert_int_equal(st, RENYI_ERR_NOMEM);
        expect_message(&err, "out of memory");
    }
}

/* Jansson reports some of them as other errors, so only the failure is checked. */
static void sweep_jansson(attempt try)
{
    for (long n = 0;; n++) {
        test_heap heap = {0};
        const renyi_allocator al = test_heap_of(&heap);
        renyi_error err = {RENYI_OK, 0, ""};
        json_heap = (struct json_heap){n, 0, 0};
        const renyi_status st = try(&al, &err);
        assert_int_equal(heap.live, 0);
        assert_int_equal(json_heap.live, 0);
        if (!json_heap.failures) {
            assert_int_equal(st, RENYI_OK);
            return;
        }
        assert_int_not_equal(st, RENYI_OK);
        assert_true(err.message[0] != 0);
    }
}

static void test_safetensors(void **state)
{
    (void)state;
    sweep_library(read_safetensors);
    sweep_jansson(read_safetensors);
}

static void test_torch(void **state)
{
    (void)state;
    sweep_library(read_torch);
}

static void test_folder(void **state)
{
    (void)state;
    sweep_library(read_single);
    sweep_library(read_folder);
    sweep_jansson(read_folder);
}

static void test_gguf(void **state)
{
    (void)state;
    sweep_library(read_gguf);
    sweep_jansson(read_gguf);
}

static void test_writer(void **state)
{
    (void)state;
    sweep_library(write_model);
    sweep_jansson(write_model);
    assert_int_equal(remove(FOLDER "/out.safetensors"), 0);
    assert_int_not_equal(system("ls '" FOLDER "' | grep -q tmp"), 0); /* no half-written file */
}

/* Two shards and both configs. */
static int make_folder(void **state)
{
    static const char index[] =
        "{\"weight_map\": {\"a\": \"s-1.safetensors\", \"b\": \"s-2.safetensors\"}}";
    static const char *const meta[] = {"format", "pt", NULL};
    const float value[2] = {1, 2};
    (void)state;
    if (system("rm -rf '" FOLDER "' && mkdir -p '" FOLDER "/single'")) return 1;
    if (system("cp '" FILES "module_state.pth' '" FOLDER "/single/'")) return 1;
    for (int i = 0; i < 2; i++) {
        const ry_tensor t = {i ? "b" : "a", RY_F32, 2, {2, 1}, value, 0};
        const ry_safetensors_content content = {&t, 1, meta, NULL, NULL};
        const char *path = i ? FOLDER "/s-2.safetensors" : FOLDER "/s-1.safetensors";
        if (ry_safetensors_write(path, &content, NULL, NULL)) return 1;
    }
    write_file(FOLDER "/model.safetensors.index.json", index, strlen(index));
    write_file(FOLDER "/config.json", "{\"x\": [1, 2.5, \"s\"]}", 20);
    write_file(FOLDER "/preprocessor_config.json", "{\"x\": {}}", 9);
    json_set_alloc_funcs(json_alloc, json_release);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return system("rm -rf '" FOLDER "'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors), cmocka_unit_test(test_torch),
        cmocka_unit_test(test_folder),      cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_writer),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
