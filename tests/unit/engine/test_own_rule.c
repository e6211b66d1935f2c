/* test_own_rule.c - rules of the caller's own: which are refused, their policy texts, wrong answers
 * and failures in a run, memory, and where else their names work.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* posix_memalign */
#include "fixtures/prune_model.h"
#include "fixtures/test_heap.h"
#include "renyi/sweep.h"
#include "renyi/train.h"
#include "renyi/viz.h"

static renyi_model *model;

static int score_columns(void *user, const renyi_rule_view *v, float *score)
{
    (void)user;
    memcpy(score, v->columns, v->n_tokens * sizeof *score);
    return 0;
}

static int score_zero(void *user, const renyi_rule_view *v, float *score)
{
    (void)user;
    (void)v;
    (void)score;
    return 0;
}

static int keep_first(void *user, const renyi_rule_view *v, renyi_rule_choice *choice)
{
    (void)user;
    for (uint32_t i = 0; i < v->n_out - v->n_prefix; i++) choice->keep[i] = v->n_prefix + i;
    return 0;
}

static void add_rule(renyi_model *m, renyi_rule rule)
{
    rule.struct_size = sizeof rule;
    assert_ok(renyi_model_add_rule(m, &rule, err));
}

static int setup(void **state)
{
    (void)state;
    model = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    add_rule(model,
             (renyi_rule){.name = "mine", .needs = RENYI_NEED_COLUMNS, .score = score_columns});
    add_rule(model, (renyi_rule){.name = "plain", .score = score_zero});
    add_rule(model, (renyi_rule){.name = "first", .cut = keep_first});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    renyi_model_free(model);
    return 0;
}

/* ---- adding --------------------------------------------------------------------------------- */

static void refuse(renyi_rule rule, renyi_status code, const char *says)
{
    renyi_error err = {0};
    if (!rule.struct_size) rule.struct_size = sizeof rule;
    assert_int_equal(renyi_model_add_rule(model, &rule, &err), code);
    assert_says(&err, says);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "Mine",
                                        "1st",
                                        "_x",
                                        "a b",
                                        "a=b",
                                        "a|b",
                                        "caf\xc3\xa9",
                                        "a-b",
                                        "paper:mine",
                                        "a2345678901234567890123456789012345"};
    const renyi_rule good = {.name = "good", .score = score_zero};
    renyi_rule r = good;
    renyi_error err = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        r.name = names[i];
        refuse(r, RENYI_ERR_ARG, "a name has 1 to 32 letters a-z, digits and _");
    }
    r.name = NULL;
    refuse(r, RENYI_ERR_ARG, "a name has");
    r.name = "evit";
    refuse(r, RENYI_ERR_ARG, "'evit' is a rule of the library; choose another");
    r.name = "col";
    refuse(r, RENYI_ERR_ARG, "'col' is a metric");
    r.name = "fast";
    refuse(r, RENYI_ERR_ARG, "'fast' is a preset");
    r.name = "mine";
    refuse(r, RENYI_ERR_ARG, "'mine' is a rule that was added before");
    r = good;
    r.cut = keep_first;
    refuse(r, RENYI_ERR_ARG, "rule 'good' has both score and cut; set one");
    r.score = NULL, r.cut = NULL;
    refuse(r, RENYI_ERR_ARG, "rule 'good' has neither score nor cut");
    r = good;
    r.needs = 64;
    refuse(r, RENYI_ERR_ARG, "needs 0x40 is not made of RENYI_NEED_*");
    r.needs = RENYI_NEED_SIZES;
    refuse(r, RENYI_ERR_ARG, "RENYI_NEED_SIZES is for rules with cut");
    static const double orders[] = {0.5, -1, NAN, -INFINITY, 1e300};
    for (size_t i = 0; i < 5; i++) {
        r = good;
        r.order = orders[i];
        refuse(r, RENYI_ERR_ARG, "rule 'good': order");
    }
    r = good;
    r.struct_size = sizeof r + 8;
    refuse(r, RENYI_ERR_ARG, "struct_size");
    assert_int_equal(renyi_model_add_rule(NULL, &good, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_model_add_rule(model, NULL, NULL), RENYI_ERR_ARG);
}

static void test_many(void **state)
{
    (void)state;
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    char name[33], policy[64];
    renyi_error err = {0};
    renyi_rule r = {.struct_size = sizeof r, .name = name, .score = score_zero};
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "r%031d", i); /* 32 bytes, and one memory for all names */
        assert_ok(renyi_model_add_rule(m, &r, err));
    }
    snprintf(name, sizeof name, "extra");
    assert_int_equal(renyi_model_add_rule(m, &r, &err), RENYI_ERR_LIMIT);
    assert_says(&err, "at most 64 rules");
    for (int i = 0; i < 64; i++) {
        snprintf(policy, sizeof policy, "r%031d", i);
        assert_ok(renyi_policy_check(policy, m, NULL, 0, err));
    }
    assert_int_equal(renyi_policy_check("none_of_them", m, NULL, 0, &err), RENYI_ERR_ARG);
    assert_says(&err, "unknown rule 'none_of_them'");
    renyi_model_free(m);
}

/* ---- policies ------------------------------------------------------------------------------- */

static void test_policies(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"mine", "mine keep=0.7 layers=3,6,9 n=2 reduce=drop at=mid order=score"},
        {"plain", "plain keep=0.7 layers=3,6,9 reduce=drop at=mid order=score"},
        {"first", "first keep=0.7 layers=3,6,9 at=mid"},
        {"mine n=inf tokens=9 layers=all fuse",
         "mine tokens=9 layers=0-11 n=inf reduce=fuse weights=cls at=mid order=score"},
        {"plain p=3,4 layers=(2, 5) reduce=fuse,merge at=end order=position weights=score",
         "plain p=3,4 layers=2,5 reduce=fuse,merge weights=score at=end order=position"},
        {"first p=3 layers=0-2 at=end", "first p=3 layers=0-2 at=end"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char full[RENYI_POLICY_MAX], again[RENYI_POLICY_MAX];
        assert_ok(renyi_policy_check(rows[i][0], model, full, sizeof full, err));
        assert_string_equal(full, rows[i][1]);
        assert_ok(renyi_policy_check(full, model, again, sizeof again, err));
        assert_string_equal(again, full);
    }
    static const struct {
        const char *text, *says;
        int offset;
    } bad[] = {
        {"mine metric=col", "mine takes no metric; it takes keep, p, tokens, layers, n, reduce", 5},
        {"first fuse", "unknown word 'fuse'; first takes keep, p, tokens, layers, n, at", 6},
        {"mine kep=0.7", "(did you mean keep?); mine takes", 5},
        {"plain n=3", "n is the order of the columns, and plain does not need them", 6},
        {"mine weights=cls", "say fuse", 5},
        {"mine n=0.5", "at least 1", 7},
        {"min", "unknown rule 'min' (did you mean mine?); rules are none, naive", 0},
        {"zzz", "downsample, first, plain, mine, or a preset", 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        renyi_error err = {0};
        assert_int_equal(renyi_policy_check(bad[i].text, model, NULL, 0, &err), RENYI_ERR_ARG);
        assert_says(&err, bad[i].says);
        assert_int_equal(err.offset, bad[i].offset);
    }
}

static void test_needs_a_model(void **state)
{
    (void)state;
    renyi_error err = {0};
    renyi_cost cost;
    const char *says = "rules of your own need the model that they were added to";
    assert_int_equal(renyi_policy_check("mine", NULL, NULL, 0, &err), RENYI_ERR_ARG);
    assert_says(&err, says);
    assert_int_equal(renyi_policy_cost(NULL, "vit_tiny_patch16_224", "mine", &cost, NULL, 0, &err),
                     RENYI_ERR_ARG);
    assert_says(&err, says);
    renyi_learner *l; /* training makes its own network */
    const char *path = pm_write(PM_VIT, "own.safetensors");
    const renyi_learner_options o = {.struct_size = sizeof o, .policy = "mine"};
    assert_int_equal(renyi_learner_new(&l, path, &o, &err), RENYI_ERR_ARG);
    assert_says(&err, says);
    unlink(path);
    renyi_model *pooled = pm_open(PM_POOLED, NULL, RENYI_CPU_AUTO);
    add_rule(pooled,
             (renyi_rule){.name = "mine", .needs = RENYI_NEED_CLASS_ROW, .score = score_zero});
    assert_int_equal(renyi_policy_check("mine", pooled, NULL, 0, &err), RENYI_ERR_ARG);
    assert_says(&err, "the rule mine looks at the class token, and this model has none");
    add_rule(pooled, (renyi_rule){.name = "plain", .score = score_zero});
    assert_int_equal(renyi_policy_check("plain fuse weights=cls", pooled, NULL, 0, &err),
                     RENYI_ERR_ARG);
    assert_says(&err, "weights=score");
    renyi_model_free(pooled);
}

static void test_cost(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"mine keep=0.7 layers=0,3,6 reduce=merge",
         "evit keep=0.7 layers=0,3,6 metric=col reduce=merge"},
        {"plain keep=0.7 layers=0,3,6", "evit keep=0.7 layers=0,3,6 metric=random reduce=drop"},
        {"first p=5 layers=0-4", "naive p=5 layers=0-4 metric=col"}};
    for (size_t i = 0; i < 3; i++) {
        renyi_cost own, built_in;
        assert_ok(renyi_policy_cost(model, NULL, pairs[i][0], &own, NULL, 0, err));
        assert_ok(renyi_policy_cost(model, NULL, pairs[i][1], &built_in, NULL, 0, err));
        assert_memory_equal(&own, &built_in, sizeof own);
    }
}

/* ---- wrong answers -------------------------------------------------------------------------- */

/* What `wrong` does in one block to one image. */
typedef struct fault {
    uint32_t block, image;
    int what;
    int calls_after; /* in later blocks */
} fault;

static int wrong(void *user, const renyi_rule_view *v, renyi_rule_choice *c)
{
    fault *f = user;
    const uint32_t first = v->n_prefix;
    keep_first(NULL, v, c);
    if (v->block > f->block) f->calls_after++;
    if (v->block != f->block || v->image != f->image) return 0;
    switch (f->what) {
    case 0: c->keep[3] = v->n_tokens; break;
    case 1: c->keep[3] = 0; break;
    case 2: c->keep[3] = c->keep[1]; break;
    case 3: c->target[first + 3] = first + 4; break;
    case 4: c->target[0] = RENYI_NONE; break;
    case 5: c->weight[0] = 0.5f; break;
    case 6: c->target[v->n_tokens - 1] = v->n_out; break;
    case 7: c->target[v->n_tokens - 1] = 0; break;
    case 8: c->target[v->n_tokens - 1] = first, c->weight[v->n_tokens - 1] = NAN; break;
    case 9: c->weight[first + 2] = INFINITY; break;
    case 10: c->keep[3] = RENYI_NONE; break;
    default: return f->what;
    }
    return 0;
}

static const struct {
    renyi_status code;
    const char *says;
} faults[] = {
    {RENYI_ERR_ARG, "keep[3] is 122, and 122 tokens enter"},
    {RENYI_ERR_ARG, "keep[3] is 0, a class or distillation token: these always stay"},
    {RENYI_ERR_ARG, "keep[1] and keep[3] are both 2"},
    {RENYI_ERR_ARG, "keep[3] is 4, but target[4] is row 5, not 4"},
    {RENYI_ERR_ARG, "token 0 is a class or distillation token: it stays in row 0 with weight 1"},
    {RENYI_ERR_ARG, "token 0 is a class or distillation token"},
    {RENYI_ERR_ARG, "target[121] is 86, and 86 rows leave"},
    {RENYI_ERR_ARG, "target[121] is 0, the row of a class or distillation token"},
    {RENYI_ERR_ARG, "weight[121] is nan"},
    {RENYI_ERR_ARG, "weight[3] is inf"},
    {RENYI_ERR_ARG, "no token goes to row 4: set keep[3], or a target"},
    {RENYI_ERR_ABORTED, "rule 'wrong' returned 11 in block 2, image 1"},
};
enum { N_FAULTS = sizeof faults / sizeof *faults };

static void test_wrong_choices(void **state)
{
    (void)state;
    float good[PM_IMAGES * FIX_CLASSES], again[PM_IMAGES * FIX_CLASSES];
    fault f = {.block = 99};
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    add_rule(m, (renyi_rule){.name = "wrong", .cut = wrong, .user = &f});
    renyi_session *s = pm_session(m, "wrong keep=0.7 layers=2,5,11", PM_IMAGES, 2, 1);
    assert_ok(renyi_run_pixels(s, pm_pixels(), PM_IMAGES, good, err));
    for (int what = 0; what < N_FAULTS; what++) {
        renyi_error err = {0};
        renyi_cut cut;
        f = (fault){.block = 2, .image = 1, .what = what};
        assert_int_equal(renyi_run_pixels(s, pm_pixels(), PM_IMAGES, again, &err),
                         faults[what].code);
        assert_int_equal(err.code, faults[what].code);
        assert_says(&err, faults[what].says);
        if (what < 11) assert_says(&err, "rule 'wrong', block 2, image 1: ");
        assert_int_equal(f.calls_after, 0); /* the run has stopped */
        assert_int_equal(renyi_session_cut(s, 0, 0, &cut, NULL), RENYI_ERR_ARG);
        assert_int_equal(renyi_run_pixels(s, pm_pixels(), PM_IMAGES, again, NULL),
                         faults[what].code);
        f.block = 99; /* the session can be used again */
        assert_ok(renyi_run_pixels(s, pm_pixels(), PM_IMAGES, again, err));
        assert_memory_equal(good, again, sizeof good);
    }
    renyi_session_free(s);
    renyi_model_free(m);
}

/* Fails in one block, for all images from one on. */
static int failing_score(void *user, const renyi_rule_view *v, float *score)
{
    const fault *f = user;
    for (uint32_t j = 0; j < v->n_tokens; j++) score[j] = (float)((j * 37) % 101);
    return v->block == f->block && v->image >= f->image ? f->what : 0;
}

static int count_blocks(void *user, uint64_t done, uint64_t total)
{
    (void)total;
    *(uint64_t *)user = done;
    return 0;
}

static void test_failures(void **state)
{
    (void)state;
    static const char *const policies[] = {"failing p=5 layers=all reduce=drop",
                                           "failing p=5 layers=all reduce=fuse at=end",
                                           "failing p=5 layers=all reduce=merge"};
    float logits[PM_IMAGES * FIX_CLASSES];
    fault f = {0};
    uint64_t done;
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    add_rule(m, (renyi_rule){.name = "failing", .score = failing_score, .user = &f});
    for (size_t i = 0; i < 3; i++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            renyi_session *s = NULL;
            const renyi_session_options o = {.struct_size = sizeof o,
                                             .max_batch = PM_IMAGES,
                                             .n_threads = threads,
                                             .policy = policies[i],
                                             .trace = 1,
                                             .progress = count_blocks,
                                             .progress_user = &done};
            assert_ok(renyi_session_new(&s, m, &o, err));
            for (uint32_t block = 0; block <= PM_BLOCKS; block++) {
                renyi_error err = {0};
                char says[96];
                f = (fault){.block = block, .image = block % 3, .what = -7};
                done = 0;
                const renyi_status st = renyi_run_pixels(s, pm_pixels(), PM_IMAGES, logits, &err);
                assert_int_equal(st, block < PM_BLOCKS ? RENYI_ERR_ABORTED : RENYI_OK);
                assert_int_equal(done, block); /* blocks without a fault are reported */
                snprintf(says, sizeof says, "rule 'failing' returned -7 in block %u, image %u",
                         block, block % 3);
                if (st) assert_string_equal(err.message, says);
            }
            renyi_session_free(s);
        }
    renyi_model_free(m);
}

static int bad_share(void *user, const renyi_rule_view *v, float *score)
{
    for (uint32_t j = 0; j < v->n_tokens; j++) score[j] = 1.0f;
    score[9] = *(const float *)user;
    return 0;
}

static void test_shares(void **state)
{
    (void)state;
    static const float values[] = {NAN, INFINITY, -1.0f};
    float share, logits[FIX_CLASSES];
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    add_rule(m, (renyi_rule){.name = "shares", .score = bad_share, .user = &share});
    renyi_session *by_score = pm_session(m, "shares layers=4 fuse weights=score", 1, 2, 0);
    renyi_session *by_class = pm_session(m, "shares layers=4 fuse", 1, 2, 0);
    for (size_t i = 0; i < 3; i++) {
        renyi_error err = {0};
        share = values[i];
        assert_int_equal(renyi_run_pixels(by_score, pm_pixels(), 1, logits, &err), RENYI_ERR_ARG);
        assert_says(&err, "rule 'shares', block 4, image 0: score[9] is ");
        assert_ok(renyi_run_pixels(by_class, pm_pixels(), 1, logits, err));
        for (size_t k = 0; k < FIX_CLASSES; k++) assert_true(isfinite(logits[k]));
    }
    renyi_session_free(by_score);
    renyi_session_free(by_class);
    renyi_model_free(m);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void test_memory(void **state)
{
    (void)state;
    static const char *const policies[] = {"mine layers=0,3 reduce=merge", "first layers=0,3"};
    test_heap h = {0};
    const renyi_allocator al = test_heap_of(&h);
    renyi_model *m = pm_open(PM_VIT, &al, RENYI_CPU_AUTO);
    renyi_rule r = {.struct_size = sizeof r,
                    .name = "mine",
                    .needs = RENYI_NEED_COLUMNS,
                    .score = score_columns};
    renyi_error err = {0};
    h.fail_at = h.calls + 1;
    assert_int_equal(renyi_model_add_rule(m, &r, &err), RENYI_ERR_NOMEM);
    h.fail_at = 0;
    assert_int_equal(renyi_policy_check("mine", m, NULL, 0, &err), RENYI_ERR_ARG);
    assert_ok(renyi_model_add_rule(m, &r, err));
    add_rule(m, (renyi_rule){.name = "first", .cut = keep_first});
    const size_t loaded = h.live;
    for (size_t i = 0; i < 2; i++)
        for (size_t n = 1;; n++) {
            renyi_session *s = NULL;
            const renyi_session_options o = {
                .struct_size = sizeof o, .max_batch = 2, .n_threads = 2, .policy = policies[i]};
            h.calls = 0, h.fail_at = n;
            const renyi_status st = renyi_session_new(&s, m, &o, &err);
            h.fail_at = 0;
            if (st) {
                assert_int_equal(st, RENYI_ERR_NOMEM);
                assert_null(s);
                assert_int_equal(h.live, loaded);
                continue;
            }
            float logits[2 * FIX_CLASSES];
            const size_t calls = h.calls;
            assert_ok(renyi_run_pixels(s, pm_pixels(), 2, logits, err));
            assert_int_equal(h.calls, calls); /* a run allocates nothing */
            renyi_session_free(s);
            assert_int_equal(h.live, loaded);
            assert_true(n > 6);
            break;
        }
    renyi_model_free(m);
    assert_int_equal(h.live, 0);
}

/* ---- other functions that take policies --------------------------------------------------------
 */

static void test_grid(void **state)
{
    (void)state;
    static const char *const names[] = {"m"}, *const policies[] = {"mine keep=0.5|0.7 n=2|4"},
                             *const lines[] = {"frameworks plain evit", "n 3", "keep 0.9",
                                               "metrics col"};
    renyi_grid_options o = {.struct_size = sizeof o,
                            .n_models = 1,
                            .models = names,
                            .n_policies = 1,
                            .policies = policies,
                            .n_lines = 4,
                            .lines = lines};
    renyi_grid *g;
    renyi_error err = {0};
    assert_int_equal(renyi_grid_new(&g, &o, &err), RENYI_ERR_ARG);
    assert_says(&err, "rules of your own need the model");
    o.rules_of = model;
    assert_ok(renyi_grid_new(&g, &o, err));
    assert_int_equal(renyi_grid_count(g), 6);
    renyi_grid_point p;
    renyi_grid_get(g, 1, &p);
    assert_string_equal(p.policy, "mine keep=0.5 layers=3,6,9 n=4 reduce=drop at=mid order=score");
    renyi_grid_get(g, 4, &p); /* plain needs no columns: n is left out */
    assert_string_equal(p.policy, "plain keep=0.9 layers=3,6,9 reduce=drop at=mid order=score");
    renyi_grid_free(g);
}

static void test_viz(void **state)
{
    (void)state;
    static const char *const policies[] = {"mine keep=0.7 layers=3,6", "first keep=0.7 layers=3,6",
                                           "evit keep=0.7 layers=3,6 metric=col reduce=drop"};
    const renyi_viz_options o = {
        .struct_size = sizeof o, .n_policies = 3, .policies = policies, .rule = ""};
    const renyi_image image = {pm_pixels(), PM_SIDE, PM_SIDE, 0};
    renyi_viz *v = NULL;
    renyi_viz_result *r = NULL;
    assert_ok(renyi_viz_new(&v, model, &o, err));
    assert_ok(renyi_viz_run(v, &image, "an image", &r, err));
    renyi_viz_free(v);
    assert_int_equal(r->n_rows, 3);
    const renyi_viz_row *own = &r->rows[0], *built_in = &r->rows[2];
    assert_true(own->answer.macs == built_in->answer.macs);
    for (uint32_t i = 0; i < r->n_layers; i++)
        assert_int_equal(own->steps[i].n_dropped, built_in->steps[i].n_dropped);
    assert_int_equal(own->steps[r->n_layers - 1].n_dropped, 121 - 60);
    renyi_viz_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_many),
        cmocka_unit_test(test_policies), cmocka_unit_test(test_needs_a_model),
        cmocka_unit_test(test_cost),     cmocka_unit_test(test_wrong_choices),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_shares),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_grid),
        cmocka_unit_test(test_viz),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
