/* test_eval.c - the totals of an evaluation do not depend on threads, batches or interruptions.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/run/evaluation.h"
#include "fixtures/eval_fixture.h"
#include "fixtures/test_heap.h"

#include <math.h>

static const char *const policies[] = {"none", "evit keep=0.5 layers=0 metric=col n=4"};

static renyi_eval_options options(void)
{
    return (renyi_eval_options){.struct_size = sizeof(renyi_eval_options),
                                .policies = policies,
                                .n_policies = 2,
                                .batch = 4,
                                .n_threads = 1};
}

static renyi_eval *new_ok(const renyi_eval_options *o)
{
    renyi_error err = {0};
    renyi_eval *e;
    if (renyi_eval_new(&e, fixture.model, fixture.data, o, &err)) fail_msg("%s", err.message);
    return e;
}

static renyi_eval *run_ok(const renyi_eval_options *o)
{
    renyi_error err = {0};
    renyi_eval *e = new_ok(o);
    if (renyi_eval_run(e, &err)) fail_msg("%s", err.message);
    return e;
}

static char *reference(void)
{
    const renyi_eval_options o = options();
    renyi_eval *e = run_ok(&o);
    char *text = totals(e);
    renyi_eval_free(e);
    return text;
}

static void test_any_threads_and_batches(void **state)
{
    (void)state;
    static const uint32_t settings[][3] = {{1, 1, 1}, {1, 2, 0}, {3, 2, 2}, {8, 1, 3}, {64, 2, 1}};
    char *want = reference();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        renyi_eval_options o = options();
        o.batch = settings[i][0];
        o.n_threads = settings[i][1];
        o.n_workers = settings[i][2];
        renyi_eval *e = run_ok(&o);
        assert_totals(e, want);
        renyi_eval_free(e);
    }
    free(want);
}

static void test_results(void **state)
{
    (void)state;
    const renyi_eval_options o = options();
    renyi_eval *e = run_ok(&o);
    renyi_eval_result r, q;
    renyi_eval_times t;
    renyi_eval_pair pair;
    renyi_eval_get_result(e, 0, &r);
    renyi_eval_get_result(e, 1, &q);
    renyi_eval_get_times(e, &t);
    assert_string_equal(r.policy, "none");
    assert_true(r.images == IMAGES - BROKEN && r.failed == BROKEN && t.images == r.images);
    assert_true(fabs(r.top1 - 100.0 * (double)r.n_top1 / (double)r.images) < 1e-12);
    assert_true(r.n_top1 <= r.n_top5 && r.top1_range.low <= r.top1 && r.top1 <= r.top1_range.high);
    assert_true(r.gmacs > q.gmacs && r.gmacs_executed > q.gmacs_executed && q.gmacs > 0);
    assert_true(r.ms_model > 0 && r.ms_total >= r.ms_model && r.images_per_second > 0);
    assert_true(t.seconds >= t.seconds_model && t.seconds_decode > 0 && t.resumed == 0);
    renyi_eval_get_pair(e, 0, 1, &pair);
    assert_true(pair.both + pair.only_a == r.n_top1 && pair.both + pair.only_b == q.n_top1);
    assert_true(pair.both + pair.only_a + pair.only_b + pair.none == r.images);
    assert_true(pair.same < r.images && pair.p_value > 0 && pair.p_value <= 1);
    renyi_eval_get_pair(e, 1, 1, &pair);
    assert_true(pair.same == r.images && pair.p_value == 1.0 && pair.is_noise);
    assert_int_equal(renyi_eval_failure_count(e), BROKEN);
    renyi_eval_failure f;
    renyi_eval_get_failure(e, 1, &f);
    assert_string_equal(f.file, "007/07.ppm");
    assert_true(f.message[0] != 0);
    renyi_eval_free(e);
}

/* ---- cascades ------------------------------------------------------------------------------ */

/* A cascade that some images pass in one run, and how many need two. text: [RENYI_POLICY_MAX] */
static uint32_t make_cascade(char *text)
{
    const renyi_eval_options o = options();
    renyi_eval *e = run_ok(&o);
    renyi_eval_sample s;
    uint32_t n = 0;
    assert_true(renyi_eval_get_sample(e, 1, 3, &s));
    snprintf(text, RENYI_POLICY_MAX, "cascade(%s -> none if margin < %.6f)", policies[1],
             s.margin + 1e-5);
    const double bound = strtod(strchr(text, '<') + 1, NULL);
    for (size_t i = 0; i < IMAGES; i++) n += renyi_eval_get_sample(e, 1, i, &s) && s.margin < bound;
    renyi_eval_free(e);
    assert_true(n > 0 && n < IMAGES - BROKEN);
    return n;
}

/* Costs are means over the images and the same for any batch, also after a resumed run. */
static void test_cascade(void **state)
{
    (void)state;
    char text[RENYI_POLICY_MAX];
    const double twice = make_cascade(text);
    const char *const list[] = {"none", text};
    renyi_error err = {0};
    renyi_eval_result r, dense;
    renyi_cost cost;
    renyi_eval_options o = options();
    o.policies = list;
    o.log = at("cascade.jsonl");
    renyi_eval *e = run_ok(&o);
    renyi_eval_get_result(e, 0, &dense);
    renyi_eval_get_result(e, 1, &r);
    assert_true(!dense.is_cascade && dense.second_share == 0 && r.is_cascade);
    assert_true(fabs(r.second_share - twice / (double)r.images) < 1e-12);
    assert_int_equal(renyi_policy_cost(fixture.model, NULL, text, &cost, NULL, 0, &err), RENYI_OK);
    const double once = 1 - r.second_share;
    assert_true(fabs(1e9 * r.gmacs - (cost.total.macs - once * cost.second.macs)) < 1);
    assert_true(fabs(1e9 * r.gmacs_executed -
                     (cost.total.macs_executed - once * cost.second.macs_executed)) < 1);
    char *want = totals(e);
    renyi_eval_free(e);
    o.resume = 1; /* nothing runs: all comes from the log */
    e = run_ok(&o);
    assert_totals(e, want);
    renyi_eval_free(e);
    o.resume = 0;
    o.log = NULL;
    for (uint32_t batch = 1; batch <= 64; batch *= 8) {
        o.batch = batch;
        o.n_threads = 2;
        e = run_ok(&o);
        assert_totals(e, want);
        renyi_eval_free(e);
    }
    free(want);
}

/* ---- logs ---------------------------------------------------------------------------------- */

static int stop_at_9(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    assert_int_equal(total, IMAGES);
    return done >= 9;
}

static void test_interrupted(void **state)
{
    (void)state;
    char *want = reference();
    renyi_eval_options o = options();
    renyi_error err = {0};
    renyi_eval_result r;
    renyi_eval_times t;
    o.log = at("stopped.jsonl");
    o.progress = stop_at_9;
    renyi_eval *e = new_ok(&o);
    assert_int_equal(renyi_eval_run(e, &err), RENYI_ERR_ABORTED);
    renyi_eval_get_result(e, 0, &r);
    assert_true(r.images + r.failed == 12); /* whole batches */
    renyi_eval_free(e);
    o.progress = NULL;
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "this file already has results"));
    o.resume = 1;
    e = run_ok(&o);
    assert_totals(e, want);
    renyi_eval_get_times(e, &t);
    assert_true(t.resumed == r.images && t.images == IMAGES - BROKEN - r.images);
    renyi_eval_free(e);
    e = run_ok(&o); /* only the broken images are left */
    assert_totals(e, want);
    renyi_eval_get_times(e, &t);
    assert_int_equal(t.images, 0);
    renyi_eval_free(e);
    free(want);
}

static void test_torn_anywhere(void **state)
{
    (void)state;
    char *want = reference();
    renyi_eval_options o = options();
    o.log = at("whole.jsonl");
    renyi_eval_free(run_ok(&o));
    char *whole = read_all(o.log);
    const size_t size = strlen(whole);
    o.log = at("torn.jsonl");
    o.resume = 1;
    for (size_t cut = 0; cut <= size; cut += 1 + size / 25) {
        FILE *f = fopen(at("torn.jsonl"), "wb");
        assert_non_null(f);
        fwrite(whole, 1, cut, f);
        fclose(f);
        renyi_eval *e = run_ok(&o);
        assert_totals(e, want);
        renyi_eval_free(e);
        char *after = read_all(at("torn.jsonl"));
        assert_true(strlen(after) >= size - 200 && after[strlen(after) - 1] == '\n');
        e = run_ok(&o); /* the added lines can be read */
        assert_totals(e, want);
        renyi_eval_free(e);
        free(after);
    }
    free(whole);
    free(want);
}

static void test_other_logs(void **state)
{
    (void)state;
    renyi_eval_options o = options();
    renyi_error err = {0};
    renyi_eval_times t;
    renyi_eval *e;
    o.log = at("other.jsonl");
    renyi_eval_free(run_ok(&o));
    o.resume = 1;
    o.name = "another model"; /* its answers are of another run */
    e = run_ok(&o);
    renyi_eval_get_times(e, &t);
    assert_int_equal(t.resumed, 0);
    renyi_eval_free(e);
    o.name = NULL;
    o.n_policies = 1; /* the log has lines of two models and two policies */
    e = run_ok(&o);
    renyi_eval_get_times(e, &t);
    assert_int_equal(t.resumed, IMAGES - BROKEN);
    renyi_eval_free(e);
    static const char *const wrong[] = {"{\"file\": \"a\"}\n", "[1]\n", "\x01\n", "{}{}\n"};
    for (size_t i = 0; i < 4; i++) {
        FILE *f = fopen(at("wrong.jsonl"), "w");
        assert_non_null(f);
        fprintf(f, "\n%s", wrong[i]);
        fclose(f);
        o.log = at("wrong.jsonl");
        assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err),
                         RENYI_ERR_FORMAT);
        assert_non_null(strstr(err.message, "wrong.jsonl:2"));
    }
    o.log = at("nowhere/log.jsonl");
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_ERR_IO);
    o.log = "/dev/full";
    e = new_ok(&o);
    assert_int_equal(renyi_eval_run(e, &err), RENYI_ERR_IO);
    renyi_eval_free(e);
}

/* ---- options ------------------------------------------------------------------------------- */

static void test_bad_options(void **state)
{
    (void)state;
    static const char *const twice[] = {"none", "none"}, *const bad[] = {"evit keep=2"};
    renyi_eval_options o = options();
    renyi_error err = {0};
    renyi_model_info info;
    renyi_eval *e;
    o.policies = twice;
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "given twice"));
    o.policies = bad;
    o.n_policies = 1;
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_ERR_ARG);
    assert_null(e);
    o = options();
    renyi_model_get_info(fixture.model, &info);
    renyi_preprocess p = info.preprocess;
    o.preprocess = &p;
    p.size = 160;
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_ERR_ARG);
    p = info.preprocess; /* the same normalization, but on floats */
    p.mean[0] += 1e-17;
    p.std[0] = nextafter(p.std[0], 1);
    renyi_eval *floats = run_ok(&o);
    char *want = reference(), *got = totals(floats);
    assert_memory_equal(got, want, 20);
    renyi_eval_free(floats);
    free(want);
    free(got);
    o.struct_size = 1u << 20;
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_ERR_ARG);
}

/* A model per policy: with other models for the same rows the totals are the same; models that do
 * not fit each other are refused. */
static void test_models(void **state)
{
    (void)state;
    const renyi_options small = {.struct_size = sizeof small, .image_size = 160};
    const renyi_options eight = {.struct_size = sizeof eight, .dtype = RENYI_DTYPE_INT8};
    renyi_eval_options o = options();
    renyi_error err = {0};
    renyi_model *other = NULL;
    const renyi_model *models[] = {fixture.model, fixture.model};
    renyi_eval_result r;
    char *want = reference();
    o.models = models;
    renyi_eval *e = run_ok(&o);
    assert_totals(e, want);
    renyi_eval_get_result(e, 1, &r);
    assert_int_equal(r.dtype, RENYI_DTYPE_F32);
    renyi_eval_free(e);
    free(want);
    models[1] = NULL;
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_model_open(&other, at("m.safetensors"), &small, &err), RENYI_OK);
    models[1] = other;
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "images of 160 pixels"));
    renyi_model_free(other);
    if (renyi_dtype_check(RENYI_DTYPE_INT8, RENYI_CPU_AUTO, NULL)) return;
    static const char *const same[] = {"none", "none"}; /* not twice: in two dtypes */
    assert_int_equal(renyi_model_open(&other, at("m.safetensors"), &eight, &err), RENYI_OK);
    models[1] = other;
    o.policies = same;
    e = run_ok(&o);
    renyi_eval_get_result(e, 1, &r);
    assert_int_equal(r.dtype, RENYI_DTYPE_INT8);
    renyi_eval_free(e);
    renyi_model_free(other);
}

static void test_answers(void **state)
{
    (void)state;
    const float logits[6] = {1, 3, 3, -2, 0, 2};
    const uint32_t valid[3] = {0, 3, 4};
    const ry_choice all = {6, 0, NULL}, some = {6, 3, valid};
    ry_answer a;
    ry_answer_read(&a, logits, &all, 5);
    assert_true(a.state == RY_ANSWER_GIVEN && a.n_top == 5 && a.margin == 0.0f);
    const uint32_t top[5] = {1, 2, 5, 0, 4};
    assert_memory_equal(a.top, top, sizeof top);
    double sum = 0;
    for (int i = 0; i < 6; i++) sum += exp((double)logits[i]);
    assert_true(fabs(a.loss - (log(sum) - 2)) < 1e-12);
    ry_answer_read(&a, logits, &some, 3);
    assert_true(a.n_top == 3 && a.top[0] == 0 && a.top[1] == 4 && a.top[2] == 3);
    assert_true(fabs(a.loss - (log(exp(1) + exp(-2) + exp(0)) + 2)) < 1e-12 && a.margin == 1.0f);
    ry_answer_read(&a, logits, &some, RENYI_NO_CLASS);
    assert_true(isnan(a.loss));
    const uint32_t right[2] = {4, 9};
    const renyi_dataset_image image = {.right = right, .n_right = 2};
    ry_answer_judge(&a, &image);
    assert_int_equal(a.right, 2);
    const float nan[2] = {NAN, 1}, huge[2] = {INFINITY, 1};
    const ry_choice two = {2, 0, NULL};
    ry_answer_read(&a, nan, &two, 0);
    assert_int_equal(a.state, RY_ANSWER_NAN);
    ry_answer_read(&a, huge, &two, 0);
    assert_int_equal(a.state, RY_ANSWER_NAN);
}

/* ---- every allocation may fail ------------------------------------------------------------- */

/* ---- a rule of the caller's own ------------------------------------------------------------ */

static int score_columns(void *user, const renyi_rule_view *v, float *score)
{
    if (user && v->image == 2) return *(const int *)user;
    memcpy(score, v->columns, v->n_tokens * sizeof *score);
    return 0;
}

static void test_own_rule(void **state)
{
    (void)state;
    static const char *const own[] = {"mine keep=0.5 layers=0 n=4", "failing layers=0"},
                             *const built_in[] = {
                                 "evit keep=0.5 layers=0 metric=col n=4 reduce=drop"};
    static int answer = 42;
    renyi_rule rule = {.struct_size = sizeof rule,
                       .name = "mine",
                       .needs = RENYI_NEED_COLUMNS,
                       .score = score_columns};
    renyi_error err = {0};
    renyi_eval *e;
    assert_int_equal(renyi_model_add_rule(fixture.model, &rule, &err), RENYI_OK);
    rule.name = "failing", rule.user = &answer;
    assert_int_equal(renyi_model_add_rule(fixture.model, &rule, &err), RENYI_OK);
    renyi_eval_options o = options();
    o.n_policies = 1;
    o.policies = own;
    renyi_eval *mine = run_ok(&o);
    o.policies = built_in;
    renyi_eval *evit = run_ok(&o);
    char *a = totals(mine), *b = totals(evit);
    assert_string_equal(strchr(a, ':'), strchr(b, ':')); /* all but the policy */
    free(a);
    free(b);
    renyi_eval_free(mine);
    renyi_eval_free(evit);
    o.policies = own + 1;
    assert_int_equal(renyi_eval_new(&e, fixture.model, fixture.data, &o, &err), RENYI_OK);
    assert_int_equal(renyi_eval_run(e, &err), RENYI_ERR_ABORTED);
    assert_non_null(strstr(err.message, "rule 'failing' returned 42 in block 0, image 2"));
    renyi_eval_free(e);
}

static void test_no_memory(void **state)
{
    (void)state;
    int good = 0;
    for (int allowed = 0; !good; allowed++) {
        test_heap f = {.fail_at = (size_t)allowed + 1, .fail_on = 1};
        renyi_error err = {0};
        renyi_eval_options o = options();
        renyi_eval *e;
        remove(at("memory.jsonl"));
        o.log = at("memory.jsonl");
        o.resume = 1;
        o.allocator = test_heap_of(&f);
        renyi_status st = renyi_eval_new(&e, fixture.model, fixture.data, &o, &err);
        if (!st) st = renyi_eval_run(e, &err);
        renyi_eval_free(e);
        assert_int_equal(f.live, 0);
        good = st == RENYI_OK;
        if (!good) assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(allowed < 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_threads_and_batches),
                                       cmocka_unit_test(test_results),
                                       cmocka_unit_test(test_cascade),
                                       cmocka_unit_test(test_interrupted),
                                       cmocka_unit_test(test_torn_anywhere),
                                       cmocka_unit_test(test_other_logs),
                                       cmocka_unit_test(test_bad_options),
                                       cmocka_unit_test(test_models),
                                       cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_own_rule),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
