/* test_tune.c - a tuning keeps its bound where the right answer is known. The labels are the dense
 * model's answers, so dense is always right and a loss is a disagreement. Times are fake, so the
 * choice is the same on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/sweep/tuning.h"
#include "fixtures/test_heap.h"

#include <math.h>

#include "tune_images.h"

#ifdef RENYI_SANITIZED /* about ten times slower */
enum { IMAGES = 40 };
static const char *const policies[] = {"evit keep=0.1|0.6 layers=0|1 metric=col", "tome r=5"};
#else
enum { IMAGES = 150 }; /* two rungs */
static const char *const policies[] = {"evit keep=0.1|0.3|0.6|0.9 layers=0|1 metric=cls|col",
                                       "tome r=5|12"};
#endif
enum { BROKEN = 2, CLASSES = 10 };
static renyi_model *model;
static renyi_dataset *data; /* labelled by the model itself */
static renyi_grid *grid;

/* ---- models and candidates ------------------------------------------------------------ */

static renyi_status open_size(void *user, const char *name, uint32_t size, renyi_dtype dtype,
                              renyi_model **out, renyi_preprocess *preprocess, renyi_error *err)
{
    const renyi_options o = {.struct_size = sizeof o, .image_size = size, .dtype = dtype};
    (void)user;
    assert_true(size && !preprocess->size && !name);
    return renyi_model_open(out, at("m.safetensors"), &o, err);
}

static renyi_status open_counted(void *user, const char *name, uint32_t size, renyi_dtype dtype,
                                 renyi_model **out, renyi_preprocess *preprocess, renyi_error *err)
{
    ++*(int *)user;
    return open_size(NULL, name, size, dtype, out, preprocess, err);
}

/* `more` may be NULL. */
static renyi_grid *make_grid(const char *policy, const char *more, const uint32_t *sizes,
                             uint32_t n_sizes)
{
    const char *const both[] = {policy, more};
    static const char *const models[] = {"m"};
    const renyi_grid_options o = {.struct_size = sizeof o,
                                  .n_models = 1,
                                  .models = models,
                                  .n_policies = more ? 2 : 1,
                                  .policies = both,
                                  .n_sizes = n_sizes,
                                  .sizes = sizes};
    renyi_error err = {0};
    renyi_grid *g;
    if (renyi_grid_new(&g, &o, &err)) fail_msg("%s", err.message);
    return g;
}

/* ---- running ------------------------------------------------------------------------------- */

/* Time is proportional to MACs, except that one rule is slower. */
static double fake_ms(uint32_t image_size, renyi_dtype dtype, const char *policy, double gmacs)
{
    (void)dtype;
    (void)image_size;
    return 1000 * gmacs * (strncmp(policy, "tome", 4) == 0 ? 1.5 : 1.0);
}

static renyi_tune_options options(renyi_tune_goal goal, double bound)
{
    return (renyi_tune_options){.struct_size = sizeof(renyi_tune_options),
                                .goal = goal,
                                .bound = bound,
                                .grid = grid,
                                .open_model = open_size,
                                .n_threads = 1};
}

static renyi_tune *new_ok(const renyi_tune_options *o)
{
    renyi_error err = {0};
    renyi_tune *t;
    if (renyi_tune_new(&t, model, data, o, &err)) fail_msg("%s", err.message);
    t->fake_ms = fake_ms;
    return t;
}

static renyi_tune *run_ok(const renyi_tune_options *o, renyi_tune_result *result,
                          renyi_tune_candidate *chosen)
{
    renyi_error err = {0};
    renyi_tune *t = new_ok(o);
    if (renyi_tune_run(t, &err)) fail_msg("%s", err.message);
    renyi_tune_get_result(t, result);
    renyi_tune_get(t, result->chosen, chosen);
    return t;
}

/* Counts that must hold for every candidate of a finished tuning. */
static void check_candidates(const renyi_tune *t)
{
    uint64_t images[RY_TUNE_MAX_RUNGS + 1] = {0};
    for (size_t i = 0; i < renyi_tune_count(t); i++) {
        renyi_tune_candidate c;
        renyi_tune_get(t, i, &c);
        assert_true(c.fate != RENYI_TUNE_OPEN || i == 0);
        if (c.fate == RENYI_TUNE_MISFIT) assert_true(c.why && c.why[0] && c.rungs == 0);
        if (i == 0 || !c.rungs) continue;
        /* all candidates of a rung saw the same images: those of the rung before and more */
        if (!images[c.rungs]) images[c.rungs] = c.search.images;
        assert_int_equal(images[c.rungs], c.search.images);
        assert_true(c.search.only_it == 0 && c.search.only_dense == c.search.other);
        assert_true(fabs(c.search.drop + c.search.agreement - 100) < 1e-9);
        assert_true(c.search.range.low <= c.search.drop && c.search.drop <= c.search.range.high);
        assert_true(isfinite(c.estimate) && c.gmacs > 0);
    }
    for (size_t r = 2; r <= RY_TUNE_MAX_RUNGS; r++)
        if (images[r] && images[r - 1]) assert_true(images[r] > 2 * images[r - 1]);
}

static void test_max_drop(void **state)
{
    (void)state;
    static const double bounds[] = {0, 5, 100};
    double last_ms = INFINITY;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const renyi_tune_options o = options(RENYI_TUNE_MAX_DROP, bounds[i]);
        renyi_tune_result r;
        renyi_tune_candidate c;
        renyi_tune *t = run_ok(&o, &r, &c);
        check_candidates(t);
        assert_true(r.is_found && c.fate == RENYI_TUNE_CHOSEN);
        assert_true(r.n_search == IMAGES / 2 && r.n_confirm == IMAGES / 2);
        assert_true(r.n_failed <= BROKEN);
        if (r.chosen) {
            assert_true(c.search.drop <= bounds[i] && c.confirmed.drop <= bounds[i]);
            assert_true(c.confirmed.images >= IMAGES / 2 - BROKEN && r.looks > 0);
            assert_true(c.speedup > 1);
        }
        if (bounds[i] == 100) assert_true(r.chosen && c.ms <= last_ms);
        last_ms = c.ms;
        renyi_tune_free(t);
    }
}

/* What the search finds must not be worse than the best of all. */
static void test_targets(void **state)
{
    (void)state;
    renyi_tune_candidate dense, c, other;
    renyi_tune_result r;
    renyi_tune_options o = options(RENYI_TUNE_TARGET_GMACS, 1e-6);
    renyi_tune *t = run_ok(&o, &r, &c);
    renyi_tune_get(t, 0, &dense);
    assert_true(!r.is_found &&
                r.nearest > 0); /* nothing is that cheap: the result is the cheapest */
    renyi_tune_get(t, r.nearest, &c);
    for (size_t i = 0; i < renyi_tune_count(t); i++) {
        renyi_tune_get(t, i, &other);
        assert_true(isnan(other.gmacs) || other.gmacs >= c.gmacs);
        assert_true(other.rungs == 0 && other.search.images == 0 && isnan(other.search.drop));
    }
    renyi_tune_free(t);
    for (int goal = RENYI_TUNE_TARGET_MS; goal <= RENYI_TUNE_TARGET_GMACS; goal++) {
        const double unit = goal == RENYI_TUNE_TARGET_MS ? 1000 : 1;
        o = options((renyi_tune_goal)goal, 0.8 * dense.gmacs * unit);
        t = run_ok(&o, &r, &c);
        check_candidates(t);
        assert_true(r.is_found && r.chosen && r.looks == 1 && isnan(c.chance));
        assert_true((goal == RENYI_TUNE_TARGET_MS ? c.ms : c.gmacs) <= o.bound);
        for (size_t i = 1; i < renyi_tune_count(t); i++) {
            renyi_tune_get(t, i, &other);
            if (other.fate == RENYI_TUNE_FINALIST) assert_true(other.search.drop >= c.search.drop);
        }
        renyi_tune_free(t);
    }
    o = options(RENYI_TUNE_TARGET_GMACS, dense.gmacs); /* dense itself is within the bound */
    t = run_ok(&o, &r, &c);
    assert_true(r.is_found && r.chosen == 0 && c.estimate == 0 && r.looks == 0);
    renyi_tune_free(t);
}

/* A run sorts its candidates: the one whose policy begins with or has `text` as a condition. */
static void find_policy(const renyi_tune *t, const char *text, renyi_tune_candidate *out)
{
    for (size_t i = 0; i < renyi_tune_count(t); i++) {
        renyi_tune_get(t, i, out);
        const char *at = strstr(out->policy, text);
        if (at && (at == out->policy || text[0] == '<')) return;
    }
    fail_msg("no candidate '%s'", text);
}

/* The MACs of a cascade are those of its first pass until it is judged, then means; one that runs
 * again too often is eliminated. */
static void test_cascades(void **state)
{
    (void)state;
    renyi_tune_candidate dense, always, never, first, c;
    renyi_tune_result r;
    renyi_grid *some =
        make_grid("cascade(tome r=12 -> none if margin < 999|0)", "tome r=12", NULL, 0);
    renyi_tune_options o = options(RENYI_TUNE_TARGET_GMACS, 1);
    o.grid = some;
    renyi_tune *t = new_ok(&o);
    assert_int_equal(renyi_tune_count(t), 4);
    renyi_tune_get(t, 0, &dense);
    find_policy(t, "< 999", &always);
    find_policy(t, "tome", &first);
    assert_true(always.gmacs == first.gmacs);
    renyi_tune_free(t);
    o.bound = 0.95 * dense.gmacs;
    t = run_ok(&o, &r, &c);
    find_policy(t, "< 999", &always);
    find_policy(t, "< 0)", &never);
    find_policy(t, "tome", &first);
    assert_true(always.fate == RENYI_TUNE_COSTLY && always.gmacs > dense.gmacs);
    assert_true(always.rungs == 1 && always.search.other == 0); /* dense's answers, but twice */
    assert_true(fabs(never.gmacs - first.gmacs) < 1e-12 && never.search.drop == first.search.drop);
    assert_true(r.is_found && c.gmacs <= o.bound);
    renyi_tune_free(t);
    renyi_grid_free(some);
}

/* The speed of a cascade is that of its mean MACs, although most runs have no second pass. */
static double fake_seconds(double macs) { return macs * 1e-9; }

static void test_cascade_times(void **state)
{
    (void)state;
    renyi_error err = {0};
    renyi_cost dense;
    renyi_tune_candidate c, first;
    renyi_grid *some =
        make_grid("cascade(evit keep=0.1 layers=0 metric=col -> none if margin < 0.04)",
                  "evit keep=0.1 layers=0 metric=col", NULL, 0);
    renyi_tune_options o = options(RENYI_TUNE_MAX_DROP, 100);
    o.grid = some;
    assert_int_equal(renyi_policy_cost(model, NULL, "none", &dense, NULL, 0, &err), RENYI_OK);
    renyi_tune *t = new_ok(&o);
    t->fake_ms = NULL;
    t->fake_seconds = fake_seconds;
    if (renyi_tune_run(t, &err)) fail_msg("%s", err.message);
    find_policy(t, "< 0.04", &c);
    find_policy(t, "evit", &first);
    assert_true(first.speedup > 1.01 * c.speedup); /* some images ran again */
    const double mean = dense.total.macs_executed * 1e-9 / c.speedup;
    for (size_t i = 0; i < renyi_tune_count(t); i++)
        if (t->candidates[i].policy == c.policy)
            assert_true(fabs(mean - t->candidates[i].executed) < 1e-6 * mean);
    assert_true(c.gmacs > 1.01 * first.gmacs);
    renyi_tune_free(t);
    renyi_grid_free(some);
}

/* The finalists turn out to be slow when they are timed again: cheaper ones come back. */
static double fake_drift(uint32_t image_size, renyi_dtype dtype, const char *policy, double gmacs)
{
    (void)dtype;
    static int timings;
    static double dense;
    if (image_size == 224 && strcmp(policy, "none") == 0) {
        dense = gmacs;
        timings++;
    }
    return 1000 * gmacs * (timings > 2 && gmacs > 0.65 * dense ? 2.0 : 1.0);
}

static void test_drift(void **state)
{
    (void)state;
    renyi_tune_candidate dense, c;
    renyi_tune_result r;
    renyi_error err = {0};
    renyi_tune_options o = options(RENYI_TUNE_TARGET_MS, 1);
    renyi_tune *t = new_ok(&o);
    renyi_tune_get(t, 0, &dense);
    renyi_tune_free(t);
    o.bound = 950 * dense.gmacs;
    t = new_ok(&o);
    t->fake_ms = fake_drift;
    assert_int_equal(renyi_tune_run(t, &err), RENYI_OK);
    renyi_tune_get_result(t, &r);
    renyi_tune_get(t, r.chosen, &c);
    assert_true(r.is_found && r.looks == 1 && c.ms <= o.bound && c.confirmed.images > 0);
    assert_true(c.gmacs <= 0.65 * dense.gmacs);
    renyi_tune_free(t);
}

static void test_same_again(void **state)
{
    (void)state;
    const renyi_tune_options o = options(RENYI_TUNE_MAX_DROP, 5);
    renyi_tune_options p = o;
    renyi_tune_candidate a, b;
    renyi_tune_result r, q;
    renyi_tune *t = run_ok(&o, &r, &a);
    p.batch = 3;
    renyi_tune *u = run_ok(&p, &q, &b);
    assert_true(r.chosen == q.chosen && a.image_size == b.image_size);
    assert_string_equal(a.policy, b.policy);
    for (size_t i = 0; i < renyi_tune_count(t); i++) {
        renyi_tune_get(t, i, &a);
        renyi_tune_get(u, i, &b);
        assert_string_equal(a.policy, b.policy);
        assert_true(a.search.other == b.search.other && a.rungs == b.rungs && a.fate == b.fate);
    }
    renyi_tune_free(u);
    p.seed = 9; /* another split */
    u = run_ok(&p, &q, &b);
    assert_memory_not_equal(t->images, u->images, IMAGES * sizeof *t->images);
    renyi_tune_free(t);
    p.seed = 0;
    p.unlabelled = 1; /* the dense model's answers were the labels: the same losses */
    t = run_ok(&p, &r, &a);
    u->result = r;
    renyi_tune_free(u);
    u = run_ok(&o, &q, &b);
    assert_string_equal(a.policy, b.policy);
    assert_true(a.confirmed.only_dense == b.confirmed.only_dense);
    renyi_tune_free(t);
    renyi_tune_free(u);
}

/* ---- the search never uses the images that confirm ----------------------------------------- */

typedef struct witness {
    renyi_tune *t;
    int stop_at; /* stage; -1 = never */
    int n_failures;
    uint32_t rung;
    uint64_t images;
} witness;

static int watch(void *user, const renyi_tune_progress *now)
{
    witness *w = user;
    assert_true(now->done <= now->total && now->total > 0);
    if (now->stage == RENYI_TUNE_RUNG) {
        assert_true(now->rung >= w->rung && now->rung <= now->n_rungs);
        assert_true(now->images >= w->images && now->images <= w->t->n_search);
        w->rung = now->rung;
        w->images = now->images;
        for (size_t i = now->images; i < w->t->n_images; i++)
            assert_int_equal(w->t->dense[i].state, RY_DENSE_UNKNOWN);
    }
    return (int)now->stage == w->stop_at && now->done > 0;
}

static void on_failure(void *user, const char *file, const char *message)
{
    assert_true(strstr(file, "007.ppm") || strstr(file, "011.ppm"));
    assert_true(message[0] != 0);
    ((witness *)user)->n_failures++;
}

static void test_progress(void **state)
{
    (void)state;
    static const int stages[] = {RENYI_TUNE_RUNG, RENYI_TUNE_CONFIRMING, -1};
    for (size_t i = 0; i < 3; i++) {
        witness w = {.stop_at = stages[i]};
        renyi_tune_options o = options(RENYI_TUNE_MAX_DROP, 10);
        renyi_error err = {0};
        renyi_tune_result r;
        o.user = &w;
        o.progress = watch;
        o.on_failure = on_failure;
        w.t = new_ok(&o);
        const renyi_status st = renyi_tune_run(w.t, &err);
        assert_int_equal(st, stages[i] < 0 ? RENYI_OK : RENYI_ERR_ABORTED);
        renyi_tune_get_result(w.t, &r);
        assert_true(r.is_found == (stages[i] < 0));
        assert_true((uint64_t)w.n_failures == r.n_failed);
        if (stages[i] < 0) assert_int_equal(w.n_failures, BROKEN);
        assert_int_equal(renyi_tune_run(w.t, &err), RENYI_ERR_ARG); /* once */
        renyi_tune_free(w.t);
    }
}

static void test_resume(void **state)
{
    (void)state;
    witness w = {.stop_at = RENYI_TUNE_CONFIRMING};
    renyi_tune_options o = options(RENYI_TUNE_MAX_DROP, 10);
    renyi_error err = {0};
    renyi_tune_candidate a, b;
    renyi_tune_result r;
    renyi_tune *whole = run_ok(&o, &r, &a), *t;
    o.log = at("tune.jsonl");
    o.user = &w;
    o.progress = watch;
    w.t = new_ok(&o);
    assert_int_equal(renyi_tune_run(w.t, &err), RENYI_ERR_ABORTED);
    renyi_tune_free(w.t);
    o.progress = NULL;
    t = new_ok(&o);
    assert_int_equal(renyi_tune_run(t, &err), RENYI_ERR_ARG); /* not by accident */
    renyi_tune_free(t);
    o.resume = 1;
    t = run_ok(&o, &r, &b);
    assert_string_equal(a.policy, b.policy);
    assert_memory_equal(&a.confirmed, &b.confirmed, offsetof(renyi_tune_loss, top1));
    renyi_tune_free(t);
    renyi_tune_free(whole);
}

/* ---- measured times ------------------------------------------------------------------------ */

static void test_real_times(void **state)
{
    (void)state;
    renyi_tune_options o = options(RENYI_TUNE_TARGET_MS, 1e6);
    renyi_grid *small = make_grid("tome r=10", NULL, NULL, 0);
    renyi_error err = {0};
    renyi_tune_candidate dense, c;
    renyi_tune *t;
    o.grid = small;
    o.batch = 3;
    assert_int_equal(renyi_tune_new(&t, model, data, &o, &err), RENYI_OK);
    assert_int_equal(renyi_tune_run(t, &err), RENYI_OK);
    renyi_tune_get(t, 0, &dense);
    renyi_tune_get(t, 1, &c);
    assert_true(dense.ms > 0 && dense.speedup == 1 && c.ms > 0);
    assert_true(fabs(c.ms * c.speedup - dense.ms) < 1e-6 * dense.ms);
    renyi_tune_free(t);
    o.bound = 1e-6; /* nothing is that fast */
    assert_int_equal(renyi_tune_new(&t, model, data, &o, &err), RENYI_OK);
    assert_int_equal(renyi_tune_run(t, &err), RENYI_OK);
    renyi_tune_result r;
    renyi_tune_get_result(t, &r);
    renyi_tune_get(t, r.nearest, &c);
    assert_true(!r.is_found && r.nearest == 1 && c.ms > 0 && c.fate == RENYI_TUNE_COSTLY);
    renyi_tune_free(t);
    renyi_grid_free(small);
}

/* ---- candidates ---------------------------------------------------------------------------- */

static void test_candidates(void **state)
{
    (void)state;
    renyi_tune_options o = options(RENYI_TUNE_MAX_DROP, 1);
    const uint32_t sizes[] = {0, 224, 100, 128};
    renyi_grid *odd = make_grid("none", "evit keep=0.5 layers=0|1|7 metric=cls", sizes, 4);
    int opened = 0, misfits = 0;
    o.grid = odd;
    o.user = &opened;
    o.open_model = open_counted;
    renyi_tune *t = new_ok(&o);
    /* 224 is the model's own; 100 is not a multiple of the patch; there is no block 7 */
    assert_int_equal(renyi_tune_count(t), 4 + 4 + 4);
    for (size_t i = 0; i < renyi_tune_count(t); i++) {
        renyi_tune_candidate c;
        renyi_tune_get(t, i, &c);
        misfits += c.fate == RENYI_TUNE_MISFIT;
        if (c.image_size == 100) assert_int_equal(c.fate, RENYI_TUNE_MISFIT);
    }
    assert_true(misfits == 1 + 4 + 1 && opened == 2);
    renyi_tune_free(t);
    o.open_model = NULL; /* other sizes cannot be tried */
    t = new_ok(&o);
    renyi_tune_candidate c;
    renyi_tune_get(t, renyi_tune_count(t) - 1, &c);
    assert_true(c.fate == RENYI_TUNE_MISFIT && strstr(c.why, "cannot be opened"));
    renyi_tune_free(t);
    renyi_grid_free(odd);
    o.grid = NULL; /* the usual one, at 128, 160, 192 and 224 */
    o.open_model = open_counted;
    opened = 0;
    t = new_ok(&o);
    assert_int_equal(opened, 3);
    renyi_tune_free(t);
}

static void test_bad_options(void **state)
{
    (void)state;
    static const struct {
        renyi_tune_goal goal;
        double bound, search;
        const char *message;
    } bad[] = {
        {RENYI_TUNE_MAX_DROP, -1, 0, "0 to 100"}, {RENYI_TUNE_MAX_DROP, NAN, 0, "0 to 100"},
        {RENYI_TUNE_TARGET_MS, 0, 0, "above 0"},  {RENYI_TUNE_TARGET_GMACS, INFINITY, 0, "above 0"},
        {RENYI_TUNE_MAX_DROP, 1, 1, "below 1"},   {(renyi_tune_goal)7, 1, 0, "goal 7"}};
    renyi_error err = {0};
    renyi_tune *t;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        renyi_tune_options o = options(bad[i].goal, bad[i].bound);
        o.search = bad[i].search;
        assert_int_equal(renyi_tune_new(&t, model, data, &o, &err), RENYI_ERR_ARG);
        assert_null(t);
        if (!strstr(err.message, bad[i].message)) fail_msg("%s", err.message);
    }
    renyi_tune_options o = options(RENYI_TUNE_MAX_DROP, 1);
    const renyi_dataset_options few = {.struct_size = sizeof few, .limit = 15};
    renyi_dataset *d;
    assert_int_equal(renyi_dataset_open(&d, at("labels.csv"), model, &few, &err), RENYI_OK);
    assert_int_equal(renyi_tune_new(&t, model, d, &o, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "15 images are too few"));
    renyi_dataset_free(d);
    o.struct_size = 1u << 20;
    assert_int_equal(renyi_tune_new(&t, model, data, &o, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_tune_new(&t, model, data, NULL, &err), RENYI_ERR_ARG);
}

/* ---- every allocation may fail ------------------------------------------------------------- */

static void test_no_memory(void **state)
{
    (void)state;
    renyi_grid *small = make_grid("evit keep=0.5 layers=0 metric=col", NULL, NULL, 0);
    int good = 0;
    for (int allowed = 0; !good; allowed++) {
        test_heap heap = {.fail_at = (size_t)allowed + 1, .fail_on = 1};
        renyi_tune_options o = options(RENYI_TUNE_MAX_DROP, 50);
        renyi_error err = {0};
        renyi_tune *t;
        o.grid = small;
        o.search = 0.01;
        o.allocator = test_heap_of(&heap);
        renyi_status st = renyi_tune_new(&t, model, data, &o, &err);
        if (!st && allowed % 2) t->fake_ms = fake_ms; /* with fake and with measured times */
        if (!st) st = renyi_tune_run(t, &err);
        renyi_tune_free(t);
        assert_int_equal(heap.live, 0);
        good = st == RENYI_OK;
        if (!good) assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_true(allowed < 1000);
    }
    renyi_grid_free(small);
}

static int set_up(void **state)
{
    const renyi_init_options init = {.struct_size = sizeof init,
                                     .seed = 1,
                                     .n_classes = CLASSES,
                                     .dim = 32,
                                     .n_blocks = 2,
                                     .n_heads = 2};
    static const uint32_t sizes[] = {0, 192};
    renyi_error err = {0};
    if (folder_make(state)) return -1;
    for (int i = 0; i < IMAGES; i++) make_image(i);
    if (renyi_model_init_file(at("m.safetensors"), "vit_tiny_patch32_224", &init, &err) ||
        renyi_model_open(&model, at("m.safetensors"), NULL, &err)) {
        printf("%s\n", err.message);
        return -1;
    }
    write_labels(model, IMAGES);
    grid = make_grid(policies[0], policies[1], sizes, 2);
    return renyi_dataset_open(&data, at("labels.csv"), model, NULL, &err);
}

static int tear_down(void **state)
{
    renyi_grid_free(grid);
    renyi_dataset_free(data);
    renyi_model_free(model);
    return folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_max_drop),    cmocka_unit_test(test_targets),
        cmocka_unit_test(test_drift),       cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_progress),    cmocka_unit_test(test_resume),
        cmocka_unit_test(test_real_times),  cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_bad_options), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_cascades),    cmocka_unit_test(test_cascade_times)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
