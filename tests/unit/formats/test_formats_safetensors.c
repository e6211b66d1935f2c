/* test_formats_safetensors.c - valid and invalid files with their messages; the writer; random
 * damage.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "fixtures/formats_build.h"

#include "base/rng.h"
#include "formats/safetensors.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- good files ---------------------------------------------------------------------------- */

static const char good[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                           "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[8,16]},"
                           "\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                           "\"none\":{\"dtype\":\"F16\",\"shape\":[3,0],\"data_offsets\":[16,16]},"
                           "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]}}   ";

static void test_good(void **state)
{
    (void)state;
    renyi_error err;
    bytes b;
    ry_tensors *set;
    build_safetensors(&b, good, 19);
    unsigned char *data = exact_copy(b.data, b.size);
    if (ry_safetensors_parse(&set, data, b.size, "m", NULL, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(ry_tensors_count(set), 4);
    assert_string_equal(ry_tensors_at(set, 0)->name, "a"); /* in the order of the bytes */
    assert_int_equal(ry_tensors_at(set, 0)->n_dims, 0);
    assert_string_equal(ry_tensors_at(set, 2)->name, "none");
    const ry_tensor *t = ry_tensors_find(set, "b");
    assert_int_equal(t->dtype, RY_F32);
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->bytes, 8);
    assert_int_equal(*(const unsigned char *)t->data, 8);
    assert_string_equal(ry_tensors_meta(set, "format"), "pt");
    ry_tensors_drop_pages(set, t); /* not a mapping: nothing happens */
    ry_tensors_free(set);
    free(data);

    build_safetensors(&b,
                      "{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[1,9]}}",
                      9); /* integers need no alignment */
    assert_int_equal(ry_safetensors_parse(&set, b.data, b.size, "m", NULL, NULL, &err), RENYI_OK);
    assert_int_equal(ry_tensors_find(set, "i")->bytes, 8);
    ry_tensors_free(set);

    build_safetensors(&b, "{}", 0);
    assert_int_equal(ry_safetensors_parse(&set, b.data, b.size, "m", NULL, NULL, &err), RENYI_OK);
    assert_int_equal(ry_tensors_count(set), 0);
    ry_tensors_free(set);
}

/* ---- bad files ----------------------------------------------------------------------------- */

static void refuse_bytes(const void *p, size_t n, renyi_status code, const char *needle)
{
    renyi_error err = {RENYI_OK, 0, ""};
    ry_tensors *set = (ry_tensors *)&err;
    unsigned char *data = exact_copy(p, n);
    const renyi_status st =
        ry_safetensors_parse(&set, data, n, "bad.safetensors", NULL, NULL, &err);
    free(data);
    assert_null(set);
    if (st != code) fail_msg("status %d instead of %d: %s", st, code, err.message);
    assert_int_equal(err.code, code);
    expect_message(&err, "bad.safetensors");
    expect_message(&err, needle);
}

static void refuse(const char *json, size_t n_data, const char *needle)
{
    bytes b;
    build_safetensors(&b, json, n_data);
    refuse_bytes(b.data, b.size, RENYI_ERR_FORMAT, needle);
}

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_header_length(void **state)
{
    (void)state;
    bytes b;
    for (size_t n = 0; n < 8; n++)
        refuse_bytes("\2\0\0\0\0\0\0\0", n, RENYI_ERR_FORMAT, "at least 8");
    refuse_bytes("\0\0\0\0\0\0\0\0", 8, RENYI_ERR_FORMAT, "header of 0 bytes");
    refuse_bytes("\2\0\0\0\0\0\0\0", 8, RENYI_ERR_FORMAT,
                 "header of 2 bytes in a file with 0 left");
    refuse_bytes("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, RENYI_ERR_LIMIT, "18446744073709551615");
    refuse_bytes("\xf8\xff\xff\xff\xff\xff\xff\xff{}", 10, RENYI_ERR_LIMIT, "at most 100000000");
    refuse_bytes("\x80\x96\x98\0\0\0\0\0{}", 10, RENYI_ERR_FORMAT,
                 "10000000 bytes in a file with 2");
    refuse_bytes("\2\0\0\0\0\0\0\0[]", 10, RENYI_ERR_FORMAT, "does not start with '{'");
    refuse_bytes("\3\0\0\0\0\0\0\0 {}", 11, RENYI_ERR_FORMAT, "does not start with '{'");

    /* the length cuts the JSON short, or takes in the data */
    for (size_t n = sizeof good - 6; n <= sizeof good; n += 6) {
        build_safetensors(&b, good, 19);
        b.data[0] = n & 255, b.data[1] = (unsigned char)(n >> 8);
        refuse_bytes(b.data, b.size, RENYI_ERR_FORMAT, "line 1");
    }
}

static void test_offsets(void **state)
{
    (void)state;
    refuse("{" TENSOR("w", "F32", "[2]", "[0,8]") "}", 4,
           "'w': data_offsets [0, 8] outside the 4 bytes");
    refuse("{" TENSOR("w", "F32", "[2]", "[8,0]") "}", 8, "'w': data_offsets [8, 0]");
    refuse("{" TENSOR("w", "F32", "[3]", "[0,8]") "}", 8,
           "'w': F32 [3] needs 12 bytes, data_offsets give 8");
    refuse("{" TENSOR("w", "F32", "[2]", "[0,8]") "}", 9, "end at 8, but 9 bytes follow");
    refuse("{" TENSOR("w", "F32", "[1]", "[4,8]") "}", 8,
           "'w' begins at 4, but 'the header' ends at 0");
    refuse("{" TENSOR("v", "F32", "[2]", "[0,8]") "," TENSOR("w", "F32", "[2]", "[4,12]") "}", 12,
           "'w' begins at 4, but 'v' ends at 8: they overlap");
    refuse("{" TENSOR("v", "F32", "[2]", "[0,8]") "," TENSOR("w", "F32", "[2]", "[0,8]") "}", 8,
           "they overlap");
    refuse("{" TENSOR("v", "F32", "[1]", "[0,4]") "," TENSOR("w", "F32", "[1]", "[8,12]") "}", 12,
           "a hole between them");
    refuse("{" TENSOR("u", "U8", "[1]", "[0,1]") "," TENSOR("w", "F32", "[1]", "[1,5]") "}", 5,
           "'w': misaligned: F32 data at offset 1");
    refuse("{" TENSOR("w", "F32", "[4611686018427387904,4]", "[0,0]") "}", 0, "overflows");
    refuse("{" TENSOR("w", "F32", "[4294967296,4294967296]", "[0,8]") "}", 8, "overflows");
    refuse("{" TENSOR("w", "F32", "[2]", "[-8,0]") "}", 8, "not a pair");
    refuse("{" TENSOR("w", "F32", "[2]", "[0,8,8]") "}", 8, "not a pair");
    refuse("{" TENSOR("w", "F32", "[2]", "[0,8.0]") "}", 8, "not a pair");
    refuse("{" TENSOR("w", "F32", "[2]", "\"0,8\"") "}", 8, "not a pair");
    refuse("{" TENSOR("w", "F32", "[2]", "[0,99999999999999999999]") "}", 8, "too big integer");
}

static void test_members(void **state)
{
    (void)state;
    bytes b;
    refuse("{" TENSOR("w", "F32", "[1]", "[0,4]") "," TENSOR("w", "F32", "[1]", "[4,8]") "}", 8,
           "duplicate object key");
    refuse("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, "duplicate object key");
    refuse("{" TENSOR("w", "F32", "[-1]", "[0,4]") "}", 4, "'w': \"shape\" holds");
    refuse("{" TENSOR("w", "F32", "[1.0]", "[0,4]") "}", 4, "'w': \"shape\" holds");
    refuse("{" TENSOR("w", "F32", "1", "[0,4]") "}", 4, "'w': \"shape\" is not an array");
    refuse("{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "'w': \"dtype\"");
    refuse("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "'w': \"shape\"");
    refuse("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "'w': \"data_offsets\"");
    refuse("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4,
           "'w': members");
    refuse("{\"w\":7}", 0, "'w': its entry");
    refuse("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ 'a'");
    refuse("{\"__metadata__\":[]}", 0, "__metadata__");
    refuse("{\"a\\u0000b\":{}}", 0, "line 1");
    build_safetensors(&b, "{" TENSOR("w", "F4", "[1]", "[0,4]") "}", 4);
    refuse_bytes(b.data, b.size, RENYI_ERR_UNSUPPORTED, "'w': unknown dtype 'F4'");
    build_safetensors(&b, "{" TENSOR("w", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1);
    refuse_bytes(b.data, b.size, RENYI_ERR_LIMIT, "'w': 9 dimensions; at most 8");
}

static void test_bombs(void **state)
{
    (void)state;
    bytes b;
    static char json[60000];
    memset(json, '[', sizeof json - 1);
    memcpy(json, "{\"w\":", 5);
    build_safetensors(&b, json, 0);
    refuse_bytes(b.data, b.size, RENYI_ERR_LIMIT, "deeper than 4");

    snprintf(json, sizeof json,
             "{\"%2000d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 1);
    build_safetensors(&b, json, 0);
    refuse_bytes(b.data, b.size, RENYI_ERR_LIMIT, "name of 2000 bytes");

    /* two million commas */
    const size_t n = 4000000;
    unsigned char *big = malloc(n + 8);
    assert_non_null(big);
    for (size_t i = 0; i < 8; i++) big[i] = (unsigned char)(n >> 8 * i);
    for (size_t i = 8; i < n + 8; i += 2) big[i] = '0', big[i + 1] = ',';
    memcpy(big + 8, "{\"w\":[", 6);
    refuse_bytes(big, n + 8, RENYI_ERR_LIMIT, "values; at most");
    free(big);

    build_safetensors(&b, good, 19);
    const renyi_limits tiny = {0, 64, 0, 0, 0};
    renyi_error err;
    ry_tensors *set;
    assert_int_equal(ry_safetensors_parse(&set, b.data, b.size, "m", &tiny, NULL, &err),
                     RENYI_ERR_LIMIT);
    expect_message(&err, "at most 64");
}

static void test_truncation(void **state)
{
    (void)state;
    bytes b;
    build_safetensors(&b, good, 19);
    for (size_t n = 0; n < b.size; n++) refuse_bytes(b.data, n, RENYI_ERR_FORMAT, "");
}

/* Random damage: no crash, and tensors that are accepted are consistent. */
static void test_mutations(void **state)
{
    (void)state;
    ry_rng rng = ry_rng_new(7);
    static const char alphabet[] = "{}[]\",:0123456789-.eFIU__ \\";
    bytes b;
    for (int round = 0; round < 20000; round++) {
        build_safetensors(&b, good, 19);
        for (uint64_t k = ry_rng_next(&rng) % 4 + 1; k; k--) {
            const size_t at = ry_rng_next(&rng) % b.size;
            const uint64_t r = ry_rng_next(&rng);
            b.data[at] = r & 1 ? (unsigned char)(r >> 8) : (unsigned char)alphabet[(r >> 8) % 28];
        }
        const size_t size = ry_rng_next(&rng) % 8 ? b.size : ry_rng_next(&rng) % b.size;
        unsigned char *data = exact_copy(b.data, size);
        ry_tensors *set;
        renyi_error err;
        if (!ry_safetensors_parse(&set, data, size, "m", NULL, NULL, &err)) {
            uint64_t total = 0;
            for (size_t i = 0; i < ry_tensors_count(set); i++) {
                const ry_tensor *t = ry_tensors_at(set, i);
                const unsigned char *p = t->data;
                assert_true(p >= data && t->bytes <= size && p + t->bytes <= data + size);
                assert_int_equal(t->bytes, ry_tensor_elements(t) * ry_dtype_size(t->dtype));
                assert_ptr_equal(ry_tensors_find(set, t->name), t);
                total += t->bytes;
            }
            assert_true(total < size);
            ry_tensors_free(set);
        }
        free(data);
    }
}

/* ---- the writer ---------------------------------------------------------------------------- */

#define FOLDER RENYI_BINARY_DIR "/test_formats_safetensors.tmp"

static int files_in_folder(void)
{
    int n = 0;
    DIR *dir = opendir(FOLDER);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int make_folder(void **state)
{
    (void)state;
    return system("rm -rf '" FOLDER "' && mkdir -p '" FOLDER "'");
}

static int remove_folder(void **state)
{
    (void)state;
    return system("rm -rf '" FOLDER "'");
}

static const float weights[6] = {1, -2, 3.5f, 0, 1e-20f, 7};
static const ry_tensor stored[] = {
    {"big.w", RY_F32, 2, {2, 3}, weights, 0},
    {"none", RY_F16, 1, {0}, NULL, 0},
    {"\xc3\xa9 \"quoted\"", RY_U8, 1, {3}, "xyz", 0},
};
static const char *const stored_meta[] = {"format", "pt", "made by", "a test", NULL};

static void test_round_trip(void **state)
{
    (void)state;
    const char *path = FOLDER "/m.safetensors";
    const ry_safetensors_content content = {stored, 3, stored_meta, NULL, NULL};
    renyi_error err;
    ry_tensors *set;
    if (ry_safetensors_write(path, &content, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(files_in_folder(), 1);
    if (ry_safetensors_open(&set, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(ry_tensors_count(set), 3);
    const ry_tensor *t = ry_tensors_find(set, "big.w");
    assert_int_equal(t->bytes, sizeof weights);
    assert_memory_equal(t->data, weights, sizeof weights);
    assert_int_equal((uintptr_t)t->data % 8, 0);
    ry_tensors_drop_pages(set, t);
    assert_memory_equal(t->data, weights, sizeof weights);
    assert_memory_equal(ry_tensors_find(set, stored[2].name)->data, "xyz", 3);
    assert_string_equal(ry_tensors_meta(set, "made by"), "a test");
    ry_tensors_free(set);
    /* over an existing file */
    assert_int_equal(ry_safetensors_write(path, &content, NULL, &err), RENYI_OK);
    assert_int_equal(files_in_folder(), 1);
    assert_int_equal(remove(path), 0);
}

/* Byte i of the tensor is i * 7; counts the calls. */
static renyi_status fill_pattern(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                                 renyi_error *err)
{
    (void)t, (void)err;
    for (size_t i = 0; i < n; i++) ((unsigned char *)out)[i] = (unsigned char)((at + i) * 7);
    ++*(int *)user;
    return RENYI_OK;
}

static renyi_status fill_stops(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                               renyi_error *err)
{
    (void)user, (void)t, (void)at, (void)out, (void)n, (void)err;
    return RENYI_ERR_ABORTED;
}

static void test_stream(void **state)
{
    (void)state;
    const char *path = FOLDER "/s.safetensors";
    int calls = 0;
    const ry_tensor big = {"t", RY_F32, 2, {700, 1000}, NULL, 0};
    ry_safetensors_content content = {&big, 1, NULL, fill_pattern, &calls};
    renyi_error err;
    ry_tensors *set;
    if (ry_safetensors_write(path, &content, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(calls, 3); /* 2.8 MB in pieces of 1 MiB */
    if (ry_safetensors_open(&set, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    const ry_tensor *t = ry_tensors_at(set, 0);
    ry_tensors_drop_pages(set, t);
    for (size_t i = 0; i < t->bytes; i++)
        assert_int_equal(((const unsigned char *)t->data)[i], (unsigned char)(i * 7));
    ry_tensors_free(set);
    assert_int_equal(remove(path), 0);

    content.fill = fill_stops;
    assert_int_equal(ry_safetensors_write(path, &content, NULL, &err), RENYI_ERR_ABORTED);
    assert_int_equal(files_in_folder(), 0);
}

/* A file size limit acts like a full disk. */
static void test_no_room(void **state)
{
    (void)state;
    const char *path = FOLDER "/full.safetensors";
    const ry_tensor big = {"t", RY_F32, 1, {100000}, NULL, 0};
    int calls = 0;
    const ry_safetensors_content content = {&big, 1, NULL, fill_pattern, &calls};
    struct rlimit old, small;
    renyi_error err;
    write_file(path, "older", 5);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const renyi_status st = ry_safetensors_write(path, &content, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(st, RENYI_ERR_IO);
    expect_message(&err, "full.safetensors: cannot write after 4096 bytes");
    assert_int_equal(files_in_folder(), 1); /* the older file, unchanged */
    char text[8] = "";
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text, f), 5);
    fclose(f);
    assert_string_equal(text, "older");
    assert_int_equal(remove(path), 0);
}

static void test_bad_writes(void **state)
{
    (void)state;
    renyi_error err;
    const ry_tensor twice[] = {{"a", RY_U8, 1, {1}, "x", 0}, {"a", RY_U8, 1, {1}, "x", 0}};
    const ry_tensor odd[] = {{"a", RY_U8, 1, {1}, "x", 0}, {"b", RY_F32, 1, {1}, "xxxx", 0}};
    const ry_tensor huge = {"h", RY_F32, 2, {1ull << 40, 1ull << 40}, NULL, 0};
    ry_safetensors_content c = {twice, 2, NULL, NULL, NULL};
    assert_int_equal(ry_safetensors_write(FOLDER "/x", &c, NULL, &err), RENYI_ERR_ARG);
    expect_message(&err, "'a' is taken");
    c.tensors = odd;
    assert_int_equal(ry_safetensors_write(FOLDER "/x", &c, NULL, &err), RENYI_ERR_ARG);
    expect_message(&err, "'b' would be misaligned at offset 1");
    c = (ry_safetensors_content){&huge, 1, NULL, NULL, NULL};
    assert_int_equal(ry_safetensors_write(FOLDER "/x", &c, NULL, &err), RENYI_ERR_ARG);
    c = (ry_safetensors_content){stored, 3, NULL, NULL, NULL};
    assert_int_equal(ry_safetensors_write(FOLDER "/no/such/x", &c, NULL, &err), RENYI_ERR_IO);
    expect_message(&err, "/no/such/x");
    assert_int_equal(ry_safetensors_write(FOLDER, &c, NULL, &err), RENYI_ERR_IO);
    expect_message(&err, "not a regular file");
    assert_int_equal(files_in_folder(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),       cmocka_unit_test(test_header_length),
        cmocka_unit_test(test_offsets),    cmocka_unit_test(test_members),
        cmocka_unit_test(test_bombs),      cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_mutations),  cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_stream),     cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_bad_writes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
