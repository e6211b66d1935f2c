/* test_tca_session.c - sessions that adapt, on a small random model: results depend only on the
 * order of images; saved states continue; files that are refused, memory, bad arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* posix_memalign */
#include "engine/tca/tca_adapt.h"
#include "fixtures/prune_model.h"
#include "fixtures/test_heap.h"
#include "renyi/clip.h"

#ifdef RENYI_SANITIZED
enum { CLASSES = 3, STREAM = 9 }; /* each image runs about forty times */
#else
enum { CLASSES = 3, STREAM = 12 };
#endif
#define POLICY "tca drop=0.1 layers=0,3,6 metric=col n=4"

static test_heap heap;
static renyi_model *tower, *model; /* a ViT, and a zero-shot model from its own images */
static uint8_t stream[STREAM * PM_PIXELS];

/* ---- a model whose answers vary -------------------------------------------------------------- */

static void make_stream(void)
{
    ry_rng r = ry_rng_new(4);
    for (size_t i = 0; i < sizeof stream; i++) {
        const uint8_t pixel = pm_pixels()[(i / PM_PIXELS) % CLASSES * PM_PIXELS + i % PM_PIXELS];
        const int noise = (int)(ry_rng_next(&r) >> 61), x = pixel + noise;
        stream[i] = (uint8_t)(x > 255 ? 255 : x);
    }
}

/* One class per image: its embedding minus the mean. */
static int open_models(void **state)
{
    static const char *const names[CLASSES] = {"one", "two", "three"};
    static float rows[CLASSES][4096];
    float mean[4096] = {0};
    renyi_session *s;
    renyi_model_info info;
    (void)state;
    const renyi_allocator al = test_heap_of(&heap);
    tower = pm_open(PM_VIT, &al, RENYI_CPU_AUTO);
    renyi_model_get_info(tower, &info);
    const uint32_t E = info.embed_dim;
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .policy = POLICY, .output = RENYI_OUTPUT_EMBEDDING};
    assert_ok(renyi_session_new(&s, tower, &opt, err));
    for (int c = 0; c < CLASSES; c++)
        assert_ok(renyi_run_pixels(s, pm_pixels() + c * PM_PIXELS, 1, rows[c], err));
    renyi_session_free(s);
    for (uint32_t i = 0; i < CLASSES * E; i++) mean[i % E] += rows[i / E][i % E] / CLASSES;
    static float packed[CLASSES * 4096];
    for (uint32_t i = 0; i < CLASSES * E; i++) packed[i] = rows[i / E][i % E] - mean[i % E];
    renyi_normalise_rows(packed, CLASSES, E);
    assert_ok(renyi_model_zeroshot(&model, tower, packed, names, CLASSES, 20.0, err));
    make_stream();
    return 0;
}

static int free_models(void **state)
{
    (void)state;
    renyi_model_free(model);
    renyi_model_free(tower);
    assert_int_equal(heap.live, 0);
    return 0;
}

static renyi_tca *new_tca(void)
{
    renyi_tca *t;
    assert_ok(renyi_tca_new(&t, model, NULL, err));
    return t;
}

static renyi_session *new_session(renyi_tca *t, const char *policy, uint32_t batch,
                                  uint32_t threads)
{
    renyi_session *s;
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = batch,
                                       .n_threads = threads,
                                       .policy = policy,
                                       .trace = 1,
                                       .adapt = t};
    assert_ok(renyi_session_new(&s, model, &opt, err));
    return s;
}

typedef float answers[STREAM * CLASSES];

/* Images first .. last-1 of the stream, `batch` at a time. */
static void run_stream(renyi_tca *t, const char *policy, uint32_t first, uint32_t last,
                       uint32_t batch, uint32_t threads, float *out)
{
    renyi_session *s = new_session(t, policy, batch, threads);
    for (uint32_t i = first; i < last; i += batch) {
        const uint32_t n = last - i < batch ? last - i : batch;
        assert_ok(renyi_run_pixels(s, stream + i * PM_PIXELS, n, out + i * CLASSES, err));
    }
    renyi_session_free(s);
}

static renyi_tca_info info_of(const renyi_tca *t)
{
    renyi_tca_info info;
    renyi_tca_get_info(t, &info);
    return info;
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Until there are anchors, the logits before the correction are those of a session that does not
 * adapt. */
static void check_one_by_one(renyi_tca *t, const char *policy, const float *want)
{
    answers plain;
    run_stream(NULL, policy, 0, STREAM, 4, 2, plain);
    renyi_session *s = new_session(t, policy, 1, 2);
    for (uint32_t i = 0; i < STREAM; i++) {
        float z[CLASSES];
        renyi_tca_answer answer;
        assert_ok(renyi_run_pixels(s, stream + i * PM_PIXELS, 1, z, err));
        assert_ok(renyi_tca_last(t, 0, &answer, err));
        assert_memory_equal(z, want + i * CLASSES, sizeof z);
        const int same = !memcmp(answer.logits, plain + i * CLASSES, sizeof z);
        assert_int_equal(same, !answer.anchored);
    }
    renyi_session_free(s);
}

/* The same bits for any batch and threads, through every rule, from nothing and with anchors. */
static void test_order_alone(void **state)
{
    (void)state;
    static const char *const policies[] = {POLICY,
                                           POLICY,
                                           "tca drop=0.1 layers=3,6,11 start=5",
                                           "none",
                                           "evit keep=0.7 layers=3,6 metric=cls reduce=drop",
                                           "mosaic keep=0.7 layers=0,3,6",
                                           "ats keep=0.7 layers=2,4"};
    const char *path = fix_path("anchored.safetensors");
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        answers one, many;
        renyi_tca *t[3];
        for (int i = 0; i < 3; i++) {
            t[i] = new_tca();
            if (k) assert_ok(renyi_tca_load(t[i], path, err));
        }
        run_stream(t[0], policies[k], 0, STREAM, 1, 1, one);
        run_stream(t[1], policies[k], 0, STREAM, 5, 2, many);
        assert_memory_equal(one, many, sizeof one);
        check_one_by_one(t[2], policies[k], one);
        const renyi_tca_info info = info_of(t[0]);
        assert_int_equal(info.n_images, (k ? 2 : 1) * STREAM);
        assert_int_equal(info.n_ready_classes, CLASSES);
        const uint64_t before = k ? STREAM - info.first_anchored : 0;
        if (k) assert_int_equal(info.n_anchored - before, k == 3 ? 0 : STREAM);
        if (!k) assert_true(info.n_anchored > 2 && info.n_anchored < STREAM);
        if (!k) assert_ok(renyi_tca_save(t[0], path, err));
        for (int i = 0; i < 3; i++) renyi_tca_free(t[i]);
    }
    unlink(path);
}

/* A run that is saved and continued elsewhere gives the same results. */
static void test_state(void **state)
{
    (void)state;
    const char *path = fix_path("state.safetensors");
    for (uint32_t stop = 0; stop <= STREAM; stop += 4) {
        answers whole, parts, idle;
        renyi_tca *a = new_tca(), *b = new_tca(), *c = new_tca();
        run_stream(a, POLICY, 0, STREAM, 3, 2, whole);
        run_stream(b, POLICY, 0, stop, 3, 2, parts);
        assert_ok(renyi_tca_save(b, path, err));
        run_stream(c, POLICY, 0, 5, 1, 1, idle); /* is forgotten */
        assert_ok(renyi_tca_load(c, path, err));
        const renyi_tca_info saved = info_of(b), loaded = info_of(c);
        assert_true(saved.n_images == loaded.n_images && saved.n_items == loaded.n_items);
        assert_true(saved.n_anchored == loaded.n_anchored && saved.n_changed == loaded.n_changed);
        assert_true(saved.has_anchors == loaded.has_anchors);
        assert_true(saved.first_anchored == loaded.first_anchored);
        if (stop < STREAM) run_stream(c, POLICY, stop, STREAM, 5, 1, parts);
        assert_memory_equal(whole, parts, sizeof whole);
        renyi_tca_free(a);
        renyi_tca_free(b);
        renyi_tca_free(c);
    }
    unlink(path);
}

/* ---- files that are refused ------------------------------------------------------------------ */

typedef struct bad_file {
    const char *says;
    const char *version, *key, *images; /* NULL = as it should be */
    uint32_t class1, n_class;
    float entropy1, token;
    uint64_t dim;
} bad_file;

static void write_state(const char *path, const renyi_tca *t, const bad_file *b)
{
    static float tokens[2 * PM_BLOCKS * FIX_DIM];
    char key[24];
    const float entropy[2] = {0.5f, b->entropy1};
    const uint32_t class[2] = {1, b->class1};
    snprintf(key, sizeof key, "%016llx", (unsigned long long)t->shape.key);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) tokens[i] = (float)(i % 7);
    tokens[9] = b->token;
    const char *const meta[] = {"renyi.tca",
                                b->version ? b->version : "1",
                                "key",
                                b->key ? b->key : key,
                                "images",
                                b->images ? b->images : "2",
                                "anchored",
                                "0",
                                "changed",
                                "0",
                                "first_anchored",
                                "18446744073709551615",
                                NULL};
    const ry_tensor list[] = {
        {.name = "tokens",
         .dtype = RY_F32,
         .n_dims = 3,
         .shape = {2, PM_BLOCKS, b->dim},
         .data = tokens},
        {.name = "entropy", .dtype = RY_F32, .n_dims = 1, .shape = {2}, .data = entropy},
        {.name = "class", .dtype = RY_U32, .n_dims = 1, .shape = {b->n_class}, .data = class}};
    const ry_safetensors_content content = {list, 3, meta, NULL, NULL};
    assert_ok(ry_safetensors_write(path, &content, NULL, err));
}

static void test_refused_files(void **state)
{
    (void)state;
#define USUAL .class1 = 1, .n_class = 2, .entropy1 = 0.6f, .token = 1.0f, .dim = FIX_DIM
    static const bad_file files[] = {
        {NULL, USUAL},
        {"not a TCA state", .version = "2", USUAL},
        {"another model or other classes", .key = "0123456789abcdef", USUAL},
        {"no count 'images'", .images = "-1", USUAL},
        {"no count 'images'", .images = "18446744073709551616", USUAL},
        {"item 1 is of class 3", .class1 = 3, .n_class = 2, .entropy1 = 1, .dim = FIX_DIM},
        {"item 1 is of class 0", .class1 = 0, .n_class = 2, .entropy1 = 1, .dim = FIX_DIM},
        {"no tensor 'entropy' F32 of 1 items", .class1 = 1, .n_class = 1, .dim = FIX_DIM},
        {"item 1 has an entropy of 0.4", .class1 = 1, .n_class = 2, .entropy1 = 0.4f,
         .dim = FIX_DIM},
        {"item 1 has an entropy of nan", .class1 = 2, .n_class = 2, .entropy1 = NAN,
         .dim = FIX_DIM},
        {"not finite at 9", .class1 = 1, .n_class = 2, .entropy1 = 1, .token = INFINITY,
         .dim = FIX_DIM},
        {"no tensor 'tokens' F32", .class1 = 1, .n_class = 2, .entropy1 = 1, .dim = FIX_DIM - 1},
    };
#undef USUAL
    char path[512], kept[512]; /* copies: fix_path reuses its buffers */
    renyi_tca *t = new_tca();
    answers before, after;
    strcpy(path, fix_path("refused.safetensors"));
    strcpy(kept, fix_path("kept.safetensors"));
    run_stream(t, POLICY, 0, 4, 1, 1, before);
    assert_ok(renyi_tca_save(t, kept, err));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        renyi_error e = {0};
        write_state(path, t, &files[i]);
        const renyi_status st = renyi_tca_load(t, path, &e);
        if (!files[i].says) {
            assert_int_equal(st, RENYI_OK);
            assert_int_equal(info_of(t).n_items, 2);
            assert_ok(renyi_tca_load(t, kept, err));
            continue;
        }
        assert_int_equal(st, RENYI_ERR_FORMAT);
        assert_says(&e, files[i].says);
        assert_says(&e, path);
        assert_int_equal(info_of(t).n_images, 4); /* unchanged */
    }
    run_stream(t, POLICY, 4, STREAM, 1, 1, before);
    assert_ok(renyi_tca_load(t, kept, err));
    run_stream(t, POLICY, 4, STREAM, 1, 1, after);
    assert_memory_equal(before + 4 * CLASSES, after + 4 * CLASSES,
                        (STREAM - 4) * CLASSES * sizeof *after);
    unlink(path);
    unlink(kept);
    renyi_error e = {0};
    assert_int_equal(renyi_tca_load(t, path, &e), RENYI_ERR_IO);
    assert_int_equal(renyi_tca_save(t, "/nowhere/at/all.safetensors", &e), RENYI_ERR_IO);
    renyi_tca_free(t);
}

/* ---- memory and arguments -------------------------------------------------------------------- */

static void test_memory(void **state)
{
    (void)state;
    const size_t loaded = heap.live;
    for (size_t n = 1;; n++) {
        renyi_tca *t = (renyi_tca *)&heap;
        renyi_error e = {0};
        heap.calls = 0;
        heap.fail_at = n;
        const renyi_status st = renyi_tca_new(&t, model, NULL, &e);
        heap.fail_at = 0;
        if (st == RENYI_OK) {
            assert_true(n > 8);
            renyi_tca_free(t);
            break;
        }
        assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(t == NULL && heap.live == loaded);
    }
    renyi_tca *t = new_tca();
    const size_t small = info_of(t).bytes;
    renyi_session *s = new_session(t, POLICY, STREAM, 2);
    assert_true(info_of(t).bytes > small && info_of(t).bytes < heap.live - loaded);
    answers out;
    const size_t calls = heap.calls;
    assert_ok(renyi_run_pixels(s, stream, STREAM, out, err));
    assert_int_equal(heap.calls, calls);
    renyi_session_free(s);
    renyi_tca_free(t);
    assert_int_equal(heap.live, loaded);
}

static void refuse_session(const renyi_model *m, const renyi_session_options *opt, const char *says)
{
    renyi_session *s = NULL;
    renyi_error e = {0};
    assert_int_equal(renyi_session_new(&s, m, opt, &e), RENYI_ERR_ARG);
    assert_null(s);
    assert_says(&e, says);
}

static void refuse_tca(const renyi_model *m, const renyi_tca_options *opt, const char *says)
{
    renyi_tca *t = NULL;
    renyi_error e = {0};
    assert_true(renyi_tca_new(&t, m, opt, &e) != RENYI_OK);
    assert_null(t);
    assert_says(&e, says);
}

static void test_bad_arguments(void **state)
{
    (void)state;
    renyi_tca_options o = {.struct_size = sizeof o, .size = 1};
    refuse_tca(model, &o, "size is 1; 2 to 1024");
    o = (renyi_tca_options){.struct_size = sizeof o, .scale = -1.0};
    refuse_tca(model, &o, "scale is -1");
    o = (renyi_tca_options){.struct_size = sizeof o, .beta = NAN};
    refuse_tca(model, &o, "beta is");
    o = (renyi_tca_options){.struct_size = sizeof o + 1};
    refuse_tca(model, &o, "struct_size");
    refuse_tca(NULL, NULL, "NULL argument");
    renyi_model *pooled = pm_open(PM_POOLED, NULL, RENYI_CPU_AUTO);
    refuse_tca(pooled, NULL, "class token");
    renyi_model_free(pooled);

    renyi_tca *t = new_tca();
    renyi_session_options opt = {.struct_size = sizeof opt, .adapt = t};
    refuse_session(tower, &opt, "made for another model or other classes");
    opt.output = RENYI_OUTPUT_EMBEDDING;
    refuse_session(model, &opt, "adapts its logits");
    renyi_tca_answer a;
    renyi_error e = {0};
    assert_int_equal(renyi_tca_last(t, 0, &a, &e), RENYI_ERR_ARG);
    assert_says(&e, "the last run had 0");
    renyi_tca_free(t);
    renyi_tca_free(NULL);
    renyi_tca_reset(NULL);
}

static int stop_at(void *user, uint64_t done, uint64_t total)
{
    (void)total;
    return done >= *(const uint64_t *)user;
}

/* Images answered before the stop are remembered, the current one is not. */
static void test_progress_stops(void **state)
{
    (void)state;
    uint64_t at = 2 * PM_BLOCKS + 5;
    answers out;
    renyi_session *s;
    renyi_error e = {0};
    renyi_tca *t = new_tca();
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = 4,
                                       .policy = POLICY,
                                       .adapt = t,
                                       .progress = stop_at,
                                       .progress_user = &at};
    assert_ok(renyi_session_new(&s, model, &opt, err));
    assert_int_equal(renyi_run_pixels(s, stream, 4, out, &e), RENYI_ERR_ABORTED);
    assert_int_equal(info_of(t).n_images, 2);
    renyi_session_free(s);
    renyi_tca_free(t);
}

/* An anchor adds a key, a value and an unused query to each cut except that of block 0. */
static void test_cost(void **state)
{
    (void)state;
    renyi_tca *t = new_tca();
    renyi_session *plain = new_session(NULL, POLICY, 1, 1), *s = new_session(t, POLICY, 1, 1);
    const double extra = renyi_session_macs(s) - renyi_session_macs(plain);
    renyi_cost cost;
    assert_ok(renyi_policy_cost(model, NULL, POLICY, &cost, NULL, 0, err));
    assert_true(extra > 0.0 && extra == cost.anchors.macs_executed);
    float z[CLASSES];
    assert_ok(renyi_run_pixels(s, stream, 1, z, err));
    assert_true(renyi_session_last_macs(s) == renyi_session_macs(plain)); /* no anchors yet */
    renyi_session_free(plain);
    renyi_session_free(s);
    renyi_tca_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_alone),   cmocka_unit_test(test_state),
        cmocka_unit_test(test_refused_files), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_bad_arguments), cmocka_unit_test(test_progress_stops),
        cmocka_unit_test(test_cost)};
    return cmocka_run_group_tests(tests, open_models, free_models);
}
