/* test_viz.c - results of viz.h against the session and the scores that they come from, cut by cut.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "engine/viz/scores.h"
#include "fixtures/prune_model.h"
#include "fixtures/test_heap.h"
#include "renyi/viz.h"

static renyi_model *model;

static renyi_viz_result *run_viz(const renyi_model *m, const renyi_viz_options *o, int index)
{
    const renyi_image image = {pm_pixels() + (size_t)index * PM_PIXELS, PM_SIDE, PM_SIDE, 0};
    renyi_viz *v;
    renyi_viz_result *r;
    assert_ok(renyi_viz_new(&v, m, o, err));
    assert_ok(renyi_viz_run(v, &image, "an image", &r, err));
    renyi_viz_free(v); /* the result stays valid */
    return r;
}

#define OPTIONS(...) \
    (&(renyi_viz_options){.struct_size = sizeof(renyi_viz_options), .n_threads = 1, __VA_ARGS__})

/* ---- the dense part ------------------------------------------------------------------------ */

static void test_defaults(void **state)
{
    renyi_viz_result *r = run_viz(model, NULL, 0);
    static const char *const names[] = {"cls", "col n=4", "random"};
    static const char *const labels[] = {"class attention", "Col-L4", "random"};
    static const char *const norms[] = {"cls",     "col n=1", "col n=2",
                                        "col n=3", "col n=4", "col n=inf"};
    (void)state;
    assert_string_equal(r->photo.name, "an image");
    assert_int_equal(r->photo.size, PM_SIDE);
    assert_int_equal(r->photo.grid * r->photo.patch, PM_SIDE);
    assert_int_equal(r->n_patches, PM_PATCHES);
    assert_int_equal(r->n_blocks, PM_BLOCKS);
    assert_int_equal(r->n_layers, 6);
    assert_int_equal(r->n_metrics, 3);
    assert_int_equal(r->n_rows, 3);
    assert_int_equal(r->n_norms, 6);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(r->metrics[i].name, names[i]);
        assert_string_equal(r->metrics[i].label, labels[i]);
        assert_string_equal(r->rows[i].label, labels[i]);
        assert_int_equal(r->rows[i].metric, i);
        assert_true(isnan(r->rows[i].keep) && isnan(r->rows[i].answer.ms));
        assert_true(strstr(r->rows[i].policy, "naive p=10 layers=0-5 metric=") != NULL);
        assert_int_equal(r->rows[i].steps[5].n_dropped, 60);
    }
    for (uint32_t i = 0; i < 6; i++) assert_string_equal(r->norms[i].name, norms[i]);
    assert_string_equal(r->norms[5].label, "Col-L∞");
    assert_true(isinf(r->norms[5].order) && isnan(r->norms[0].order));
    assert_int_equal(r->n_keeps, 7);
    assert_int_equal(r->kept[4], 85); /* ceil(0.7 x 121) */
    assert_int_equal(r->n_sweep, 0);
    assert_null(r->sweep);
    assert_null(r->attention);
    assert_int_equal(r->dense.n_top, 5);
    char own[16];
    snprintf(own, sizeof own, "class %u", r->dense.top[0].index);
    assert_string_equal(r->dense.top[0].name, own);
    renyi_viz_result_free(r);
}

/* Scores are those of ry_scores, ranks order them, and the scale is within their range. */
static void test_scores(void **state)
{
    static const char *const metrics[] = {"cls", "col n=2", "renyi n=2", "random seed=3"};
    static const uint32_t layers[] = {0, 3, 11};
    renyi_viz_result *r = run_viz(
        model, OPTIONS(.n_metrics = 4, .metrics = metrics, .n_layers = 3, .layers = layers), 1);
    const ry_scores_options so = {
        .n_metrics = 4, .metrics = metrics, .keep = 0.5, .max_batch = 1, .n_threads = 2};
    ry_scores *s;
    (void)state;
    assert_ok(ry_scores_new(&s, model, &so, err));
    ry_scores_run(s, r->photo.rgb, NULL, 1);
    for (uint32_t m = 0; m < 4; m++)
        for (uint32_t i = 0; i < 3; i++) {
            const renyi_viz_map *map = &r->metrics[m].maps[i];
            uint8_t seen[PM_PATCHES] = {0};
            assert_memory_equal(map->score, ry_scores_get(s, 0, m, layers[i]),
                                PM_PATCHES * sizeof(float));
            float best = -INFINITY, least = INFINITY;
            for (uint32_t p = 0; p < PM_PATCHES; p++) {
                best = fmaxf(best, map->score[p]);
                least = fminf(least, map->score[p]);
                assert_true(map->rank[p] < PM_PATCHES && !seen[map->rank[p]]++);
                for (uint32_t q = 0; q < p; q++)
                    assert_true((map->score[q] >= map->score[p]) == (map->rank[q] < map->rank[p]));
            }
            assert_true(least <= map->low && map->low < map->high && map->high <= best);
        }
    ry_scores_free(s);
    renyi_viz_result_free(r);
}

/* A single cut keeps the patches of rank < kept, so a page may show ranks as a mask. */
static void test_single_cut(void **state)
{
    static const char *const metrics[] = {"cls", "col n=4", "random"};
    static const char *const policies[] = {"evit keep=0.7 layers=2 metric=cls reduce=drop",
                                           "evit keep=0.7 layers=2 metric=col n=4 fuse",
                                           "evit keep=0.7 layers=2 metric=random reduce=drop"};
    renyi_viz_result *r = run_viz(model,
                                  OPTIONS(.n_metrics = 3, .metrics = metrics, .n_policies = 3,
                                          .policies = policies, .rule = ""),
                                  2);
    (void)state;
    assert_int_equal(r->n_rows, 3);
    for (uint32_t m = 0; m < 3; m++)
        for (uint32_t p = 0; p < PM_PATCHES; p++) {
            const int stays = r->metrics[m].maps[2].rank[p] < r->kept[4];
            assert_int_equal(r->rows[m].steps[2].state[p] == RENYI_VIZ_KEPT, stays);
            assert_int_equal(r->rows[m].steps[1].state[p], RENYI_VIZ_KEPT);
        }
    renyi_viz_result_free(r);
}

/* ---- policies ------------------------------------------------------------------------------ */

/* The token that patch p is in after all cuts up to `layer`, by the trace alone. */
static uint32_t token_of(const renyi_session *s, uint32_t p, uint32_t layer, renyi_cut *last)
{
    renyi_model_info info;
    renyi_model_get_info(model, &info);
    uint32_t token = info.n_prefix + p;
    last->n_out = 0;
    for (size_t i = 0; i < renyi_session_cut_count(s); i++) {
        renyi_cut cut;
        assert_ok(renyi_session_cut(s, 0, i, &cut, err));
        if (cut.block > layer) break;
        *last = cut;
        if (token != RENYI_NONE) token = cut.target[token];
    }
    return token;
}

static int32_t grew_from(const renyi_cut *cut, uint32_t token)
{
    const uint32_t source = cut->source[token];
    return source == RENYI_NONE ? RENYI_FUSED : cut->position[source];
}

/* One step against the trace, after a cut at or before `layer`. */
static void check_step(const renyi_viz_step *step, const renyi_session *s)
{
    uint32_t counts[4] = {0}, groups = 0, rescued = 0;
    renyi_cut cut;
    for (uint32_t p = 0; p < PM_PATCHES; p++) {
        const uint32_t token = token_of(s, p, step->layer, &cut);
        if (!cut.n_out) {
            assert_int_equal(step->state[p], RENYI_VIZ_KEPT);
            assert_int_equal(step->group[p], p);
            counts[0]++, groups++;
            continue;
        }
        const int32_t from = token == RENYI_NONE ? RENYI_FUSED : grew_from(&cut, token);
        assert_int_equal(step->state[p] == RENYI_VIZ_DROPPED, token == RENYI_NONE);
        assert_int_equal(step->group[p], from < 0 ? RENYI_NONE : (uint32_t)from);
        assert_int_equal(step->gone_at[p] != RENYI_NONE, from < 0);
        assert_true(step->gone_at[p] == RENYI_NONE || step->gone_at[p] <= step->layer);
        if (token != RENYI_NONE && from >= 0)
            assert_int_equal(step->state[p] == RENYI_VIZ_MERGED, cut.size[token] > 1.5f);
        if (token != RENYI_NONE && from < 0) assert_int_equal(step->state[p], RENYI_VIZ_FUSED);
        if (step->rescued[p]) assert_true(cut.rescued[cut.source[token]]);
        counts[step->state[p]]++;
        groups += step->group[p] == p;
        rescued += step->rescued[p];
    }
    assert_int_equal(step->n_kept, counts[RENYI_VIZ_KEPT]);
    assert_int_equal(step->n_merged, counts[RENYI_VIZ_MERGED]);
    assert_int_equal(step->n_fused, counts[RENYI_VIZ_FUSED]);
    assert_int_equal(step->n_dropped, counts[RENYI_VIZ_DROPPED]);
    assert_int_equal(step->n_kept + step->n_merged + step->n_fused + step->n_dropped, PM_PATCHES);
    assert_int_equal(step->n_groups, groups);
    assert_int_equal(step->n_rescued, rescued);
    if (cut.n_out) assert_int_equal(step->n_tokens, cut.n_out);
}

/* Scores at a cut, by place in the image. */
static void check_scores(const renyi_viz_step *step, const renyi_session *s)
{
    uint32_t scored = 0, want = 0;
    for (uint32_t p = 0; p < PM_PATCHES; p++) scored += !isnan(step->score[p]);
    for (size_t i = 0; i < renyi_session_cut_count(s); i++) {
        renyi_cut cut;
        assert_ok(renyi_session_cut(s, 0, i, &cut, err));
        if (cut.block != step->layer) continue;
        for (uint32_t t = 0; t < cut.n_in; t++) {
            if (cut.position[t] < 0) continue;
            want++;
            assert_true(step->score[cut.position[t]] == cut.score[t]);
        }
        assert_true(step->is_cut);
    }
    assert_int_equal(scored, want);
}

static void test_policies(void **state)
{
    static uint32_t all[PM_BLOCKS];
    (void)state;
    for (uint32_t i = 0; i < PM_BLOCKS; i++) all[i] = i;
    renyi_viz_result *r = run_viz(model,
                                  OPTIONS(.n_policies = PM_POLICIES, .policies = pm_policies,
                                          .rule = "", .n_layers = PM_BLOCKS, .layers = all),
                                  3);
    int rescued = 0, fused = 0, merged = 0;
    for (uint32_t i = 0; i < PM_POLICIES; i++) {
        const renyi_viz_row *row = &r->rows[i];
        float logits[FIX_CLASSES];
        renyi_session *s = pm_session(model, pm_policies[i], 1, 1, 1);
        assert_ok(renyi_run_pixels(s, r->photo.rgb, 1, logits, err));
        assert_string_equal(row->policy, renyi_session_policy(s));
        assert_string_equal(row->label, pm_policies[i]);
        assert_int_equal(row->adaptive, strncmp(pm_policies[i], "ats", 3) == 0 ||
                                            strstr(pm_policies[i], "likeness") != NULL);
        for (uint32_t l = 0; l < PM_BLOCKS; l++) {
            check_step(&row->steps[l], s);
            check_scores(&row->steps[l], s);
            assert_true(l == 0 || row->steps[l].macs > row->steps[l - 1].macs);
            rescued += row->steps[l].n_rescued > 0;
            fused += row->steps[l].n_fused > 0;
            merged += row->steps[l].n_merged > 0;
            if (row->steps[l].n_merged) assert_true(row->merges);
        }
        assert_true(row->answer.macs > row->steps[PM_BLOCKS - 1].macs);
        /* What is alike beyond a threshold may be nothing; comparing costs all the same. */
        if (!strstr(pm_policies[i], "likeness")) assert_true(row->answer.macs < r->dense.macs);
        for (uint32_t c = 0; c < FIX_CLASSES; c++)
            assert_true(logits[c] <= logits[row->answer.top[0].index]);
        renyi_session_free(s);
    }
    assert_true(rescued && fused && merged); /* every state occurred */
    renyi_viz_result_free(r);
}

/* Layers that are not shown still cut. */
static void test_few_layers(void **state)
{
    static const uint32_t some[] = {1, 4, 7};
    static const char *const policy[] = {"naive p=8 layers=0-5 metric=col n=4"};
    renyi_viz_result *r = run_viz(
        model,
        OPTIONS(.n_policies = 1, .policies = policy, .rule = "", .n_layers = 3, .layers = some), 0);
    (void)state;
    assert_int_equal(r->rows[0].steps[0].n_dropped, 16);
    assert_int_equal(r->rows[0].steps[1].n_dropped, 40);
    assert_int_equal(r->rows[0].steps[2].n_dropped, 48);
    assert_int_equal(r->rows[0].steps[2].is_cut, 0);
    for (uint32_t p = 0; p < PM_PATCHES; p++) assert_true(isnan(r->rows[0].steps[2].score[p]));
    renyi_viz_result_free(r);
}

/* By default the first six blocks are shown, and every later one that cuts. */
static void test_default_layers(void **state)
{
    static const char *const policies[] = {"evit keep=0.7 layers=3,6,9",
                                           "mosaic keep=0.7 layers=8"};
    static const uint32_t want[] = {0, 1, 2, 3, 4, 5, 6, 8, 9, 10};
    renyi_viz_result *r = run_viz(model,
                                  OPTIONS(.n_policies = 2, .policies = policies, .sweep = 1,
                                          .rule = "evit keep=0.9 layers=2,10"),
                                  0);
    (void)state;
    assert_int_equal(r->n_layers, 10);
    assert_memory_equal(r->layers, want, sizeof want);
    assert_int_equal(r->rows[0].steps[9].is_cut, 1);
    assert_int_equal(r->rows[3].steps[8].is_cut, 1);
    assert_int_equal(r->rows[4].steps[7].is_cut, 1);
    assert_int_equal(r->sweep[0].steps[9].is_cut, 1);
    assert_true(isfinite(r->metrics[0].maps[9].high));
    renyi_viz_result_free(r);
}

static void test_sweep(void **state)
{
    static const double keeps[] = {0.25, 0.5, 1.0};
    static const char *const rules[] = {"naive p=8 layers=0-5", "evit keep=0.9 layers=3 fuse",
                                        "evit tokens=100,60 layers=1,2 reduce=drop"};
    static const uint32_t left[3][3] = {{31, 61, 121}, {31, 61, 121}, {31, 61, 121}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        renyi_viz_result *r =
            run_viz(model, OPTIONS(.n_keeps = 3, .keeps = keeps, .rule = rules[i], .sweep = 1), 0);
        assert_int_equal(r->n_sweep, 9);
        for (uint32_t k = 0; k < 9; k++) {
            const renyi_viz_row *row = &r->sweep[k];
            assert_int_equal(row->metric, k / 3);
            assert_true(row->keep == keeps[k % 3]);
            assert_int_equal(row->steps[5].n_kept, left[i][k % 3]);
        }
        renyi_viz_result_free(r);
    }
    renyi_viz_result *r = run_viz(model, OPTIONS(.n_keeps = 3, .keeps = keeps, .sweep = 2), 0);
    assert_int_equal(r->n_sweep, 3 * (3 + 4) + 4); /* cls and n = 4 are metrics */
    for (uint32_t k = 9; k < r->n_sweep; k++) {
        static const uint32_t norms[] = {1, 2, 3, 5};
        const int is_given = k >= 21;
        assert_int_equal(r->sweep[k].metric, RENYI_NONE);
        assert_int_equal(r->sweep[k].norm, norms[is_given ? k - 21 : (k - 9) / 3]);
        assert_int_equal(isnan(r->sweep[k].keep), is_given);
        if (is_given) assert_int_equal(r->sweep[k].steps[5].n_dropped, 60); /* as the rows */
        assert_string_equal(r->sweep[k].label, r->norms[r->sweep[k].norm].label);
    }
    assert_int_equal(r->sweep[8].norm, RENYI_NONE);
    renyi_viz_result_free(r);
}

/* ---- attention ----------------------------------------------------------------------------- */

static void check_attention(const renyi_viz_result *r, uint32_t i)
{
    const renyi_viz_attention *a = r->attention;
    const renyi_viz_attention_layer *l = &a->layers[i];
    const renyi_viz_map *cls = &r->norms[0].maps[i], *col = &r->norms[4].maps[i];
    double norm = 0.0;
    for (uint32_t h = 0; h < a->n_heads; h++) {
        double sum = 0.0;
        for (uint32_t t = 0; t < a->n_tokens; t++) sum += (double)l->row[h * a->n_tokens + t];
        assert_true(fabs(sum - 1.0) < 1e-5);
    }
    for (uint32_t t = 0; t < a->n_tokens; t++) {
        norm += pow((double)l->column_mean[t], 4.0);
        if (a->query == RENYI_PREFIX && t >= a->n_prefix)
            assert_true(fabsf(l->row_mean[t] - cls->score[t - a->n_prefix]) < 1e-6f);
    }
    assert_true(fabs(pow(norm, 0.25) - (double)col->score[a->token]) < 1e-5);
    if (a->query == RENYI_PREFIX) /* the same entry as row and as column */
        assert_true(fabsf(l->row[a->n_prefix + (uint32_t)a->token] - l->column[0]) < 1e-7f);
}

static void test_attention(void **state)
{
    renyi_viz_result *r = run_viz(model, OPTIONS(.attention = 1), 0);
    (void)state;
    assert_non_null(r->attention);
    assert_int_equal(r->attention->query, RENYI_PREFIX);
    assert_int_equal(r->norms[4].maps[5].rank[r->attention->token], 0);
    for (uint32_t i = 0; i < r->n_layers; i++) check_attention(r, i);
    renyi_viz_result_free(r);
    r = run_viz(model,
                OPTIONS(.attention = 1, .has_query = 1, .query = 0, .has_token = 1, .token = 120),
                0);
    assert_int_equal(r->attention->query, 0);
    assert_int_equal(r->attention->token, 120);
    for (uint32_t i = 0; i < r->n_layers; i++) check_attention(r, i);
    renyi_viz_result_free(r);
}

/* ---- other models, refusals, memory -------------------------------------------------------- */

static void test_no_class_token(void **state)
{
    renyi_model *m = pm_open(PM_POOLED, NULL, RENYI_CPU_AUTO);
    renyi_viz_result *r = run_viz(m, OPTIONS(.attention = 1), 0);
    (void)state;
    assert_int_equal(r->n_metrics, 2);
    assert_int_equal(r->n_norms, 5);
    assert_int_equal(r->attention->query, 60);
    renyi_viz_result_free(r);
    renyi_model_free(m);
}

static void expect_refused(const renyi_viz_options *o, const char *word)
{
    renyi_viz *v = NULL;
    renyi_error err = {0};
    assert_int_equal(renyi_viz_new(&v, model, o, &err), RENYI_ERR_ARG);
    assert_null(v);
    assert_says(&err, word);
}

static void test_refusals(void **state)
{
    static const char *const twice[] = {"col", "col n=4"}, *const joined[] = {"correct"},
                             *const unknown[] = {"colour"}, *const bad[] = {"evit keep=2"};
    static const uint32_t deep[] = {12}, falling[] = {3, 2};
    static const double low[] = {0.5}, same[] = {2, 2}, none[] = {0}, down[] = {0.5, 0.4};
    (void)state;
    expect_refused(OPTIONS(.n_metrics = 2, .metrics = twice), "\"col n=4\" is given twice");
    expect_refused(OPTIONS(.n_metrics = 1, .metrics = joined), "give the policy");
    expect_refused(OPTIONS(.n_metrics = 1, .metrics = unknown), "colour");
    expect_refused(OPTIONS(.n_metrics = 17, .metrics = twice), "at most 16");
    expect_refused(OPTIONS(.n_layers = 1, .layers = deep), "blocks 0 to 11");
    expect_refused(OPTIONS(.n_layers = 2, .layers = falling), "must ascend");
    expect_refused(OPTIONS(.n_layers = 1), "NULL");
    expect_refused(OPTIONS(.n_orders = 1, .orders = low), "order 0.5; 1 and above");
    expect_refused(OPTIONS(.n_orders = 2, .orders = same), "order 2 is given twice");
    expect_refused(OPTIONS(.n_keeps = 1, .keeps = none), "keep rate 0");
    expect_refused(OPTIONS(.n_keeps = 2, .keeps = down), "must ascend");
    expect_refused(OPTIONS(.n_policies = 1, .policies = bad), "policy \"evit keep=2\"");
    expect_refused(OPTIONS(.rule = "mosaic keep=0.5 layers=3"), "rule \"mosaic");
    expect_refused(OPTIONS(.rule = "", .sweep = 1), "needs a rule");
    expect_refused(OPTIONS(.has_query = 1, .query = 121),
                   "patch 121 as query; the image has 0 to 120");
    expect_refused(OPTIONS(.has_token = 1, .token = 500), "as token");
    expect_refused(OPTIONS(.n_top = 21), "at most 20");
    expect_refused(&(renyi_viz_options){.struct_size = 9999}, "struct_size");
}

static void test_same_again(void **state)
{
    static const char *const policies[] = {"mosaic keep=0.7 layers=0,3", "tome r=5"};
    renyi_viz_result *r[3];
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        r[i] = run_viz(model,
                       &(renyi_viz_options){.struct_size = sizeof(renyi_viz_options),
                                            .n_policies = 2,
                                            .policies = policies,
                                            .attention = 1,
                                            .n_threads = 1 + i % 2},
                       1);
    for (uint32_t i = 1; i < 3; i++)
        for (uint32_t row = 0; row < r[0]->n_rows; row++) {
            const renyi_viz_row *a = &r[0]->rows[row], *b = &r[i]->rows[row];
            for (uint32_t l = 0; l < 6; l++) {
                assert_memory_equal(a->steps[l].state, b->steps[l].state, PM_PATCHES);
                assert_memory_equal(a->steps[l].group, b->steps[l].group, PM_PATCHES * 4);
            }
            assert_true(a->answer.top[0].probability == b->answer.top[0].probability);
            assert_memory_equal(r[0]->attention->layers[5].column,
                                r[i]->attention->layers[5].column,
                                r[0]->attention->n_heads * (PM_PATCHES + 1) * sizeof(float));
        }
    for (uint32_t i = 0; i < 3; i++) renyi_viz_result_free(r[i]);
}

static void test_times_and_names(void **state)
{
    static const char *const names[] = {"ant", "bee", "cat", "dog", "elk"};
    renyi_viz_result *r =
        run_viz(model, OPTIONS(.time = 1, .class_names = names, .n_top = 2, .n_layers = 0), 0);
    (void)state;
    assert_true(r->dense.ms > 0.0 && r->rows[0].answer.ms > 0.0);
    assert_int_equal(r->dense.n_top, 2);
    assert_string_equal(r->dense.top[0].name, names[r->dense.top[0].index]);
    assert_true(r->dense.top[0].probability >= r->dense.top[1].probability);
    renyi_viz_result_free(r);
    renyi_viz_free(NULL);
    renyi_viz_result_free(NULL);
}

static int stop_at_third(void *user, uint64_t done, uint64_t total)
{
    assert_int_equal(total, 4);
    assert_int_equal(done, ++*(uint64_t *)user);
    return done == 3;
}

static void test_progress(void **state)
{
    const renyi_image image = {pm_pixels(), PM_SIDE, PM_SIDE, 0};
    uint64_t calls = 0;
    renyi_viz *v;
    renyi_viz_result *r = NULL;
    renyi_error e = {0};
    (void)state;
    assert_ok(
        renyi_viz_new(&v, model, OPTIONS(.progress = stop_at_third, .progress_user = &calls), err));
    assert_int_equal(renyi_viz_run(v, &image, NULL, &r, &e), RENYI_ERR_ABORTED);
    assert_null(r);
    assert_int_equal(calls, 3);
    renyi_viz_free(v);
}

/* Every allocation fails once; nothing leaks. */
static void test_memory(void **state)
{
    const renyi_image image = {pm_pixels(), PM_SIDE, PM_SIDE, 0};
    test_heap heap = {0};
    (void)state;
    for (size_t fail = 1, done = 0; !done; fail++) {
        renyi_error err = {0};
        renyi_viz *v = NULL;
        renyi_viz_result *r = NULL;
        heap = (test_heap){.fail_at = fail};
        renyi_status st = renyi_viz_new(
            &v, model, OPTIONS(.attention = 1, .allocator = test_heap_of(&heap)), &err);
        if (!st) st = renyi_viz_run(v, &image, NULL, &r, &err);
        if (st) assert_int_equal(st, RENYI_ERR_NOMEM);
        done = st == RENYI_OK;
        renyi_viz_result_free(r);
        renyi_viz_free(v);
        assert_int_equal(heap.live, 0);
    }
    assert_true(heap.calls > 5);
}

static int make_models(void **state)
{
    (void)state;
    model = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    renyi_model_free(model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),       cmocka_unit_test(test_scores),
        cmocka_unit_test(test_single_cut),     cmocka_unit_test(test_policies),
        cmocka_unit_test(test_few_layers),     cmocka_unit_test(test_default_layers),
        cmocka_unit_test(test_sweep),          cmocka_unit_test(test_attention),
        cmocka_unit_test(test_no_class_token), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_same_again),     cmocka_unit_test(test_times_and_names),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, make_models, unmake);
}
