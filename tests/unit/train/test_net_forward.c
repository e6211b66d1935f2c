/* test_net_forward.c - the forward pass of training gives the logits of the engine, dense and with
 * every rule.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/net_fixture.h"

static const net_case cases[] = {
    {"vit_tiny_patch8_48", 2, NULL, 0, NULL},
    {"deit_tiny_distilled_patch8_48", 3, NULL, 0, NULL},
    {"vit_tiny_patch8_gap_48", 3, NULL, 0, NULL},
    {"vit_tiny_patch8_48", 3, NULL, 0, "avg"},
    {"vit_tiny_patch8_48", 3, NULL, 8, NULL},
    {"vit_tiny_patch8_48", 4, "naive p=5 layers=0-2 metric=cls", 0, NULL},
    {"vit_tiny_patch8_48", 4, "naive p=5 layers=all metric=col n=4", 0, NULL},
    {"vit_tiny_patch8_48", 4, "naive p=5 layers=0-2 metric=col n=4 at=end", 0, NULL},
    {"vit_tiny_patch8_48", 4, "naive p=5 layers=0-2 metric=random seed=3", 0, NULL},
    {"vit_tiny_patch8_48", 4, "naive p=5 layers=0-2 metric=renyi n=2", 0, NULL},
    {"vit_tiny_patch8_48", 4, "naive p=5 layers=0-2 metric=colv n=2", 0, NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.7 layers=0,1,2 metric=cls fuse", 0, NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.7 layers=0,2,3 metric=correct n=2 c=0.4 fuse", 8, NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.7 layers=0,2 metric=col n=3 fuse weights=score", 0,
     NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.7 layers=0,2 metric=col fuse at=end", 0, NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.7 layers=1,2 metric=col merge", 0, NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.6 layers=1,2 metric=random drop", 0, NULL},
    {"vit_tiny_patch8_48", 4, "mosaic keep=0.7 layers=0,1,2", 0, NULL},
    {"vit_tiny_patch8_48", 4, "mosaic keep=0.9,0.7,0.8 layers=1-3 alpha=1 omega=0.75 beta=0.9", 0,
     NULL},
    {"vit_tiny_patch8_48", 4, "tome r=4", 0, NULL},
    {"vit_tiny_patch8_gap_48", 4, "evit keep=0.7 layers=0,2 metric=col fuse", 0, NULL},
    {"vit_tiny_patch8_gap_48", 4, "mosaic keep=0.7 layers=0,1,2", 0, NULL},
    {"vit_tiny_patch8_gap_48", 4, "mosaic keep=0.7 layers=0-2 alpha=1 omega=0.75 beta=0.9", 0,
     NULL},
    {"vit_tiny_patch8_48", 4, "tome r=4", 0, "avg"},
    {"deit_tiny_distilled_patch8_48", 4, "evit keep=0.7 layers=0,1,3 fuse", 0, NULL},
    {"vit_tiny_patch8_clip_quickgelu_48", 3, NULL, 0, NULL},
    {"vit_tiny_patch8_clip_48", 4, "evit keep=0.7 layers=0,1,2 fuse", 0, NULL},
    {"vit_tiny_patch8_clip_48", 4, "mosaic keep=0.7 layers=0,1,2", 0, NULL},
    {.arch = "vit_tiny_patch8_48", 3, .variant = NET_GATED},
    {.arch = "vit_tiny_patch8_gap_48", 4, "mosaic keep=0.7 layers=0,2", .variant = NET_GATED},
    {.arch = "vit_tiny_patch8_48", 3, .variant = NET_CLASS_MEAN},
    {.arch = "vit_tiny_patch8_48", 4, "evit keep=0.7 layers=0,1 fuse", .variant = NET_CLASS_MEAN},
    {.arch = "vit_tiny_patch8_48",
     4,
     "mosaic keep=0.7 layers=0,1",
     .variant = NET_CLASS_MEAN | NET_GATED},
    {"vit_tiny_patch8_siglip_48", 3, NULL, 0, NULL},
    {"vit_tiny_patch8_siglip_48", 4, "evit keep=0.7 layers=0,1 metric=pool fuse", 0, NULL},
    {"vit_tiny_patch8_siglip_48", 4, "naive p=5 layers=0-2 metric=pool at=end", 0, NULL},
    {"vit_tiny_patch8_siglip_48", 4, "mosaic keep=0.7 layers=0,1,2", 0, NULL},
    {"vit_tiny_patch8_siglip_48", 4, "tome r=4", 0, NULL},
};

static void engine_logits(const net_case *c, const char *path, const float *chw, uint32_t n,
                          float *logits)
{
    renyi_model *m = NULL;
    renyi_session *s = NULL;
    const renyi_session_options so = {
        .struct_size = sizeof so, .max_batch = n, .policy = c->policy};
    assert_ok(renyi_model_open(&m, path, NULL, err));
    assert_ok(renyi_session_new(&s, m, &so, err));
    assert_ok(renyi_run_tensor(s, chw, n, logits, err));
    renyi_session_free(s);
    renyi_model_free(m);
}

static void net_logits(const net_case *c, const char *path, const float *chw, uint32_t n,
                       float *logits)
{
    float dist[NET_MAX_IMAGES * FIX_CLASSES];
    ry_net *net = net_open(c, path, NULL, n);
    const ry_net_batch batch = {.chw = chw, .n = n};
    assert_ok(ry_net_forward(net, &batch, logits, dist, err));
    if (ry_net_is_distilled(net))
        for (size_t i = 0; i < n * FIX_CLASSES; i++) logits[i] = 0.5f * (logits[i] + dist[i]);
    ry_net_free(net);
}

static void test_same_logits(void **state)
{
    static float chw[NET_MAX_IMAGES * 3 * NET_SIDE * NET_SIDE];
    float a[NET_MAX_IMAGES * FIX_CLASSES], b[NET_MAX_IMAGES * FIX_CLASSES];
    const uint32_t n = 3;
    (void)state;
    net_fill(chw, sizeof chw / sizeof *chw, 11);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *path = net_write(&cases[k]);
        engine_logits(&cases[k], path, chw, n, a);
        net_logits(&cases[k], path, chw, n, b);
        for (size_t i = 0; i < n * FIX_CLASSES; i++)
            if (!(fabsf(a[i] - b[i]) < 2e-4f * (1.0f + fabsf(a[i]))))
                fail_msg("%s %s: logit %zu is %g, the engine says %g", cases[k].arch,
                         cases[k].policy ? cases[k].policy : "none", i, (double)b[i], (double)a[i]);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_logits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
