/* test_figure.c - figures as files: sizes, reproducible bytes, texts, options, failing
 * allocations.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/figure_fixture.h"
#include "fixtures/test_heap.h"
#include "report/markup.h"

#include <pthread.h>

#include "test.h"

static figure_fixture fixture;

typedef renyi_status writer(renyi_figure_file *out, const renyi_viz_result *const *results,
                            size_t n_results, const renyi_figure_options *opt, renyi_error *err);

static renyi_status write_blocks(renyi_figure_file *out, const renyi_viz_result *const *results,
                                 size_t n, const renyi_figure_options *opt, renyi_error *err)
{
    return renyi_figure_terminal(out, results, n, opt, RENYI_TERMINAL_BLOCKS, 60, err);
}

static renyi_status write_kitty(renyi_figure_file *out, const renyi_viz_result *const *results,
                                size_t n, const renyi_figure_options *opt, renyi_error *err)
{
    return renyi_figure_terminal(out, results, n, opt, RENYI_TERMINAL_KITTY, 60, err);
}

static writer *const writers[] = {renyi_figure_png, renyi_figure_svg, write_blocks, write_kitty};
enum { N_WRITERS = 4 };

static renyi_figure_options options(renyi_figure_kind kind)
{
    return (renyi_figure_options){
        .struct_size = sizeof(renyi_figure_options), .kind = kind, .cell = 64, .scale = 1};
}

static renyi_figure_file drawn(writer *write, const renyi_figure_options *opt)
{
    const renyi_viz_result *results[] = {&fixture.r};
    renyi_figure_file out;
    renyi_error err = {0};
    const renyi_status status = write(&out, results, 1, opt, &err);
    if (status != RENYI_OK) fail_msg("%s", err.message);
    return out;
}

static int holds(const renyi_figure_file *f, const char *text)
{
    return strstr(f->bytes, text) != NULL;
}

static int setup(void **state)
{
    (void)state;
    figure_fill(&fixture);
    return 0;
}

/* ---- files --------------------------------------------------------------------------------- */

static void size_of_png(void **state)
{
    (void)state;
    for (int scale = 1; scale <= 3; scale++) {
        renyi_figure_options opt = options(RENYI_FIGURE_HEAT);
        opt.scale = scale;
        renyi_figure_file f = drawn(renyi_figure_png, &opt);
        renyi_image image;
        assert_int_equal(renyi_image_decode(&image, f.bytes, f.size, NULL, NULL), RENYI_OK);
        /* Margins, labels, and at least four columns. */
        assert_int_equal(image.width, (30 + 64 + 4 * (12 + 64) + 30) * scale);
        assert_true(image.height > 300u * (unsigned)scale);
        assert_int_equal(image.rgb[0], 255);
        renyi_image_free(&image, NULL);
        renyi_figure_free(&f);
    }
}

static void same_bytes_again(void **state)
{
    (void)state;
    for (int w = 0; w < N_WRITERS; w++)
        for (int kind = 0; kind <= RENYI_FIGURE_ATTENTION; kind++) {
            const renyi_figure_options opt = options((renyi_figure_kind)kind);
            renyi_figure_file a = drawn(writers[w], &opt), b = drawn(writers[w], &opt);
            assert_int_equal(a.size, b.size);
            assert_memory_equal(a.bytes, b.bytes, a.size);
            assert_int_equal(a.bytes[a.size], 0);
            renyi_figure_free(&a);
            renyi_figure_free(&b);
        }
}

static int has_chunk(const renyi_figure_file *png, const char *name)
{
    for (size_t i = 8; i + 8 < png->size; i++)
        if (memcmp(png->bytes + i, name, 4) == 0) return 1;
    return 0;
}

static void png_has_no_time(void **state)
{
    const renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    renyi_figure_file f = drawn(renyi_figure_png, &opt);
    (void)state;
    assert_true(has_chunk(&f, "IHDR") && has_chunk(&f, "pHYs"));
    assert_false(has_chunk(&f, "tIME"));
    renyi_figure_free(&f);
}

static void *draw_in_thread(void *arg)
{
    const renyi_figure_options opt = options(RENYI_FIGURE_ALL);
    *(renyi_figure_file *)arg = drawn(renyi_figure_png, &opt);
    return NULL;
}

static void threads_are_independent(void **state)
{
    renyi_figure_file files[3];
    pthread_t threads[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw_in_thread, &files[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(files[i].size, files[0].size);
        assert_memory_equal(files[i].bytes, files[0].bytes, files[0].size);
    }
    for (int i = 0; i < 3; i++) renyi_figure_free(&files[i]);
}

/* ---- texts --------------------------------------------------------------------------------- */

static void texts_of_an_overlay(void **state)
{
    renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    opt.cell = 200;
    renyi_figure_file f = drawn(renyi_figure_svg, &opt);
    (void)state;
    assert_true(holds(&f, ">cat.jpg</text>"));
    assert_true(holds(&f, ">layer 3</text>"));
    assert_true(holds(&f, ">12 kept, 4 dropped</text>"));
    assert_true(holds(&f, ">8 kept, 8 fused</text>"));
    assert_true(holds(&f, ">11 tokens, 12 patches</text>"));
    assert_true(holds(&f, ">0.30 GMACs so far, 1 rescued</text>"));
    assert_true(holds(&f, ">0.60 GMACs so far</text>"));
    assert_true(holds(&f, ">0.70 GMACs, \xE2\x88\x92"
                          "30 %</text>"));
    assert_true(holds(&f, ">75.0 %</text>"));
    assert_false(holds(&f, " ms"));
    renyi_figure_free(&f);
    fixture.rows[0].answer.ms = 12.34;
    fixture.rows[1].answer.top = fixture.guesses + 1;
    fixture.rows[1].answer.n_top = 1;
    f = drawn(renyi_figure_svg, &opt);
    assert_true(holds(&f, ">0.70 GMACs, 12.3 ms</text>"));
    assert_true(holds(&f, ">12.5 %, not the dense answer</text>"));
    renyi_figure_free(&f);
}

static void any_bytes_are_text(void **state)
{
    renyi_figure_options opt = options(RENYI_FIGURE_ALL);
    (void)state;
    fixture.r.photo.name = "a<b>&\"\xFF\xC3(\033[31m\xE2\x80\xAE.jpg";
    fixture.rows[2].label =
        "\xF0\x9F\x98 \xC0\xAF one label that is much longer than its column is "
        "wide, so that it must be cut somewhere or go to the next line";
    fixture.guesses[0].name = "\x80";
    renyi_figure_file f = drawn(renyi_figure_svg, &opt);
    assert_true(holds(&f, "a&lt;b&gt;&amp;&quot;\xEF\xBF\xBD\xEF\xBF\xBD("));
    assert_false(holds(&f, "\xFF") || holds(&f, "\033") || holds(&f, "\xE2\x80\xAE"));
    renyi_figure_free(&f);
    f = drawn(write_blocks, &opt);
    assert_false(holds(&f, "\033[31m"));
    renyi_figure_free(&f);
    f = drawn(renyi_figure_png, &opt);
    renyi_figure_free(&f);
}

static void terminals(void **state)
{
    const renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
    (void)state;
    renyi_figure_file f = drawn(write_blocks, &opt);
    assert_true(holds(&f, "12 kept") && holds(&f, "layer 3") && holds(&f, "tabby cat 75.0 %"));
    assert_true(holds(&f, "0.30 GMACs ") && !holds(&f, "GMACs so"));
    assert_true(holds(&f, "\033[38;2;100;80;128m")); /* the first patch */
    renyi_figure_free(&f);
    f = drawn(write_kitty, &opt);
    assert_memory_equal(f.bytes, "\033_Ga=T,f=100,q=2,c=60,m=1;iVBOR", 30);
    assert_true(holds(&f, "\033\\\033_Gm=0;"));
    renyi_figure_free(&f);
    const renyi_viz_result *results[] = {&fixture.r};
    assert_int_equal(renyi_figure_terminal(&f, results, 1, &opt, RENYI_TERMINAL_ITERM2, 0, NULL),
                     RENYI_OK);
    assert_memory_equal(f.bytes, "\033]1337;File=inline=1;size=", 26);
    assert_true(holds(&f, ";width=80;"));
    renyi_figure_free(&f);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void expect(renyi_figure_options opt, renyi_status status, const char *message)
{
    const renyi_viz_result *results[] = {&fixture.r};
    renyi_figure_file out;
    renyi_error err = {0};
    assert_int_equal(renyi_figure_png(&out, results, 1, &opt, &err), status);
    if (!strstr(err.message, message)) fail_msg("'%s' is not in '%s'", message, err.message);
    assert_null(out.bytes);
}

static void bad_options(void **state)
{
    renyi_figure_options opt = options((renyi_figure_kind)7);
    (void)state;
    expect(opt, RENYI_ERR_ARG, "no kind 7");
    opt = options(RENYI_FIGURE_HEAT);
    opt.cell = 47;
    expect(opt, RENYI_ERR_ARG, "48 to 1024");
    opt = options(RENYI_FIGURE_HEAT);
    opt.scale = NAN;
    expect(opt, RENYI_ERR_ARG, "0.25 to 8");
    opt = options(RENYI_FIGURE_HEAT);
    opt.opacity = 1.5;
    expect(opt, RENYI_ERR_ARG, "at most 1");
    opt = options(RENYI_FIGURE_HEAT);
    opt.colours = (renyi_colours)2;
    expect(opt, RENYI_ERR_ARG, "no colour map 2");
    opt = options(RENYI_FIGURE_ATTENTION);
    opt.head = 3;
    expect(opt, RENYI_ERR_ARG, "heads 0 to 1");
    opt = options(RENYI_FIGURE_HEAT);
    opt.cell = 1024;
    opt.scale = 8;
    expect(opt, RENYI_ERR_LIMIT, "smaller scale");
}

static void bad_results(void **state)
{
    (void)state;
    fixture.rows[2].merges = 0;
    expect(options(RENYI_FIGURE_MOSAIC), RENYI_ERR_ARG, "no policy merges patches");
    assert_false(renyi_figure_has(&fixture.r, RENYI_FIGURE_MOSAIC));
    fixture.r.attention = NULL;
    expect(options(RENYI_FIGURE_ATTENTION), RENYI_ERR_ARG, "not requested");
    fixture.r.photo.size = 31;
    expect(options(RENYI_FIGURE_HEAT), RENYI_ERR_ARG, "31 pixels");
    renyi_figure_file out;
    assert_int_equal(renyi_figure_svg(&out, NULL, 1, NULL, NULL), RENYI_ERR_ARG);
}

static void memory_runs_out(void **state)
{
#ifdef RENYI_SANITIZED
    const size_t step = 7;
#else
    const size_t step = 1;
#endif
    (void)state;
    for (int w = 0; w < N_WRITERS; w++) {
        renyi_figure_options opt = options(RENYI_FIGURE_OVERLAY);
        test_heap heap = {0};
        opt.allocator = test_heap_of(&heap);
        renyi_figure_file f = drawn(writers[w], &opt);
        renyi_figure_free(&f);
        assert_int_equal(heap.live, 0);
        const size_t calls = heap.calls;
        for (size_t i = 1; i <= calls; i += step) {
            const renyi_viz_result *results[] = {&fixture.r};
            heap = (test_heap){.fail_at = i};
            assert_int_equal(writers[w](&f, results, 1, &opt, NULL), RENYI_ERR_NOMEM);
            assert_int_equal(heap.live, 0);
            assert_null(f.bytes);
        }
    }
}

static void base64(void **state)
{
    static const char *const plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
    static const char *const code[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                       "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"}; /* RFC 4648 */
    (void)state;
    for (int i = 1; i < 7; i++) {
        test_heap heap = {0};
        const renyi_allocator al = test_heap_of(&heap);
        renyi_figure_file f = {.allocator = al};
        ry_buffer s = {.al = &al};
        ry_put_base64(&s, plain[i], strlen(plain[i]));
        assert_int_equal(s.size, strlen(code[i]));
        assert_memory_equal(s.bytes, code[i], s.size);
        f.bytes = s.bytes;
        renyi_figure_free(&f);
        assert_int_equal(heap.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(size_of_png, setup),
        cmocka_unit_test_setup(same_bytes_again, setup),
        cmocka_unit_test_setup(png_has_no_time, setup),
        cmocka_unit_test_setup(threads_are_independent, setup),
        cmocka_unit_test_setup(texts_of_an_overlay, setup),
        cmocka_unit_test_setup(any_bytes_are_text, setup),
        cmocka_unit_test_setup(terminals, setup),
        cmocka_unit_test_setup(bad_options, setup),
        cmocka_unit_test_setup(bad_results, setup),
        cmocka_unit_test_setup(memory_runs_out, setup),
        cmocka_unit_test_setup(base64, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
