/* test_cascade_run.c - whole runs of cascades: the bits of the first or the second policy alone,
 * their mean, the same bits for any batch and any number of threads, costs, and refusals.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "engine/core/cascade_run.h"
#include "fixtures/test_heap.h"
#include "fixtures/vit_fixture.h"

#include <math.h>

enum { SIDE = 64, BLOCKS = 5, CLASSES = 10, BATCH = 7 };
enum { IMAGE_BYTES = SIDE * SIDE * 3, N_LOGITS = BATCH * CLASSES };

static char path[512];
static uint8_t pixels[BATCH * IMAGE_BYTES];

static int make_model(void **state)
{
    (void)state;
    const renyi_init_options opt = {.struct_size = sizeof opt,
                                    .seed = 11,
                                    .n_classes = CLASSES,
                                    .dim = 48,
                                    .n_blocks = BLOCKS,
                                    .n_heads = 3,
                                    .mlp_dim = 100};
    snprintf(path, sizeof path, "%s", fix_path("cascade.safetensors"));
    assert_ok(renyi_model_init_file(path, "vit_tiny_patch8_64", &opt, err));
    for (size_t i = 0; i < BATCH; i++)
        for (size_t k = 0; k < IMAGE_BYTES; k++)
            pixels[i * IMAGE_BYTES + k] = (uint8_t)(90 + k * k % (1 + 50 * i) + (k / 3 % SIDE) * i);
    return 0;
}

static int remove_model(void **state)
{
    (void)state;
    return unlink(path);
}

static renyi_model *open_model(renyi_cpu cpu)
{
    renyi_model *m = NULL;
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = cpu};
    assert_ok(renyi_model_open(&m, path, &opt, err));
    return m;
}

static renyi_session *open_session(const renyi_model *m, const char *policy, uint32_t batch,
                                   uint32_t threads)
{
    renyi_session *s = NULL;
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .max_batch = batch, .n_threads = threads, .policy = policy};
    assert_ok(renyi_session_new(&s, m, &opt, err));
    return s;
}

/* Runs all images, `batch` at a time. Returns how many needed two passes. */
static uint32_t run_all(const renyi_model *m, const char *policy, uint32_t batch, uint32_t threads,
                        float *logits)
{
    renyi_session *s = open_session(m, policy, batch, threads);
    uint32_t twice = 0;
    assert_int_equal(renyi_session_passes(s, 0), 0);
    for (uint32_t i = 0; i < BATCH; i += batch) {
        const uint32_t n = BATCH - i < batch ? BATCH - i : batch;
        assert_ok(renyi_run_pixels(s, pixels + i * IMAGE_BYTES, n, logits + i * CLASSES, err));
        assert_true(renyi_session_last_macs(s) <= renyi_session_macs(s) * (1 + 1e-12));
        for (uint32_t k = 0; k < n; k++) twice += renyi_session_passes(s, k) == 2;
        assert_int_equal(renyi_session_passes(s, n), 0);
    }
    renyi_session_free(s);
    return twice;
}

#define ALWAYS "999999999999999"

/* First and second policies: cuts from block 0, 1, 2 on, merging, dropping, adaptive counts, random
 * choices, and none. */
static const struct {
    const char *first, *second;
} pairs[] = {
    {"mosaic keep=0.5 layers=2,3", "mosaic keep=0.9 layers=2,3 alpha=1 omega=0.75 beta=0.9"},
    {"mosaic keep=0.5 layers=0,3", "none"},
    {"evit keep=0.5 layers=1,3 metric=col", "evit keep=0.8 layers=3 metric=random seed=5"},
    {"evit keep=0.5 layers=1 metric=random", "naive p=8 layers=0-2 metric=random"},
    {"ats keep=0.5 layers=1,2", "ats keep=0.8 layers=2"},
    {"tome r=9", "ats keep=0.8 layers=2"},
    {"ats keep=0.8 layers=2", "tome r=3"},
    {"none", "none"},
};

static const char *cascade_text(size_t i, const char *margin, const char *combine)
{
    static char text[RENYI_POLICY_MAX];
    snprintf(text, sizeof text, "cascade(%s -> %s if margin < %s) combine=%s", pairs[i].first,
             pairs[i].second, margin, combine);
    return text;
}

static void ends(void **state)
{
    (void)state;
    for (int cpu = RENYI_CPU_SCALAR; cpu <= (int)renyi_cpu_detect(); cpu++) {
        renyi_model *m = open_model((renyi_cpu)cpu);
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            float first[N_LOGITS], second[N_LOGITS], got[N_LOGITS];
            run_all(m, pairs[i].first, BATCH, 2, first);
            run_all(m, pairs[i].second, BATCH, 2, second);
            assert_int_equal(run_all(m, cascade_text(i, "0", "second"), BATCH, 2, got), 0);
            assert_memory_equal(got, first, sizeof got); /* always sure */
            assert_int_equal(run_all(m, cascade_text(i, ALWAYS, "second"), BATCH, 2, got), BATCH);
            assert_memory_equal(got, second, sizeof got); /* never sure */
            assert_int_equal(run_all(m, cascade_text(i, ALWAYS, "mean"), 3, 1, got), BATCH);
            for (int k = 0; k < N_LOGITS; k++) assert_true(got[k] == 0.5f * (first[k] + second[k]));
        }
        renyi_model_free(m);
    }
}

/* A threshold between the margins: each image has the logits of the pass that answered it, for any
 * batch and any number of threads. */
static void same_bits(void **state)
{
    (void)state;
    renyi_model *m = open_model(RENYI_CPU_AUTO);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        float first[N_LOGITS], second[N_LOGITS], got[N_LOGITS];
        double margins[BATCH], threshold = 0;
        char margin[32];
        uint32_t unsure = 0;
        run_all(m, pairs[i].first, BATCH, 1, first);
        run_all(m, pairs[i].second, BATCH, 1, second);
        for (int k = 0; k < BATCH; k++) {
            margins[k] = ry_logit_margin(first + k * CLASSES, CLASSES);
            threshold += margins[k] / BATCH;
        }
        snprintf(margin, sizeof margin, "%.9f", threshold);
        threshold = strtod(margin, NULL);
        for (int k = 0; k < BATCH; k++) {
            unsure += margins[k] < threshold;
            if (margins[k] < threshold)
                memcpy(first + k * CLASSES, second + k * CLASSES, CLASSES * sizeof *first);
        }
        assert_true(unsure > 0 && unsure < BATCH);
        for (uint32_t v = 0; v < 8; v++) {
            const char *text = cascade_text(i, margin, "second");
            assert_int_equal(run_all(m, text, 1 + v, 1 + v % 4, got), unsure);
            assert_memory_equal(got, first, sizeof got);
        }
    }
    renyi_model_free(m);
}

/* Costs: at least the first pass, at most both without the blocks that they share. */
static void costs(void **state)
{
    (void)state;
    renyi_model *m = open_model(RENYI_CPU_AUTO);
    const char *text = cascade_text(0, "0", "second");
    renyi_cost first, second, both, dense;
    renyi_layer_cost layers[BLOCKS];
    assert_ok(renyi_policy_cost(m, NULL, pairs[0].first, &first, NULL, 0, err));
    assert_ok(renyi_policy_cost(m, NULL, pairs[0].second, &second, NULL, 0, err));
    assert_ok(renyi_policy_cost(m, NULL, "none", &dense, layers, BLOCKS, err));
    assert_ok(renyi_policy_cost(m, NULL, text, &both, NULL, 0, err));
    const double shared = dense.embed.macs_executed + layers[0].macs_executed +
                          layers[1].macs_executed; /* both cut in block 2 first */
    assert_true(first.second.macs == 0 && both.second.macs > 0);
    assert_true(fabs(both.second.macs_executed - (second.total.macs_executed - shared)) < 1);
    assert_true(
        fabs(both.total.macs_executed - first.total.macs_executed - both.second.macs_executed) < 1);
    assert_true(both.total.n_params == first.total.n_params);

    float logits[N_LOGITS];
    renyi_session *s = open_session(m, text, BATCH, 2);
    assert_true(fabs(renyi_session_macs(s) - both.total.macs_executed) < 1);
    assert_ok(renyi_run_pixels(s, pixels, BATCH, logits, err));
    assert_true(fabs(renyi_session_last_macs(s) - first.total.macs_executed) < 1);
    renyi_session_free(s);
    s = open_session(m, cascade_text(0, ALWAYS, "second"), BATCH, 2);
    assert_ok(renyi_run_pixels(s, pixels, BATCH, logits, err));
    assert_true(fabs(renyi_session_last_macs(s) - both.total.macs_executed) < 1);
    assert_non_null(strstr(renyi_session_policy(s), "cascade(mosaic keep=0.5"));
    assert_true(renyi_session_bytes(s) > 0);
    renyi_session_free(s);
    renyi_model_free(m);
}

static void margins(void **state)
{
    (void)state;
    assert_true(ry_logit_margin((float[]){1, 4, 2.5f}, 3) == 1.5);
    assert_true(ry_logit_margin((float[]){4, 4, 2}, 3) == 0);
    assert_true(ry_logit_margin((float[]){-3}, 1) == INFINITY);
    assert_true(isnan(ry_logit_margin((float[]){1, NAN, 2}, 3)));
    assert_true(isnan(ry_logit_margin((float[]){INFINITY, INFINITY}, 2)));
    /* what is not a number is not sure, even below margin < 0 */
    uint32_t unsure[3];
    ry_cascade_run c = {.margin = 0, .n_outputs = 2, .unsure = unsure};
    ry_cascade_decide(&c, (float[]){1, 2, NAN, 1, 3, 3}, 3);
    assert_int_equal(c.n_unsure, 1);
    assert_int_equal(unsure[0], 1);
}

/* Input as normalized tensors and as images goes through the same code. */
static void other_inputs(void **state)
{
    (void)state;
    renyi_model *m = open_model(RENYI_CPU_AUTO);
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    float want[N_LOGITS], got[N_LOGITS], *chw = malloc(BATCH * IMAGE_BYTES * sizeof *chw);
    renyi_session *s = open_session(m, cascade_text(0, ALWAYS, "second"), BATCH, 2);
    renyi_session *alone = open_session(m, pairs[0].second, BATCH, 2);
    renyi_image_normalize(chw, pixels, BATCH, &info.preprocess);
    assert_ok(renyi_run_tensor(alone, chw, BATCH, want, err));
    assert_ok(renyi_run_tensor(s, chw, BATCH, got, err));
    assert_memory_equal(got, want, sizeof got);
    renyi_image images[BATCH];
    for (size_t i = 0; i < BATCH; i++)
        images[i] = (renyi_image){.rgb = pixels + i * IMAGE_BYTES, .width = SIDE, .height = SIDE};
    assert_ok(renyi_run(alone, images, BATCH, want, err));
    assert_ok(renyi_run(s, images, BATCH, got, err));
    assert_memory_equal(got, want, sizeof got);
    renyi_session_free(alone);
    renyi_session_free(s);
    renyi_model_free(m);
    free(chw);
}

static int stop_in_second(void *user, uint64_t done, uint64_t total)
{
    uint32_t *calls = user;
    (void)done;
    (void)total;
    return ++*calls > BLOCKS + 1;
}

static void refusals(void **state)
{
    (void)state;
    renyi_model *m = open_model(RENYI_CPU_AUTO);
    renyi_session *s = NULL;
    renyi_error why = {0};
    renyi_session_options o = {.struct_size = sizeof o, .policy = cascade_text(0, "1", "mean")};
    o.trace = 1;
    assert_int_equal(renyi_session_new(&s, m, &o, &why), RENYI_ERR_ARG);
    assert_non_null(strstr(why.message, "trace"));
    o.trace = 0;
    o.output = RENYI_OUTPUT_EMBEDDING;
    assert_int_equal(renyi_session_new(&s, m, &o, &why), RENYI_ERR_ARG);
    assert_non_null(strstr(why.message, "decides by the logits"));
    assert_null(s);
    o.output = RENYI_OUTPUT_AUTO;
    /* the callback can stop the second pass */
    uint32_t calls = 0;
    float logits[CLASSES];
    o.policy = cascade_text(0, ALWAYS, "mean");
    o.progress = stop_in_second;
    o.progress_user = &calls;
    assert_ok(renyi_session_new(&s, m, &o, err));
    assert_int_equal(renyi_run_pixels(s, pixels, 1, logits, &why), RENYI_ERR_ABORTED);
    assert_int_equal(renyi_session_passes(s, 0), 0);
    renyi_session_free(s);
    renyi_model_free(m);
}

/* Every allocation fails once: the call reports it, and nothing leaks. */
static void no_memory(void **state)
{
    (void)state;
    test_heap heap = {0};
    const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(&heap)};
    renyi_model *m = NULL;
    renyi_session *s = NULL;
    assert_ok(renyi_model_open(&m, path, &opt, err));
    const size_t before = heap.live;
    size_t calls = 0;
    for (renyi_status st = RENYI_ERR_NOMEM; st; calls++) {
        const renyi_session_options o = {.struct_size = sizeof o,
                                         .max_batch = 3,
                                         .n_threads = 2,
                                         .n_streams = 2,
                                         .policy = cascade_text(2, "1", "mean")};
        heap.fail_at = heap.calls + calls + 1;
        st = renyi_session_new(&s, m, &o, NULL);
        if (st) assert_int_equal(st, RENYI_ERR_NOMEM);
        if (st) assert_int_equal(heap.live, before);
    }
    assert_true(calls > 20); /* both passes of both streams */
    heap.fail_at = 0;
    renyi_session_free(s);
    renyi_model_free(m);
    assert_int_equal(heap.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),      cmocka_unit_test(same_bits),    cmocka_unit_test(costs),
        cmocka_unit_test(margins),   cmocka_unit_test(other_inputs), cmocka_unit_test(refusals),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, make_model, remove_model);
}
