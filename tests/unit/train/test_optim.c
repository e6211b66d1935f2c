/* test_optim.c - AdamW and clipping against numbers that PyTorch 2 gave (AdamW, foreach=False;
 * clip_grad_norm_ at 1), the same bits for any threads and CPU level, frozen parameters, the
 * running mean, a state that another optimizer continues.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/test_heap.h"
#include "train/run/optim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

/* ---- parameters of a test ------------------------------------------------------------------ */

enum { MAX_PARAMS = 8 };

typedef struct set {
    ry_param list[MAX_PARAMS];
    ry_params p;
} set;

static void add(set *s, size_t size, ry_tensor_role role, uint32_t block, int decay)
{
    s->p.list = s->list;
    s->list[s->p.n++] = (ry_param){
        .offset = s->p.total, .size = size, .role = role, .block = block, .decay = decay};
    s->p.total += (size + 15) / 16 * 16;
}

static void make_blocks(set *s)
{
    s->p.value = calloc(s->p.total, sizeof(float));
    s->p.grad = calloc(s->p.total, sizeof(float));
}

static void free_set(set *s)
{
    free(s->p.value);
    free(s->p.grad);
}

static ry_optim *new_optim(set *s, const ry_optim_options *opt)
{
    ry_optim *o;
    renyi_error err = {0};
    if (ry_optim_new(&o, &s->p, opt, NULL, &err)) fail_msg("%s", err.message);
    return o;
}

/* ---- PyTorch's numbers --------------------------------------------------------------------- */

static float value(int i) { return (float)((i * 7) % 11 - 5) / 4.0f; }
static float gradient(int t, int i) { return (float)((i * 5 + t * 3) % 13 - 6) / 8.0f; }

static void near(const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-7f * (1.0f + fabsf(want[i]))))
            fail_msg("element %zu: %.9g, PyTorch %.9g", i, (double)got[i], (double)want[i]);
}

static void test_torch(void **state)
{
    static const double lr[] = {1e-2, 3e-2, 2e-2, 1e-3, 5e-2};
    static const double norm[] = {1.5, 1.38631713, 1.29903817, 1.39754248, 1.52069068};
    static const float p[] = {-1.19686162f, 0.485448599f,   -0.483062655f,
                              1.28825104f,  0.231240481f,   -0.778852642f,
                              1.02445805f,  -0.0564400703f, -0.933741391f};
    static const float m[] = {0.0209446941f,  -0.010039134f,  -0.0162918493f,
                              -0.0137052331f, -0.0391546898f, 0.0559174903f,
                              -0.0461437963f, 0.0330546498f,  -0.0498099029f};
    static const float v[] = {0.0289001912f, 0.0229738392f, 0.0238729082f,
                              0.0244907718f, 0.0243208688f, 0.0261414871f,
                              0.0248854738f, 0.0235087834f, 0.0271244217f};
    const float scale = 4.0f; /* gradients of a batch of 4 that were added up */
    ry_optim_options opt = ry_optim_defaults();
    set s = {0};
    (void)state;
    add(&s, 6, RY_QKV_W, 0, 1);
    add(&s, 3, RY_QKV_B, 0, 0);
    make_blocks(&s);
    opt.beta2 = 0.95, opt.eps = 1e-3, opt.weight_decay = 0.05;
    ry_optim *o = new_optim(&s, &opt);
    for (int i = 0; i < 9; i++) s.p.value[i < 6 ? i : i + 10] = value(i);
    for (int t = 0; t < 5; t++) {
        for (int i = 0; i < 9; i++) s.p.grad[i < 6 ? i : i + 10] = scale * gradient(t, i);
        const double length = ry_optim_norm(o, 0.25);
        assert_true(fabs(length - norm[t]) < 1e-7);
        ry_optim_step(o, lr[t], 0.25 * ry_optim_clip(length, 1.0));
    }
    assert_int_equal(o->step, 5);
    const float *const got[] = {s.p.value, o->m, o->v}, *const want[] = {p, m, v};
    for (int k = 0; k < 3; k++) {
        near(got[k], want[k], 6);
        near(got[k] + 16, want[k] + 6, 3);
        for (int i = 6; i < 16; i++) assert_true(got[k][i] == 0.0f); /* the gap */
    }
    ry_optim_free(o);
    free_set(&s);
}

static void test_clip(void **state)
{
    (void)state;
    assert_true(ry_optim_clip(0.5, 1.0) == 1.0);
    assert_true(ry_optim_clip(0.0, 1.0) == 1.0);
    assert_true(ry_optim_clip(1e9, 0.0) == 1.0); /* off */
    assert_true(fabs(ry_optim_clip(4.0, 1.0) - 0.25) < 1e-6);
    assert_true(ry_optim_clip(INFINITY, 1.0) == 0.0);
    assert_true(isnan(ry_optim_clip(NAN, 1.0)));
}

/* ---- a larger set: chunks, threads, levels ------------------------------------------------- */

static float noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 11) * 0x1p-53 - 0.5);
}

static void make_large(set *s)
{
    memset(s, 0, sizeof *s);
    add(s, 40001, RY_PATCH_W, 0, 1);
    add(s, 33, RY_QKV_B, 0, 0);
    add(s, 70000, RY_FC1_W, 1, 1);
    add(s, 17, RY_HEAD_B, 0, 0);
    make_blocks(s);
}

/* Eight updates with EMA; the last four by an optimizer that takes over the state of the first. */
static void run_large(set *s, float *ema, const ry_optim_options *opt, int moves)
{
    uint64_t seed = 1;
    for (size_t i = 0; i < s->p.total; i++) s->p.value[i] = noise(&seed);
    ry_optim *o = new_optim(s, opt);
    ry_optim_layer_decay(o, 0.75);
    for (int t = 0; t < 8; t++) {
        for (size_t i = 0; i < s->p.total; i++) s->p.grad[i] = noise(&seed);
        ry_optim_step(o, 1e-3, ry_optim_clip(ry_optim_norm(o, 1.0), 1.0));
        ry_optim_average(o, 0.9);
        if (t != 3 || !moves) continue;
        ry_optim *other = new_optim(s, opt);
        ry_optim_layer_decay(other, 0.75);
        other->step = o->step;
        memcpy(other->m, o->m, s->p.total * sizeof(float));
        memcpy(other->v, o->v, s->p.total * sizeof(float));
        memcpy(other->ema, o->ema, s->p.total * sizeof(float));
        ry_optim_free(o);
        o = other;
    }
    memcpy(ema, o->ema, s->p.total * sizeof(float));
    ry_optim_free(o);
}

static void test_same_bits(void **state)
{
    ry_optim_options opt = ry_optim_defaults();
    set a, b;
    (void)state;
    make_large(&a);
    make_large(&b);
    float *ema_a = calloc(a.p.total, sizeof(float)), *ema_b = calloc(a.p.total, sizeof(float));
    opt.average = 1, opt.weight_decay = 0.1, opt.level = RENYI_CPU_SCALAR;
    run_large(&a, ema_a, &opt, 0);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            opt.level = (renyi_cpu)level, opt.n_threads = threads;
            run_large(&b, ema_b, &opt, threads > 1);
            assert_memory_equal(a.p.value, b.p.value, a.p.total * sizeof(float));
            assert_memory_equal(ema_a, ema_b, a.p.total * sizeof(float));
        }
    free(ema_a), free(ema_b);
    free_set(&a), free_set(&b);
}

static void test_frozen(void **state)
{
    ry_optim_options opt = ry_optim_defaults();
    uint64_t seed = 5;
    set s;
    (void)state;
    make_large(&s);
    s.list[2].frozen = 1;
    opt.weight_decay = 0.1, opt.average = 1;
    for (size_t i = 0; i < s.p.total; i++) s.p.value[i] = noise(&seed), s.p.grad[i] = 1.0f;
    ry_optim *o = new_optim(&s, &opt);
    float *before = malloc(s.p.total * sizeof(float));
    memcpy(before, s.p.value, s.p.total * sizeof(float));
    assert_true(fabs(ry_optim_norm(o, 1.0) - sqrt(40001 + 33 + 17)) < 1e-9);
    s.p.grad[s.list[2].offset] = NAN; /* not read: frozen */
    assert_false(isnan(ry_optim_norm(o, 1.0)));
    ry_optim_step(o, 1e-2, 1.0);
    const size_t at = s.list[2].offset;
    assert_memory_equal(s.p.value + at, before + at, s.list[2].size * sizeof(float));
    for (size_t i = 0; i < s.list[2].size; i++) assert_true(o->m[at + i] == 0 && o->v[at + i] == 0);
    for (size_t i = 0; i < s.list[0].size; i++) assert_true(s.p.value[i] != before[i]);
    s.p.grad[0] = INFINITY;
    assert_true(isinf(ry_optim_norm(o, 1.0)));
    s.p.grad[0] = NAN;
    assert_true(isnan(ry_optim_norm(o, 1.0)));
    free(before);
    ry_optim_free(o);
    free_set(&s);
}

static void test_average(void **state)
{
    ry_optim_options opt = ry_optim_defaults();
    set s = {0};
    (void)state;
    add(&s, 2, RY_HEAD_B, 0, 0);
    make_blocks(&s);
    s.p.value[0] = 0.1f, s.p.value[1] = 1.0f;
    opt.average = 1;
    ry_optim *o = new_optim(&s, &opt);
    s.p.value[1] = 2.0f;
    for (int t = 0; t < 10000; t++) ry_optim_average(o, 0.9999);
    assert_true(o->ema[0] == 0.1f); /* a constant weight has a constant mean */
    assert_true(fabsf(o->ema[1] - (2.0f - (float)pow(0.9999, 10000))) < 2e-4f);
    ry_optim_free(o);
    opt.average = 0;
    o = new_optim(&s, &opt);
    assert_null(o->ema);
    ry_optim_average(o, 0.5);
    ry_optim_free(o);
    free_set(&s);
}

static void test_layers(void **state)
{
    static const ry_tensor_role roles[] = {RY_CLS_TOKEN, RY_PATCH_B, RY_NORM1_W,  RY_FC2_B,
                                           RY_NORM_W,    RY_HEAD_W,  RY_FEATURE_W};
    static const uint32_t blocks[] = {0, 0, 0, 2, 0, 0, 0}, layers[] = {0, 0, 1, 3, 4, 4, 4};
    ry_optim_options opt = ry_optim_defaults();
    set s = {0};
    (void)state;
    for (int i = 0; i < 7; i++) add(&s, 3, roles[i], blocks[i], 0);
    make_blocks(&s);
    ry_optim *o = new_optim(&s, &opt);
    for (int i = 0; i < 7; i++) assert_true(o->lr_scale[i] == 1.0);
    ry_optim_layer_decay(o, 0.5);
    for (int i = 0; i < 7; i++) assert_true(o->lr_scale[i] == ldexp(1.0, (int)layers[i] - 4));
    for (size_t i = 0; i < s.p.total; i++) s.p.grad[i] = 1.0f;
    ry_optim_step(o, 0.1, 1.0); /* the first step has the length of the learning rate */
    for (int i = 0; i < 7; i++)
        assert_true(fabs((double)s.p.value[s.list[i].offset] + 0.1 * o->lr_scale[i]) < 1e-6);
    ry_optim_free(o);
    free_set(&s);
}

static void test_nomem(void **state)
{
    ry_optim_options opt = ry_optim_defaults();
    set s;
    (void)state;
    make_large(&s);
    opt.average = 1;
    for (size_t fail = 1;; fail++) {
        test_heap heap = {.fail_at = fail};
        const renyi_allocator al = test_heap_of(&heap);
        renyi_error err = {0};
        ry_optim *o;
        const renyi_status st = ry_optim_new(&o, &s.p, &opt, &al, &err);
        if (st) {
            assert_int_equal(st, RENYI_ERR_NOMEM);
            assert_null(o);
        }
        ry_optim_free(o);
        assert_int_equal(heap.live, 0);
        if (!st) break;
        assert_true(fail < 20);
    }
    free_set(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch),     cmocka_unit_test(test_clip),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_average),   cmocka_unit_test(test_layers),
        cmocka_unit_test(test_nomem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
