/* test_sweep.c - a sweep gives the results of single evaluations: in one run, in pieces, or
 * resumed.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/test_heap.h"
#include "fixtures/toy_inputs.h"
#include "renyi/sweep.h"

#include <math.h>

enum { IMAGES = 10, BROKEN = 1, CLASSES = 5, POINTS = 2 * 2 * 3 };
static const char spec[] = "models a b\nsizes 64 96\npolicy none\n"
                           "policy evit keep=0.5|0.7 layers=0 metric=col n=2\n";
static renyi_grid *grid;
static char images[64], log_file[64]; /* valid longer than what at() returns */

/* What the callbacks of a sweep saw. */
typedef struct listener {
    renyi_allocator al;
    int stop_after, calls, failures, opened;
    double share, share_now;
    uint32_t n_passes;
} listener;

static renyi_status open_model(void *user, const char *name, uint32_t size, renyi_dtype dtype,
                               renyi_model **out, renyi_preprocess *preprocess, renyi_error *err)
{
    listener *l = user;
    char file[64];
    const renyi_options o = {
        .struct_size = sizeof o, .image_size = size, .dtype = dtype, .allocator = l->al};
    assert_int_equal(preprocess->size, 0);
    snprintf(file, sizeof file, "%s.safetensors", name);
    l->opened++;
    return renyi_model_open(out, at(file), &o, err);
}

static void on_failure(void *user, const char *file, const char *message)
{
    ((listener *)user)->failures++;
    assert_string_equal(file, "002/2.ppm");
    assert_true(message[0] != 0);
}

static int on_progress(void *user, const renyi_sweep_progress *p)
{
    listener *l = user;
    assert_true(p->share >= l->share && p->share <= 1 + 1e-9 && p->share_now <= p->share + 1e-9);
    assert_true(p->photos <= p->n_photos && p->n_photos == IMAGES && p->pass < p->n_passes);
    assert_true(p->answers <= p->n_answers && p->n_answers % IMAGES == 0);
    l->share = p->share;
    l->share_now = p->share_now;
    l->n_passes = p->n_passes;
    return ++l->calls == l->stop_after;
}

static renyi_sweep_options options(listener *l)
{
    return (renyi_sweep_options){.struct_size = sizeof(renyi_sweep_options),
                                 .batch = 4,
                                 .n_threads = 1,
                                 .data = images,
                                 .user = l,
                                 .open_model = open_model,
                                 .on_failure = on_failure,
                                 .progress = on_progress};
}

static renyi_sweep *run_ok(const renyi_sweep_options *o)
{
    renyi_error err = {0};
    renyi_sweep *s;
    if (renyi_sweep_new(&s, grid, o, &err) || renyi_sweep_run(s, &err)) fail_msg("%s", err.message);
    return s;
}

/* Everything that must not depend on how it was run. To be freed. */
static char *totals(const renyi_sweep *s)
{
    char *text = calloc(1, 1 << 16), *to = text;
    const size_t n = renyi_sweep_count(s);
    for (size_t i = 0; i < n; i++) {
        renyi_sweep_point p;
        renyi_sweep_get(s, i, &p);
        to += sprintf(to, "%s %u %s: %d of %d, %d failed, loss %.17g, %.17g\n", p.model,
                      p.image_size, p.result.policy, (int)p.result.n_top1, (int)p.result.images,
                      (int)p.result.failed, p.result.loss, p.result.gmacs);
    }
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < a; b++) {
            renyi_eval_pair q;
            renyi_sweep_get_pair(s, a, b, &q);
            to += sprintf(to, "%d %d %d %d %d %.17g\n", (int)q.both, (int)q.only_a, (int)q.only_b,
                          (int)q.none, (int)q.same, q.p_value);
        }
    return text;
}

static char *reference(void)
{
    listener l = {0};
    const renyi_sweep_options o = options(&l);
    renyi_sweep *s = run_ok(&o);
    char *text = totals(s);
    assert_int_equal(l.failures, BROKEN);
    assert_true(l.share > 1 - 1e-9 && l.n_passes == 4);
    assert_true(l.share_now > 0.85 && l.share_now < 0.95); /* the broken image took no time */
    renyi_sweep_free(s);
    return text;
}

/* ---- the same as single evaluations -------------------------------------------------------- */

static void assert_same_result(const renyi_eval_result *a, const renyi_eval_result *b)
{
    assert_string_equal(a->policy, b->policy);
    assert_true(a->images == b->images && a->failed == b->failed);
    assert_true(a->n_top1 == b->n_top1 && a->n_top5 == b->n_top5 && a->loss == b->loss);
    assert_true(a->gmacs == b->gmacs && a->gmacs_executed == b->gmacs_executed);
}

/* Points first, first + 1 and first + 2 against a single evaluation. */
static void check_group(const renyi_sweep *s, size_t first)
{
    listener l = {0};
    renyi_sweep_point p;
    renyi_model *m;
    renyi_dataset *d;
    renyi_eval *e;
    renyi_preprocess none = {0};
    const char *policies[3];
    renyi_sweep_get(s, first, &p);
    for (size_t i = 0; i < 3; i++) {
        renyi_sweep_point q;
        renyi_sweep_get(s, first + i, &q);
        policies[i] = q.result.policy;
    }
    const renyi_eval_options o = {.struct_size = sizeof o, .n_policies = 3, .policies = policies};
    assert_int_equal(open_model(&l, p.model, p.image_size, p.dtype, &m, &none, NULL), RENYI_OK);
    assert_int_equal(renyi_dataset_open(&d, at("images"), m, NULL, NULL), RENYI_OK);
    assert_int_equal(renyi_eval_new(&e, m, d, &o, NULL), RENYI_OK);
    assert_int_equal(renyi_eval_run(e, NULL), RENYI_OK);
    for (uint32_t i = 0; i < 3; i++) {
        renyi_eval_result alone;
        renyi_eval_pair x, y;
        renyi_eval_get_result(e, i, &alone);
        renyi_sweep_get(s, first + i, &p);
        assert_same_result(&p.result, &alone);
        renyi_eval_get_pair(e, 0, i, &x);
        renyi_sweep_get_pair(s, first, first + i, &y);
        assert_memory_equal(&x, &y, offsetof(renyi_eval_pair, is_noise));
    }
    renyi_eval_free(e);
    renyi_dataset_free(d);
    renyi_model_free(m);
}

static void test_same_as_alone(void **state)
{
    (void)state;
    listener l = {0};
    const renyi_sweep_options o = options(&l);
    renyi_sweep *s = run_ok(&o);
    renyi_dataset_info data;
    renyi_eval_times t;
    renyi_eval_failure f;
    assert_int_equal(renyi_sweep_count(s), POINTS);
    for (size_t first = 0; first < POINTS; first += 3) check_group(s, first);
    renyi_sweep_get_data(s, &data);
    renyi_sweep_get_times(s, &t);
    assert_true(data.n_images == IMAGES && t.images == 4 * (IMAGES - BROKEN) && t.resumed == 0);
    assert_int_equal(renyi_sweep_failure_count(s), BROKEN);
    renyi_sweep_get_failure(s, 0, &f);
    assert_string_equal(f.file, "002/2.ppm");
    renyi_sweep_free(s);
}

static void test_points(void **state)
{
    (void)state;
    listener l = {0};
    const renyi_sweep_options o = options(&l);
    renyi_sweep *s;
    renyi_sweep_point p;
    assert_int_equal(renyi_sweep_new(&s, grid, &o, NULL), RENYI_OK);
    renyi_sweep_get(s, 0, &p);
    assert_true(p.image_size == 64 && p.native_size == 224 && p.n_blocks == 2 && !p.is_bound);
    assert_true(p.tokens[0] == 17 && p.tokens[1] == 17 && p.result.images == 0);
    assert_true(isnan(p.result.top1) && isnan(p.result.ms_model));
    renyi_sweep_get(s, 4, &p);
    assert_true(p.image_size == 96 && p.tokens[0] == 1 + 18 + 1 && p.tokens[1] == p.tokens[0]);
    assert_true(p.result.gmacs > 0 && p.n_params > 0 && p.preprocess.size == 96);
    assert_string_equal(p.architecture, "vit_d64_l2_patch16_224");
    renyi_sweep_get(s, POINTS - 1, &p);
    assert_string_equal(p.model, "b");
    renyi_sweep_free(s);
}

/* ---- in pieces ----------------------------------------------------------------------------- */

static void test_little_memory(void **state)
{
    (void)state;
    char *want = reference();
    listener l = {0};
    renyi_sweep_options o = options(&l);
    o.max_bytes = 1;
    renyi_sweep *s = run_ok(&o);
    char *got = totals(s);
    assert_string_equal(got, want);
    assert_int_equal(l.n_passes, POINTS); /* each policy alone */
    assert_int_equal(l.failures, BROKEN);
    renyi_sweep_free(s);
    free(got);
    free(want);
}

static void test_stopped_anywhere(void **state)
{
    (void)state;
    char *want = reference();
    for (int stop = 1; stop < 12; stop += 3) { /* three batches a pass */
        listener l = {.stop_after = stop};
        renyi_sweep_options o = options(&l);
        renyi_error err = {0};
        renyi_eval_times t;
        renyi_sweep *s;
        remove(log_file);
        o.log = log_file;
        assert_int_equal(renyi_sweep_new(&s, grid, &o, &err), RENYI_OK);
        assert_int_equal(renyi_sweep_run(s, &err), RENYI_ERR_ABORTED);
        renyi_sweep_free(s);
        l = (listener){0};
        assert_int_equal(renyi_sweep_new(&s, grid, &o, &err), RENYI_OK);
        assert_int_equal(renyi_sweep_run(s, &err), RENYI_ERR_ARG); /* not by accident */
        renyi_sweep_free(s);
        l = (listener){0};
        o.resume = 1;
        s = run_ok(&o);
        renyi_sweep_get_times(s, &t);
        assert_true(t.resumed > 0 && l.share_now < 0.9);
        char *got = totals(s);
        assert_string_equal(got, want);
        free(got);
        renyi_sweep_free(s);
    }
    free(want);
}

/* ---- what cannot be run -------------------------------------------------------------------- */

static renyi_grid *grid_of(const char *text)
{
    renyi_grid *g;
    const renyi_grid_options o = {.struct_size = sizeof o, .file = put("spec", text)};
    assert_int_equal(renyi_grid_new(&g, &o, NULL), RENYI_OK);
    return g;
}

static void test_skipped(void **state)
{
    (void)state;
    listener l = {0};
    const renyi_sweep_options o = options(&l);
    renyi_error err = {0};
    renyi_sweep *s;
    renyi_sweep_skip skip;
    renyi_grid *g = grid_of("models a\nsizes 64 224 model\npolicy naive p=10 layers=0-1|all\n"
                            "policy none\npolicy evit layers=5\npolicy ats layers=0\n");
    assert_int_equal(renyi_sweep_new(&s, g, &o, &err), RENYI_OK);
    /* 16 patches at 64 pixels do not last for two cuts of 10; 224 is the model's own; all = 0-1 */
    assert_int_equal(renyi_sweep_count(s), 2 + 3);
    assert_int_equal(renyi_sweep_skip_count(s), 3 + 1);
    renyi_sweep_get_skip(s, 0, &skip);
    assert_true(skip.image_size == 64 && strcmp(skip.model, "a") == 0 && skip.message[0]);
    assert_non_null(strstr(skip.policy, "naive p=10"));
    renyi_sweep_point p;
    renyi_sweep_get(s, 1, &p);
    assert_true(p.is_bound && p.image_size == 64);
    renyi_sweep_free(s);
    renyi_grid_free(g);

    g = grid_of("models a\npolicy evit layers=5\n");
    assert_int_equal(renyi_sweep_new(&s, g, &o, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "nothing to run"));
    renyi_grid_free(g);
    g = grid_of("models a\nsizes 70\npolicy none\n");
    assert_int_not_equal(renyi_sweep_new(&s, g, &o, &err), RENYI_OK);
    assert_non_null(strstr(err.message, "70"));
    renyi_grid_free(g);
    g = grid_of("models a missing\npolicy none\n"); /* before anything is run */
    assert_int_not_equal(renyi_sweep_new(&s, g, &o, &err), RENYI_OK);
    assert_non_null(strstr(err.message, "missing.safetensors"));
    assert_int_equal(l.calls, 0);
    renyi_grid_free(g);
}

static void test_other_classes(void **state)
{
    (void)state;
    listener l = {0};
    renyi_sweep_options o = options(&l);
    renyi_error err = {0};
    renyi_sweep *s;
    renyi_grid *g = grid_of("models a c\nsizes 64\npolicy none\n"); /* c has more classes */
    assert_int_equal(renyi_sweep_new(&s, g, &o, &err), RENYI_OK);
    assert_int_equal(renyi_sweep_run(s, &err), RENYI_OK);
    renyi_eval_pair pair;
    renyi_sweep_get_pair(s, 0, 1, &pair);
    assert_int_equal(pair.both + pair.only_a + pair.only_b + pair.none, IMAGES - BROKEN);
    renyi_sweep_free(s);
    o.data = at("nowhere");
    assert_int_equal(renyi_sweep_new(&s, g, &o, &err), RENYI_ERR_IO);
    o.data = NULL;
    assert_int_equal(renyi_sweep_new(&s, g, &o, &err), RENYI_ERR_ARG);
    assert_null(s);
    renyi_grid_free(g);
}

static void test_no_memory(void **state)
{
    (void)state;
    renyi_grid *g = grid_of("models a\nsizes 64\npolicy none|fast\npolicy evit layers=0\n");
    int good = 0;
    for (size_t fail = 1; !good; fail++) {
        test_heap heap = {.fail_at = fail, .fail_on = 1};
        listener l = {0};
        renyi_sweep_options o = options(&l);
        renyi_sweep *s;
        o.allocator = test_heap_of(&heap);
        renyi_status st = renyi_sweep_new(&s, g, &o, NULL);
        if (!st) st = renyi_sweep_run(s, NULL);
        renyi_sweep_free(s);
        assert_int_equal(heap.live, 0);
        good = st == RENYI_OK;
        if (!good) assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(fail < 500);
    }
    renyi_grid_free(g);
}

/* ---- the fixture --------------------------------------------------------------------------- */

/* Image 2 is cut short. */
static void make_image(int i)
{
    enum { WIDTH = 24, HEIGHT = 18 };
    char name[64];
    snprintf(name, sizeof name, "images/%03d/%d.ppm", i % CLASSES, i);
    put_noise(name, WIDTH, HEIGHT, (uint32_t)i * 977u + 5u, 5, i == 2 ? 100 : 3 * WIDTH * HEIGHT);
}

static int set_up(void **state)
{
    if (folder_make(state)) return -1;
    snprintf(images, sizeof images, "%s/images", root);
    snprintf(log_file, sizeof log_file, "%s/log.jsonl", root);
    for (int i = 0; i < IMAGES; i++) make_image(i);
    if (!put_model("a.safetensors", 1, CLASSES) || !put_model("b.safetensors", 2, CLASSES) ||
        !put_model("c.safetensors", 3, CLASSES + 2))
        return -1;
    grid = grid_of(spec);
    return 0;
}

static int tear_down(void **state)
{
    renyi_grid_free(grid);
    return folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_alone), cmocka_unit_test(test_points),
        cmocka_unit_test(test_little_memory), cmocka_unit_test(test_stopped_anywhere),
        cmocka_unit_test(test_skipped),       cmocka_unit_test(test_other_classes),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
