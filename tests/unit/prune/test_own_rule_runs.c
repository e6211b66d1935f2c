/* test_own_rule_runs.c - rules of the caller's own that do what a built-in rule does give the same
 * logits bit for bit: scores with every reduction, whole decisions that drop, fuse and merge.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/prune_model.h"

enum { LOGITS = PM_IMAGES * FIX_CLASSES, MAX_TOKENS = PM_PATCHES + 2 };

static void add_rule(renyi_model *m, renyi_rule rule)
{
    rule.struct_size = sizeof rule;
    assert_ok(renyi_model_add_rule(m, &rule, err));
}

static void same_logits(const renyi_model *m, const char *own, const char *built_in)
{
    float a[LOGITS], b[LOGITS];
    if (!pm_run(m, built_in, PM_IMAGES, 2, 0, b)) return; /* needs a class token */
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        assert_true(pm_run(m, own, threads == 2 ? 2 : PM_IMAGES, threads, threads == 4, a));
        pm_same(own, a, b);
    }
}

/* ---- scores --------------------------------------------------------------------------------- */

static int score_columns(void *user, const renyi_rule_view *v, float *score)
{
    (void)user;
    assert_null(v->class_row); /* not asked for */
    assert_null(v->tokens);
    memcpy(score, v->columns, v->n_tokens * sizeof *score);
    return 0;
}

static int score_class(void *user, const renyi_rule_view *v, float *score)
{
    (void)user;
    assert_null(v->columns);
    memcpy(score, v->class_row, v->n_tokens * sizeof *score);
    return 0;
}

static void test_scores(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "keep=0.7 layers=0,3,6 reduce=drop",
        "keep=0.7 layers=0,3,6 reduce=fuse",
        "keep=0.7 layers=0,3,6 reduce=merge",
        "keep=0.7,0.8,0.5 layers=0,3,6 reduce=drop,merge,fuse",
        "tokens=40 layers=4 fuse",
        "keep=0.7 layers=3,6,11 reduce=merge at=end",
        "keep=0.5 layers=3,6,9 reduce=drop order=position",
    };
    static const char *const models[] = {PM_VIT, PM_DISTILLED, PM_POOLED};
    char own[256], built_in[256];
    for (size_t a = 0; a < 3; a++) {
        renyi_model *m = pm_open(models[a], NULL, RENYI_CPU_AUTO);
        add_rule(m, (renyi_rule){.name = "columns",
                                 .needs = RENYI_NEED_COLUMNS,
                                 .order = 4,
                                 .score = score_columns});
        add_rule(m, (renyi_rule){
                        .name = "class_row", .needs = RENYI_NEED_CLASS_ROW, .score = score_class});
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            snprintf(own, sizeof own, "columns %s", keys[i]);
            snprintf(built_in, sizeof built_in, "evit metric=col n=4 %s", keys[i]);
            same_logits(m, own, built_in);
            snprintf(own, sizeof own, "class_row %s", keys[i]);
            snprintf(built_in, sizeof built_in, "evit metric=cls %s", keys[i]);
            same_logits(m, own, built_in);
        }
        same_logits(m, "columns n=inf layers=0,3 fuse weights=score",
                    "evit metric=col n=inf layers=0,3 fuse weights=score");
        same_logits(m, "columns p=8 layers=0-5", "naive metric=col p=8 layers=0-5 n=4");
        renyi_model_free(m);
    }
}

/* NaN is last, and ties go to the lower index. */
static int score_ties(void *user, const renyi_rule_view *v, float *score)
{
    (void)user;
    for (uint32_t j = v->n_prefix; j < v->n_tokens; j++) score[j] = j % 2 ? NAN : 1.0f;
    return 0;
}

static void test_ties(void **state)
{
    (void)state;
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    float logits[FIX_CLASSES];
    renyi_cut cut;
    add_rule(m, (renyi_rule){.name = "ties", .score = score_ties});
    renyi_session *s = pm_session(m, "ties tokens=70 layers=2", 1, 2, 1);
    assert_ok(renyi_run_pixels(s, pm_pixels(), 1, logits, err));
    assert_ok(renyi_session_cut(s, 0, 0, &cut, err));
    assert_int_equal(cut.n_out, 71);
    for (uint32_t r = 1; r < cut.n_out; r++) /* 60 even tokens of 2 .. 120, then the odd ones */
        assert_int_equal(cut.source[r], r <= 60 ? 2 * r : 2 * (r - 61) + 1);
    renyi_session_free(s);
    renyi_model_free(m);
}

/* ---- what a rule sees ------------------------------------------------------------------------ */

typedef struct seen {
    uint32_t calls[PM_IMAGES][PM_BLOCKS];
    int32_t position[PM_IMAGES][PM_BLOCKS][MAX_TOKENS];
} seen;

/* Scores that move tokens around: by the first value, and merged ones by their size. */
static int score_seen(void *user, const renyi_rule_view *v, float *score)
{
    seen *s = user;
    s->calls[v->image][v->block]++;
    assert_int_equal(v->grid, 11);
    assert_int_equal(v->dim % v->n_heads, 0);
    memcpy(s->position[v->image][v->block], v->position, v->n_tokens * sizeof *v->position);
    for (uint32_t j = 0; j < v->n_tokens; j++) {
        const float value = v->values[j * v->qkv_row], query = v->queries[j * v->qkv_row];
        score[j] = value + query + v->keys[j * v->qkv_row] + v->tokens[j * v->dim] +
                   (v->sizes ? v->sizes[j] : 1.0f);
    }
    return 0;
}

static void test_view(void **state)
{
    (void)state;
    static const char *const policies[] = {
        "seen keep=0.7 layers=0,3,6 reduce=drop", "seen keep=0.7 layers=0,3,6 reduce=merge",
        "seen keep=0.7 layers=0,3,6 fuse", "seen keep=1,0.5,0.9 layers=0,3,6 fuse at=end"};
    static seen s;
    float logits[LOGITS];
    renyi_model *m = pm_open(PM_DISTILLED, NULL, RENYI_CPU_AUTO);
    add_rule(m, (renyi_rule){
                    .name = "seen", .needs = RENYI_NEED_TOKENS, .score = score_seen, .user = &s});
    for (size_t i = 0; i < 4; i++) {
        renyi_session *session = pm_session(m, policies[i], PM_IMAGES, 2, 1);
        for (int run = 0; run < 2; run++) { /* the second begins with all patches again */
            memset(&s, 0, sizeof s);
            assert_ok(renyi_run_pixels(session, pm_pixels(), PM_IMAGES, logits, err));
        }
        assert_int_equal(renyi_session_cut_count(session), i == 3 ? 2 : 3);
        for (size_t c = 0; c < renyi_session_cut_count(session); c++)
            for (uint32_t image = 0; image < PM_IMAGES; image++) {
                renyi_cut cut;
                assert_ok(renyi_session_cut(session, image, c, &cut, err));
                assert_int_equal(s.calls[image][cut.block], 1);
                assert_memory_equal(s.position[image][cut.block], cut.position,
                                    cut.n_in * sizeof *cut.position);
            }
        renyi_session_free(session);
    }
    renyi_model_free(m);
}

/* ---- whole decisions ------------------------------------------------------------------------- */

/* The decisions of a built-in rule, which a rule of our own repeats. */
typedef struct replay {
    uint32_t n_cuts, block[4], n_in[4], n_out[4];
    uint32_t source[4][PM_IMAGES][MAX_TOKENS], target[4][PM_IMAGES][MAX_TOKENS];
    float size[4][PM_IMAGES][MAX_TOKENS];
    int only_keep; /* say nothing about targets */
} replay;

static int repeat(void *user, const renyi_rule_view *v, renyi_rule_choice *choice)
{
    const replay *r = user;
    uint32_t c = 0;
    while (r->block[c] != v->block) c++;
    assert_int_equal(v->n_tokens, r->n_in[c]);
    assert_int_equal(v->n_out, r->n_out[c]);
    memcpy(choice->keep, r->source[c][v->image] + v->n_prefix,
           (v->n_out - v->n_prefix) * sizeof *choice->keep);
    if (r->only_keep) return 0;
    for (uint32_t j = 0; j < v->n_tokens; j++) {
        const uint32_t row = choice->target[j] = r->target[c][v->image][j];
        if (row == RENYI_NONE) continue;
        if (r->source[c][v->image][row] == RENYI_NONE)
            choice->weight[j] = v->class_row[j]; /* EViT's fused token */
        else
            choice->weight[j] = (v->sizes ? v->sizes[j] : 1.0f) / r->size[c][v->image][row];
    }
    return 0;
}

static void record(replay *r, const renyi_model *m, const char *policy, float *logits)
{
    renyi_session *s = pm_session(m, policy, PM_IMAGES, 2, 1);
    assert_ok(renyi_run_pixels(s, pm_pixels(), PM_IMAGES, logits, err));
    r->n_cuts = (uint32_t)renyi_session_cut_count(s);
    for (uint32_t c = 0; c < r->n_cuts; c++)
        for (uint32_t i = 0; i < PM_IMAGES; i++) {
            renyi_cut cut;
            assert_ok(renyi_session_cut(s, i, c, &cut, err));
            r->block[c] = cut.block, r->n_in[c] = cut.n_in, r->n_out[c] = cut.n_out;
            memcpy(r->source[c][i], cut.source, cut.n_out * sizeof(uint32_t));
            memcpy(r->target[c][i], cut.target, cut.n_in * sizeof(uint32_t));
            memcpy(r->size[c][i], cut.size, cut.n_out * sizeof(float));
        }
    renyi_session_free(s);
}

static void test_decisions(void **state)
{
    (void)state;
    static const struct {
        const char *built_in, *own;
        int only_keep;
    } cases[] = {
        {"evit keep=0.7 layers=0,3,6 metric=col reduce=drop", "plain keep=0.7 layers=0,3,6", 1},
        {"evit keep=0.7 layers=0,3,6 metric=col reduce=drop", "plain keep=0.7 layers=0,3,6", 0},
        {"evit tokens=60,40 layers=2,7 metric=cls fuse", "plain tokens=61,41 layers=2,7", 0},
        {"evit keep=0.7 layers=0,3,6 metric=cls reduce=merge", "merging keep=0.7 layers=0,3,6", 0},
        {"naive p=9 layers=3,8 metric=col reduce=merge at=end", "merging p=9 layers=3,8 at=end", 0},
    };
    static replay r;
    renyi_model *m = pm_open(PM_DISTILLED, NULL, RENYI_CPU_AUTO);
    add_rule(
        m, (renyi_rule){.name = "plain", .needs = RENYI_NEED_CLASS_ROW, .cut = repeat, .user = &r});
    add_rule(m,
             (renyi_rule){.name = "merging", .needs = RENYI_NEED_SIZES, .cut = repeat, .user = &r});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float want[LOGITS], got[LOGITS];
        record(&r, m, cases[i].built_in, want);
        r.only_keep = cases[i].only_keep;
        for (uint32_t threads = 1; threads <= 4; threads *= 2) {
            assert_true(pm_run(m, cases[i].own, PM_IMAGES, threads, threads == 4, got));
            pm_same(cases[i].own, got, want);
        }
    }
    renyi_model_free(m);
}

/* Rows that continue a token, with weights that sum to something else than 1, and a fused row in
 * the middle. */
static int blend(void *user, const renyi_rule_view *v, renyi_rule_choice *choice)
{
    const uint32_t rows = v->n_out - v->n_prefix, middle = rows / 2;
    (void)user;
    for (uint32_t i = 0; i < rows; i++) choice->keep[i] = v->n_prefix + i;
    choice->keep[middle] = RENYI_NONE;
    for (uint32_t j = v->n_prefix; j < v->n_tokens; j++) {
        const uint32_t i = j - v->n_prefix;
        if (i == middle || i % 5 == 4)
            choice->target[j] = v->n_prefix + middle;
        else if (i >= rows)
            choice->target[j] = v->n_prefix + i % rows;
        if (i < rows && i != middle) choice->target[j] = v->n_prefix + i;
        choice->weight[j] = i % 2 ? 0.9f : 0.4f;
    }
    return 0;
}

/* The cut before attention's projection gives what the cut after it gives. */
static void test_any_weights(void **state)
{
    (void)state;
    float before[LOGITS], after[LOGITS];
    double worst = 0.0, top = 0.0;
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    add_rule(m, (renyi_rule){.name = "before", .cut = blend});
    add_rule(m, (renyi_rule){.name = "after", .needs = RENYI_NEED_TOKENS, .cut = blend});
    pm_run(m, "before keep=0.7 layers=0,3,6", PM_IMAGES, 2, 0, before);
    pm_run(m, "after keep=0.7 layers=0,3,6", PM_IMAGES, 2, 0, after);
    for (size_t i = 0; i < LOGITS; i++) {
        worst = fmax(worst, fabs((double)before[i] - (double)after[i]));
        top = fmax(top, fabs((double)after[i]));
    }
    if (!(worst < 5e-5 * top)) fail_msg("%g of the largest logit", worst / top);
    renyi_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),      cmocka_unit_test(test_ties),
        cmocka_unit_test(test_view),        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_any_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
