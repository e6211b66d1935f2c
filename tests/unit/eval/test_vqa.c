/* test_vqa.c - checks reading of question and answer files, valid and broken; shards; submissions;
 * out of memory.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/vqa/vqa_questions.h"
#include "fixtures/test_heap.h"
#include "fixtures/vqa_fixture.h"

static const char three[] = "{\"question_id\": 1, \"image\": \"a.jpg\", \"text\": \"One?\"}\n"
                            "{\"question_id\": 2, \"image\": \"b.jpg\", \"text\": \"Two?\"}\n"
                            "{\"question_id\": 3, \"image\": \"b.jpg\", \"text\": \"Three?\"}\n";

static void tasks_have_names(void **state)
{
    renyi_error err = {0};
    (void)state;
    for (int i = 0; i < RENYI_VQA_TASKS; i++) {
        renyi_vqa_task_info info;
        renyi_vqa_task found;
        renyi_vqa_get_task((renyi_vqa_task)i, &info);
        assert_int_equal(renyi_vqa_find_task(info.name, &found, NULL), RENYI_OK);
        assert_int_equal(found, i);
    }
    renyi_vqa_task none;
    assert_int_equal(renyi_vqa_find_task("vqa", &none, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "mmbench-cn"));
}

static void broken_lines_are_left_out(void **state)
{
    (void)state;
    const char *path = put("broken.jsonl",
                           "{\"question_id\": 1, \"image\": \"a.jpg\", \"text\": \"One?\"}\n"
                           "{\"question_id\": 2, \"image\": \n"
                           "\n"
                           "{\"question_id\": 2.5, \"image\": \"a.jpg\", \"text\": \"x\"}\n"
                           "{\"question_id\": 3, \"image\": \"a.jpg\"}\n"
                           "{\"question_id\": 4, \"image\": 7, \"text\": \"x\"}\n"
                           "[]\n"
                           "{\"question_id\": 5, \"image\": \"a\", \"text\": \"x\", \"label\": 1}\n"
                           "{\"question_id\": 6, \"image\": \"a.jpg\", \"text\": \"Six?\"}");
    renyi_vqa *v = ask(RENYI_VQA_GQA, path, NULL);
    renyi_vqa_info info;
    renyi_vqa_get_info(v, &info);
    assert_int_equal(info.n_questions, 2);
    assert_int_equal(info.n_faults, 6);
    assert_non_null(strstr(renyi_vqa_get_fault(v, 0), "broken.jsonl:2"));
    assert_non_null(strstr(renyi_vqa_get_fault(v, 1),
                           "broken.jsonl:4: question_id must be a number or a text"));
    assert_non_null(strstr(renyi_vqa_get_fault(v, 2), ":5: no text"));
    assert_non_null(strstr(renyi_vqa_get_fault(v, 3), ":6: no image"));
    assert_non_null(strstr(renyi_vqa_get_fault(v, 5), "neither a text nor a list"));
    renyi_vqa_free(v);
    ask_bad(RENYI_VQA_GQA, put("all.jsonl", "x\ny\n"), NULL, "all.jsonl:1");
    ask_bad(RENYI_VQA_GQA, put("empty.jsonl", ""), NULL, "no questions");
    ask_bad(RENYI_VQA_GQA, at("absent.jsonl"), NULL, "absent.jsonl");
    ask_bad(RENYI_VQA_SQA, put("sqa.json", "{}"), NULL, "not a JSON list");
    ask_bad(RENYI_VQA_SQA, put("sqa.json", "[{}, {\"id\": 1}]"), NULL,
            "entry 1: id must be a number or a text");
    ask_bad(RENYI_VQA_SEED, put("seed.json", "[]"), NULL, "no list named questions");
    ask_bad(RENYI_VQA_SEED, put("seed.json", "{\"questions\": [{}]}"), NULL,
            "entry 1: question_id must be a number or a text");
    ask_bad(RENYI_VQA_SEED,
            put("seed.json", "{\"questions\": [{\"question_id\": 1, \"data_id\": \"a\", "
                             "\"question\": \"q\", \"choice_a\": \"x\"}]}"),
            NULL, "entry 1: fewer than two choices");
    ask_bad(RENYI_VQA_SEED, put("seed.json", "{\"questions\": [{\"question_id\": 1}]}"), NULL,
            "entry 1: no data_id");
    ask_bad(RENYI_VQA_OCRBENCH, put("ocr.json", "{}"), NULL, "expected OCRBench.json");
    ask_bad(RENYI_VQA_OCRBENCH, put("ocr.json", "[{\"image_path\": \"a\"}]"), NULL,
            "entry 1: no question");
    ask_bad(
        RENYI_VQA_OCRBENCH,
        put("ocr.json", "[{\"image_path\": \"a\", \"question\": \"q\", \"answers\": [\"x\", 1]}]"),
        NULL, "entry 1: 'answers' is neither a text nor a list");
    ask_bad(RENYI_VQA_MMBENCH, put("t.tsv", "index\tquestion\n"), NULL, "columns index");
    ask_bad(RENYI_VQA_MMBENCH, put("t.tsv", ""), NULL, "columns index");
    mkdir(at("hollow"), 0777);
    ask_bad(RENYI_VQA_POPE, at("hollow"), NULL, "no coco_pope_*.json");
}

static void annotations_must_fit(void **state)
{
    (void)state;
    char q[512]; /* the fixture reuses its path buffers */
    snprintf(q, sizeof q, "%s", put("q.jsonl", three));
    ask_bad(RENYI_VQA_GQA, q, VQA(.annotations = at("absent.json")), "absent.json");
    ask_bad(RENYI_VQA_GQA, q, VQA(.annotations = put("t.json", "[]")), "not an object");
    ask_bad(RENYI_VQA_GQA, q, VQA(.annotations = put("t.json", "{\"9\": {\"answer\": \"x\"}}")),
            "none of the 3 questions");
    ask_bad(RENYI_VQA_GQA, q, VQA(.annotations = put("t.json", "{\"2\": {\"answer\": 5}}")),
            "'2': the answers are not texts");
    ask_bad(RENYI_VQA_VQAV2, q, VQA(.annotations = put("t.json", "{}")),
            "no list named annotations");
    ask_bad(RENYI_VQA_VQAV2, q, VQA(.annotations = put("t.json", "{\"annotations\": [{}]}")),
            "entry 1: no question_id");
    ask_bad(RENYI_VQA_VIZWIZ, q, VQA(.annotations = put("t.json", "[{}]")), "entry 1: no image");
    ask_bad(RENYI_VQA_TEXTVQA, q,
            VQA(.annotations = put("t.json", "{\"data\": [{\"image_id\": 1}]}")), "no question");
    ask_bad(RENYI_VQA_MMVET, q, VQA(.annotations = at("t.json")), "has no annotation files");
    ask_bad(RENYI_VQA_MME, q, VQA(.annotations = at("hollow")), "MME_Benchmark_release_version");
    ask_bad(RENYI_VQA_GQA, q, VQA(.annotations = at("hollow")), "expected an annotation file");
}

/* "id id ..." */
static void assert_ids(const renyi_vqa_options *o, const char *want)
{
    char got[256] = "";
    renyi_vqa_info info;
    renyi_vqa *v = ask(RENYI_VQA_GQA, at("q.jsonl"), o);
    renyi_vqa_get_info(v, &info);
    for (size_t i = 0; i < info.n_questions; i++) {
        renyi_vqa_question q;
        renyi_vqa_get_question(v, i, &q);
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", q.id);
    }
    assert_string_equal(got, want);
    renyi_vqa_free(v);
}

static void shards(void **state)
{
    (void)state;
    put("q.jsonl", three);
    assert_ids(NULL, "1 2 3");
    assert_ids(VQA(.limit = 2), "1 2");
    assert_ids(VQA(.n_shards = 2), "1 3");
    assert_ids(VQA(.n_shards = 2, .shard = 1), "2");
    assert_ids(VQA(.n_shards = 2, .contiguous = 1), "1 2");
    assert_ids(VQA(.n_shards = 2, .shard = 1, .contiguous = 1), "3");
    assert_ids(VQA(.n_shards = 5, .shard = 4), "");
    ask_bad(RENYI_VQA_GQA, at("q.jsonl"), VQA(.n_shards = 2, .shard = 2), "count from 0");
    ask_bad(RENYI_VQA_GQA, at("q.jsonl"), VQA(.max_questions = 2), "more than 2 questions");
    ask_bad(RENYI_VQA_GQA, at("q.jsonl"), VQA(.max_file_bytes = 9), "at most 9");
}

#define PROMPT(text) "\"prompt\": \"" text "\\nAnswer the question using a single word or phrase.\""

static void answers(void **state)
{
    (void)state;
    renyi_vqa *v = ask(RENYI_VQA_GQA, put("q.jsonl", three), NULL);
    renyi_vqa_answers_info info;
    /* A question of another file; an id alone; a repeated line; no newline at the end.
     */
    renyi_vqa_answers *a = answers_of(
        v,
        put("a.jsonl",
            "{\"question_id\": 1, " PROMPT(
                "One?") ", \"text\": \"x\", "
                        "\"model_id\": \"m\", \"metadata\": {\"policy\": \"none\", "
                        "\"visual_tokens\": 192, \"tokens\": 2, \"ms\": 10}}\n"
                        "{\"question_id\": 77, \"text\": \"x\"}\n"
                        "{\"question_id\": 1, " PROMPT(
                            "One?") ", \"text\": \"x\", "
                                    "\"model_id\": \"m\", \"metadata\": {\"policy\": \"none\"}}\n"
                                    "{\"question_id\": 2, \"prompt\": \"other words\", \"text\": "
                                    "\"y\", \"model_id\": \"m\", \"metadata\": {\"policy\": "
                                    "\"none\", \"visual_tokens\": 576, \"tokens\": 4, \"ms\": "
                                    "20}}"));
    renyi_vqa_answers_get_info(a, &info);
    assert_string_equal(info.model, "m");
    assert_string_equal(info.policy, "none");
    assert_int_equal(info.n_answered, 2);
    assert_int_equal(info.n_foreign, 1);
    assert_int_equal(info.n_repeated, 1);
    near(info.visual_tokens, 384);
    near(info.tokens, 3);
    near(info.ms, 15);
    assert_string_equal(renyi_vqa_get_answer(a, 1), "y");
    assert_null(renyi_vqa_get_answer(a, 2));
    assert_true(isnan(renyi_vqa_get_worth(a, 1))); /* the right answer is unknown */
    renyi_vqa_answers_free(a);

    answers_bad(v,
                put("b.jsonl", "{\"question_id\": 1, \"text\": \"x\"}\n{\"question_id\": 1, "
                               "\"text\": \"y\"}\n"),
                "b.jsonl:2: a second, different answer to question 1");
    answers_bad(v,
                put("b.jsonl", "{\"question_id\": 1, \"text\": \"x\", \"model_id\": \"m\"}\n"
                               "{\"question_id\": 2, \"text\": \"y\", \"model_id\": \"n\"}\n"),
                "model_id 'n', but 'm'");
    answers_bad(v,
                put("b.jsonl", "{\"question_id\": 1, \"text\": \"x\"}\n{\"question_id\": 2, "
                               "\"text\": \"y\", \"metadata\": {\"policy\": \"none\"}}\n"),
                "policy 'none', but 'none'");
    answers_bad(v, put("b.jsonl", "{\"question_id\": 1}\n"), "b.jsonl:1: not an answer");
    answers_bad(v, put("b.jsonl", "{\"question_id\": 1, \"text\": \"x\"}\nnonsense"), "last line");
    answers_bad(v, at("absent.jsonl"), "absent.jsonl");
    answers_bad(v, at("hollow"), "no .jsonl");

    /* A folder is one run in parts. */
    put("parts/2_0.jsonl", "{\"question_id\": 1, \"text\": \"x\"}\n");
    put("parts/2_1.jsonl", "{\"question_id\": 2, \"text\": \"y\"}\n");
    put("parts/merge.jsonl", "{\"question_id\": 1, \"text\": \"x\"}\n");
    put("parts/readme.txt", "no JSON");
    a = answers_of(v, at("parts"));
    renyi_vqa_answers_get_info(a, &info);
    assert_int_equal(info.n_answered, 2);
    assert_int_equal(info.n_repeated, 1);
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);
}

/* ---- submissions ---------------------------------------------------------------------------- */

static void submit(renyi_vqa_task task, const char *lines, const char *const *texts, size_t n,
                   const char *want)
{
    renyi_error err = {0};
    renyi_vqa *v = ask(task, put("s.jsonl", lines), NULL);
    renyi_vqa_answers *a = answers_of(v, put_answers("s.answers.jsonl", v, texts, n));
    if (renyi_vqa_write_submission(a, at("s.json"), &err)) fail_msg("%s", err.message);
    assert_string_equal(text_of(at("s.json")), want);
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);
}

static void submissions(void **state)
{
    (void)state;
    const char *const texts[] = {"Yes.", "The two", "It's"};
    submit(RENYI_VQA_GQA, three, texts, 3,
           "[{\"questionId\":1,\"prediction\":\"yes\"},{\"questionId\":2,\"prediction\":\"the "
           "two\"},{\"questionId\":3,\"prediction\":\"it's\"}]");
    submit(RENYI_VQA_VQAV2, three, texts, 2,
           "[{\"question_id\":1,\"answer\":\"yes\"},{\"question_id\":2,\"answer\":\"2\"},"
           "{\"question_id\":3,\"answer\":\"\"}]");
    submit(RENYI_VQA_VIZWIZ, three, texts, 3,
           "[{\"image\":\"a.jpg\",\"answer\":\"yes\"},{\"image\":\"b.jpg\",\"answer\":\"2\"},"
           "{\"image\":\"b.jpg\",\"answer\":\"it 's\"}]");
    submit(RENYI_VQA_MMVET, three, texts, 3,
           "{\"v1_1\":\"Yes.\",\"v1_2\":\"The two\",\"v1_3\":\"It's\"}");

    renyi_error err = {0};
    renyi_vqa *v = ask(RENYI_VQA_GQA, put("s.jsonl", three), NULL);
    renyi_vqa_answers *a = answers_of(v, put_answers("s.answers.jsonl", v, texts, 2));
    assert_int_equal(renyi_vqa_write_submission(a, at("never.json"), &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "1 of 3 questions have no answer"));
    assert_int_equal(access(at("never.json"), F_OK), -1);
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);
    v = ask(RENYI_VQA_POPE, at("s.jsonl"), NULL);
    a = answers_of(v, at("s.answers.jsonl"));
    assert_int_equal(renyi_vqa_write_submission(a, at("never.json"), &err), RENYI_ERR_ARG);
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);
}

/* The zip is not compressed, so its texts can be searched for. */
static void spreadsheet(void **state)
{
    (void)state;
    renyi_error err = {0};
    renyi_vqa *v = ask(RENYI_VQA_MMBENCH,
                       put("m.tsv", "index\tquestion\thint\tA\tB\tC\tD\tanswer\tcategory\timage\t"
                                    "source\tl2-category\tcomment\tsplit\n"
                                    "7\tIs 1 < 2?\t\tyes\tno\t\t\tA\tx\tAAAA\ts\tl\tc\tdev\n"),
                       NULL);
    renyi_vqa_answers *a =
        answers_of(v, put("m.jsonl", "{\"question_id\": 7, \"text\": \"A & B\"}\n"));
    if (renyi_vqa_write_submission(a, at("m.xlsx"), &err)) fail_msg("%s", err.message);
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);
    static char bytes[1 << 16];
    FILE *f = fopen(at("m.xlsx"), "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_true(n > 100 && memcmp(bytes, "PK\3\4", 4) == 0);
    for (size_t i = 0; i < n; i++)
        if (!bytes[i]) bytes[i] = ' ';
    static const char *const wanted[] = {
        "<c r=\"A2\"><v>7</v></c>",
        "<c r=\"B2\" t=\"inlineStr\"><is><t xml:space=\"preserve\">Is 1 &lt; 2?</t></is></c>",
        "<c r=\"G1\" t=\"inlineStr\"><is><t xml:space=\"preserve\">prediction</t></is></c>",
        "<c r=\"G2\" t=\"inlineStr\"><is><t xml:space=\"preserve\">A &amp; B</t></is></c>",
        "<c r=\"H2\" t=\"inlineStr\"><is><t xml:space=\"preserve\">A</t></is></c>",
        "</row></sheetData></worksheet>"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(bytes, wanted[i])) fail_msg("no %s", wanted[i]);
    assert_null(strstr(bytes, "AAAA")); /* the image is left out */
}

/* ---- no memory ------------------------------------------------------------------------------ */

/* A text of `n` times the same with another number in it, between `head` and `tail`. */
static const char *put_many(const char *name, const char *head, const char *each, unsigned n,
                            const char *tail)
{
    const char *path = put(name, "");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(head, f);
    for (unsigned i = 0; i < n; i++) fprintf(f, each, i);
    fputs(tail, f);
    fclose(f);
    return path;
}

/* Lists that are searched once per question, and lists of faults, do not grow with the file. */
static void limits(void **state)
{
    static const char types[] = "{\"question_type\": {", type[] = "\"t%u\": 1, ",
                      questions[] = "\"last\": 1}, \"questions\": []}";
    (void)state;
    ask_bad(RENYI_VQA_SEED, put_many("types.json", types, type, 999, questions), NULL,
            "no questions");
    ask_bad(RENYI_VQA_SEED, put_many("types.json", types, type, 1000, questions), NULL,
            "question_type has 1001 members");
    renyi_vqa *v = ask(RENYI_VQA_GQA, put_many("faults.jsonl", three, "x%u\n", 10000, ""), NULL);
    renyi_vqa_free(v);
    ask_bad(RENYI_VQA_GQA, put_many("faults.jsonl", three, "x%u\n", 10001, ""), NULL,
            "10000 more are bad");
    ask_bad(RENYI_VQA_GQA,
            put_many("kinds.jsonl", "",
                     "{\"question_id\": 1, \"image\": \"a\", \"text\": \"x\", \"category\": "
                     "\"c%u\"}\n",
                     1001, ""),
            NULL, "more than 1000 categories");
}

/* Every allocation fails once. */
static void no_memory(void **state)
{
    const char *q = put("q.jsonl", three);
    const char *t = put("t.json", "{\"annotations\": [{\"question_id\": 1, \"answers\": "
                                  "[{\"answer\": \"x\"}, {\"answer\": \"\xc3\x84\"}]}]}");
    const char *answers = put("a.jsonl", "{\"question_id\": 1, \"text\": \"x\"}\n{\"question_id\": "
                                         "2, \"text\": \"y\"}\n");
    const char *s = at("s.json");
    (void)state;
    for (size_t at_call = 1;; at_call++) {
        test_heap h = {.fail_at = at_call};
        renyi_vqa_options o = {.struct_size = sizeof o, .annotations = t};
        renyi_vqa *v = NULL;
        renyi_vqa_answers *a = NULL;
        o.allocator = test_heap_of(&h);
        renyi_status st = renyi_vqa_open(&v, RENYI_VQA_VQAV2, q, &o, NULL);
        if (!st) st = renyi_vqa_read_answers(&a, v, &answers, 1, NULL);
        if (!st) st = renyi_vqa_write_submission(a, s, NULL);
        renyi_vqa_answers_free(a);
        renyi_vqa_free(v);
        assert_int_equal(h.live, 0);
        if (st == RENYI_OK) break;
        assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(at_call < 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_have_names),
                                       cmocka_unit_test(broken_lines_are_left_out),
                                       cmocka_unit_test(annotations_must_fit),
                                       cmocka_unit_test(shards),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(answers),
                                       cmocka_unit_test(submissions),
                                       cmocka_unit_test(spreadsheet),
                                       cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
