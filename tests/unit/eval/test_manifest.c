/* test_manifest.c - checks that a manifest reads back as it was written, that every damage has a
 * named error, that two are compared by question, and that the score follows from the worths.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/vqa/manifest_fields.h"
#include "fixtures/test_heap.h"
#include "fixtures/vqa_fixture.h"

static const renyi_manifest_sample three[] = {
    {"1", 11, 21, 1}, {"2", 12, 22, 0}, {"x/3.png", 13, 23, NAN}};
static const char sum[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static renyi_manifest_info example(void)
{
    static const renyi_manifest_file files[] = {{"model.safetensors", 7, sum}};
    renyi_manifest_info i = {.version = "1.2.3",
                             .model = "llava",
                             .task = "pope",
                             .policy = "prumerge tokens=5",
                             .questions = "coco",
                             .seed = "18446744073709551615",
                             .limit = 9,
                             .temperature = 0.5,
                             .score = NAN,
                             .low = 1,
                             .files = files,
                             .n_files = 1,
                             .samples = three,
                             .n_samples = 3};
    i.cost.lm_tflops = 0.25;
    return i;
}

static void reads_what_was_written(void **state)
{
    const renyi_manifest_info wrote = example();
    renyi_manifest_info got;
    renyi_manifest *m;
    (void)state;
    assert_int_equal(renyi_manifest_write(at("m.json"), &wrote, NULL), RENYI_OK);
    assert_int_equal(renyi_manifest_read(&m, at("m.json"), NULL, NULL), RENYI_OK);
    renyi_manifest_get_info(m, &got);
    assert_string_equal(got.policy, wrote.policy);
    assert_string_equal(got.seed, wrote.seed);
    assert_string_equal(got.files[0].sha256, sum);
    assert_null(got.annotations);
    assert_int_equal(got.limit, 9);
    assert_true(got.temperature == 0.5 && isnan(got.score) && got.cost.lm_tflops == 0.25);
    assert_int_equal(got.n_samples, 3);
    assert_string_equal(got.samples[2].id, "x/3.png");
    assert_true(got.samples[1].answer == 22 && got.samples[1].input == 12);
    assert_true(isnan(got.samples[2].worth));
    renyi_manifest_free(m);
    assert_int_equal(renyi_manifest_write(at("m.json"), &(renyi_manifest_info){0}, NULL),
                     RENYI_ERR_ARG);
}

/* Replaces the first `from` of the written manifest; the message must contain `part`. */
static void damaged(const char *from, const char *to, const char *part)
{
    static char text[1 << 16];
    const renyi_manifest_info i = example();
    renyi_manifest *m;
    renyi_error err = {0};
    assert_int_equal(renyi_manifest_write(at("d.json"), &i, NULL), RENYI_OK);
    snprintf(text, sizeof text, "%s", text_of(at("d.json")));
    char *place = strstr(text, from);
    if (!place) fail_msg("no '%s' in %s", from, text);
    char *rest = strdup(place + strlen(from));
    snprintf(place, sizeof text - (size_t)(place - text), "%s%s", to, rest);
    free(rest);
    assert_int_equal(renyi_manifest_read(&m, put("d.json", text), NULL, &err), RENYI_ERR_FORMAT);
    assert_null(m);
    if (!strstr(err.message, part) || !strstr(err.message, "d.json"))
        fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static void damage_is_named(void **state)
{
    (void)state;
    damaged("renyi.result", "renyi.other", "not a result manifest");
    damaged("\"version\":1", "\"version\":2", "'version' is not 1");
    damaged("\"full\":", "\"half\":", "policy.full is missing");
    damaged("\"name\":\"llava\"", "\"name\":7", "model.name is not a text");
    damaged("\"task\":\"pope\"", "\"task\":\"poke\"", "data.task: unknown benchmark 'poke'");
    damaged("\"limit\":9", "\"limit\":-9", "data.limit is not a whole number");
    damaged("\"seed\":\"1", "\"seed\":\"x", "settings.seed is not a whole number");
    damaged("\"18446744073709551615\"", "\"18446744073709551616\"", "of at most 64 bits");
    damaged("\"temperature\":0.5", "\"temperature\":1e7", "settings.temperature 1e+07 is not");
    damaged("\"top_p\":0.0", "\"top_p\":1.5", "settings.top_p 1.5 is not from 0 to 1");
    damaged("\"dtype\":null", "\"dtype\":\"f33\"", "model.dtype 'f33' is no number format");
    damaged("\"tower_dtype\":null", "\"tower_dtype\":\"\"", "model.tower_dtype '' is no");
    damaged("\"scorer\":null", "\"scorer\":\"x\"", "data.scorer 'x' is not textvqa or official");
    damaged("\"low\":1.0", "\"low\":\"1\"", "result.low is not a number");
    damaged("\"size\":7", "\"size\":-7", "files[0] needs a size");
    damaged(sum, "0123", "files[0] needs a size and a sha256 of 64 digits");
    damaged("\"files\":[", "\"files\":1,\"x\":[", "files is not a list");
    damaged("\"samples\":[", "\"samples\":{},\"x\":[", "answers.samples is not a list");
    damaged("[\"1\",", "[1,", "answers.samples[][0] is not a text");
    damaged("\",1.0]", "\",1.5]", "answers.samples[0] is not [id, input, answer, worth");
    damaged("000000000000000b", "000000000000000g", "answers.samples[0]");
    damaged("000000000000000b", "000000000000000c", "do not fit answers.samples");
    damaged("0000000000000015", "0000000000000016", "do not fit answers.samples");
    damaged("\"hash\":\"", "\"hash\":\"0", "do not fit answers.samples");
    damaged("{", "[", "d.json");
}

/* What is written can be read: both have the same limit. */
static void too_many_samples(void **state)
{
    renyi_manifest_info i = example();
    renyi_error err = {0};
    (void)state;
    i.n_samples = RY_MANIFEST_MAX_SAMPLES + 1; /* refused before any is read */
    assert_int_equal(renyi_manifest_write(at("l.json"), &i, &err), RENYI_ERR_LIMIT);
    assert_non_null(strstr(err.message, "at most 1048576"));
}

static renyi_manifest *manifest_of(const char *name, renyi_manifest_info i,
                                   const renyi_manifest_sample *samples, size_t n)
{
    renyi_manifest *m;
    i.samples = samples;
    i.n_samples = n;
    assert_int_equal(renyi_manifest_write(at(name), &i, NULL), RENYI_OK);
    assert_int_equal(renyi_manifest_read(&m, at(name), NULL, NULL), RENYI_OK);
    return m;
}

static void compares_by_question(void **state)
{
    /* 2 has another image, 3 no known worth, 4 is new. */
    static const renyi_manifest_sample other[] = {
        {"4", 14, 24, 1}, {"x/3.png", 13, 23, NAN}, {"2", 99, 22, 1}, {"1", 11, 31, 0}};
    renyi_manifest_info i = example();
    renyi_manifest *a = manifest_of("a.json", i, three, 3), *b = manifest_of("b.json", i, other, 4);
    renyi_vqa_pair p;
    (void)state;
    assert_int_equal(renyi_manifest_compare(a, b, &p, NULL), RENYI_OK);
    assert_true(p.n == 1 && p.better_a == 1 && !p.better_b && !p.same && p.is_noise);
    near(p.difference, -100);
    assert_int_equal(renyi_manifest_compare(a, a, &p, NULL), RENYI_OK);
    assert_true(p.n == 2 && p.equal == 2 && p.same == 2);
    assert_true(renyi_manifest_data_hash(a) != renyi_manifest_data_hash(b));
    renyi_manifest_free(b);
    i.task = "gqa";
    b = manifest_of("b.json", i, three, 3);
    assert_int_equal(renyi_manifest_compare(a, b, &p, NULL), RENYI_ERR_ARG);
    renyi_manifest_free(a);
    renyi_manifest_free(b);
}

/* POPE counts yes and no: the answers' texts follow from the labels and the worths. */
static void score_follows_from_worths(void **state)
{
    static const char *const labels =
        "{\"question_id\":1,\"image\":\"a\",\"text\":\"b\",\"label\":\"yes\"}\n"
        "{\"question_id\":2,\"image\":\"a\",\"text\":\"c\",\"label\":\"no\"}\n"
        "{\"question_id\":3,\"image\":\"a\",\"text\":\"d\",\"label\":\"yes\"}\n"
        "{\"question_id\":4,\"image\":\"a\",\"text\":\"e\"}\n";
    static const renyi_manifest_sample four[] = {
        {"1", 1, 1, 1}, {"2", 2, 2, 0}, {"3", 3, 3, 1}, {"4", 4, 4, 1}};
    static const size_t place[] = {0, 1, 2, 3}, beyond[] = {0, 1, 2, 4};
    renyi_manifest *m = manifest_of("s.json", example(), four, 4);
    renyi_vqa_score s;
    renyi_vqa *v;
    renyi_error err = {0};
    (void)state;
    assert_int_equal(renyi_vqa_open(&v, RENYI_VQA_POPE, put("q.jsonl", labels), NULL, &err),
                     RENYI_OK);
    assert_int_equal(renyi_manifest_score(m, v, place, &s, &err), RENYI_OK);
    assert_true(s.n_scored == 3 && s.n_right == 2); /* question 4 has no right answer */
    near(s.score, 80);                              /* two true, one false positive */
    near(s.accuracy, 200.0 / 3);
    assert_int_equal(renyi_manifest_score(m, v, beyond, &s, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_manifest_score(m, v, NULL, &s, &err), RENYI_ERR_ARG);
    renyi_vqa_free(v);
    renyi_manifest_free(m);
}

static void no_memory(void **state)
{
    (void)state;
    const renyi_manifest_info i = example();
    assert_int_equal(renyi_manifest_write(at("n.json"), &i, NULL), RENYI_OK);
    for (size_t at_call = 1;; at_call++) {
        test_heap h = {.fail_at = at_call};
        const renyi_allocator al = test_heap_of(&h);
        renyi_manifest *m = NULL;
        const renyi_status st = renyi_manifest_read(&m, at("n.json"), &al, NULL);
        renyi_manifest_free(m);
        assert_int_equal(h.live, 0);
        if (st == RENYI_OK) break;
        assert_int_equal(st, RENYI_ERR_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),    cmocka_unit_test(damage_is_named),
        cmocka_unit_test(too_many_samples),          cmocka_unit_test(compares_by_question),
        cmocka_unit_test(score_follows_from_worths), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
