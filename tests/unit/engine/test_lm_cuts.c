/* test_lm_cuts.c - rules inside the language model (FastV, PyramidDrop, DART, SparseVLM) on a small
 * random Llama against an independent reference (tests/lm_cuts, written by tools/ref/lm_cuts.py):
 * which rows stay, their scores, logits, greedy tokens, a second question. Then what must hold for
 * any model: keeping all is no pruning, bits do not depend on passes and threads, rewinding,
 * memory.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/json.h"
#include "renyi/lm.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"
#include "fixtures/test_heap.h"

enum {
    VISUAL = 40,
    DIM = 48,
    VOCAB = 97,
    BEFORE = 7,
    AFTER = 9,
    SECOND = 5,
    GREEDY = 12,
    LAYERS = 6
};
enum { ROWS = BEFORE + VISUAL + AFTER };

static const char model_path[] = RENYI_SOURCE_DIR "/tests/lm_cuts";
static ry_tensors *expected;
static json_t *policies;
static renyi_lm_input prompt[ROWS], second[SECOND];

static int open_expected(void **state)
{
    const char *text;
    renyi_error err = {0};
    (void)state;
    if (ry_safetensors_open(&expected, RENYI_SOURCE_DIR "/tests/lm_cuts/expected.safetensors", NULL,
                            NULL, &err))
        fail_msg("%s", err.message);
    text = ry_tensors_meta(expected, "policies");
    assert_non_null(text);
    assert_int_equal(ry_json_parse(&policies, text, strlen(text), "policies", NULL, &err), 0);
    const int32_t *before = golden_tap(expected, "before"), *after = golden_tap(expected, "after");
    const float *rows = golden_tap(expected, "rows");
    for (int i = 0; i < BEFORE; i++) prompt[i].token = before[i];
    for (int i = 0; i < VISUAL; i++) prompt[BEFORE + i].embedding = rows + i * DIM;
    for (int i = 0; i < AFTER; i++) prompt[BEFORE + VISUAL + i].token = after[i];
    for (int i = 0; i < SECOND; i++)
        second[i].token = ((const int32_t *)golden_tap(expected, "second"))[i];
    return 0;
}

static int close_expected(void **state)
{
    (void)state;
    json_decref(policies);
    ry_tensors_free(expected);
    return 0;
}

static const char *policy_of(const char *name)
{
    return json_string_value(json_object_get(policies, name));
}

/* ---- sessions -------------------------------------------------------------------------------- */

static renyi_lm *open_lm(renyi_cpu level)
{
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level};
    renyi_lm *lm;
    renyi_error err = {0};
    if (renyi_lm_open(&lm, model_path, &opt, &err)) fail_msg("%s", err.message);
    return lm;
}

static renyi_lm_session *open_session(const renyi_lm *lm, const char *policy, uint32_t max_rows,
                                      uint32_t threads, uint32_t bits)
{
    const renyi_lm_session_options opt = {.struct_size = sizeof opt,
                                          .max_rows = max_rows,
                                          .n_threads = threads,
                                          .cache_bits = bits,
                                          .policy = policy};
    renyi_lm_session *s;
    renyi_error err = {0};
    if (renyi_lm_session_new(&s, lm, &opt, &err))
        fail_msg("%s: %s", policy ? policy : "no policy", err.message);
    return s;
}

static void feed(renyi_lm_session *s, const renyi_lm_input *in, uint32_t n, float *logits)
{
    renyi_error err = {0};
    if (renyi_lm_feed(s, in, n, logits, &err)) fail_msg("%s", err.message);
}

/* Prompt, twelve greedy tokens, a second question. */
typedef struct answer {
    float logits[VOCAB], second[VOCAB];
    int32_t tokens[GREEDY];
} answer;

static answer ask(renyi_lm_session *s)
{
    static answer a;
    float logits[VOCAB];
    feed(s, prompt, ROWS, a.logits);
    memcpy(logits, a.logits, sizeof logits);
    for (int i = 0; i < GREEDY; i++) {
        int32_t best = 0;
        for (int32_t j = 1; j < VOCAB; j++)
            if (logits[j] > logits[best]) best = j;
        a.tokens[i] = best;
        feed(s, &(renyi_lm_input){NULL, best}, 1, logits);
    }
    feed(s, second, SECOND, a.second);
    return a;
}

static answer ask_policy(const renyi_lm *lm, const char *policy, uint32_t max_rows,
                         uint32_t threads)
{
    renyi_lm_session *s = open_session(lm, policy, max_rows, threads, 0);
    const answer a = ask(s);
    renyi_lm_session_free(s);
    return a;
}

/* ---- against the reference ------------------------------------------------------------------- */

static const ry_tensor *find(const char *name, const char *what, int cut)
{
    char full[64];
    snprintf(full, sizeof full, cut < 0 ? "%s.%s" : "%s.%s%d", name, what, cut);
    return ry_tensors_find(expected, full);
}

static double error_of(const float *got, const ry_tensor *want)
{
    double worst = 0.0;
    for (size_t i = 0; i < want->shape[0]; i++)
        worst = golden_worse(worst, fabs((double)got[i] - (double)((const float *)want->data)[i]));
    return worst;
}

static void check_cuts(const renyi_lm_session *s, const char *name)
{
    renyi_lm_cut cut;
    uint32_t n = 0;
    while (renyi_lm_session_get_cut(s, n, &cut)) {
        const ry_tensor *kept = find(name, "kept", (int)n), *score = find(name, "score", (int)n);
        assert_non_null(kept);
        assert_int_equal(cut.n_kept, kept->shape[0]);
        assert_memory_equal(cut.kept, kept->data, (size_t)kept->bytes);
        assert_int_equal(score != NULL, cut.scores != NULL);
        if (score) assert_int_equal(cut.n_in, score->shape[0]);
        if (score) assert_true(error_of(cut.scores, score) < 1e-5);
        n++;
    }
    assert_null(find(name, "kept", (int)n));
}

static void check_level(renyi_cpu level, uint32_t bits, double tolerance)
{
    renyi_lm *lm = open_lm(level);
    const char *name;
    json_t *policy;
    double worst = 0.0;
    json_object_foreach(policies, name, policy)
    {
        renyi_lm_session *s = open_session(lm, json_string_value(policy), 0, 2, bits);
        const answer a = ask(s);
        check_cuts(s, name);
        worst = golden_worse(worst, error_of(a.logits, find(name, "logits", -1)));
        worst = golden_worse(worst, error_of(a.second, find(name, "second", -1)));
        if (bits != 16)
            assert_memory_equal(a.tokens, find(name, "tokens", -1)->data, sizeof a.tokens);
        renyi_lm_session_free(s);
    }
    printf("%s, %u bits: %zu policies, logits within %.2g\n", renyi_cpu_name(level), bits,
           json_object_size(policies), worst);
    assert_true(worst < tolerance);
    renyi_lm_free(lm);
}

static void test_reference(void **state)
{
    (void)state;
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        check_level((renyi_cpu)level, 32, 1e-3);
}

/* ---- properties ------------------------------------------------------------------------------ */

static void assert_same(const answer *a, const answer *b)
{
    assert_memory_equal(a->logits, b->logits, sizeof a->logits);
    assert_memory_equal(a->tokens, b->tokens, sizeof a->tokens);
    assert_memory_equal(a->second, b->second, sizeof a->second);
}

static void test_keep_all(void **state)
{
    (void)state;
    static const char *const all[] = {
        "fastv keep=1",
        "fastv layer=5 tokens=40 metric=col n=2",
        "pyramiddrop keep=1 layers=1,2,3,4,5 positions=consecutive",
        "pyramiddrop tokens=40 layers=2,4 metric=col rows=text",
        "dart keep=1",
        "dart tokens=40 pivots=1 text_pivots=0 positions=consecutive",
        "sparsevlm keep=1 layers=1,2,3,4,5",
    };
    renyi_lm *lm = open_lm(RENYI_CPU_AUTO);
    const answer want = ask_policy(lm, NULL, 0, 2);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const answer got = ask_policy(lm, all[i], 0, 2);
        assert_same(&got, &want);
    }
    renyi_lm_free(lm);
}

/* Any passes and threads give the same bits, at every level. */
static void test_company(void **state)
{
    (void)state;
    static const uint32_t plans[][2] = {{1, 1}, {24, 3}, {48, 2}};
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        renyi_lm *lm = open_lm((renyi_cpu)level);
        const char *name;
        json_t *policy;
        json_object_foreach(policies, name, policy)
        {
            const answer want = ask_policy(lm, json_string_value(policy), 0, 1);
            for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
                const answer got =
                    ask_policy(lm, json_string_value(policy), plans[p][0], plans[p][1]);
                assert_same(&got, &want);
            }
        }
        renyi_lm_free(lm);
    }
}

/* With one row behind the image its attention is the column of every order. */
static void test_one_row(void **state)
{
    (void)state;
    static const char *const policies_of_one[] = {"fastv tokens=9 metric=last",
                                                  "fastv tokens=9 metric=col n=1 rows=text",
                                                  "fastv tokens=9 metric=col n=inf rows=text"};
    renyi_lm *lm = open_lm(RENYI_CPU_AUTO);
    float want[VOCAB], got[VOCAB];
    for (size_t i = 0; i < 3; i++) {
        renyi_lm_session *s = open_session(lm, policies_of_one[i], 0, 2, 0);
        feed(s, prompt, BEFORE + VISUAL + 1, i ? got : want);
        if (i) assert_memory_equal(got, want, sizeof want);
        renyi_lm_session_free(s);
    }
    renyi_lm_free(lm);
}

/* Rows of a stage that are forgotten are read again with the same bits; before the image the next
 * prompt chooses again. */
static void test_rewind(void **state)
{
    (void)state;
    const char *policy = policy_of("pyramid_col");
    renyi_lm *lm = open_lm(RENYI_CPU_AUTO);
    renyi_lm_session *s = open_session(lm, policy, 0, 2, 0);
    renyi_lm_input other[ROWS];
    renyi_lm_cut cut;
    float want[VOCAB], got[VOCAB];
    answer a = ask(s), b;
    assert_int_equal(renyi_lm_position(s), ROWS + GREEDY + SECOND);
    assert_int_equal(renyi_lm_rewind(s, ROWS + GREEDY, NULL), RENYI_OK);
    feed(s, second, SECOND, got);
    assert_memory_equal(got, a.second, sizeof got);
    assert_int_equal(renyi_lm_rewind(s, ROWS - 1, NULL), RENYI_OK);
    feed(s, prompt + ROWS - 1, 1, got);
    assert_memory_equal(got, a.logits, sizeof got);

    memcpy(other, prompt, sizeof other);
    other[ROWS - 1].token = other[ROWS - 2].token = 60;
    assert_int_equal(renyi_lm_rewind(s, BEFORE, NULL), RENYI_OK);
    assert_false(renyi_lm_session_get_cut(s, 0, &cut));
    feed(s, other + BEFORE, ROWS - BEFORE, got);
    assert_true(renyi_lm_session_get_cut(s, 0, &cut));
    assert_int_equal(renyi_lm_rewind(s, 0, NULL), RENYI_OK);
    feed(s, other, ROWS, want);
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(renyi_lm_rewind(s, 0, NULL), RENYI_OK);
    b = ask(s);
    assert_same(&a, &b);
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

static int stop_second(void *user, uint64_t done, uint64_t total)
{
    assert_true(done <= total && (total == BEFORE || total == ROWS - BEFORE));
    return ++*(int *)user == 2;
}

/* A feed that is stopped appends nothing. Progress ends with all rows. */
static void test_stop(void **state)
{
    (void)state;
    int calls = 0;
    renyi_lm *lm = open_lm(RENYI_CPU_AUTO);
    const renyi_lm_session_options opt = {.struct_size = sizeof opt,
                                          .max_rows = 24,
                                          .policy = "pyramiddrop layers=2,4",
                                          .progress = stop_second,
                                          .progress_user = &calls};
    renyi_lm_session *s;
    renyi_lm_cut cut;
    renyi_error err = {0};
    answer a, want;
    assert_int_equal(renyi_lm_session_new(&s, lm, &opt, &err), RENYI_OK);
    feed(s, prompt, BEFORE, NULL);
    assert_int_equal(renyi_lm_feed(s, prompt + BEFORE, ROWS - BEFORE, a.logits, &err),
                     RENYI_ERR_ABORTED);
    assert_int_equal(renyi_lm_position(s), BEFORE);
    assert_false(renyi_lm_session_get_cut(s, 0, &cut));
    feed(s, prompt + BEFORE, ROWS - BEFORE, a.logits);
    want = ask_policy(lm, opt.policy, 0, 1);
    assert_memory_equal(a.logits, want.logits, sizeof a.logits);
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Rows in the caches and what choosing costs. */
static void test_costs(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        uint32_t rows[LAYERS];
        double macs; /* of the choice; queries are 64 wide, queries, keys and values 128 */
    } cases[] = {
        {"none", {56, 56, 56, 56, 56, 56}, 0.0},
        {"fastv layer=2 tokens=12", {56, 56, 28, 28, 28, 28}, 64.0 * 56},
        {"fastv layer=2 tokens=12 metric=col rows=all",
         {56, 56, 28, 28, 28, 28},
         64.0 * 56 * 57 / 2},
        {"fastv layer=2 tokens=12 metric=col rows=text",
         {56, 56, 28, 28, 28, 28},
         64.0 * (9 * 56 - 9 * 8 / 2)},
        {"pyramiddrop layers=1,3,4 keep=0.5",
         {56, 36, 36, 26, 21, 21},
         (64.0 + 48 * 128) * (56 + 36 + 26)},
        {"dart tokens=16", {56, 56, 36, 36, 36, 36}, 0.0},
        {"sparsevlm tokens=20,8 layers=2,4 recycle=0.4 members=4",
         {56, 56, 39, 39, 26, 26}, /* 9 and 7 of the dropped in 3 and 2 rows */
         48.0 * 9 * VISUAL + 64.0 * (9 * 56 - 9 * 8 / 2) + 48.0 * 9 * 8 / 2 +
             64.0 * (9 * 39 - 9 * 8 / 2) + 48.0 * 7 * 6 / 2},
    };
    renyi_lm *lm = open_lm(RENYI_CPU_AUTO);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float logits[VOCAB];
        renyi_lm_session *s = open_session(lm, cases[i].policy, 0, 1, 0);
        feed(s, prompt, ROWS, logits);
        for (uint32_t l = 0; l < LAYERS; l++)
            assert_int_equal(renyi_lm_cache_rows(s, l), cases[i].rows[l]);
        assert_int_equal(renyi_lm_cache_rows(s, LAYERS), 0);
        assert_true(renyi_lm_choice_macs(s) == cases[i].macs);
        renyi_lm_session_free(s);
    }
    renyi_lm_free(lm);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *says;
        uint32_t n_visual;
    } bad[] = {
        {"fastv layer=6",
         "layer 6: the language model has 6 layers, and a cut is before one of 1 "
         "to 5",
         0},
        {"pyramiddrop layers=0,2", "layer 0: the language model has 6 layers", 0},
        {"pyramiddrop layers=2,9", "layer 9", 0},
        {"fastv tokens=41", "tokens=41: 40 visual tokens arrive at layer 2", VISUAL},
        {"pyramiddrop layers=2,4 tokens=20,30", "tokens=30: 20 visual tokens arrive at layer 4",
         VISUAL},
        {"pyramiddrop layers=1,2,3 keep=0.2", "keep=0.2 leaves none of 40", VISUAL},
        {"dart pivots=41", "pivots=41: an image has 40", VISUAL},
        {"sparsevlm tokens=20,23 layers=2,4", "tokens=23: 21 visual tokens arrive at layer 4",
         VISUAL},
        {"sparsevlm layers=2,4", "tokens", 0},
        {"sparsevlm tokens=9 layers=2 positions=original", "sparsevlm takes no positions", 0},
        {"sparsevlm tokens=9 layers=2 recycle=1.5", "recycle=1.5", 0},
        {"sparsevlm tokens=9 layers=2 members=0", "members=0", 0},
        {"evit", "'evit' acts in the image tower or behind it", 0},
        {"prumerge", "not inside a language model", 0},
        {"fastv metric=cls", "fastv ranks by metric=last or metric=col", 0},
    };
    renyi_lm *lm = open_lm(RENYI_CPU_AUTO);
    renyi_lm_session *s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const renyi_lm_session_options opt = {
            .struct_size = sizeof opt, .policy = bad[i].policy, .n_visual = bad[i].n_visual};
        renyi_error err = {0};
        assert_int_equal(renyi_lm_session_new(&s, lm, &opt, &err), RENYI_ERR_ARG);
        if (!strstr(err.message, bad[i].says)) fail_msg("'%s': %s", bad[i].policy, err.message);
    }
    /* the same at a feed, where the number of rows is known */
    static const char *const late[] = {"fastv tokens=41", "fastv metric=col rows=text",
                                       "sparsevlm tokens=9 layers=2"};
    static const char *const why[] = {"tokens=41", "no rows after the image",
                                      "rows after the image rate it"};
    for (size_t i = 0; i < 3; i++) {
        float logits[VOCAB];
        renyi_error err = {0};
        s = open_session(lm, late[i], 0, 1, 0);
        assert_int_equal(renyi_lm_feed(s, prompt, i ? BEFORE + VISUAL : ROWS, logits, &err),
                         RENYI_ERR_ARG);
        assert_non_null(strstr(err.message, why[i]));
        assert_int_equal(renyi_lm_position(s), 0);
        feed(s, second, SECOND, logits); /* without an image it runs */
        renyi_lm_session_free(s);
    }
    renyi_lm_free(lm);
}

/* Every allocation fails once: an error that leaks nothing. A feed allocates nothing. */
static void check_memory(const char *policy)
{
    float logits[VOCAB];
    for (size_t fail_at = 1, ok = 0; !ok; fail_at++) {
        test_heap heap = {.fail_at = fail_at};
        const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(&heap)};
        const renyi_lm_session_options how = {.struct_size = sizeof how, .policy = policy};
        renyi_lm *lm = NULL;
        renyi_lm_session *s = NULL;
        renyi_error err = {0};
        renyi_status st = renyi_lm_open(&lm, model_path, &opt, &err);
        if (!st) st = renyi_lm_session_new(&s, lm, &how, &err);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        ok = st == RENYI_OK && heap.calls < fail_at;
        const size_t calls = heap.calls;
        if (ok) feed(s, prompt, ROWS, logits);
        assert_int_equal(heap.calls, calls);
        renyi_lm_session_free(s);
        renyi_lm_free(lm);
        assert_int_equal(heap.live, 0);
    }
}

static void test_memory(void **state)
{
    (void)state;
    check_memory("pyramiddrop layers=2,4 metric=col");
    check_memory("sparsevlm layers=2,4 tokens=20,8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_keep_all),
        cmocka_unit_test(test_company),   cmocka_unit_test(test_one_row),
        cmocka_unit_test(test_rewind),    cmocka_unit_test(test_stop),
        cmocka_unit_test(test_costs),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, open_expected, close_expected);
}
