/* test_adaptive_run.c - whole runs whose token counts depend on the image (the rule ats): the same
 * bits for any batch and any number of threads, counts within the budget, a consistent trace, and
 * the logits of a plan with fixed counts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/model_handle.h"
#include "fixtures/vit_fixture.h"
#include "image/patches.h"
#include "model/vit/vit_plan.h"

#include <math.h>

enum { SIDE = 64, PATCHES = 64, BLOCKS = 5, CLASSES = 10, BATCH = 4, MAX_CUTS = BLOCKS };
enum { IMAGE_BYTES = SIDE * SIDE * 3 };

static char path[512];
static uint8_t pixels[BATCH * IMAGE_BYTES];

/* A random model; weights large enough for attention to prefer some patches. */
static int make_model(void **state)
{
    (void)state;
    const renyi_init_options opt = {.struct_size = sizeof opt,
                                    .seed = 7,
                                    .n_classes = CLASSES,
                                    .dim = 48,
                                    .n_blocks = BLOCKS,
                                    .n_heads = 3,
                                    .mlp_dim = 100};
    fixture f = {.meta = {"num_heads", "3"}};
    ry_tensors *set = NULL;
    const char *plain = fix_path("plain.safetensors");
    assert_ok(renyi_model_init_file(plain, "vit_tiny_patch8_64", &opt, err));
    assert_ok(ry_safetensors_open(&set, plain, NULL, NULL, err));
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        const float scale = strstr(t->name, "qkv.weight") ? 12.0f : 3.0f;
        float *data = malloc(t->bytes);
        for (size_t k = 0; k < t->bytes / 4; k++) data[k] = scale * ((const float *)t->data)[k];
        fix_add(&f, t->name, t->n_dims, t->shape, data);
    }
    ry_tensors_free(set);
    unlink(plain);
    snprintf(path, sizeof path, "%s", fix_write(&f, "adaptive.safetensors"));
    fix_free(&f);
    /* from a flat image to noise */
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
                                   uint32_t threads, uint32_t trace)
{
    renyi_session *s = NULL;
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = batch,
                                       .n_threads = threads,
                                       .policy = policy,
                                       .trace = trace};
    assert_ok(renyi_session_new(&s, m, &opt, err));
    return s;
}

/* All images, `batch` at a time. */
static void run_all(const renyi_model *m, const char *policy, uint32_t batch, uint32_t threads,
                    float *logits)
{
    renyi_session *s = open_session(m, policy, batch, threads, 0);
    assert_true(renyi_session_last_macs(s) == 0.0);
    for (uint32_t i = 0; i < BATCH; i += batch) {
        const uint32_t n = BATCH - i < batch ? BATCH - i : batch;
        assert_ok(renyi_run_pixels(s, pixels + i * IMAGE_BYTES, n, logits + i * CLASSES, err));
        assert_true(renyi_session_last_macs(s) <= renyi_session_macs(s));
    }
    renyi_session_free(s);
}

static void same_bits(void **state)
{
    (void)state;
    static const char *const policies[] = {"ats keep=0.6 layers=1,2", "ats keep=0.5 layers=all",
                                           "ats tokens=20 layers=0", "ats tokens=9 layers=3"};
    for (int cpu = RENYI_CPU_SCALAR; cpu <= (int)renyi_cpu_detect(); cpu++) {
        renyi_model *m = open_model((renyi_cpu)cpu);
        for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
            float want[BATCH * CLASSES], got[BATCH * CLASSES];
            run_all(m, policies[k], 1, 1, want);
            for (uint32_t v = 0; v < 6; v++) {
                run_all(m, policies[k], 1 + v % 3 * 3 / 2, 1 + v % 4, got);
                assert_memory_equal(want, got, sizeof want);
            }
        }
        renyi_model_free(m);
    }
}

/* A budget of all tokens is no cut: the run is the dense one. */
static void nothing_to_sample(void **state)
{
    (void)state;
    float want[BATCH * CLASSES], got[BATCH * CLASSES];
    renyi_model *m = open_model(RENYI_CPU_AUTO);
    run_all(m, "none", BATCH, 2, want);
    run_all(m, "ats keep=1 layers=0-3", BATCH, 2, got);
    assert_memory_equal(want, got, sizeof want);
    run_all(m, "ats tokens=64 layers=all", 3, 1, got);
    assert_memory_equal(want, got, sizeof want);
    renyi_model_free(m);
}

/* Tokens that leave a cut enter the next: class token first, then patches in order, at most the
 * budget. */
static void check_cut(const renyi_cut *before, const renyi_cut *cut, uint32_t most)
{
    assert_int_equal(cut->n_in, before ? before->n_out : PATCHES + 1);
    assert_in_range(cut->n_out, 2, most);
    assert_int_equal(cut->source[0], 0);
    uint32_t gone = 0;
    for (uint32_t j = 0; j < cut->n_in; j++) {
        const int32_t was = before ? before->position[before->source[j]] : (int32_t)j - 1;
        assert_int_equal(cut->position[j], was);
        if (cut->target[j] == RENYI_NONE)
            gone++;
        else
            assert_int_equal(cut->source[cut->target[j]], j);
    }
    assert_int_equal(cut->n_in - gone, cut->n_out);
    for (uint32_t r = 0; r < cut->n_out; r++) {
        assert_true(cut->size[r] == 1.0f);
        assert_true(r == 0 || cut->source[r] > cut->source[r - 1]);
    }
}

/* The recorded cuts of every image keep the budgets of the policy. */
static void traced_counts(void **state)
{
    (void)state;
    static const uint32_t most[] = {46, 32, 22}; /* round(0.7 N), from 65 tokens */
    uint32_t counts[BATCH] = {0};
    float logits[BATCH * CLASSES];
    renyi_model *m = open_model(RENYI_CPU_AUTO);
    renyi_session *s = open_session(m, "ats keep=0.7 layers=1,2,4", BATCH, 2, 1);
    for (int again = 0; again < 2; again++) {
        assert_ok(renyi_run_pixels(s, pixels, BATCH, logits, err));
        assert_int_equal(renyi_session_cut_count(s), 3);
        for (uint32_t i = 0; i < BATCH; i++) {
            renyi_cut cuts[3];
            for (uint32_t c = 0; c < 3; c++) {
                assert_ok(renyi_session_cut(s, i, c, &cuts[c], err));
                check_cut(c ? &cuts[c - 1] : NULL, &cuts[c], most[c]);
            }
            assert_true(!again || counts[i] == cuts[0].n_out);
            counts[i] = cuts[0].n_out;
        }
    }
    uint32_t differ = 0;
    for (uint32_t i = 1; i < BATCH; i++) differ += counts[i] != counts[0];
    if (!differ) fail_msg("every image keeps %u tokens", counts[0]);
    assert_true(renyi_session_last_macs(s) < renyi_session_macs(s));
    renyi_session_free(s);
    renyi_model_free(m);
}

/* ---- the same choice in a plan of fixed counts ---------------------------------------------- */

/* A hook that replays the recorded cuts of one image. */
typedef struct replay {
    renyi_cut cuts[MAX_CUTS];
    size_t n_cuts;
} replay;

static const renyi_cut *replay_cut(const replay *r, uint32_t block)
{
    for (size_t c = 0; c < r->n_cuts; c++)
        if (r->cuts[c].block == block) return &r->cuts[c];
    return NULL;
}

static void replay_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const renyi_cut *cut = replay_cut(self, block);
    *out = (ry_block_needs){.n_after = n_tokens};
    if (!cut) return;
    assert_int_equal(cut->n_in, n_tokens);
    *out = (ry_block_needs){.place = RY_CUT_MID, .n_after = cut->n_out, .drops = 1};
}

static uint32_t replay_tiles(const void *self, uint32_t block, uint32_t phase)
{
    return replay_cut(self, block) && phase == 0;
}

static void replay_work(void *self, const ry_block_view *view, ry_cut *out, uint32_t phase,
                        uint32_t tile)
{
    const renyi_cut *cut = replay_cut(self, view->block);
    (void)phase;
    (void)tile;
    memcpy(out->source, cut->source, cut->n_out * sizeof *out->source);
    memcpy(out->target, cut->target, cut->n_in * sizeof *out->target);
    for (uint32_t j = 0; j < cut->n_in; j++) out->weight[j] = cut->target[j] != RENYI_NONE;
}

static void replay_watch(void *self, const ry_block_view *view, const ry_cut *cut)
{
    assert_int_equal(cut->n_out, replay_cut(self, view->block)->n_out);
}

/* Logits and MACs of an image with the recorded cuts. */
static double run_fixed(const renyi_model *m, replay *r, const uint8_t *image, float *logits)
{
    const ry_token_hook hook = {replay_needs, replay_tiles, replay_work, replay_watch, r, NULL};
    const ry_vit_plan_options opt = {
        .level = m->level, .hook = &hook, .max_batch = 1, .n_threads = 2};
    float lut[3][256];
    ry_vit_plan *plan;
    ry_normalize_lut(lut, m->vit.config.preprocess.mean, m->vit.config.preprocess.std);
    assert_ok(ry_vit_plan_new(&plan, &m->vit, &opt, NULL, err));
    assert_false(plan->one_by_one);
    const ry_vit_input in = {.pixels = image, .lut = (const float(*)[256])lut, .n = 1};
    assert_int_equal(ry_vit_forward(plan, &in, logits), RENYI_OK);
    const double macs = ry_vit_plan_macs(plan);
    assert_true(plan->last_macs == macs);
    ry_vit_plan_free(plan, NULL);
    return macs;
}

static void as_with_fixed_counts(void **state)
{
    (void)state;
    for (int cpu = RENYI_CPU_SCALAR; cpu <= (int)renyi_cpu_detect(); cpu++) {
        float adaptive[BATCH * CLASSES], fixed[CLASSES];
        double macs = 0.0;
        renyi_model *m = open_model((renyi_cpu)cpu);
        renyi_session *s = open_session(m, "ats keep=0.6 layers=0,1,3,4", BATCH, 2, 1);
        assert_ok(renyi_run_pixels(s, pixels, BATCH, adaptive, err));
        for (uint32_t i = 0; i < BATCH; i++) {
            replay r = {.n_cuts = renyi_session_cut_count(s)};
            for (size_t c = 0; c < r.n_cuts; c++)
                assert_ok(renyi_session_cut(s, i, c, &r.cuts[c], err));
            macs += run_fixed(m, &r, pixels + i * IMAGE_BYTES, fixed);
            /* oneDNN rounds by the shape of its tiles, which depends on the plan */
            for (size_t k = 0; k < CLASSES; k++)
                assert_true(fabsf(fixed[k] - adaptive[i * CLASSES + k]) <=
                            (cpu < (int)RENYI_CPU_AVX512 ? 0.0f : 1e-4f));
        }
        /* the replay computes neither class rows nor scores */
        const double last = renyi_session_last_macs(s) * BATCH;
        assert_true(last > macs && last < 1.02 * macs);
        renyi_session_free(s);
        renyi_model_free(m);
    }
}

static int stop_at(void *user, uint64_t done, uint64_t total)
{
    uint64_t *const last = user; /* [0] the last count, [1] where to stop */
    assert_int_equal(total, BATCH * BLOCKS);
    assert_int_equal(done, ++last[0]);
    return done == last[1];
}

/* Progress counts the blocks of all images and may stop after any of them. */
static void progress(void **state)
{
    (void)state;
    float logits[BATCH * CLASSES];
    uint64_t last[2] = {0, 0};
    renyi_model *m = open_model(RENYI_CPU_AUTO);
    renyi_session *s = NULL;
    renyi_error e;
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = BATCH,
                                       .n_threads = 2,
                                       .policy = "ats layers=0",
                                       .progress = stop_at,
                                       .progress_user = last};
    assert_ok(renyi_session_new(&s, m, &opt, err));
    for (uint64_t stop = 1; stop <= BATCH * BLOCKS; stop += 6) {
        last[0] = 0, last[1] = stop;
        assert_int_equal(renyi_run_pixels(s, pixels, BATCH, logits, &e), RENYI_ERR_ABORTED);
        assert_int_equal(last[0], stop);
    }
    last[0] = last[1] = 0;
    assert_ok(renyi_run_pixels(s, pixels, BATCH, logits, err));
    assert_int_equal(last[0], BATCH * BLOCKS);
    renyi_session_free(s);
    renyi_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits), cmocka_unit_test(nothing_to_sample),
        cmocka_unit_test(traced_counts), cmocka_unit_test(as_with_fixed_counts),
        cmocka_unit_test(progress)};
    return cmocka_run_group_tests(tests, make_model, remove_model);
}
