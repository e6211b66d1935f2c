/* test_model_open.c - opening models: options, facts, labels, failures that leak nothing, and the
 * models in ../shared.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/shared_files.h"
#include "fixtures/vit_fixture.h"

#include <sys/stat.h>

/* ---- an allocator that counts and fails ---------------------------------------------------- */

typedef struct counter {
    size_t calls, live_blocks, live_bytes, fail_at; /* fail_at 0 = never */
} counter;

static void *count_alloc(void *user, size_t size, size_t align)
{
    counter *c = user;
    if (++c->calls == c->fail_at) return NULL;
    void *p = aligned_alloc(align, (size + align - 1) / align * align);
    if (!p) return NULL;
    c->live_blocks++;
    c->live_bytes += size;
    return p;
}

static void count_release(void *user, void *ptr, size_t size)
{
    counter *c = user;
    c->live_blocks--;
    c->live_bytes -= size;
    free(ptr);
}

static renyi_options counted(counter *c)
{
    return (renyi_options){.struct_size = sizeof(renyi_options),
                           .allocator = {count_alloc, count_release, c}};
}

/* Fails the 1st, 2nd, 3rd ... allocation until opening succeeds: no failure leaks. */
static void fail_each_allocation(const char *path)
{
    for (size_t n = 1;; n++) {
        counter c = {.fail_at = n};
        const renyi_options opt = counted(&c);
        renyi_error e = {0};
        renyi_model *m = (renyi_model *)&c;
        const renyi_status st = renyi_model_open(&m, path, &opt, &e);
        if (st == RENYI_OK) {
            assert_true(n > c.calls);
            assert_true(c.live_blocks > 0);
            renyi_model_free(m);
            assert_int_equal(c.live_bytes, 0);
            assert_true(n > 20);
            return;
        }
        assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_int_equal(e.code, RENYI_ERR_NOMEM);
        assert_null(m);
        if (!strstr(e.message, "memory")) fail_msg("allocation %zu: %s", n, e.message);
        assert_int_equal(c.live_blocks, 0);
        assert_int_equal(c.live_bytes, 0);
    }
}

static void allocation_failures(void **state)
{
    (void)state;
    fixture f;
    fix_make(&f, "deit_tiny_distilled_patch8_32");
    const char *path = fix_write(&f, "sweep.safetensors");
    fail_each_allocation(path);
    unlink(path);
    fix_to_hf(&f, "deit.");
    path = fix_write(&f, "sweep.safetensors");
    fail_each_allocation(path);
    unlink(path);
    fix_free(&f);
}

/* ---- bytes in memory ----------------------------------------------------------------------- */

static unsigned char *read_bytes(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *size = (size_t)st.st_size;
    unsigned char *bytes = aligned_alloc(64, (*size + 63) / 64 * 64);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

/* The same model from the file and from its bytes, which may be freed after the call. */
static void bytes_are_a_file(void **state)
{
    (void)state;
    fixture f;
    size_t size;
    renyi_error e = {0};
    renyi_model *from_file = NULL, *from_bytes = NULL;
    fix_make(&f, "vit_tiny_patch8_32");
    const char *path = fix_write(&f, "bytes.safetensors");
    unsigned char *bytes = read_bytes(path, &size);
    assert_int_equal(renyi_model_open(&from_file, path, NULL, NULL), RENYI_OK);
    assert_int_equal(renyi_model_open_bytes(&from_bytes, bytes, size, NULL, &e), RENYI_OK);
    memset(bytes, 0xff, size);
    free(bytes);
    unlink(path);

    renyi_model *const models[] = {from_file, from_bytes};
    float *pixels = calloc(3 * 32 * 32, sizeof *pixels), *logits[2];
    for (int i = 0; i < 3 * 32 * 32; i++) pixels[i] = (float)(i % 97) / 97.0f;
    for (int i = 0; i < 2; i++) {
        renyi_model_info info;
        renyi_session *session = NULL;
        renyi_model_get_info(models[i], &info);
        logits[i] = calloc(info.n_classes, sizeof **logits);
        assert_int_equal(renyi_session_new(&session, models[i], NULL, NULL), RENYI_OK);
        assert_int_equal(renyi_run_tensor(session, pixels, 1, logits[i], NULL), RENYI_OK);
        if (i) assert_memory_equal(logits[0], logits[1], info.n_classes * sizeof **logits);
        renyi_session_free(session);
        renyi_model_free(models[i]);
    }
    free(logits[0]);
    free(logits[1]);
    free(pixels);
    fix_free(&f);
}

static void bad_bytes(void **state)
{
    (void)state;
    renyi_model *m = (renyi_model *)&m;
    renyi_error e = {0};
    assert_int_equal(renyi_model_open_bytes(&m, "short", 5, NULL, &e), RENYI_ERR_FORMAT);
    assert_null(m);
    assert_non_null(strstr(e.message, "bytes in memory"));
    assert_int_equal(renyi_model_open_bytes(&m, NULL, 9, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_model_open_bytes(NULL, "x", 1, NULL, &e), RENYI_ERR_ARG);
    const renyi_options opt = {.struct_size = sizeof opt, .limits = {.max_file_bytes = 4}};
    assert_int_equal(renyi_model_open_bytes(&m, "too long", 8, &opt, &e), RENYI_ERR_LIMIT);
}

/* ---- arguments ----------------------------------------------------------------------------- */

static void bad_options(void **state)
{
    (void)state;
    fixture f;
    renyi_model *m = NULL;
    renyi_error e = {0};
    fix_make(&f, "vit_tiny_patch8_32");
    char path[512];
    snprintf(path, sizeof path, "%s", fix_write(&f, "options.safetensors"));
    const renyi_options no_size = {0}, too_new = {.struct_size = sizeof no_size + 8};
    const renyi_options half = {.struct_size = sizeof half, .allocator = {count_alloc, NULL, NULL}};
    const renyi_options side = {.struct_size = sizeof side, .image_size = 33};
    const renyi_options short_struct = {.struct_size = sizeof(uint32_t) * 2, .image_size = 33};

    assert_int_equal(renyi_model_open(NULL, path, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_model_open(&m, NULL, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_model_open(&m, path, &no_size, &e), RENYI_ERR_ARG);
    assert_says(&e, "struct_size 0");
    assert_int_equal(renyi_model_open(&m, path, &too_new, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_model_open(&m, path, &half, &e), RENYI_ERR_ARG);
    assert_says(&e, "both or none");
    assert_int_equal(renyi_model_open(&m, path, &side, &e), RENYI_ERR_ARG);
    assert_says(&e, path);
    assert_says(&e, "32 or 40 would fit");
    assert_int_equal(renyi_model_open(&m, "/no/such/model", NULL, &e), RENYI_ERR_IO);
    assert_says(&e, "/no/such/model");
    assert_null(m);
    assert_int_equal(renyi_model_open(&m, path, &side, NULL), RENYI_ERR_ARG); /* no error struct */

    assert_ok(renyi_model_open(&m, path, &short_struct,
                               err)); /* an old caller's struct ends before image_size */
    renyi_model_free(m);
    assert_ok(renyi_model_open(&m, path, NULL, err));
    renyi_model_free(m);
    renyi_model_free(NULL);
    unlink(path);
    fix_free(&f);
}

/* ---- facts --------------------------------------------------------------------------------- */

static void info_and_tensors(void **state)
{
    (void)state;
    fixture f;
    renyi_model *m = NULL;
    renyi_model_info info;
    renyi_tensor_info t;
    fix_make(&f, "vit_tiny_patch8_32");
    const char *path = fix_write(&f, "info.safetensors");
    assert_ok(renyi_model_open(&m, path, NULL, err));
    unlink(path); /* nothing is read again */
    renyi_model_get_info(m, &info);
    assert_string_equal(info.layout, "timm");
    assert_int_equal(info.n_patches, 16);
    assert_int_equal(info.n_heads, FIX_HEADS);
    assert_true(info.cpu == renyi_cpu_detect());
    /* patches, per block (qkv + proj, attention, MLP), head */
    assert_true(info.macs == 16. * 192 * 32 +
                                 2 * (4. * 17 * 32 * 32 + 2. * 17 * 17 * 32 + 2. * 17 * 32 * 48) +
                                 5. * 32);
    assert_int_equal(renyi_model_is_assumed(m), 1); /* the metadata have the heads alone */
    assert_int_equal(renyi_model_tensor_count(m), f.n);
    for (size_t i = 0; i < f.n; i++) {
        renyi_model_tensor(m, i, &t);
        assert_string_equal(t.name, f.names[i]);
        assert_string_equal(t.dtype, "F32");
        assert_int_equal(t.n_dims, f.t[i].n_dims);
        assert_memory_equal(t.shape, f.t[i].shape, sizeof t.shape);
        assert_int_equal(t.bytes, f.t[i].bytes);
    }
    renyi_model_tensor(m, f.n, &t);
    assert_string_equal(t.name, "");
    assert_null(renyi_model_label(m, 0));
    renyi_model_free(m);
    fix_free(&f);
}

typedef struct visit {
    const fixture *f;
    size_t n, stop_at; /* stop_at 0 = never */
} visit;

static int on_tensor(void *user, const renyi_tensor_info *t)
{
    visit *v = user;
    const ry_tensor *want = &v->f->t[v->n];
    assert_string_equal(t->name, v->f->names[v->n]);
    assert_string_equal(t->dtype, "F32");
    assert_int_equal(t->n_dims, want->n_dims);
    assert_memory_equal(t->shape, want->shape, sizeof t->shape);
    assert_int_equal(t->bytes, want->bytes);
    return ++v->n == v->stop_at;
}

/* The same list without a model. */
static void visited_tensors(void **state)
{
    (void)state;
    fixture f;
    renyi_error e = {0};
    fix_make(&f, "vit_tiny_patch8_32");
    const char *path = fix_write(&f, "visit.safetensors");
    visit all = {.f = &f}, some = {.f = &f, .stop_at = 2};
    assert_ok(renyi_visit_tensors(path, NULL, on_tensor, &all, err));
    assert_int_equal(all.n, f.n);
    assert_int_equal(renyi_visit_tensors(path, NULL, on_tensor, &some, &e), RENYI_ERR_ABORTED);
    assert_int_equal(some.n, 2);
    for (size_t n = 1, ok = 0; !ok; n++) {
        counter c = {.fail_at = n};
        const renyi_options opt = counted(&c);
        visit v = {.f = &f};
        const renyi_status st = renyi_visit_tensors(path, &opt, on_tensor, &v, &e);
        ok = st == RENYI_OK;
        assert_true(ok || st == RENYI_ERR_NOMEM);
        assert_int_equal(c.live_blocks, 0);
    }
    unlink(path);
    assert_int_equal(renyi_visit_tensors(path, NULL, on_tensor, &all, &e), RENYI_ERR_IO);
    assert_int_equal(renyi_visit_tensors(path, NULL, NULL, NULL, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_visit_tensors(NULL, NULL, on_tensor, &all, &e), RENYI_ERR_ARG);
    fix_free(&f);
}

/* A directory with model.safetensors of the fixture and this config.json. */
static void open_directory(renyi_model **m, const fixture *f, const char *config)
{
    char dir[512], file[600], json[600];
    snprintf(dir, sizeof dir, "%s", fix_path("dir"));
    snprintf(file, sizeof file, "%s/model.safetensors", dir);
    snprintf(json, sizeof json, "%s/config.json", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(rename(fix_write(f, "dir.safetensors"), file), 0);
    FILE *out = fopen(json, "w");
    fputs(config, out);
    fclose(out);
    assert_ok(renyi_model_open(m, dir, NULL, err));
    unlink(file);
    unlink(json);
    rmdir(dir);
}

static void labels(void **state)
{
    (void)state;
    fixture f;
    renyi_model *m = NULL;
    fix_make(&f, "vit_tiny_patch8_32");
    open_directory(&m, &f,
                   "{\"id2label\": {\"0\": \"tench\", \"1\": \"LABEL_1\", \"4\": \"h\\u00e9n\","
                   "\"99\": \"nobody\", \"x\": \"y\", \"2\": 7}}");
    assert_string_equal(renyi_model_label(m, 0), "tench");
    assert_null(renyi_model_label(m, 1)); /* a placeholder */
    assert_null(renyi_model_label(m, 2));
    assert_string_equal(renyi_model_label(m, 4), "h\xc3\xa9n");
    assert_null(renyi_model_label(m, 5));
    renyi_model_free(m);
    open_directory(&m, &f, "{\"label_names\": [\"a\", \"b\"]}");
    assert_string_equal(renyi_model_label(m, 1), "b");
    assert_null(renyi_model_label(m, 2));
    renyi_model_free(m);
    open_directory(&m, &f, "{\"label_names\": [\"n03445777\", \"n99999999\"]}");
    assert_string_equal(renyi_model_label(m, 0), "golf ball"); /* as the program prints it */
    assert_string_equal(renyi_model_label(m, 1), "n99999999");
    renyi_model_free(m);
    open_directory(&m, &f, "{\"id2label\": [1], \"label_names\": {}}");
    assert_null(renyi_model_label(m, 0));
    renyi_model_free(m);
    fix_free(&f);
}

/* ---- random models ------------------------------------------------------------------------- */

static int same_file(const char *a, const char *b)
{
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    int c, d;
    do {
        c = fgetc(x);
        d = fgetc(y);
    } while (c == d && c != EOF);
    fclose(x);
    fclose(y);
    return c == d;
}

static void random_models(void **state)
{
    (void)state;
    char a[512], b[512];
    renyi_model *m = NULL;
    renyi_model_info info;
    renyi_error e = {0};
    renyi_init_options opt = {.struct_size = sizeof opt, .seed = 7, .n_blocks = 1, .n_classes = 10};
    snprintf(a, sizeof a, "%s", fix_path("a.safetensors"));
    snprintf(b, sizeof b, "%s", fix_path("b.safetensors"));
    assert_ok(renyi_model_init_file(a, "vit_tiny_patch16_32", &opt, err));
    assert_ok(renyi_model_init_file(b, "vit_tiny_patch16_32", &opt, err));
    assert_true(same_file(a, b));
    opt.seed = 8;
    assert_ok(renyi_model_init_file(b, "vit_tiny_patch16_32", &opt, err));
    assert_false(same_file(a, b));

    assert_ok(renyi_model_open(&m, a, NULL, err));
    renyi_model_get_info(m, &info);
    assert_string_equal(info.architecture, "vit_d192_l1_patch16_32");
    assert_int_equal(info.n_heads, 3);
    assert_int_equal(info.n_classes, 10);
    renyi_model_free(m);
    unlink(b);

    assert_int_equal(renyi_model_init_file(b, "resnet50", &opt, &e), RENYI_ERR_ARG);
    assert_says(&e, "'resnet50'");
    assert_says(&e, "a multiple of the patch"); /* its last words, so nothing was cut off */
    opt.n_heads = 5;
    assert_int_equal(renyi_model_init_file(b, "vit_tiny_patch16_32", &opt, &e), RENYI_ERR_ARG);
    assert_says(&e, "5 heads");
    opt = (renyi_init_options){.struct_size = sizeof opt, .dim = 4000000000u, .n_heads = 1};
    assert_int_equal(renyi_model_init_file(b, "vit_tiny_patch16_32", &opt, &e), RENYI_ERR_LIMIT);
    opt = (renyi_init_options){.struct_size = 1};
    assert_int_equal(renyi_model_init_file(b, "vit_tiny_patch16_32", &opt, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_model_init_file("/no/such/dir/x", "vit_tiny_patch16_32", NULL, &e),
                     RENYI_ERR_IO);
    assert_int_equal(access(b, F_OK), -1); /* no failure leaves a file */
    unlink(a);
}

/* ---- real models --------------------------------------------------------------------------- */

static void check_tiny(const char *rel, const char *family, double mean)
{
    const char *path = shared_path(rel);
    renyi_model *m = NULL;
    renyi_model_info info;
    if (!path) return;
    assert_ok(renyi_model_open(&m, path, NULL, err));
    renyi_model_get_info(m, &info);
    assert_string_equal(info.family, family);
    assert_int_equal(info.image_size, 224);
    assert_int_equal(info.dim, 192);
    assert_int_equal(info.n_heads, 3);
    assert_int_equal(info.n_blocks, 12);
    assert_int_equal(info.n_params, 5717416);
    assert_true(info.preprocess.mean[0] == mean && info.preprocess.crop_pct == 0.9);
    assert_string_equal(info.preprocess_source, "config.json (pretrained_cfg)");
    renyi_model_free(m);
}

static void real_models(void **state)
{
    (void)state;
    check_tiny("models/vit_tiny_patch16_224.augreg_in21k_ft_in1k", "vit", 0.5);
    check_tiny("models/deit_tiny_patch16_224.fb_in1k", "deit", 0.485);
}

static void real_models_of_other_kinds(void **state)
{
    (void)state;
    static const char *const rels[] = {"models/stories260K", "models/llava_tiny_random"};
    static const char *const words[] = {"a language model without an image tower",
                                        "this is a LLaVA"};
    for (size_t i = 0; i < sizeof rels / sizeof rels[0]; i++) {
        const char *path = shared_path(rels[i]);
        renyi_model *m = NULL;
        renyi_error e = {0};
        if (!path) continue;
        assert_int_not_equal(renyi_model_open(&m, path, NULL, &e), RENYI_OK);
        assert_says(&e, path);
        assert_says(&e, words[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocation_failures),
        cmocka_unit_test(bytes_are_a_file),
        cmocka_unit_test(bad_bytes),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(info_and_tensors),
        cmocka_unit_test(visited_tensors),
        cmocka_unit_test(labels),
        cmocka_unit_test(random_models),
        cmocka_unit_test(real_models),
        cmocka_unit_test(real_models_of_other_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
