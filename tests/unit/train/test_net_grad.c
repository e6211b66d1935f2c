/* test_net_grad.c - gradients of tiny models against central differences of the loss: all
 * parameters, every kind of pooling and of cut.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/net_fixture.h"
#include "fixtures/net_replay.h"

enum {
    IMAGES = 2,
    MAX_ROWS = 38,
    FEATURES = 8,
    MAX_TAPS = 2,
    OUTPUTS = MAX_TAPS * IMAGES * MAX_ROWS * FIX_DIM
};

static const net_case cases[] = {
    {"vit_tiny_patch8_48", 2, NULL, 0, NULL},
    {"deit_tiny_distilled_patch8_48", 2, NULL, 0, NULL},
    {"vit_tiny_patch8_gap_48", 2, NULL, FEATURES, NULL},
    {"vit_tiny_patch8_48", 2, NULL, 0, "avg"},
    {"vit_tiny_patch8_48", 2, NULL, FEATURES, NULL},
    {"vit_tiny_patch8_48", 3, "naive p=9 layers=0-1 metric=cls", 0, NULL},
    {"vit_tiny_patch8_48", 3, "naive p=9 layers=0-1 metric=col n=4 at=end", 0, NULL},
    {"vit_tiny_patch8_48", 3, "evit keep=0.6 layers=0,1 metric=cls fuse", 0, NULL},
    {"vit_tiny_patch8_48", 3, "evit keep=0.6 layers=0,1 metric=cls fuse weights=score", FEATURES,
     NULL},
    {"vit_tiny_patch8_48", 3, "evit keep=0.6 layers=0,1 metric=correct n=2 c=0.4 fuse", FEATURES,
     NULL},
    {"vit_tiny_patch8_48", 3, "evit keep=0.6 layers=0,1 metric=col n=4 fuse weights=score", 0,
     NULL},
    {"vit_tiny_patch8_48", 3,
     "evit keep=0.6 layers=0,1 metric=col n=1.5 fuse weights=score heads=each", 0, NULL},
    {"vit_tiny_patch8_48", 3,
     "evit keep=0.6 layers=0,1 metric=col n=inf fuse weights=score diagonal=no class_row=no", 0,
     NULL},
    {"vit_tiny_patch8_48", 3, "evit keep=0.6 layers=0,1 metric=col n=2 fuse weights=score at=end",
     0, NULL},
    {"vit_tiny_patch8_48", 3, "evit keep=0.6 layers=0,1 metric=cls fuse at=end", 0, NULL},
    {"vit_tiny_patch8_48", 3, "evit keep=0.6 layers=0,1 metric=col merge", 0, NULL},
    {"vit_tiny_patch8_48", 3, "mosaic keep=0.6 layers=0,1", 0, NULL},
    {"vit_tiny_patch8_48", 3, "mosaic keep=0.6 layers=1,2", FEATURES, "avg"},
    {"vit_tiny_patch8_48", 3, "mosaic keep=0.6 layers=0-2 alpha=1 omega=0.75 beta=0.9", 0, NULL},
    {"vit_tiny_patch8_48", 3, "mosaic keep=0.8 layers=0-2 alpha=1 omega=0.75 memory=0.5", 0, NULL},
    {"vit_tiny_patch8_48", 3, "mosaic keep=0.6 layers=0-2 length=max", 0, NULL},
    {"vit_tiny_patch8_48", 3, "tome r=6", 0, NULL},
    {"vit_tiny_patch8_gap_48", 3, "evit keep=0.6 layers=0,1 metric=col fuse", 0, NULL},
    {"vit_tiny_patch8_gap_48", 3, "mosaic keep=0.6 layers=1", 0, NULL},
    {"deit_tiny_distilled_patch8_48", 3, "evit keep=0.6 layers=0,2 fuse", 0, NULL},
    {"vit_tiny_patch8_48", 3, NULL, FEATURES, NULL, 2, {0, 2}},
    {"vit_tiny_patch8_gap_48", 2, NULL, FEATURES, NULL, 1, {0}},
    {"deit_tiny_distilled_patch8_48",
     3,
     "evit keep=0.6 layers=0,1 metric=cls fuse",
     FEATURES,
     NULL,
     2,
     {0, 1}},
    {"vit_tiny_patch8_48", 3, "mosaic keep=0.6 layers=1,2", FEATURES, NULL, 2, {1, 2}},
    {"vit_tiny_patch8_48", 3, "naive p=9 layers=1 metric=cls", FIX_DIM, NULL, 2, {0, 2}, 1, 0},
    {"vit_tiny_patch8_48", 2, NULL, FIX_DIM, NULL, 2, {0, 1}, 1, 1},
    {.arch = "vit_tiny_patch8_clip_quickgelu_48", 2},
    {"vit_tiny_patch8_clip_48", 3, "evit keep=0.6 layers=0,1 metric=cls fuse", FEATURES, NULL},
    {"vit_tiny_patch8_clip_48", 3, "mosaic keep=0.6 layers=0,1", 0, NULL},
    {.arch = "vit_tiny_patch8_48", 2, .variant = NET_GATED},
    {.arch = "vit_tiny_patch8_gap_48",
     3,
     "evit keep=0.6 layers=0 fuse metric=col at=end",
     .variant = NET_GATED},
    {.arch = "vit_tiny_patch8_48", 3, "mosaic keep=0.6 layers=0,1", .variant = NET_GATED},
    {.arch = "vit_tiny_patch8_48", 2, .feature_dim = FEATURES, .variant = NET_CLASS_MEAN},
    {.arch = "vit_tiny_patch8_48",
     3,
     "evit keep=0.6 layers=0,2 metric=cls fuse",
     .variant = NET_CLASS_MEAN},
    {.arch = "vit_tiny_patch8_48", 3, "tome r=6", .variant = NET_CLASS_MEAN | NET_GATED},
    {"vit_tiny_patch8_siglip_48", 2, NULL, FEATURES, NULL},
    {"vit_tiny_patch8_siglip_48", 3, "evit keep=0.6 layers=0,1 metric=pool fuse", 0, NULL},
    {"vit_tiny_patch8_siglip_48", 3, "evit keep=0.6 layers=0,1 metric=col fuse weights=score", 0,
     NULL},
    {"vit_tiny_patch8_siglip_48", 3, "mosaic keep=0.6 layers=0,1", 0, NULL},
    {"vit_tiny_patch8_siglip_48", 3, "tome r=6", 0, NULL},
};

/* The loss: a fixed linear combination of all outputs. */
typedef struct loss {
    float chw[IMAGES * 3 * NET_SIDE * NET_SIDE];
    float by_logit[2][IMAGES * FIX_CLASSES];
    float by_feature[OUTPUTS], forced[OUTPUTS];
    const net_case *c;
    float branch[2 * 4 * IMAGES];
} loss;

static void loss_make(loss *l, const net_case *c)
{
    l->c = c;
    net_fill(l->chw, sizeof l->chw / sizeof *l->chw, 5);
    net_fill(l->by_logit[0], IMAGES * FIX_CLASSES, 6);
    net_fill(l->by_logit[1], IMAGES * FIX_CLASSES, 7);
    net_fill(l->by_feature, OUTPUTS, 8);
    net_fill(l->forced, OUTPUTS, 9);
    for (size_t i = 0; i < 2 * 4 * IMAGES; i++) l->branch[i] = i % 5 == 3 ? 0.0f : 1.25f;
}

static double loss_value(const loss *l, ry_net *net, int branch)
{
    const ry_net_batch batch = {l->chw, IMAGES, branch ? l->branch : NULL,
                                l->c->forced ? l->forced : NULL};
    float logits[2][IMAGES * FIX_CLASSES] = {{0}};
    const uint32_t taps = ry_net_taps(net);
    double sum = 0.0;
    assert_ok(ry_net_forward(net, &batch, logits[0], logits[1], err));
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < IMAGES * FIX_CLASSES; i++)
            sum += (double)l->by_logit[k][i] * (double)logits[k][i];
    if (!l->c->feature_dim) return sum;
    for (uint32_t k = 0; k < (taps ? taps : 1); k++) {
        const float *by = l->by_feature + k * ry_net_tap_floats(net);
        ry_net_features_view f;
        taps ? ry_net_tap_view(net, k, &f) : ry_net_features(net, &f);
        for (size_t i = 0; i < (size_t)IMAGES * f.n_rows * l->c->feature_dim; i++)
            sum += 0.2 * (double)by[i] * (double)f.rows[i];
    }
    return sum;
}

static void loss_backward(const loss *l, ry_net *net)
{
    static float df[OUTPUTS];
    for (size_t i = 0; i < sizeof df / sizeof *df; i++) df[i] = 0.2f * l->by_feature[i];
    assert_ok(ry_net_backward(net, l->by_logit[0], ry_net_is_distilled(net) ? l->by_logit[1] : NULL,
                              l->c->feature_dim ? df : NULL, err));
}

/* The loss after moving a parameter by `by` along a direction. */
static double moved(const loss *l, ry_net *net, const ry_param *q, const float *keep,
                    const float *along, double by, int branch)
{
    float *value = ry_net_params(net)->value + q->offset;
    for (size_t i = 0; i < q->size; i++)
        value[i] = (float)((double)keep[i] + by * (double)along[i]);
    assert_ok(ry_net_update(net, err));
    const double sum = loss_value(l, net, branch);
    memcpy(value, keep, q->size * sizeof *value);
    return sum;
}

/* The derivative along a direction, extrapolated from differences at two distances. */
static double slope_along(const loss *l, ry_net *net, const ry_param *q, const float *keep,
                          const float *along, double e, int branch)
{
    const double d1 =
        moved(l, net, q, keep, along, e, branch) - moved(l, net, q, keep, along, -e, branch);
    const double d2 = moved(l, net, q, keep, along, 2 * e, branch) -
                      moved(l, net, q, keep, along, -2 * e, branch);
    return (8.0 * d1 - d2) / (12.0 * e);
}

static double length_of(const float *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static void check_along(const net_case *c, const loss *l, ry_net *net, const ry_param *q,
                        float *along, int branch)
{
    const float *grad = ry_net_params(net)->grad + q->offset;
    const double length = length_of(grad, q->size), norm = length_of(along, q->size);
    float *keep = malloc(q->size * sizeof *keep);
    double dot = 0.0;
    memcpy(keep, ry_net_params(net)->value + q->offset, q->size * sizeof *keep);
    for (size_t i = 0; i < q->size; i++) along[i] = (float)((double)along[i] / norm);
    for (size_t i = 0; i < q->size; i++) dot += (double)along[i] * (double)grad[i];
    const double slope = slope_along(l, net, q, keep, along, fmin(0.02, 0.2 / length), branch);
    if (!(fabs(dot - slope) < 1e-3 * length + 1e-5))
        fail_msg("%s %s: %s: %g, differences say %g (length %g)", c->arch,
                 c->policy ? c->policy : "none", q->name, dot, slope, length);
    free(keep);
}

/* Two directions: a random one and the gradient itself. */
static void check_param(const net_case *c, const loss *l, ry_net *net, const ry_param *q,
                        int branch)
{
    const float *grad = ry_net_params(net)->grad + q->offset;
    float *along = malloc(q->size * sizeof *along);
    if (!(length_of(grad, q->size) > 1e-6)) fail_msg("%s: %s has no gradient", c->policy, q->name);
    net_fill(along, q->size, 100 + (uint64_t)q->offset);
    check_along(c, l, net, q, along, branch);
    memcpy(along, grad, q->size * sizeof *along);
    check_along(c, l, net, q, along, branch);
    free(along);
}

static void check_case(const net_case *c, renyi_cpu level, int branch)
{
    static loss l;
    static replay cuts;
    const ry_net_options opt = {.level = level, .micro_batch = IMAGES, .n_threads = 1};
    const char *path = net_write(c);
    ry_net *net = net_open(c, path, &opt, IMAGES);
    ry_params *p = ry_net_params(net);
    loss_make(&l, c);
    replay_begin(&cuts, net);
    ry_net_zero_grad(net);
    (void)loss_value(&l, net, branch);
    loss_backward(&l, net);
    cuts.known = 1;
    for (uint32_t i = 0; i < p->n; i++) check_param(c, &l, net, &p->list[i], branch);
    ry_net_free(net);
    unlink(path);
}

/* oneDNN packs weights slowly, and here they change 8000 times. */
static renyi_cpu best_level_of_ours(void)
{
    return renyi_cpu_detect() < RENYI_CPU_AVX2 ? RENYI_CPU_SCALAR : RENYI_CPU_AVX2;
}

static void test_differences(void **state)
{
    (void)state;
#ifdef RENYI_SANITIZED
    const size_t step = 3; /* tenfold slower: a sample */
#else
    const size_t step = 1;
#endif
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k += step)
        check_case(&cases[k], best_level_of_ours(), k % 4 == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
