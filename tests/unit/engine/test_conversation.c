/* test_conversation.c - questions and answers with a small random LLaVA: which rows are
 * reused, when answers end, what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/llava_fixture.h"
#include "fixtures/test_heap.h"

#include <math.h>

static renyi_conversation *begin_conversation(const toy *t, uint32_t max_context)
{
    return begin_with(t, "naive p=10 layers=0", max_context);
}

/* ---- rows that are reused ------------------------------------------------------------------ */

/* A second question continues the conversation: the same answer as to one long prompt. */
static void test_history(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 0), *other = begin_conversation(t, 0);
    int32_t ids[LLAMA_CONTEXT];
    size_t n, more;
    show_image(c, 1);
    const answer_copy first = ask_question(c, "what is it", 5), second = ask_question(c, "why", 5);
    assert_int_equal(first.n_visual, 6);
    assert_int_equal(first.n_reused, 0);
    assert_int_equal(second.n_visual, 6);
    assert_int_equal(second.n_reused, first.n_prompt + first.n - 1); /* its last token is new */

    const renyi_lvlm_turn turn = {"what is it", NULL};
    const renyi_lvlm_prompt_options how = {.struct_size = sizeof how, .system = ""};
    const renyi_lm_tokenizer *tokenizer = renyi_lvlm_tokenizer(t->m);
    assert_ok(renyi_lvlm_prompt(tokenizer, &turn, 1, &how, ids, LLAMA_CONTEXT, &n, err));
    assert_int_equal(first.n_prompt, n - 1 + 6);
    memcpy(ids + n, first.ids, first.n * sizeof *ids);
    n += first.n;
    assert_ok(renyi_lvlm_prompt_next(tokenizer, "why", ids + n, LLAMA_CONTEXT - n, &more, err));
    n += more;
    show_image(other, 1);
    const answer_copy at_once = ask_ids(other, ids, n, 5);
    assert_same(&second, &at_once);
    assert_int_equal(second.n_prompt, at_once.n_prompt);

    /* the model's own image token marks the image too */
    for (size_t i = 0; i < n; i++)
        if (ids[i] == RENYI_LVLM_IMAGE) ids[i] = TOY_IMAGE;
    const answer_copy again = ask_ids(other, ids, n, 5);
    assert_same(&second, &again);
    assert_int_equal(again.n_reused, again.n_prompt - 1); /* all but the row that gives logits */
    renyi_conversation_free(c);
    renyi_conversation_free(other);
}

static void test_restart(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 0);
    show_image(c, 1);
    const answer_copy first = ask_question(c, "what is it", 6);
    (void)ask_question(c, "why", 6);
    renyi_conversation_restart(c);
    const answer_copy again = ask_question(c, "what is it", 6);
    assert_same(&first, &again);
    assert_int_equal(again.n_reused, first.n_prompt - 1);
    renyi_conversation_restart(c);
    const answer_copy other = ask_question(c, "who is it", 6);
    assert_true(other.n_reused > first.n_visual && other.n_reused < other.n_prompt - 1);

    /* of another image only the rows before it are reused */
    show_image(c, 2);
    const answer_copy about = ask_question(c, "what is it", 6);
    assert_true(about.n_reused > 0 && about.n_reused < 12);
    renyi_conversation *fresh = begin_conversation(t, 0);
    show_image(fresh, 2);
    const answer_copy want = ask_question(fresh, "what is it", 6);
    assert_same(&about, &want);
    renyi_conversation_free(fresh);
    renyi_conversation_free(c);
}

/* Without an image the prompt has no place for one. */
static void test_no_photo(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 0);
    const answer_copy a = ask_question(c, "who are you", 4);
    assert_int_equal(a.n_visual, 0);
    const int32_t with[] = {1, 5, RENYI_LVLM_IMAGE, 6}, without[] = {1, 5, 6};
    const answer_copy b = ask_ids(c, without, 3, 4);
    assert_int_equal(b.n_prompt, 3);
    renyi_answer r;
    renyi_error e = {0};
    assert_int_equal(renyi_conversation_ask_ids(c, with, 4, NULL, &r, &e), RENYI_ERR_ARG);
    assert_says(&e, "none was shown");
    renyi_conversation_free(c);
}

/* ---- ends ---------------------------------------------------------------------------------- */

static void test_context(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 48);
    renyi_answer a;
    renyi_error e = {0};
    show_image(c, 1);
    assert_int_equal(
        renyi_conversation_ask(c, "a question of more letters than the context has space for", NULL,
                               &a, &e),
        RENYI_ERR_LIMIT);
    assert_says(&e, "holds 48");
    assert_says(&e, "6 of the image");
    const answer_copy cut = ask_question(c, "what is it", 100);
    assert_int_equal(cut.end, RENYI_ANSWER_CONTEXT);
    assert_int_equal(cut.n_prompt + cut.n, 48 + 1);
    assert_int_equal(renyi_conversation_ask(c, "why", NULL, &a, &e), RENYI_ERR_LIMIT);
    assert_says(&e, "49 of earlier turns");
    renyi_conversation_restart(c);
    const answer_copy again = ask_question(c, "what is it", 100);
    assert_same(&cut, &again);
    renyi_conversation_free(c);
}

typedef struct listener {
    char text[512];
    size_t n, calls, enough;
} listener;

static int listen(void *user, const char *text, size_t size)
{
    listener *l = user;
    assert_int_equal(strlen(text), size);
    memcpy(l->text + l->n, text, size + 1);
    l->n += size;
    return ++l->calls == l->enough;
}

static void test_stream(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 0);
    listener all = {0}, some = {.enough = 2};
    renyi_answer_options o = {.struct_size = sizeof o,
                              .max_new_tokens = 8,
                              .ignore_eos = 1,
                              .on_text = listen,
                              .user = &all};
    renyi_answer a;
    show_image(c, 1);
    assert_ok(renyi_conversation_ask(c, "what", &o, &a, err));
    assert_string_equal(all.text, a.text);
    assert_int_equal(a.end, RENYI_ANSWER_LENGTH);
    assert_true(a.vision_ms > 0.0 && a.prefill_ms > 0.0);
    assert_true(a.first_token_ms >= a.vision_ms + a.prefill_ms);
    assert_true(a.tokens_per_second > 0.0);
    assert_true(a.bytes > renyi_conversation_bytes(c));
    const answer_copy whole = copy_answer(&a);

    renyi_conversation_restart(c);
    o.user = &some;
    assert_ok(renyi_conversation_ask(c, "what", &o, &a, err));
    assert_int_equal(a.end, RENYI_ANSWER_STOPPED);
    assert_true(a.n_ids < whole.n);
    assert_memory_equal(a.ids, whole.ids, a.n_ids * sizeof *a.ids);
    assert_true(a.vision_ms == 0.0); /* counted in the first answer */
    (void)ask_question(c, "and", 3); /* continues from there */
    renyi_conversation_free(c);
}

/* The end-of-text id ends the answer and is not part of it. */
static void test_eos(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 0);
    renyi_answer a;
    int n_ended = 0;
    show_image(c, 1);
    for (uint64_t seed = 0; seed < 20; seed++) {
        const renyi_answer_options o = {
            .struct_size = sizeof o, .max_new_tokens = 30, .temperature = 1e3, .seed = seed};
        renyi_conversation_restart(c);
        assert_ok(renyi_conversation_ask(c, "what", &o, &a, err));
        for (uint32_t i = 0; i < a.n_ids; i++) assert_int_not_equal(a.ids[i], 2);
        assert_int_equal(a.end, a.n_ids == 30 ? RENYI_ANSWER_LENGTH : RENYI_ANSWER_EOS);
        n_ended += a.end == RENYI_ANSWER_EOS;
    }
    assert_in_range(n_ended, 1, 19);
    renyi_conversation_free(c);
}

/* ---- choice -------------------------------------------------------------------------------- */

static void test_seeds(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 0);
    answer_copy by_seed[3];
    renyi_answer a;
    show_image(c, 1);
    for (int i = 0; i < 3; i++) {
        const renyi_answer_options o = {.struct_size = sizeof o,
                                        .max_new_tokens = 12,
                                        .ignore_eos = 1,
                                        .temperature = 2.0,
                                        .top_p = 0.95,
                                        .seed = (uint64_t)(i == 2)};
        renyi_conversation_restart(c);
        assert_ok(renyi_conversation_ask(c, "what", &o, &a, err));
        by_seed[i] = copy_answer(&a);
    }
    assert_same(&by_seed[0], &by_seed[1]);
    assert_true(memcmp(by_seed[0].ids, by_seed[2].ids, 12 * sizeof *a.ids) != 0);
    const double bad[][2] = {{-1.0, 1.0}, {NAN, 1.0}, {1.0, 1.5}, {1.0, -0.1}, {1.0, NAN}};
    for (size_t i = 0; i < 5; i++) {
        const renyi_answer_options o = {
            .struct_size = sizeof o, .temperature = bad[i][0], .top_p = bad[i][1]};
        renyi_error e = {0};
        assert_int_equal(renyi_conversation_ask(c, "what", &o, &a, &e), RENYI_ERR_ARG);
        assert_says(&e, i < 2 ? "temperature" : "top_p");
    }
    renyi_conversation_free(c);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void test_bad_ids(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 0);
    const struct {
        int32_t ids[4];
        size_t n;
        const char *says;
    } bad[] = {{{1}, 0, "no ids"},
               {{1, 61}, 2, "number 2 of the prompt"},
               {{-1, 1}, 2, "id -1"},
               {{1, RENYI_LVLM_IMAGE, TOY_IMAGE}, 3, "2 places"}};
    show_image(c, 1);
    for (size_t i = 0; i < 4; i++) {
        renyi_answer a;
        renyi_error e = {0};
        assert_int_equal(renyi_conversation_ask_ids(c, bad[i].ids, bad[i].n, NULL, &a, &e),
                         RENYI_ERR_ARG);
        assert_says(&e, bad[i].says);
    }
    renyi_conversation_free(c);
}

/* After an image that cannot be read there is none, and the conversation can continue. */
static void test_bad_photo(void **state)
{
    const toy *t = *state;
    renyi_conversation *c = begin_conversation(t, 0);
    const int32_t ids[] = {1, RENYI_LVLM_IMAGE, 5};
    renyi_answer a;
    renyi_error e = {0};
    show_image(c, 1);
    const answer_copy good = ask_ids(c, ids, 3, 4);
    assert_true(renyi_conversation_show_bytes(c, "no image!!", 10, &e) != RENYI_OK);
    assert_int_equal(renyi_conversation_ask_ids(c, ids, 3, NULL, &a, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_conversation_show_file(c, "/nowhere.jpg", &e), RENYI_ERR_IO);
    assert_says(&e, "/nowhere.jpg");
    show_image(c, 1);
    const answer_copy again = ask_ids(c, ids, 3, 4);
    assert_same(&good, &again);
    renyi_conversation_free(c);
}

static void test_parts(void **state)
{
    static fixture f;
    const renyi_lvlm_options lost = {.struct_size = sizeof lost, .tokenizer = "/nowhere.model"};
    const int32_t ids[] = {1, RENYI_LVLM_IMAGE, 5};
    const toy *t = *state;
    renyi_lvlm *m;
    renyi_conversation *c;
    renyi_answer a;
    renyi_error e = {0};
    assert_int_equal(renyi_lvlm_open(&m, t->folder, &lost, &e), RENYI_ERR_IO);
    assert_says(&e, "/nowhere.model");
    assert_null(m);

    toy_tensors(&f);
    const char *folder = toy_write(&f, "no_words", 0);
    assert_ok(renyi_lvlm_open(&m, folder, NULL, err));
    assert_null(renyi_lvlm_tokenizer(m));
    assert_ok(renyi_conversation_new(&c, m, NULL, err));
    show_image(c, 1);
    assert_int_equal(renyi_conversation_ask(c, "what", NULL, &a, &e), RENYI_ERR_ARG);
    assert_says(&e, "tokenizer.json");
    assert_int_equal(ask_ids(c, ids, 3, 4).n, 4);
    renyi_conversation_free(c);
    renyi_lvlm_free(m);

    toy_put_pieces(folder, 99); /* of a larger vocabulary */
    assert_int_equal(renyi_lvlm_open(&m, folder, NULL, &e), RENYI_ERR_FORMAT);
    assert_says(&e, "belong to another model");
    toy_remove(folder);

    float *norm = (float *)(uintptr_t)fix_find(&f, "language_model.model.norm.weight")->data;
    for (int i = 0; i < LLAMA_DIM; i++) norm[i] = 3e38f; /* logits become infinite or NaN */
    folder = toy_write(&f, "loud", 0);
    assert_ok(renyi_lvlm_open(&m, folder, NULL, err));
    assert_ok(renyi_conversation_new(&c, m, NULL, err));
    show_image(c, 1);
    assert_int_equal(renyi_conversation_ask_ids(c, ids, 3, NULL, &a, &e), RENYI_ERR_FORMAT);
    assert_says(&e, "are the weights damaged?");
    renyi_conversation_free(c);
    renyi_lvlm_free(m);
    toy_remove(folder);

    ry_tensor *out = fix_find(&f, "multi_modal_projector.linear_2.weight");
    ry_tensor *bias = fix_find(&f, "multi_modal_projector.linear_2.bias");
    out->shape[0] = bias->shape[0] = LLAMA_DIM - 4;
    out->bytes = 4 * ry_tensor_elements(out);
    bias->bytes = 4 * ry_tensor_elements(bias);
    folder = toy_write(&f, "narrow", 0);
    assert_int_equal(renyi_lvlm_open(&m, folder, NULL, &e), RENYI_ERR_FORMAT);
    assert_says(&e, "rows of 20 numbers, the language model reads rows of 24");
    toy_remove(folder);
    fix_free(&f);
}

/* Stopped during the prompt; the next answer is the same as without the stop. */
static int stop(void *user, uint64_t done, uint64_t total)
{
    (void)total;
    return *(int *)user && done > 0;
}

static void test_abort(void **state)
{
    const toy *t = *state;
    int stops = 0;
    const renyi_conversation_options o = {
        .struct_size = sizeof o, .max_rows = 4, .progress = stop, .progress_user = &stops};
    const int32_t ids[] = {1, 5, RENYI_LVLM_IMAGE, 6, 7, 8};
    renyi_conversation *c;
    renyi_answer a;
    renyi_error e = {0};
    assert_ok(renyi_conversation_new(&c, t->m, &o, err));
    show_image(c, 1);
    const answer_copy want = ask_ids(c, ids, 6, 4);
    show_image(c, 1);
    stops = 1;
    assert_int_equal(renyi_conversation_ask_ids(c, ids, 6, NULL, &a, &e), RENYI_ERR_ABORTED);
    stops = 0;
    const answer_copy got = ask_ids(c, ids, 6, 4);
    assert_same(&want, &got);
    assert_true(got.n_reused > 2); /* rows that were read before the stop */
    renyi_conversation_free(c);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* 1 = all calls succeeded. */
static int whole_life(const toy *t, test_heap *heap)
{
    const renyi_lvlm_options o = {.struct_size = sizeof o, .allocator = test_heap_of(heap)};
    const renyi_image image = toy_photo(1);
    const renyi_conversation_options short_system = {.struct_size = sizeof short_system,
                                                     .system = "be kind"};
    const renyi_answer_options few = {.struct_size = sizeof few, .max_new_tokens = 3};
    renyi_lvlm *m = NULL;
    renyi_conversation *c = NULL;
    renyi_answer a;
    renyi_error e = {0};
    renyi_status st = renyi_lvlm_open(&m, t->folder, &o, &e);
    if (!st) st = renyi_conversation_new(&c, m, &short_system, &e);
    if (!st) st = renyi_conversation_show(c, &image, &e);
    if (!st) st = renyi_conversation_ask(c, "why", &few, &a, &e);
    if (st) assert_int_equal(st, RENYI_ERR_NOMEM);
    renyi_conversation_free(c);
    renyi_lvlm_free(m);
    assert_int_equal(heap->live, 0);
    return !st;
}

static void test_out_of_memory(void **state)
{
    const toy *t = *state;
    test_heap heap = {0};
    assert_true(whole_life(t, &heap));
    const size_t n = heap.calls, step = n / 60 + 1;
    for (size_t i = 1; i <= n; i += i + 20 >= n ? 1 : step) {
        heap = (test_heap){.fail_at = i};
        assert_false(whole_life(t, &heap));
    }
}

/* ---- for other engines --------------------------------------------------------------------- */

static void test_write(void **state)
{
    (void)state;
    const float rows[] = {1, 2, 3, 4, 5, 6};
    const uint32_t kept[] = {7, RENYI_NONE, 2};
    const renyi_visual_rows pictures[] = {{"a.jpg", 2, rows, kept},
                                          {"b\xff.jpg", 1, rows + 4, kept + 2}};
    renyi_visual_file file = {.struct_size = sizeof file,
                              .lm_dim = 2,
                              .pictures = pictures,
                              .n_pictures = 2,
                              .model = "m",
                              .policy = "none",
                              .image_size = 336};
    const char *path = fix_path("tokens.safetensors");
    ry_tensors *set;
    renyi_error e = {0};
    assert_ok(renyi_visual_write(path, &file, err));
    assert_ok(ry_safetensors_open(&set, path, NULL, NULL, err));
    assert_int_equal(ry_tensors_count(set), 4);
    const ry_tensor *t = ry_tensors_find(set, "tokens.0");
    assert_true(t->shape[0] == 2 && t->shape[1] == 2 && !memcmp(t->data, rows, 16));
    t = ry_tensors_find(set, "positions.0");
    const int32_t want[] = {7, -1};
    assert_true(t->dtype == RY_I32 && t->shape[0] == 2 && !memcmp(t->data, want, 8));
    assert_memory_equal(ry_tensors_find(set, "tokens.1")->data, rows + 4, 8);
    assert_string_equal(ry_tensors_meta(set, "format"), "renyi.visual_tokens");
    assert_string_equal(ry_tensors_meta(set, "files"), "[\"a.jpg\",\"b\xef\xbf\xbd.jpg\"]");
    assert_string_equal(ry_tensors_meta(set, "image_size"), "336");
    assert_null(ry_tensors_meta(set, "patch_size"));
    ry_tensors_free(set);
    unlink(path);
    file.n_pictures = 0;
    assert_int_equal(renyi_visual_write(path, &file, &e), RENYI_ERR_ARG);
    file.n_pictures = 2;
    assert_int_equal(renyi_visual_write("/nowhere/t.safetensors", &file, &e), RENYI_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_history),   cmocka_unit_test(test_restart),
        cmocka_unit_test(test_no_photo),  cmocka_unit_test(test_context),
        cmocka_unit_test(test_stream),    cmocka_unit_test(test_eos),
        cmocka_unit_test(test_seeds),     cmocka_unit_test(test_bad_ids),
        cmocka_unit_test(test_bad_photo), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_abort),     cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_write),
    };
    return cmocka_run_group_tests(tests, open_toy, close_toy);
}
