/* fuzz_specs.c - policies, sweep grids, and questions and answers of benchmarks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "eval/sweep/grid.h"
#include "eval/vqa/manifest_fields.h"
#include "eval/vqa/vqa_questions.h"
#include "fuzz_targets.h"
#include "prune/policy/cascade.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- policy ---------------------------------------------------------------------------------- */

/* Two rules of the caller's own, "mine" and "whole", which policies may name. */
static int score_none(void *user, const renyi_rule_view *view, float *score)
{
    (void)user;
    (void)view;
    (void)score;
    return 1;
}

static int cut_none(void *user, const renyi_rule_view *view, renyi_rule_choice *choice)
{
    (void)user;
    (void)view;
    (void)choice;
    return 1;
}

static const ry_own_rule whole = {.rule = {.name = "whole", .order = 2, .cut = cut_none},
                                  .name = "whole"};
static const ry_own_rule mine = {
    .rule = {.name = "mine", .needs = RENYI_NEED_COLUMNS, .order = 2, .score = score_none},
    .next = &whole,
    .name = "mine"};
static const ry_own_rules own = {&mine, NULL, 2};

/* Any bytes as a policy: refused with a message, or printed as a text that reads
 * back as the same policy, before and after a model has had its say. */
static void check_round_trip(const ry_cascade *c)
{
    char text[RY_MAX_POLICY_TEXT];
    renyi_error err;
    ry_cascade again;

    ry_cascade_print(text, c);
    if (ry_cascade_parse(&again, text, &own, &err)) abort();
    if (memcmp(c, &again, sizeof again)) abort();
}

/* Rows that a rule for visual tokens keeps, of which there are never more than patches. */
static void check_visual_counts(const ry_policy *p, uint32_t patches)
{
    const uint32_t n = ry_policy_visual_count(p, patches);
    if (n > patches || (!n && p->budget != RY_BUDGET_ADAPTIVE)) abort();
    const uint32_t grid = ry_policy_smaller_grid(p, patches);
    if ((uint64_t)grid * grid > n || (n && !grid)) abort();
}

/* Each cut keeps some of what arrives. */
static void check_lm_counts(const ry_policy *p, uint32_t n)
{
    uint32_t arrive = n;
    for (uint32_t i = 0; i < p->n_cuts; i++) {
        const uint32_t after = ry_policy_lm_count(p, i, n);
        if (!after || after > arrive) abort();
        arrive = after;
    }
}

static void check_counts(const ry_policy *p, const ry_policy_shape *shape)
{
    if (ry_policy_is_lm(p)) {
        check_lm_counts(p, shape->n_patches);
        return;
    }
    if (ry_policy_is_visual(p)) check_visual_counts(p, shape->n_patches);
    uint32_t n = shape->n_prefix + shape->n_patches, by_class, by_column;
    for (uint32_t i = 0; i < p->n_cuts; i++) {
        const uint32_t after = ry_policy_tokens_after(p, i, n, shape->n_prefix);
        if (after > n || after <= shape->n_prefix) abort();
        ry_policy_split(p, after, &by_class, &by_column);
        if (by_class + by_column != after || by_class > after) abort();
        n = after;
    }
}

int fuzz_policy(const uint8_t *data, size_t size)
{
    static const ry_policy_shape shapes[] = {{12, 196, 1, 14},
                                             {24, 576, 0, 24},
                                             {2, 4, 2, 2},
                                             {23, 576, 1, 24, 1},
                                             {2, 9, 1, 3, 1},
                                             {.n_blocks = 23,
                                              .n_patches = 576,
                                              .n_prefix = 1,
                                              .grid = 24,
                                              .visual = 1,
                                              .lm_layers = 32}};
    char *text = malloc(size + 1); /* exact size: the sanitizer sees overreads */
    renyi_error err = {0};
    ry_cascade c;

    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (ry_cascade_parse(&c, text, &own, &err)) {
        if (!err.message[0] || err.offset < 0 || (size_t)err.offset > size) abort();
        free(text);
        return 0;
    }
    free(text);
    check_round_trip(&c);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        ry_cascade checked = c;
        if (ry_cascade_check(&checked, &shapes[s], &err)) continue;
        check_round_trip(&checked);
        check_counts(&checked.first, &shapes[s]);
        if (checked.is_cascade) check_counts(&checked.second, &shapes[s]);
    }
    return 0;
}

/* ---- grid ------------------------------------------------------------------------------------ */

/* Any bytes as the spec of a sweep: refused with a message, or policies that read
 * back as themselves, none twice. */
static void check_grid(const renyi_grid *g)
{
    char full[RENYI_POLICY_MAX];
    if (!g->n_models || !g->n_sizes || !g->n_policies) abort();
    for (uint32_t i = 0; i < g->n_policies; i++) {
        if (renyi_policy_check(g->policies[i], NULL, full, sizeof full, NULL)) abort();
        if (strcmp(full, g->policies[i])) abort();
        for (uint32_t j = i > 100 ? i - 100 : 0; j < i; j++)
            if (strcmp(g->policies[j], g->policies[i]) == 0) abort();
    }
}

int fuzz_grid(const uint8_t *data, size_t size)
{
    static const char *const models[] = {"m"};
    const renyi_grid_options o = {.struct_size = sizeof o, .n_models = size % 2, .models = models};
    renyi_error err = {0};
    renyi_grid *g = ry_calloc(NULL, 1, sizeof *g);
    unsigned char *bytes = malloc(size ? size : 1); /* exact size: the sanitizer sees overreads */
    if (!g || !bytes) abort();
    if (size) memcpy(bytes, data, size);
    g->pool.al = &g->al;
    if (ry_grid_read(g, &o, "spec", bytes, size, &err)) {
        if (!err.message[0]) abort();
    } else
        check_grid(g);
    free(bytes);
    renyi_grid_free(g);
    return 0;
}

/* ---- vqa ------------------------------------------------------------------------------------- */

/* Any bytes as questions, annotations or answers of a benchmark: the first byte
 * selects the benchmark, the second which of the three. Refused with a message, or every question
 * is complete and every answer has a score from 0 to 1. */
static const char one_question[] =
    "{\"question_id\": 1, \"image\": \"a\", \"text\": \"q\", \"answers\": "
    "[\"x\", \"no\"]}\n";

static renyi_status read_questions(renyi_vqa *v, const char *bytes, size_t n, renyi_error *e)
{
    if (ry_vqa_is_mmbench(v->info.task)) return ry_vqa_read_mmbench(v, "q.tsv", bytes, n, e);
    if (v->info.task == RENYI_VQA_OCRBENCH) return ry_vqa_read_ocrbench(v, "q.json", bytes, n, e);
    if (v->info.task == RENYI_VQA_SEED) return ry_vqa_read_seed(v, "q.json", bytes, n, e);
    if (v->info.task == RENYI_VQA_SQA) return ry_vqa_read_sqa(v, "q.json", bytes, n, e);
    return ry_vqa_read_lines(v, "q.jsonl", NULL, bytes, n, e);
}

static renyi_status read_truth(renyi_vqa *v, const char *bytes, size_t n, renyi_error *e)
{
    ry_vqa_join_table j = {0};
    if (v->info.task == RENYI_VQA_MME) {
        const char *said = ry_vqa_mme_answer(bytes, n, "q");
        if (said && strcmp(said, "yes") != 0 && strcmp(said, "no") != 0) abort();
        return RENYI_OK;
    }
    renyi_status st = ry_vqa_join_open(&j, v, e);
    if (!st && v->info.task == RENYI_VQA_POPE)
        st = ry_vqa_read_truth_pope(&j, "t.json", "", bytes, n, e);
    else if (!st)
        st = ry_vqa_read_truth_json(&j, "t.json", bytes, n, e);
    ry_vqa_join_close(&j);
    return st;
}

static renyi_status read_answers(renyi_vqa *v, const char *bytes, size_t n, renyi_error *e)
{
    renyi_vqa_answers *a;
    renyi_vqa_score s;
    size_t whole;
    if (ry_vqa_index_questions(v, e) || ry_vqa_answers_new(&a, v, e)) abort();
    const renyi_status st = ry_vqa_answers_read(a, "a.jsonl", bytes, n, &whole, e);
    for (size_t i = 0; !st && i < v->count; i++)
        if (!isnan(a->items[i].worth) && !(a->items[i].worth >= 0 && a->items[i].worth <= 1))
            abort();
    if (!st) renyi_vqa_get_score(a, &s);
    renyi_vqa_answers_free(a);
    return st;
}

static void check_questions(const renyi_vqa *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const ry_vqa_question *q = &v->questions[i];
        if (!q->id || !q->text || !q->prompt || (q->n_right && !q->right)) abort();
        if (q->category != RY_VQA_NONE && q->category >= v->n_categories) abort();
    }
}

int fuzz_vqa(const uint8_t *data, size_t size)
{
    renyi_error err = {0};
    if (size < 2) return 0;
    renyi_vqa *v = ry_calloc(NULL, 1, sizeof *v);
    char *bytes = malloc(size); /* exact size: the sanitizer sees overreads */
    if (!v || !bytes) abort();
    memcpy(bytes, data + 2, size - 2);
    v->pool.al = &v->al;
    v->max_questions = 1000;
    v->max_file_bytes = 1 << 20;
    v->info.task = (renyi_vqa_task)(data[0] % RENYI_VQA_TASKS);
    renyi_status st = RENYI_OK;
    if (data[1] % 3 &&
        ry_vqa_read_lines(v, "q.jsonl", NULL, one_question, sizeof one_question - 1, &err))
        abort();
    if (data[1] % 3 == 0)
        st = read_questions(v, bytes, size - 2, &err);
    else if (data[1] % 3 == 1)
        st = read_truth(v, bytes, size - 2, &err);
    else
        st = read_answers(v, bytes, size - 2, &err);
    if (st && !err.message[0]) abort();
    if (!st) check_questions(v);
    free(bytes);
    renyi_vqa_free(v);
    return 0;
}

/* ---- manifest -------------------------------------------------------------------------------- */

/* Any bytes as a result manifest: refused with a message, or complete, and equal to itself. */
int fuzz_manifest(const uint8_t *data, size_t size)
{
    renyi_error err = {0};
    renyi_manifest *m;
    renyi_manifest_info i;
    renyi_vqa_pair pair;
    char *bytes = malloc(size + 1); /* exact size: the sanitizer sees overreads */
    if (!bytes) abort();
    memcpy(bytes, data, size);
    if (ry_manifest_parse(&m, "m.json", bytes, size, NULL, &err)) {
        if (m || !err.message[0]) abort();
    } else {
        renyi_manifest_get_info(m, &i);
        if (!i.version || !i.model || !i.task || !i.policy) abort();
        for (size_t k = 0; k < i.n_samples; k++)
            if (!i.samples[k].id || i.samples[k].worth > 1) abort();
        if (renyi_manifest_compare(m, m, &pair, &err) || pair.n > i.n_samples || pair.better_a ||
            pair.better_b)
            abort();
        renyi_manifest_free(m);
    }
    free(bytes);
    return 0;
}
