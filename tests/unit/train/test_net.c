/* test_net.c - a net in training: the same bits for any number of threads, with saved or recomputed
 * activations, for a batch in one or two parts; loading, freezing, refused input, out of memory.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/net_fixture.h"
#include "fixtures/test_heap.h"
#include "train/net/net_state.h"

enum { IMAGES = 4, FEATURES = 6, ROWS = 36 };

static const net_case cases[] = {
    {"vit_tiny_patch8_48", 3, NULL, 0, NULL},
    {"deit_tiny_distilled_patch8_48", 3, "evit keep=0.6 layers=0,2 fuse", FEATURES, NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.6 layers=0,1 metric=col fuse weights=score", 0, NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.6 layers=0,1 metric=col fuse weights=score heads=each",
     0, NULL},
    {"vit_tiny_patch8_48", 4, "evit keep=0.6 layers=0,1 metric=col fuse at=end", 0, NULL},
    {"vit_tiny_patch8_48", 4, "mosaic keep=0.6 layers=0,1,2", 0, NULL},
    {"vit_tiny_patch8_gap_48", 3, "tome r=5", FEATURES, NULL},
    {"vit_tiny_patch8_clip_quickgelu_48", 3, "evit keep=0.6 layers=0,2 fuse", 0, NULL},
    {"vit_tiny_patch8_clip_48", 3, "mosaic keep=0.6 layers=0,1", FEATURES, NULL},
    {.arch = "vit_tiny_patch8_48", 3, "mosaic keep=0.6 layers=0,1", .variant = NET_GATED},
    {.arch = "vit_tiny_patch8_48",
     3,
     "evit keep=0.6 layers=0,1 fuse",
     FEATURES,
     .variant = NET_CLASS_MEAN},
    {.arch = "vit_tiny_patch8_48", 3, .variant = NET_CLASS_MEAN | NET_GATED},
    {"vit_tiny_patch8_siglip_48", 3, "evit keep=0.6 layers=0,2 metric=pool fuse", FEATURES, NULL},
    {"vit_tiny_patch8_siglip_48", 3, "tome r=5", 0, NULL},
};

typedef struct inputs {
    float chw[IMAGES * 3 * NET_SIDE * NET_SIDE];
    float dlogits[2][IMAGES * FIX_CLASSES];
    float dfeatures[IMAGES * ROWS * FEATURES];
    float branch[2 * 4 * IMAGES];
} inputs;

static inputs *make_inputs(void)
{
    static inputs in;
    net_fill(in.chw, sizeof in.chw / sizeof *in.chw, 1);
    net_fill(in.dlogits[0], IMAGES * FIX_CLASSES, 2);
    net_fill(in.dlogits[1], IMAGES * FIX_CLASSES, 3);
    net_fill(in.dfeatures, IMAGES * ROWS * FEATURES, 4);
    for (size_t i = 0; i < 2 * 4 * IMAGES; i++) in.branch[i] = i % 3 == 1 ? 0.0f : 1.5f;
    return &in;
}

/* Adds the gradients of images first .. first+n-1 to the net's. */
static void add_gradients(ry_net *net, const inputs *in, uint32_t first, uint32_t n, int branch)
{
    const size_t each = 3 * NET_SIDE * NET_SIDE;
    const ry_net_batch batch = {in->chw + first * each, n, branch ? in->branch : NULL};
    const int two = ry_net_is_distilled(net);
    float logits[2][IMAGES * FIX_CLASSES];
    ry_net_features_view f;
    assert_ok(ry_net_forward(net, &batch, logits[0], logits[1], err));
    ry_net_features(net, &f);
    const int features =
        ry_params_find(ry_net_params(net), (ry_tensor_role)RY_FEATURE_W, 0) != NULL;
    assert_ok(ry_net_backward(net, in->dlogits[0] + first * FIX_CLASSES,
                              two ? in->dlogits[1] + first * FIX_CLASSES : NULL,
                              features ? in->dfeatures + first * f.n_rows * FEATURES : NULL, err));
}

/* Every step of both passes has a ticket; with few_tickets the threads have to use them again. */
static float *grads_with(const net_case *c, const char *path, ry_net_options opt, int branch,
                         int few_tickets)
{
    ry_net *net = net_open(c, path, &opt, IMAGES);
    const ry_params *p = ry_net_params(net);
    if (few_tickets) net->team.n_tickets = 3;
    add_gradients(net, make_inputs(), 0, IMAGES, branch);
    if (!few_tickets) assert_true(net->team.n_steps <= net->team.n_tickets);
    float *copy = malloc(p->total * sizeof *copy);
    memcpy(copy, p->grad, p->total * sizeof *copy);
    ry_net_free(net);
    return copy;
}

static void test_same_bits(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *path = net_write(&cases[k]);
        for (int branch = 0; branch < 2; branch++) {
            const ry_net_options base = {.micro_batch = IMAGES, .n_threads = 1};
            float *a = grads_with(&cases[k], path, base, branch, 0);
            const ry_net_options others[] = {
                {.micro_batch = IMAGES, .n_threads = 3},
                {.micro_batch = IMAGES + 2, .n_threads = 2},
                {.micro_batch = IMAGES, .n_threads = 1, .checkpoint_activations = 1},
                {.micro_batch = IMAGES, .n_threads = 2, .checkpoint_activations = 1}};
            ry_net *net = net_open(&cases[k], path, &base, IMAGES);
            const size_t bytes = ry_net_params(net)->total * sizeof *a;
            ry_net_free(net);
            for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
                float *b = grads_with(&cases[k], path, others[o], branch, o % 2);
                if (memcmp(a, b, bytes) != 0)
                    fail_msg("%s %s: other bits with options %zu", cases[k].arch,
                             cases[k].policy ? cases[k].policy : "none", o);
                free(b);
            }
            free(a);
        }
        unlink(path);
    }
}

/* Two halves of a batch add up to the whole, except for rounding. */
static void test_micro_batches(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *path = net_write(&cases[k]);
        const ry_net_options opt = {.micro_batch = IMAGES, .n_threads = 1};
        float *whole = grads_with(&cases[k], path, opt, 0, 0);
        ry_net *net = net_open(&cases[k], path, &opt, IMAGES);
        const ry_params *p = ry_net_params(net);
        add_gradients(net, make_inputs(), 0, IMAGES / 2, 0);
        add_gradients(net, make_inputs(), IMAGES / 2, IMAGES / 2, 0);
        for (uint32_t i = 0; i < p->n; i++) {
            const ry_param *q = &p->list[i];
            float top = 0.0f;
            for (size_t e = q->offset; e < q->offset + q->size; e++)
                top = fmaxf(top, fabsf(whole[e]));
            for (size_t e = q->offset; e < q->offset + q->size; e++)
                if (!(fabsf(whole[e] - p->grad[e]) <= 2e-5f * top))
                    fail_msg("%s: %s differs in halves: %g, %g", cases[k].policy, q->name,
                             (double)whole[e], (double)p->grad[e]);
        }
        free(whole);
        ry_net_free(net);
        unlink(path);
    }
}

/* ---- loading ------------------------------------------------------------------------------- */

static void test_layouts(void **state)
{
    fixture f;
    const net_case c = {.arch = "deit_tiny_distilled_patch8_48", .n_blocks = 2};
    const inputs *in = make_inputs();
    const ry_net_batch batch = {.chw = in->chw, .n = 2};
    float a[2][2 * FIX_CLASSES], b[2][2 * FIX_CLASSES];
    (void)state;
    fix_make_deep(&f, c.arch, 2);
    const char *path = fix_write(&f, "timm.safetensors");
    ry_net *net = net_open(&c, path, NULL, 2);
    assert_ok(ry_net_forward(net, &batch, a[0], a[1], err));
    ry_net_free(net);
    unlink(path);
    fix_to_hf(&f, "deit.");
    path = fix_write(&f, "hf.safetensors");
    fix_free(&f);
    net = net_open(&c, path, NULL, 2);
    assert_ok(ry_net_forward(net, &batch, b[0], b[1], err));
    for (int k = 0; k < 2; k++) /* eps differs: 1e-6 and 1e-12 */
        for (size_t i = 0; i < 2 * FIX_CLASSES; i++)
            assert_true(fabsf(a[k][i] - b[k][i]) < 1e-3f * (1.0f + fabsf(a[k][i])));
    ry_net_free(net);
    unlink(path);
}

/* Another head or another image size: the head keeps the values of ry_net_init. */
static void test_new_head_and_size(void **state)
{
    const net_case c = {.arch = "vit_tiny_patch8_48", .n_blocks = 2};
    const ry_net_options opt = {.micro_batch = 1, .n_threads = 1};
    const char *path = net_write(&c);
    ry_checkpoint ckpt = {0};
    ry_vit_config config;
    ry_net *net = NULL;
    int new_head = -1;
    (void)state;
    assert_ok(ry_checkpoint_open(&ckpt, path, NULL, NULL, err));
    assert_ok(ry_vit_configure(&config, &ckpt, 64, err));
    config.n_classes = 3;
    assert_ok(ry_net_new(&net, &config, &opt, NULL, err));
    const ry_params *p = ry_net_params(net);
    ry_net_init(net, 5);
    const ry_param *head = ry_params_find(p, RY_HEAD_W, 0),
                   *pos = ry_params_find(p, RY_POS_EMBED, 0);
    const float first = p->value[head->offset];
    assert_true(first != 0.0f && fabsf(first) <= 0.04f);
    assert_ok(ry_net_load(net, &ckpt, &new_head, err));
    assert_int_equal(new_head, 1);
    assert_true(p->value[head->offset] == first);
    assert_int_equal(head->shape[0], 3);
    assert_int_equal(pos->shape[1], 65);
    assert_int_equal(ry_net_patches(net), 64);
    ry_net_free(net);

    renyi_error e = {0};
    config.n_blocks = 3;
    assert_ok(ry_net_new(&net, &config, &opt, NULL, err));
    assert_int_equal(ry_net_load(net, &ckpt, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "2 blocks");
    ry_net_free(net);
    ry_checkpoint_close(&ckpt, NULL);
    unlink(path);
}

/* ---- parameters ---------------------------------------------------------------------------- */

static void test_params(void **state)
{
    const net_case c = {.arch = "vit_tiny_patch8_48", .n_blocks = 2, .feature_dim = FEATURES};
    const char *path = net_write(&c);
    ry_net *net = net_open(&c, path, NULL, 1);
    const ry_params *p = ry_net_params(net);
    size_t end = 0, decayed = 0, helps = 0;
    (void)state;
    for (uint32_t i = 0; i < p->n; i++) {
        const ry_param *q = &p->list[i];
        assert_true(q->offset >= end && q->offset % 16 == 0);
        for (size_t e = end; e < q->offset; e++) assert_true(p->value[e] == 0.0f);
        end = q->offset + q->size;
        decayed += q->decay != 0;
        helps += !q->is_model;
        assert_int_equal(q->decay, strstr(q->name, "weight") && !strstr(q->name, "norm"));
    }
    assert_true(end <= p->total);
    assert_int_equal(decayed, 2 * 4 + 3); /* of each block; patches, head, features */
    assert_int_equal(helps, 2);
    ry_net_init(net, 9);
    const float a = p->value[p->list[0].offset];
    ry_net_init(net, 9);
    assert_true(p->value[p->list[0].offset] == a);
    ry_net_init(net, 10);
    assert_true(p->value[p->list[0].offset] != a);
    ry_net_free(net);
    unlink(path);
}

/* Gradients of frozen pairs do not change; the others get the same bits. */
static void test_frozen(void **state)
{
    const net_case *c = &cases[1];
    const char *path = net_write(c);
    const ry_net_options opt = {.micro_batch = IMAGES, .n_threads = 1};
    float *all = grads_with(c, path, opt, 0, 0);
    (void)state;
    for (uint32_t from = 0; from < 4;
         from++) { /* blocks below `from` are frozen; 3 = all of them */
        ry_net *net = net_open(c, path, &opt, IMAGES);
        const ry_params *p = ry_net_params(net);
        for (uint32_t i = 0; i < p->n; i++) {
            ry_param *q = &p->list[i];
            const int in_block = q->role >= RY_NORM1_W && q->role <= RY_FC2_B;
            q->frozen = in_block ? q->block < from : q->role <= RY_PATCH_B;
        }
        add_gradients(net, make_inputs(), 0, IMAGES, 0);
        for (uint32_t i = 0; i < p->n; i++) {
            const ry_param *q = &p->list[i];
            for (size_t e = q->offset; e < q->offset + q->size; e++)
                assert_true(p->grad[e] == (q->frozen ? 0.0f : all[e]));
        }
        ry_net_free(net);
    }
    free(all);
    unlink(path);
}

/* ---- errors ------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    const net_case c = {.arch = "vit_tiny_patch8_48", .n_blocks = 2};
    const char *path = net_write(&c);
    ry_net *net = net_open(&c, path, NULL, 2), *none = NULL;
    const inputs *in = make_inputs();
    float logits[2 * FIX_CLASSES];
    const ry_net_batch three = {.chw = in->chw, .n = 3}, one = {.chw = in->chw, .n = 1};
    ry_policy policy;
    renyi_error e = {0};
    (void)state;
    assert_int_equal(ry_net_forward(net, &three, logits, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "1 to 2");
    assert_int_equal(ry_net_backward(net, in->dlogits[0], NULL, NULL, &e), RENYI_ERR_ARG);
    assert_says(&e, "forward");
    assert_ok(ry_net_forward(net, &one, logits, NULL, err));
    assert_int_equal(ry_net_backward(net, NULL, NULL, in->dfeatures, &e), RENYI_ERR_ARG);
    assert_says(&e, "features");
    assert_ok(ry_policy_for(&policy, "ats keep=0.5 layers=0", ry_net_config(net), 36, err));
    assert_int_equal(ry_net_prune(net, &policy, &e), RENYI_ERR_UNSUPPORTED);
    assert_says(&e, "ats");
    ry_vit_config config = *ry_net_config(net);
    const ry_net_options int8 = {.dtype = RENYI_DTYPE_INT8, .level = RENYI_CPU_SCALAR};
    const ry_net_options bf16 = {.dtype = RENYI_DTYPE_BF16, .level = RENYI_CPU_SCALAR};
    const ry_net_options plain = {0};
    assert_int_equal(ry_net_new(&none, &config, &int8, NULL, &e), RENYI_ERR_UNSUPPORTED);
    assert_int_equal(ry_net_new(&none, &config, &bf16, NULL, &e), RENYI_ERR_UNSUPPORTED);
    assert_says(&e, "bf16");
    const ry_net_options best = {.dtype = RENYI_DTYPE_AUTO, .level = RENYI_CPU_SCALAR};
    assert_ok(ry_net_new(&none, &config, &best, NULL, err));
    ry_net_free(none);
    config.n_classes = 0;
    assert_int_equal(ry_net_new(&none, &config, &plain, NULL, &e), RENYI_ERR_ARG);
    assert_null(none);
    ry_net_free(net);
    ry_net_free(NULL);
    unlink(path);
}

static void test_prune_between(void **state)
{
    const net_case c = {.arch = "vit_tiny_patch8_48", .n_blocks = 4};
    const char *path = net_write(&c);
    const ry_net_options opt = {.micro_batch = IMAGES, .n_threads = 2};
    ry_net *net = net_open(&c, path, &opt, IMAGES);
    const ry_params *p = ry_net_params(net);
    const double dense = ry_net_macs(net);
    const char *const texts[] = {"evit keep=0.9 layers=0,1,2", "evit keep=0.5 layers=0,1,2",
                                 "evit keep=1 layers=0,1,2"};
    float *fresh = NULL;
    ry_policy policy;
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        net_case same = c;
        same.policy = texts[k];
        fresh = grads_with(&same, path, opt, 0, 0);
        assert_ok(ry_policy_for(&policy, texts[k], ry_net_config(net), 36, err));
        assert_ok(ry_net_prune(net, &policy, err));
        assert_true(k == 2 ? ry_net_macs(net) == dense : ry_net_macs(net) < dense);
        ry_net_zero_grad(net);
        add_gradients(net, make_inputs(), 0, IMAGES, 0);
        assert_memory_equal(fresh, p->grad, p->total * sizeof *fresh);
        free(fresh);
    }
    assert_true(ry_net_activation_bytes(net) > 0);
    ry_net_free(net);
    unlink(path);
}

/* Every allocation fails once: an error, and nothing leaks. */
static void test_short_memory(void **state)
{
    const net_case c = {.arch = "vit_tiny_patch8_48", .n_blocks = 2};
    const char *path = net_write(&c);
    const ry_net_options opt = {
        .micro_batch = 1, .n_threads = 1, .level = RENYI_CPU_SCALAR, .feature_dim = 4};
    ry_checkpoint ckpt = {0};
    ry_vit_config config;
    ry_policy policy;
    (void)state;
    assert_ok(ry_checkpoint_open(&ckpt, path, NULL, NULL, err));
    assert_ok(ry_vit_configure(&config, &ckpt, 0, err));
    assert_ok(ry_policy_for(&policy, "mosaic keep=0.5 layers=0,1", &config, 36, err));
    renyi_status st = RENYI_ERR_NOMEM;
    for (size_t at = 1; st != RENYI_OK; at++) {
        test_heap heap = {.fail_at = at};
        const renyi_allocator al = test_heap_of(&heap);
        ry_net *net = NULL;
        st = ry_net_new(&net, &config, &opt, &al, NULL);
        if (!st) st = ry_net_load(net, &ckpt, NULL, NULL);
        if (!st) st = ry_net_prune(net, &policy, NULL);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        ry_net_free(net);
        assert_int_equal(heap.live, 0);
    }
    ry_checkpoint_close(&ckpt, NULL);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),    cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_layouts),      cmocka_unit_test(test_new_head_and_size),
        cmocka_unit_test(test_params),       cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_prune_between),
        cmocka_unit_test(test_short_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
