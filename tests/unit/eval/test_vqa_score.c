/* test_vqa_score.c - checks how each benchmark reads and scores answers, on answers of known score;
 * POPE's real questions if they are available.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/vqa/vqa_questions.h"
#include "fixtures/shared_files.h"
#include "fixtures/vqa_fixture.h"

#define LIST(...) \
    ((const char *const[]){__VA_ARGS__}), sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)

/* ---- answers -------------------------------------------------------------------------------- */

/* Expected: the output of EvalAI's processor. */
static void normalizes_as_the_servers_do(void **state)
{
    static const char *const cases[][2] = {
        {"Yes.", "yes"},
        {"The two dogs", "2 dogs"},
        {"a 3.5 inch", "3.5 inch"},
        {"U.S.A.", "usa"},
        {"t-shirt", "t shirt"},
        {"black - white", "black white"},
        {"it's", "it 's"},
        {"1,000", "1000"},
        {"isnt", "isn't"},
        {"None", "0"},
        {"somebody'd", "somebodyd"},
        {"y'all'dve", "y'all'd've"},
        {"twas", "'twas"},
        {"what's up?", "what 's up"},
        {"(yes)", "yes"},
        {"red/white", "red white"},
        {"dont know", "don't know"},
        {"  \xc3\x9c"
         "ber\tAlles ",
         "\xc3\xbc"
         "ber alles"},
        {"........................................x", "........x"}, /* only 32 points are removed */
        {"the a an", ""},
        {"", ""},
        {"\xff", "\xef\xbf\xbd"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got;
        assert_int_equal(renyi_vqa_normalise(&got, cases[i][0], NULL, NULL), RENYI_OK);
        assert_string_equal(got, cases[i][1]);
        renyi_vqa_text_free(got, NULL);
    }
}

/* Expected: by hand from the definition of VQA's evaluation code. */
static void normalizes_as_vqa_eval_does(void **state)
{
    static const char *const cases[][2] = {
        {"Yes.", "yes"},
        {"it's", "it's"},           /* no blank before 's */
        {"red,white", "red white"}, /* a comma is a mark like others */
        {"red, white", "red white"},
        {"really?", "really"},
        {"1,000", "1000"},
        {"1,000 t-shirt", "1000 tshirt"}, /* a comma between digits: no mark becomes a blank */
        {"a,b c, d", "ab c d"},           /* one comma is beside a blank, so all are removed */
        {"3.5.", "3.5"},
        {"ow's'at", "'ow's'at"},
        {"'ow'sat", "'ow's'at"},
        {"Dont", "don't"},
        {"somebody'd", "somebodyd"},
        {"The\tTWO dogs\n", "2 dogs"},
        {"", ""},
    };
    ry_pool pool = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got;
        assert_int_equal(
            ry_vqa_normalize(&pool, &got, cases[i][0], RENYI_VQA_SCORER_OFFICIAL, NULL), RENYI_OK);
        assert_string_equal(got, cases[i][1]);
    }
    ry_pool_free(&pool);
}

static void reads_no(void **state)
{
    static const char *const no[] = {"No",   "no", "No, there is", "It is not.", "There is no car",
                                     ", No", "No,"};
    static const char *const yes[] = {"Yes",     "NO", "None", "Yes. No",
                                      "nothing", "",   "know", "No\n"};
    (void)state;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) assert_int_equal(ry_vqa_says_no(no[i]), 1);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_int_equal(ry_vqa_says_no(yes[i]), 0);
}

static void reads_letters(void **state)
{
    (void)state;
    assert_int_equal(ry_vqa_letter("A", 2), 'A');
    assert_int_equal(ry_vqa_letter("C", 2), 0);
    assert_int_equal(ry_vqa_letter("B. a dog", 4), 'B');
    assert_int_equal(ry_vqa_letter("B.", 4), 0); /* LLaVA's script does not take it either */
    assert_int_equal(ry_vqa_letter("B) a dog", 4), 0);
    assert_int_equal(ry_vqa_letter("The answer is D.", 4), 'D');
    assert_int_equal(ry_vqa_letter("The answer is D", 4), 0);
    assert_int_equal(ry_vqa_letter("So, The answer is A!", 4), 'A');
    assert_int_equal(ry_vqa_letter("The answer is A. The answer is B.", 4), 0);
    assert_int_equal(ry_vqa_letter("a", 4), 0);
    assert_int_equal(ry_vqa_letter("", 4), 0);
}

/* ---- figures -------------------------------------------------------------------------------- */

static void pope(void **state)
{
    (void)state;
    put("pope/coco_pope_adversarial.json",
        "{\"question_id\": 1, \"image\": \"a.jpg\", \"text\": \"Is it?\", \"label\": \"yes\"}\n"
        "{\"question_id\": 2, \"image\": \"a.jpg\", \"text\": \"Was it?\", \"label\": \"no\"}\n");
    put("pope/coco_pope_random.json",
        "{\"question_id\": 1, \"image\": \"a.jpg\", \"text\": \"Is it?\", \"label\": \"yes\"}\n"
        "{\"question_id\": 2, \"image\": \"a.jpg\", \"text\": \"Was it?\", \"label\": \"no\"}\n"
        "{\"question_id\": 3, \"image\": \"b.jpg\", \"text\": \"Is it?\", \"label\": \"yes\"}\n"
        "{\"question_id\": 4, \"image\": \"b.jpg\", \"text\": \"Was it?\", \"label\": \"no\"}\n");
    renyi_vqa *v = ask(RENYI_VQA_POPE, at("pope"), NULL);
    renyi_vqa_question q;
    renyi_vqa_part p;
    renyi_vqa_get_question(v, 2, &q);
    assert_string_equal(q.id, "random/1"); /* each file counts from 1 */
    assert_string_equal(q.text, "Is it?\nAnswer the question using a single word or phrase.");
    assert_string_equal(q.category, "random");
    /* adversarial: F1 100; random: one of each, F1 50 */
    const char *texts[] = {"Yes", "No", "Yes", "No, it was not.", "No", "Yes."};
    const renyi_vqa_score s = score_of(v, texts, 6);
    near(s.score, 75);
    near(s.accuracy, 100 * 4. / 6);
    assert_int_equal(s.n_scored, 6);
    assert_int_equal(s.n_right, 4);
    assert_int_equal(s.n_parts, 2);
    assert_true(s.range.low > 0 && s.range.low < 75 && s.range.high > 75 && s.range.high <= 100);
    renyi_vqa_answers *a = answers_of(v, at("scored.jsonl"));
    renyi_vqa_get_part(a, 1, &p);
    assert_string_equal(p.name, "random");
    near(p.score, 50);
    near(p.precision, 50);
    near(p.recall, 50);
    near(p.yes, 50);
    renyi_vqa_answers_free(a);
    assert_score(v, LIST("No", "No", "No", "No", "No", "No"), 0); /* no division by zero */
    assert_score(v, LIST("Yes", "No"), 100);                      /* the other category is absent */
    assert_true(isnan(score_of(v, NULL, 0).score));
    renyi_vqa_free(v);

    /* LLaVA's own file has categories and no labels: they come from the folder. */
    const char *file = put(
        "llava_pope.jsonl",
        "{\"question_id\": 7, \"image\": \"b.jpg\", \"text\": \"Was it?\\nAnswer the question using "
        "a single word or phrase.\", \"category\": \"random\"}\n"
        "{\"question_id\": 8, \"image\": \"b.jpg\", \"text\": \"Was it?\\nAnswer the question using "
        "a single word or phrase.\", \"category\": \"popular\"}\n");
    renyi_vqa_info info;
    v = ask(RENYI_VQA_POPE, file, VQA(.annotations = at("pope")));
    renyi_vqa_get_info(v, &info);
    assert_int_equal(info.n_questions, 2);
    assert_int_equal(info.n_known, 1);
    renyi_vqa_get_question(v, 0, &q);
    assert_string_equal(q.right[0], "no");
    assert_string_equal(q.prompt, "Was it?\nAnswer the question using a single word or phrase.");
    renyi_vqa_free(v);
}

static void gqa(void **state)
{
    (void)state;
    const char *questions =
        put("gqa.jsonl", "{\"question_id\": \"10\", \"image\": \"a.jpg\", \"text\": \"1?\"}\n"
                         "{\"question_id\": \"11\", \"image\": \"a.jpg\", \"text\": \"2?\"}\n"
                         "{\"question_id\": \"12\", \"image\": \"a.jpg\", \"text\": \"3?\"}\n"
                         "{\"question_id\": \"99\", \"image\": \"a.jpg\", \"text\": \"4?\"}\n");
    const char *truth = put("gqa.json", "{\"10\": {\"answer\": \"yes\", \"question\": \"1?\"}, "
                                        "\"11\": {\"answer\": \"left\"}, \"12\": {\"answer\": "
                                        "\"t-shirt\"}}");
    renyi_vqa *v = ask(RENYI_VQA_GQA, questions, VQA(.annotations = truth));
    renyi_vqa_score s = score_of(v, LIST("Yes.", "right", "T-Shirt", "nobody knows"));
    near(s.score, 200. / 3);
    assert_int_equal(s.n_scored, 3);
    near(s.range.low, 100 * renyi_stats_interval(2, 3).low);
    assert_score(v, LIST("The yes", "left..", NULL), 50);
    renyi_vqa_free(v);
}

/* VQA accuracy by the number of matches among ten right answers. */
static void vqa_accuracy(void **state)
{
    (void)state;
    const char *questions = put(
        "vqa.jsonl",
        "{\"question_id\": 1, \"image\": \"a.jpg\", \"text\": \"What?\", \"category\": \"default\"}\n"
        "{\"question_id\": 2, \"image\": \"a.jpg\", \"text\": \"How many?\"}\n");
    const char *truth =
        put("vqa.json",
            "{\"annotations\": [{\"question_id\": 1, \"answer_type\": \"other\", \"answers\": "
            "[{\"answer\": \"net\"}, {\"answer\": \"Net.\"}, {\"answer\": \"a net\"}, "
            "{\"answer\": \"red\"}, {\"answer\": \"red\"}, {\"answer\": \"blue\"}, {\"answer\": "
            "\"dog\"}, {\"answer\": \"dog\"}, {\"answer\": \"dog\"}, {\"answer\": \"dog\"}]}, "
            "{\"question_id\": 2, \"answer_type\": \"number\", \"answers\": [{\"answer\": \"2\"}, "
            "{\"answer\": \"2\"}, {\"answer\": \"two\"}, {\"answer\": \"2\"}, {\"answer\": "
            "\"2\"}, {\"answer\": \"2\"}, {\"answer\": \"2\"}, {\"answer\": \"2\"}, {\"answer\": "
            "\"2\"}, {\"answer\": \"2\"}]}, {\"question_id\": 3, \"answers\": [{\"answer\": "
            "\"x\"}]}]}");
    renyi_vqa *v = ask(RENYI_VQA_VQAV2, questions, VQA(.annotations = truth));
    renyi_vqa_part p;
    assert_score(v, LIST("dog"), 100);
    assert_score(v, LIST("Nets"), 0);
    assert_score(v, LIST("the net"), 90);
    assert_score(v, LIST("red"), 60);
    assert_score(v, LIST("blue"), 30);
    assert_score(v, LIST("red", "Two."), 80);
    renyi_vqa_answers *a = answers_of(v, at("scored.jsonl"));
    renyi_vqa_get_part(a, 1, &p);
    assert_string_equal(p.name, "number");
    near(p.score, 100);
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);

    questions =
        put("vizwiz.jsonl", "{\"question_id\": 0, \"image\": \"v.jpg\", \"text\": \"What?\"}\n");
    truth = put("vizwiz.json", "[{\"image\": \"v.jpg\", \"answers\": [{\"answer\": "
                               "\"unanswerable\"}, {\"answer\": \"cola\"}]}]");
    v = ask(RENYI_VQA_VIZWIZ, questions, VQA(.annotations = truth));
    renyi_vqa_question q;
    renyi_vqa_get_question(v, 0, &q);
    assert_string_equal(q.text,
                        "What?\nWhen the provided information is insufficient, respond with "
                        "'Unanswerable'.\nAnswer the question using a single word or phrase.");
    assert_score(v, LIST("Unanswerable"), 100. / 6);
    renyi_vqa_free(v);
}

static void textvqa(void **state)
{
    (void)state;
    /* Two questions have the id of their image, one has an OCR line. */
    const char *questions =
        put("text.jsonl",
            "{\"question_id\": \"ab\", \"image\": \"ab.jpg\", \"text\": \"What brand?\\nReference "
            "OCR token: NOKIA\\nAnswer the question using a single word or phrase.\"}\n"
            "{\"question_id\": \"ab\", \"image\": \"ab.jpg\", \"text\": \"Reference OCR token: "
            "\\nwhat YEAR?\\nAnswer the question using a single word or phrase.\"}\n");
    const char *truth =
        put("text.json", "{\"data\": [{\"image_id\": \"ab\", \"question\": \"what brand?\", "
                         "\"answers\": [\"nokia\", \"nokia\", \"nokia\", \"nokia\", \"toshiba\"]}, "
                         "{\"image_id\": \"ab\", \"question\": \"What year?\", \"answers\": "
                         "[\"1999\", \"1999\", \"1999\", \"1999\"]}]}");
    renyi_vqa *v = ask(RENYI_VQA_TEXTVQA, questions, VQA(.annotations = truth));
    assert_score(v, LIST("Nokia", "1999"), 100);
    assert_score(v, LIST("Nokia", "2000"), 50);
    renyi_vqa_free(v);
}

static void sqa(void **state)
{
    (void)state;
    const char *questions =
        put("sqa/questions.json",
            "[{\"id\": \"1\", \"image\": \"1/image.png\", \"conversations\": [{\"from\": "
            "\"human\", \"value\": \"Which?\\nA. x\\nB. y\\n<image>\"}, {\"from\": \"gpt\", "
            "\"value\": \"B\"}]},"
            "{\"id\": \"2\", \"conversations\": [{\"from\": \"human\", \"value\": \"What?\\nA. "
            "x\\nB. y\"}]},"
            "{\"id\": \"3\", \"image\": \"3/image.png\", \"conversations\": [{\"from\": "
            "\"human\", \"value\": \"<image>\\nWho?\"}, {\"value\": \"The answer is A.\"}]}]");
    renyi_vqa *v = ask(RENYI_VQA_SQA, questions, NULL);
    renyi_vqa_question q;
    renyi_vqa_info info;
    renyi_vqa_get_question(v, 0, &q);
    assert_string_equal(q.text, "Which?\nA. x\nB. y\nAnswer with the option's letter from the "
                                "given choices directly.");
    assert_true(strncmp(q.prompt, "<image>\nWhich?", 14) == 0);
    renyi_vqa_get_question(v, 1, &q);
    assert_null(q.image);
    assert_true(strncmp(q.prompt, "What?", 5) == 0);
    renyi_vqa_get_info(v, &info);
    assert_int_equal(info.n_known, 2);
    assert_score(v, LIST("B. y", "A", "B"), 50);
    renyi_vqa_free(v);

    put("sqa/problems.json",
        "{\"1\": {\"answer\": 0, \"choices\": [\"x\", \"y\"]}, \"2\": {\"answer\": 1, "
        "\"choices\": [\"x\", \"y\"]}, \"3\": {\"answer\": 2, \"choices\": [\"x\", \"y\", "
        "\"z\"]}, \"4\": {\"answer\": 0, \"choices\": [\"x\"]}}");
    v = ask(RENYI_VQA_SQA, questions, VQA(.annotations = at("sqa")));
    const renyi_vqa_score s = score_of(v, LIST("A", "B", "The answer is C."));
    near(s.score, 100);
    near(s.accuracy, 100);
    assert_score(v, LIST("A", "A", "D"),
                 50); /* only questions with an image count; D is not an option */
    renyi_vqa_free(v);
}

static void mme(void **state)
{
    (void)state;
    put("mme/existence/0001.txt", "Is it? Please answer yes or no.\tYes\nWas it? Please answer yes "
                                  "or no.\tNo\n");
    put("mme/existence/0002.txt", "Is it?  Please answer yes or no.\tYes\nWas it? Please answer "
                                  "yes or no.\tNo\n");
    put("mme/code_reasoning/questions_answers_YN/9.txt", "A? Please answer yes or no.\tNo\n");
#define MME(id, text, category)                                                                    \
    "{\"question_id\": \"" id "\", \"image\": \"" id "\", \"text\": \"" text " Please answer "     \
    "yes or no.\\nAnswer the question using a single word or phrase.\", \"category\": \"" category \
    "\"}\n"
    const char *questions =
        put("mme.jsonl",
            MME("existence/0001.png", "Is it?", "existence")
                MME("existence/0001.png", "Was it?", "existence")
                    MME("existence/0002.png", "Is it?", "existence") MME("existence/0002.png",
                                                                         "Was it?", "existence")
                        MME("existence/0002.png", "Was it?", "existence") /* twice: counts once */
            MME("code_reasoning/9.png", "A?", "code_reasoning"));
    renyi_vqa *v = ask(RENYI_VQA_MME, questions, VQA(.annotations = at("mme")));
    renyi_vqa_info info;
    renyi_vqa_part p;
    renyi_vqa_get_info(v, &info);
    assert_int_equal(info.n_questions, 5);
    assert_int_equal(info.n_known, 5);
    /* existence: 3 of 4 questions, 1 of 2 images */
    renyi_vqa_score s = score_of(v, LIST("Yes", "no", "YES, it is", "Yes", "No"));
    near(s.score, 75 + 50);
    near(s.cognition, 200);
    near(s.total, 325);
    near(s.accuracy, 80);
    renyi_vqa_answers *a = answers_of(v, at("scored.jsonl"));
    renyi_vqa_get_part(a, 0, &p);
    near(p.accuracy, 75);
    near(p.accuracy_plus, 50);
    assert_int_equal(p.is_counted, 1);
    renyi_vqa_get_part(a, 1, &p);
    near(p.score, 200);
    assert_int_equal(p.is_counted, 0);
    renyi_vqa_answers_free(a);
    /* "other" is wrong, whatever the label; "no" within the first four characters counts */
    assert_score(v, LIST("maybe", "a no", "Yes", "No"), 75 + 50);
    assert_score(v, LIST("maybe", "I know", "Yes", "No"), 50 + 50);
    renyi_vqa_free(v);

    /* Without a category, or with "default", the id names the subtask. */
    questions = put(
        "mme2.jsonl",
        MME("existence/0001.png", "Is it?",
            "default") "{\"question_id\": \"release/code_reasoning/9.png\", \"image\": \"9.png\", "
                       "\"text\": \"A?\", \"answer\": \"no\"}\n"
                       "{\"question_id\": \"other/9.png\", \"image\": \"9.png\", \"text\": "
                       "\"B?\", \"answer\": \"no\"}\n");
    v = ask(RENYI_VQA_MME, questions, VQA(.annotations = at("mme")));
    renyi_vqa_question q;
    renyi_vqa_get_question(v, 0, &q);
    assert_string_equal(q.category, "existence");
    assert_string_equal(q.right[0], "yes");
    renyi_vqa_get_question(v, 1, &q);
    assert_string_equal(q.category, "code_reasoning");
    renyi_vqa_get_question(v, 2, &q);
    assert_null(q.category);
    s = score_of(v, LIST("Yes", "No", "No"));
    near(s.score, 200);
    near(s.cognition, 200);
    near(s.total, 400);
    renyi_vqa_free(v);
}

static const char mmbench_table[] =
    "index\tquestion\thint\tA\tB\tC\tD\tanswer\tcategory\timage\tsource\tl2-category\tcomment\t"
    "split\n"
    "7\tWhich?\tnan\tdog\tcat\t\t\tB\tanimals\tUDYKMSAxCjI1NQoAAAA=\ts\tl\tc\tdev\n"
    "1000007\tWhich?\t\tcat\tdog\t\t\tA\tanimals\tUDYKMSAxCjI1NQoAAAA=\ts\tl\tc\tdev\n"
    "8\t\"Say \"\"it\"\"\"\tLook at \"it\"\tu\tv\tw\tx\tD\tshapes\tUDYKMSAxCjI1NQoAAAA=\ts\tl\tc\t"
    "dev\n"
    "9\tno image\t\tu\tv\tw\tx\tD\tshapes\t\ts\tl\tc\tdev\n";

static void mmbench(void **state)
{
    (void)state;
    renyi_vqa *v = ask(RENYI_VQA_MMBENCH, put("mmb.tsv", mmbench_table), NULL);
    renyi_vqa_question q;
    renyi_vqa_info info;
    renyi_vqa_get_info(v, &info);
    assert_int_equal(info.n_questions, 3);
    assert_int_equal(info.n_faults, 1);
    assert_non_null(strstr(renyi_vqa_get_fault(v, 0), "mmb.tsv:5: no image"));
    renyi_vqa_get_question(v, 0, &q);
    assert_string_equal(q.prompt, "Which?\nA. dog\nB. cat");
    assert_null(q.image);
    renyi_vqa_get_question(v, 2, &q);
    assert_string_equal(q.text,
                        "Look at \"it\"\nSay \"it\"\nA. u\nB. v\nC. w\nD. x\nAnswer with the "
                        "option's letter from the given choices directly.");
    /* One of two rotations of the first is right, so it counts as wrong. Matched by id, because
     * prompts have quotes. */
    renyi_vqa_answers *a = answers_of(
        v, put("mmb.jsonl", "{\"question_id\": 7, \"text\": \"B\"}\n{\"question_id\": 1000007, "
                            "\"text\": \"B\"}\n{\"question_id\": 8, \"text\": \"D. x\"}\n"));
    renyi_vqa_score s;
    renyi_vqa_get_score(a, &s);
    near(s.score, 50);
    near(s.accuracy, 200. / 3);
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);
    v = ask(RENYI_VQA_MMBENCH_CN, at("mmb.tsv"), NULL);
    renyi_vqa_get_question(v, 0, &q);
    assert_non_null(strstr(q.text, "\n\xe8\xaf\xb7"));
    renyi_vqa_free(v);
}

/* ---- two runs ------------------------------------------------------------------------------- */

static void compares(void **state)
{
    (void)state;
    FILE *f = fopen(at("pairs.jsonl"), "w");
    assert_non_null(f);
    for (int i = 0; i < 20; i++)
        fprintf(f, "{\"question_id\": %d, \"image\": \"a\", \"text\": \"q\", \"answer\": \"x\"}\n",
                i);
    fclose(f);
    renyi_vqa *v = ask(RENYI_VQA_GQA, at("pairs.jsonl"), NULL);
    const char *one[20], *two[20];
    for (int i = 0; i < 20; i++) {
        one[i] = i < 10 ? "x" : "y";                 /* 10 right */
        two[i] = i < 8 ? "x" : i < 17 ? "X." : NULL; /* 17 right, 3 unanswered */
    }
    renyi_vqa_answers *a = answers_of(v, put_answers("one.jsonl", v, one, 20));
    renyi_vqa_answers *b = answers_of(v, put_answers("two.jsonl", v, two, 20));
    renyi_vqa_pair p;
    renyi_vqa_compare(a, b, &p);
    assert_int_equal(p.n, 17);
    assert_int_equal(p.better_a, 0);
    assert_int_equal(p.better_b, 7);
    assert_int_equal(p.equal, 10);
    assert_int_equal(p.same, 8);
    near(p.difference, 100 * 7. / 17);
    near(p.p_value, 2 * pow(0.5, 7));
    assert_int_equal(p.is_noise, 0);
    near(p.score_a, 100 * 10. / 17);
    near(p.score_b, 100);
    assert_true(p.range.low < p.difference && p.difference < p.range.high);
    renyi_vqa_compare(a, a, &p);
    near(p.difference, 0);
    near(p.p_value, 1);
    assert_int_equal(p.is_noise, 1);
    renyi_vqa_answers_free(a);
    renyi_vqa_answers_free(b);
    renyi_vqa_free(v);
}

/* ---- POPE's real questions ------------------------------------------------------------------ */

static void real_pope(void **state)
{
    const char *path = shared_path("data/lvlm/pope");
    (void)state;
    if (!path) return;
    renyi_vqa *v = ask(RENYI_VQA_POPE, path, NULL);
    renyi_vqa_info info;
    renyi_vqa_get_info(v, &info);
    assert_int_equal(info.n_questions, 9000);
    assert_int_equal(info.n_known, 9000);
    assert_int_equal(info.n_faults, 0);
    const char **texts = calloc(9000, sizeof *texts);
    assert_non_null(texts);
    for (size_t i = 0; i < 9000; i++) texts[i] = "Yes";
    renyi_vqa_score s = score_of(v, texts, 9000);
    near(s.score, 200. / 3); /* half of each category is "yes" */
    near(s.accuracy, 50);
    assert_int_equal(s.n_parts, 3);
    for (size_t i = 0; i < 9000; i++) {
        renyi_vqa_question q;
        renyi_vqa_get_question(v, i, &q);
        texts[i] = q.right[0];
    }
    assert_score(v, texts, 9000, 100);
    free(texts);
    renyi_vqa_free(v);
}

/* ---- SEED-Bench and OCRBench ---------------------------------------------------------------- */

static const char seed_file[] =
    "{\"question_type\": {\"Scene Understanding\": 1, \"Action Recognition\": 10}, \"questions\": ["
    "{\"question_id\": \"7\", \"question_type_id\": 1, \"data_type\": \"image\", \"data_id\": "
    "\"a_1\", \"question\": \"How many?\", \"choice_a\": \"One\", \"choice_b\": \"Two\", "
    "\"choice_c\": \"3\", \"choice_d\": \"4\", \"answer\": \"B\"},"
    "{\"question_id\": \"8\", \"question_type_id\": 10, \"data_type\": \"video\", \"data_id\": "
    "\"b.mp4\", \"question\": \"What?\", \"choice_a\": \"x\", \"choice_b\": \"y\", \"answer\": "
    "\"A\"},"
    "{\"question_id\": \"9\", \"question_type_id\": 1, \"data_type\": \"image\", \"data_id\": "
    "\"c\", \"question\": \"Who?\", \"choice_a\": \"x\", \"choice_b\": \"y\", \"answer\": "
    "\"A\"}]}";

/* The benchmark's own file has the prompts of LLaVA's, and a question is right only if the answer
 * is the letter and nothing else. */
static void seed_counts_images(void **state)
{
    char own[512], lines[512];
    renyi_vqa_question q;
    renyi_vqa_info info;
    (void)state;
    snprintf(own, sizeof own, "%s", put("SEED-Bench.json", seed_file));
    renyi_vqa *v = ask(RENYI_VQA_SEED, own, NULL);
    renyi_vqa_get_info(v, &info);
    assert_int_equal(info.n_questions, 2);
    renyi_vqa_get_question(v, 0, &q);
    assert_string_equal(q.text, "How many?\nA. One\nB. Two\nC. 3\nD. 4\nAnswer with the option's "
                                "letter from the given choices directly.");
    assert_string_equal(q.image, "SEED-Bench-image/a_1");
    assert_string_equal(q.category, "Scene Understanding");
    assert_score(v, LIST("B", "A"), 100);
    assert_score(v, LIST("B.", "A"), 50);
    renyi_vqa_free(v);

    snprintf(lines, sizeof lines, "%s",
             put("llava-seed-bench.jsonl",
                 "{\"question_id\": 7, \"image\": \"SEED-Bench-image/a_1\", \"text\": \"How?\"}\n"
                 "{\"question_id\": 8, \"image\": \"SEED-Bench-video-image/b.png\", \"text\": "
                 "\"What?\"}\n"
                 "{\"question_id\": 9, \"image\": \"SEED-Bench-image/c\", \"text\": \"Who?\"}\n"));
    v = ask(RENYI_VQA_SEED, lines, VQA(.annotations = own));
    const renyi_vqa_score s = score_of(v, LIST("B", "B", "B"));
    near(s.score, 50); /* the video is not counted */
    assert_int_equal(s.n_scored, 3);
    renyi_vqa_get_question(v, 1, &q);
    assert_string_equal(q.category, "video");
    renyi_vqa_free(v);
}

/* Expected: the rule of the benchmark's own script, worked out by hand. */
static void ocrbench_looks_for_a_right_answer(void **state)
{
    (void)state;
    renyi_vqa *v = ask(
        RENYI_VQA_OCRBENCH,
        put("OCRBench.json",
            "[{\"dataset_name\": \"svt\", \"type\": \"Regular Text Recognition\", \"image_path\": "
            "\"svt/1.jpg\", \"question\": \"what is written?\", \"answers\": \"Open\"},"
            "{\"dataset_name\": \"FUNSD\", \"type\": \"Key Information Extraction\", "
            "\"image_path\": \"b.png\", \"question\": \"q\", \"answers\": [\"x\\ny\", \"Z\"]},"
            "{\"dataset_name\": \"HME100k\", \"type\": \"Handwritten Mathematical Expression "
            "Recognition\", \"image_path\": \"c.png\", \"question\": \"q\", \"answers\": "
            "[\"A + b\"]}]"),
        NULL);
    renyi_vqa_question q;
    renyi_vqa_part p;
    renyi_vqa_get_question(v, 0, &q);
    assert_string_equal(q.text, "what is written?"); /* nothing is added to the question */
    assert_score(v, LIST("It says OPEN.", "x y", "A+b=c"), 1000);
    assert_score(v, LIST("ope", "", "a+b"), 0); /* a formula keeps its case */
    assert_score(v, LIST("open", "the z", NULL), 1000);
    renyi_vqa_answers *a = answers_of(v, put_answers("ocr.jsonl", v, LIST("no", "z", "A +b")));
    renyi_vqa_score s;
    renyi_vqa_get_score(a, &s);
    near(s.score, 2000.0 / 3);
    assert_int_equal(s.n_right, 2);
    renyi_vqa_get_part(a, 0, &p);
    near(p.score, 0);
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalizes_as_the_servers_do),
        cmocka_unit_test(normalizes_as_vqa_eval_does),
        cmocka_unit_test(reads_no),
        cmocka_unit_test(reads_letters),
        cmocka_unit_test(pope),
        cmocka_unit_test(gqa),
        cmocka_unit_test(vqa_accuracy),
        cmocka_unit_test(textvqa),
        cmocka_unit_test(sqa),
        cmocka_unit_test(mme),
        cmocka_unit_test(mmbench),
        cmocka_unit_test(compares),
        cmocka_unit_test(seed_counts_images),
        cmocka_unit_test(ocrbench_looks_for_a_right_answer),
        cmocka_unit_test(real_pope),
    };
    const int bad = cmocka_run_group_tests(tests, folder_make, folder_remove);
    return bad ? bad : *shared_missing() ? SHARED_SKIPPED : 0;
}
