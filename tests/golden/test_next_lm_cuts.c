/* test_next_lm_cuts.c - rules inside the language model of a small LLaVA-NeXT, from image to
 * answer, against an independent reference (tests/llava_next/lm_cuts.safetensors, written by
 * tools/ref/next_lm_cuts.py): kept rows equal, scores within 1e-4, logits within 1e-3, greedy
 * tokens equal; newline rows are visual rows like any other.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/json.h"
#include "engine/llava/conversation.h"
#include "llava_next/next_fixture.h"

#include "fixtures/golden_taps.h"

enum { TOKENS = 12 };

typedef struct reference {
    ry_tensors *images, *want;
    json_t *policies, *numbers; /* of the policies by name; of the images */
    int32_t prompt[32];
    size_t n_prompt;
    double logits, scores; /* the largest differences; of a score relative to the largest one */
    uint32_t n_newlines;   /* newline rows that cuts dropped */
} reference;

static json_t *meta(const ry_tensors *set, const char *key)
{
    json_t *value;
    const char *text = ry_tensors_meta(set, key);
    assert_non_null(text);
    assert_ok(ry_json_parse(&value, text, strlen(text), key, NULL, err));
    return value;
}

static void open_reference(reference *r)
{
    *r = (reference){.images = next_expected()};
    assert_ok(ry_safetensors_open(&r->want, NEXT_FOLDER "lm_cuts.safetensors", NULL, NULL, err));
    r->policies = meta(r->want, "policies");
    r->numbers = meta(r->want, "images");
    const ry_tensor *prompt = ry_tensors_find(r->images, "prompt");
    r->n_prompt = prompt->shape[0];
    assert_true(r->n_prompt <= 32);
    memcpy(r->prompt, prompt->data, prompt->bytes);
    for (size_t i = 0; i < r->n_prompt; i++)
        if (r->prompt[i] == NEXT_VOCAB - 1) r->prompt[i] = RENYI_LVLM_IMAGE;
}

static void close_reference(reference *r)
{
    json_decref(r->policies);
    json_decref(r->numbers);
    ry_tensors_free(r->want);
    ry_tensors_free(r->images);
}

static void check_cut(reference *r, const next_case *c, const renyi_answer *a)
{
    const ry_tensor *kept = next_find(c, "kept0");
    char name[64];
    uint32_t left = 0;
    assert_int_equal(a->n_cuts, 1);
    const renyi_lm_cut *cut = &a->cuts[0];
    assert_int_equal(cut->n_in, a->n_visual);
    assert_int_equal(cut->n_kept, kept->shape[0]);
    assert_memory_equal(cut->kept, kept->data, kept->bytes);
    for (uint32_t i = 0; i < a->n_visual; i++) r->n_newlines += a->kept[i] == RENYI_NEWLINE;
    for (uint32_t i = 0; i < cut->n_kept; i++)
        left += cut->kept[i] != RENYI_NONE && a->kept[cut->kept[i]] == RENYI_NEWLINE;
    r->n_newlines -= left;
    snprintf(name, sizeof name, "%s.%u.score0", c->rules, c->image);
    const ry_tensor *score = ry_tensors_find(c->set, name);
    assert_int_equal(score != NULL, cut->scores != NULL);
    if (!score) return;
    assert_int_equal(score->shape[0], cut->n_in);
    r->scores = golden_worse(r->scores, golden_row_error(cut->scores, score->data, 1, cut->n_in));
}

static void check_policy(reference *r, const renyi_lvlm *m, const next_case *c, const char *policy,
                         uint32_t threads)
{
    static float logits[NEXT_VOCAB];
    const renyi_conversation_options how = {
        .struct_size = sizeof how, .policy = policy, .n_threads = threads};
    const renyi_answer_options o = {
        .struct_size = sizeof o, .max_new_tokens = TOKENS, .ignore_eos = 1, .logits = logits};
    const renyi_image image = next_picture(r->images, c->image);
    const float *want = next_find(c, "logits")->data;
    renyi_conversation *talk;
    renyi_answer a;
    assert_ok(renyi_conversation_new(&talk, m, &how, err));
    assert_ok(renyi_conversation_show(talk, &image, err));
    assert_ok(renyi_conversation_ask_ids(talk, r->prompt, r->n_prompt, &o, &a, err));
    for (size_t i = 0; i < NEXT_VOCAB; i++)
        r->logits = golden_worse(r->logits, fabs((double)logits[i] - (double)want[i]));
    assert_int_equal(a.n_ids, TOKENS);
    assert_memory_equal(a.ids, next_find(c, "tokens")->data, TOKENS * sizeof *a.ids);
    check_cut(r, c, &a);
    renyi_conversation_free(talk);
}

static void check_level(renyi_cpu level, uint32_t threads)
{
    const renyi_lvlm_options opt = {.struct_size = sizeof opt, .cpu = level};
    const char *folder = next_write(NEXT_HF, NULL, NULL), *name;
    reference r;
    renyi_lvlm *m;
    json_t *policy, *number;
    size_t i;
    open_reference(&r);
    assert_true(json_object_size(r.policies) >= 3 && json_array_size(r.numbers) >= 2);
    assert_ok(renyi_lvlm_open(&m, folder, &opt, err));
    json_array_foreach(r.numbers, i, number)
    {
        json_object_foreach(r.policies, name, policy)
        {
            const next_case c = {r.want, (uint32_t)json_integer_value(number), name};
            check_policy(&r, m, &c, json_string_value(policy), threads);
        }
    }
    print_message("%s: %zu policies on %zu images, scores within %.1e, logits within %.1e\n",
                  renyi_cpu_name(level), json_object_size(r.policies), i, r.scores, r.logits);
    assert_true(r.scores < 1e-4); /* of rows that the tower gives within 1e-5 */
    assert_true(r.logits < 1e-3);
    assert_true(r.n_newlines > 0);
    renyi_lvlm_free(m);
    close_reference(&r);
    next_remove(folder);
}

static void test_levels(void **state)
{
    (void)state;
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        check_level((renyi_cpu)level, 1 + (uint32_t)level % 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
