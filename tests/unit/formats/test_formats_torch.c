/* test_formats_torch.c - PyTorch archives: written by torch.save, made here, damaged, and
 * malicious.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/formats_build.h"

#include "base/rng.h"
#include "formats/torch/torch_zip.h"

/* ---- files that torch.save wrote (tools/make-test-checkpoints.py) -------------------------- */

#define FILES RENYI_SOURCE_DIR "/tests/formats/"

static ry_tensors *open_file(const char *path)
{
    renyi_error err;
    ry_tensors *set;
    if (ry_torch_open(&set, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    return set;
}

/* Element i is (first + i * step) / 8. */
static void expect_ramp(const ry_tensors *set, const char *name, const char *shape, int first,
                        int step)
{
    char text[64];
    float values[64];
    const ry_tensor *t = ry_tensors_find(set, name);
    assert_non_null(t);
    assert_int_equal(t->n_dims ? 1 : 0, strcmp(shape, "[]") != 0);
    snprintf(text, sizeof text, "[%llu", t->n_dims ? (unsigned long long)t->shape[0] : 0ull);
    for (uint32_t i = 1; i < t->n_dims; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", %llu",
                 (unsigned long long)t->shape[i]);
    strcat(text, "]");
    assert_string_equal(text, shape);
    assert_int_equal(ry_tensor_to_f32(t, values, NULL), RENYI_OK);
    for (uint64_t i = 0; i < ry_tensor_elements(t); i++)
        assert_true(values[i] == (float)(first + (int)i * step) / 8);
}

static void test_types(void **state)
{
    (void)state;
    const char *const files[] = {FILES "types.pth", FILES "types_protocol4.pth"};
    for (int i = 0; i < 2; i++) {
        ry_tensors *set = open_file(files[i]);
        assert_int_equal(ry_tensors_count(set), 7);
        assert_string_equal(ry_tensors_at(set, 0)->name, "f32");
        expect_ramp(set, "f32", "[2, 3]", 0, 1);
        expect_ramp(set, "f16", "[4]", 0, 1);
        expect_ramp(set, "bf16", "[2, 2]", 0, 1);
        expect_ramp(set, "f64", "[3]", 0, 1);
        assert_int_equal(ry_tensors_find(set, "bf16")->dtype, RY_BF16);
        assert_int_equal(ry_tensors_find(set, "i64")->dtype, RY_I64);
        assert_int_equal(ry_tensors_find(set, "flag")->dtype, RY_BOOL);
        assert_int_equal(ry_tensors_find(set, "flag")->n_dims, 0);
        assert_int_equal(ry_tensors_find(set, "empty")->bytes, 0);
        ry_tensors_free(set);
    }
}

static void test_training(void **state)
{
    (void)state;
    ry_tensors *set = open_file(FILES "training.pth");
    assert_int_equal(ry_tensors_count(set), 2); /* not the optimizer's */
    expect_ramp(set, "w", "[2, 2]", 0, 1);
    expect_ramp(set, "b", "[2]", 4, 1);
    ry_tensors_free(set);
    set = open_file(FILES "module_state.pth");
    assert_int_equal(ry_tensors_count(set), 2);
    expect_ramp(set, "weight", "[1, 2]", 0, 1);
    ry_tensors_free(set);
}

static void test_views(void **state)
{
    (void)state;
    ry_tensors *set = open_file(FILES "views.pth");
    expect_ramp(set, "full", "[4, 6]", 0, 1);
    expect_ramp(set, "row", "[6]", 6, 1);
    expect_ramp(set, "column", "[4]", 2, 6);
    expect_ramp(set, "parameter", "[3]", 0, 1);
    /* full and row share bytes; the others are copies in row-major order */
    const unsigned char *full = ry_tensors_find(set, "full")->data;
    assert_ptr_equal(ry_tensors_find(set, "row")->data, full + 6 * 4);
    float t[24], block[4];
    assert_int_equal(ry_tensor_to_f32(ry_tensors_find(set, "transposed"), t, NULL), RENYI_OK);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 4; j++) assert_true(t[4 * i + j] == (float)(6 * j + i) / 8);
    assert_int_equal(ry_tensor_to_f32(ry_tensors_find(set, "block"), block, NULL), RENYI_OK);
    assert_true(block[0] == 1.0f && block[1] == 1.125f && block[2] == 1.75f && block[3] == 1.875f);
    ry_tensors_drop_pages(set, ry_tensors_find(set, "full"));
    expect_ramp(set, "full", "[4, 6]", 0, 1);
    ry_tensors_free(set);
}

static void test_torchscript(void **state)
{
    (void)state;
    ry_tensors *set = open_file(FILES "torchscript.pt");
    assert_int_equal(ry_tensors_count(set), 3); /* as state_dict() names them */
    expect_ramp(set, "visual.proj", "[2, 3]", 0, 1);
    expect_ramp(set, "visual.inner.0.weight", "[2, 2]", 1, 1);
    assert_int_equal(ry_tensors_find(set, "visual.proj")->dtype, RY_F16);
    assert_int_equal(ry_tensors_find(set, "visual.side")->dtype, RY_I64);
    ry_tensors_free(set);
}

static void refuse_file(const char *path, renyi_status code, const char *needle)
{
    renyi_error err;
    ry_tensors *set;
    assert_int_equal(ry_torch_open(&set, path, NULL, NULL, &err), code);
    assert_null(set);
    expect_message(&err, path);
    expect_message(&err, needle);
}

static void test_refused_files(void **state)
{
    (void)state;
    refuse_file(FILES "refused_whole_module.pth", RENYI_ERR_UNSUPPORTED,
                "the pickle calls torch.nn.modules.linear.Linear: refused");
    refuse_file(FILES "refused_expanded.pth", RENYI_ERR_FORMAT, "'w': an expanded view");
    refuse_file(FILES "refused_legacy.pth", RENYI_ERR_FORMAT, "no end record");
    refuse_file("/no/such.pth", RENYI_ERR_IO, "No such file");
}

/* ---- archives made here -------------------------------------------------------------------- */

static const unsigned char eight_floats[32];

/* data.pkl + one storage "0" of 8 floats */
static void build_archive(zip_builder *z, const bytes *pickle)
{
    memset(z, 0, sizeof *z);
    zip_add(z, "m/data.pkl", pickle->data, pickle->size);
    zip_add(z, "m/data/0", eight_floats, sizeof eight_floats);
    zip_end(z);
}

static void refuse_bytes(const void *p, size_t n, renyi_status code, const char *needle)
{
    renyi_error err = {RENYI_OK, 0, ""};
    ry_tensors *set = (ry_tensors *)&err;
    unsigned char *data = exact_copy(p, n);
    const renyi_status st = ry_torch_parse(&set, data, n, "bad.pth", NULL, NULL, &err);
    free(data);
    assert_null(set);
    if (st != code) fail_msg("status %d instead of %d: %s", st, code, err.message);
    expect_message(&err, "bad.pth");
    expect_message(&err, needle);
}

static void refuse_pickle(const bytes *pickle, renyi_status code, const char *needle)
{
    static zip_builder z;
    build_archive(&z, pickle);
    refuse_bytes(z.out.data, z.out.size, code, needle);
}

static void start_pickle(bytes *b)
{
    b->size = 0;
    pk(b, "\x80\x02");
}

/* {name: tensor} */
static void build_pickle(bytes *b, const char *name, const pk_tensor *t)
{
    start_pickle(b);
    pk(b, "}");
    pk_text(b, name);
    pk_put_tensor(b, t);
    pk(b, "s.");
}

static const pk_tensor plain = {"FloatStorage", "0", 8, 0, 2, {2, 4}, {4, 1}};

static void test_made_archive(void **state)
{
    (void)state;
    static zip_builder z;
    renyi_error err;
    ry_tensors *set;
    bytes b;
    build_pickle(&b, "w", &plain);
    build_archive(&z, &b);
    if (ry_torch_parse(&set, z.out.data, z.out.size, "m", NULL, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(ry_tensors_find(set, "w")->bytes, 32);
    ry_tensors_free(set);
}

static void test_calls(void **state)
{
    (void)state;
    static const struct {
        const char *module, *name;
    } evil[] = {{"os", "system"},
                {"posix", "system"},
                {"builtins", "eval"},
                {"builtins", "exec"},
                {"subprocess", "Popen"},
                {"torch.hub", "load"},
                {"builtins", "getattr"},
                {"torch._utils", "_rebuild_tensor_v2.x"},
                {"", ""}};
    char needle[128];
    bytes b;
    for (size_t i = 0; i < sizeof evil / sizeof *evil; i++) {
        start_pickle(&b);
        pk_global(&b, evil[i].module, evil[i].name);
        pk_text(&b, "echo owned");
        pk(&b, "\x85R.");
        snprintf(needle, sizeof needle, "byte 2: the pickle calls %s.%s: refused", evil[i].module,
                 evil[i].name);
        refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, needle);

        start_pickle(&b); /* protocol 4: the name comes from the stack, perhaps through the memo */
        pk_text(&b, evil[i].module);
        pk(&b, "\x94");
        pk_text(&b, evil[i].name);
        pk(&b, "\x94\x93)R.");
        refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, needle + strlen("byte 2: "));
    }
    start_pickle(&b);
    pk(&b, "X\x04"), put_uint(&b, 0, 3), pk(&b, "evil)R.");
    refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, "a call of something that is not a function");
    start_pickle(&b);
    pk_global(&b, "collections", "OrderedDict");
    pk(&b, "]\x85R.");
    refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, "collections.OrderedDict called in an unknown way");
    start_pickle(&b);
    pk_global(&b, "torch", "FloatStorage");
    pk(&b, ")R.");
    refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, "torch.FloatStorage called in an unknown way");
    /* INST, OBJ, NEWOBJ_EX, EXT1, PERSID, INT */
    static const char *const opcodes[] = {"(ios\nsystem\n.", "(o.",   "\x92.",
                                          "\x82\x01.",       "P0\n.", "I1\n."};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        start_pickle(&b);
        pk(&b, opcodes[i]);
        refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, "is not one of tensors: refused");
    }
    start_pickle(&b);
    pk(&b, "}}b.");
    refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, "a state set on something that has none");
}

/* A module of TorchScript with `attributes`, the opcodes between its braces; memo 9 is the module.
 */
static void build_module(bytes *b, const char *attributes)
{
    start_pickle(b);
    pk_global(b, "__torch__.x", "Tower");
    pk(b, ")\x81q\x09}(");
    pk(b, attributes);
    pk(b, "ub.");
}

static void test_modules(void **state)
{
    (void)state;
    bytes b;
    build_module(&b, "");
    refuse_pickle(&b, RENYI_ERR_FORMAT, "a TorchScript archive without a tensor");
    build_module(&b, "U\x01"
                     "ah\x09"); /* contains itself */
    refuse_pickle(&b, RENYI_ERR_LIMIT, "more than 32 deep");
    build_module(&b, "U\x01"
                     "ah\x09U\x01"
                     "bh\x09"); /* contains itself twice: 2^32 paths */
    refuse_pickle(&b, RENYI_ERR_LIMIT, "32 deep");
    build_module(&b, "Nh\x09");
    refuse_pickle(&b, RENYI_ERR_FORMAT, "has no name");
    start_pickle(&b); /* a class takes no arguments and is not called */
    pk_global(&b, "__torch__", "Tower");
    pk(&b, ")R.");
    refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, "called in an unknown way");
    start_pickle(&b);
    pk_global(&b, "__torch__evil", "Tower");
    pk(&b, ")\x81.");
    refuse_pickle(&b, RENYI_ERR_UNSUPPORTED, "__torch__evil.Tower: refused");
}

static void test_broken_pickles(void **state)
{
    (void)state;
    static const struct {
        const char *opcodes, *needle;
    } cases[] = {
        {"", "byte 2: the pickle ends"},
        {".", "the stack is empty"},
        {"NN.", "things left on the stack"},
        {"N(N.", "things left on the stack"},
        {"t", "no mark on the stack"},
        {"N\x86", "the stack is empty"},
        {"}N\x86", "the pickle ends"},
        {"(0", "the stack is empty"},
        {"Ns", "the stack is empty"},
        {"NNs", "items without a container"},
        {"NNNs", "not a dict"},
        {"NNa", "not a list"},
        {"}(Nu", "a key without a value"},
        {")(Ne", "not a list"},
        {"h\x01", "never stored"},
        {"j\xff\xff\xff\xff", "never stored"},
        {"Nr\xff\xff\xff\xff", "far beyond"},
        {"q\x01", "the stack is empty"},
        {"X\xff\xff\xff\x7f", "the pickle ends"},
        {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "more than 4 GiB"},
        {"\x8a\xff", "the pickle ends"},
        {"ctorch", "does not end"},
        {"NN\x93", "not text"},
        {"NQ", "not a storage"},
        {"\x80\x06", "protocol above 5"},
        {"N.", "not a dict of tensors"},
        {"}.", "no tensors at the top"},
    };
    bytes b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start_pickle(&b);
        pk(&b, cases[i].opcodes);
        refuse_pickle(&b, RENYI_ERR_FORMAT, cases[i].needle);
    }
}

static void test_bad_tensors(void **state)
{
    (void)state;
    const struct {
        pk_tensor t;
        renyi_status code;
        const char *needle;
    } cases[] = {
        {{"FloatStorage", "1", 8, 0, 1, {8}, {1}}, RENYI_ERR_FORMAT, "no entry 'data/1'"},
        {{"FloatStorage", "../0", 8, 0, 1, {8}, {1}}, RENYI_ERR_FORMAT, "no entry 'data/../0'"},
        {{"FloatStorage", "0", 9, 0, 1, {8}, {1}},
         RENYI_ERR_FORMAT,
         "storage of 9 F32 in entry 'data/0' of 32"},
        {{"HalfStorage", "0", 8, 0, 1, {8}, {1}}, RENYI_ERR_FORMAT, "storage of 8 F16"},
        {{"FloatStorage", "0", INT64_MAX, 0, 1, {8}, {1}}, RENYI_ERR_FORMAT, "storage of 92233"},
        {{"FloatStorage", "0", -1, 0, 1, {8}, {1}}, RENYI_ERR_FORMAT, "without a key or a size"},
        {{"FloatStorage", "0", 8, 1, 1, {8}, {1}},
         RENYI_ERR_FORMAT,
         "'w': [8] at element 1 reaches outside"},
        {{"FloatStorage", "0", 8, -1, 1, {8}, {1}},
         RENYI_ERR_FORMAT,
         "offset is not a whole number"},
        {{"FloatStorage", "0", 8, INT64_MAX, 1, {8}, {1}}, RENYI_ERR_FORMAT, "reaches outside"},
        {{"FloatStorage", "0", 8, 0, 1, {9}, {1}},
         RENYI_ERR_FORMAT,
         "reaches outside its storage of 8"},
        {{"FloatStorage", "0", 8, 0, 2, {2, 4}, {5, 1}}, RENYI_ERR_FORMAT, "reaches outside"},
        {{"FloatStorage", "0", 8, 0, 1, {-8}, {1}}, RENYI_ERR_FORMAT, "sizes or strides"},
        {{"FloatStorage", "0", 8, 0, 1, {8}, {-1}}, RENYI_ERR_FORMAT, "sizes or strides"},
        {{"FloatStorage", "0", 8, 0, 9, {1}, {1}}, RENYI_ERR_FORMAT, "sizes or strides"},
        {{"FloatStorage", "0", 8, 0, 1, {1000000}, {0}}, RENYI_ERR_FORMAT, "expanded view"},
        {{"FloatStorage", "0", 8, 0, 2, {INT64_MAX, INT64_MAX}, {0, 0}},
         RENYI_ERR_FORMAT,
         "reaches outside"},
        {{"FloatStorage", "0", 8, 0, 2, {INT64_MAX, 2}, {INT64_MAX, 1}},
         RENYI_ERR_FORMAT,
         "reaches outside"},
        {{"UntypedStorage", "0", 8, 0, 1, {8}, {1}},
         RENYI_ERR_UNSUPPORTED,
         "torch.UntypedStorage: refused"},
        {{"Size", "0", 8, 0, 1, {8}, {1}}, RENYI_ERR_FORMAT, "something else than plain numbers"},
    };
    bytes b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        build_pickle(&b, "w", &cases[i].t);
        refuse_pickle(&b, cases[i].code, cases[i].needle);
    }
    build_pickle(&b, "bad\nname", &plain);
    refuse_pickle(&b, RENYI_ERR_FORMAT, "no proper name");
    build_pickle(&b, "\xc0\xaf", &plain);
    refuse_pickle(&b, RENYI_ERR_FORMAT, "no proper name");
    char name[1100];
    memset(name, 'n', sizeof name), name[1025] = 0;
    build_pickle(&b, name, &plain);
    refuse_pickle(&b, RENYI_ERR_LIMIT, "1025 bytes");

    start_pickle(&b); /* the same name twice */
    pk(&b, "}(");
    for (int i = 0; i < 2; i++) pk_text(&b, "w"), pk_put_tensor(&b, &plain);
    pk(&b, "u.");
    refuse_pickle(&b, RENYI_ERR_FORMAT, "two tensors are named 'w'");

    start_pickle(&b); /* a dict that contains itself as "model" */
    pk(&b, "}q\x01");
    pk_text(&b, "model");
    pk(&b, "h\x01s.");
    refuse_pickle(&b, RENYI_ERR_FORMAT, "keys seen: 'model'");
}

/* Many strided views of one storage must not multiply memory. */
static void test_copy_bomb(void **state)
{
    (void)state;
    static zip_builder z;
    static bytes b;
    const pk_tensor t = {"FloatStorage", "0", 2500, 0, 2, {50, 50}, {1, 50}};
    start_pickle(&b);
    pk(&b, "}(");
    for (int i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        pk_text(&b, name), pk_put_tensor(&b, &t);
    }
    pk(&b, "u.");
    memset(&z, 0, sizeof z);
    static unsigned char storage[10000];
    zip_add(&z, "m/data.pkl", b.data, b.size);
    zip_add(&z, "m/data/0", storage, sizeof storage);
    zip_end(&z);
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_LIMIT, "copies of strided tensors exceed");
}

/* ---- the archive itself -------------------------------------------------------------------- */

static void test_bad_zips(void **state)
{
    (void)state;
    static zip_builder z;
    bytes b;
    build_pickle(&b, "w", &plain);
    build_archive(&z, &b);
    const size_t size = z.out.size, end = size - 22, directory = end - z.directory.size;
    for (size_t n = 0; n < size; n++)
        refuse_bytes(z.out.data, n, RENYI_ERR_FORMAT, "no end record");
    static const struct {
        int from_end; /* offsets below are counted from the end record, else from the directory */
        size_t at;
        unsigned char value;
        renyi_status code;
        const char *needle;
    } cases[] = {
        {1, 8, 3, RENYI_ERR_FORMAT, "several parts"},
        {1, 13, 0x7f, RENYI_ERR_FORMAT, "outside the file"},
        {1, 18, 0x7f, RENYI_ERR_FORMAT, "outside the file"},
        {0, 0, 'X', RENYI_ERR_FORMAT, "no directory entry here"},
        {0, 8, 1, RENYI_ERR_FORMAT, "encrypted"},
        {0, 10, 8, RENYI_ERR_UNSUPPORTED, "the archive is compressed (entry"},
        {0, 20, 1, RENYI_ERR_FORMAT, "two sizes differ"},
        {0, 29, 0x7f, RENYI_ERR_FORMAT, "longer than the directory"},
        {0, 42, 1, RENYI_ERR_FORMAT, "no local header here"},
        {0, 45, 0x7f, RENYI_ERR_FORMAT, "outside the archive"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char *p = z.out.data + (cases[i].from_end ? end : directory) + cases[i].at,
                      old = *p;
        *p = cases[i].value;
        if (cases[i].at == 8 && cases[i].from_end) p[2] = 2;
        refuse_bytes(z.out.data, size, cases[i].code, cases[i].needle);
        *p = old;
    }
    /* wrong sizes, equal in both headers */
    unsigned char *p = z.out.data + directory;
    memset(p + 20, 0x7f, 8);
    refuse_bytes(z.out.data, size, RENYI_ERR_FORMAT, "reaches into the directory");
    memset(p + 20, 0xff, 8);
    refuse_bytes(z.out.data, size, RENYI_ERR_FORMAT, "bad zip64 field");
}

static void test_strange_archives(void **state)
{
    (void)state;
    static zip_builder z;
    bytes b;
    build_pickle(&b, "w", &plain);

    memset(&z, 0, sizeof z);
    zip_end(&z);
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_FORMAT, "0 entries without data.pkl");

    memset(&z, 0, sizeof z);
    zip_add(&z, "arr_0.npy", "x", 1), zip_end(&z);
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_UNSUPPORTED, ".npz");

    memset(&z, 0, sizeof z);
    zip_add(&z, "m/data.pkl", b.data, b.size), zip_add(&z, "m/data.pkl", b.data, b.size),
        zip_end(&z);
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_FORMAT, "two entries of one name");

    memset(&z, 0, sizeof z);
    zip_add(&z, "m/data.pkl", b.data, b.size), zip_add(&z, "n/data.pkl", b.data, b.size),
        zip_end(&z);
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_FORMAT, "more than one data.pkl");

    memset(&z, 0, sizeof z);
    zip_add(&z, "m/data.pkl", b.data, b.size), zip_add(&z, "m/byteorder", "big", 3), zip_end(&z);
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_UNSUPPORTED, "big-endian");

    memset(&z, 0, sizeof z); /* compressed: not to be taken for another byte order */
    zip_add(&z, "m/data.pkl", b.data, b.size);
    const size_t entry = z.directory.size;
    zip_add(&z, "m/byteorder", "little", 6);
    z.directory.data[entry + 10] = 8;
    zip_end(&z);
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_UNSUPPORTED,
                 "the archive is compressed (entry 'm/byteorder', zip method 8)");
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_UNSUPPORTED, "zip -0 -r");

    memset(&z, 0, sizeof z); /* the second entry inside the first */
    zip_add(&z, "m/data.pkl", b.data, b.size);
    const size_t first = z.out.size;
    zip_add(&z, "m/data/0", eight_floats, 32);
    memcpy(z.out.data + 60, z.out.data + first, 30);
    z.directory.data[46 + 10 + 42] = 60;
    z.directory.data[46 + 10 + 43] = 0;
    zip_end(&z);
    refuse_bytes(z.out.data, z.out.size, RENYI_ERR_FORMAT, "two entries overlap");

    const renyi_limits tiny = {0, 16, 0, 0, 0};
    renyi_error err;
    ry_tensors *set;
    build_archive(&z, &b);
    assert_int_equal(ry_torch_parse(&set, z.out.data, z.out.size, "m", &tiny, NULL, &err),
                     RENYI_ERR_LIMIT);
    expect_message(&err, "at most 16");
}

static void test_mutations(void **state)
{
    (void)state;
    ry_rng rng = ry_rng_new(11);
    static unsigned char original[8192];
    const char *const files[] = {FILES "views.pth", FILES "training.pth",
                                 FILES "types_protocol4.pth", FILES "torchscript.pt"};
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(files[i], "rb");
        assert_non_null(f);
        const size_t size = fread(original, 1, sizeof original, f);
        fclose(f);
        for (int round = 0; round < 4000; round++) {
            unsigned char *data = exact_copy(original, size);
            for (uint64_t k = ry_rng_next(&rng) % 3 + 1; k; k--)
                data[ry_rng_next(&rng) % size] = (unsigned char)ry_rng_next(&rng);
            ry_tensors *set;
            renyi_error err;
            if (!ry_torch_parse(&set, data, size, "m", NULL, NULL, &err)) {
                unsigned sum = 0;
                for (size_t k = 0; k < ry_tensors_count(set); k++) {
                    const ry_tensor *t = ry_tensors_at(set, k);
                    assert_int_equal(t->bytes, ry_tensor_elements(t) * ry_dtype_size(t->dtype));
                    for (size_t j = 0; j < t->bytes; j++)
                        sum += ((const unsigned char *)t->data)[j];
                }
                assert_true(sum < 0xffffffff);
                ry_tensors_free(set);
            }
            free(data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_torchscript),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_made_archive),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_broken_pickles),
        cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_copy_bomb),
        cmocka_unit_test(test_bad_zips),
        cmocka_unit_test(test_strange_archives),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
