/* test_mean_pool.c - models whose head reads the mean of the patches, with and without a class
 * token: dense runs against a reference in doubles, the mean of merged tokens, rules with and
 * without need of a class token, costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/model_handle.h"
#include "engine/core/policy_api.h"
#include "engine/core/trace_record.h"
#include "fixtures/vit_reference.h"
#include "model/vit/vit_plan.h"

enum { IMAGES = 3, SIDE = 32, VALUES = 3 * SIDE * SIDE, PATCHES = 16 };

static float images[IMAGES * VALUES];
typedef float answers[IMAGES * FIX_CLASSES];

/* The kinds of models, all with 16 patches. */
typedef enum kind { GAP, GAP_NORM, MAE, CLASS_NORM_MEAN, CLASS, N_KINDS } kind;

static renyi_model *open_kind(kind k, fixture *f, renyi_cpu cpu)
{
    renyi_model *m = NULL;
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = cpu};
    fix_make(f, k == GAP || k == GAP_NORM ? "vit_tiny_patch8_gap_32" : "vit_tiny_patch8_32");
    const char *const from = k == GAP_NORM ? "fc_norm" : "norm";
    for (int i = 0; i < 2 && (k == GAP_NORM || k == MAE); i++) {
        char old[32], new[32];
        snprintf(old, sizeof old, "%s.%s", from, i ? "bias" : "weight");
        snprintf(new, sizeof new, "%s.%s", k == MAE ? "fc_norm" : "norm", i ? "bias" : "weight");
        fix_rename(f, old, new);
    }
    const char *path = fix_write(f, "pool.safetensors");
    assert_ok(renyi_model_open(&m, path, &opt, err));
    unlink(path);
    if (k == CLASS_NORM_MEAN) m->vit.config.pool = RY_POOL_NORM_MEAN; /* as a config would say */
    return m;
}

static renyi_session *session_of(const renyi_model *m, const char *policy, uint32_t batch,
                                 uint32_t threads)
{
    renyi_session *s = NULL;
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = batch,
                                       .n_threads = threads,
                                       .policy = policy,
                                       .trace = 1};
    assert_ok(renyi_session_new(&s, m, &opt, err));
    return s;
}

/* All images, `batch` at a time. */
static void run_all(const renyi_model *m, const char *policy, uint32_t batch, uint32_t threads,
                    answers out)
{
    renyi_session *s = session_of(m, policy, batch, threads);
    for (uint32_t i = 0; i < IMAGES; i += batch)
        assert_ok(renyi_run_tensor(s, images + (size_t)i * VALUES,
                                   IMAGES - i < batch ? IMAGES - i : batch, out + i * FIX_CLASSES,
                                   err));
    renyi_session_free(s);
}

static void assert_close(const float *ours, const double *theirs)
{
    double top = 0.0;
    for (int k = 0; k < FIX_CLASSES; k++) top = fmax(top, fabs(theirs[k]));
    for (int k = 0; k < FIX_CLASSES; k++)
        if (!(fabs(ours[k] - theirs[k]) < 1e-5 * top))
            fail_msg("logit %d: %.9g, reference %.9g", k, (double)ours[k], theirs[k]);
}

static void dense(void **state)
{
    (void)state;
    for (kind k = 0; k < N_KINDS; k++)
        for (int scalar = 0; scalar < 2; scalar++) {
            fixture f;
            answers ours;
            double theirs[FIX_CLASSES];
            renyi_model *m = open_kind(k, &f, scalar ? RENYI_CPU_SCALAR : RENYI_CPU_AUTO);
            const reference r = {&f, &m->vit.config, k == GAP || k == MAE ? "fc_norm" : "norm"};
            run_all(m, "none", IMAGES, 2, ours);
            for (int i = 0; i < IMAGES; i++) {
                ref_forward(&r, images + (size_t)i * VALUES, theirs);
                assert_close(ours + i * FIX_CLASSES, theirs);
            }
            renyi_model_free(m);
            fix_free(&f);
        }
}

/* ---- the mean of merged tokens ------------------------------------------------------------- */

typedef struct last_rows {
    uint32_t n_tokens;
    ref_rows x; /* of one image after the last block */
} last_rows;

static void keep_rows(void *user, uint32_t block, const float *x, uint32_t n_tokens)
{
    last_rows *l = user;
    if (block != FIX_BLOCKS - 1) return;
    l->n_tokens = n_tokens;
    for (uint32_t i = 0; i < n_tokens * FIX_DIM; i++) l->x[i / FIX_DIM][i % FIX_DIM] = x[i];
}

/* Runs one image with a policy; its rows after the last block and their sizes. */
static void run_policy(const renyi_model *m, const char *text, last_rows *rows, float *sizes,
                       float *logits)
{
    const ry_vit_config *c = &m->vit.config;
    ry_policy policy;
    ry_pruner *pruner;
    ry_trace *trace;
    ry_vit_plan *plan;
    renyi_cut cut;
    assert_ok(ry_policy_for(&policy, text, c, PATCHES, err));
    assert_ok(ry_policy_pruner(&pruner, &policy, c, PATCHES, 1, m->level, NULL, err));
    const ry_token_hook hook = ry_pruner_hook(pruner);
    assert_ok(ry_trace_new(&trace, &hook, c, PATCHES, 1, NULL, err));
    const ry_vit_plan_options opt = {
        .level = m->level, .hook = ry_trace_hook(trace), .max_batch = 1, .n_threads = 2};
    assert_ok(ry_vit_plan_new(&plan, &m->vit, &opt, NULL, err));
    const ry_vit_input in = {.chw = images, .n = 1, .tap = keep_rows, .tap_user = rows};
    assert_int_equal(ry_vit_forward(plan, &in, logits), RENYI_OK);
    ry_trace_get(trace, 0, ry_trace_cuts(trace) - 1, &cut);
    assert_int_equal(cut.n_out, rows->n_tokens);
    memcpy(sizes, cut.size, cut.n_out * sizeof *sizes);
    ry_vit_plan_free(plan, NULL);
    ry_trace_free(trace, NULL);
    ry_pruner_free(pruner, NULL);
}

static void merged_tokens_weigh_more(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        int merges, sum; /* of the sizes: all patches, unless some are dropped */
    } rows[] = {
        {"tome r=3", 1, PATCHES},
        {"tome r=5 layers=1", 1, PATCHES},
        {"mosaic keep=0.5 layers=1", 1, PATCHES},
        {"mosaic keep=0.6 layers=0,1", 1, 10}, /* ceil(0.6 * 16) are left by the thinning */
        {"naive p=6 layers=0 metric=col reduce=merge", 1, PATCHES},
        {"evit keep=0.5 layers=0 metric=col fuse", 0, 9}, /* the fused token counts as one */
        {"naive p=6 layers=1 metric=col", 0, 10},
        {"naive p=6 layers=1 metric=col at=end", 0, 10},
    };
    static last_rows last;
    for (kind k = 0; k < CLASS; k++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            fixture f;
            float sizes[REF_TOKENS], ours[FIX_CLASSES], sum = 0.0f;
            double theirs[FIX_CLASSES], plain[FIX_CLASSES];
            renyi_model *m = open_kind(k, &f, RENYI_CPU_AUTO);
            const reference r = {&f, &m->vit.config, k == GAP || k == MAE ? "fc_norm" : "norm"};
            run_policy(m, rows[i].policy, &last, sizes, ours);
            for (uint32_t j = m->vit.config.n_prefix; j < last.n_tokens; j++) sum += sizes[j];
            assert_true(sum == (float)rows[i].sum);
            ref_head(&r, last.x, last.n_tokens, sizes, theirs);
            ref_head(&r, last.x, last.n_tokens, NULL, plain);
            assert_close(ours, theirs);
            assert_int_equal(fabs(plain[0] - theirs[0]) > 1e-3 * fabs(theirs[0]), rows[i].merges);
            renyi_model_free(m);
            fix_free(&f);
        }
}

/* ---- rules without a class token ----------------------------------------------------------- */

static const char *const runs[] = {
    "naive p=3 layers=0,1 metric=col n=1",
    "naive p=3 layers=0,1 metric=col n=4 heads=each",
    "naive p=3 layers=0,1 metric=col n=inf diagonal=no",
    "naive p=3 layers=0,1 metric=col n=2.5 class_row=no",
    "naive p=3 layers=0,1 metric=random seed=5",
    "naive p=3 layers=0,1 metric=renyi n=2",
    "naive p=3 layers=0,1 metric=shannon",
    "naive p=3 layers=0,1 metric=colv",
    "naive p=3 layers=0,1 metric=col at=end",
    "evit keep=0.7 layers=0,1 metric=col fuse",
    "evit keep=0.7 layers=0,1 metric=colv reduce=merge",
    "evit keep=0.7 layers=0,1 metric=renyi weights=score fuse",
    "evit keep=0.7 layers=0,1 metric=random fuse",
    "mosaic keep=0.7 layers=0,1",
    "mosaic keep=0.7 layers=1",
    "tome r=3",
};

/* Same bits for any number of threads and any batch; fewer MACs than a dense run. */
static void check_run(const renyi_model *m, const char *policy, const answers dense)
{
    answers all, one, thread;
    run_all(m, policy, IMAGES, 2, all);
    run_all(m, policy, 1, 2, one);
    run_all(m, policy, 2, 1, thread);
    assert_memory_equal(all, one, sizeof all);
    assert_memory_equal(all, thread, sizeof all);
    assert_memory_not_equal(all, dense, sizeof all);
    for (int i = 0; i < IMAGES * FIX_CLASSES; i++) assert_true(isfinite(all[i]));

    renyi_session *s = session_of(m, policy, 1, 1);
    renyi_cost cost;
    renyi_cut cut;
    assert_ok(renyi_policy_cost(m, NULL, policy, &cost, NULL, 0, err));
    assert_true(renyi_session_macs(s) == cost.total.macs_executed);
    assert_true(cost.total.macs < m->macs);
    assert_ok(renyi_run_tensor(s, images, 1, one, err));
    for (size_t i = 0; i < renyi_session_cut_count(s); i++) {
        assert_ok(renyi_session_cut(s, 0, i, &cut, err));
        assert_int_equal(cut.n_prefix, 0);
        for (uint32_t j = 0; j < cut.n_in; j++)
            assert_true(cut.position[j] == RENYI_FUSED || cut.position[j] >= 0);
    }
    renyi_session_free(s);
}

static void rules_without_class_token(void **state)
{
    (void)state;
    for (kind k = GAP; k <= GAP_NORM; k++) {
        fixture f;
        answers dense, same;
        renyi_model *m = open_kind(k, &f, RENYI_CPU_AUTO);
        run_all(m, NULL, IMAGES, 2, dense);
        for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) check_run(m, runs[i], dense);
        run_all(m, "evit keep=1 layers=0,1 metric=col", IMAGES, 2, same);
        assert_memory_equal(same, dense, sizeof same);
        renyi_model_free(m);
        fix_free(&f);
    }
}

static void rules_with_class_token(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *says;
    } rows[] = {
        {"evit keep=0.7 layers=0", "metric=cls looks at the class token, and this model has none"},
        {"naive p=2 layers=0 metric=cls", "use metric=col, colv, renyi, shannon or random"},
        {"naive p=2 layers=0 metric=correct", "metric=correct looks at the class token"},
        {"evit keep=0.7 layers=0 metric=col fuse weights=cls", "use weights=score"},
        {"ats keep=0.7 layers=0", "use mosaic, tome, or naive or evit with metric=col"},
    };
    fixture f, mae;
    renyi_model *m = open_kind(GAP, &f, RENYI_CPU_AUTO);
    renyi_model *with_class = open_kind(MAE, &mae, RENYI_CPU_AUTO);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        renyi_session *s = NULL;
        renyi_error e = {0};
        const renyi_session_options opt = {.struct_size = sizeof opt, .policy = rows[i].policy};
        assert_int_equal(renyi_session_new(&s, m, &opt, &e), RENYI_ERR_ARG);
        assert_says(&e, rows[i].says);
        assert_ok(renyi_policy_check(rows[i].policy, with_class, NULL, 0, err));
    }
    renyi_model_free(m);
    renyi_model_free(with_class);
    fix_free(&f);
    fix_free(&mae);
}

/* If the head does not read the class token, cuts in the last block matter too. */
static void mean_beside_class_token(void **state)
{
    (void)state;
    static const char *const policies[] = {"naive p=3 layers=1 metric=cls",
                                           "evit keep=0.7 layers=1 metric=correct fuse"};
    fixture f;
    answers dense, all, one;
    renyi_model *m = open_kind(MAE, &f, RENYI_CPU_AUTO);
    run_all(m, "none", IMAGES, 2, dense);
    for (int i = 0; i < 2; i++) {
        run_all(m, policies[i], IMAGES, 2, all);
        run_all(m, policies[i], 1, 1, one);
        assert_memory_equal(all, one, sizeof all);
        assert_memory_not_equal(all, dense, sizeof all);
    }
    renyi_model_free(m);
    fix_free(&f);
}

/* ---- costs --------------------------------------------------------------------------------- */

static void costs(void **state)
{
    (void)state;
    fixture f;
    renyi_cost gap, plain;
    renyi_model_info info;
    renyi_model *m = open_kind(GAP, &f, RENYI_CPU_AUTO);
    renyi_model_get_info(m, &info);
    assert_int_equal(info.n_prefix, 0);
    assert_string_equal(info.pool, "avg");
    assert_ok(renyi_policy_cost(m, NULL, "none", &gap, NULL, 0, err));
    assert_true(gap.total.macs == info.macs);
    /* the head reads every patch: the last block computes all rows */
    assert_true(gap.total.macs_executed == gap.total.macs);
    renyi_model_free(m);
    fix_free(&f);

    assert_ok(renyi_policy_cost(NULL, "vit_tiny_patch16_gap_224", "none", &gap, NULL, 0, err));
    assert_ok(renyi_policy_cost(NULL, "vit_tiny_patch16_224", "none", &plain, NULL, 0, err));
    assert_int_equal(gap.total.tokens_in, 196);
    assert_int_equal(plain.total.n_params - gap.total.n_params, 2 * 192);
    /* LayerNorm of one row at the end */
    assert_true(gap.head.macs_paper == 192 * 1000 + 5 * 192);
    assert_true(gap.total.macs < plain.total.macs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense),
        cmocka_unit_test(merged_tokens_weigh_more),
        cmocka_unit_test(rules_without_class_token),
        cmocka_unit_test(rules_with_class_token),
        cmocka_unit_test(mean_beside_class_token),
        cmocka_unit_test(costs),
    };
    for (size_t i = 0; i < IMAGES * VALUES; i++) images[i] = sinf(0.37f * (float)i);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
