/* test_golden_prune.c - tests naive and EViT pruning with every metric, cut by cut, against a
 * float32 reference on real images: the scores, our choice and the reference's, and the logits that
 * follow from the reference's choice.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "fixtures/golden_prune.h"
#include "model/vit/token_cut.h"

#ifdef RENYI_SANITIZED
enum { IMAGES = 1 }; /* ten times slower */
#else
enum { IMAGES = GOLDEN_IMAGES };
#endif
enum { MAX_TOKENS = 197, POLICIES = 24 };

/* Scores of equal tokens agree to 4e-6 (test_golden_dense.c). Here tokens pass through all the
 * blocks before, and a small score late in the network carries the rounding of all of them: the
 * float32 reference itself is up to 3e-4 from the same run in float64. */
#define SCORE_FIRST 1e-5  /* relative, in block 0; choices may differ within this margin */
#define SCORE_LATER 5e-4  /* in any block */
#define MARGIN_LATER 1e-4 /* of the reference, after block 0 */
#define LOGITS 2e-4       /* of the largest */

/* ---- from the reference's parameters to our text -------------------------------------------- */

static const char *text_value(json_t *policy, const char *key)
{
    return json_string_value(json_object_get(policy, key));
}

static int has_value(json_t *policy, const char *key, const char *value)
{
    return strcmp(text_value(policy, key), value) == 0;
}

static const char *yes_no(json_t *policy, const char *key)
{
    return json_is_true(json_object_get(policy, key)) ? "yes" : "no";
}

/* Keys of a metric that reads columns. */
static int print_columns(char *out, size_t size, json_t *p)
{
    json_t *n = json_object_get(p, "n");
    char order[16] = "inf";
    if (json_is_number(n)) snprintf(order, sizeof order, "%g", json_number_value(n));
    return snprintf(out, size, " n=%s heads=%s class_row=%s diagonal=%s", order,
                    has_value(p, "heads", "mean_then_norm") ? "mean" : "each", yes_no(p, "cls_row"),
                    yes_no(p, "diag"));
}

static void policy_text(char *out, size_t size, json_t *p)
{
    const int naive = has_value(p, "kind", "naive"),
              fuse = json_is_true(json_object_get(p, "fuse"));
    size_t i;
    json_t *layer;
    size_t at =
        (size_t)snprintf(out, size, "%s %s=%g layers=", text_value(p, "kind"), naive ? "p" : "keep",
                         json_number_value(json_object_get(p, naive ? "p" : "keep")));
    json_array_foreach(json_object_get(p, "layers"), i, layer) at +=
        (size_t)snprintf(out + at, size - at, "%s%d", i ? "," : "", (int)json_integer_value(layer));
    at += (size_t)snprintf(out + at, size - at, " at=%s reduce=%s metric=%s",
                           text_value(p, "placement"), fuse ? "fuse" : "drop",
                           text_value(p, "metric"));
    if (fuse)
        at += (size_t)snprintf(out + at, size - at, " weights=%s", text_value(p, "fuse_weights"));
    if (!has_value(p, "metric", "cls")) at += (size_t)print_columns(out + at, size - at, p);
    if (has_value(p, "metric", "correct"))
        snprintf(out + at, size - at, " c=%g rounding=%s",
                 json_number_value(json_object_get(p, "c")),
                 has_value(p, "rounding", "trunc_col") ? "code" : "paper");
}

/* ---- judging -------------------------------------------------------------------------------- */

/* Results of the cuts of one image. Each image has its own, so threads never share one. */
typedef struct tally {
    uint32_t cuts, same_set, same_order;
    uint32_t scores, near;   /* all, and those within SCORE_FIRST */
    double score_0, score;   /* worst error relative to each score, in block 0 and anywhere */
    double margin_0, margin; /* largest margin of the reference that we crossed */
} tally;

typedef struct judge {
    const golden *g;
    const char *name;
    ry_policy policy;
    tally image[GOLDEN_IMAGES];
} judge;

static void raise_to(double *worst, double value)
{
    if (!(value <= *worst)) *worst = value; /* NaN too */
}

static void compare_scores(tally *t, uint32_t block, const float *got, const float *want,
                           uint32_t n)
{
    t->scores += n;
    for (uint32_t j = 0; j < n; j++) {
        const double e = fabs((double)got[j] / (double)want[j] - 1.0);
        t->near += e < SCORE_FIRST;
        raise_to(&t->score, e);
        if (block == 0) raise_to(&t->score_0, e);
    }
}

/* How far the reference was from choosing as we did: two choices of the best by `score` among the
 * n tokens that are not `barred`; 0 = the same. Relative to the scores where the cut fell. */
static double choice_gap(const float *score, const uint8_t *ours, const uint8_t *theirs,
                         const uint8_t *barred, uint32_t n)
{
    double last = INFINITY, next = -INFINITY, gap = 0.0;
    for (uint32_t j = 0; j < n; j++) {
        if (theirs[j])
            last = fmin(last, (double)score[j]);
        else if (!barred[j])
            next = fmax(next, (double)score[j]);
    }
    for (uint32_t j = 0; j < n; j++) {
        if (ours[j] && !theirs[j]) gap = fmax(gap, (last - (double)score[j]) / fabs(last));
        if (theirs[j] && !ours[j]) gap = fmax(gap, ((double)score[j] - next) / fabs(next));
    }
    return gap;
}

/* rows [from, to) of the two choices, as marks */
static void mark(uint8_t *ours, uint8_t *theirs, const uint32_t *source, const int32_t *kept,
                 uint32_t prefix, uint32_t from, uint32_t to)
{
    memset(ours, 0, MAX_TOKENS);
    memset(theirs, 0, MAX_TOKENS);
    for (uint32_t i = from; i < to; i++) {
        ours[source[prefix + i] - prefix] = 1;
        theirs[kept[i]] = 1;
    }
}

/* The margin of the reference that our choice crossed. For Algorithm 2, the tokens chosen by class
 * attention are compared first; if they differ, the rest cannot be compared. The reference's class
 * row is not in the file, so ours is used. */
static double crossed_margin(const ry_block_view *v, const ry_cut *cut, const float *score,
                             const int32_t *kept, uint32_t n_kept, uint32_t by_class)
{
    static const uint8_t none[MAX_TOKENS];
    uint8_t ours[MAX_TOKENS], theirs[MAX_TOKENS], by_class_row[MAX_TOKENS];
    const uint32_t prefix = v->n_prefix, n = v->n_tokens - prefix;
    mark(ours, by_class_row, cut->source, kept, prefix, 0, by_class);
    if (memcmp(ours, by_class_row, n) != 0)
        return choice_gap(v->class_row + prefix, ours, by_class_row, none, n);
    mark(ours, theirs, cut->source, kept, prefix, by_class, n_kept);
    return choice_gap(score, ours, theirs, by_class_row, n);
}

static void compare_choice(const judge *g, tally *t, const ry_block_view *v, const ry_cut *cut,
                           const float *score, const int32_t *kept, uint32_t n_kept)
{
    const uint32_t prefix = v->n_prefix;
    uint8_t ours[MAX_TOKENS], theirs[MAX_TOKENS];
    uint32_t by_class = 0, by_column, same_order = 1;
    if (g->policy.metric == RY_METRIC_CORRECT)
        ry_policy_split(&g->policy, n_kept, &by_class, &by_column);
    for (uint32_t i = 0; i < n_kept; i++)
        if (cut->source[prefix + i] != prefix + (uint32_t)kept[i]) same_order = 0;
    mark(ours, theirs, cut->source, kept, prefix, 0, n_kept);
    t->cuts++;
    t->same_order += same_order;
    if (memcmp(ours, theirs, sizeof ours) == 0)
        t->same_set++;
    else
        raise_to(v->block == 0 ? &t->margin_0 : &t->margin,
                 crossed_margin(v, cut, score, kept, n_kept, by_class));
}

/* Replaces our choice by the reference's. */
static void replay(const ry_block_view *v, ry_cut *cut, const int32_t *kept, uint32_t n_kept)
{
    const uint32_t prefix = v->n_prefix;
    const int fuse = cut->n_out > prefix + n_kept;
    for (uint32_t j = prefix; j < v->n_tokens; j++) {
        cut->target[j] = fuse ? cut->n_out - 1 : RY_NO_TOKEN;
        cut->weight[j] = fuse ? v->class_row[j] : 0.0f;
    }
    for (uint32_t i = 0; i < n_kept; i++) {
        const uint32_t j = prefix + (uint32_t)kept[i];
        cut->source[prefix + i] = j;
        cut->target[j] = prefix + i;
        cut->weight[j] = 1.0f;
    }
}

static void judge_cut(void *user, const ry_block_view *v, ry_cut *cut)
{
    judge *g = user;
    tally *t = &g->image[v->image];
    const uint32_t n = v->n_tokens - v->n_prefix;
    const ry_tensor *all = golden_find(g->g, g->name, "kept", (int)v->block);
    const uint32_t n_kept = (uint32_t)all->shape[1];
    const int32_t *kept = golden_tap(g->g, g->name, "kept", (int)v->block, v->image, n_kept);
    const float *score = golden_tap(g->g, g->name, "score", (int)v->block, v->image, n);
    compare_scores(t, v->block, cut->score + v->n_prefix, score, n);
    compare_choice(g, t, v, cut, score, kept, n_kept);
    replay(v, cut, kept, n_kept);
}

/* ---- runs ----------------------------------------------------------------------------------- */

static void add_tally(tally *sum, const tally *t)
{
    sum->cuts += t->cuts;
    sum->same_set += t->same_set;
    sum->same_order += t->same_order;
    sum->scores += t->scores;
    sum->near += t->near;
    raise_to(&sum->score_0, t->score_0);
    raise_to(&sum->score, t->score);
    raise_to(&sum->margin_0, t->margin_0);
    raise_to(&sum->margin, t->margin);
}

static void print_tally(const char *what, const tally *t, double logits)
{
    printf("%-36s choices %u of %u the same (%u in order), scores within %.1e (block 0: %.1e; "
           "%.1f %% within 1e-5), logits within %.1e\n",
           what, t->same_set, t->cuts, t->same_order, t->score, t->score_0,
           100.0 * t->near / t->scores, logits);
    if (t->same_set < t->cuts)
        printf("%-36s margin of the reference where we chose otherwise: %.1e in block 0, %.1e "
               "later\n",
               "", t->margin_0, t->margin);
}

/* The plan has the token counts of the reference's blocks. */
static void check_tokens(const judge *j, const ry_token_hook *hook)
{
    const ry_vit *vit = &j->g->model->vit;
    ry_block_rows rows[12];
    const ry_rows_options opt = {hook, 0, RENYI_OUTPUT_AUTO};
    const int32_t *want = golden_find(j->g, j->name, "tokens", -1)->data;
    assert_int_equal(vit->config.n_blocks, 12);
    ry_vit_rows(rows, &vit->config, vit->n_patches, &opt);
    for (size_t i = 0; i < 12; i++) assert_int_equal(rows[i].in, want[i]);
}

static void run_policy(const golden *g, const char *name, json_t *params, uint32_t images,
                       tally *sum, double *worst)
{
    static float logits[GOLDEN_IMAGES * GOLDEN_CLASSES];
    char text[256];
    renyi_error err = {0};
    tally all = {0};
    judge j = {.g = g, .name = name};
    policy_text(text, sizeof text, params);
    if (ry_policy_parse(&j.policy, text, &err)) fail_msg("%s: %s", text, err.message);
    ry_pruner *pruner = golden_pruner(g, text, images);
    golden_replay r = {.inner = ry_pruner_hook(pruner), .judge = judge_cut, .user = &j};
    const ry_token_hook hook = golden_hook(&r);
    check_tokens(&j, &hook);
    golden_run(g, &hook, images, images, 2, logits);
    for (uint32_t i = 0; i < images; i++) add_tally(&all, &j.image[i]);
    const double e = golden_error(logits, golden_find(g, name, "logits", -1)->data,
                                  (size_t)images * GOLDEN_CLASSES);
    print_tally(name, &all, e);
    assert_true(all.cuts == images * j.policy.n_cuts);
    assert_true(all.score_0 < SCORE_FIRST && all.score < SCORE_LATER);
    assert_true(all.margin_0 < SCORE_FIRST && all.margin < MARGIN_LATER);
    assert_true(e < LOGITS);
    add_tally(sum, &all);
    raise_to(worst, e);
    ry_pruner_free(pruner, NULL);
}

/* Whether the name contains one of the parts; always with NULL. */
static int wanted(const char *name, const char *const *parts)
{
    if (!parts) return 1;
    for (; *parts; parts++)
        if (strstr(name, *parts)) return 1;
    return 0;
}

static uint32_t run_model(const golden_model *m, renyi_cpu level, uint32_t images,
                          const char *const *parts)
{
    golden g;
    renyi_error err = {0};
    tally sum = {0};
    double logits = 0.0;
    uint32_t count = 0;
    const char *name;
    json_t *policies, *params;
    if (!golden_open(&g, m, NULL, level)) return 0;
    const char *meta = ry_tensors_meta(g.taps, "policies");
    if (ry_json_parse(&policies, meta, strlen(meta), "policies", NULL, &err))
        fail_msg("%s", err.message);
    json_object_foreach(policies, name, params)
    {
        if (has_value(params, "kind", "none") || !wanted(name, parts)) continue;
        run_policy(&g, name, params, images, &sum, &logits);
        count++;
    }
    char title[64];
    snprintf(title, sizeof title, "== %s %s, %u policies", m->name, renyi_cpu_name(level), count);
    print_tally(title, &sum, logits);
    assert_true((double)sum.same_set >= 0.995 * sum.cuts);
    assert_true((double)sum.near >= 0.95 * sum.scores);
    json_decref(policies);
    golden_close(&g);
    return count;
}

static void test_vectors(void **state)
{
    (void)state;
    for (size_t m = 0; m < 2; m++)
        for (int level = RENYI_CPU_AVX2; level <= (int)renyi_cpu_detect(); level++) {
            const uint32_t count = run_model(&golden_models[m], (renyi_cpu)level, IMAGES, NULL);
            assert_true(count == POLICIES || *shared_missing());
        }
}

/* Plain C is slow: one image, and policies that need different things of attention. */
static void test_scalar(void **state)
{
    (void)state;
#ifndef RENYI_SANITIZED
    static const char *const parts[] = {"col2.5",  "colinf", "perhead", "renyi2",   "shannon",
                                        "p16-end", "nofuse", "c0.4",    "floorcls", NULL};
    for (size_t m = 0; m < 2; m++) run_model(&golden_models[m], RENYI_CPU_SCALAR, 1, parts);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_scalar)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
