/* test_prune_order.c - tests that skipping the rows that a cut removes does not change the result.
 * The same decisions are applied once as a session does it (before the projection, or before
 * attention itself) and once in the plain order: attend, project, then reduce.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/model_handle.h"
#include "fixtures/prune_model.h"
#include "model/vit/vit_plan.h"
#include "prune/rules/pruner.h"

enum { MAX_TOKENS = PM_PATCHES + 2 };

/* Relative to the largest logit. A fused token whose weights sum to s needs s times the bias b of
 * the projection. Cutting before the projection computes it as b + (s - 1) b, whose rounding error
 * has the size of b, not of s b, and LayerNorm scales the small token up again. */
#define TOLERANCE 1e-5
#define TOLERANCE_FUSED 5e-5

typedef struct decision {
    uint32_t source[MAX_TOKENS], target[MAX_TOKENS];
    float weight[MAX_TOKENS];
} decision;

/* A pruner's hook with one more phase. The first run records the decisions; the second run uses
 * them instead of its own, because its scores may differ in the last bits. */
typedef struct ordered {
    ry_token_hook inner;
    int plain; /* ask for the finished tokens, so that the cut comes after the projection */
    decision (*recorded)[PM_BLOCKS];
} ordered;

static void order_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const ordered *o = self;
    o->inner.needs(o->inner.self, block, n_tokens, out);
    if (o->plain && out->place == RY_CUT_MID) out->what |= RY_NEED_TOKENS;
}

static uint32_t order_tiles(const void *self, uint32_t block, uint32_t phase)
{
    const ordered *o = self;
    const uint32_t n = o->inner.tiles(o->inner.self, block, phase);
    return n ? n : phase && o->inner.tiles(o->inner.self, block, phase - 1) != 0;
}

static void order_work(void *self, const ry_block_view *v, ry_cut *cut, uint32_t phase,
                       uint32_t tile)
{
    ordered *o = self;
    if (o->inner.tiles(o->inner.self, v->block, phase)) {
        o->inner.work(o->inner.self, v, cut, phase, tile);
        return;
    }
    decision *d = &o->recorded[v->image][v->block];
    if (!o->plain) {
        memcpy(d->source, cut->source, cut->n_out * sizeof *d->source);
        memcpy(d->target, cut->target, v->n_tokens * sizeof *d->target);
        memcpy(d->weight, cut->weight, v->n_tokens * sizeof *d->weight);
    } else {
        memcpy(cut->source, d->source, cut->n_out * sizeof *d->source);
        memcpy(cut->target, d->target, v->n_tokens * sizeof *d->target);
        memcpy(cut->weight, d->weight, v->n_tokens * sizeof *d->weight);
    }
}

static ry_pruner *pruner_of(const renyi_model *m, const char *text)
{
    const ry_vit_config *c = &m->vit.config;
    const ry_policy_shape shape = {c->n_blocks, m->vit.n_patches, c->n_prefix,
                                   c->image_size / c->patch_size, 0};
    ry_policy policy;
    ry_pruner *p = NULL;
    assert_ok(ry_policy_parse(&policy, text, err));
    assert_ok(ry_policy_check(&policy, &shape, err));
    const ry_pruner_spec spec = {&policy, shape, c->dim, c->n_heads, PM_IMAGES, m->level};
    assert_ok(ry_pruner_new(&p, &spec, NULL, err));
    return p;
}

/* Returns the path of its cuts. The last block is left out: no hook watches it. */
static ry_block_path run_plan(const renyi_model *m, const ordered *o, float *logits)
{
    ry_token_hook hook = {.needs = order_needs,
                          .tiles = order_tiles,
                          .work = order_work,
                          .self = (void *)(uintptr_t)o};
    ry_vit_plan *plan;
    static float chw[PM_IMAGES * PM_PIXELS];
    const uint8_t *pixels = pm_pixels();
    for (size_t i = 0; i < sizeof chw / sizeof *chw; i++) chw[i] = (float)pixels[i] / 64.0f - 2.0f;
    const ry_vit_plan_options opt = {
        .level = m->level, .hook = &hook, .max_batch = PM_IMAGES, .n_threads = 2};
    assert_ok(ry_vit_plan_new(&plan, &m->vit, &opt, NULL, err));
    const ry_vit_input in = {.chw = chw, .n = PM_IMAGES};
    assert_int_equal(ry_vit_forward(plan, &in, logits), RENYI_OK);
    ry_block_path path = RY_PATH_WHOLE;
    for (uint32_t i = 0; i + 1 < PM_BLOCKS; i++) {
        if (plan->rows[i].path == RY_PATH_WHOLE) continue;
        if (path != RY_PATH_WHOLE) assert_int_equal(plan->rows[i].path, path);
        path = plan->rows[i].path;
    }
    ry_vit_plan_free(plan, NULL);
    return path;
}

static double check_policy(const renyi_model *m, const char *text, ry_block_path path)
{
    static decision recorded[PM_IMAGES][PM_BLOCKS];
    float early[PM_IMAGES * FIX_CLASSES], plain[PM_IMAGES * FIX_CLASSES];
    ry_pruner *p = pruner_of(m, text);
    ordered o = {.inner = ry_pruner_hook(p), .recorded = recorded};
    assert_int_equal(run_plan(m, &o, early), path);
    o.plain = 1;
    assert_int_equal(run_plan(m, &o, plain), RY_PATH_AFTER);
    ry_pruner_free(p, NULL);
    double worst = 0.0, top = 0.0;
    for (size_t i = 0; i < PM_IMAGES * FIX_CLASSES; i++) {
        worst = fmax(worst, fabs((double)early[i] - (double)plain[i]));
        top = fmax(top, fabs((double)plain[i]));
    }
    if (!(worst < (strstr(text, "fuse") ? TOLERANCE_FUSED : TOLERANCE) * top))
        fail_msg("%s: %g of the largest", text, worst / top);
    return worst / top;
}

static const struct {
    const char *text;
    ry_block_path path;
} policies[] = {
    {"naive p=8 layers=0-5 metric=cls", RY_PATH_LISTED},
    {"naive p=8 layers=all metric=random", RY_PATH_LISTED},
    {"evit keep=0.7 layers=0,3,6 metric=cls reduce=drop order=position", RY_PATH_LISTED},
    {"naive p=8 layers=0-5 metric=col n=4", RY_PATH_BEFORE},
    {"naive p=8 layers=all metric=correct", RY_PATH_BEFORE},
    {"evit keep=0.7 layers=0,3,6 metric=cls fuse", RY_PATH_BEFORE},
    {"evit keep=0.5 layers=3,6,9 metric=col n=2 fuse weights=score", RY_PATH_BEFORE},
    {"evit keep=0.7 layers=0,3,6 metric=random fuse", RY_PATH_BEFORE},
    {"evit keep=0.7 layers=0,3,6 metric=cls reduce=merge", RY_PATH_BEFORE},
    {"evit keep=0.7 layers=0,3,6 metric=col reduce=fuse,merge,drop", RY_PATH_BEFORE},
    {"naive p=8 layers=0-5 metric=colv reduce=merge", RY_PATH_BEFORE},
    {"tome r=5", RY_PATH_BEFORE},
    {"mosaic keep=0.6 layers=0", RY_PATH_BEFORE},
};

static void check_model(const char *architecture)
{
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        renyi_model *m = pm_open(architecture, NULL, (renyi_cpu)level);
        double worst = 0.0;
        for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
            worst = fmax(worst, check_policy(m, policies[i].text, policies[i].path));
        printf("%s %s: logits within %.1e of the plain order's\n", architecture,
               renyi_cpu_name((renyi_cpu)level), worst);
        renyi_model_free(m);
    }
}

static void test_vit(void **state)
{
    (void)state;
    check_model(PM_VIT);
}

static void test_distilled(void **state)
{
    (void)state;
    check_model(PM_DISTILLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vit),
                                       cmocka_unit_test(test_distilled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
