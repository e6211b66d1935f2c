/* test_formats_checkpoint.c - from a path to weights and configs: folders, shards, files of other
 * formats.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/formats_build.h"

#include "fixtures/shared_files.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"

#include <sys/stat.h>

#define FOLDER RENYI_BINARY_DIR "/test_formats_checkpoint.tmp"

static int fresh_folder(void **state)
{
    (void)state;
    return system("rm -rf '" FOLDER "' && mkdir -p '" FOLDER "'");
}

static int remove_folder(void **state)
{
    (void)state;
    return system("rm -rf '" FOLDER "'");
}

static void put_text(const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, FOLDER "/%s", name);
    write_file(path, text, strlen(text));
}

/* A safetensors file with one float tensor. */
static void put_model(const char *name, const char *tensor)
{
    char path[4096];
    const float value = 1;
    const ry_tensor t = {tensor, RY_F32, 1, {1}, &value, 0};
    const ry_safetensors_content content = {&t, 1, NULL, NULL, NULL};
    snprintf(path, sizeof path, FOLDER "/%s", name);
    assert_int_equal(ry_safetensors_write(path, &content, NULL, NULL), RENYI_OK);
}

static void expect_open(const char *path, const char *tensor, const char *tensors_path)
{
    renyi_error err;
    ry_checkpoint c;
    if (ry_checkpoint_open(&c, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    assert_non_null(ry_tensors_find(c.tensors, tensor));
    if (tensors_path) assert_string_equal(c.tensors_path, tensors_path);
    ry_checkpoint_close(&c, NULL);
    ry_checkpoint_close(&c, NULL); /* a zeroed one is allowed */
}

static void refuse(const char *path, renyi_status code, const char *needle)
{
    renyi_error err = {RENYI_OK, 0, ""};
    ry_checkpoint c;
    const renyi_status st = ry_checkpoint_open(&c, path, NULL, NULL, &err);
    if (st != code) fail_msg("status %d instead of %d: %s", st, code, err.message);
    assert_null(c.tensors);
    expect_message(&err, path);
    expect_message(&err, needle);
}

/* ---- single files and folders -------------------------------------------------------------- */

static void test_folders(void **state)
{
    (void)state;
    refuse(FOLDER, RENYI_ERR_IO, "looked for model.safetensors");
    put_text("readme.txt", "x");
    refuse(FOLDER, RENYI_ERR_IO, "(0 such files)");
    assert_int_equal(
        system("cp '" RENYI_SOURCE_DIR "/tests/formats/training.pth' '" FOLDER "/a.pth'"), 0);
    expect_open(FOLDER, "w", FOLDER "/a.pth");
    assert_int_equal(system("cp '" FOLDER "/a.pth' '" FOLDER "/b.bin'"), 0);
    refuse(FOLDER, RENYI_ERR_IO, "(2 such files)");
    put_model("odd_name.safetensors", "odd");
    expect_open(FOLDER, "odd", FOLDER "/odd_name.safetensors");
    put_model("second.safetensors", "odd");
    refuse(FOLDER, RENYI_ERR_IO, "(2 such files)");
    assert_int_equal(system("cp '" FOLDER "/a.pth' '" FOLDER "/pytorch_model.bin'"), 0);
    expect_open(FOLDER, "w", FOLDER "/pytorch_model.bin");
    put_model("model.safetensors", "usual");
    expect_open(FOLDER, "usual", FOLDER "/model.safetensors");
    expect_open(FOLDER "/", "usual", NULL);
    expect_open(FOLDER "/a.pth", "w", NULL);
    put_model("wrong_tail.pth", "s"); /* the bytes decide */
    expect_open(FOLDER "/wrong_tail.pth", "s", NULL);
}

static void test_configs(void **state)
{
    (void)state;
    renyi_error err;
    ry_checkpoint c;
    put_model("model.safetensors", "w");
    assert_int_equal(ry_checkpoint_open(&c, FOLDER, NULL, NULL, &err), RENYI_OK);
    assert_null(c.config);
    assert_null(c.preprocessor_config);
    ry_checkpoint_close(&c, NULL);
    put_text("config.json", "{\"architecture\": \"vit\"}");
    put_text("preprocessor_config.json", "{\"size\": 224}");
    assert_int_equal(ry_checkpoint_open(&c, FOLDER "/model.safetensors", NULL, NULL, &err),
                     RENYI_OK);
    assert_string_equal(json_string_value(json_object_get(c.config, "architecture")), "vit");
    assert_int_equal(json_integer_value(json_object_get(c.preprocessor_config, "size")), 224);
    ry_checkpoint_close(&c, NULL);
    remove(FOLDER "/preprocessor_config.json");
    put_text("processor_config.json", "{\"image_processor\": {\"size\": 96}}");
    assert_int_equal(ry_checkpoint_open(&c, FOLDER, NULL, NULL, &err), RENYI_OK);
    assert_int_equal(json_integer_value(json_object_get(c.preprocessor_config, "size")), 96);
    ry_checkpoint_close(&c, NULL);
    put_text("processor_config.json", "[7]");
    refuse(FOLDER, RENYI_ERR_FORMAT, "processor_config.json: a JSON object expected");
    remove(FOLDER "/processor_config.json");
    put_text("preprocessor_config.json", "[]");
    refuse(FOLDER, RENYI_ERR_FORMAT, "preprocessor_config.json: a JSON object expected");
    put_text("config.json", "{\"a\": 1,\n\"a\": 2}");
    refuse(FOLDER, RENYI_ERR_FORMAT, "config.json: line 2");
    put_text("config.json", "");
    refuse(FOLDER, RENYI_ERR_FORMAT, "config.json: the file is empty");
}

static void test_strangers(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        renyi_status code;
        const char *needle;
    } cases[] = {
        {"", 0, RENYI_ERR_FORMAT, "the file is empty"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", 60,
         RENYI_ERR_UNSUPPORTED, "this is a Git LFS pointer, not the file"},
        {"<!DOCTYPE html><html>", 21, RENYI_ERR_FORMAT, "a web page"},
        {"\n\n  <html>", 10, RENYI_ERR_FORMAT, "a web page"},
        {"GGUF\3\0\0\0", 8, RENYI_ERR_FORMAT, "byte 8: the number of tensors needs 8 bytes"},
        {"\x08\x08\x12\x07pytorch", 11, RENYI_ERR_UNSUPPORTED, "ONNX is not supported"},
        {"\x89HDF\r\n\x1a\n....", 12, RENYI_ERR_UNSUPPORTED, "HDF5"},
        {"\x93NUMPY\1\0", 8, RENYI_ERR_UNSUPPORTED, "NumPy"},
        {"\x80\x02}q\0.", 6, RENYI_ERR_UNSUPPORTED, "bare pickle"},
        {"\x1f\x8b\x08\0", 4, RENYI_ERR_UNSUPPORTED, "gzip"},
        {"\xff\xd8\xff\xe0", 4, RENYI_ERR_UNSUPPORTED, "JPEG"},
        {"hello", 5, RENYI_ERR_FORMAT, "not a model: it begins with 68 65 6c 6c 6f;"},
        {"{\"a\": 1}", 8, RENYI_ERR_FORMAT, "no \"weight_map\""},
        {"{]", 2, RENYI_ERR_FORMAT, "line 1"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, RENYI_ERR_LIMIT,
         "header of 18446744073709551615"},
        {"\7\0\0\0\0\0\0\0{}", 10, RENYI_ERR_FORMAT, "header of 7 bytes in a file with 2 left"},
        {"PK\3\4", 4, RENYI_ERR_FORMAT, "no end record"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(FOLDER "/model.bin", cases[i].bytes, cases[i].size);
        refuse(FOLDER "/model.bin", cases[i].code, cases[i].needle);
    }
    write_file(FOLDER "/x.safetensors", "garbage", 7); /* the name helps when the bytes do not */
    refuse(FOLDER "/x.safetensors", RENYI_ERR_FORMAT, "a safetensors file has at least 8");
    refuse(RENYI_SOURCE_DIR "/tests/formats/refused_legacy.pth", RENYI_ERR_UNSUPPORTED,
           "before 1.6");
    refuse("/dev/null", RENYI_ERR_IO, "not a regular file");
    refuse(FOLDER "/absent", RENYI_ERR_IO, "No such file");
    refuse("", RENYI_ERR_IO, "No such file");
    const renyi_limits tiny = {4, 0, 0, 0, 0};
    renyi_error err;
    ry_checkpoint c;
    assert_int_equal(ry_checkpoint_open(&c, FOLDER "/x.safetensors", &tiny, NULL, &err),
                     RENYI_ERR_LIMIT);
}

/* ---- shards -------------------------------------------------------------------------------- */

static const char good_index[] =
    "{\"metadata\": {\"total_size\": 8}, \"weight_map\": {\"a\": \"s-1.safetensors\","
    "\"b\": \"s-2.safetensors\"}}";

static void test_shards(void **state)
{
    (void)state;
    renyi_error err;
    ry_checkpoint c;
    put_model("s-1.safetensors", "a");
    put_model("s-2.safetensors", "b");
    put_text("model.safetensors.index.json", good_index);
    put_text("config.json", "{}");
    if (ry_checkpoint_open(&c, FOLDER, NULL, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(ry_tensors_count(c.tensors), 2);
    assert_non_null(c.config);
    const ry_tensor *b = ry_tensors_find(c.tensors, "b");
    ry_tensors_drop_pages(c.tensors, b);
    assert_true(*(const float *)b->data == 1.0f);
    ry_checkpoint_close(&c, NULL);
    expect_open(FOLDER "/model.safetensors.index.json", "a", NULL);

    assert_int_equal(fresh_folder(NULL), 0); /* shards that are PyTorch zips */
    assert_int_equal(
        system("cp '" RENYI_SOURCE_DIR "/tests/formats/training.pth' '" FOLDER "/part-1.bin'"), 0);
    put_text("pytorch_model.bin.index.json", "{\"weight_map\": {\"w\": \"part-1.bin\"}}");
    expect_open(FOLDER, "b", FOLDER "/pytorch_model.bin.index.json");
}

static void test_bad_shards(void **state)
{
    (void)state;
    const char *path = FOLDER "/model.safetensors.index.json";
    put_model("s-1.safetensors", "a");
    put_text("model.safetensors.index.json", good_index);
    renyi_error err;
    ry_checkpoint c;
    assert_int_equal(ry_checkpoint_open(&c, FOLDER, NULL, NULL, &err), RENYI_ERR_IO);
    expect_message(&err, "s-2.safetensors: No such file");
    put_model("s-2.safetensors", "other");
    refuse(path, RENYI_ERR_FORMAT, "tensor 'b' should be in 's-2.safetensors', but is not");
    put_text("model.safetensors.index.json",
             "{\"weight_map\": {\"a\": \"s-1.safetensors\", \"x\": \"s-3.safetensors\"}}");
    assert_int_equal(system("cp '" FOLDER "/s-1.safetensors' '" FOLDER "/s-3.safetensors'"), 0);
    refuse(path, RENYI_ERR_FORMAT, "tensor 'x' should be in");
    put_text("model.safetensors.index.json",
             "{\"weight_map\": {\"a\": \"s-1.safetensors\", \"other\": \"s-2.safetensors\", "
             "\"a2\": \"s-4.safetensors\"}}");
    /* a tensor in two shards */
    const float v = 1;
    const ry_tensor two[] = {{"a", RY_F32, 1, {1}, &v, 0}, {"a2", RY_F32, 1, {1}, &v, 0}};
    const ry_safetensors_content content = {two, 2, NULL, NULL, NULL};
    assert_int_equal(ry_safetensors_write(FOLDER "/s-4.safetensors", &content, NULL, NULL),
                     RENYI_OK);
    refuse(path, RENYI_ERR_FORMAT, "two tensors are named 'a'");

    static const char *const names[] = {
        "../s-1.safetensors", "/etc/passwd", "a/b", "", "..", "a\\\\b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"weight_map\": {\"a\": \"%s\"}}", names[i]);
        put_text("model.safetensors.index.json", text);
        refuse(path, RENYI_ERR_FORMAT, "a plain file name expected");
    }
    put_text("model.safetensors.index.json", "{\"weight_map\": {\"a\": 1}}");
    refuse(path, RENYI_ERR_FORMAT, "'a' does not name a file");
    put_text("model.safetensors.index.json", "{\"weight_map\": {}}");
    refuse(path, RENYI_ERR_FORMAT, "no \"weight_map\"");
    put_text("model.safetensors.index.json", "{\"weight_map\": {\"a\": \"s-1.safetensors\"}} x");
    refuse(path, RENYI_ERR_FORMAT, "line 1");
}

/* ---- real models --------------------------------------------------------------------------- */

static void test_real_models(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t count;
        const char *tensor;
    } models[] = {
        {"models/vit_tiny_patch16_224.augreg_in21k_ft_in1k", 152, "blocks.11.mlp.fc2.weight"},
        {"models/deit_tiny_patch16_224.fb_in1k", 152, "head.weight"},
        {"models/clip_tiny_random", 254, "logit_scale"},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const char *path = shared_path(models[i].path);
        if (!path) continue;
        renyi_error err;
        ry_checkpoint c;
        if (ry_checkpoint_open(&c, path, NULL, NULL, &err)) fail_msg("%s", err.message);
        assert_int_equal(ry_tensors_count(c.tensors), models[i].count);
        assert_non_null(ry_tensors_find(c.tensors, models[i].tensor));
        assert_non_null(c.config);
        ry_checkpoint_close(&c, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folders, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_configs, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_strangers, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_shards, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_bad_shards, fresh_folder, remove_folder),
        cmocka_unit_test(test_real_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
