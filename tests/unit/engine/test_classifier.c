/* test_classifier.c - classifiers made from class names: rows as defined, and a cache that is used
 * only if it belongs to the classifier.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/clip_fixture.h"
#include "fixtures/test_heap.h"
#include "renyi/clip.h"

#include <math.h>
#include <sys/stat.h>

enum { CLASSES = 5 };

static const char *const names[CLASSES] = {"tench", "golf_ball", "church", "cat", "golf ball"};
static const char *const templates[] = {"a {}.", "of the {}", "{}: a pic"};

static renyi_text *text;
static renyi_tokenizer *tokenizer;

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    (void)state;
    static const char merges[] = "#version: 0.2\nt h\nth e</w>\no f</w>\n";
    fixture f;
    clip_make(&f);
    const char *path = fix_write(&f, "clip.safetensors");
    assert_ok(renyi_text_open(&text, path, NULL, err));
    unlink(path);
    fix_free(&f);
    path = fix_path("bpe_simple_vocab_16e6.txt");
    write_bytes(path, merges, strlen(merges));
    assert_ok(renyi_tokenizer_open(&tokenizer, path, NULL, err));
    unlink(path);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    renyi_text_free(text);
    renyi_tokenizer_free(tokenizer);
    return 0;
}

static int n_calls;
static uint64_t last_done;

static int count_calls(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    assert_true(done > last_done && done <= total);
    last_done = done;
    n_calls++;
    return 0;
}

static renyi_classifier_options options(const char *cache)
{
    n_calls = 0;
    last_done = 0;
    return (renyi_classifier_options){.struct_size = sizeof(renyi_classifier_options),
                                      .templates = templates,
                                      .n_templates = 3,
                                      .cache = cache,
                                      .progress = count_calls};
}

static renyi_classifier *make_classifier(const renyi_classifier_options *opt)
{
    renyi_classifier *c = NULL;
    assert_ok(renyi_classifier_new(&c, text, tokenizer, names, CLASSES, opt, err));
    return c;
}

/* The row of one class, text by text. */
static void by_hand(float out[CLIP_EMBED], const char *name, renyi_text_session *s)
{
    static const char *const around[][2] = {{"a ", "."}, {"of the ", ""}, {"", ": a pic"}};
    memset(out, 0, CLIP_EMBED * sizeof *out);
    for (size_t t = 0; t < 3; t++) {
        char prompt[64];
        int32_t ids[CLIP_CONTEXT];
        float e[CLIP_EMBED];
        snprintf(prompt, sizeof prompt, "%s%s%s", around[t][0], name, around[t][1]);
        assert_ok(renyi_tokenizer_encode(tokenizer, prompt, strlen(prompt), CLIP_CONTEXT, 0, ids,
                                         NULL, err));
        assert_ok(renyi_text_run(s, ids, NULL, 1, e, err));
        renyi_normalise_rows(e, 1, CLIP_EMBED);
        for (size_t k = 0; k < CLIP_EMBED; k++) out[k] += e[k] / 3.0f;
    }
    renyi_normalise_rows(out, 1, CLIP_EMBED);
}

static void test_rows(void **state)
{
    (void)state;
    static const char *const spoken[CLASSES] = {"tench", "golf ball", "church", "cat", "golf ball"};
    renyi_classifier_options opt = options(NULL);
    renyi_classifier *c = make_classifier(&opt);
    renyi_classifier_info info;
    renyi_text_session *s;
    assert_ok(renyi_text_session_new(&s, text, NULL, err));
    for (size_t i = 0; i < CLASSES; i++) {
        float want[CLIP_EMBED];
        by_hand(want, spoken[i], s);
        for (size_t k = 0; k < CLIP_EMBED; k++)
            assert_true(fabsf(want[k] - renyi_classifier_rows(c)[i * CLIP_EMBED + k]) < 1e-6f);
    }
    renyi_text_session_free(s);
    renyi_classifier_get_info(c, &info);
    assert_int_equal(info.n_classes, CLASSES);
    assert_int_equal(info.n_templates, 3);
    assert_int_equal(info.embed_dim, CLIP_EMBED);
    assert_int_equal(info.cache, RENYI_CACHE_NONE);
    assert_string_equal(info.cache_path, "");
    assert_true(fabs(info.scale - exp(2.5)) < 1e-6);
    assert_int_equal(last_done, 3 * CLASSES);
    opt = options(NULL); /* other passes, other threads: the same bits */
    opt.max_tokens = CLIP_CONTEXT, opt.n_threads = 3;
    renyi_classifier *other = make_classifier(&opt);
    assert_memory_equal(renyi_classifier_rows(c), renyi_classifier_rows(other),
                        CLASSES * CLIP_EMBED * sizeof(float));
    renyi_classifier_free(other);
    renyi_classifier_free(c);
}

static void test_default_template(void **state)
{
    (void)state;
    static const char *const usual[] = {"a photo of a {}."};
    renyi_classifier_options opt = {
        .struct_size = sizeof opt, .templates = usual, .n_templates = 1};
    renyi_classifier *a = make_classifier(NULL), *b = make_classifier(&opt);
    renyi_classifier_info x, y;
    renyi_classifier_get_info(a, &x);
    renyi_classifier_get_info(b, &y);
    assert_int_equal(x.key, y.key);
    renyi_classifier_free(a);
    renyi_classifier_free(b);
}

/* ---- cache --------------------------------------------------------------------------------- */

/* Builds it again with the cache; rows must be `want`. */
static void expect_cache(const char *path, const float *want, renyi_cache_use use, const char *word)
{
    const renyi_classifier_options opt = options(path);
    renyi_classifier *c = make_classifier(&opt);
    renyi_classifier_info info;
    renyi_classifier_get_info(c, &info);
    assert_int_equal(info.cache, use);
    if (!strstr(info.cache_message, word))
        fail_msg("\"%s\" is not in: %s", word, info.cache_message);
    if (!*word) assert_string_equal(info.cache_message, "");
    assert_int_equal(n_calls > 0, use != RENYI_CACHE_READ);
    assert_memory_equal(renyi_classifier_rows(c), want, CLASSES * CLIP_EMBED * sizeof(float));
    renyi_classifier_free(c);
}

static void test_cache(void **state)
{
    (void)state;
    float want[CLASSES * CLIP_EMBED];
    char path[512];
    renyi_classifier_options opt = options(NULL);
    renyi_classifier *c = make_classifier(&opt);
    memcpy(want, renyi_classifier_rows(c), sizeof want);
    renyi_classifier_free(c);
    strcpy(path, fix_path("cache.safetensors"));
    expect_cache(path, want, RENYI_CACHE_WRITTEN, "");
    expect_cache(path, want, RENYI_CACHE_READ, "");

    opt = options(path); /* fewer templates: not the same classifier */
    opt.n_templates = 2;
    c = make_classifier(&opt);
    renyi_classifier_info info;
    renyi_classifier_get_info(c, &info);
    assert_int_equal(info.cache, RENYI_CACHE_WRITTEN);
    assert_true(memcmp(renyi_classifier_rows(c), want, sizeof want) != 0);
    renyi_classifier_free(c);
    expect_cache(path, want, RENYI_CACHE_WRITTEN, "another model, tokenizer or texts");
    expect_cache(path, want, RENYI_CACHE_READ, "");
    unlink(path);
    expect_cache("/nowhere/at/all.safetensors", want, RENYI_CACHE_FAILED, "/nowhere/at/all");
}

/* A folder has one file per classifier, named by the key. */
static void test_cache_folder(void **state)
{
    (void)state;
    char folder[512], wanted[600];
    renyi_classifier_info info;
    strcpy(folder, fix_path("cache"));
    assert_int_equal(mkdir(folder, 0700), 0);
    renyi_classifier_options opt = options(folder);
    renyi_classifier *c = make_classifier(&opt);
    renyi_classifier_get_info(c, &info);
    assert_int_equal(info.cache, RENYI_CACHE_WRITTEN);
    snprintf(wanted, sizeof wanted, "%s/classifier-%016llx.safetensors", folder,
             (unsigned long long)info.key);
    assert_string_equal(info.cache_path, wanted);
    expect_cache(folder, renyi_classifier_rows(c), RENYI_CACHE_READ, "");
    renyi_classifier_free(c);
    unlink(wanted);
    assert_int_equal(rmdir(folder), 0);
}

/* After every kind of damage the rows are computed again, and are the same. */
static void test_cache_damage(void **state)
{
    (void)state;
    static uint8_t whole[1 << 16], bad[1 << 16];
    const char *path = fix_path("damaged.safetensors");
    renyi_classifier_options opt = options(path);
    renyi_classifier *c = make_classifier(&opt);
    FILE *f = fopen(path, "rb");
    const size_t size = fread(whole, 1, sizeof whole, f);
    fclose(f);
    const size_t rows = size - CLASSES * CLIP_EMBED * sizeof(float);
    const float nan = NAN, large = 2.0f;

    memcpy(bad, whole, size);
    memcpy(bad + rows + 12, &nan, sizeof nan);
    write_bytes(path, bad, size);
    expect_cache(path, renyi_classifier_rows(c), RENYI_CACHE_WRITTEN, "row 0 is not of length");
    memcpy(bad, whole, size);
    memcpy(bad + rows + 4 * CLIP_EMBED, &large, sizeof large);
    write_bytes(path, bad, size);
    expect_cache(path, renyi_classifier_rows(c), RENYI_CACHE_WRITTEN, "row 1 is not of length");
    write_bytes(path, whole, size - 4);
    expect_cache(path, renyi_classifier_rows(c), RENYI_CACHE_WRITTEN, "damaged.safetensors");
    write_bytes(path, "", 0);
    expect_cache(path, renyi_classifier_rows(c), RENYI_CACHE_WRITTEN, "damaged.safetensors");
    memset(bad, ' ', sizeof bad);
    write_bytes(path, bad, sizeof bad);
    expect_cache(path, renyi_classifier_rows(c), RENYI_CACHE_WRITTEN, "damaged.safetensors");
    for (size_t i = 0; i < rows; i += 37) { /* anywhere in the header */
        memcpy(bad, whole, size);
        bad[i] ^= 0x15;
        write_bytes(path, bad, size);
        opt = options(path);
        renyi_classifier *again = make_classifier(&opt);
        assert_memory_equal(renyi_classifier_rows(again), renyi_classifier_rows(c), size - rows);
        renyi_classifier_free(again);
    }
    renyi_classifier_free(c);
    unlink(path);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void expect_error(const char *name, const char *template, renyi_status code,
                         const char *word)
{
    const char *const classes[] = {"dog", name};
    const renyi_classifier_options opt = {
        .struct_size = sizeof opt, .templates = &template, .n_templates = 1};
    renyi_classifier *c = NULL;
    renyi_error e = {0};
    assert_int_equal(renyi_classifier_new(&c, text, tokenizer, classes, 2, &opt, &e), code);
    assert_null(c);
    assert_says(&e, word);
}

static void test_bad(void **state)
{
    (void)state;
    static const char long_name[] = "a name that goes on and on and on and on and on and on";
    const char *const one[] = {long_name};
    renyi_classifier *c = NULL;
    renyi_error e = {0};
    expect_error("cat", "a photo.", RENYI_ERR_ARG, "'a photo.' has {} nowhere");
    expect_error("cat", "{} and {}", RENYI_ERR_ARG, "more than once");
    expect_error("", "a {}", RENYI_ERR_ARG, "class 1 has no name");
    expect_error("caf\xe9", "a {}", RENYI_ERR_FORMAT, "class 1");
    expect_error(long_name, "a {}", RENYI_ERR_LIMIT, "class 1 'a name that goes on");
    assert_int_equal(renyi_classifier_new(&c, text, tokenizer, one, 0, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "no class names");
    const renyi_classifier_options cut = {.struct_size = sizeof cut, .truncate = 1};
    assert_ok(renyi_classifier_new(&c, text, tokenizer, one, 1, &cut, err));
    renyi_classifier_free(c);
}

static int stop(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return 1;
}

static void test_stopped(void **state)
{
    (void)state;
    const char *path = fix_path("stopped.safetensors");
    renyi_classifier_options opt = options(path);
    opt.progress = stop;
    renyi_classifier *c;
    renyi_error e = {0};
    assert_int_equal(renyi_classifier_new(&c, text, tokenizer, names, CLASSES, &opt, &e),
                     RENYI_ERR_ABORTED);
    assert_null(c);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* Every allocation fails once: an error that leaks nothing, or, if only the cache is concerned, the
 * same rows. */
static void fail_each_allocation(const renyi_text *t, test_heap *heap, const char *cache,
                                 const float *want)
{
    const size_t live = heap->live;
    for (size_t fail_at = 1, is_done = 0; !is_done; fail_at++) {
        const renyi_classifier_options opt = options(cache);
        renyi_classifier *c = NULL;
        renyi_error e = {0};
        heap->calls = 0;
        heap->fail_at = fail_at;
        const renyi_status st = renyi_classifier_new(&c, t, tokenizer, names, CLASSES, &opt, &e);
        is_done = heap->calls < fail_at;
        assert_int_equal(c == NULL, st != RENYI_OK);
        if (st) {
            assert_int_equal(st, RENYI_ERR_NOMEM);
            assert_false(is_done);
        } else {
            assert_memory_equal(renyi_classifier_rows(c), want,
                                CLASSES * CLIP_EMBED * sizeof(float));
        }
        renyi_classifier_free(c);
        assert_int_equal(heap->live, live);
    }
    heap->fail_at = 0;
}

static void test_memory(void **state)
{
    (void)state;
    test_heap heap = {0};
    const renyi_options with = {.struct_size = sizeof with, .allocator = test_heap_of(&heap)};
    const char *path = fix_path("nomem_cache.safetensors");
    char cache[512];
    fixture f;
    renyi_text *t = NULL;
    strcpy(cache, path);
    clip_make(&f);
    path = fix_write(&f, "nomem.safetensors");
    assert_ok(renyi_text_open(&t, path, &with, err));
    unlink(path);
    fix_free(&f);
    renyi_classifier_options opt = options(NULL);
    renyi_classifier *c = make_classifier(&opt);
    const float *want = renyi_classifier_rows(c);
    fail_each_allocation(t, &heap, NULL, want);
    fail_each_allocation(t, &heap, "/nowhere/at/all.safetensors", want);
    fail_each_allocation(t, &heap, cache, want); /* written in one of the runs, read after that */
    unlink(cache);
    renyi_classifier_free(c);
    renyi_text_free(t);
    assert_int_equal(heap.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),         cmocka_unit_test(test_default_template),
        cmocka_unit_test(test_cache),        cmocka_unit_test(test_cache_folder),
        cmocka_unit_test(test_cache_damage), cmocka_unit_test(test_bad),
        cmocka_unit_test(test_stopped),      cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
