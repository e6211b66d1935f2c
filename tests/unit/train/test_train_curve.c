/* test_train_curve.c - 20 steps of training with a pruned tiny model: every loss and
 * gradient norm against PyTorch in float64 (tools/ref/train_curve.py).
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/train_golden.h"
#include "train/run/loss.h"
#include "train/run/optim.h"
#include "train/settings/schedule.h"

enum { STEPS = 20, BATCH = 8, MICRO = 4, CLASSES = 5, PIXELS = 3 * 20 * 20 };

/* batch_of() of train_curve.py: half noise, half the pattern of the class. */
static void fill_batch(uint32_t step, float *chw, uint32_t *label)
{
    static float noise[PIXELS], pattern[PIXELS];
    for (uint32_t i = 0; i < BATCH; i++) {
        label[i] = (7 * (step * BATCH + i) + i / 3) % CLASSES;
        golden_noise(noise, PIXELS, 10000 + step * BATCH + i);
        golden_noise(pattern, PIXELS, 20000 + label[i]);
        for (size_t k = 0; k < PIXELS; k++)
            chw[i * PIXELS + k] = 0.5f * noise[k] + pattern[k] * 0.5f;
    }
}

/* Adds the gradient of the batch's mean loss, micro-batch by micro-batch; returns that loss. */
static double run_batch(ry_net *net, const float *chw, const uint32_t *label)
{
    double loss = 0.0;
    for (uint32_t first = 0; first < BATCH; first += MICRO) {
        float logits[MICRO * CLASSES], d[MICRO * CLASSES] = {0};
        const ry_net_batch batch = {.chw = chw + first * PIXELS, .n = MICRO};
        assert_ok(ry_net_forward(net, &batch, logits, NULL, err));
        const ry_logits z = {logits, MICRO, CLASSES};
        loss += ry_loss_label(&z, label + first, 0.1, 1.0 / BATCH, d);
        assert_ok(ry_net_backward(net, d, NULL, NULL, err));
    }
    return loss / BATCH;
}

static void test_curve(void **state)
{
    static float chw[BATCH * PIXELS];
    uint32_t label[BATCH];
    const ry_net_options net_options = {.micro_batch = MICRO, .n_threads = 2};
    const ry_lr_schedule schedule = {.shape = RY_LR_COSINE,
                                     .tick = RY_LR_PER_STEP,
                                     .peak = 1e-3,
                                     .min = 1e-5,
                                     .epochs = 1.0,
                                     .warmup_epochs = 3.0 / STEPS,
                                     .warmup_lr = 1e-6};
    ry_optim_options options = ry_optim_defaults();
    ry_optim *optim = NULL;
    ry_tensors *set = NULL;
    (void)state;

    assert_ok(ry_safetensors_open(&set, golden_path("curve"), NULL, NULL, err));
    const double *losses = ry_tensors_find(set, "loss")->data;
    const double *norms = ry_tensors_find(set, "norm")->data;
    ry_net *net = golden_net("class", &net_options);
    options.weight_decay = 0.05;
    options.n_threads = 2;
    assert_ok(ry_optim_new(&optim, ry_net_params(net), &options, NULL, err));
    assert_ok(ry_net_update(net, err));
    golden_prune(net, ry_tensors_meta(set, "policy"));
    for (uint32_t step = 0; step < STEPS; step++) {
        const ry_moment now = {.epoch = 0, .step = step, .steps = STEPS};
        fill_batch(step, chw, label);
        ry_net_zero_grad(net);
        const double loss = run_batch(net, chw, label), norm = ry_optim_norm(optim, 1.0);
        if (!(fabs(loss / losses[step] - 1.0) < 2e-5 && fabs(norm / norms[step] - 1.0) < 2e-4))
            fail_msg("step %u: loss %.7f, norm %.6f; PyTorch: %.7f, %.6f", step, loss, norm,
                     losses[step], norms[step]);
        ry_optim_step(optim, ry_lr_at(&schedule, now), ry_optim_clip(norm, 3.2));
        assert_ok(ry_net_update(net, err));
    }
    ry_optim_free(optim);
    ry_net_free(net);
    ry_tensors_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_curve)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
