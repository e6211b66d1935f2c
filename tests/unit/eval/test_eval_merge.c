/* test_eval_merge.c - merged logs of shards give the results of one process; logs that do not
 * belong together are errors with file and line.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/eval_fixture.h"
#include "fixtures/test_heap.h"

static const char *const policies[] = {"none", "evit keep=0.5 layers=0 metric=col n=4"};

/* ---- logs ---------------------------------------------------------------------------------- */

static renyi_eval *run_shard(uint32_t shard, uint32_t n_shards, const char *log, uint32_t shuffle)
{
    const renyi_dataset_options d = {.struct_size = sizeof d,
                                     .shard = shard,
                                     .n_shards = n_shards,
                                     .shuffle = shuffle,
                                     .seed = 5};
    const renyi_eval_options o = {.struct_size = sizeof o,
                                  .policies = policies,
                                  .n_policies = 2,
                                  .batch = 4,
                                  .n_threads = 1,
                                  .log = log};
    renyi_error err = {0};
    static renyi_dataset *data; /* of the last evaluation */
    renyi_eval *e;
    renyi_dataset_free(data);
    data = NULL;
    if (log) remove(log);
    if (n_shards == UINT32_MAX) return NULL; /* only free the last one */
    if (renyi_dataset_open(&data, at("images"), fixture.model, &d, &err) ||
        renyi_eval_new(&e, fixture.model, data, &o, &err) || renyi_eval_run(e, &err))
        fail_msg("%s", err.message);
    return e;
}

static renyi_eval *merge_ok(const char *const *logs, size_t n)
{
    renyi_error err = {0};
    renyi_eval *e;
    if (renyi_eval_merge(&e, logs, n, NULL, &err)) fail_msg("%s", err.message);
    return e;
}

static void assert_refused(const char *const *logs, size_t n, const char *part)
{
    renyi_error err = {0};
    renyi_eval *e;
    assert_int_equal(renyi_eval_merge(&e, logs, n, NULL, &err), RENYI_ERR_FORMAT);
    assert_null(e);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static char logs[4][512];

static int make_logs(void **state)
{
    if (fixture_open(state)) return -1;
    for (uint32_t i = 0; i < 3; i++) {
        snprintf(logs[i], sizeof logs[i], "%s/part%u.jsonl", root, i + 1);
        renyi_eval_free(run_shard(i, 3, logs[i], 1));
    }
    snprintf(logs[3], sizeof logs[3], "%s/other.jsonl", root);
    return 0;
}

static int drop_logs(void **state)
{
    run_shard(0, UINT32_MAX, NULL, 0);
    return fixture_close(state);
}

/* Text with the first `from` in it replaced; to be freed. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *hit = strstr(text, from);
    assert_non_null(hit);
    char *out = calloc(1, strlen(text) + strlen(to) + 1);
    assert_non_null(out);
    memcpy(out, text, (size_t)(hit - text));
    strcat(out, to);
    strcat(out, hit + strlen(from));
    return out;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_same_totals(void **state)
{
    (void)state;
    const char *const order[] = {logs[2], logs[0], logs[1]};
    renyi_eval *whole = run_shard(0, 0, at("whole.jsonl"), 1);
    char *want = totals(whole);
    renyi_eval_pair a, b;
    renyi_eval_get_pair(whole, 0, 1, &a);
    renyi_eval *e = merge_ok(order, 3);
    renyi_merge_info info;
    renyi_eval_result r;
    uint64_t place;
    renyi_error err = {0};
    assert_totals(e, want);
    renyi_eval_get_pair(e, 0, 1, &b);
    assert_memory_equal(&a, &b, sizeof a);
    renyi_eval_get_merge_info(e, &info);
    assert_true(info.n_photos == IMAGES && info.n_missing == 0 && info.n_repeated == 0);
    assert_true(info.n_shards == 3 && info.image_size == 224 && info.n_classes == CLASSES);
    assert_true(!renyi_eval_next_missing(e, 0, &place));
    renyi_eval_get_result(e, 1, &r);
    assert_true(r.ms_model > 0 && r.ms_total > r.ms_model && r.images_per_second > 0);
    assert_int_equal(renyi_eval_run(e, &err), RENYI_ERR_ARG);
    /* Written as one log, it can be merged and resumed like any other. */
    remove(at("again.jsonl"));
    assert_int_equal(renyi_eval_write_log(e, at("again.jsonl"), &err), RENYI_OK);
    assert_int_equal(renyi_eval_write_log(e, at("again.jsonl"), &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_eval_write_log(e, at("no/where.jsonl"), &err), RENYI_ERR_IO);
    renyi_eval_free(e);
    char again[512];
    snprintf(again, sizeof again, "%s", at("again.jsonl"));
    const char *const one[] = {again};
    e = merge_ok(one, 1);
    assert_totals(e, want);
    renyi_eval_free(e);
    renyi_eval_get_merge_info(whole, &info);
    assert_true(info.n_photos == 0);
    assert_int_equal(renyi_eval_write_log(whole, at("x.jsonl"), &err), RENYI_ERR_ARG);
    renyi_eval_free(whole);
    free(want);
}

static void test_overlap_and_gaps(void **state)
{
    (void)state;
    const char *const twice[] = {logs[0], logs[1], logs[0]};
    renyi_eval *e = merge_ok(twice, 3);
    renyi_merge_info info;
    renyi_eval_result r;
    uint64_t place = 0, n = 0;
    renyi_eval_get_merge_info(e, &info);
    renyi_eval_get_result(e, 0, &r);
    assert_int_equal(info.n_missing, IMAGES / 3);
    assert_true(info.n_repeated > 10 && r.images + r.failed == IMAGES - IMAGES / 3);
    for (uint64_t from = 0; renyi_eval_next_missing(e, from, &place); from = place + 1, n++)
        assert_int_equal(place % 3, 2);
    assert_int_equal(n, IMAGES / 3);
    renyi_eval_free(e);
    /* A line cut off in the middle: that image is not complete. */
    char *text = read_all(logs[1]);
    write_all(logs[3], text, strlen(text) - 20);
    const char *const torn[] = {logs[0], logs[3], logs[2]};
    e = merge_ok(torn, 3);
    renyi_eval_get_merge_info(e, &info);
    assert_int_equal(info.n_missing, 1);
    renyi_eval_free(e);
    free(text);
}

static void test_contradictions(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } faults[] = {
        {"\"loss\":2.", "\"loss\":3.", "contradict each other about the answer"},
        {"\"label\":", "\"label\":1", "contradict each other about the class"},
        {"\"file\":\"0", "\"file\":\"1", "contradict each other about the name"},
        {"\"run\":\"", "\"run\":\"0\",\"x\":\"", "one run at a time"},
        {"\"model\":\"", "\"model\":\"x", "one run at a time"},
        {"\"photos\":", "\"photos\":1", "over other images or classes"},
        {"\"data\":\"", "\"data\":\"0\",\"x\":\"", "over other images or classes"},
        {"\"img_size\":", "\"img_size\":1", "another image size"},
        {"\"classes\":", "\"classes\":1", "another image size or number of classes"},
        {"\"place\":", "\"place\":99", "no place"},
        {"\"gmacs\":", "\"gmacs\":1", "GMACs for a policy"},
        {"{\"file\"", "{\"fil\"", "not a line of a sample log"},
    };
    char *same = read_all(logs[0]), *next = read_all(logs[1]);
    const char *const pair[] = {logs[0], logs[3]};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const int is_same = strstr(faults[i].message, "contradict") != NULL;
        char *bad = replaced(is_same ? same : next, faults[i].from, faults[i].to);
        write_all(logs[3], bad, strlen(bad));
        assert_refused(pair, 2, faults[i].message);
        assert_refused(pair, 2, "other.jsonl:");
        free(bad);
    }
    /* Lines of an older version have no place. */
    char *old = replaced(same, "\"place\":", "\"plac\":");
    write_all(logs[3], old, strlen(old));
    const char *const alone[] = {logs[3]};
    assert_refused(alone, 1, "other.jsonl:1: this line has no place");
    free(old);
    write_all(logs[3], "", 0);
    assert_refused(alone, 1, "no sample");
    free(same);
    free(next);
}

/* A log may hold two runs; --run picks one. */
static void test_choose_run(void **state)
{
    (void)state;
    char *text = read_all(logs[0]), run[17];
    renyi_error err = {0};
    renyi_eval *e;
    memcpy(run, strstr(text, "\"run\":\"") + 7, 16);
    run[16] = 0;
    char *both = calloc(2, strlen(text) + 200);
    assert_non_null(both);
    char *other = replaced(text, "\"run\":\"", "\"run\":\"f\",\"x\":\"");
    *(strchr(other, '\n') + 1) = 0;
    strcat(strcpy(both, other), text);
    write_all(logs[3], both, strlen(both));
    const char *const alone[] = {logs[3]};
    assert_refused(alone, 1, "one run at a time");
    renyi_merge_options o = {.struct_size = sizeof o, .run = run};
    assert_int_equal(renyi_eval_merge(&e, alone, 1, &o, &err), RENYI_OK);
    renyi_merge_info info;
    renyi_eval_get_merge_info(e, &info);
    assert_string_equal(info.run, run);
    renyi_eval_free(e);
    o.run = "0123";
    assert_int_equal(renyi_eval_merge(&e, alone, 1, &o, &err), RENYI_ERR_FORMAT);
    o = (renyi_merge_options){.struct_size = sizeof o, .run = run, .max_samples = 3};
    assert_int_equal(renyi_eval_merge(&e, alone, 1, &o, &err), RENYI_ERR_LIMIT);
    o.struct_size = 1u << 20;
    assert_int_equal(renyi_eval_merge(&e, alone, 1, &o, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_eval_merge(&e, alone, 0, NULL, &err), RENYI_ERR_ARG);
    const char *const absent[] = {"/no/where"};
    assert_int_equal(renyi_eval_merge(&e, absent, 1, NULL, &err), RENYI_ERR_IO);
    free(both);
    free(other);
    free(text);
}

/* An answer in one log counts, even if the image failed in another. */
static void test_failures(void **state)
{
    (void)state;
    char *text = read_all(logs[0]);
    char line[1024];
    const size_t n = (size_t)(strchr(text, '\n') - text);
    assert_true(n < 900);
    memcpy(line, text, n);
    line[n] = 0;
    char *policy = strstr(line, ",\"policy\""), *rest = strstr(line, ",\"img_size\"");
    char fault[1100];
    snprintf(fault, sizeof fault, "%.*s,\"error\":\"not an image\"%s\n", (int)(policy - line), line,
             rest);
    write_all(logs[3], fault, strlen(fault));
    const char *const pair[] = {logs[3], logs[0]}, *const alone[] = {logs[0]};
    renyi_eval *a = merge_ok(pair, 2), *b = merge_ok(alone, 1);
    char *x = totals(a), *y = totals(b);
    /* Policies are in the order of the logs, which is the same here. */
    assert_string_equal(x, y);
    renyi_eval_free(a);
    renyi_eval_free(b);
    /* Logits that are not numbers are a failure of one policy. */
    char *key = strstr(line, ",\"label\"");
    snprintf(fault, sizeof fault, "%.*s,\"error\":\"no numbers\"%s\n", (int)(key - line), line,
             rest);
    write_all(logs[3], fault, strlen(fault));
    const char *const only[] = {logs[3]};
    a = merge_ok(only, 1);
    renyi_eval_result r;
    renyi_eval_get_result(a, 0, &r);
    assert_true(r.images == 0 && r.failed == 1 && renyi_eval_failure_count(a) == 1);
    renyi_eval_free(a);
    free(text);
    free(x);
    free(y);
}

static void test_no_memory(void **state)
{
    (void)state;
    const char *const all[] = {logs[0], logs[1], logs[2]};
    int good = 0;
    for (size_t allowed = 0; !good; allowed++) {
        test_heap heap = {.fail_at = allowed + 1, .fail_on = 1};
        const renyi_merge_options o = {.struct_size = sizeof o, .allocator = test_heap_of(&heap)};
        renyi_error err = {0};
        renyi_eval *e = NULL;
        renyi_status st = renyi_eval_merge(&e, all, 3, &o, &err);
        remove(at("memory.jsonl"));
        if (!st) st = renyi_eval_write_log(e, at("memory.jsonl"), &err);
        renyi_eval_free(e);
        assert_int_equal(heap.live, 0);
        good = st == RENYI_OK;
        if (!good) assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(allowed < 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_totals),    cmocka_unit_test(test_overlap_and_gaps),
        cmocka_unit_test(test_contradictions), cmocka_unit_test(test_choose_run),
        cmocka_unit_test(test_failures),       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, make_logs, drop_logs);
}
