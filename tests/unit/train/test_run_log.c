/* test_run_log.c - logs of training runs: whole, resumed, cut short, in stages, and not logs at
 * all; their summaries and curves.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/test_heap.h"
#include "train/files/run_log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define CONFIG \
    "{\"kind\":\"config\",\"architecture\":\"vit_tiny_patch16_224\",\"val_photos\":200,\"settings\":{\"arch\":\"vit_tiny\",\"prune\":\"tome r=8\"},\"steps_per_epoch\":2}\n"
#define STEP(e, s, loss)                                                  \
    "{\"kind\":\"step\",\"epoch\":" #e ",\"step\":" #s ",\"loss\":" #loss \
    ",\"lr\":1e-5,\"seconds\":" #s "}\n"
#define EPOCH(e, s, top1)                                                                         \
    "{\"kind\":\"epoch\",\"epoch\":" #e ",\"step\":" #s ",\"train_loss\":2.5,\"val_top1\":" #top1 \
    "}\n"

/* In a folder of its own; removed by the caller. */
static void write_log(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static renyi_run_log *open_text(const char *text, renyi_run_info *info)
{
    renyi_run_log *r;
    renyi_error err;
    write_log("one.jsonl", text);
    if (renyi_run_log_open(&r, "one.jsonl", NULL, &err)) fail_msg("%s", err.message);
    renyi_run_log_get_info(r, info);
    return r;
}

static renyi_run_curve curve(const renyi_run_log *r, renyi_run_quantity what, renyi_run_axis axis,
                             uint64_t smooth, size_t most)
{
    renyi_run_curve c;
    assert_int_equal(renyi_run_log_get_curve(&c, r, what, axis, smooth, most, NULL), RENYI_OK);
    return c;
}

static void test_whole(void **state)
{
    (void)state;
    renyi_run_info i;
    renyi_run_log *r =
        open_text(CONFIG STEP(0, 1, 4) STEP(0, 2, 3) EPOCH(0, 2, 60.5) STEP(1, 3, 2)
                      STEP(1, 4, null) "{\"kind\":\"note\",\"text\":\"x\"}\n\n" EPOCH(1, 4, 60),
                  &i);
    assert_string_equal(i.policy, "tome r=8");
    assert_string_equal(i.model, "vit_tiny");
    assert_string_equal(i.architecture, "vit_tiny_patch16_224");
    assert_int_equal(i.n_val, 200);
    assert_float_equal(i.top1_epoch, 2, 0);
    assert_int_equal(i.n_steps, 4);
    assert_int_equal(i.n_epochs, 2);
    assert_int_equal(i.n_other, 1);
    assert_int_equal(i.n_bad + (uint64_t)i.is_cut, 0);
    assert_float_equal(i.epochs, 2, 0);
    assert_float_equal(i.steps, 4, 0);
    assert_float_equal(i.loss, 2.5, 0);
    assert_float_equal(i.top1, 60, 0);
    assert_float_equal(i.best_top1, 60.5, 0);
    assert_float_equal(i.best_epoch, 1, 0);
    assert_true(isnan(i.val_loss) && isnan(i.top5));
    renyi_run_curve c = curve(r, RENYI_RUN_LOSS, RENYI_RUN_BY_EPOCH, 1, 0);
    assert_int_equal(c.n, 3); /* a null is left out */
    assert_float_equal(c.x[0], 0.5, 1e-12);
    assert_float_equal(c.x[2], 1.5, 1e-12);
    assert_float_equal(c.y[1], 3, 0);
    renyi_run_curve_free(&c);
    c = curve(r, RENYI_RUN_LOSS, RENYI_RUN_BY_STEP, 3, 0);
    assert_float_equal(c.y[0], 3.5, 1e-12); /* smaller windows at the ends */
    assert_float_equal(c.y[1], 3, 1e-12);
    assert_float_equal(c.x[2], 3, 0);
    renyi_run_curve_free(&c);
    c = curve(r, RENYI_RUN_TOP1, RENYI_RUN_BY_SECONDS, 9, 0);
    assert_int_equal(c.n, 2);
    renyi_run_curve_free(&c);
    c = curve(r, RENYI_RUN_VAL_LOSS, RENYI_RUN_BY_EPOCH, 1, 0);
    assert_int_equal(c.n, 0);
    renyi_run_curve_free(&c);
    assert_int_equal(
        renyi_run_log_get_curve(&c, r, (renyi_run_quantity)99, RENYI_RUN_BY_EPOCH, 1, 0, NULL),
        RENYI_ERR_ARG);
    renyi_run_log_free(r);
    renyi_run_log_free(NULL);
}

/* Updates repeated after a resume count once; a cut last line is no error, a bad line inside is
 * reported. */
static void test_torn(void **state)
{
    (void)state;
    renyi_run_info i;
    renyi_run_log *r = open_text(CONFIG STEP(0, 1, 4) STEP(0, 2, 9) EPOCH(0, 2, 1) STEP(1, 3, 9)
                                     CONFIG STEP(0, 2, 3) EPOCH(0, 2, 7)
                                         STEP(1, 3, 2) "{\"kind\":\"step\",\"epoch\":1,\"st",
                                 &i);
    assert_int_equal(i.n_steps, 3);
    assert_int_equal(i.n_epochs, 1);
    assert_float_equal(i.top1, 7, 0);
    assert_int_equal(i.is_cut, 1);
    assert_int_equal(i.n_bad, 0);
    renyi_run_curve c = curve(r, RENYI_RUN_LOSS, RENYI_RUN_BY_STEP, 1, 0);
    assert_float_equal(c.y[1], 3, 0);
    renyi_run_curve_free(&c);
    renyi_run_log_free(r);
    r = open_text(CONFIG STEP(0, 1, 4) "{\"kind\":\"step\",\"ep" STEP(
                      0, 2, 3) "{\"kind\":\"step\",\"epoch\":-1,\"step\":2}\n" STEP(0, 3, 3),
                  &i);
    assert_int_equal(i.n_steps, 2);
    assert_int_equal(i.n_bad, 2);
    assert_int_equal(i.first_bad, 3);
    renyi_run_log_free(r);
}

/* If the log does not give the length of an epoch, whole epochs do. */
static void test_length_of_epochs(void **state)
{
    (void)state;
    renyi_run_info i;
    renyi_run_log *r =
        open_text(STEP(0, 10, 4) STEP(0, 20, 3) STEP(1, 30, 3) STEP(1, 40, 3) STEP(2, 45, 3), &i);
    assert_float_equal(i.epochs, 2.25, 1e-12);
    renyi_run_log_free(r);
    r = open_text(
        CONFIG
        "{\"kind\":\"epoch\",\"epoch\":-1,\"step\":0,\"train_loss\":null,\"val_top1\":40}\n" STEP(
            0, 1, 4) STEP(0, 2, 3) EPOCH(0, 2, 50)
            STEP(1, 3,
                 3) "{\"kind\":\"stop\",\"epoch\":1,\"step\":3,\"train_loss\":2,\"val_top1\":55}\n",
        &i);
    assert_float_equal(i.epochs, 1.5, 1e-12);
    renyi_run_curve c = curve(r, RENYI_RUN_TOP1, RENYI_RUN_BY_EPOCH, 1, 0);
    assert_int_equal(c.n, 3); /* before the first update, after an epoch, where it was stopped */
    assert_float_equal(c.x[0], 0, 0);
    assert_float_equal(c.x[2], 1.5, 1e-12);
    renyi_run_curve_free(&c);
    renyi_run_log_free(r);
    r = open_text(STEP(0, 10, 4) STEP(0, 20, 3), &i);
    assert_float_equal(i.epochs, 1, 1e-12);
    renyi_run_log_free(r);
}

static void test_stages(void **state)
{
    (void)state;
    renyi_run_info i;
    renyi_run_log *r;
    renyi_error err;
    assert_int_equal(mkdir("low", 0777), 0);
    write_log("low/log.jsonl", CONFIG STEP(0, 1, 4) STEP(0, 2, 3) EPOCH(0, 2, 50));
    write_log("high.jsonl", CONFIG STEP(0, 1, 2) EPOCH(0, 2, 55));
    assert_int_equal(renyi_run_log_open(&r, "low+high.jsonl", NULL, &err), RENYI_OK);
    renyi_run_log_get_info(r, &i);
    assert_int_equal(i.n_stages, 2);
    assert_float_equal(i.epochs, 2, 1e-12);
    assert_float_equal(i.steps, 4, 0);
    assert_float_equal(i.seconds, 3, 0);
    assert_float_equal(i.best_epoch, 2, 0);
    renyi_run_curve c = curve(r, RENYI_RUN_LOSS, RENYI_RUN_BY_EPOCH, 1, 0);
    assert_float_equal(c.x[2], 1.5, 1e-12);
    renyi_run_curve_free(&c);
    renyi_run_log_free(r);
    assert_int_equal(rename("high.jsonl", "a+b.jsonl"), 0); /* a file may have such a name */
    assert_int_equal(renyi_run_log_open(&r, "a+b.jsonl", NULL, &err), RENYI_OK);
    renyi_run_log_free(r);
    assert_int_equal(renyi_run_log_open(&r, "low+", NULL, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_run_log_open(&r, "low+nowhere", NULL, &err), RENYI_ERR_IO);
    assert_non_null(strstr(err.message, "nowhere"));
    assert_null(r);
    unlink("low/log.jsonl"), rmdir("low"), unlink("a+b.jsonl");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", CONFIG, "no JSON\n", "[1,2]\n", "\xff\xfe\n"};
    renyi_run_options o = {.struct_size = sizeof o, .max_lines = 2};
    renyi_run_log *r;
    renyi_error err;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_log("one.jsonl", texts[i]);
        assert_int_equal(renyi_run_log_open(&r, "one.jsonl", NULL, &err), RENYI_ERR_FORMAT);
        assert_non_null(strstr(err.message, "one.jsonl: no step and no epoch"));
    }
    write_log("one.jsonl", STEP(0, 1, 4) STEP(0, 2, 4) STEP(0, 3, 4));
    assert_int_equal(renyi_run_log_open(&r, "one.jsonl", &o, &err), RENYI_ERR_LIMIT);
    assert_non_null(strstr(err.message, "one.jsonl"));
    o = (renyi_run_options){.struct_size = sizeof o, .max_bytes = 20};
    assert_int_equal(renyi_run_log_open(&r, "one.jsonl", &o, &err), RENYI_ERR_LIMIT);
    o.struct_size = 1;
    assert_int_equal(renyi_run_log_open(&r, "one.jsonl", &o, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_run_log_open(NULL, "one.jsonl", NULL, &err), RENYI_ERR_ARG);
}

/* Means of many steps against the plain sums. */
static void test_means(void **state)
{
    (void)state;
    enum { N = 9000, WINDOW = 100 };
    renyi_run_log *r;
    static double loss[N];
    FILE *f = fopen("one.jsonl", "wb");
    assert_non_null(f);
    for (int i = 0; i < N; i++) {
        loss[i] = 2 + sin(i * 0.7) / 3 + 100.0 / (i + 20);
        fprintf(f, "{\"kind\":\"step\",\"epoch\":0,\"step\":%d,\"loss\":%.17g}\n", i + 1, loss[i]);
    }
    fclose(f);
    assert_int_equal(renyi_run_log_open(&r, "one.jsonl", NULL, NULL), RENYI_OK);
    renyi_run_curve c = curve(r, RENYI_RUN_LOSS, RENYI_RUN_BY_STEP, WINDOW, N);
    assert_int_equal(c.n, N);
    for (int i = 0; i < N; i++) {
        double sum = 0;
        int n = 0;
        for (int k = i - (WINDOW - 1) / 2; k <= i + WINDOW / 2; k++)
            if (k >= 0 && k < N) sum += loss[k], n++;
        assert_float_equal(c.y[i], sum / n, 1e-10);
    }
    renyi_run_curve_free(&c);
    c = curve(r, RENYI_RUN_LOSS, RENYI_RUN_BY_STEP, 1, 0);
    assert_int_equal(c.n, 1000);
    double sum = 0, want = 0;
    for (size_t i = 0; i < c.n; i++) {
        sum += c.y[i];
        if (i) assert_true(c.x[i] > c.x[i - 1]);
    }
    for (int i = 0; i < N; i++) want += loss[i];
    assert_float_equal(sum / 1000, want / N, 1e-9);
    assert_float_equal(c.x[0], 5, 1e-12); /* steps 1 to 9 */
    renyi_run_curve_free(&c);
    renyi_run_log_free(r);
}

static void test_no_memory(void **state)
{
    (void)state;
    write_log("one.jsonl", CONFIG STEP(0, 1, 4) STEP(0, 2, 3) EPOCH(0, 2, 60));
    for (size_t n = 1;; n++) {
        test_heap heap = {.fail_at = n};
        const renyi_run_options o = {.struct_size = sizeof o, .allocator = test_heap_of(&heap)};
        renyi_run_log *r;
        renyi_error err = {0};
        renyi_run_curve c = {0};
        renyi_status st = renyi_run_log_open(&r, "one.jsonl", &o, &err);
        if (!st) st = renyi_run_log_get_curve(&c, r, RENYI_RUN_LOSS, RENYI_RUN_BY_STEP, 1, 0, &err);
        renyi_run_curve_free(&c);
        renyi_run_log_free(r);
        assert_int_equal(heap.live, 0);
        if (!st) break;
        assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(n < 100);
    }
}

static char place[64];

static int enter(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "/tmp/test_run_log.XXXXXX");
    return mkdtemp(place) && chdir(place) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    unlink("one.jsonl");
    return chdir("/") || rmdir(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),    cmocka_unit_test(test_torn),
        cmocka_unit_test(test_stages),   cmocka_unit_test(test_length_of_epochs),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_means),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, enter, leave);
}
