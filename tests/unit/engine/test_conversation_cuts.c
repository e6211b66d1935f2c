/* test_conversation_cuts.c - conversations whose policy acts inside the language model: what a
 * later question reuses, and where such policies are refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/llava_fixture.h"

#include <math.h>

/* The same prompt of a conversation that has not read anything. */
static answer_copy ask_fresh(const toy *t, const char *policy, int photo, const int32_t *ids,
                             size_t n)
{
    renyi_conversation *c = begin_with(t, policy, 0);
    show_image(c, photo);
    const answer_copy a = ask_ids(c, ids, n, 6);
    renyi_conversation_free(c);
    return a;
}

/* What a prompt has chosen serves this prompt and what follows it. Another prompt reads the image
 * again, so that its answer does not depend on what was asked before. */
static void test_cuts_reuse(void **state)
{
    const toy *t = *state;
    const char *policy = "fastv layer=1 tokens=4";
    const int32_t one[] = {1, 9, RENYI_LVLM_IMAGE, 6, 7, 8},
                  two[] = {1, 9, RENYI_LVLM_IMAGE, 6, 7, 5};
    renyi_conversation *c = begin_with(t, policy, 0);
    const answer_copy want = ask_fresh(t, policy, 1, one, 6);
    show_image(c, 1);
    answer_copy got = ask_ids(c, one, 6, 6);
    assert_same(&got, &want);
    assert_int_equal(got.n_reused, 0);
    assert_int_equal(got.n_visual, TOY_PATCHES);
    assert_int_equal(got.n_prompt, TOY_PATCHES + 5);

    got = ask_ids(c, one, 6, 6); /* the same prompt */
    assert_same(&got, &want);
    assert_int_equal(got.n_reused, got.n_prompt - 1);

    const answer_copy other = ask_fresh(t, policy, 1, two, 6);
    got = ask_ids(c, two, 6, 6); /* only the last token differs, but it chooses */
    assert_same(&got, &other);
    assert_int_equal(got.n_reused, 2);

    got = ask_ids(c, one, 5, 6); /* a beginning of it is another prompt too */
    const answer_copy part = ask_fresh(t, policy, 1, one, 5);
    assert_same(&got, &part);
    assert_int_equal(got.n_reused, 2);

    const int32_t text[] = {1, 9, 6, 7};
    assert_int_equal(ask_ids(c, text, 4, 6).n_reused, 2);
    got = ask_ids(c, one, 6, 6);
    assert_same(&got, &want);
    show_image(c, 2);
    got = ask_ids(c, one, 6, 6);
    const answer_copy second = ask_fresh(t, policy, 2, one, 6);
    assert_same(&got, &second);
    assert_int_equal(got.n_reused, 2);
    renyi_conversation_free(c);
}

/* A later question continues with the rows that the first one has chosen; the whole history as one
 * prompt chooses again. */
static void test_cuts_history(void **state)
{
    const toy *t = *state;
    const char *policy = "pyramiddrop layers=1,2 keep=0.5 metric=col n=2";
    renyi_conversation *c = begin_with(t, policy, 0);
    renyi_prompt_cost cost;
    show_image(c, 1);
    const answer_copy first = ask_question(c, "what is it", 5);
    assert_ok(renyi_conversation_get_cost(c, &cost, err));
    assert_true(fabs(cost.visual_tokens - (16 + 8 + 4) / 3.0) < 1e-9);
    const answer_copy second = ask_question(c, "why", 5);
    assert_int_equal(second.n_reused, first.n_prompt + first.n - 1);
    assert_ok(renyi_conversation_get_cost(c, &cost, err));
    assert_true(fabs(cost.visual_tokens - (16 + 8 + 4) / 3.0) < 1e-9);
    renyi_conversation_restart(c);
    const answer_copy again = ask_question(c, "what is it", 5), then = ask_question(c, "why", 5);
    assert_same(&first, &again);
    assert_same(&second, &then);
    assert_int_equal(again.n_reused, first.n_prompt - 1);
    renyi_conversation_free(c);
}

/* The last row of a prompt is read again for its logits. If it belongs to the image, all of the
 * image is: one row is no image to choose from. */
static void test_cuts_image_last(void **state)
{
    const toy *t = *state;
    static const char *const policies[] = {"fastv layer=1 tokens=4", "fastv layer=1 tokens=1",
                                           "none"};
    const int32_t ids[] = {1, 9, RENYI_LVLM_IMAGE};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        renyi_conversation *c = begin_with(t, policies[i], 0);
        show_image(c, 1);
        const answer_copy first = ask_ids(c, ids, 3, 6), again = ask_ids(c, ids, 3, 6);
        assert_same(&first, &again);
        assert_int_equal(again.n_reused, i < 2 ? 2 : TOY_PATCHES + 1);
        renyi_conversation_free(c);
    }
}

static void test_cuts_policies(void **state)
{
    const toy *t = *state;
    const int32_t ids[] = {1, 9, RENYI_LVLM_IMAGE, 6, 7, 8};
    const answer_copy want = ask_fresh(t, "none", 1, ids, 6);
    const answer_copy all = ask_fresh(t, "fastv layer=2 keep=1", 1, ids, 6);
    const answer_copy few = ask_fresh(t, "fastv layer=1 tokens=1", 1, ids, 6);
    assert_same(&all, &want);
    assert_true(memcmp(few.ids, want.ids, sizeof few.ids[0] * few.n) != 0);
    renyi_conversation *c = begin_with(t, "dart layer=1 tokens=8 pivots=2 text_pivots=2", 0);
    assert_string_equal(renyi_conversation_policy(c),
                        "dart tokens=8 layer=1 pivots=2 text_pivots=2 positions=original");
    renyi_conversation_free(c);

    renyi_visual_session *vision;
    renyi_error e = {0};
    const renyi_visual_session_options visual = {.struct_size = sizeof visual, .policy = "fastv"};
    assert_int_equal(renyi_visual_session_new(&vision, renyi_lvlm_visual(t->m), &visual, &e),
                     RENYI_ERR_ARG);
    assert_says(&e, "fastv drops visual tokens between the layers of a language model, and none");
    const renyi_conversation_options o = {.struct_size = sizeof o, .policy = "fastv tokens=17"};
    assert_int_equal(renyi_conversation_new(&c, t->m, &o, &e), RENYI_ERR_ARG);
    assert_says(&e, "tokens=17: 16 visual tokens arrive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts_reuse),
        cmocka_unit_test(test_cuts_history),
        cmocka_unit_test(test_cuts_image_last),
        cmocka_unit_test(test_cuts_policies),
    };
    return cmocka_run_group_tests(tests, open_toy, close_toy);
}
