/* test_vqa_run.c - checks VQA runs: images from files and tables, failures, resuming after an
 * incomplete line, and ranks (threads here), which write the same file as one process.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/base64.h"
#include "fixtures/rank_threads.h"
#include "fixtures/test_heap.h"
#include "fixtures/vqa_fixture.h"

enum { QUESTIONS = 23, MAX_RANKS = 3 };

/* Answers with the first byte of the image and the text of the question; counts its calls. */
typedef struct oracle {
    size_t calls, same, failures, stop_after; /* stop_after 0 = never */
    char text[512], last[256];
    renyi_status st; /* of every third call, if not OK */
} oracle;

static renyi_status answer(void *user, const renyi_vqa_request *r, renyi_vqa_reply *reply,
                           renyi_error *err)
{
    oracle *o = user;
    o->calls++;
    o->same += (size_t)r->is_same_photo;
    if (o->st && o->calls % 3 == 0) {
        snprintf(err->message, sizeof err->message, "%s: cannot be seen", r->name);
        return o->st;
    }
    snprintf(o->text, sizeof o->text, " %.*s %.6s \n", (int)(r->size < 5 ? r->size : 5),
             r->bytes ? (const char *)r->bytes : "none", r->question->text);
    *reply = (renyi_vqa_reply){o->text, 192, 3, 12.4};
    return RENYI_OK;
}

static void note_failure(void *user, const char *question, const char *message)
{
    oracle *o = user;
    o->failures++;
    snprintf(o->last, sizeof o->last, "%s: %s", question, message);
}

static int maybe_stop(void *user, uint64_t done, uint64_t total)
{
    const oracle *o = user;
    assert_true(done <= total);
    return o->stop_after && o->calls >= o->stop_after;
}

static renyi_vqa_run_options options(oracle *o, const char *file)
{
    return (renyi_vqa_run_options){.struct_size = sizeof(renyi_vqa_run_options),
                                   .images = at("photos"),
                                   .answers = file,
                                   .model = "llava-x",
                                   .policy = "none",
                                   .ask = answer,
                                   .ask_user = o,
                                   .user = o,
                                   .on_failure = note_failure,
                                   .progress = maybe_stop};
}

/* Two questions about each image; image 3 is missing. */
static renyi_vqa *make_questions(void)
{
    char text[128 * QUESTIONS] = "", name[32];
    for (int i = 0; i < QUESTIONS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "{\"question_id\": %d, \"image\": \"p%d.jpg\", \"text\": \"q%02d?\", \"answer\": "
                 "\"x\"}\n",
                 100 + i, i / 2, i);
    for (int i = 0; i <= QUESTIONS / 2; i++) {
        snprintf(name, sizeof name, "photos/p%d.jpg", i);
        char bytes[8];
        snprintf(bytes, sizeof bytes, "P%d", i);
        if (i != 3) put(name, bytes);
    }
    return ask(RENYI_VQA_GQA, put("q.jsonl", text), NULL);
}

static renyi_status go(const renyi_vqa *v, const renyi_vqa_run_options *o, uint64_t *n_answered,
                       renyi_error *err)
{
    renyi_vqa_answers *a;
    renyi_vqa_answers_info info = {0};
    const renyi_status st = renyi_vqa_run(&a, v, o, err);
    if (a) renyi_vqa_answers_get_info(a, &info);
    if (n_answered) *n_answered = info.n_answered;
    renyi_vqa_answers_free(a);
    return st;
}

static void writes_what_llava_would(void **state)
{
    (void)state;
    oracle o = {0};
    renyi_vqa *v = make_questions();
    const renyi_vqa_run_options opt = options(&o, at("plain.jsonl"));
    uint64_t n;
    assert_int_equal(go(v, &opt, &n, NULL), RENYI_OK);
    assert_int_equal(n, QUESTIONS - 2);
    assert_int_equal(o.calls, QUESTIONS - 2); /* not called for the missing image */
    assert_int_equal(o.same, 10);
    assert_int_equal(o.failures, 2);
    assert_non_null(strstr(o.last, "107: "));
    assert_non_null(strstr(o.last, "photos/p3.jpg"));
    const char *first = text_of(at("plain.jsonl"));
    static const char want[] =
        "{\"question_id\":100,\"prompt\":\"q00?\\nAnswer the question using a single word or "
        "phrase.\",\"text\":\"P0 q00?\\nA\",\"answer_id\":\"";
    assert_memory_equal(first, want, sizeof want - 1);
    assert_non_null(strstr(first, "\",\"model_id\":\"llava-x\",\"metadata\":{\"policy\":\"none\","
                                  "\"run\":\""));
    assert_non_null(strstr(first, "\"visual_tokens\":192,\"tokens\":3,\"ms\":12,\"input\":\""));

    /* A second run is refused without resume; with it, only failed questions are asked. */
    renyi_error err = {0};
    renyi_vqa_run_options again = opt;
    assert_int_equal(go(v, &opt, NULL, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "this file already has results"));
    again.resume = 1;
    o = (oracle){0};
    put("photos/p3.jpg", "late");
    assert_int_equal(go(v, &again, &n, NULL), RENYI_OK);
    assert_int_equal(n, QUESTIONS);
    assert_int_equal(o.calls, 2);

    /* In the order of the questions, whenever they were answered. */
    const char *text = text_of(at("plain.jsonl"));
    for (int i = 0; i < QUESTIONS; i++) {
        char id[32];
        snprintf(id, sizeof id, "{\"question_id\":%d,", 100 + i);
        assert_memory_equal(text, id, strlen(id));
        text = strchr(text, '\n') + 1;
    }
    assert_int_equal(*text, 0);

    /* Another policy, other questions. */
    again.policy = "prumerge tokens=192";
    assert_int_equal(go(v, &again, NULL, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "not of this run"));
    again.policy = "none";
    renyi_vqa *few = ask(RENYI_VQA_GQA, at("q.jsonl"), VQA(.limit = 3));
    assert_int_equal(go(few, &again, NULL, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "to other questions"));
    renyi_vqa_free(few);
    renyi_vqa_free(v);
    remove(at("photos/p3.jpg"));
}

static void resumes(void **state)
{
    (void)state;
    oracle o = {0};
    renyi_vqa *v = make_questions();
    uint64_t n;
    renyi_vqa_run_options opt = options(&o, at("whole.jsonl"));
    assert_int_equal(go(v, &opt, NULL, NULL), RENYI_OK);
    char whole[1 << 14];
    assert_in_range(snprintf(whole, sizeof whole, "%s", text_of(at("whole.jsonl"))), 0,
                    sizeof whole - 1);
    for (size_t stop = 1; stop < 12; stop += 5) {
        opt = options(&o, at("torn.jsonl"));
        remove(at("torn.jsonl"));
        o = (oracle){.stop_after = stop};
        assert_int_equal(go(v, &opt, &n, NULL), RENYI_ERR_ABORTED);
        assert_int_equal(n, stop);
        FILE *f = fopen(at("torn.jsonl"), "a"); /* killed in the middle of a line */
        fputs("{\"question_id\": 110, \"te", f);
        fclose(f);
        o = (oracle){0};
        opt.resume = 1;
        assert_int_equal(go(v, &opt, &n, NULL), RENYI_OK);
        assert_int_equal(n, QUESTIONS - 2);
        assert_int_equal(o.calls, QUESTIONS - 2 - stop);
        assert_string_equal(text_of(at("torn.jsonl")), whole);
    }
    renyi_vqa_free(v);
}

static void failures_of_the_model(void **state)
{
    (void)state;
    renyi_error err = {0};
    oracle o = {.st = RENYI_ERR_FORMAT};
    renyi_vqa *v = make_questions();
    renyi_vqa_run_options opt = options(&o, NULL);
    uint64_t n;
    assert_int_equal(go(v, &opt, &n, NULL), RENYI_OK);
    assert_int_equal(n, QUESTIONS - 2 - 7);
    assert_non_null(strstr(o.last, "cannot be seen"));
    o = (oracle){.st = RENYI_ERR_NOMEM}; /* not an error of an image */
    assert_int_equal(go(v, &opt, NULL, &err), RENYI_ERR_NOMEM);
    assert_int_equal(o.calls, 3);
    opt.ask = NULL;
    assert_int_equal(go(v, &opt, NULL, &err), RENYI_ERR_ARG);
    opt = options(&o, at("no/such/folder.jsonl"));
    assert_int_equal(go(v, &opt, NULL, &err), RENYI_ERR_IO);
    renyi_vqa_free(v);
}

static void images_inside_tables(void **state)
{
    (void)state;
    oracle o = {0};
    renyi_vqa_answers *a;
    renyi_vqa *v =
        ask(RENYI_VQA_MMBENCH,
            put("t.tsv", "index\tquestion\tA\tB\timage\n1\tq?\tx\ty\tSGVsbG8h\n2\tq?\tx\ty\t!!\n"),
            NULL);
    const renyi_vqa_run_options opt = options(&o, at("t.jsonl"));
    assert_int_equal(renyi_vqa_run(&a, v, &opt, NULL), RENYI_OK);
    assert_string_equal(renyi_vqa_get_answer(a, 0), "Hello q?\nA.");
    assert_null(renyi_vqa_get_answer(a, 1));
    assert_non_null(strstr(o.last, "not base64"));
    assert_non_null(
        strstr(text_of(at("t.jsonl")), "{\"question_id\":1,\"round_id\":0,\"prompt\":"));
    assert_non_null(
        strstr(text_of(at("t.jsonl")), "\"options\":[\"x\",\"y\"],\"option_char\":[\"A\",\"B\"]"));
    renyi_vqa_answers_free(a);
    renyi_vqa_free(v);
}

static void base64(void **state)
{
    static const struct {
        const char *text, *bytes;
    } cases[] = {{"", ""},        {"QQ==", "A"},        {"QUI=", "AB"},
                 {"QUJD", "ABC"}, {"QUJD\nRA", "ABCD"}, {"QQ=x", NULL},
                 {"Q", NULL},     {"QU D", NULL},       {"Q.==", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char out[32];
        size_t n;
        const int is_fine = ry_base64_decode(cases[i].text, strlen(cases[i].text), out, &n);
        assert_int_equal(is_fine, cases[i].bytes != NULL);
        if (!is_fine) continue;
        assert_int_equal(n, strlen(cases[i].bytes));
        assert_memory_equal(out, cases[i].bytes, n);
    }
}

/* ---- ranks ---------------------------------------------------------------------------------- */

typedef struct member {
    seat seat;
    renyi_ranks ranks;
    oracle o;
    const renyi_vqa *v;
    renyi_vqa_run_options opt;
    renyi_vqa_answers *a;
    renyi_status st;
    renyi_error err;
    pthread_t thread;
} member;

static void *run_member(void *user)
{
    member *m = user;
    m->st = renyi_vqa_run(&m->a, m->v, &m->opt, &m->err);
    return NULL;
}

/* All of them; stop_at < n: that rank stops after two questions. */
static void run_ranks(const renyi_vqa *v, member *members, uint32_t n, const char *file,
                      uint32_t resume, uint32_t stop_at)
{
    hub h;
    hub_open(&h, n);
    for (uint32_t i = 0; i < n; i++) {
        member *m = &members[i];
        memset(m, 0, sizeof *m);
        m->ranks = seat_take(&m->seat, &h, i);
        m->v = v;
        m->opt = options(&m->o, file);
        m->opt.ranks = &m->ranks;
        m->opt.resume = resume;
        if (i == stop_at) m->o.stop_after = 2;
    }
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&members[i].thread, NULL, run_member, &members[i]), 0);
    for (uint32_t i = 0; i < n; i++) pthread_join(members[i].thread, NULL);
    hub_close(&h);
}

static void ranks_share(void **state)
{
    (void)state;
    oracle o = {0};
    renyi_vqa *v = make_questions();
    const renyi_vqa_run_options alone = options(&o, at("alone.jsonl"));
    assert_int_equal(go(v, &alone, NULL, NULL), RENYI_OK);
    char want[1 << 14], file[512];
    assert_in_range(snprintf(want, sizeof want, "%s", text_of(at("alone.jsonl"))), 0,
                    sizeof want - 1);
    snprintf(file, sizeof file, "%s", at("ranks.jsonl"));
    for (uint32_t n = 1; n <= MAX_RANKS; n++)
        for (uint32_t stop_at = 0; stop_at <= n; stop_at++) {
            member members[MAX_RANKS];
            remove(file);
            run_ranks(v, members, n, file, 0, stop_at);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(members[i].st, stop_at < n ? RENYI_ERR_ABORTED : RENYI_OK);
                renyi_vqa_answers_free(members[i].a);
            }
            if (stop_at < n) { /* finished answers are in the file; one process completes it */
                oracle rest = {0};
                renyi_vqa_run_options opt = options(&rest, file);
                opt.resume = 1;
                assert_int_equal(go(v, &opt, NULL, NULL), RENYI_OK);
                assert_true(rest.calls < QUESTIONS - 2);
            }
            assert_string_equal(text_of(file), want);
            assert_int_equal(access(at("ranks.jsonl.rank1"), F_OK), -1);
        }
    renyi_vqa_free(v);
}

/* After a rank died, the next run reads its part file and removes it. */
static void parts_are_read(void **state)
{
    (void)state;
    oracle o = {0};
    renyi_vqa *v = make_questions();
    renyi_vqa_run_options opt = options(&o, at("dead.jsonl"));
    assert_int_equal(go(v, &opt, NULL, NULL), RENYI_OK);
    char whole[1 << 14];
    assert_in_range(snprintf(whole, sizeof whole, "%s", text_of(at("dead.jsonl"))), 0,
                    sizeof whole - 1);
    const char *cut = strchr(strchr(whole, '\n') + 1, '\n') + 1;
    put("dead.jsonl.rank2", cut);
    char head[4096];
    snprintf(head, sizeof head, "%.*s", (int)(cut - whole), whole);
    put("dead.jsonl", head);
    o = (oracle){0};
    assert_int_equal(go(v, &opt, NULL, NULL), RENYI_ERR_ARG);
    opt.resume = 1;
    assert_int_equal(go(v, &opt, NULL, NULL), RENYI_OK);
    assert_int_equal(o.calls, 0);
    assert_string_equal(text_of(at("dead.jsonl")), whole);
    assert_int_equal(access(at("dead.jsonl.rank2"), F_OK), -1);
    renyi_vqa_free(v);
}

static void no_memory(void **state)
{
    (void)state;
    for (size_t at_call = 1;; at_call++) {
        test_heap h = {.fail_at = 0};
        renyi_vqa_options vo = {
            .struct_size = sizeof vo, .allocator = test_heap_of(&h), .limit = 2};
        oracle o = {0};
        renyi_vqa *v = ask(RENYI_VQA_GQA, at("q.jsonl"), &vo);
        renyi_vqa_answers *a = NULL;
        const renyi_vqa_run_options opt = options(&o, at("memory.jsonl"));
        remove(at("memory.jsonl"));
        h.fail_at = h.calls + at_call;
        const renyi_status st = renyi_vqa_run(&a, v, &opt, NULL);
        renyi_vqa_answers_free(a);
        renyi_vqa_free(v);
        assert_int_equal(h.live, 0);
        if (st == RENYI_OK) break;
        assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(at_call < 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(writes_what_llava_would),
                                       cmocka_unit_test(resumes),
                                       cmocka_unit_test(failures_of_the_model),
                                       cmocka_unit_test(images_inside_tables),
                                       cmocka_unit_test(base64),
                                       cmocka_unit_test(ranks_share),
                                       cmocka_unit_test(parts_are_read),
                                       cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
